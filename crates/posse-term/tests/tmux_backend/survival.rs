//! Lost connections and new daemons: the terminals go on, and are found as they were.

use posse_core::ids::WriterId;
use posse_core::screen::Size;
use posse_core::status::Exit;
use posse_term::wire::{Event, Request, Wiring};
use rustix::process::{Pid, Signal, kill_process};

use crate::stage::{Stage, id, script};

/// Something of everything a screen can have.
const PICTURE: &str = r#"
    for i in $(seq 60); do printf 'line %s of the history, and it is long enough to be wrapped at the margin of 80 columns\n' $i; done
    printf '\e]2;✳ a title\e\\\e[1;31mred\e[m and \e[48;5;22mgreen\e[m 漢字 \e(0lqqk\e(B\n'
    printf '\e[?2004h\e[?1h\e[?1006h\e[?1003h\e[5;20r\e[10;7H'
    printf ready
    exec cat
"#;

#[tokio::test]
async fn a_new_daemon_sees_the_same_screen() {
    let Some(stage) = Stage::new() else { return };
    let mut client = stage.connect().await;
    let pid = client.spawn(id(1), script(PICTURE)).await;
    client.until_text(id(1), "ready").await;
    let before = client.mirror(id(1)).emulator.screen();
    let history: Vec<String> = client.mirror(id(1)).emulator.history().map(str::to_owned).collect();
    let modes = client.mirror(id(1)).emulator.input_modes();
    let offset = client.mirror(id(1)).emulator.offset();
    // The mode of pastes is noted after it was heard.
    client.until_outside("the note", || stage.value(id(1), "#{@posse_paste}") == "1").await;
    drop(client);

    let mut client = stage.connect().await;
    let summaries = client.list().await;
    let [summary] = &summaries[..] else { panic!("{summaries:?}") };
    assert_eq!((summary.id, summary.pid, summary.exit), (id(1), pid, None));
    assert_eq!(summary.wiring, Wiring::Terminal(Size::clamped(24, 80)));
    assert_eq!(summary.label, br#"{"name":"name","session":"posse-session"}"#);
    assert!(summary.main.0 > offset && summary.main.0 == summary.main.1, "offsets never come back: {summary:?}");
    client.attach(id(1));
    let mirror = client.until(id(1), |mirror| mirror.checkpoints == 1).await;
    let after = mirror.emulator.screen();
    assert_eq!(after.rows, before.rows);
    assert_eq!((after.cursor, after.alternate, &after.title), (before.cursor, before.alternate, &before.title));
    assert_eq!(mirror.emulator.history().collect::<Vec<_>>(), history);
    assert_eq!(mirror.emulator.input_modes(), modes);
    client.type_in(id(1), b"\r\nand it goes on").await.unwrap();
    client.until_text(id(1), "and it goes on").await;
    // In plain text tmux gives the letters that stand for lines.
    let lines = |row: &String| row.replace("┌──┐", "lqqk");
    let rows: Vec<_> = client.mirror(id(1)).emulator.screen().rows.iter().map(lines).collect();
    assert_eq!(rows, stage.shown(id(1)));
}

#[tokio::test]
async fn the_alternate_screen_is_found_and_left() {
    let Some(stage) = Stage::new() else { return };
    let mut client = stage.connect().await;
    let text = r"printf 'main screen\nprompt> '; printf '\e[?1049h\e[?25l\e[H\e[44mfull screen\e[m\e[12;5Hmiddle'; read -r; printf '\e[?1049l\e[?25hback\n'; exec cat";
    client.spawn(id(1), script(text)).await;
    client.until_text(id(1), "middle").await;
    drop(client);
    let mut client = stage.connect().await;
    client.attach(id(1));
    let screen = client.until_text(id(1), "middle").await.emulator.screen();
    assert!(screen.alternate && screen.cursor.is_none());
    client.type_in(id(1), b"\r").await.unwrap();
    client.until_text(id(1), "back").await;
    assert_eq!(client.mirror(id(1)).emulator.screen().filled_rows(), ["main screen", "prompt> back"]);
}

/// Input that a dead daemon may or may not have applied is sent again by whoever sent it, under the same number.
#[tokio::test]
async fn input_is_applied_once_whoever_is_connected() {
    let Some(stage) = Stage::new() else { return };
    let mut client = stage.connect().await;
    client.spawn(id(1), script("stty raw -echo; printf ready; exec cat")).await;
    client.until_text(id(1), "ready").await;
    let (writer, other) = (WriterId(u64::MAX), WriterId(12));
    client.type_as(id(1), writer, 5, b"<five>").await.unwrap();
    client.type_as(id(1), other, 1, &b"<long>".repeat(100)).await.unwrap();
    client.until(id(1), |mirror| mirror.output.len() == 5 + 6 + 600).await;
    drop(client);

    let mut client = stage.connect().await;
    client.attach(id(1));
    client.until(id(1), |mirror| mirror.checkpoints == 1).await;
    client.type_as(id(1), writer, 5, b"<five>").await.unwrap();
    client.type_as(id(1), other, 1, &b"<long>".repeat(100)).await.unwrap();
    client.type_as(id(1), writer, 6, b"<six>").await.unwrap();
    client.until(id(1), |mirror| !mirror.output.is_empty()).await;
    assert_eq!(client.mirror(id(1)).output, b"<six>");
}

#[tokio::test]
async fn a_lost_connection_comes_back_by_itself() {
    let Some(stage) = Stage::new() else { return };
    let mut client = stage.connect().await;
    client.spawn(id(1), script("stty raw -echo; printf ready; exec cat")).await;
    client.until_text(id(1), "ready").await;
    let mut expected = b"ready".to_vec();
    for round in 1..=5 {
        let clients = stage.tmux(&["list-clients", "-F", "#{client_control_mode} #{client_pid}"]);
        let ours = clients.lines().find_map(|line| line.strip_prefix("1 ")).unwrap();
        kill_process(Pid::from_raw(ours.parse().unwrap()).unwrap(), Signal::KILL).unwrap();
        // Sent before anybody has noticed: it is lost with the connection, or applied and its answer lost.
        for part in 0..4u64 {
            let bytes = format!("<{round}.{part}>").repeat(if part == 2 { 60 } else { 1 }).into_bytes();
            expected.extend_from_slice(&bytes);
            let sequence = round * 10 + part;
            client.link.send(Request::Input { id: id(1), writer: WriterId(3), sequence, bytes });
        }
        let last = round * 10 + 3;
        client
            .wait_for(|event| match event {
                Event::InputDone { sequence, .. } => (*sequence == last).then_some(()),
                Event::InputRefused { .. } => panic!("{event:?}"),
                _ => None,
            })
            .await;
        // What was printed meanwhile is on the screen, or comes.
        let end = format!("<{round}.3>");
        client.until(id(1), |mirror| mirror.checkpoints >= round as usize && mirror.text().contains(&end)).await;
    }
    let shown: String = client.mirror(id(1)).emulator.screen().rows.concat();
    assert_eq!(shown, String::from_utf8(expected).unwrap(), "everything once, and in order");
}

#[tokio::test]
async fn one_that_ended_meanwhile_shows_how_and_its_last_screen() {
    let Some(stage) = Stage::new() else { return };
    let mut client = stage.connect().await;
    let text = "echo ready; read -r; echo the last words; exit 6";
    for number in 1..=2 {
        client.spawn(id(number), script(text)).await;
        client.until_text(id(number), "ready").await;
    }
    let panes = [stage.pane(id(1)), stage.pane(id(2))];
    drop(client);
    for pane in &panes {
        stage.tmux(&["send-keys", "-t", pane, "Enter"]);
    }
    // The first one's pane is still there, the second one's is not.
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while stage.notes().iter().filter(|name| name.ends_with(".exit")).count() < 2 {
        assert!(std::time::Instant::now() < deadline, "{:?}", stage.notes());
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    stage.tmux(&["kill-pane", "-t", &panes[1]]);
    let mut client = stage.connect().await;
    assert_eq!(client.list().await.iter().map(|summary| summary.id).collect::<Vec<_>>(), [id(1), id(2)]);
    client.attach(id(1));
    client.attach(id(2));
    assert_eq!(client.until_exit(id(1)).await, Exit::Code(6));
    assert_eq!(client.until_exit(id(2)).await, Exit::Code(6));
    assert!(client.mirror(id(1)).text().contains("the last words"));
    assert_eq!(client.mirror(id(2)).text(), "", "its screen is gone with its pane");
}

#[tokio::test]
async fn what_a_dead_server_left_is_lost_once() {
    let Some(stage) = Stage::new() else { return };
    let mut client = stage.connect().await;
    client.spawn(id(1), script("echo ready; exec cat")).await;
    client.until_text(id(1), "ready").await;
    drop(client);
    // Without giving the shim the time to write anything.
    let pids = [stage.value(id(1), "#{pane_pid}"), stage.value(id(1), "#{pid}")];
    for pid in pids {
        kill_process(Pid::from_raw(pid.parse().unwrap()).unwrap(), Signal::KILL).unwrap();
    }
    let mut client = stage.connect().await;
    let summaries = client.list().await;
    assert_eq!(summaries.iter().map(|summary| summary.exit).collect::<Vec<_>>(), [Some(Exit::Lost)]);
    client.attach(id(1));
    assert_eq!(client.until_exit(id(1)).await, Exit::Lost);
    drop(client);
    let mut client = stage.connect().await;
    assert_eq!(client.list().await, []);
}

/// The notes of a terminal went, and the wish to close its pane was lost: killed between the two, nobody would ever find it.
#[tokio::test]
async fn a_pane_without_notes_is_ended_by_the_next_daemon() {
    for stage in [Stage::new(), Stage::of_a_user()] {
        let Some(stage) = stage else { return };
        let mut client = stage.connect().await;
        for number in 1..=2 {
            client.spawn(id(number), script("echo ready; exec cat")).await;
            client.until_text(id(number), "ready").await;
        }
        drop(client);
        std::fs::remove_file(stage.path("state").join(format!("{}.terminal", id(1)))).unwrap();
        let mut client = stage.connect().await;
        assert_eq!(client.list().await.iter().map(|summary| summary.id).collect::<Vec<_>>(), [id(2)]);
        let marks = || stage.tmux(&["list-panes", "-a", "-F", "#{@posse_id}"]);
        client.until_outside("the end of its pane", || !marks().contains(id(1).as_str())).await;
        let ended = |event: &Event| matches!(event, Event::Ended { id: of, .. } if *of == id(1));
        assert!(client.heard.iter().any(ended), "whoever ends its family is told");
        assert!(marks().contains(id(2).as_str()), "and nobody else's is closed");
        assert!(stage.tmux(&["list-sessions", "-F", "#{session_name}"]).contains("guard"));
    }
}

//! What people do with the panes, from outside or attached. Nothing of it may break anything.

use std::io::{Read, Write};

use posse_core::screen::Size;
use posse_core::status::Exit;
use posse_term::wire::{InputRefusal, Request};

use crate::stage::{Client, Stage, id, program, script};

/// A terminal with something on it that answers.
async fn start(stage: &Stage) -> Client {
    let mut client = stage.connect().await;
    client.spawn(id(1), script("echo ready; exec cat")).await;
    client.until_text(id(1), "ready").await;
    client
}

/// Types something and sees it come back.
async fn check(client: &mut Client, text: &str) {
    client.type_in(id(1), format!("{text}\r").as_bytes()).await.unwrap();
    client.until(id(1), |mirror| mirror.text().matches(text).count() == 2).await;
}

#[tokio::test]
async fn renaming_and_moving_windows() {
    let Some(stage) = Stage::new() else { return };
    let mut client = start(&stage).await;
    let pane = stage.pane(id(1));
    stage.tmux(&["rename-window", "-t", &pane, "something else"]);
    stage.tmux(&["rename-session", "-t", "posse-session", "theirs"]);
    check(&mut client, "renamed").await;
    // The session of that name is gone, so there is a new one.
    client.spawn(id(2), script("echo second; exec cat")).await;
    client.until_text(id(2), "second").await;
    stage.tmux(&["move-window", "-d", "-s", &stage.pane(id(2)), "-t", "theirs:"]);
    client.type_in(id(2), b"moved\r").await.unwrap();
    client.until_text(id(2), "moved\nmoved").await;
    check(&mut client, "still here").await;
    assert_eq!(client.mirror(id(2)).checkpoints, 0);
}

#[tokio::test]
async fn breaking_a_pane_out_and_joining_it_elsewhere() {
    let Some(stage) = Stage::new() else { return };
    let mut client = start(&stage).await;
    let pane = stage.pane(id(1));
    stage.tmux(&["split-window", "-d", "-t", &pane, "cat"]);
    client.until(id(1), |mirror| mirror.emulator.size().rows() < 24).await;
    assert_eq!(client.mirror(id(1)).emulator.size().to_string(), stage.value(id(1), "#{pane_width}x#{pane_height}"));
    check(&mut client, "split").await;
    client.link.send(Request::Resize { id: id(1), size: Size::clamped(5, 80) });
    client.until(id(1), |mirror| mirror.emulator.size().rows() == 5).await;

    // Into a window of its own, which we do not look at until we notice.
    stage.tmux(&["break-pane", "-d", "-s", &pane, "-t", "posse-session:"]);
    client.until(id(1), |mirror| mirror.checkpoints == 1 && mirror.emulator.size().rows() > 10).await;
    check(&mut client, "broken out").await;
    assert_eq!(client.mirror(id(1)).emulator.screen().rows, stage.shown(id(1)));

    // Into somebody else's window.
    stage.tmux(&["new-session", "-d", "-s", "theirs", "-x", "100", "-y", "30", "cat"]);
    stage.tmux(&["join-pane", "-d", "-s", &pane, "-t", "theirs:"]);
    client.until(id(1), |mirror| mirror.checkpoints == 2).await;
    check(&mut client, "joined").await;
    // And out again: what is theirs is left as it was.
    stage.tmux(&["break-pane", "-d", "-s", &pane, "-t", "theirs:"]);
    client.until(id(1), |mirror| mirror.checkpoints == 3).await;
    check(&mut client, "out again").await;
    let anchored =
        || stage.tmux(&["list-windows", "-a", "-F", "#{session_name} #{window_linked_sessions} #{window_panes}"]);
    client
        .until_outside("only our window is linked", || {
            anchored().lines().filter(|line| line.contains(" 2 ")).count() == 2
        })
        .await;
    stage.tmux(&["kill-session", "-t", "theirs"]);
    let exit = client.until_exit(id(1)).await;
    assert!(matches!(exit, Exit::Signal(1) | Exit::Code(1)), "by the signal, or by what it could not read: {exit:?}");
}

#[tokio::test]
async fn resizing_from_outside_and_zooming() {
    let Some(stage) = Stage::new() else { return };
    let mut client = start(&stage).await;
    let pane = stage.pane(id(1));
    stage.tmux(&["resize-window", "-t", &pane, "-x", "101", "-y", "33"]);
    client.until(id(1), |mirror| mirror.emulator.size() == Size::clamped(33, 101)).await;
    stage.tmux(&["split-window", "-d", "-h", "-t", &pane, "cat"]);
    client.until(id(1), |mirror| mirror.emulator.size() == Size::clamped(33, 50)).await;
    stage.tmux(&["resize-pane", "-Z", "-t", &pane]);
    client.until(id(1), |mirror| mirror.emulator.size() == Size::clamped(33, 101)).await;
    stage.tmux(&["resize-pane", "-Z", "-t", &pane]);
    client.until(id(1), |mirror| mirror.emulator.size() == Size::clamped(33, 50)).await;
    // A row of the pane's own for its border; the layout does not tell.
    stage.tmux(&["set-option", "-w", "-t", &pane, "pane-border-status", "top"]);
    stage.tmux(&["resize-pane", "-t", &pane, "-x", "40"]);
    client.until(id(1), |mirror| mirror.emulator.size() == Size::clamped(32, 40)).await;
    check(&mut client, "resized").await;
}

#[tokio::test]
async fn somebody_attached_types_looks_and_leaves() {
    let Some(stage) = Stage::new() else { return };
    let mut client = start(&stage).await;
    let (pty, pts) = pty_process::blocking::open().unwrap();
    pty.resize(pty_process::Size::new(12, 40)).unwrap();
    let command = pty_process::blocking::Command::new("tmux").arg("-S").arg(stage.path("socket"));
    let command = command.args(["-u", "attach-session", "-t", "posse-session"]).env("TERM", "xterm-256color");
    let mut person = command.env_remove("TMUX").spawn(pts).unwrap();
    let clients = || stage.tmux(&["list-clients", "-F", "#{client_control_mode}"]);
    client.until_outside("the person", || clients().lines().any(|mode| mode == "0")).await;
    // Somebody has to read what is drawn for them.
    let pty = std::sync::Arc::new(pty);
    let eyes = pty.clone();
    let reader = std::thread::spawn(move || while let Ok(1..) = (&*eyes).read(&mut [0; 4096]) {});
    (&*pty).write_all(b"typed by hand\r").unwrap();
    client.until_text(id(1), "typed by hand\ntyped by hand").await;
    assert_eq!(client.mirror(id(1)).emulator.size(), Size::clamped(24, 80), "their window does not decide");

    // They scroll; what we send is for the program all the same, short or long.
    for (text, length) in [("short", 1), ("long", 300)] {
        stage.tmux(&["copy-mode", "-t", &stage.pane(id(1))]);
        assert_eq!(stage.value(id(1), "#{pane_in_mode}"), "1");
        client.type_in(id(1), format!("{}{text}\r", " ".repeat(length)).as_bytes()).await.unwrap();
        client.until(id(1), |mirror| mirror.text().matches(text).count() == 2).await;
        assert_eq!(stage.value(id(1), "#{pane_in_mode}"), "0");
    }
    // They leave.
    stage.tmux(&["detach-client", "-s", "posse-session"]);
    person.wait().unwrap();
    reader.join().unwrap();
    check(&mut client, "alone again").await;
    assert_eq!(client.mirror(id(1)).checkpoints, 0);
}

#[tokio::test]
async fn a_pane_whose_input_was_switched_off_gets_none() {
    let Some(stage) = Stage::new() else { return };
    let mut client = start(&stage).await;
    let pane = stage.pane(id(1));
    stage.tmux(&["select-pane", "-d", "-t", &pane]);
    for bytes in [&b"no\r"[..], &[b'x'; 1000]] {
        assert_eq!(client.type_in(id(1), bytes).await, Err(InputRefusal::Off));
    }
    let writer = posse_core::ids::WriterId(5);
    assert_eq!(client.type_as(id(1), writer, 3, b"again\r").await, Err(InputRefusal::Off));
    stage.tmux(&["select-pane", "-e", "-t", &pane]);
    // What was refused may be repeated under the same number.
    client.type_as(id(1), writer, 3, b"again\r").await.unwrap();
    client.until_text(id(1), "again\nagain").await;
    assert!(!client.mirror(id(1)).text().contains("no"));
    assert_eq!(stage.tmux(&["list-buffers"]), "");
}

#[tokio::test]
async fn closing_panes_windows_and_sessions() {
    let Some(stage) = Stage::new() else { return };
    let mut client = stage.connect().await;
    for number in 1..=4 {
        // One that does not read: what it notices first is the signal.
        let mut program = program(&["sleep", "1000"]);
        program.label = format!(r#"{{"name":"n","session":"posse-{}"}}"#, number / 3).into_bytes();
        client.spawn(id(number), program).await;
    }
    stage.tmux(&["kill-pane", "-t", &stage.pane(id(1))]);
    assert_eq!(client.until_exit(id(1)).await, Exit::Signal(1));
    assert_eq!(client.type_in(id(1), b"x").await, Err(InputRefusal::NotReading));
    stage.tmux(&["kill-window", "-t", &stage.pane(id(2))]);
    assert_eq!(client.until_exit(id(2)).await, Exit::Signal(1));
    // Both are shown in a session of ours as well, but theirs is what counts.
    stage.tmux(&["kill-session", "-t", "posse-1"]);
    for number in 3..=4 {
        assert_eq!(client.until_exit(id(number)).await, Exit::Signal(1));
    }
    client.spawn(id(5), script("echo alive; exec cat")).await;
    client.until_text(id(5), "alive").await;
}

#[tokio::test]
async fn our_own_session_is_not_theirs_to_close_but_they_may() {
    let Some(stage) = Stage::new() else { return };
    let mut client = start(&stage).await;
    let sessions = stage.tmux(&["list-sessions", "-F", "#{session_name}"]);
    let anchor = sessions.lines().find(|name| name.starts_with("_posse_")).unwrap().to_owned();
    stage.tmux(&["kill-session", "-t", &anchor]);
    client.until(id(1), |mirror| mirror.checkpoints == 1).await;
    check(&mut client, "anchored again").await;
    // Our connection is a client like any other, and can be moved.
    let clients = stage.tmux(&["list-clients", "-F", "#{client_control_mode} #{client_name}"]);
    let ours = clients.lines().find_map(|line| line.strip_prefix("1 ")).unwrap();
    stage.tmux(&["switch-client", "-c", ours, "-t", "guard"]);
    client.until(id(1), |mirror| mirror.checkpoints == 2).await;
    check(&mut client, "back again").await;
}

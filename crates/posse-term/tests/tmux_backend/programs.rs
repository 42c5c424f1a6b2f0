//! Starting programs: as asked for, or not at all.

use std::os::unix::fs::PermissionsExt;

use posse_core::screen::Size;
use posse_core::status::Exit;
use posse_term::wire::{Event, Request, SpawnRefusal, Wiring};

use crate::stage::{Stage, id, program, script};

#[tokio::test]
async fn a_program_prints_and_ends_with_its_code() {
    let Some(stage) = Stage::new() else { return };
    let mut client = stage.connect().await;
    for (number, text, exit) in [
        (1, "printf hello; exit 3", Exit::Code(3)),
        (2, "printf hello; kill -TERM $$", Exit::Signal(15)),
        (3, "printf hello; kill -KILL $$", Exit::Signal(9)),
        (4, "printf hello", Exit::Code(0)),
    ] {
        client.spawn(id(number), script(text)).await;
        assert_eq!(client.until_exit(id(number)).await, exit, "{text}");
        let mirror = client.mirror(id(number));
        assert_eq!((mirror.output.as_slice(), mirror.begin), (&b"hello"[..], 0), "{text}");
    }
    client.link.send(Request::Forget { id: id(1) });
    client.wait_for(|event| (*event == Event::Forgotten { id: id(1) }).then_some(())).await;
    let summaries = client.list().await;
    let ids: Vec<_> = summaries.iter().map(|summary| (summary.id, summary.exit)).collect();
    let expected = [(id(2), Exit::Signal(15)), (id(3), Exit::Signal(9)), (id(4), Exit::Code(0))];
    assert_eq!(ids, expected.map(|(id, exit)| (id, Some(exit))));
    assert!(stage.notes().iter().all(|name| !name.starts_with("00000001")), "{:?}", stage.notes());
    for number in 2..=4 {
        client.link.send(Request::Forget { id: id(number) });
    }
    client.wait_for(|event| (*event == Event::Forgotten { id: id(4) }).then_some(())).await;
    assert_eq!(stage.notes(), [""; 0]);
    let panes = || stage.tmux(&["list-panes", "-a", "-F", "#{@posse_id}"]);
    client.until_outside("the panes are closed", || panes().trim().is_empty()).await;
}

/// The end of a program closes its pane, and tmux drops what it had not yet sent us. The shim prevents that.
#[tokio::test]
async fn not_a_byte_is_lost_at_the_end() {
    let Some(stage) = Stage::new() else { return };
    let mut client = stage.connect().await;
    let expected: String = (1..=3000).map(|n| format!("{n}\r\n")).collect();
    for number in 0..20 {
        client.spawn(id(number), script("seq 3000")).await;
    }
    for number in 0..20 {
        assert_eq!(client.until_exit(id(number)).await, Exit::Code(0));
        let mirror = client.mirror(id(number));
        assert_eq!(mirror.checkpoints, 0);
        let same = mirror.output.iter().zip(expected.as_bytes()).take_while(|(a, b)| a == b).count();
        assert!(
            mirror.output == expected.as_bytes(),
            "{} of {} bytes, the first {same} right, then {:?}",
            mirror.output.len(),
            expected.len(),
            String::from_utf8_lossy(&mirror.output[same..(same + 40).min(mirror.output.len())])
        );
    }
}

#[tokio::test]
async fn it_gets_what_was_given_and_nothing_else() {
    let Some(stage) = Stage::new() else { return };
    let mut client = stage.connect().await;
    let directory = stage.path("a directory");
    std::fs::create_dir(&directory).unwrap();
    std::fs::write(
        directory.join("tool"),
        "#!/bin/sh\ncat /proc/self/environ > env; pwd; stty size; tty >tty; \"$@\"\n",
    )
    .unwrap();
    std::fs::set_permissions(directory.join("tool"), std::fs::Permissions::from_mode(0o755)).unwrap();

    // Found by the PATH it is given, not by ours.
    let mut tool = program(&[
        "tool",
        "sh",
        "-c",
        "echo \"<$1>\"; echo group $(ps -o tpgid= -p $$); exec cat",
        "sh",
        "a 'b' \"c\" $d; #{e}\n",
    ]);
    let path = format!("{}:/usr/bin:/bin", directory.display());
    tool.environment = vec![
        (b"PATH".to_vec(), path.clone().into_bytes()),
        (b"TERM".to_vec(), b"xterm-ghostty".to_vec()),
        (b"ODD".to_vec(), b"a=b\n\xff#(true)".to_vec()),
    ];
    tool.directory = directory.clone().into_os_string().into_encoded_bytes();
    tool.wiring = Wiring::Terminal(Size::clamped(31, 117));
    let pid = client.spawn(id(1), tool).await;
    // The program's group is the one in the foreground.
    client.until_text(id(1), &format!("group {pid}")).await;
    let text = client.mirror(id(1)).text();
    assert!(text.starts_with(&format!("{}\n31 117\n<a 'b' \"c\" $d; #{{e}}\n>\n", directory.display())), "{text}");
    assert!(std::fs::read_to_string(directory.join("tty")).unwrap().starts_with("/dev/"));

    let environment = std::fs::read(directory.join("env")).unwrap();
    let mut variables: Vec<&[u8]> = environment.split(|b| *b == 0).filter(|v| !v.is_empty()).collect();
    variables.sort_unstable();
    // What shells add by themselves, and what `exec` in this one sets.
    variables.retain(|v| ![&b"PWD="[..], b"OLDPWD=", b"SHLVL=", b"_="].iter().any(|own| v.starts_with(own)));
    let path = format!("PATH={path}").into_bytes();
    let term = format!("TERM={}", stage.tmux(&["show-options", "-s", "-v", "default-terminal"])).into_bytes();
    assert_eq!(variables, [&b"ODD=a=b\n\xff#(true)"[..], &path, &term]);
    assert!(
        !stage.notes().iter().any(|name| name.ends_with("program") || name.ends_with("start")),
        "{:?}",
        stage.notes()
    );
}

#[tokio::test]
async fn keys_of_the_terminal_reach_the_program() {
    let Some(stage) = Stage::new() else { return };
    let mut client = stage.connect().await;
    let text = "trap 'echo interrupted; exit 7' INT; echo ready; while :; do sleep 0.01; done";
    client.spawn(id(1), script(text)).await;
    client.until_text(id(1), "ready").await;
    client.type_in(id(1), b"\x03").await.unwrap();
    assert_eq!(client.until_exit(id(1)).await, Exit::Code(7));
    assert!(client.mirror(id(1)).text().contains("interrupted"));

    // A shell with jobs of its own: Ctrl-Z stops the job, not the shell.
    client.spawn(id(2), program(&["bash", "--norc", "--noprofile", "-i"])).await;
    client.until_text(id(2), "bash-").await;
    client.type_in(id(2), b"sh -c 'echo run$((1))ning; exec cat'\r").await.unwrap();
    client.until_text(id(2), "run1ning").await;
    client.type_in(id(2), b"\x1a").await.unwrap();
    client.until_text(id(2), "Stopped").await;
    client.type_in(id(2), b"exec sh -c 'exit 5'\r").await.unwrap();
    assert_eq!(client.until_exit(id(2)).await, Exit::Code(5));
}

#[tokio::test]
async fn what_cannot_be_started_is_refused() {
    let Some(stage) = Stage::new() else { return };
    let mut client = stage.connect().await;
    let plain = stage.path("plain");
    std::fs::write(&plain, "not a program").unwrap();
    let refused = |result: Result<u32, (SpawnRefusal, String)>| result.unwrap_err().0;

    let mut nowhere = script("true");
    nowhere.directory = b"/nowhere/at/all".to_vec();
    assert_eq!(refused(client.try_spawn(id(1), nowhere).await), SpawnRefusal::DirectoryMissing);
    let missing = client.try_spawn(id(1), program(&["no-such-program"])).await;
    assert_eq!(missing, Err((SpawnRefusal::ProgramMissing, "no-such-program: no such program".into())));
    let plain = program(&[plain.to_str().unwrap()]);
    assert_eq!(refused(client.try_spawn(id(1), plain).await), SpawnRefusal::NotExecutable);
    assert_eq!(refused(client.try_spawn(id(1), program(&[])).await), SpawnRefusal::ProgramMissing);
    let mut pipes = script("true");
    pipes.wiring = Wiring::Pipes;
    assert_eq!(refused(client.try_spawn(id(1), pipes).await), SpawnRefusal::Other);
    let mut nameless = script("true");
    nameless.label = b"{}".to_vec();
    assert_eq!(refused(client.try_spawn(id(1), nameless).await), SpawnRefusal::Other);

    let panes = || stage.tmux(&["list-panes", "-a", "-F", "#{@posse_id}"]);
    client.until_outside("no pane is left", || panes().trim().is_empty()).await;
    assert_eq!(stage.notes(), [""; 0]);

    client.spawn(id(1), script("exec cat")).await;
    assert_eq!(refused(client.try_spawn(id(1), script("true")).await), SpawnRefusal::IdTaken);
}

#[tokio::test]
async fn one_session_holds_many_and_all_start_at_once() {
    let Some(stage) = Stage::new() else { return };
    let mut client = stage.connect().await;
    for number in 0..12 {
        let mut program = script("echo started; exec cat");
        let session = if number % 2 == 0 { "posse-even" } else { "posse-odd" };
        program.label = format!(r#"{{"name":"agent-{number}","session":"{session}","more":1}}"#).into_bytes();
        client.link.send(Request::Spawn { id: id(number), program });
    }
    for number in 0..12 {
        let spawned = |event: &Event| matches!(event, Event::Spawned { id: of, .. } if *of == id(number)).then_some(());
        if !client.heard.iter().any(|event| spawned(event).is_some()) {
            client.wait_for(spawned).await;
        }
        client.attach(id(number));
        client.until_text(id(number), "started").await;
    }
    let windows =
        stage.tmux(&["list-windows", "-t", "=posse-odd:", "-F", "#{window_name} #{window_width}x#{window_height}"]);
    let expected: Vec<String> = (0..6).map(|n| format!("agent-{} 80x24", 2 * n + 1)).collect();
    let mut windows: Vec<_> = windows.lines().collect();
    windows.sort_by_key(|name| name.len());
    assert_eq!(windows, expected);
}

//! Ending what runs.

use std::time::Duration;

use posse_core::status::Exit;
use posse_term::wire::{Event, Request};

use crate::stage::{Client, Stage, id, script};

async fn ended(client: &mut Client, number: u32) -> u32 {
    client
        .wait_for(|event| match event {
            Event::Ended { id: of, left } if *of == id(number) => Some(*left),
            _ => None,
        })
        .await
}

#[tokio::test]
async fn a_program_is_asked_first_and_killed_then() {
    let Some(stage) = Stage::new() else { return };
    let mut client = stage.connect().await;
    client.spawn(id(1), script("trap 'echo bye; exit 9' TERM; echo ready; while :; do sleep 0.01; done")).await;
    client.until_text(id(1), "ready").await;
    client.link.send(Request::End { id: id(1), grace_ms: 20_000 });
    assert_eq!(ended(&mut client, 1).await, 0);
    let mirror = client.mirror(id(1));
    assert_eq!(mirror.exit, Some(Exit::Code(9)), "told before");
    assert!(mirror.text().contains("bye"));

    client.spawn(id(2), script("trap '' TERM HUP; echo ready; while :; do sleep 0.01; done")).await;
    client.until_text(id(2), "ready").await;
    client.link.send(Request::End { id: id(2), grace_ms: 50 });
    assert_eq!(ended(&mut client, 2).await, 0);
    assert_eq!(client.mirror(id(2)).exit, Some(Exit::Signal(9)));

    client.link.send(Request::End { id: id(2), grace_ms: 0 });
    assert_eq!(ended(&mut client, 2).await, 0, "again");
    client.link.send(Request::End { id: id(77), grace_ms: 0 });
    assert_eq!(ended(&mut client, 77).await, 0, "one nobody knows");
    client.link.send(Request::Forget { id: id(1) });
    client.link.send(Request::Forget { id: id(2) });
    client.wait_for(|event| (*event == Event::Forgotten { id: id(2) }).then_some(())).await;
    assert_eq!(stage.notes(), [""; 0]);
}

#[tokio::test]
async fn hanging_up_reaches_the_program_and_the_job_in_the_foreground() {
    let Some(stage) = Stage::new() else { return };
    let mut client = stage.connect().await;
    let file = stage.path("hung up");
    let job = format!(
        "sh -c \"trap 'echo job >> \\\"{0}\\\"; exit' HUP; echo run\\$((1))ning; while :; do sleep 0.01; done\"\r",
        file.display()
    );
    let shell = format!("trap 'echo shell >> \"{}\"; exit 3' HUP; PS1='> '\r", file.display());
    client.spawn(id(1), crate::stage::program(&["bash", "--norc", "--noprofile", "-i"])).await;
    client.until_text(id(1), "bash-").await;
    client.type_in(id(1), shell.as_bytes()).await.unwrap();
    client.until_text(id(1), "\n>").await;
    client.type_in(id(1), job.as_bytes()).await.unwrap();
    client.until_text(id(1), "run1ning").await;
    client.link.send(Request::HangUp { id: id(1) });
    assert_eq!(client.until_exit(id(1)).await, Exit::Code(3));
    let mut heard: Vec<String> = std::fs::read_to_string(&file).unwrap().lines().map(str::to_owned).collect();
    heard.sort();
    assert_eq!(heard, ["job", "shell"]);
}

#[tokio::test]
async fn ending_before_it_began_and_ending_many() {
    let Some(stage) = Stage::new() else { return };
    let mut client = stage.connect().await;
    client.link.send(Request::Spawn { id: id(1), program: script("exec cat") });
    client.link.send(Request::End { id: id(1), grace_ms: 20_000 });
    assert_eq!(ended(&mut client, 1).await, 0);
    client.link.send(Request::Forget { id: id(1) });

    // All of one session at once, which is what tmux 3.3a does not survive if they close at once.
    for number in 2..12 {
        client.spawn(id(number), script("exec cat")).await;
    }
    for number in 2..12 {
        client.link.send(Request::End { id: id(number), grace_ms: 20_000 });
    }
    for number in 2..12 {
        let is = |event: &Event| *event == Event::Ended { id: id(number), left: 0 };
        if !client.heard.iter().any(is) {
            client.wait_for(|event| is(event).then_some(())).await;
        }
        assert_eq!(client.mirror(id(number)).exit, Some(Exit::Signal(15)));
    }
    let panes = || stage.tmux(&["list-panes", "-a", "-F", "#{@posse_id}"]);
    client.until_outside("no pane is left", || panes().trim().is_empty()).await;
}

#[tokio::test]
async fn the_server_goes_and_all_is_lost_and_said_so() {
    let Some(stage) = Stage::new() else { return };
    let mut client = stage.connect().await;
    client.spawn(id(1), script("echo ready; exec cat")).await;
    client.spawn(id(2), script("exit 3")).await;
    client.until_text(id(1), "ready").await;
    client.until_exit(id(2)).await;
    stage.kill_server();
    client.until_gone().await;
    assert_eq!(client.mirror(id(1)).exit, Some(Exit::Lost));
    let kept = ["00000002.exit", "00000002.pid", "00000002.terminal"];
    assert_eq!(stage.notes(), kept, "how one ended is kept until somebody has written it down");
    let mut next = stage.connect().await;
    let known: Vec<_> = next.list().await.into_iter().map(|summary| (summary.id, summary.exit)).collect();
    assert_eq!(known, [(id(2), Some(Exit::Code(3)))]);
    next.link.send(Request::Forget { id: id(2) });
    next.wait_for(|event| (*event == Event::Forgotten { id: id(2) }).then_some(())).await;
    assert_eq!(stage.notes(), [""; 0], "nothing is left to be found");
}

#[tokio::test]
async fn a_server_that_was_killed_is_noticed_too() {
    let Some(stage) = Stage::new() else { return };
    let mut client = stage.connect().await;
    client.spawn(id(1), script("echo ready; exec cat")).await;
    client.until_text(id(1), "ready").await;
    let server = stage.tmux(&["display-message", "-p", "#{pid}"]).parse().unwrap();
    let server = rustix::process::Pid::from_raw(server).unwrap();
    rustix::process::kill_process(server, rustix::process::Signal::KILL).unwrap();
    tokio::time::timeout(Duration::from_secs(10), client.until_gone()).await.unwrap();
    assert_eq!(client.mirror(id(1)).exit, Some(Exit::Lost));
}

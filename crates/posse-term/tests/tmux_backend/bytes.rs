//! Exactly these bytes, in both directions.

use posse_core::ids::WriterId;
use posse_core::screen::Size;
use posse_core::status::Exit;
use posse_term::wire::{Event, InputRefusal, MAX_INPUT, Request, Stream};

use crate::stage::{Stage, id, script};

#[tokio::test]
async fn every_byte_comes_out_as_it_was_printed() {
    let Some(stage) = Stage::new() else { return };
    let mut client = stage.connect().await;
    let all: Vec<u8> = (0..=255u8).chain((0..=255).rev()).collect();
    let file = stage.path("all");
    std::fs::write(&file, &all).unwrap();
    client.spawn(id(1), script(&format!("stty raw; cat '{}'", file.display()))).await;
    assert_eq!(client.until_exit(id(1)).await, Exit::Code(0));
    assert_eq!(client.mirror(id(1)).output, all);
}

/// Reads that many bytes in raw mode into a file.
fn reader(stage: &Stage, length: usize) -> String {
    format!("stty raw -echo; printf ready; head -c {length} > '{}'; printf done", stage.path("got").display())
}

#[tokio::test]
async fn every_byte_goes_in_as_it_was_sent() {
    let Some(stage) = Stage::new() else { return };
    let mut client = stage.connect().await;
    let all: Vec<u8> = (0..=255).collect();
    let long: Vec<u8> = (0..200_000usize).map(|n| (n * 7 + n / 256) as u8).collect();
    let largest = vec![b'\n'; MAX_INPUT];
    for (number, bytes) in [(1, &all), (2, &long), (3, &largest)] {
        client.spawn(id(number), script(&reader(&stage, bytes.len()))).await;
        client.until_text(id(number), "ready").await;
        client.type_in(id(number), bytes).await.unwrap();
        client.until_text(id(number), "done").await;
        assert!(std::fs::read(stage.path("got")).unwrap() == *bytes, "{} bytes", bytes.len());
    }
    assert_eq!(stage.tmux(&["list-buffers"]), "", "no buffer stays behind");
    assert!(!stage.notes().iter().any(|name| name.ends_with("input")), "{:?}", stage.notes());
    client.spawn(id(4), script("exec cat")).await;
    let refused = client.type_in(id(4), &vec![b'x'; MAX_INPUT + 1]).await;
    assert_eq!(refused, Err(InputRefusal::Full));
}

#[tokio::test]
async fn input_arrives_once_and_in_order() {
    let Some(stage) = Stage::new() else { return };
    let mut client = stage.connect().await;
    let mut expected = Vec::new();
    let part = |n: u64| -> Vec<u8> { format!("<{n}>").repeat(if n.is_multiple_of(3) { 500 } else { 1 }).into_bytes() };
    (1..=30).for_each(|n| expected.extend(part(n)));
    client.spawn(id(1), script(&reader(&stage, expected.len() + 1))).await;
    client.until_text(id(1), "ready").await;
    for n in 1..=30 {
        let (writer, sequence, bytes) = (WriterId(9), n, part(n));
        // A repeat, before or after the first one is through.
        for _ in 0..2 {
            client.link.send(Request::Input { id: id(1), writer, sequence, bytes: bytes.clone() });
        }
    }
    let mut done = 0;
    client
        .wait_for(|event| {
            assert!(!matches!(event, Event::InputRefused { .. }), "{event:?}");
            done += usize::from(matches!(event, Event::InputDone { .. }));
            (done == 60).then_some(())
        })
        .await;
    client.type_as(id(1), WriterId(9), 12, b"old").await.unwrap();
    client.type_as(id(1), WriterId(9), 31, b"").await.unwrap();
    client.type_as(id(1), WriterId(8), 1, b"!").await.unwrap();
    client.until_text(id(1), "done").await;
    expected.push(b'!');
    assert!(std::fs::read(stage.path("got")).unwrap() == expected);
}

#[tokio::test]
async fn a_flood_comes_complete() {
    let Some(stage) = Stage::new() else { return };
    let mut client = stage.connect().await;
    // A row of 64 bytes, 65,536 times: 4 MiB.
    let row = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde";
    client.spawn(id(1), script(&format!("stty raw; yes {row} | head -n 65536; printf 'the end'; exec cat"))).await;
    client.until_text(id(1), "the end").await;
    let (bytes, checkpoints) = (client.mirror(id(1)).output.len(), client.mirror(id(1)).checkpoints);
    assert!(checkpoints > 0 || bytes == (64 << 16) + 7, "{bytes} bytes and {checkpoints} checkpoints");
    assert_eq!(client.mirror(id(1)).emulator.screen().rows, stage.shown(id(1)));
}

#[tokio::test]
async fn who_does_not_keep_up_gets_the_screen_instead() {
    let Some(stage) = Stage::new() else { return };
    let mut client = stage.connect().await;
    client.acknowledge = false;
    let rows = "for i in $(seq 150); do seq 12000; done";
    client.spawn(id(1), script(&format!("{rows}; printf 'the end'; exec cat"))).await;
    // tmux is told to stop at 8 MiB, and the program goes on all the same.
    client.until(id(1), |mirror| mirror.output.len() > 8 << 20).await;
    client.until_outside("the end", || stage.shown(id(1)).iter().any(|row| row == "the end")).await;
    assert_eq!(client.mirror(id(1)).checkpoints, 0);
    let offset = client.mirror(id(1)).emulator.offset();
    client.acknowledge = true;
    client.link.send(Request::Acknowledge { id: id(1), stream: Stream::Main, offset });
    client.until_text(id(1), "the end").await;
    assert_eq!(client.mirror(id(1)).checkpoints, 1);
    assert_eq!(client.mirror(id(1)).emulator.screen().rows, stage.shown(id(1)));
    client.type_in(id(1), b"still there\r").await.unwrap();
    client.until_text(id(1), "still there").await;
}

#[tokio::test]
async fn one_that_ended_while_it_was_held_shows_its_end() {
    let Some(stage) = Stage::new() else { return };
    let mut client = stage.connect().await;
    client.acknowledge = false;
    let exits = stage.path("exits");
    let text =
        format!("for i in $(seq 150); do seq 12000; done; printf 'the end'; touch '{}'; exit 4", exits.display());
    client.spawn(id(1), script(&text)).await;
    client.until(id(1), |mirror| mirror.output.len() > 8 << 20).await;
    client.until_outside("the exit", || exits.exists()).await;
    let offset = client.mirror(id(1)).emulator.offset();
    client.link.send(Request::Acknowledge { id: id(1), stream: Stream::Main, offset });
    assert_eq!(client.until_exit(id(1)).await, Exit::Code(4));
    assert!(client.mirror(id(1)).text().contains("the end"));
}

#[tokio::test]
async fn sizes_and_titles_are_told() {
    let Some(stage) = Stage::new() else { return };
    let mut client = stage.connect().await;
    let text = r#"trap 'printf "size %s|" "$(stty size)"' WINCH; printf '\e]2;a title; %%H\e\\ready\n'; while :; do sleep 0.01; done"#;
    client.spawn(id(1), script(text)).await;
    client.until_text(id(1), "ready").await;
    assert_eq!(client.mirror(id(1)).emulator.title(), "a title; %H");
    for (rows, columns) in [(40, 120), (10, 30), (24, 80)] {
        client.link.send(Request::Resize { id: id(1), size: Size::clamped(rows, columns) });
        client.until_text(id(1), &format!("size {rows} {columns}|")).await;
        assert_eq!(client.mirror(id(1)).emulator.size(), Size::clamped(rows, columns));
    }
}

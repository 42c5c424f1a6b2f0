//! Checkpoints that a daemon left with the keeper for its successor.

use std::collections::HashMap;

use posse_core::ids::TerminalId;
use posse_core::status::Exit;
use posse_term::wire::{KeeperEvent, KeeperRequest};

use crate::keeper::{Keeper, new_id};

#[test]
fn the_newest_checkpoint_is_given_back_before_any_output() {
    let (keeper, mut peer, id) = Keeper::running("echo hello; exec sleep 1000");
    peer.until_printed(id, "hello\r\n");
    let checkpoint = |offset, text: &str| KeeperRequest::Checkpoint { id, offset, blob: text.into() };
    peer.send_all(&[checkpoint(3, "three"), checkpoint(5, "five"), checkpoint(4, "four"), checkpoint(0, "")]);
    assert_eq!(peer.summary(id).checkpoint, Some(5), "an older one does not replace it");
    let mut late = keeper.peer();
    late.attach(id, 0);
    assert_eq!(late.next(), KeeperEvent::Checkpoint { id, offset: 5, blob: b"five".to_vec() });
    assert!(matches!(late.next(), KeeperEvent::Resized { offset: 0, .. }));
    assert_eq!(late.next(), KeeperEvent::Output { id, offset: 0, bytes: b"hello\r\n".to_vec() });

    peer.send(&checkpoint(5, "five again"));
    peer.settle();
    late.attach(id, 7);
    assert_eq!(
        late.next(),
        KeeperEvent::Checkpoint { id, offset: 5, blob: b"five again".to_vec() },
        "the same offset does"
    );
    // For a terminal that is gone there is nothing to keep.
    peer.send(&KeeperRequest::Checkpoint { id: new_id(), offset: 1, blob: b"lost".to_vec() });
    peer.settle();
}

/// A restarted daemon requests all its terminals at once, and reads the first answer only after the last request. All
/// checkpoints together exceed the keeper's limit for a slow reader.
#[test]
fn a_returning_daemon_gets_the_checkpoints_of_all_its_terminals() {
    let (keeper, mut peer) = Keeper::with_peer();
    let ids: Vec<TerminalId> = (0..30).map(|_| new_id()).collect();
    let blob = |n: usize| vec![n as u8; (1 << 20) + n];
    for (n, id) in ids.iter().enumerate() {
        // Every third one has ended without having printed anything.
        let silent = n % 3 == 0;
        peer.spawn(*id, keeper.shell(*id, if silent { "exit 2" } else { "printf hello; exec sleep 1000" }));
        peer.until_listed("it has spoken or ended", *id, |summary| summary.exit.is_some() || summary.output.1 == 5);
        peer.send(&KeeperRequest::Checkpoint { id: *id, offset: if silent { 0 } else { 1 }, blob: blob(n) });
    }
    peer.settle();
    let memory = keeper.memory();
    let mut daemon = keeper.daemon();
    let attach = |id: &TerminalId| KeeperRequest::Attach { id: *id, from: 1 };
    daemon.send_all(&ids.iter().map(attach).collect::<Vec<_>>());
    peer.settle();
    let grown = keeper.memory().saturating_sub(memory);
    assert!(grown < 8 << 20, "it copied {grown} bytes for someone who has not read any yet");
    let mut told: HashMap<TerminalId, Vec<&str>> = HashMap::new();
    while told.values().map(Vec::len).sum::<usize>() < 3 * ids.len() {
        let (id, what) = match daemon.next() {
            KeeperEvent::Checkpoint { id, .. } => (id, "checkpoint"),
            KeeperEvent::Resized { id, .. } => (id, "size"),
            KeeperEvent::Exited { id, exit: Exit::Code(2), end: 0 } => (id, "end"),
            KeeperEvent::Output { id, offset: 1, bytes } if bytes == b"ello" => (id, "output"),
            other => panic!("{other:?}"),
        };
        told.entry(id).or_default().push(what);
    }
    for (n, id) in ids.iter().enumerate() {
        assert_eq!(told[id], ["checkpoint", "size", if n % 3 == 0 { "end" } else { "output" }]);
        let (offset, kept) = &daemon.heard(*id).checkpoints[0];
        assert!((*offset, kept) == (u64::from(n % 3 != 0), &blob(n)), "not the checkpoint of terminal {n}");
    }
}

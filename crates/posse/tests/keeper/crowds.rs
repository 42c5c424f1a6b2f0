//! Many at once.

use std::collections::HashMap;

use posse_core::ids::TerminalId;
use posse_core::status::Exit;
use posse_term::wire::{KeeperEvent, KeeperRequest};

use crate::keeper::{Keeper, new_id};

#[test]
fn two_hundred_terminals_come_and_go_and_leave_nothing() {
    let keeper = Keeper::start();
    let mut daemon = keeper.daemon();
    daemon.settle();
    let (descriptors, memory) = (keeper.descriptors(), keeper.memory());
    let ids: Vec<TerminalId> = (0..200).map(|_| new_id()).collect();
    // Each waits for a key, so that all are there at the same time.
    let script = |n: usize| format!("stty raw -echo; printf ready; head -c 1 >/dev/null; seq 1 1000; exit {}", n % 200);
    for (n, id) in ids.iter().enumerate() {
        daemon.send(&KeeperRequest::Spawn { id: *id, program: keeper.shell(*id, &script(n)) });
        daemon.attach(*id, 0);
    }
    for id in &ids {
        daemon.until_printed(*id, "ready");
    }
    assert_eq!(daemon.list().iter().filter(|summary| summary.exit.is_none()).count(), 200);
    assert_eq!(keeper.descriptors(), descriptors + 200);
    for id in &ids {
        daemon.input(*id, 1, 1, b"x");
    }
    let expected: String = std::iter::once("ready".into()).chain((1..=1000).map(|n| format!("{n}\n"))).collect();
    for (n, id) in ids.iter().enumerate() {
        assert_eq!(daemon.until_exit(*id), Exit::Code(n as i32 % 200));
        assert_eq!(daemon.heard(*id).text(), expected);
    }
    assert_eq!(daemon.list().len(), 200, "what has ended is remembered");
    for id in &ids {
        daemon.forget(*id);
    }
    assert_eq!(daemon.list(), []);
    crate::keeper::until("all is closed", || keeper.descriptors() == descriptors);
    assert_eq!(keeper.zombies(), 0);
    let grown = keeper.memory().saturating_sub(memory);
    assert!(grown < 8 << 20, "it kept {grown} bytes");
}

/// Ten flood, one whispers: it must be heard long before they are through.
#[test]
fn a_whisper_is_heard_among_floods() {
    let keeper = Keeper::start();
    let (mut daemon, mut typist) = (keeper.daemon(), keeper.peer());
    let parrot = keeper.parrot(&mut typist);
    let floods: Vec<TerminalId> = (0..10).map(|_| new_id()).collect();
    for id in &floods {
        daemon.follow(*id, keeper.program(*id, &["yes", "a line of nothing much"]));
    }
    let mut passed: HashMap<TerminalId, u64> = HashMap::new();
    for turn in 1..=10u64 {
        typist.input(parrot, 1, turn, format!("<{turn}>").as_bytes());
        // The daemon is busy with the floods meanwhile, and every one of them gets its turn.
        for _ in 0..200 {
            if let KeeperEvent::Output { id, bytes, .. } = daemon.next() {
                *passed.entry(id).or_default() += bytes.len() as u64;
            }
        }
        typist.until_printed(parrot, &format!("<{turn}>"));
    }
    assert_eq!(passed.len(), floods.len(), "some were never heard: {passed:?}");
    for id in &floods {
        assert!(daemon.heard(*id).output.windows(2).all(|pair| pair[0].0 + pair[0].1.len() as u64 == pair[1].0));
        assert_eq!(daemon.end(*id, 0), 0);
        // Nothing of a flood that was ended is left to wait for.
        daemon.send(&KeeperRequest::Acknowledge { id: *id, offset: u64::MAX });
    }
}

//! Many at once, and the end of what the machine gives.

use std::collections::HashMap;

use posse_core::ids::TerminalId;
use posse_core::status::Exit;
use posse_term::wire::{KeeperEvent, KeeperRequest, SpawnRefusal};
use posse_testkit::process;

use crate::keeper::{Keeper, new_id};
use crate::peer::Peer;

/// Starts programs until no more are taken.
fn fill(keeper: &Keeper, peer: &mut Peer) -> (Vec<(TerminalId, u32)>, String) {
    let mut started = Vec::new();
    loop {
        let id = new_id();
        let program = keeper.program(id, &["sleep", "1000"]);
        peer.send(&KeeperRequest::Spawn { id, program });
        let answer = peer.wait("an answer", |event| match event {
            KeeperEvent::Spawned { pid, .. } => Some(Ok(*pid)),
            KeeperEvent::SpawnFailed { why, message, .. } => Some(Err((*why, message.clone()))),
            _ => None,
        });
        match answer {
            Ok(pid) => started.push((id, pid)),
            Err((why, message)) => {
                assert_eq!(why, SpawnRefusal::LimitReached, "{message}");
                return (started, message);
            }
        }
    }
}

#[test]
fn when_descriptors_run_out_terminals_can_still_be_watched_and_ended() {
    let keeper = Keeper::start_after("ulimit -n 64");
    let mut peer = keeper.peer();
    for _ in 0..2 {
        let (started, why) = fill(&keeper, &mut peer);
        assert!(why.contains("ulimit -n"), "{why}");
        assert!(started.len() >= 10, "only {} were started", started.len());
        assert!(started.iter().all(|(_, pid)| process::exists(*pid)));
        // Someone who comes now to see to it is let in.
        let mut other = keeper.peer();
        assert_eq!(other.list().len(), started.len());
        other.send_all(&started.iter().map(|(id, _)| KeeperRequest::End { id: *id, grace_ms: 0 }).collect::<Vec<_>>());
        for (id, pid) in &started {
            assert_eq!(other.until_exit(*id), Exit::Signal(9));
            assert!(!process::exists(*pid));
        }
        for (id, _) in &started {
            assert_eq!(other.end(*id, 0), 0);
            other.forget(*id);
        }
    }
    let id = new_id();
    peer.follow(id, keeper.shell(id, "exit 0"));
    assert_eq!(peer.until_exit(id), Exit::Code(0), "then there is room again");
}

#[test]
fn a_crowd_at_the_door_neither_wears_the_keeper_out_nor_keeps_it_from_its_work() {
    let keeper = Keeper::start_after("ulimit -n 64");
    let mut peer = keeper.peer();
    let parrot = keeper.parrot(&mut peer);
    let (clock, doomed) = (new_id(), new_id());
    let pid = peer.spawn(doomed, keeper.program(doomed, &["sleep", "1000"]));
    peer.spawn(clock, keeper.program(clock, &["sleep", "1"]));
    // More than it can let in; the others stand outside until the clock strikes.
    let crowd: Vec<Peer> = (0..100).map(|_| keeper.stranger()).collect();
    let before = keeper.ticks();
    peer.input(parrot, 1, 1, b"here");
    peer.until_printed(parrot, "here");
    peer.until_exit(clock);
    let ticks = keeper.ticks() - before;
    assert!(ticks < 30, "it used {ticks} hundredths of that second");
    assert_eq!(peer.end(doomed, 0), 0, "what it takes to find a family is still there");
    assert!(!process::exists(pid));
    drop(crowd);
    // New connections are accepted again.
    keeper.peer().settle();
}

/// Ten flood, one prints a little: its output must arrive long before the floods end.
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

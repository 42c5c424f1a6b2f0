//! Typing: once, in order, and only as much as someone will read; requests that are too old are not carried out.

use posse_term::monotonic_ns;
use posse_term::wire::{
    InputRefusal, KeeperEvent, KeeperRequest, LATE_AFTER, MAX_INPUT, NEVER_LATE, RequestStamp, StampedRequest,
};

use crate::keeper::{Keeper, PARROT, new_id};
use crate::peer::Peer;

#[test]
fn input_with_the_same_number_is_typed_once_and_acknowledged_every_time() {
    let keeper = Keeper::start();
    let (mut peer, mut other) = (keeper.peer(), keeper.peer());
    let id = keeper.parrot(&mut peer);
    for _ in 0..3 {
        peer.input(id, 7, 1, b"one ");
        assert_eq!(peer.receipt(id, 7, 1), Ok(()));
        other.input(id, 7, 1, b"one ");
        assert_eq!(other.receipt(id, 7, 1), Ok(()));
    }
    other.input(id, 7, 5, b"five ");
    assert_eq!(other.receipt(id, 7, 5), Ok(()));
    peer.input(id, 7, 4, b"four ");
    assert_eq!(peer.receipt(id, 7, 4), Ok(()), "a lower number is an older one");
    // Other writers count for themselves.
    peer.input(id, 8, 1, b"other one ");
    other.input(id, u64::MAX, u64::MAX, b"last.");
    assert_eq!(peer.until_printed(id, "last."), "readyone five other one last.");
}

#[test]
fn a_program_that_does_not_read_is_refused_more_than_a_mebibyte() {
    let keeper = Keeper::start();
    let (mut peer, mut other) = (keeper.peer(), keeper.peer());
    let stuck = new_id();
    peer.follow(stuck, keeper.shell(stuck, "stty raw -echo; printf ready; exec sleep 1000"));
    peer.until_printed(stuck, "ready");
    let parrot = keeper.parrot(&mut other);

    peer.input(stuck, 9, 1, &vec![b'x'; MAX_INPUT + 1]);
    assert_eq!(peer.receipt(stuck, 9, 1), Err(InputRefusal::Full), "more than one input may carry");
    let piece = vec![b'x'; 64 << 10];
    for sequence in 1..=24 {
        peer.input(stuck, 1, sequence, &piece);
    }
    let refused = peer.wait("a refusal", |event| match event {
        KeeperEvent::InputRefused { sequence, why, .. } => Some((*sequence, *why)),
        _ => None,
    });
    assert_eq!(refused.1, InputRefusal::Full);
    assert!(refused.0 > 15, "{} of 24 pieces were taken, less than 1 MiB", refused.0 - 1);
    peer.settle();

    other.input(parrot, 1, 1, b"not held up");
    other.until_printed(parrot, "not held up");

    // A refused input left no trace: the number may be reused. Waiting input is refused when it can no longer be read.
    peer.send(&KeeperRequest::End { id: stuck, grace_ms: 0 });
    assert_eq!(peer.receipt(stuck, 1, refused.0 - 1), Err(InputRefusal::NotReading));
}

/// A peer with repeated or empty requests must not fill the keeper's memory while a program is stuck.
#[test]
fn receipts_for_a_program_that_does_not_read_are_limited_too() {
    let (_keeper, mut peer, id) = Keeper::running("stty raw -echo; printf ready; exec sleep 1000");
    peer.until_printed(id, "ready");
    peer.input(id, 1, 1, &vec![b'x'; 512 << 10]);
    let last = 10_000;
    for sequence in 2..=last {
        peer.input(id, 1, 1, b"again");
        peer.input(id, 1, sequence, b"");
    }
    let (mut full, mut ended, mut first) = (0, 0, 0);
    peer.wait("the last answer", |event| {
        full += usize::from(matches!(event, KeeperEvent::InputRefused { why: InputRefusal::Full, .. }));
        matches!(event, KeeperEvent::InputRefused { sequence, .. } if *sequence == last).then_some(())
    });
    peer.send(&KeeperRequest::End { id, grace_ms: 0 });
    peer.wait("the end", |event| {
        if let KeeperEvent::InputRefused { sequence, why: InputRefusal::NotReading, .. } = event {
            ended += 1;
            first += usize::from(*sequence == 1);
        }
        matches!(event, KeeperEvent::Exited { .. }).then_some(())
    });
    assert_eq!(full + ended, last as usize, "each was answered once");
    assert!(full > 5000, "{ended} were waiting");
    assert_eq!(first, 1, "whoever repeats himself waits for one answer");
}

#[test]
fn a_long_text_flows_through_a_program_that_answers_to_all_of_it() {
    let keeper = Keeper::start();
    let mut daemon = keeper.daemon();
    let id = keeper.parrot(&mut daemon);
    let text: Vec<u8> = (0..).flat_map(|line: u32| format!("{line} ").into_bytes()).take(900_000).collect();
    daemon.input(id, 1, 1, &text);
    daemon.input(id, 1, 2, b"<end>");
    assert_eq!(daemon.receipt(id, 1, 2), Ok(()));
    while daemon.heard(id).end() < 5 + 900_000 + 5 {
        daemon.next();
    }
    assert!(daemon.heard(id).text().into_bytes() == [b"ready", &text[..], b"<end>"].concat());
}

#[test]
fn nothing_can_be_typed_where_nobody_is() {
    let (keeper, mut peer) = Keeper::with_peer();
    let id = new_id();
    peer.input(id, 1, 1, b"x");
    assert_eq!(peer.receipt(id, 1, 1), Err(InputRefusal::NotReading));
    peer.follow(id, keeper.shell(id, "exit 0"));
    peer.until_exit(id);
    peer.input(id, 1, 1, b"x");
    assert_eq!(peer.receipt(id, 1, 1), Err(InputRefusal::NotReading));
    peer.forget(id);
    peer.input(id, 1, 1, b"x");
    assert_eq!(peer.receipt(id, 1, 1), Err(InputRefusal::NotReading));
}

/// The time of a request that has just become too old.
fn too_old() -> u64 {
    monotonic_ns() - LATE_AFTER.as_nanos() as u64 - 1
}

fn stamped(token: u64, sent: u64, request: KeeperRequest) -> StampedRequest {
    StampedRequest { stamp: Some(RequestStamp { token, sent }), request }
}

/// Sends a request with this time, and returns whether the keeper found it too old.
fn is_late(peer: &mut Peer, token: u64, sent: u64, request: KeeperRequest) -> bool {
    peer.send_stamped(&[stamped(token, sent, request)]);
    peer.wait("the keeper takes it", |event| match event {
        KeeperEvent::Taken { token: taken, late } if *taken == token => Some(*late),
        _ => None,
    })
}

#[test]
fn a_request_that_is_too_old_is_not_carried_out() {
    let (keeper, mut peer) = Keeper::with_peer();
    let late = new_id();
    let running = keeper.parrot(&mut peer);
    let input = |sequence, bytes: &[u8]| KeeperRequest::Input {
        id: running,
        writer: posse_core::ids::WriterId(7),
        sequence,
        bytes: bytes.to_vec(),
    };
    assert!(is_late(&mut peer, 1, too_old(), KeeperRequest::Spawn { id: late, program: keeper.shell(late, PARROT) }));
    assert!(is_late(&mut peer, 2, too_old(), input(1, b"late ")));
    assert!(is_late(&mut peer, 3, too_old(), KeeperRequest::HangUp { id: running }));
    assert!(is_late(&mut peer, 4, too_old(), KeeperRequest::End { id: running, grace_ms: 0 }));
    let held: Vec<_> = peer.list().into_iter().map(|summary| (summary.id, summary.exit)).collect();
    assert_eq!(held, [(running, None)], "nothing was started, nothing was ended");
    // The number of an input that was refused is free, and in time everything is carried out.
    assert!(!is_late(&mut peer, 5, monotonic_ns(), input(1, b"in time")));
    assert_eq!(peer.until_printed(running, "in time"), "readyin time");
    assert!(!is_late(&mut peer, 6, NEVER_LATE, input(2, b", always")));
    assert_eq!(peer.until_printed(running, "always"), "readyin time, always");
    assert!(!is_late(&mut peer, 7, monotonic_ns(), KeeperRequest::End { id: running, grace_ms: 0 }));
}

#[test]
fn the_end_of_a_line_is_not_typed_without_its_beginning() {
    let (_keeper, mut peer, id) = Keeper::running(PARROT);
    peer.until_printed(id, "ready");
    let typed = |sequence, text: &str| {
        let writer = posse_core::ids::WriterId(7);
        KeeperRequest::Input { id, writer, sequence, bytes: text.as_bytes().to_vec() }
    };
    // Typed while the keeper was stopped: the first key is too old, the second one is not.
    let (first, second) = (too_old(), monotonic_ns());
    peer.send_stamped(&[stamped(1, first, typed(1, "rm -r ./build")), stamped(2, second, typed(2, "/../src"))]);
    let mut taken = Vec::new();
    while taken.len() < 2 {
        taken.extend(match peer.next() {
            KeeperEvent::Taken { token, late } => Some((token, late)),
            _ => None,
        });
    }
    assert_eq!(taken, [(1, true), (2, true)]);
    assert!(!is_late(&mut peer, 3, monotonic_ns(), typed(3, "anew")), "its sender knows by now");
    assert_eq!(peer.until_printed(id, "anew"), "readyanew");
}

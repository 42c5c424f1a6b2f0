//! Requests that are too old: whoever sent them has given up on them.

use posse_term::clock::monotonic_ns;
use posse_term::wire::{KeeperEvent, KeeperRequest, LATE_AFTER, NEVER_LATE};

use crate::keeper::{Keeper, PARROT, new_id};
use crate::peer::Peer;

/// The time of a request that has just become too old.
fn too_old() -> u64 {
    monotonic_ns() - LATE_AFTER.as_nanos() as u64 - 1
}

/// Sends a request with this time, and says whether the keeper found it too old.
fn is_late(peer: &mut Peer, token: u64, sent: u64, request: KeeperRequest) -> bool {
    peer.send_all(&[KeeperRequest::Stamp { token, sent }, request]);
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
    let (_keeper, mut peer, id) = Keeper::with_parrot();
    let typed = |sequence, text: &str| {
        let writer = posse_core::ids::WriterId(7);
        KeeperRequest::Input { id, writer, sequence, bytes: text.as_bytes().to_vec() }
    };
    // Typed while the keeper was stopped: the first key is too old, the second one is not.
    let (first, second) = (too_old(), monotonic_ns());
    peer.send_all(&[
        KeeperRequest::Stamp { token: 1, sent: first },
        typed(1, "rm -r ./build"),
        KeeperRequest::Stamp { token: 2, sent: second },
        typed(2, "/../src"),
    ]);
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

//! Sizes, told at the place in the output where they began to hold.

use posse_core::screen::Size;
use posse_core::status::Exit;
use posse_term::wire::{KeeperEvent, KeeperRequest};

use crate::keeper::{Keeper, new_id};

#[test]
fn a_new_size_reaches_the_program_and_is_replayed_at_its_place() {
    // `wait` comes back for every signal that is trapped.
    let script = "trap 'stty size' WINCH; echo ready; sleep 1000 & while :; do wait; done";
    let (keeper, mut peer, id) = Keeper::running(script);
    peer.until_printed(id, "ready\r\n");
    let mut expected = vec![(0, Size::clamped(24, 80))];
    for (rows, cols) in [(30, 100), (10, 20), (50, 132)] {
        let size = Size::clamped(rows, cols);
        expected.push((peer.heard(id).end(), size));
        peer.send(&KeeperRequest::Resize { id, size });
        peer.until_printed(id, &format!("{rows} {cols}\r\n"));
    }
    assert_eq!(peer.heard(id).sizes, expected);
    assert_eq!(peer.summary(id).size, Size::clamped(50, 132));

    // Whoever comes later is told the same, in the same order.
    let mut late = keeper.peer();
    late.attach(id, 0);
    let end = peer.heard(id).end();
    let mut order = Vec::new();
    while late.heard(id).end() < end {
        match late.next() {
            KeeperEvent::Resized { offset, .. } => order.push((offset, "size")),
            KeeperEvent::Output { offset, .. } => order.push((offset, "output")),
            _ => {}
        }
    }
    assert_eq!(late.heard(id).sizes, expected);
    assert_eq!(late.heard(id).text(), peer.heard(id).text());
    let pairs: Vec<_> = expected.iter().flat_map(|(offset, _)| [(*offset, "size"), (*offset, "output")]).collect();
    assert_eq!(order, pairs);
    // And from the middle: the size that held there, and those after it.
    let middle = expected[2].0 + 3;
    late.attach(id, middle);
    late.until_printed(id, "50 132\r\n");
    assert_eq!(late.heard(id).sizes, [(middle, expected[2].1), expected[3]]);
}

#[test]
fn of_several_sizes_without_output_between_them_the_last_one_counts() {
    let (keeper, mut peer) = Keeper::with_peer();
    let id = new_id();
    peer.spawn(id, keeper.shell(id, "while [ ! -e go ]; do sleep 0.01; done; stty size"));
    let sizes = (1..=200).map(|n| Size::clamped(n, 2 * n));
    peer.send_all(&sizes.map(|size| KeeperRequest::Resize { id, size }).collect::<Vec<_>>());
    peer.attach(id, 0);
    // The keeper answers in order: it has taken all sizes when it has listed.
    peer.summary(id);
    std::fs::write(keeper.work().join("go"), "").unwrap();
    assert_eq!(peer.until_exit(id), Exit::Code(0));
    assert_eq!(peer.heard(id).text(), "200 400\r\n");
    assert_eq!(peer.heard(id).sizes, [(0, Size::clamped(200, 400))]);
}

#[test]
fn what_has_no_size_is_left_alone() {
    let (_keeper, mut peer, ended) = Keeper::running("exit 0");
    peer.until_exit(ended);
    peer.send(&KeeperRequest::Resize { id: ended, size: Size::clamped(9, 9) });
    assert_eq!(peer.summary(ended).size, Size::clamped(24, 80));
    peer.send(&KeeperRequest::Resize { id: new_id(), size: Size::clamped(9, 9) });
    assert!(matches!(peer.next(), KeeperEvent::Problem { .. }));
}

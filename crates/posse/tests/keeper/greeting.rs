//! The first words, and those who do not know them.

use posse_term::wire::{self, KeeperEvent, KeeperRequest, MAX_FRAME};

use crate::keeper::{Keeper, new_id};
use crate::peer::Peer;

#[test]
fn both_sides_say_which_version_they_speak() {
    let keeper = Keeper::start();
    let mut peer = keeper.stranger();
    peer.send(&KeeperRequest::Hello { daemon: false });
    let build = posse_api::VERSION.to_owned();
    assert_eq!(peer.next(), KeeperEvent::Hello { pid: keeper.pid(), build });
    assert_eq!(peer.list(), []);
}

#[test]
fn one_that_speaks_another_version_is_told_ours_and_cut_off() {
    let keeper = Keeper::start();
    for version in [0, wire::VERSION + 1, u16::MAX] {
        let mut frame = Vec::new();
        wire::encode(&KeeperRequest::Hello { daemon: true }, &mut frame);
        frame[4..6].copy_from_slice(&version.to_le_bytes());
        let mut peer = keeper.stranger();
        peer.send_bytes(&frame).unwrap();
        let words = peer.last_words();
        assert!(matches!(words[..], [KeeperEvent::Hello { .. }]), "{words:?}");
    }
    // None of them was taken for a daemon: nobody misses them.
    let mut peer = keeper.peer();
    peer.settle();
    assert!(keeper.log().contains("a frame of protocol version 65535, not"), "{}", keeper.log());
}

#[test]
fn one_that_asks_before_it_greets_is_cut_off() {
    let keeper = Keeper::start();
    let id = new_id();
    for request in
        [KeeperRequest::List, KeeperRequest::Rest, KeeperRequest::Spawn { id, program: keeper.shell(id, "exit") }]
    {
        let mut peer = keeper.stranger();
        peer.send(&request);
        assert_eq!(peer.last_words(), [], "{request:?}");
    }
    assert_eq!(keeper.peer().list(), [], "nothing was started");
}

#[test]
fn a_giant_frame_is_not_waited_for() {
    let keeper = Keeper::start();
    for length in [MAX_FRAME as u32 + 1, u32::MAX] {
        for mut peer in [keeper.stranger(), keeper.peer()] {
            peer.send_bytes(&length.to_le_bytes()).unwrap();
            assert_eq!(peer.last_words(), []);
        }
    }
    let mut peer = keeper.peer();
    peer.send_bytes(&0u32.to_le_bytes()).unwrap();
    assert_eq!(peer.last_words(), [], "a frame of no length has no kind either");
}

#[test]
fn half_a_frame_and_silence_costs_the_others_nothing() {
    let (keeper, mut witness, id) = Keeper::with_parrot();

    let mut frame = Vec::new();
    wire::encode(&KeeperRequest::Checkpoint { id, offset: 5, blob: vec![b'x'; 100_000] }, &mut frame);
    let (begun, rest) = frame.split_at(60_000);
    let mut silent: Vec<Peer> = (0..50).map(|_| keeper.peer()).collect();
    for peer in &mut silent {
        peer.send_bytes(begun).unwrap();
    }
    witness.input(id, 1, 1, b"not held up");
    witness.until_printed(id, "not held up");
    assert_eq!(witness.summary(id).checkpoint, None, "half a frame is no frame");

    silent[17].send_bytes(rest).unwrap();
    silent[17].settle();
    assert_eq!(witness.summary(id).checkpoint, Some(5), "its other half makes it one");
}

//! Greetings, and peers that do not know them.

use posse_term::wire::{self, KeeperEvent, KeeperRequest, StampedRequest};

use crate::keeper::{Keeper, new_id};

#[test]
fn one_that_speaks_another_version_is_told_ours_and_cut_off() {
    let keeper = Keeper::start();
    for version in [0, wire::VERSION + 1, u16::MAX] {
        let mut frame = Vec::new();
        wire::encode(&StampedRequest::from(KeeperRequest::Hello { daemon: true }), &mut frame);
        frame[4..6].copy_from_slice(&version.to_le_bytes());
        let mut peer = keeper.stranger();
        peer.send_bytes(&frame).unwrap();
        let words = peer.last_words();
        assert_eq!(words, [KeeperEvent::Hello]);
    }
    // None of them counted as a daemon.
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

//! The first words, and those who do not know them.

use posse_core::ids::WriterId;
use posse_core::screen::Size;
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

/// Numbers that look random and are the same in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.roll() % limit as u64) as usize
    }

    fn byte(&mut self) -> u8 {
        self.roll() as u8
    }
}

/// Frames to be damaged. All name a terminal that does not exist, so that what still makes sense does no harm.
fn honest_frames(peer_number: usize) -> Vec<u8> {
    let id = new_id();
    let requests = [
        KeeperRequest::List,
        KeeperRequest::Attach { id, from: 7 },
        KeeperRequest::Acknowledge { id, offset: u64::MAX },
        KeeperRequest::Input { id, writer: WriterId(3), sequence: 9, bytes: b"hello".to_vec() },
        KeeperRequest::Resize { id, size: Size::clamped(10, 20) },
        KeeperRequest::Checkpoint { id, offset: 1, blob: vec![0; 300] },
        KeeperRequest::Hello { daemon: false },
    ];
    let mut frames = Vec::new();
    for turn in 0..requests.len() {
        wire::encode(&requests[(turn + peer_number) % requests.len()], &mut frames);
    }
    frames
}

#[test]
fn garbage_costs_only_the_one_who_sent_it() {
    let (keeper, mut witness, id) = Keeper::with_parrot();
    let (memory, descriptors) = (keeper.memory(), keeper.descriptors());

    let mut dice = Dice(0x5eed);
    for round in 0..400 {
        let mut peer = if dice.below(4) == 0 { keeper.stranger() } else { keeper.peer() };
        let bytes = if dice.below(3) == 0 {
            (0..1 + dice.below(2000)).map(|_| dice.byte()).collect()
        } else {
            let mut bytes = honest_frames(round);
            for _ in 0..1 + dice.below(3) {
                let place = dice.below(bytes.len());
                match dice.below(3) {
                    0 => bytes[place] = dice.byte(),
                    1 => bytes.truncate(place + 1),
                    _ => bytes.insert(place, dice.byte()),
                }
            }
            bytes
        };
        // It may have cut us off in the middle, which is its right.
        let _ = peer.send_bytes(&bytes);
    }

    witness.input(id, 1, 1, b"still here");
    witness.until_printed(id, "still here");
    crate::keeper::until("all of them are gone", || keeper.descriptors() <= descriptors);
    let grown = keeper.memory().saturating_sub(memory);
    assert!(grown < 16 << 20, "garbage made it grow by {grown} bytes");
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

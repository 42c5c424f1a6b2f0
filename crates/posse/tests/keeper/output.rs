//! Output bytes, each at a fixed offset, and clients that read them too slowly or not at all.

use std::time::{Duration, Instant};

use posse_core::status::Exit;
use posse_term::wire::{KeeperRequest, ProgramSpec, WINDOW};

use crate::keeper::{Keeper, new_id};
use crate::peer::{Acknowledging, PATIENCE};

/// Returns the output of `seq` on a terminal.
fn numbers(last: u32) -> Vec<u8> {
    (1..=last).flat_map(|number| format!("{number}\r\n").into_bytes()).collect()
}

fn seq(keeper: &Keeper, id: posse_core::ids::TerminalId, last: u32, ring: u32) -> ProgramSpec {
    ProgramSpec { ring, ..keeper.program(id, &["seq", "1", &last.to_string()]) }
}

#[test]
fn output_is_given_from_wherever_it_is_asked_for() {
    let (keeper, mut peer) = Keeper::with_peer();
    let id = new_id();
    let all = numbers(2000);
    let end = all.len() as u64;
    peer.follow(id, seq(&keeper, id, 2000, 1 << 20));
    peer.until_exit(id);
    assert_eq!(peer.heard(id).bytes(), all);
    for from in [0, 1, end / 2, end - 1, end] {
        let mut other = keeper.peer();
        other.attach(id, from);
        other.until_exit(id);
        let heard = other.heard(id);
        assert_eq!(heard.bytes(), all[from as usize..], "from {from}");
        assert!(heard.output.first().is_none_or(|(offset, _)| *offset == from));
    }
    let mut other = keeper.peer();
    other.attach(id, u64::MAX);
    other.until_exit(id);
    assert_eq!(other.heard(id).output, [], "from beyond the end there is nothing");
    assert_eq!(other.heard(id).sizes[0].0, end, "and the keeper says where it begins instead");
}

#[test]
fn what_nobody_came_for_is_overwritten_and_the_offsets_show_it() {
    let (keeper, mut peer) = Keeper::with_peer();
    let id = new_id();
    let all = numbers(50_000);
    let (end, ring) = (all.len() as u64, 10_000);
    let label: Vec<u8> = (0..=255).collect();
    let pid = peer.spawn(id, ProgramSpec { label: label.clone(), ..seq(&keeper, id, 50_000, ring as u32) });
    peer.until_exit(id);
    let summary = peer.summary(id);
    assert_eq!((summary.ring, summary.output), (ring as u32, (end - ring, end)), "as much is kept as was asked for");
    assert_eq!((summary.pid, summary.label), (pid, label), "the daemon's notes are given back as they are");
    peer.attach(id, 0);
    peer.until_exit(id);
    peer.settle();
    let heard = peer.heard(id);
    assert_eq!(heard.output[0].0, end - ring);
    assert_eq!(heard.bytes(), all[(end - ring) as usize..]);
}

#[test]
fn no_more_is_sent_than_fits_the_window_of_what_was_acknowledged() {
    let keeper = Keeper::start();
    let (mut peer, mut witness) = (keeper.peer(), keeper.peer());
    let id = new_id();
    peer.acknowledging = Acknowledging::Nothing;
    peer.follow(id, seq(&keeper, id, 100_000, 2 << 20));
    witness.until_exit(id);
    peer.settle();
    assert_eq!(peer.heard(id).end(), WINDOW);
    peer.send(&KeeperRequest::Acknowledge { id, offset: 1000 });
    peer.settle();
    peer.settle();
    assert_eq!(peer.heard(id).end(), WINDOW + 1000);
    assert_eq!(peer.heard(id).exits, [], "the end comes after all output, and not before it");
    // Nonsense from beyond the end is no reason to fall over.
    peer.send(&KeeperRequest::Acknowledge { id, offset: u64::MAX });
    peer.send(&KeeperRequest::Acknowledge { id, offset: 1 });
    peer.until_exit(id);
    assert_eq!(peer.heard(id).bytes(), numbers(100_000));
}

/// 26 MB through a ring of 64 KiB, to a daemon that is a whole ring behind all the time.
#[test]
fn a_flood_reaches_a_slow_but_steady_daemon_whole() {
    let keeper = Keeper::start();
    let mut daemon = keeper.daemon();
    let id = new_id();
    daemon.acknowledging = Acknowledging::Every(64 << 10);
    daemon.follow(id, seq(&keeper, id, 3_000_000, 64 << 10));
    assert_eq!(daemon.until_exit(id), Exit::Code(0));
    assert!(daemon.heard(id).bytes() == numbers(3_000_000), "what came is not what was printed");
}

#[test]
fn a_daemon_that_attaches_late_has_missed_nothing() {
    let keeper = Keeper::start();
    let (mut daemon, mut witness) = (keeper.daemon(), keeper.peer());
    let id = new_id();
    let ring = 64 << 10;
    daemon.acknowledging = Acknowledging::Every(16 << 10);
    daemon.spawn(id, seq(&keeper, id, 100_000, ring));
    // Busy with something else while the program fills its ring.
    witness.until_listed("a full ring", id, |summary| summary.output.1 >= u64::from(ring));
    daemon.attach(id, 0);
    assert_eq!(daemon.until_exit(id), Exit::Code(0));
    assert!(daemon.heard(id).bytes() == numbers(100_000), "the beginning was overwritten");
}

#[test]
fn one_who_never_reads_delays_nobody_else() {
    let keeper = Keeper::start();
    let (mut deaf, mut deaf_daemon, mut witness) = (keeper.peer(), keeper.daemon(), keeper.peer());
    let flood = new_id();
    let parrot = keeper.parrot(&mut witness);
    // If it were held back whenever its ring is full, it would not end within the patience of this test.
    witness.spawn(flood, seq(&keeper, flood, 500_000, 16 << 10));
    for peer in [&mut deaf, &mut deaf_daemon] {
        peer.attach(flood, 0);
        peer.attach(parrot, 0);
    }
    for turn in 1..=20 {
        let said = format!("<{turn}>");
        witness.input(parrot, 1, turn, said.as_bytes());
        witness.until_printed(parrot, &said);
    }
    assert_eq!(witness.until_exit(flood), Exit::Code(0), "it is waited for once, for two seconds");
    assert_eq!(witness.heard(parrot).text().len(), "ready".len() + 9 * 3 + 11 * 4, "others got everything, once");
}

/// A daemon is dropped after it read nothing for two seconds, or at once if it leaves. Between the two the keeper must
/// sleep, even if the program has exited meanwhile: the kernel reports that until it is read.
#[test]
fn waiting_for_a_stuck_daemon_costs_no_time() {
    let keeper = Keeper::start();
    let (mut stuck, mut witness) = (keeper.daemon(), keeper.peer());
    let id = new_id();
    let began = keeper.ticks();
    // A full ring, and a little more in the terminal.
    stuck.acknowledging = Acknowledging::Nothing;
    stuck.follow(id, ProgramSpec { ring: 32 << 10, ..keeper.shell(id, "stty raw; head -c 36000 /dev/zero") });
    assert_eq!(witness.until_exit(id), Exit::Code(0));
    let ticks = keeper.ticks() - began;
    assert!(ticks < 60, "it used {ticks} hundredths of a second in the two seconds it had to wait");
    assert_eq!(witness.summary(id).output.1, 36_000);
}

/// A program that ended is announced a moment after its end at the latest, if something else holds its output open;
/// but not while its own last words wait for room in the ring.
#[test]
fn the_end_is_not_told_before_the_last_words_that_wait_for_the_daemon() {
    let (keeper, mut witness) = Keeper::with_peer();
    let give_up = Instant::now() + PATIENCE;
    while Instant::now() < give_up {
        let mut daemon = keeper.daemon();
        let (id, clock) = (new_id(), new_id());
        let began = Instant::now();
        // `sleep` holds the terminal open, so that no end of file says that there is nothing more.
        let script = "stty raw; trap '' HUP; sleep 1000 & seq 1 2000; echo last words; exit 3";
        daemon.follow(id, ProgramSpec { ring: 4000, ..keeper.shell(id, script) });
        // Longer than the end of a program waits for its output, shorter than it waits for a daemon.
        witness.follow(clock, keeper.program(clock, &["sleep", "0.6"]));
        witness.until_exit(clock);
        assert_eq!(witness.summary(id).exit, Some(Exit::Code(3)));
        let waited = began.elapsed();
        assert_eq!(daemon.until_exit(id), Exit::Code(3));
        // Else it was given up as stuck, and this proved nothing.
        if waited < Duration::from_millis(1500) {
            let heard = daemon.heard(id);
            assert!(heard.text().ends_with("2000\nlast words\n"), "{:?}", heard.exits);
            assert_eq!(heard.exits, [(Exit::Code(3), 8893 + 11)]);
            return;
        }
    }
    panic!("the machine is too busy to tell");
}

#[test]
fn a_daemon_that_rests_holds_no_program_back() {
    let keeper = Keeper::start();
    let (mut daemon, mut witness) = (keeper.daemon(), keeper.peer());
    let id = new_id();
    daemon.acknowledging = Acknowledging::Nothing;
    daemon.follow(id, seq(&keeper, id, 20_000, 4000));
    witness.until_listed("the ring is full", id, |summary| summary.output.1 >= 4000);
    // It stays connected, and takes nothing.
    daemon.send(&KeeperRequest::Rest);
    assert_eq!(witness.until_exit(id), Exit::Code(0));
}

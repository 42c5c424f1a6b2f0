//! The daemon that the keeper starts, and starts again. Its part is played by a shell script named `serve`: the keeper
//! runs `EXECUTABLE serve --foreground`, and the executable here is `sh`.

use std::fs;

use posse_term::wire::{KeeperEvent, KeeperRequest};
use posse_testkit::process;

use crate::keeper::{Keeper, new_id, until};
use crate::peer::Peer;

/// Every start of this daemon adds a line with the time in milliseconds; then `then` runs.
fn write_daemon(keeper: &Keeper, then: &str) {
    fs::write(keeper.work().join("serve"), format!("echo $$ >>pids; date +%s%3N >>starts\n{then}\n")).unwrap();
}

/// Ends the processes that play the daemon.
fn end_daemons(keeper: &Keeper) {
    let pids = fs::read_to_string(keeper.work().join("pids")).unwrap_or_default();
    for pid in pids.lines().filter_map(|line| line.parse().ok()).filter(|pid| process::exists(*pid)) {
        posse_testkit::env::kill(pid);
        assert!(process::ends(pid));
    }
}

fn starts(keeper: &Keeper) -> Vec<u64> {
    let text = fs::read_to_string(keeper.work().join("starts")).unwrap_or_default();
    text.lines().filter_map(|line| line.parse().ok()).collect()
}

fn ask_for_daemon(peer: &mut Peer, executable: &str) {
    peer.send(&KeeperRequest::StartDaemon { executable: executable.as_bytes().to_vec() });
}

fn answer(peer: &mut Peer) -> Result<u32, String> {
    peer.wait("news of the daemon", |event| match event {
        KeeperEvent::DaemonUp { pid } => Some(Ok(*pid)),
        KeeperEvent::DaemonFailed { message } => Some(Err(message.clone())),
        _ => None,
    })
}

fn rest(peer: &mut Peer) {
    peer.send(&KeeperRequest::Rest);
    peer.wait("leave to rest", |event| matches!(event, KeeperEvent::Resting).then_some(()));
}

/// Starts a program that lives for a while, and waits for its end: long enough for what must not happen.
fn let_time_pass(keeper: &Keeper, peer: &mut Peer, seconds: &str) {
    let id = new_id();
    peer.spawn(id, keeper.program(id, &["sleep", seconds]));
    peer.until_exit(id);
    peer.forget(id);
}

#[test]
fn a_daemon_that_cannot_be_started_is_reported_to_whoever_asked() {
    let mut keeper = Keeper::start();
    let mut peer = keeper.peer();
    keeper.without_guest();
    write_daemon(&keeper, "exit 3");
    ask_for_daemon(&mut peer, "sh");
    let why = answer(&mut peer).unwrap_err();
    assert!(why.contains('3'), "{why}");
    ask_for_daemon(&mut peer, "/no/such/posse");
    let why = answer(&mut peer).unwrap_err();
    assert!(why.contains("/no/such/posse"), "{why}");
    // Nothing to keep, nobody to serve.
    drop(peer);
    keeper.until_gone();
    assert_eq!(starts(&keeper).len(), 1, "without a terminal there is nothing to try again for");
}

#[test]
fn whoever_asks_hears_when_a_daemon_is_there() {
    let mut keeper = Keeper::start();
    let (mut first, mut second) = (keeper.peer(), keeper.peer());
    write_daemon(&keeper, "exec sleep 1000");
    ask_for_daemon(&mut first, "sh");
    until("it was started", || starts(&keeper).len() == 1);
    ask_for_daemon(&mut second, "sh");
    second.settle();
    // The test connects in its place.
    let mut daemon = keeper.daemon();
    assert_eq!(answer(&mut first), Ok(std::process::id()));
    assert_eq!(answer(&mut second), Ok(std::process::id()));
    ask_for_daemon(&mut first, "sh");
    assert_eq!(answer(&mut first), Ok(std::process::id()), "there is one already");
    assert_eq!(starts(&keeper).len(), 1);
    end_daemons(&keeper);
    rest(&mut daemon);
    keeper.until_gone();
}

/// A run may be waiting between two terminals: that there is none right now is no reason to let the daemon lie.
#[test]
fn a_daemon_that_dies_without_terminals_is_started_again_too() {
    let (mut keeper, mut peer) = Keeper::with_peer();
    // The one that is started stays up until it is killed; the test is connected in its place.
    write_daemon(&keeper, "exec sleep 1000");
    ask_for_daemon(&mut peer, "sh");
    for round in 1..=3 {
        until("it was started", || starts(&keeper).len() == round);
        let daemon = keeper.daemon();
        // Its connection may end before its process does, or after.
        if round == 2 {
            end_daemons(&keeper);
            keeper.until_reaped();
            drop(daemon);
        } else {
            drop(daemon);
            peer.settle();
            end_daemons(&keeper);
        }
    }
    until("it was started", || starts(&keeper).len() == 4);
    let mut daemon = keeper.daemon();
    end_daemons(&keeper);
    rest(&mut daemon);
    keeper.until_gone();
}

/// A daemon started by hand is one the keeper cannot start again. That must not keep it from starting another.
#[test]
fn after_a_daemon_of_unknown_origin_another_can_be_started() {
    let (keeper, mut peer) = Keeper::with_peer();
    let id = new_id();
    peer.spawn(id, keeper.program(id, &["sleep", "1000"]));
    drop(keeper.daemon());
    let_time_pass(&keeper, &mut peer, "0.2");
    write_daemon(&keeper, "exit 3");
    ask_for_daemon(&mut peer, "sh");
    answer(&mut peer).unwrap_err();
    let mut daemon = keeper.daemon();
    rest(&mut daemon);
}

#[test]
fn the_keeper_leaves_with_the_daemon_when_it_keeps_nothing() {
    let mut keeper = Keeper::start();
    let mut daemon = keeper.daemon();
    let id = new_id();
    daemon.spawn(id, keeper.shell(id, "exit 0"));
    daemon.until_exit(id);
    rest(&mut daemon);
    daemon.settle();
    assert!(keeper.is_running(), "what has ended is kept until someone has seen to it");
    daemon.forget(id);
    daemon.send(&KeeperRequest::Rest);
    assert_eq!(daemon.last_words(), [KeeperEvent::Resting]);
    keeper.until_gone();
}

/// As after a failed `posse launch`: no client asks the keeper to leave.
#[test]
fn a_keeper_that_nobody_needs_leaves() {
    let mut keeper = Keeper::start();
    let (mut peer, mut other) = (keeper.peer(), keeper.peer());
    keeper.without_guest();
    let id = new_id();
    peer.spawn(id, keeper.shell(id, "exit 0"));
    peer.until_exit(id);
    drop(peer);
    // A connection without a greeting does not count.
    drop(keeper.stranger());
    other.settle();
    other.forget(id);
    assert!(keeper.is_running(), "someone is still there");
    drop(other);
    keeper.until_gone();
}

#[test]
fn a_new_keeper_waits_for_its_first_guest() {
    let keeper = Keeper::start_alone(":");
    for _ in 0..10 {
        // Connects and disconnects, like a check for a running keeper.
        drop(keeper.stranger());
    }
    let mut peer = keeper.peer();
    let id = new_id();
    peer.follow(id, keeper.shell(id, "echo welcome"));
    peer.until_exit(id);
    assert_eq!(peer.heard(id).text(), "welcome\r\n");
}

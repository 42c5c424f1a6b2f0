//! Ending a terminal with everything that came out of it, and nothing else.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use posse_core::ids::TerminalId;
use posse_core::status::Exit;
use posse_term::wire::{KeeperEvent, KeeperRequest};
use posse_testkit::process;

use crate::keeper::{Keeper, new_id, until};
use crate::peer::Peer;

/// Returns the number of processes that carry this terminal in their environment.
fn carriers(id: TerminalId) -> usize {
    process::all()
        .iter()
        .filter(|process| process.variable("POSSE_TERMINAL_ID").as_deref() == Some(id.as_str()))
        .count()
}

/// Starts a family and waits until it is complete: `carrying` members carry the terminal in their environment; the
/// others are listed in lines like `pid 17`.
fn start_family(
    keeper: &Keeper,
    peer: &mut Peer,
    script: &str,
    carrying: usize,
    hidden: usize,
) -> (TerminalId, Vec<u32>) {
    let id = new_id();
    peer.follow(id, keeper.shell(id, script));
    peer.until_printed(id, "all started");
    let pids = loop {
        let text = peer.heard(id).text();
        let lines = text.split_inclusive("\r\n").filter_map(|line| line.strip_suffix("\r\n"));
        let pids: Vec<u32> = lines.filter_map(|line| line.strip_prefix("pid ")?.parse().ok()).collect();
        if pids.len() == hidden {
            break pids;
        }
        peer.next();
    };
    until("the family is complete", || carriers(id) == carrying);
    (id, pids)
}

/// Every way out of a process group that shells know: own sessions, orphans, cleared environments.
const SCATTERED: &str = "
    setsid sleep 1000 &
    setsid sh -c 'sleep 1000 & exec sleep 1000' &
    (sleep 1000 &)
    (setsid sh -c 'sleep 1000 & exit' &)
    env -i sleep 1000 & echo pid $!
    (env -i sleep 1000 & echo pid $!)
    setsid sh -c 'env -i sleep 1000 & echo pid $!; exec sleep 1000' &
    echo all started; exec sleep 1000";
/// Members of that family with the id in their environment, and without.
const CARRYING: usize = 7;
const HIDDEN: usize = 3;

#[test]
fn a_scattered_family_ends_whole_and_no_other_is_touched() {
    let (keeper, mut peer) = Keeper::with_peer();
    let (other, _) = start_family(&keeper, &mut peer, "sleep 1000 & echo all started; exec sleep 1000", 2, 0);
    let (id, hidden) = start_family(&keeper, &mut peer, SCATTERED, CARRYING, HIDDEN);
    assert!(hidden.iter().all(|pid| process::exists(*pid)), "{hidden:?}");
    // If one had to be killed, the grace would outlast the patience of this test.
    assert_eq!(peer.end(id, 3_600_000), 0);
    assert_eq!(carriers(id), 0);
    assert_eq!(peer.until_exit(id), Exit::Signal(15));
    for pid in hidden {
        assert!(!process::exists(pid), "process {pid} is left");
    }
    assert_eq!(carriers(other), 2);
    assert_eq!(peer.summary(other).exit, None);
    keeper.until_reaped();
}

#[test]
fn those_who_ignore_polite_signals_are_killed_after_the_grace() {
    let (keeper, mut peer) = Keeper::with_peer();
    let script = format!("trap '' TERM HUP; {SCATTERED}");
    let (id, hidden) = start_family(&keeper, &mut peer, &script, CARRYING, HIDDEN);
    let began = Instant::now();
    assert_eq!(peer.end(id, 300), 0);
    assert!(began.elapsed() >= Duration::from_millis(300), "they had their grace");
    assert_eq!(peer.until_exit(id), Exit::Signal(9));
    assert_eq!((carriers(id), hidden.iter().filter(|pid| process::exists(**pid)).count()), (0, 0));
    keeper.until_reaped();
}

#[test]
fn asked_twice_the_shorter_grace_holds_and_everyone_is_told() {
    let keeper = Keeper::start();
    let (mut patient, mut hasty) = (keeper.peer(), keeper.peer());
    let id = new_id();
    patient.follow(id, keeper.shell(id, "trap '' TERM HUP; echo ready; while :; do sleep 1000; done"));
    patient.until_printed(id, "ready");
    patient.send(&KeeperRequest::End { id, grace_ms: 3_600_000 });
    patient.settle();
    assert_eq!(hasty.end(id, 0), 0);
    patient.send(&KeeperRequest::End { id, grace_ms: 3_600_000 });
    let left = patient.wait("the end", |event| match event {
        KeeperEvent::Ended { id: of, left } if *of == id => Some(*left),
        _ => None,
    });
    assert_eq!(left, 0);
}

#[test]
fn a_program_that_never_stops_forking_is_ended_too() {
    let (keeper, mut peer) = Keeper::with_peer();
    let id = new_id();
    let script = "trap '' TERM HUP; while :; do setsid sh -c 'sleep 1000 & exec sleep 1000' & sleep 0.005; done";
    peer.spawn(id, keeper.shell(id, script));
    until("there are many", || carriers(id) > 40);
    assert_eq!(peer.end(id, 50), 0);
    assert_eq!(carriers(id), 0);
    keeper.until_reaped();
}

/// A shell that was asked waits for what it is running before it does as asked. If it started that a moment after, only
/// asking the newcomer too spares them both the kill.
#[test]
fn one_that_is_born_during_the_grace_is_asked_too() {
    // Without the trap, as a shell that has just forked takes a signal it traps for its own and forgets it.
    let script = "
        sleep 1000 & trap 'trap - TERM; echo asked; sleep 1000; echo woken; exit 5' TERM
        trap '' HUP; echo ready; wait";
    let (_keeper, mut peer, id) = Keeper::running(script);
    peer.until_printed(id, "ready");
    assert_eq!(peer.end(id, 25_000), 0);
    assert_eq!(peer.until_exit(id), Exit::Code(5));
    assert!(peer.heard(id).text().ends_with("woken\r\n"), "{}", peer.heard(id).text());
}

/// After a crash of the keeper its successor has no terminals, but their processes may have survived.
#[test]
fn what_carries_the_id_of_a_terminal_nobody_has_is_ended() {
    let (_keeper, mut peer) = Keeper::with_peer();
    let id = new_id();
    assert_eq!(peer.end(id, 0), 0, "there is nobody");
    let stray = |arguments: &[&str]| {
        let mut command = Command::new("setsid");
        command.args(arguments).env_clear().env("PATH", std::env::var_os("PATH").unwrap());
        command.env("POSSE_TERMINAL_ID", id.as_str()).stdin(Stdio::null()).stdout(Stdio::null());
        command.spawn().unwrap()
    };
    let mut strays = [stray(&["sleep", "1000"]), stray(&["sh", "-c", "trap '' TERM HUP; sleep 1000; :"])];
    until("they run", || carriers(id) == 3);
    assert_eq!(peer.end(id, 100), 0);
    for stray in &mut strays {
        stray.wait().unwrap();
    }
    assert_eq!(carriers(id), 0);
}

/// Its first thread has ended, so it looks like a zombie; it must be killed before its end is reported.
#[test]
fn a_program_without_its_first_thread_is_ended() {
    let (keeper, mut peer) = Keeper::with_peer();
    let program = "import ctypes, threading, time\n\
                   threading.Thread(target=time.sleep, args=(1000,)).start()\n\
                   print('all started', flush=True)\n\
                   ctypes.CDLL(None).pthread_exit(None)";
    let (id, _) = start_family(&keeper, &mut peer, &format!("exec python3 -c \"{program}\""), 0, 0);
    assert_eq!(peer.end(id, 200), 0);
    peer.forget(id);
}

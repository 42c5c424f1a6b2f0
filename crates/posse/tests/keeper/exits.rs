//! Exits of programs, and their reports.

use posse_core::status::Exit;
use posse_term::wire::{KeeperEvent, KeeperRequest};
use posse_testkit::process;

use crate::keeper::{Keeper, new_id, until};

#[test]
fn a_program_ends_with_its_code_or_by_a_signal() {
    let (keeper, mut peer) = Keeper::with_peer();
    let ends = [
        ("exit 0", Exit::Code(0)),
        ("exit 255", Exit::Code(255)),
        ("kill -KILL $$", Exit::Signal(9)),
        ("kill -TERM $$", Exit::Signal(15)),
        ("sleep 0.01; exit 7", Exit::Code(7)),
    ];
    for (script, expected) in ends {
        let id = new_id();
        peer.spawn(id, keeper.shell(id, script));
        assert_eq!(peer.until_exit(id), expected, "{script}");
    }
}

#[test]
fn the_end_is_told_after_the_last_output_and_again_to_whoever_comes_later() {
    let (keeper, mut peer, id) = Keeper::running("seq 1 20000; echo that was it; exit 3");
    assert_eq!(peer.until_exit(id), Exit::Code(3));
    let end = peer.heard(id).end();
    assert!(peer.heard(id).text().ends_with("20000\r\nthat was it\r\n"));
    assert_eq!(peer.heard(id).exits, [(Exit::Code(3), end)]);
    for from in [0, end] {
        let mut late = keeper.peer();
        late.attach(id, from);
        assert_eq!(late.until_exit(id), Exit::Code(3));
        assert_eq!(late.heard(id).exits, [(Exit::Code(3), end)]);
        late.settle();
        assert_eq!(late.heard(id).exits.len(), 1, "once per attachment");
    }
    assert_eq!(keeper.peer().summary(id).exit, Some(Exit::Code(3)));
}

/// Many programs close their files just before they exit. Their terminal must not be hung up under them meanwhile.
#[test]
fn a_program_that_lets_go_of_its_terminal_ends_as_it_means_to() {
    let script = "exec </dev/null >/dev/null 2>&1; sleep 1; echo back >/dev/tty; sleep 0.2; exit 7";
    let (keeper, mut peer, id) = Keeper::running(script);
    let before = keeper.ticks();
    peer.until_printed(id, "back\r\n");
    let ticks = keeper.ticks() - before;
    assert!(ticks < 30, "it used {ticks} hundredths of a second to wait for one");
    assert_eq!(peer.until_exit(id), Exit::Code(7));
    assert_eq!(peer.heard(id).exits, [(Exit::Code(7), 6)]);
}

#[test]
fn only_what_has_ended_can_be_forgotten() {
    let (keeper, mut peer) = Keeper::with_peer();
    let id = new_id();
    let pid = peer.follow(id, keeper.shell(id, "echo here; exec sleep 1000"));
    peer.until_printed(id, "here");
    peer.send(&KeeperRequest::Forget { id });
    let problem = peer.wait("an answer", |event| match event {
        KeeperEvent::Problem { message } => Some(message.clone()),
        _ => None,
    });
    assert!(problem.contains("still running"), "{problem}");
    assert!(process::exists(pid));

    posse_testkit::env::kill(pid);
    assert_eq!(peer.until_exit(id), Exit::Signal(9));
    peer.forget(id);
    assert_eq!(peer.list(), []);
    peer.send(&KeeperRequest::Attach { id, from: 0 });
    assert!(matches!(peer.next(), KeeperEvent::Problem { .. }), "nobody knows it any more");
    // Its id may be used again, and nothing of the old one shows.
    peer.follow(id, keeper.shell(id, "echo new"));
    peer.until_exit(id);
    assert_eq!(peer.heard(id).output, [(0, b"new\r\n".to_vec())]);
}

#[test]
fn a_program_that_is_hung_up_sees_what_closing_its_window_would_show() {
    // It exits after its child, which only the keeper ends.
    let script = "sleep 1000 & trap 'wait $!; echo hung up; exit 8' HUP; echo ready; wait";
    let (_keeper, mut peer, id) = Keeper::running(script);
    peer.until_printed(id, "ready");
    peer.send(&KeeperRequest::HangUp { id });
    assert_eq!(peer.until_exit(id), Exit::Code(8));
    assert!(peer.heard(id).text().ends_with("hung up\r\n"), "{}", peer.heard(id).text());
    peer.send(&KeeperRequest::HangUp { id });
    peer.send(&KeeperRequest::HangUp { id: new_id() });
    peer.settle();
}

#[test]
fn a_stopped_program_can_be_hung_up() {
    let (keeper, mut peer) = Keeper::with_peer();
    let id = new_id();
    let pid = peer.spawn(id, keeper.shell(id, "kill -STOP $$; echo never"));
    until("it has stopped", || crate::keeper::Stat::of(pid).is_some_and(|stat| stat.state == 'T'));
    peer.send(&KeeperRequest::HangUp { id });
    assert_eq!(peer.until_exit(id), Exit::Signal(1));
}

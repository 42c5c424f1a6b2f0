//! A process in a terminal speaks the keeper's protocol itself, to type into terminals without the daemon.

use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use posse_core::ids::{TerminalId, WriterId};
use posse_term::wire::{KeeperEvent, KeeperRequest};

use crate::keeper::{Keeper, new_id};
use crate::peer::Peer;

const SOCKET: &str = "POSSE_TEST_ATTACKED_SOCKET";
const VICTIM: &str = "POSSE_TEST_VICTIM";

/// Not a test: what the tests below run inside a terminal, or outside. Prints what the keeper makes of each attempt.
#[test]
fn attacker() {
    let (Some(socket), Ok(victim)) = (std::env::var_os(SOCKET).map(PathBuf::from), std::env::var(VICTIM)) else {
        return;
    };
    let victim: TerminalId = victim.parse().unwrap();
    let other = b"/bin/false".to_vec();
    let attempts = [
        ("pose", KeeperRequest::Hello { daemon: true }),
        ("type", KeeperRequest::Input { id: victim, writer: WriterId(1), sequence: 1, bytes: b"typed\r".to_vec() }),
        ("hang", KeeperRequest::HangUp { id: victim }),
        ("end", KeeperRequest::End { id: victim, grace_ms: 0 }),
        ("daemon", KeeperRequest::StartDaemon { executable: other }),
        ("rest", KeeperRequest::Rest),
    ];
    for (name, attempt) in attempts {
        let mut peer = Peer::connect(&socket).unwrap();
        if name != "pose" {
            peer.greet(false);
        }
        peer.send(&attempt);
        let answer = match peer.next() {
            KeeperEvent::Problem { .. } | KeeperEvent::DaemonFailed { .. } => "refused",
            _ => "served",
        };
        println!("attempt {name} {answer}");
    }
    let mut peer = Peer::connect(&socket).unwrap();
    peer.greet(false);
    peer.send(&KeeperRequest::List);
    println!("attempt list {}", if matches!(peer.next(), KeeperEvent::Listed { .. }) { "served" } else { "refused" });
    println!("attempts over");
}

/// The shell line that runs the attacker.
fn attack(keeper: &Keeper, victim: TerminalId) -> String {
    let test = std::env::current_exe().unwrap();
    let socket = keeper.socket();
    assert!(!socket.as_os_str().as_bytes().contains(&b'\''));
    format!(
        "{SOCKET}='{}' {VICTIM}={victim} '{}' --exact inside::attacker --nocapture",
        socket.display(),
        test.display()
    )
}

/// An orphan in a session of its own, with a cleared environment, is still below the keeper.
#[test]
fn a_process_in_a_terminal_may_only_look() {
    for wrap in ["sh ./attack", "(setsid env -i PATH=$PATH sh ./attack &); exec cat"] {
        let (keeper, mut peer, victim) = Keeper::running("cat");
        std::fs::write(keeper.work().join("attack"), attack(&keeper, victim)).unwrap();
        let id = new_id();
        peer.follow(id, keeper.shell(id, wrap));
        peer.until_printed(id, "attempts over");
        let text = peer.heard(id).text();
        for name in ["pose", "type", "hang", "end", "daemon", "rest"] {
            assert!(text.contains(&format!("attempt {name} refused")), "{name}: {text}");
        }
        assert!(text.contains("attempt list served"), "{text}");
        assert!(!peer.heard(victim).text().contains("typed"));
        assert_eq!(peer.summary(victim).exit, None);
    }
}

#[test]
fn a_process_outside_may_type() {
    let (_keeper, mut peer, victim) = Keeper::running("cat");
    peer.send(&KeeperRequest::Input { id: victim, writer: WriterId(1), sequence: 1, bytes: b"typed\r".to_vec() });
    peer.until_printed(victim, "typed");
}

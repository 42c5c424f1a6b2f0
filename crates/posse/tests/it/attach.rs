//! People at their windows.

use posse_core::screen::{Screen, Size};
use posse_testkit::seat::Seat;
use posse_testkit::{TestEnv, process};
use rustix::process::{Pid, Signal, kill_process};

use crate::{env, shell_until, text_when};

const SMALL: (u16, u16) = (20, 60);
const LARGE: (u16, u16) = (30, 100);

fn sit(env: &TestEnv, arguments: &[&str], (rows, cols): (u16, u16)) -> Seat {
    let mut command = env.command(arguments);
    command.env("TERM", "xterm-256color");
    let seat = Seat::new(&command, Size::clamped(rows, cols));
    // Input typed before the window opens is not meant for the program, and dropped.
    seat.until(|screen| screen.alternate);
    seat
}

fn terminal_size(env: &TestEnv) -> (u64, u64) {
    let listed = env.run(["ls", "--json"]).json();
    let size = &listed[0]["size"];
    (size["rows"].as_u64().unwrap(), size["cols"].as_u64().unwrap())
}

fn shows(text: &str) -> impl Fn(&Screen) -> bool {
    move |screen| screen.text().contains(text)
}

#[test]
fn look_type_and_leave() {
    let env = env();
    let id = shell_until(&env, "printf 'name? '; read name; echo \"hello $name\"; exec sleep 1000", "name?");
    let seat = sit(&env, &["attach", id.as_str()], SMALL);
    let screen = seat.until(shows("name?"));
    assert!(screen.alternate, "a window of its own, not a mess in the shell's");
    seat.type_keys(b"ada\r");
    seat.until(shows("hello ada"));
    assert_eq!(terminal_size(&env), (24, 80), "a smaller window does not shrink it");
    let sessions = env.http().call("GET", "/sessions", "").unwrap().json();
    assert_eq!(sessions[0]["status"], "active", "viewers count whether they resize or not");
    seat.type_keys(b"\x1d");
    seat.until(|screen| screen.text().contains("detached") && screen.text().contains("--resize"));
    assert_eq!(seat.exit_code(), Some(0));
    assert_eq!(env.run(["ls", "--json"]).json()[0]["status"], "processing", "and goes on");
}

#[test]
fn the_window_is_as_before_afterwards() {
    let env = env();
    // A program that turns on all kinds of modes and never turns them off.
    let script = r"printf '\033[?2004h\033[?1003h\033[?1006h\033[?1h\033[>5u\033[?25l\033[3 qready'; exec sleep 1000";
    let id = env.launch(&["sh", "-c", script]);
    let seat = sit(&env, &["attach", id.as_str()], SMALL);
    seat.until(shows("ready"));
    seat.type_keys(b"\x1b[93;5u"); // Ctrl-] as a terminal with the kitty protocol sends it
    let screen = seat.until(shows("detached"));
    assert!(!screen.alternate && screen.cursor.is_some(), "{screen:?}");
    let bytes = String::from_utf8_lossy(&seat.bytes()).into_owned();
    for end in ["\x1b[?2004l", "\x1b[?1003l", "\x1b[?1006l", "\x1b[?1l", "\x1b[<u"] {
        assert!(bytes.rfind(end) > bytes.find("ready"), "{end:?} is missing");
    }
}

#[test]
fn terminal_takes_the_smallest_size_that_a_window_asks_for() {
    let env = env();
    let script = "trap 'echo size $(stty size)' WINCH; echo ready; while :; do sleep 0.02; done";
    let id = shell_until(&env, script, "ready");
    let large = sit(&env, &["attach", "--resize", id.as_str()], LARGE);
    large.until(shows("size 30 100"));
    let small = sit(&env, &["attach", "--resize", id.as_str()], SMALL);
    large.until(shows("size 20 60"));
    small.until(shows("size 20 60"));
    small.resize(Size::clamped(10, 50));
    large.until(shows("size 10 50"));
    small.type_keys(b"\x1d");
    assert_eq!(small.exit_code(), Some(0));
    large.until(|screen| screen.text().trim_end().ends_with("size 30 100"));
    drop(large); // closes its window without a word
    text_when(&env, id, |text| text.trim_end().ends_with("size 24 80"));
}

#[test]
fn two_see_the_same_and_both_may_type() {
    let env = env();
    let id = env.launch(&["cat"]);
    let first = sit(&env, &["attach", id.as_str()], SMALL);
    let second = sit(&env, &["attach", id.as_str()], SMALL);
    first.type_keys(b"from the first\r");
    second.until(shows("from the first"));
    second.type_keys(b"from the second\r");
    first.until(shows("from the second"));
    let third = sit(&env, &["attach", "--read-only", id.as_str()], SMALL);
    third.until(shows("from the second"));
    third.type_keys(b"not heard\r");
    first.type_keys(b"end\r");
    let screen = third.until(shows("end"));
    assert!(!screen.text().contains("not heard"));
}

#[test]
fn a_window_stays_open_while_the_daemon_dies() {
    let env = env();
    let id = env.launch(&["cat"]);
    let seat = sit(&env, &["attach", id.as_str()], SMALL);
    seat.type_keys(b"before\r");
    seat.until(|screen| screen.text().matches("before").count() == 2);
    for round in 0..5 {
        env.kill_daemon();
        seat.type_keys(format!("round {round}\r").as_bytes());
        // Exactly one echo and one line from cat.
        seat.until(|screen| screen.text().matches(&format!("round {round}")).count() == 2);
    }
    let text = seat.until(|_| true).text();
    assert_eq!(text.matches("before").count(), 2, "{text}");
}

/// The process of the one window that is attached.
fn attached(env: &TestEnv) -> Pid {
    let is_attach = |p: &process::Process| p.command.get(1).is_some_and(|word| word == "attach");
    let found = env.processes().into_iter().find(is_attach).unwrap();
    Pid::from_raw(found.pid as i32).unwrap()
}

#[test]
fn a_signal_gives_the_window_back() {
    let env = env();
    let id = env.launch(&["sh", "-c", "echo ready; exec sleep 1000"]);
    for (signal, code, word) in [(Signal::TERM, 143, "terminated"), (Signal::HUP, 129, "the window was closed")] {
        let seat = sit(&env, &["attach", id.as_str()], SMALL);
        seat.until(shows("ready"));
        kill_process(attached(&env), signal).unwrap();
        let screen = seat.until(|screen| !screen.alternate && screen.text().contains(word));
        assert!(screen.cursor.is_some(), "{screen:?}");
        assert_eq!(seat.exit_code(), Some(code));
    }
}

#[test]
fn the_detach_key_is_a_key_and_not_a_byte() {
    let env = env();
    let id = shell_until(&env, "stty -echo -icanon; echo ready; exec cat -v", "ready");
    let seat = sit(&env, &["attach", id.as_str()], SMALL);
    seat.until(shows("ready"));
    seat.type_keys(b"\x1b[200~pasted \x1d\x1b[201~\n");
    seat.until(shows("^[[200~pasted ^]^[[201~"));
    // A lone Esc reaches the program, too.
    seat.type_keys(b"\x1b");
    seat.until(shows("^]^[[201~\n^["));
    seat.type_keys(b"\n");
    seat.type_keys(b"before\n\x1b[93;133u after\n"); // with num lock on
    seat.until(shows("detached"));
    assert_eq!(seat.exit_code(), Some(0));
    let text = text_when(&env, id, |text| text.contains("before"));
    assert!(!text.contains("after"), "{text}");

    let seat = sit(&env, &["attach", "--detach-key", "ctrl-q", id.as_str()], SMALL);
    seat.until(shows("before"));
    seat.type_keys(b"\x1b[Aup \x1d\n");
    seat.until(shows("^[[Aup ^]"));
    seat.type_keys(b"\x11");
    seat.until(shows("detached"));
}

#[test]
fn a_size_that_changed_while_the_connection_was_broken_is_noticed() {
    let env = env();
    let script = "trap 'echo size $(stty size)' WINCH; echo ready; while [ ! -e go ]; do sleep 0.02; done; \
                  printf '%070d\\n' 0; exec sleep 1000";
    let id = shell_until(&env, script, "ready");
    let large = sit(&env, &["attach", "--resize", id.as_str()], LARGE);
    large.until(shows("size 30 100"));
    let process = attached(&env);
    kill_process(process, Signal::STOP).unwrap();
    env.kill_daemon();
    let small = sit(&env, &["attach", "--resize", id.as_str()], SMALL);
    small.until(shows("size 20 60"));
    kill_process(process, Signal::CONT).unwrap();
    large.until(shows("size 20 60"));
    std::fs::write(env.work().join("go"), "").unwrap();
    let line = format!("{}\n{}\n", "0".repeat(60), "0".repeat(10));
    small.until(shows(&line));
    large.until(shows(&line));
}

#[test]
fn a_window_does_not_start_a_daemon_that_was_stopped() {
    let env = env();
    let id = env.launch(&["sh", "-c", "echo ready; exec sleep 1000"]);
    let (patient, impatient) = (sit(&env, &["attach", id.as_str()], SMALL), sit(&env, &["attach", id.as_str()], SMALL));
    patient.until(shows("ready"));
    impatient.until(shows("ready"));
    env.run(["stop"]).ok();
    impatient.type_keys(b"\x1d");
    impatient.until(shows("detached"));
    assert_eq!(impatient.exit_code(), Some(0), "leaving works without a daemon");
    patient.until(shows("the daemon was stopped"));
    assert_eq!(patient.exit_code(), Some(1));
    assert!(env.http().call("GET", "/health", "").is_err(), "and nobody started it");
}

#[test]
fn launch_and_attach_in_one_until_the_program_ends() {
    let env = env();
    let seat =
        sit(&env, &["launch", "--attach", "--name", "short", "--", "sh", "-c", "echo hi; read x; exit 3"], SMALL);
    seat.until(shows("hi"));
    seat.type_keys(b"\r");
    seat.until(shows("[short exited with 3]"));
    assert_eq!(seat.exit_code(), Some(0));
}

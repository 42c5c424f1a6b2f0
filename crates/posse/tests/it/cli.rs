//! Exits of commands: with and without a reader, on request, with and without a daemon.

use std::fs::Permissions;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Stdio};

use posse_testkit::files::when;
use posse_testkit::{TestEnv, process};
use rustix::process::{Pid, Signal, kill_process};

use crate::env;

/// A command that is being read, up to its end or not.
pub(crate) fn start(env: &TestEnv, arguments: &[&str]) -> Child {
    let mut command = env.command(arguments);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // What a command makes for itself can be found here.
    command.env("TMPDIR", env.work()).spawn().unwrap()
}

pub(crate) fn pid(child: &Child) -> Pid {
    Pid::from_raw(child.id() as i32).unwrap()
}

#[track_caller]
pub(crate) fn code(mut child: Child) -> Option<i32> {
    assert!(process::ends(child.id()), "it does not end");
    child.wait().unwrap().code()
}

fn first_line(child: &mut Child) -> String {
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    line
}

#[test]
fn a_reader_that_leaves_ends_a_command_quietly() {
    let env = env();
    for _ in 0..3 {
        env.launch(&["sleep", "1000"]);
    }
    for arguments in [&["ls"][..], &["ls", "--json"], &["logs"], &["completions", "bash"], &["logs", "-f"]] {
        let mut child = start(&env, arguments);
        assert!(!first_line(&mut child).is_empty());
        let mut stderr = child.stderr.take().unwrap();
        assert_eq!(code(child), Some(0), "{arguments:?}");
        let mut said = String::new();
        stderr.read_to_string(&mut said).unwrap();
        assert_eq!(said, "", "{arguments:?}");
    }
}

/// Waits until the daemon has at least `count` connections.
fn until_connected(env: &TestEnv, count: usize) {
    let socket = env.paths().daemon_socket().to_string_lossy().into_owned();
    let sockets = || std::fs::read_to_string("/proc/net/unix").unwrap().matches(&socket).count();
    // The listening socket is one more.
    when(&format!("{count} connections"), || (sockets() > count).then_some(()));
}

#[test]
fn following_ends_when_the_daemon_is_stopped_and_survives_its_death() {
    let env = env();
    let id = env.launch(&["sleep", "1000"]);
    let mut logs = start(&env, &["logs", "-f", "--json"]);
    let mut waiting = start(&env, &["wait", id.as_str(), "--until", "exited"]);
    let mut lines = BufReader::new(logs.stdout.take().unwrap()).lines().map(|line| line.unwrap());
    until_connected(&env, 4); // Each asks on one and listens on another.
    assert!(lines.by_ref().any(|line| line.contains("terminal_started")));

    env.kill_daemon();
    assert!(lines.by_ref().any(|line| line.contains("daemon_started")));
    until_connected(&env, 3); // The logs only listen now.
    assert!(waiting.try_wait().unwrap().is_none(), "waiting goes on");

    env.run(["stop"]).ok();
    let last = lines.by_ref().last().unwrap_or_default();
    assert!(last.contains("daemon_stopped"), "the end is told: {last}");
    for mut child in [logs, waiting] {
        let mut stderr = child.stderr.take().unwrap();
        assert_eq!(code(child), Some(1));
        let mut said = String::new();
        stderr.read_to_string(&mut said).unwrap();
        assert!(said.contains("the daemon was stopped") && said.contains("posse ls"), "{said}");
    }
    assert!(env.http().call("GET", "/health", "").is_err(), "and nobody started it");
}

#[test]
fn no_lines_of_the_past_means_none() {
    let env = env();
    env.launch(&["sleep", "1000"]);
    assert_eq!(env.run(["logs", "-n", "0"]).ok(), "");
    let before = env.run(["logs", "-n", "1"]).ok();
    let mut logs = start(&env, &["logs", "-f", "-n", "0"]);
    until_connected(&env, 2);
    env.launch(&["sleep", "1000"]);
    let first = first_line(&mut logs);
    assert!(first.contains("terminal_created") && first != before, "{first}");
    assert_eq!(code(logs), Some(0));
}

#[test]
fn a_signal_has_its_exit_code() {
    let env = env();
    env.launch(&["sleep", "1000"]);
    for (signal, expected) in [(Signal::TERM, 143), (Signal::HUP, 129), (Signal::INT, 130)] {
        let mut child = start(&env, &["logs", "-f"]);
        let mut reader = BufReader::new(child.stdout.take().unwrap());
        reader.read_line(&mut String::new()).unwrap();
        kill_process(pid(&child), signal).unwrap();
        assert_eq!(code(child), Some(expected));
    }
}

#[test]
fn a_directory_that_others_may_enter_is_not_connected_to() {
    let env = env();
    env.run(["serve"]).ok();
    let runtime = &env.paths().runtime;
    std::fs::set_permissions(runtime, Permissions::from_mode(0o755)).unwrap();
    for arguments in [["stop"], ["ls"]] {
        env.run(arguments).ends(1).complains(&["can be entered by others"]);
    }
    std::fs::set_permissions(runtime, Permissions::from_mode(0o700)).unwrap();
    env.run(["stop"]).ok();
    assert_eq!(env.run(["stop"]).ok(), "no daemon is running\n");
}

//! The demo: what it promises, and that it leaves nothing.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use posse_term::paths::Paths;
use posse_testkit::files::when;
use posse_testkit::{TestEnv, process};
use rustix::process::{Signal, kill_process};
use serde_json::Value;

use crate::cli::{code, pid, start};
use crate::{env, has_in_order};

/// Returns the directories of this environment's demos.
fn stages(env: &TestEnv) -> Vec<PathBuf> {
    let entries = fs::read_dir(env.work()).unwrap();
    entries.map(|entry| entry.unwrap().path()).filter(|path| path.to_string_lossy().contains("posse-demo-")).collect()
}

/// The home of a demo that is played there.
fn home(stage: &Path) -> PathBuf {
    fs::canonicalize(stage).unwrap_or_else(|_| stage.to_owned()).join("home")
}

/// Every process of a demo: the keeper and the daemon by their environment, agents by what they play.
fn processes(home: &Path) -> Vec<process::Process> {
    let is_its = |p: &process::Process| {
        let keeps = p.variable("POSSE_HOME").is_some_and(|value| Path::new(&value) == home);
        keeps || p.command.iter().any(|argument| Path::new(argument).starts_with(home))
    };
    process::all().into_iter().filter(is_its).collect()
}

fn paths(home: &Path) -> Paths {
    Paths::resolve(|name| (name == "POSSE_HOME").then(|| home.as_os_str().to_owned())).unwrap()
}

/// Waits until the demo has begun, and returns its home.
fn begun(env: &TestEnv) -> PathBuf {
    // The keeper, the daemon and the first agent.
    when("the demo", || stages(env).pop().map(|stage| home(&stage)).filter(|home| processes(home).len() >= 3))
}

/// Neither files nor sockets nor processes.
#[track_caller]
fn assert_gone(env: &TestEnv, home: &Path) {
    assert_eq!(stages(env), Vec::<PathBuf>::new());
    assert!(!paths(home).runtime.exists(), "its sockets are still there");
    let stays = |p: &process::Process| !process::ends(p.pid);
    let left: Vec<_> = processes(home).into_iter().filter(stays).collect();
    assert!(left.is_empty(), "{left:#?}");
}

/// Without a home, without anything on the path, in an empty directory.
#[test]
fn it_plays_the_whole_loop_and_leaves_nothing() {
    let env = env();
    let mut command = env.command(["demo", "--fast"]);
    command.env_clear().env("TMPDIR", env.work()).stdin(Stdio::null());
    let output = command.output().unwrap();
    let (shown, said) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert_eq!((output.status.code(), said.as_str()), (Some(0), ""), "{shown}");
    let parts = [
        "Five scripted agents",
        "turn 1: analyst",
        "turn 3: programmer",
        "accepting a permission",
        "Killing the daemon",
        "took over after",
        "turn 5: tester",
        "FAIL in round 1",
        "PASS in round 2",
        "2 permissions were accepted",
        "turn 3, programmer: cargo test   answered with y",
        "turn 5, tester: ./greet   answered with 1",
        "8 prompts arrived once",
        "Everything was in",
        "posse loop --prompt-file",
    ];
    has_in_order(&shown, &parts);
    assert!(!shown.contains('\x1b'), "nobody sees colours there: {shown}");
    assert!(shown.lines().all(|line| line.chars().count() <= 80 || line.contains("posse-demo-")), "{shown}");
    let stage = shown.lines().find_map(|line| line.strip_prefix("Everything was in ")?.strip_suffix(", and is gone."));
    assert_gone(&env, &Path::new(stage.unwrap()).join("home"));
}

#[test]
fn programs_are_told_each_entry_and_the_ending() {
    let env = env();
    let shown = env.run(["demo", "--fast", "--json"]).ok();
    let lines: Vec<Value> = shown.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (ending, journal) = lines.split_last().unwrap();
    assert!(journal.len() > 20 && journal.iter().all(|entry| entry["seq"].is_number()), "{journal:#?}");
    assert_eq!((&ending["verdict"], &ending["run"]["status"]), (&"PASS".into(), &"passed".into()));
    assert_eq!(ending["prompts"], 8);
    assert_ne!(ending["daemon"]["before"], ending["daemon"]["after"]);
}

#[test]
fn cut_short_it_leaves_nothing() {
    let env = env();
    // The reader is gone, or a signal arrives.
    for (signal, expected) in [(None, 0), (Some(Signal::INT), 130), (Some(Signal::TERM), 143), (Some(Signal::HUP), 129)]
    {
        let mut child = start(&env, &["demo"]);
        let home = begun(&env);
        match signal {
            None => drop(child.stdout.take()),
            Some(signal) => kill_process(pid(&child), signal).unwrap(),
        }
        assert_eq!(code(child), Some(expected), "{signal:?}");
        assert_gone(&env, &home);
    }
}

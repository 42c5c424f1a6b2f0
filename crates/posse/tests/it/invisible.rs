//! Text of an agent reaches people with everything shown in it.

use std::fs;

use crate::agents::{asked, wait};
use crate::env;

/// Characters that reverse text, or have no width.
const HIDDEN: [char; 4] = ['\u{202e}', '\u{2066}', '\u{200b}', '\u{feff}'];

#[track_caller]
fn shows_all(what: &str, text: &str) {
    assert!(!text.contains(HIDDEN), "{what}: {text:?}");
    assert!(!text.contains('\u{1b}'), "{what}: {text:?}");
}

#[test]
fn what_cannot_be_seen_is_shown_by_every_command() {
    let env = env();
    let scenario = "look = \"claude\"\n[[turn]]\nsteps = [{ ask = { kind = \"permission\", command = \
                    \"rm -rf \u{202e}a\u{2066}b\u{200b}c\u{feff}d\" } }, { say = \"Done \u{202e}it\u{200b}.\" }]\n";
    env.script_agent("claude_code", scenario);
    let evil = env.work().join("evil\u{202e}\u{200b}");
    fs::create_dir(&evil).unwrap();
    let directory = evil.to_str().unwrap();
    env.run(["launch", "claude_code", "--trust", "--name", "a", "--directory", directory]).ok();
    asked(&env, "go");
    for command in [&["ls"][..], &["show", "a"], &["explain", "a"], &["approve", "a", "--question", "0000"]] {
        let ran = env.run(command);
        shows_all(&command.join(" "), &format!("{}{}", ran.stdout, ran.stderr));
    }
    let shown = env.run(["show", "a"]).ok();
    assert!(shown.contains("evil\\u{202e}\\u{200b}"), "{shown}");
    let approved = env.run(["approve", "a"]).ends(0);
    shows_all("approve", &approved.stderr);
    wait(&env, "a", "completed");
    for command in [&["audit", "show"][..], &["logs"], &["ls"], &["show", "a"]] {
        let ran = env.run(command);
        shows_all(&command.join(" "), &format!("{}{}", ran.stdout, ran.stderr));
    }
    shows_all("the log", &fs::read_to_string(env.paths().log()).unwrap());
    let missing = env.run(["show", "nobody\u{202e}\u{1b}[2J"]);
    shows_all("an error", &missing.stderr);
}

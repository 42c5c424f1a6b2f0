//! The whole of posse, as its users run it: the real binary, real terminals, a real database.
// In a test an unwrap is an assertion.
#![allow(clippy::unwrap_used)]

mod agents;
mod anchor;
mod attach;
mod audit;
mod auto_items;
mod auto_run;
mod bad_input;
mod basics;
mod cli;
mod demo;
mod disk;
mod documented;
mod errors;
mod faults;
mod first_look;
mod from_inside;
mod invisible;
mod kills;
mod loop_kills;
mod loop_run;
mod plan_checks;
mod plan_clean;
mod plan_config;
mod plan_example;
mod plan_exits;
mod plan_in_place;
mod plan_kills;
mod plan_money;
mod plan_run;
mod plan_scenarios;
mod plan_together;
mod privacy;
mod project;
mod recordings;
mod reviewed;
mod slow_disk;
mod steps;
mod surface;
mod survival;
mod tcp;
mod tmux_windows;

use std::time::{Duration, Instant};

use posse_core::ids::TerminalId;
use posse_testkit::PATIENCE;
use posse_testkit::TestEnv;

fn env() -> TestEnv {
    TestEnv::new(env!("CARGO_BIN_EXE_posse"))
}

/// Checks that a text has all of these words.
#[track_caller]
fn contains(text: &str, words: &[&str]) {
    for word in words {
        assert!(text.contains(word), "{word:?} is not in {text}");
    }
}

/// Checks that a text has all of these words, in this order.
#[track_caller]
fn has_in_order(text: &str, words: &[&str]) {
    let mut from = 0;
    for word in words {
        from += text[from..].find(word).unwrap_or_else(|| panic!("{word:?} is missing, or not in order:\n{text}"));
    }
}

/// Starts a shell script in a terminal, and waits until it has printed this.
#[track_caller]
fn shell_until(env: &TestEnv, script: &str, text: &str) -> TerminalId {
    let id = env.launch(&["sh", "-c", script]);
    text_when(env, id, |shown| shown.contains(text));
    id
}

/// Looks at the text of a terminal until it fits, each time something was printed.
#[track_caller]
fn text_when(env: &TestEnv, id: TerminalId, fits: impl Fn(&str) -> bool) -> String {
    use posse_testkit::stream::Stream;
    let give_up = Instant::now() + PATIENCE;
    let mut stream = Stream::open(&env.http(), id, None, 1).expect("a stream");
    stream.set_timeout(Duration::from_millis(250)).expect("a timeout");
    loop {
        let output: posse_api::Output = env.http().get(&format!("/terminals/{id}/output?mode=full")).expect("output");
        if fits(&output.output) {
            return output.output;
        }
        assert!(Instant::now() < give_up, "it never came; the terminal shows:\n{}", output.output);
        // The next sign of life, or a quarter of a second: what was printed before the stream began counts too.
        let _ = stream.next_item();
    }
}

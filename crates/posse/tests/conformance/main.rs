//! Is the status right? Judged by the clock, so `./test` leaves these tests out and `./test --full` runs them; the report is
//! written by `cargo run --release -p posse-testkit --bin conformance`. See docs/conformance.md.
// In a test an unwrap is an assertion.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use posse_sim::conformance::{ConformanceCase, cases};
use posse_testkit::agents::or_skip;
use posse_testkit::conformance::report;
use posse_testkit::conformance::run::{ConformanceOutcome, Setup, run};
use posse_testkit::conformance::subject::ConformanceSubject;

fn subject(name: &str) -> ConformanceSubject {
    ConformanceSubject::named(name).unwrap()
}

fn play(subject: ConformanceSubject, scenario: &ConformanceCase) -> ConformanceOutcome {
    // Where the recordings of the command are, too.
    let artefacts: PathBuf = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("conformance");
    let posse = Path::new(env!("CARGO_BIN_EXE_posse"));
    run(Setup { posse, subject, artefacts: &artefacts, stop: &AtomicBool::default() }, scenario)
}

/// Plays all scenarios of an agent. For some of them a replay of the recording must give the same result: no decision
/// used data that was not recorded.
fn play_all(name: &str, replayed: &[&str]) {
    let subject = subject(name);
    let Some(_agent) = or_skip(subject.agent()) else { return };
    let mut bad = Vec::new();
    for scenario in cases(subject.maker) {
        let outcome = play(subject, &scenario);
        let is_same = || outcome.replayed.as_ref().is_some_and(|replayed| replayed.replay == replayed.live);
        let fits = !replayed.contains(&scenario.name.as_str()) || is_same();
        if !outcome.is_green() || !fits {
            let replay = if fits { "" } else { ": its recording says otherwise" };
            bad.push(format!("{}{replay}\n{}", report::line(&outcome), outcome.timeline));
        }
    }
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}

/// One test per agent. `cargo run -p posse-testkit --bin conformance` plays single scenarios.
macro_rules! conformance {
    ($($test:ident: $name:literal, $replayed:expr;)*) => {$(
        #[test]
        #[ignore = "judged by the clock: ./test --full"]
        fn $test() {
            play_all($name, &$replayed);
        }
    )*};
}

conformance! {
    claude_2_1_325: "claude_code-2.1.325", [
        "answer", "streaming", "stalled", "narrative", "interrupt", "api_401", "dialog_write", "dialog_question",
        "tool_running", "deny",
    ];
    claude_2_1_197: "claude_code-2.1.197", ["stalled", "narrative", "api_401", "tool_running", "deny"];
    claude_2_1_310: "claude_code-2.1.310", [];
    claude_2_1_120: "claude_code-2.1.120", [];
    codex_0_166: "codex-0.166.0", [
        "answer", "streaming", "stalled", "narrative", "interrupt", "api_401", "dialog_write", "tool_running", "deny",
        "popups", "menus",
    ];
    codex_0_160: "codex-0.160.1", ["popups"];
    codex_0_155: "codex-0.155.1", ["answer", "api_401"];
    codex_0_130: "codex-0.130.0", ["answer", "api_401"];
}

//! Commands that posse runs to check the work. Failures that existed before the work do not count.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::LazyLock;

use regex::Regex;
use serde::{Deserialize, Serialize};

use super::machine::GateFailure;
use crate::written::constant;

/// The number of lines of a check's output that go into the next prompt.
pub const TAIL_LINES: usize = 200;

/// One command, run once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateRun {
    pub gate: String,
    pub result: GateResult,
    pub output: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GateResult {
    Passed,
    /// The exit code, or the reason why there is none.
    Failed(String),
    /// Not configured, or a requirement is missing. Never a pass.
    NotRun(String),
}

/// The result of a gate for the work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GateVerdict {
    Green,
    /// Failed with the same failures as before.
    KnownRed(Vec<String>),
    Red(GateFailure),
    NotRun(String),
}

impl fmt::Display for GateVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GateVerdict::Green => f.write_str("passed"),
            GateVerdict::KnownRed(known) => write!(f, "red, as it was before: {}", known.join(", ")),
            GateVerdict::Red(failure) => write!(f, "failed: {}", failure.message),
            GateVerdict::NotRun(why) => write!(f, "not run: {why}"),
        }
    }
}

/// Compares a run on the finished work with one on its base. Without a base every failure counts.
pub fn compare(base: Option<&GateRun>, work: &GateRun) -> GateVerdict {
    let why = match &work.result {
        GateResult::Passed => return GateVerdict::Green,
        GateResult::NotRun(why) => return GateVerdict::NotRun(why.clone()),
        GateResult::Failed(why) => why,
    };
    let red = |message: String| {
        GateVerdict::Red(GateFailure { gate: work.gate.clone(), message, output: tail(&work.output) })
    };
    let before = match base {
        Some(GateRun { result: GateResult::Failed(_), output, .. }) => failures(output),
        _ => return red(why.clone()),
    };
    let now = failures(&work.output);
    // If either side names no failure, new failures cannot be ruled out.
    if before.is_empty() || now.is_empty() {
        return red(format!("{why}; it was red before too, but which failures are new cannot be told"));
    }
    let new: Vec<&str> = now.difference(&before).map(String::as_str).collect();
    if new.is_empty() {
        return GateVerdict::KnownRed(now.into_iter().collect());
    }
    red(format!("{why}; new: {}", new.join(", ")))
}

/// Returns the failed tests and errors in an output of the common tools.
fn failures(output: &str) -> BTreeSet<String> {
    static NAMED: LazyLock<Regex> = LazyLock::new(|| {
        constant(concat!(
            r"(?m)^\s*(?:",
            r"test (?P<cargo>\S+) \.\.\. FAILED",
            r"|(?:FAILED|ERROR) (?P<pytest>\S+::\S+|\S+\.py)(?: - .*)?",
            r"|FAIL(?: \[.*?\])?:? +(?:\(.*?\) +)?(?P<plain>\S.*?)(?: \(.*\))?",
            r"|--- FAIL: (?P<go>\S+)(?: \(.*\))?",
            r"|not ok \d+ -? ?(?P<tap>.+?)",
            r"|(?:✗|✕|×) (?P<mark>.+?)(?: \(?\d+ ?ms\)?)?",
            r"|(?P<error>error(?:\[\w+\])?: .+?)",
            r")\s*$"
        ))
    });
    let name = |found: regex::Captures<'_>| found.iter().skip(1).flatten().next().map(|name| name.as_str().to_owned());
    NAMED.captures_iter(output).filter_map(name).collect()
}

/// Returns the end of an output.
pub fn tail(output: &str) -> String {
    let lines: Vec<&str> = output.lines().collect();
    lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(result: GateResult, output: &str) -> GateRun {
        GateRun { gate: "tests".into(), result, output: output.into() }
    }

    fn red(output: &str) -> GateRun {
        run(GateResult::Failed("exited with 1".into()), output)
    }

    #[test]
    fn t50_only_what_is_new_counts() {
        let green = run(GateResult::Passed, "");
        let shown = |base: Option<&GateRun>, work: &GateRun| compare(base, work).to_string();
        let (a, ab) = (red("test a ... FAILED\n1 failed"), red("test b ... FAILED\ntest a ... FAILED\n2 failed"));
        for (name, base, work, expected) in [
            ("all is well", Some(&green), &green, "passed"),
            ("mended", Some(&a), &green, "passed"),
            ("broken", Some(&green), &a, "failed: exited with 1"),
            ("broken before too", Some(&a), &a, "red, as it was before: a"),
            ("one more", Some(&a), &ab, "failed: exited with 1; new: b"),
            ("one less", Some(&ab), &a, "red, as it was before: a"),
            ("no base", None, &a, "failed: exited with 1"),
            (
                "nothing is named",
                Some(&red("boom")),
                &red("boom"),
                "failed: exited with 1; it was red before too, but which failures are new cannot be told",
            ),
            ("not run", Some(&green), &run(GateResult::NotRun("not configured".into()), ""), "not run: not configured"),
        ] {
            assert_eq!(shown(base, work), expected, "{name}");
        }
    }

    #[test]
    fn failures_are_named_by_the_common_tools() {
        for (line, name) in [
            ("test net::tests::slow ... FAILED", "net::tests::slow"),
            ("FAILED tests/test_a.py::test_b - assert 1 == 2", "tests/test_a.py::test_b"),
            ("FAILED tests/test_a.py::test_b", "tests/test_a.py::test_b"),
            ("ERROR tests/test_a.py", "tests/test_a.py"),
            ("        FAIL [   0.904s] (102/104) posse-core plan::x", "posse-core plan::x"),
            ("--- FAIL: TestThing (0.00s)", "TestThing"),
            ("not ok 3 - adds numbers", "adds numbers"),
            ("  ✕ renders the page (12 ms)", "renders the page"),
            ("error[E0308]: mismatched types", "error[E0308]: mismatched types"),
            ("everything FAILED to go wrong", ""),
        ] {
            let found: Vec<String> = failures(line).into_iter().collect();
            assert_eq!(found.first().map_or("", String::as_str), name, "{line}");
        }
    }

    #[test]
    fn only_the_end_of_an_output_is_kept() {
        let long: Vec<String> = (0..1000).map(|i| i.to_string()).collect();
        let kept = tail(&long.join("\n"));
        assert_eq!((kept.lines().count(), kept.lines().next()), (200, Some("800")));
    }
}

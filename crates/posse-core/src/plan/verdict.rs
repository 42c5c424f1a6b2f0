//! A validator's verdict on a task. Anything but a clear PASS does not count as PASS.

use serde::{Deserialize, Serialize};

use super::report::Report;
use crate::words;

words! {
    #[derive(PartialOrd, Ord)]
    pub enum Verdict ("verdict") {
        Pass = "PASS",
        Warn = "WARN",
        Fail = "FAIL",
        /// There is no verdict: the validator crashed, ran out of time or quota, or gave none.
        Error = "ERROR",
    }
}

/// A verdict and its basis.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Judgement {
    pub verdict: Verdict,
    pub findings: Vec<String>,
}

impl Judgement {
    /// Returns the judgement of a session that gave no verdict.
    pub fn none() -> Self {
        Self { verdict: Verdict::Error, findings: Vec::new() }
    }
}

/// Returns the verdict in a validator's report, or else in the last line of its message that is nothing but a verdict.
/// `text` is its last message.
pub fn judge(report: Option<&Report>, text: &str) -> Judgement {
    let word = report.and_then(|report| report.verdict.as_deref());
    let (said, findings) = match word {
        Some(word) => (parse(word), report.map(|report| report.findings.clone()).unwrap_or_default()),
        None => (last_line(text), findings_in(text)),
    };
    let Some(said) = said else {
        return Judgement { verdict: Verdict::Error, findings: vec!["the validator gave no verdict".into()] };
    };
    consistent(said, report, findings)
}

/// Parses a verdict. A text that only contains the word does not count.
fn parse(word: &str) -> Option<Verdict> {
    word.trim().to_ascii_uppercase().parse().ok().filter(|verdict| *verdict != Verdict::Error)
}

/// Returns the lines outside code.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut code = false;
    text.lines().map(str::trim).filter(move |line| {
        let fence = line.starts_with("```");
        code ^= fence;
        !code && !fence
    })
}

/// Returns the last verdict line, such as `**Verdict: FAIL**`. A text may weigh several verdicts before it decides.
pub(crate) fn last_line(text: &str) -> Option<Verdict> {
    prose(text).filter_map(|line| line.strip_prefix("**Verdict:")?.strip_suffix("**").and_then(parse)).last()
}

fn findings_in(text: &str) -> Vec<String> {
    let item = |line: &str| {
        let line = line.trim_start_matches(['-', '*', ' ']);
        ["[FAIL]", "[WARN]", "[PASS]"].iter().any(|mark| line.starts_with(mark)).then(|| line.to_owned())
    };
    prose(text).filter_map(item).collect()
}

/// Returns the verdict. A PASS that contradicts its own findings does not count.
fn consistent(said: Verdict, report: Option<&Report>, mut findings: Vec<String>) -> Judgement {
    if said != Verdict::Pass {
        return Judgement { verdict: said, findings };
    }
    let mut verdict = said;
    if findings.iter().any(|finding| finding.contains("[FAIL]")) {
        return Judgement { verdict: Verdict::Fail, findings };
    }
    if let Some((checked, met)) =
        report.and_then(|report| Some((report.requirements_checked?, report.requirements_met?)))
        && met < checked
    {
        verdict = Verdict::Warn;
        findings.push(format!("[WARN] {met} of {checked} requirements are met"));
    }
    let shown = report.and_then(|report| report.evidence.as_ref()).is_some_and(|evidence| match evidence {
        serde_json::Value::Null => false,
        serde_json::Value::String(text) => !text.trim().is_empty(),
        serde_json::Value::Array(items) => !items.is_empty(),
        _ => true,
    });
    if findings.is_empty() && !shown {
        verdict = Verdict::Warn;
        findings.push("[WARN] the validator names nothing that it looked at".into());
    }
    if verdict == Verdict::Pass && findings.iter().any(|finding| finding.contains("[WARN]")) {
        verdict = Verdict::Warn;
    }
    Judgement { verdict, findings }
}

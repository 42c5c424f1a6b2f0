//! What a validator thinks of a task. Whatever is no clear PASS is none.

use serde::{Deserialize, Serialize};

use super::report::Report;
use crate::words;

words! {
    #[derive(PartialOrd, Ord)]
    pub enum Verdict ("verdict") {
        Pass = "PASS",
        Warn = "WARN",
        Fail = "FAIL",
        /// There is none: the validator crashed, ran out of time or quota, or did not say.
        Error = "ERROR",
    }
}

/// A verdict and what it stands on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Judgement {
    pub verdict: Verdict,
    pub findings: Vec<String>,
}

impl Judgement {
    /// The judgement of a session that gave no verdict.
    pub fn none() -> Self {
        Self { verdict: Verdict::Error, findings: Vec::new() }
    }
}

/// Reads the verdict out of a validator's report, else out of the last line of its message that is nothing but a verdict.
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

/// The same word for all, and nothing that only contains one.
fn parse(word: &str) -> Option<Verdict> {
    word.trim().to_ascii_uppercase().parse().ok().filter(|verdict| *verdict != Verdict::Error)
}

/// Lines outside of code.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut code = false;
    text.lines().map(str::trim).filter(move |line| {
        let fence = line.starts_with("```");
        code ^= fence;
        !code && !fence
    })
}

/// `**Verdict: FAIL**`, the last of them: a text may weigh several before it decides.
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

/// A PASS that its own findings contradict is none.
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

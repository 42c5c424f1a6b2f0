//! The lines of the report: one for each thing that was looked at.

use serde::Serialize;

use crate::ui::Colour;

/// From good to worse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ReportVerdict {
    Ok,
    Warn,
    Bad,
}

impl ReportVerdict {
    /// The word for people, and its colour.
    pub(super) fn shown(self) -> (&'static str, Colour) {
        match self {
            ReportVerdict::Ok => ("ok", Colour::Green),
            ReportVerdict::Warn => ("warn", Colour::Yellow),
            ReportVerdict::Bad => ("bad", Colour::Red),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct ReportLine {
    pub(super) area: &'static str,
    pub(super) what: String,
    pub(super) verdict: ReportVerdict,
    pub(super) says: String,
    pub(super) advice: Option<String>,
}

/// A line that is in order. `doctor::look_over` adds the area.
pub(super) fn line(what: impl Into<String>, says: impl Into<String>) -> ReportLine {
    ReportLine { area: "", what: what.into(), verdict: ReportVerdict::Ok, says: says.into(), advice: None }
}

impl ReportLine {
    pub(super) fn advise(self, advice: impl Into<String>) -> Self {
        Self { advice: Some(advice.into()), ..self }
    }

    pub(super) fn warn(self, advice: impl Into<String>) -> Self {
        Self { verdict: ReportVerdict::Warn, ..self.advise(advice) }
    }

    pub(super) fn bad(self, advice: impl Into<String>) -> Self {
        Self { verdict: ReportVerdict::Bad, ..self.advise(advice) }
    }

    /// Judges how much is left of something. What is not known is in order.
    pub(super) fn left(self, left: Option<u64>, least: u64, enough: u64, advice: &str) -> Self {
        match left {
            Some(left) if left < least => self.bad(advice),
            Some(left) if left < enough => self.warn(advice),
            _ => self,
        }
    }
}

/// Checks each line: its verdict, a part of what it says, and a part of the advice; without advice there must be none.
#[cfg(test)]
pub(super) fn assert_lines<const N: usize>(cases: [(ReportLine, ReportVerdict, &str, &str); N]) {
    for (line, verdict, says, advice) in cases {
        assert_eq!(line.verdict, verdict, "{line:#?}");
        assert!(line.says.contains(says), "{says:?} is not in {line:#?}");
        let given = line.advice.as_deref().unwrap_or_default();
        assert!(given.contains(advice) && given.is_empty() == advice.is_empty(), "{advice:?} is not in {line:#?}");
        assert!(line.verdict == ReportVerdict::Ok || line.advice.is_some(), "no advice: {line:#?}");
    }
}

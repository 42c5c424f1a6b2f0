//! What was expected of an agent, and whether it is still so. Values and words; nothing is looked at here.

use posse_agents::version::Version;
use serde::Serialize;

use crate::ui::{Colour, Ui, plain};

/// Something the manifest promises. The words are stable; programs read them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Expectation {
    Runs,
    Starts,
    TakesPrompt,
    ThinksAsProcessing,
    StreamsAsProcessing,
    EndsAsCompleted,
    AnswerIsRead,
    LeavesWhenAsked,
    AsksForPermission,
    AcceptsByKey,
    GoesOnWhenAccepted,
    DeniesByKey,
    FailsAsError,
}

impl Expectation {
    /// What is expected, for people.
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Runs => "it runs and says its version",
            Self::Starts => "it starts, and is idle when its prompt is there",
            Self::TakesPrompt => "a prompt that is sent to it reaches its model, word for word",
            Self::ThinksAsProcessing => "processing all the while its model thinks",
            Self::StreamsAsProcessing => "processing all the while an answer comes in, also when it stalls",
            Self::EndsAsCompleted => "completed when the answer is over",
            Self::AnswerIsRead => "its last answer can be read off the screen",
            Self::LeavesWhenAsked => "it leaves when it is asked to",
            Self::AsksForPermission => "waiting_user_answer when it asks whether it may run a command",
            Self::AcceptsByKey => "approve presses what allows the command, and it runs",
            Self::GoesOnWhenAccepted => "completed when the turn with the command is over",
            Self::DeniesByKey => "deny presses what refuses the command: it does not run, and the agent waits again",
            Self::FailsAsError => "error when the model refuses the request",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Verdict {
    Fits,
    Differs,
    /// It could not be found out.
    Unchecked,
}

/// What was on the screen when something differed, and how posse read it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Evidence {
    /// What posse told of the agent, in order: status and reason.
    pub(super) told: Vec<String>,
    /// The rule that the screen alone was read by, and the text it matched.
    pub(super) rule: Option<String>,
    pub(super) matched: Option<String>,
    pub(super) title: Option<String>,
    /// What the agent said of itself last.
    pub(super) signals: Vec<String>,
    /// The last rows of the screen.
    pub(super) screen: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    pub(super) expectation: Expectation,
    pub(super) verdict: Verdict,
    /// What was seen, or why nothing was.
    pub(super) seen: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) evidence: Option<Evidence>,
}

impl Finding {
    pub(super) fn fits(expectation: Expectation, seen: impl Into<String>) -> Self {
        Self { expectation, verdict: Verdict::Fits, seen: seen.into(), evidence: None }
    }

    pub(super) fn differs(expectation: Expectation, seen: impl Into<String>, evidence: Evidence) -> Self {
        Self { expectation, verdict: Verdict::Differs, seen: seen.into(), evidence: Some(evidence) }
    }

    pub(super) fn unchecked(expectation: Expectation, why: impl Into<String>) -> Self {
        Self { expectation, verdict: Verdict::Unchecked, seen: why.into(), evidence: None }
    }
}

/// Everything about one agent.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Report {
    pub(super) provider: String,
    /// Where its manifest comes from.
    pub(super) manifest: Vec<String>,
    /// The program; null when it is not installed.
    pub(super) program: Option<String>,
    pub(super) version: Option<Version>,
    /// The versions the manifest was written for.
    pub(super) known_versions: Vec<Version>,
    /// What to know about the check itself.
    pub(super) notes: Vec<String>,
    pub(super) findings: Vec<Finding>,
}

impl Report {
    pub(super) fn differs(&self) -> bool {
        self.findings.iter().any(|finding| finding.verdict == Verdict::Differs)
    }

    /// What a conversation has shown. What is known, such as how it starts, is told once, unless it is otherwise this time.
    pub(super) fn take(&mut self, findings: Vec<Finding>) {
        for finding in findings {
            let known = self.findings.iter().any(|known| known.expectation == finding.expectation);
            if !known || finding.verdict == Verdict::Differs {
                self.findings.push(finding);
            }
        }
    }

    pub(super) fn text(&self, ui: &Ui) -> String {
        let version = self.version.as_ref().map_or_else(|| "of unknown version".into(), Version::to_string);
        let mut text = match &self.program {
            Some(program) => format!("{} {version} ({program})\n", ui.paint(&self.provider, Colour::Bold)),
            None => format!("{} is not installed\n", ui.paint(&self.provider, Colour::Bold)),
        };
        for note in &self.notes {
            text += &format!("  {}\n", plain(note));
        }
        for finding in &self.findings {
            let (word, colour) = match finding.verdict {
                Verdict::Fits => ("fits     ", Colour::Green),
                Verdict::Differs => ("DIFFERS  ", Colour::Red),
                Verdict::Unchecked => ("unchecked", Colour::Yellow),
            };
            text += &format!("  {} {}\n", ui.paint(word, colour), finding.expectation.text());
            if finding.verdict != Verdict::Fits {
                text += &format!("            {}\n", plain(&finding.seen));
            }
            text += &finding.evidence.as_ref().map(|evidence| evidence.text(ui)).unwrap_or_default();
        }
        text
    }
}

impl Evidence {
    fn text(&self, ui: &Ui) -> String {
        let mut rows = vec![("told", self.told.last().map_or_else(|| "nothing".into(), |told| plain(told)))];
        if let Some(rule) = &self.rule {
            let matched = self.matched.as_ref().map(|matched| format!(", on {matched:?}"));
            rows.push(("rule", plain(&format!("{rule}{}", matched.unwrap_or_default()))));
        }
        rows.extend(self.title.iter().filter(|title| !title.is_empty()).map(|title| ("title", plain(title))));
        rows.extend(self.signals.iter().map(|signal| ("said", plain(signal))));
        let names = std::iter::once("screen").chain(std::iter::repeat(""));
        let drawn = self.screen.iter().map(|line| ui.paint(&plain(&format!("│{line}")), Colour::Dim));
        rows.extend(names.zip(drawn));
        rows.into_iter().map(|(name, value)| format!("            {name:8} {value}\n")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_is_told_with_its_evidence() {
        let evidence = Evidence {
            told: vec!["idle (rule box.idle)".into(), "processing (a prompt was submitted)".into()],
            rule: Some("seed.otherwise".into()),
            title: Some("t".into()),
            screen: vec!["Do you want to proceed?".into(), "❯ 1. Yes\x1b[2J".into()],
            ..Evidence::default()
        };
        let report = Report {
            provider: "mole".into(),
            manifest: vec!["built in".into()],
            program: Some("/bin/mole".into()),
            version: "1.2".parse().ok(),
            known_versions: Vec::new(),
            notes: Vec::new(),
            findings: vec![
                Finding::fits(Expectation::Starts, "idle"),
                Finding::differs(Expectation::AsksForPermission, "it was processing for 10 s", evidence),
                Finding::unchecked(Expectation::AcceptsByKey, "it did not come to that"),
            ],
        };
        assert!(report.differs());
        let text = report.text(&Ui::dull());
        assert!(text.starts_with("mole 1.2 (/bin/mole)\n  fits      it starts"), "{text}");
        assert!(text.contains("DIFFERS   waiting_user_answer when"), "{text}");
        for part in
            ["told     processing (a prompt", "rule     seed.otherwise", "screen   │Do you want", "│❯ 1. Yes\\u{1b}[2J"]
        {
            assert!(text.contains(part), "{part} is missing in:\n{text}");
        }
        assert!(!text.contains('\x1b') && text.contains("unchecked"), "{text}");
    }
}

//! Compares the question on the screen with the agent's report of it.
//!
//! A screen is drawn by the agent, but its text comes from a model, and any process of the user can draw over it. Some
//! agents also report their questions through a separate channel: a hook, a file of events, OSC 7501. That report is a
//! second witness. [`QuestionReports`] collects the reports of one terminal and compares them with each dialog read
//! from the screen (`compare`). The result is a [`QuestionEvidence`], and only some of its values allow an automatic
//! yes. A person may answer with any evidence, and sees it.

mod compare;
mod display;
mod reports;
mod rules;

use serde::{Deserialize, Serialize};

pub use compare::compare;
pub(crate) use compare::stands_for_others;
pub use reports::{QuestionReports, ReportEvent};
pub use rules::ReportedToolRule;
pub(crate) use rules::{input_hash, member};

use crate::audit::Hash;
use crate::status::{Source, WaitingKind};

/// The maximum size of a report's text kept for people and the audit, in bytes. The hash covers the whole input.
pub const REPORT_TEXT: usize = 64 << 10;
/// The maximum size of a caption, in bytes.
const CAPTION_TEXT: usize = 1 << 10;

/// A question as reported by the agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct QuestionReport {
    pub source: Source,
    /// Counts the reports of one terminal, so that two questions in the same words differ.
    pub number: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<WaitingKind>,
    pub tool: String,
    /// The tool's input for people: the command, or the path and the change. Truncated to [`REPORT_TEXT`].
    pub text: String,
    /// The model's description. It proves nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caption: Option<String>,
    /// The size of the whole input as JSON, and its SHA-256.
    pub input_bytes: u64,
    pub input_sha256: Hash,
    /// The parts that must be on the screen. Not stored: a report read back was compared before.
    #[serde(skip)]
    pub parts: ReportedParts,
}

/// The parts of an input that its dialog shows, reduced to visible characters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReportedParts {
    /// Shown verbatim: a command, or the content of a new file.
    pub text: Vec<String>,
    pub paths: Vec<String>,
    /// Shown as a difference: the text before and after.
    pub changes: Vec<(String, String)>,
    /// All strings of an input for whose tool there is no rule: plain, and as JSON strings.
    pub values: Vec<(String, String)>,
    /// The names that the screen may show for the tool; empty if unknown.
    pub screen_tools: Vec<String>,
    /// The input is too large to be passed on or compared.
    pub too_large: bool,
}

/// The result of comparing the question on the screen with the agent's report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum QuestionEvidence {
    /// No source reports questions of this agent. The question is completely on the screen, as far as visible.
    #[default]
    ScreenOnly,
    /// No source has the question, and the screen shows only a part of it.
    ScreenCut,
    /// The whole input is on the screen.
    Confirmed,
    /// The screen shows a part of the reported input and nothing else; the report has the rest.
    ConfirmedPart,
    /// The report and the screen differ.
    Differs(ReportDifference),
    /// This source has reported before, but not this question.
    Silent(Source),
}

/// The difference between report and screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReportDifference {
    /// One is a permission, the other a question or plan.
    #[error("the agent reports another kind of question than the one on its screen")]
    Kind,
    #[error("the agent reports another tool than the one on its screen")]
    Tool,
    /// The command, the content or the change.
    #[error("what the agent reports is not what its screen shows")]
    Input,
    #[error("the agent reports another path than the one on its screen")]
    Path,
    /// The plain yes is not the first option, as agents draw it.
    #[error("the options on the screen are not in the order in which the agent draws them")]
    Options,
    #[error("the agent reports an input that is too large to be compared with its screen")]
    TooLarge,
}

/// The reason why posse does not answer yes without a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unproven {
    #[error("the screen shows only a part of the question, and no source has the rest")]
    Cut,
    #[error("{0}")]
    Differs(ReportDifference),
    #[error("the agent's {0} reported earlier questions and does not report this one")]
    Silent(Source),
}

impl QuestionEvidence {
    /// Returns an error with the reason if an automatic yes is not allowed.
    pub fn allows_automatic_yes(self) -> Result<(), Unproven> {
        Err(match self {
            Self::ScreenOnly | Self::Confirmed | Self::ConfirmedPart => return Ok(()),
            Self::ScreenCut => Unproven::Cut,
            Self::Differs(difference) => Unproven::Differs(difference),
            Self::Silent(source) => Unproven::Silent(source),
        })
    }

    /// Returns whether a report that is still on its way can turn this into a yes.
    pub fn may_improve(self) -> bool {
        matches!(self, Self::Differs(_) | Self::Silent(_))
    }
}

/// Returns the start of a text, cut at a character boundary, and the number of omitted bytes.
fn beginning(text: &str, most: usize) -> (&str, usize) {
    let end = text.floor_char_boundary(most);
    (&text[..end], text.len() - end)
}

/// Returns the text, truncated with a mark if it is too long.
fn bounded(text: &str, most: usize) -> String {
    match beginning(text, most) {
        (text, 0) => text.to_owned(),
        (text, left) => format!("{text}\n… {left} more bytes"),
    }
}

#[cfg(test)]
mod tests;

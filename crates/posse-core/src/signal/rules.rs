//! The file format for the meaning of an agent's signals. Unknown keys are errors, as in the rules for screens.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::question::ReportedToolRule;
use crate::status::{Claim, WaitingKind};
use crate::written::Expression;

/// The meanings of an agent's reports outside its screen. Unlisted signals have no meaning.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SignalRules {
    /// The `app` names whose OSC 7501 is believed.
    pub osc_apps: Vec<String>,
    /// Titles, as regular expressions. Only titles that are never shown during work or questions are `quiet`.
    pub title: Option<StateRules<Expression>>,
    /// States of OSC 9;4: 0 none, 1 normal, 2 error, 3 indeterminate, 4 warning.
    pub progress: Option<StateRules<u8>>,
    /// Keyed by the name of the hook's event.
    pub hooks: BTreeMap<String, Means>,
    pub session_file: Option<SessionFileRules>,
    /// The appearance of the tools' inputs in dialogs.
    pub tool: Vec<ReportedToolRule>,
    /// Rules for the lines of the agent's event file, in order; the first match decides. Other lines have no meaning.
    pub events: Vec<EventRule>,
}

/// The meaning of a state, in the order of evaluation. Other states have no meaning.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, bound = "T: Deserialize<'de>")]
pub struct StateRules<T> {
    #[serde(default)]
    busy: Vec<T>,
    #[serde(default)]
    asking: Vec<T>,
    #[serde(default)]
    quiet: Vec<T>,
}

impl<T> StateRules<T> {
    pub(super) fn claim(&self, is: impl Fn(&T) -> bool) -> Claim {
        let means = [(&self.busy, Claim::Working), (&self.asking, Claim::Asking(None)), (&self.quiet, Claim::Ready)];
        let found = means.into_iter().find(|(states, _)| states.iter().any(&is));
        found.map_or(Claim::Nothing, |(_, claim)| claim)
    }
}

/// A file in which the agent keeps its state as JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionFileRules {
    /// The member with the state.
    pub field: String,
    /// Keyed by its value. Other values have no meaning.
    pub states: BTreeMap<String, Means>,
}

/// The meaning of a line in the agent's event file, where each line is a JSON value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EventRule {
    /// Members of the line and their required values. `a.b` is a member of a member.
    #[serde(rename = "if")]
    pub is: BTreeMap<String, Value>,
    /// The line has no meaning if the one before it matches this.
    pub unless_after: Option<BTreeMap<String, Value>>,
    pub means: Means,
}

/// The meaning of a signal: a word, or a word with conditions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Means {
    Word(Word),
    Rule(Rule),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Word {
    Working,
    Asking,
    Ready,
    TurnOver,
    Failed,
    Nothing,
}

/// The questions that a signal reports as answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Closes {
    /// The question of the tool that has run, or the one on the screen.
    One,
    All,
}

/// A word that depends on members of the payload, where `a.b` is a member of a member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    pub says: Word,
    /// The signal has no meaning if this member exists and is not empty.
    pub unless: Option<String>,
    /// For `asking`: the kind of question, unless `kinds` is more specific.
    pub kind: Option<WaitingKind>,
    /// For `asking`: the member with the kind, ...
    pub kind_from: Option<String>,
    /// ... and the meaning of its values.
    #[serde(default)]
    pub kinds: BTreeMap<String, WaitingKind>,
    /// For `asking`: a kind that is not in `kinds` is not a question of the agent. The last claim is withdrawn.
    #[serde(default)]
    pub known_kinds_only: bool,
    /// For `failed`: the member with the class of the error.
    pub class_from: Option<String>,
    /// The member with the name of the tool that asks, ...
    pub tool_from: Option<String>,
    /// ... and the member with the tool's whole input. For `asking`: a report of the question.
    pub input_from: Option<String>,
    /// The questions that are answered by then.
    pub closes: Option<Closes>,
}

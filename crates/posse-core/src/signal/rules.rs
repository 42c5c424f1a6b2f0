//! How it is written down what the signals of an agent mean. Unknown keys are errors, as in the rules for screens.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::question::ReportedToolRule;
use crate::status::{Claim, WaitingKind};
use crate::written::Expression;

/// Everything that decides what an agent says of itself outside of its screen. What is not mentioned means nothing.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SignalRules {
    /// OSC 7501 is believed from these, by the name they give as `app`.
    pub osc_apps: Vec<String>,
    /// Titles, as regular expressions. Only titles that are never shown while it works or asks are `quiet`.
    pub title: Option<StateRules<Expression>>,
    /// States of OSC 9;4: 0 none, 1 normal, 2 error, 3 indeterminate, 4 warning.
    pub progress: Option<StateRules<u8>>,
    /// By the name of the hook's event.
    pub hooks: BTreeMap<String, Means>,
    pub session_file: Option<SessionFileRules>,
    /// How the dialogs of its tools show what the tools are given.
    pub tool: Vec<ReportedToolRule>,
    /// Of the file into which it writes what it does; tried in this order, and the first that holds decides. Another line
    /// says nothing.
    pub events: Vec<EventRule>,
}

/// What a state means, in the order in which it is looked for. Another state says nothing.
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
    /// By its value. Another value says nothing.
    pub states: BTreeMap<String, Means>,
}

/// What a line of a file means into which the agent writes what it does, each line a value of JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EventRule {
    /// Members of the line and the values they must have. `a.b` is a member of a member.
    #[serde(rename = "if")]
    pub is: BTreeMap<String, Value>,
    /// The line says nothing if the one before it is like this.
    pub unless_after: Option<BTreeMap<String, Value>>,
    pub means: Means,
}

/// What something means: a word, or a word with conditions.
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

/// Which questions are answered when something is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Closes {
    /// That of the tool that has run, or the one on the screen.
    One,
    All,
}

/// A word that depends on what comes with it: on members of what was told, where `a.b` is a member of a member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    pub says: Word,
    /// It says nothing at all if this member is there and not empty.
    pub unless: Option<String>,
    /// For `asking`: what kind of question, unless `kinds` knows better.
    pub kind: Option<WaitingKind>,
    /// For `asking`: the member that tells the kind, ...
    pub kind_from: Option<String>,
    /// ... and what its values mean.
    #[serde(default)]
    pub kinds: BTreeMap<String, WaitingKind>,
    /// For `asking`: a kind that is not in `kinds` is no question of the agent. What was said before is taken back.
    #[serde(default)]
    pub known_kinds_only: bool,
    /// For `failed`: the member with the class of the error.
    pub class_from: Option<String>,
    /// The member with the name of the tool that a question is about, ...
    pub tool_from: Option<String>,
    /// ... and the member with all that the tool is given. For `asking`: a report of the question.
    pub input_from: Option<String>,
    /// Which questions are answered by then.
    pub closes: Option<Closes>,
}

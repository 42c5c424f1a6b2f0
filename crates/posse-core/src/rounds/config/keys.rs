//! Every key there is: where it stands in JSON, the variable that sets it, and what it may be.

use serde_json::Value;

use super::error::Wrong;
use crate::rounds::Role;
use crate::variables::boolean;

/// One key.
pub(super) struct Key {
    pub(super) path: &'static str,
    /// Without the `POSSE_` that may stand before it. None: a variable does not set it.
    pub(super) variable: Option<&'static str>,
    pub(super) kind: Kind,
}

#[derive(Clone, Copy)]
pub(super) enum Kind {
    Text,
    /// A text that may be absent; a blank one is.
    Path,
    Bool,
    /// A boolean whose variable is true only if it is exactly `1`.
    OptIn,
    Whole {
        min: u32,
        max: u32,
    },
    /// A number of which less than none is none.
    WholeOrNone,
    Role,
    Provider,
    Mode,
    Words,
}

const fn key(path: &'static str, variable: &'static str, kind: Kind) -> Key {
    Key { path, variable: Some(variable), kind }
}

const fn from(min: u32) -> Kind {
    Kind::Whole { min, max: u32::MAX }
}

pub(super) const KEYS: &[Key] = &[
    key("api", "API", Kind::Text),
    key("provider", "PROVIDER", Kind::Provider),
    // Variables called MODE and MODEL may well be somebody else's.
    Key { path: "mode", variable: None, kind: Kind::Mode },
    Key { path: "model", variable: None, kind: Kind::Path },
    key("wd", "WD", Kind::Path),
    key("prompt", "PROMPT", Kind::Text),
    key("prompt_file", "PROMPT_FILE", Kind::Path),
    key("project_test_cmd", "PROJECT_TEST_CMD", Kind::Text),
    key("start_agent", "START_AGENT", Kind::Role),
    key("cleanup_on_exit", "CLEANUP_ON_EXIT", Kind::Bool),
    key("resume", "RESUME", Kind::Bool),
    key("state_file", "STATE_FILE", Kind::Path),
    key("limits.max_rounds", "MAX_ROUNDS", from(1)),
    key("limits.max_review_cycles", "MAX_REVIEW_CYCLES", from(1)),
    key("limits.min_review_cycles_before_approval", "MIN_REVIEW_CYCLES_BEFORE_APPROVAL", from(1)),
    key("limits.poll_seconds", "POLL_SECONDS", from(0)),
    key("limits.require_review_evidence", "REQUIRE_REVIEW_EVIDENCE", Kind::Bool),
    key("limits.review_evidence_min_match", "REVIEW_EVIDENCE_MIN_MATCH", Kind::Whole { min: 0, max: 4 }),
    key("condensation.condense_cross_phase", "CONDENSE_CROSS_PHASE", Kind::Bool),
    key("condensation.max_cross_phase_lines", "MAX_CROSS_PHASE_LINES", from(1)),
    key("condensation.condense_upstream_on_repeat", "CONDENSE_UPSTREAM_ON_REPEAT", Kind::Bool),
    key("condensation.condense_explore_on_repeat", "CONDENSE_EXPLORE_ON_REPEAT", Kind::Bool),
    key("condensation.condense_review_feedback", "CONDENSE_REVIEW_FEEDBACK", Kind::Bool),
    key("condensation.max_feedback_lines", "MAX_FEEDBACK_LINES", from(1)),
    key("condensation.max_test_evidence_lines", "MAX_TEST_EVIDENCE_LINES", from(1)),
    key("handoff.strict_file_handoff", "STRICT_FILE_HANDOFF", Kind::Bool),
    key("handoff.idle_grace_seconds", "IDLE_GRACE_SECONDS", from(0)),
    key("handoff.response_timeout", "RESPONSE_TIMEOUT", from(1)),
    key("handoff.max_file_reminders", "MAX_FILE_REMINDERS", Kind::WholeOrNone),
    key("handoff.auto_accept_permissions", "AUTO_ACCEPT_PERMISSIONS", Kind::OptIn),
    key("handoff.waiting_timeout", "WAITING_TIMEOUT", from(0)),
    key("notifications.ntfy_topic", "NTFY_TOPIC", Kind::Text),
    key("notifications.ntfy_url", "NTFY_URL", Kind::Text),
    key("notifications.webhook", "WEBHOOK", Kind::Text),
    // A variable that is inherited from anywhere must not be able to run a program.
    Key { path: "notifications.command", variable: None, kind: Kind::Words },
    key("post_processing.openspec_archive", "POST_OPENSPEC_ARCHIVE", Kind::Bool),
    key("post_processing.git_commit", "POST_GIT_COMMIT", Kind::Bool),
    key("post_processing.git_commit_comment", "POST_GIT_COMMIT_COMMENT", Kind::Text),
];

/// The variable that sets the key at this path, without the `POSSE_` that may stand before it.
pub fn variable_of(path: &str) -> Option<&'static str> {
    KEYS.iter().find(|key| key.path == path)?.variable
}

/// What may be said of each role, under `agents.<role>`.
pub(super) const AGENT_KEYS: &[(&str, Kind)] =
    &[("provider", Kind::Provider), ("profile", Kind::Text), ("mode", Kind::Mode), ("model", Kind::Path)];

/// How an agent may be started.
pub(super) const MODES: [&str; 3] = ["ask", "edits", "bypass"];

impl Kind {
    /// The value if it is one of this kind, in the form in which it is kept.
    pub(super) fn check(self, value: &Value, providers: &[&str]) -> Result<Value, Wrong> {
        let wrong_type = |wanted| Err(Wrong::Type { wanted, found: type_of(value) });
        let one_of = |known: &[&str], unknown: fn(String, Vec<String>) -> Wrong| match value.as_str() {
            Some(name) if known.contains(&name) => Ok(value.clone()),
            Some(name) => Err(unknown(name.to_owned(), known.iter().map(|known| (*known).to_owned()).collect())),
            None => wrong_type("a string"),
        };
        match self {
            Kind::Text => value.as_str().map_or_else(|| wrong_type("a string"), |_| Ok(value.clone())),
            Kind::Path => match value.as_str() {
                Some(text) if text.trim().is_empty() => Ok(Value::Null),
                Some(_) => Ok(value.clone()),
                None => wrong_type("a string"),
            },
            Kind::Bool | Kind::OptIn => {
                value.as_bool().map_or_else(|| wrong_type("true or false"), |_| Ok(value.clone()))
            }
            Kind::Whole { min, max } => {
                let Some(number) = whole(value) else { return wrong_type("a whole number") };
                let within = u32::try_from(number).ok().filter(|number| (min..=max).contains(number));
                within.map(Value::from).ok_or(Wrong::Range {
                    min,
                    max: (max != u32::MAX).then_some(max),
                    found: number,
                })
            }
            Kind::WholeOrNone => {
                let Some(number) = whole(value) else { return wrong_type("a whole number") };
                Ok(Value::from(u32::try_from(number.max(0)).unwrap_or(u32::MAX)))
            }
            Kind::Role => one_of(&Role::ALL.map(Role::as_str), |name, known| Wrong::Role { name, known }),
            Kind::Provider => one_of(providers, |name, known| Wrong::Provider { name, known }),
            Kind::Mode => one_of(&MODES, |name, known| Wrong::Mode { name, known }),
            Kind::Words => match value.as_array() {
                Some(words) if words.iter().all(Value::is_string) => Ok(value.clone()),
                _ => wrong_type("a list of strings: a program and its arguments"),
            },
        }
    }

    /// Parses the value of a variable. `check` still has to look at the result.
    pub(super) fn read_variable(self, text: &str) -> Result<Value, Wrong> {
        match self {
            Kind::Bool => boolean(text).map(Value::Bool).ok_or_else(|| Wrong::Boolean(text.to_owned())),
            Kind::OptIn => Ok(Value::Bool(text == "1")),
            Kind::Whole { .. } | Kind::WholeOrNone => {
                text.trim().parse::<i64>().map(Value::from).map_err(|_| Wrong::Number(text.to_owned()))
            }
            _ => Ok(Value::String(text.to_owned())),
        }
    }
}

/// A number beyond all sense is one out of range, not none.
fn whole(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| value.as_u64().map(|_| i64::MAX))
}

pub(super) fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(number) if number.is_f64() => "a fraction",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

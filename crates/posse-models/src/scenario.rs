//! What a model says, turn by turn. The format is described in this crate's README.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

/// One conversation.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Words of the conversation's first prompt. A server with several scenarios finds the right one by them; without
    /// them any conversation fits, except those of subagents.
    pub opening: Option<String>,
    #[serde(default, rename = "turn")]
    pub turns: Vec<Turn>,
}

/// One answer: what one request gets, and every repetition of that request until it was answered to the end.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Turn {
    #[serde(default)]
    pub steps: Vec<Step>,
    /// How many tokens the request is said to have had.
    pub input_tokens: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Step {
    /// Begin the answer now, without content. Otherwise the first content begins it.
    Open,
    Text(String),
    Think(String),
    /// Any tool, called as it is.
    Tool(ToolCall),
    /// A shell command, by whatever tool the agent offers for it.
    Run(Command),
    /// A new file, by whatever tool the agent offers for it.
    Write(NewFile),
    PauseMs(u64),
    /// From here on, time between the pieces in which text, thoughts and tool inputs are sent. None at first.
    ChunkMs(u64),
    /// Go on when the test releases this gate. A gate that was released stays open.
    WaitFor(String),
    /// An HTTP error if nothing was sent yet, an error inside the stream otherwise.
    Error(Failure),
    /// Cut the connection.
    Drop(Drop),
    /// Sent as it is, for streams that are broken.
    Raw(String),
    /// End the answer here, for this reason, in the protocol's own word (`max_tokens`, `refusal` …).
    End(String),
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolCall {
    pub name: String,
    #[serde(default = "no_input")]
    pub input: Value,
}

fn no_input() -> Value {
    Value::Object(serde_json::Map::new())
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Command {
    pub command: String,
    /// Ask for more than the sandbox allows. Only Codex knows this; it is what makes it ask.
    #[serde(default)]
    pub escalated: bool,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewFile {
    pub path: String,
    pub content: String,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failure {
    pub status: u16,
    /// The protocol's usual one for this status unless given.
    pub kind: Option<String>,
    pub message: Option<String>,
    /// `now+3600` stands for the time in an hour, in seconds since 1970. Limits are told like that.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// More fields for the error's object, such as `resets_at = "now+3600"`.
    #[serde(default)]
    pub fields: BTreeMap<String, Value>,
    /// How many requests fail before the rest of the turn is played; all of them unless given.
    pub times: Option<u32>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Drop {
    /// As for errors.
    pub times: Option<u32>,
}

#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    #[error("read a scenario: {0}")]
    Read(#[from] std::io::Error),
    #[error("understand a scenario: {0}")]
    Parse(#[from] toml::de::Error),
}

impl Scenario {
    pub fn parse(text: &str) -> Result<Self, ScenarioError> {
        Ok(toml::from_str(text)?)
    }

    pub fn load(path: &Path) -> Result<Self, ScenarioError> {
        Self::parse(&std::fs::read_to_string(path)?)
    }

    /// A conversation with any opening.
    pub fn of(turns: impl IntoIterator<Item = Turn>) -> Self {
        Self { opening: None, turns: turns.into_iter().collect() }
    }
}

impl Turn {
    pub fn of(steps: impl IntoIterator<Item = Step>) -> Self {
        Self { steps: steps.into_iter().collect(), input_tokens: None }
    }
}

impl Failure {
    pub fn new(status: u16) -> Self {
        let (headers, fields) = (BTreeMap::new(), BTreeMap::new());
        Self { status, kind: None, message: None, headers, fields, times: None }
    }

    /// The headers to send, with their times filled in.
    pub(crate) fn headers_now(&self) -> Vec<(&str, String)> {
        let filled = |value: &String| moment(value).map_or_else(|| value.clone(), |seconds| seconds.to_string());
        self.headers.iter().map(|(name, value)| (name.as_str(), filled(value))).collect()
    }

    /// The error's object: these fields and the scenario's.
    pub(crate) fn object(&self, mut fields: serde_json::Map<String, Value>) -> Value {
        for (name, value) in &self.fields {
            let seconds = value.as_str().and_then(moment);
            fields.insert(name.clone(), seconds.map_or_else(|| value.clone(), Value::from));
        }
        Value::Object(fields)
    }
}

/// `now+SECONDS`
fn moment(text: &str) -> Option<u64> {
    let later: u64 = text.strip_prefix("now+")?.parse().ok()?;
    let now = std::time::UNIX_EPOCH.elapsed().map_or(0, |time| time.as_secs());
    Some(now + later)
}

impl Step {
    pub fn text(text: &str) -> Self {
        Self::Text(text.to_owned())
    }

    pub fn gate(name: &str) -> Self {
        Self::WaitFor(name.to_owned())
    }

    pub fn pause(time: Duration) -> Self {
        Self::PauseMs(time.as_millis().try_into().unwrap_or(u64::MAX))
    }

    /// An error each time, in the protocol's usual words.
    pub fn error(status: u16) -> Self {
        Self::Error(Failure::new(status))
    }
}

/// Whether something that happens this many times happens to this attempt, counted from 1.
pub(crate) fn applies(times: Option<u32>, attempt: u32) -> bool {
    times.is_none_or(|times| attempt <= times)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_can_be_written() {
        let text = r#"
            opening = "port the parser"

            [[turn]]
            input_tokens = 9000
            steps = [
              { pause_ms = 5 }, "open", { chunk_ms = 1 }, { think = "hm" }, { text = "one" }, { wait_for = "go" },
              { tool = { name = "Bash", input = { command = "ls", timeout = 5 } } }, { tool = { name = "Stop" } },
              { run = { command = "touch x", escalated = true } }, { write = { path = "a", content = "b" } },
            ]

            [[turn]]
            steps = [
              { error = { status = 529, kind = "overloaded_error", headers = { retry-after = "1" }, times = 2 } },
              { raw = "data: {" }, { drop = { times = 1 } }, { drop = {} }, { end = "max_tokens" },
            ]
        "#;
        let scenario = Scenario::parse(text).unwrap();
        assert_eq!(scenario.turns[0].steps.len(), 10);
        assert_eq!(scenario.turns[0].steps[1], Step::Open);
        let Step::Tool(call) = &scenario.turns[0].steps[6] else { panic!("{scenario:?}") };
        assert_eq!(call.input, serde_json::json!({ "command": "ls", "timeout": 5 }));
        assert_eq!(scenario.turns[1].steps[4], Step::End("max_tokens".into()));
    }

    #[test]
    fn a_mistake_is_told() {
        for text in ["turns = []", "[[turn]]\nsteps = [{ txt = '' }]", "[[turn]]\nsteps = [{ drop = { time = 1 } }]"] {
            assert!(Scenario::parse(text).is_err(), "{text}");
        }
    }
}

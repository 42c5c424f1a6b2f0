//! The steps of a turn. In a file, each step is a table with one key.

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU32;
use std::time::Duration;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, Visitor};
use serde_json::Value;

use super::ScenarioPlayer;

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScriptStep {
    /// Says something, at once or bit by bit.
    #[serde(deserialize_with = "spoken")]
    Say(Spoken),
    /// Thinks: the spinner of an agent, the reasoning of a model.
    #[serde(deserialize_with = "thought")]
    Think(Thought),
    /// Uses a tool by name.
    Tool(ToolUse),
    /// Runs a shell command, with the agent's own tool for that.
    Run(CommandUse),
    /// Writes a file. A model asks its agent to do that with the agent's own tool.
    Write(FileWrite),
    /// Fails and ends the turn.
    #[serde(deserialize_with = "failure")]
    Fail(ServiceFailure),
    /// Does nothing. The agent is busy, but nothing moves.
    #[serde(deserialize_with = "duration")]
    Pause(Duration),
    /// Opens a dialog. If the user accepts, the turn continues; otherwise the turn ends as interrupted.
    #[serde(deserialize_with = "question")]
    Ask(Box<AgentQuestion>),
    #[serde(deserialize_with = "answer")]
    Answer(AgentAnswer),
    Crash(i32),
    Exit(u8),
    /// Waits until the test releases this gate. A released gate stays open.
    WaitFor(String),
}

impl ScriptStep {
    /// Returns the name of the step and the player that it needs, unless both understand it.
    pub(super) fn needs(&self) -> Option<(&'static str, ScenarioPlayer)> {
        match self {
            ScriptStep::Ask(_) => Some(("ask", ScenarioPlayer::Agent)),
            ScriptStep::Answer(_) => Some(("answer", ScenarioPlayer::Agent)),
            ScriptStep::Crash(_) => Some(("crash", ScenarioPlayer::Agent)),
            ScriptStep::Exit(_) => Some(("exit", ScenarioPlayer::Agent)),
            ScriptStep::WaitFor(_) => Some(("wait_for", ScenarioPlayer::Model)),
            _ => None,
        }
    }

    pub fn say(text: &str) -> ScriptStep {
        ScriptStep::Say(Spoken { text: text.to_owned(), rate: None })
    }

    pub fn wait_for(gate: &str) -> ScriptStep {
        ScriptStep::WaitFor(gate.to_owned())
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spoken {
    pub text: String,
    /// Characters per second; `None` means all at once.
    pub rate: Option<NonZeroU32>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Thought {
    #[serde(rename = "for", deserialize_with = "duration")]
    pub time: Duration,
    /// The words of the thought. The agents we imitate do not show them.
    pub text: String,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolUse {
    #[serde(default = "shell_tool")]
    pub name: String,
    #[serde(default = "no_input")]
    pub input: Value,
    pub output: Option<String>,
    #[serde(default, rename = "for", deserialize_with = "duration")]
    pub time: Duration,
}

fn shell_tool() -> String {
    "Bash".to_owned()
}

impl ToolUse {
    pub fn new(name: &str, input: Value) -> ToolUse {
        ToolUse { name: name.to_owned(), input, output: None, time: Duration::ZERO }
    }

    pub(crate) fn shell(command: String, output: Option<String>, time: Duration) -> ToolUse {
        ToolUse { output, time, ..ToolUse::new(&shell_tool(), Value::String(command)) }
    }
}

fn no_input() -> Value {
    Value::Object(serde_json::Map::new())
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CommandUse {
    pub command: String,
    /// Needs a permission. Of the real agents only Codex reads this from the model's request.
    pub escalated: bool,
    pub output: Option<String>,
    #[serde(rename = "for", deserialize_with = "duration")]
    pub time: Duration,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileWrite {
    pub path: String,
    pub text: String,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ServiceFailure {
    /// The HTTP status; 500 if it is 0.
    pub status: u16,
    pub dropped: bool,
    /// The vendor's name for the error; the usual one for the status by default.
    pub kind: Option<String>,
    /// The message; the vendor's or the look's usual one by default.
    pub message: Option<String>,
    /// HTTP headers. `now+3600` stands for the time in an hour, in seconds since 1970.
    pub headers: BTreeMap<String, String>,
    /// More fields of the error object, such as `resets_at = "now+3600"`.
    pub fields: BTreeMap<String, Value>,
    /// The number of attempts that fail before the rest of the turn plays; all of them by default.
    pub times: Option<u32>,
}

impl ServiceFailure {
    pub(crate) fn http_status(&self) -> u16 {
        if self.status == 0 { 500 } else { self.status }
    }

    pub(crate) fn applies(&self, attempt: u32) -> bool {
        self.times.is_none_or(|times| attempt <= times)
    }

    /// Returns the headers to send, with their times filled in.
    pub(crate) fn headers_now(&self) -> Vec<(&str, String)> {
        let filled = |value: &String| moment(value).map_or_else(|| value.clone(), |seconds| seconds.to_string());
        self.headers.iter().map(|(name, value)| (name.as_str(), filled(value))).collect()
    }

    /// Returns the error object: these fields, overridden by those of the scenario.
    pub(crate) fn object(&self, mut fields: Value) -> Value {
        for (name, value) in &self.fields {
            let seconds = value.as_str().and_then(moment);
            fields[name] = seconds.map_or_else(|| value.clone(), Value::from);
        }
        fields
    }
}

fn moment(text: &str) -> Option<u64> {
    let later: u64 = text.strip_prefix("now+")?.parse().ok()?;
    Some(std::time::UNIX_EPOCH.elapsed().map_or(0, |time| time.as_secs()) + later)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum QuestionKind {
    Permission,
    Question,
    Startup,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentQuestion {
    pub kind: QuestionKind,
    pub text: Option<String>,
    pub command: Option<String>,
    pub detail: Option<String>,
    /// The labels; empty means those of the look.
    #[serde(default)]
    pub options: Vec<String>,
    /// The options that let the turn continue, from 1, in order of preference.
    #[serde(default, deserialize_with = "numbers")]
    pub accept: Vec<usize>,
    #[serde(default = "yes")]
    pub numbered: bool,
    /// How long before the dialog the agent reports that it is blocked (Codex: about 900 ms).
    #[serde(default, deserialize_with = "duration")]
    pub announce: Duration,
}

fn yes() -> bool {
    true
}

impl AgentQuestion {
    /// The look's own question whether a command may run.
    pub(crate) fn permission(command: String) -> AgentQuestion {
        AgentQuestion {
            kind: QuestionKind::Permission,
            text: None,
            command: Some(command),
            detail: None,
            options: Vec::new(),
            accept: vec![1, 2],
            numbered: true,
            announce: Duration::ZERO,
        }
    }

    /// Fills in the accepting options and checks all numbers.
    fn complete(mut self) -> Result<AgentQuestion, String> {
        let wrong = |why: &str| Err(why.to_owned());
        use QuestionKind::{Permission, Question, Startup};
        let count = match (self.options.len(), self.kind) {
            (0, Permission) => 3,
            (0, Startup) => 2,
            (0, Question) => return wrong("a question needs `options`"),
            (10.., _) => return wrong("at most 9 `options`: they are chosen with one digit"),
            (count, _) => count,
        };
        if self.accept.is_empty() {
            self.accept = match self.kind {
                Question => (1..=count).collect(),
                Startup => vec![1],
                // The last option refuses.
                Permission => (1..count.max(2)).collect(),
            };
        }
        match self.accept.iter().find(|number| **number > count) {
            Some(number) => wrong(&format!("`accept` is {number}, but the options are 1 to {count}")),
            None => Ok(self),
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AgentAnswer {
    pub text: Option<String>,
    pub with: Vec<AnswerOddity>,
    /// Writes the file in place, in this many pieces. With 0 a temporary file is written and renamed.
    pub pieces: u32,
    #[serde(deserialize_with = "duration")]
    pub gap: Duration,
    /// Writes the file this long after the step, even if the turn has ended by then.
    #[serde(deserialize_with = "duration")]
    pub late: Duration,
}

impl AgentAnswer {
    pub(crate) fn bytes(&self, text: &str) -> Vec<u8> {
        let crlf = self.with.contains(&AnswerOddity::Crlf);
        let mut bytes = if crlf { text.replace('\n', "\r\n") } else { text.to_owned() }.into_bytes();
        if self.with.contains(&AnswerOddity::Bom) {
            bytes.splice(..0, *b"\xef\xbb\xbf");
        }
        if self.with.contains(&AnswerOddity::Invalid) {
            bytes.extend_from_slice(b"\xff\xc3\x28\n");
        }
        bytes
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerOddity {
    Bom,
    Crlf,
    Invalid,
}

/// The longest duration, 136 years: `"forever"`.
const FOREVER: Duration = Duration::from_secs(1 << 32);

fn read_duration(text: &str) -> Result<Duration, String> {
    if text == "forever" {
        return Ok(FOREVER);
    }
    let read = text.parse::<jiff::SignedDuration>().ok().and_then(|read| Duration::try_from(read).ok());
    read.ok_or_else(|| format!("`{text}` is no duration: write a number and a unit, like \"250ms\", \"3s\" or \"2m\""))
}

pub(crate) fn duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    read_duration(&String::deserialize(deserializer)?).map_err(D::Error::custom)
}

fn spoken<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Spoken, D::Error> {
    word_or_table(deserializer, "a text, or a table { text, rate }", |text| {
        Ok(Spoken { text: text.to_owned(), rate: None })
    })
}

fn thought<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Thought, D::Error> {
    word_or_table(deserializer, "a duration, or a table { for, text }", |word| {
        Ok(Thought { time: read_duration(word)?, ..Thought::default() })
    })
}

fn failure<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ServiceFailure, D::Error> {
    word_or_table(deserializer, "a status, \"usage_limit\", \"dropped\", or a table", |word| match word {
        "dropped" => Ok(ServiceFailure { dropped: true, ..ServiceFailure::default() }),
        "usage_limit" => Ok(ServiceFailure {
            status: 429,
            kind: Some("usage_limit_reached".to_owned()),
            ..ServiceFailure::default()
        }),
        status => match status.parse() {
            Ok(status @ 400..=599) => Ok(ServiceFailure { status, ..ServiceFailure::default() }),
            _ => Err(format!("`{status}` is no failure: write 400 to 599, \"usage_limit\" or \"dropped\"")),
        },
    })
}

fn question<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Box<AgentQuestion>, D::Error> {
    AgentQuestion::deserialize(deserializer)?.complete().map(Box::new).map_err(D::Error::custom)
}

fn answer<'de, D: Deserializer<'de>>(deserializer: D) -> Result<AgentAnswer, D::Error> {
    word_or_table(deserializer, "a text, or a table", |text| {
        Ok(AgentAnswer { text: Some(text.to_owned()), ..AgentAnswer::default() })
    })
}

/// Reads a value that is a word (`"3s"`) or a table (`{ for = "3s", … }`).
pub(crate) fn word_or_table<'de, D, T>(
    deserializer: D,
    expected: &'static str,
    word: fn(&str) -> Result<T, String>,
) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    struct WordOrTable<T>(&'static str, fn(&str) -> Result<T, String>);
    impl<'de, T: Deserialize<'de>> Visitor<'de> for WordOrTable<T> {
        type Value = T;
        fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
            f.write_str(self.0)
        }
        fn visit_str<E: Error>(self, word: &str) -> Result<T, E> {
            self.1(word).map_err(E::custom)
        }
        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
            T::deserialize(MapAccessDeserializer::new(map))
        }
    }
    deserializer.deserialize_any(WordOrTable(expected, word))
}

#[derive(Deserialize)]
#[serde(untagged)]
pub(crate) enum OneOrSeveral<T> {
    One(T),
    Several(Vec<T>),
}

/// Reads `1` or `[1, 2]`; numbers count from 1.
pub(super) fn numbers<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<usize>, D::Error> {
    let numbers = match OneOrSeveral::deserialize(deserializer)? {
        OneOrSeveral::One(number) => vec![number],
        OneOrSeveral::Several(numbers) => numbers,
    };
    if numbers.contains(&0) { Err(D::Error::custom("numbers count from 1")) } else { Ok(numbers) }
}

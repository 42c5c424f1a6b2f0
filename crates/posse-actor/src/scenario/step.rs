//! The steps a turn is made of. In a file each is a table with one key.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde::de::{Deserializer, Error, Visitor};

use super::answer::{Answer, Failure};
use super::value::{self, HowLong, unescape, word_or_table};

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// A greeting at the top.
    Splash(String),
    /// The spinner, for a time.
    Think(Think),
    /// An answer that appears bit by bit, without a spinner.
    Stream(Stream),
    /// An answer at once.
    Say(String),
    /// A tool call that runs for a time.
    Tool(Tool),
    /// A dialog. Accepted: the turn goes on. Refused: the turn ends interrupted.
    Ask(Ask),
    /// A file.
    Write(Write),
    /// The answer the loop asked for.
    Answer(Answer),
    /// From now on the name in the window title.
    Title(String),
    /// An OSC, its payload as it is.
    Osc(String),
    /// So many bells.
    Bell(u8),
    /// Bytes as they are, wherever the cursor is; the actor takes no note of what they draw.
    #[serde(deserialize_with = "bytes")]
    Print(Arc<[u8]>),
    /// An error row; the turn ends.
    Error(String),
    /// The error row of the look for this; the turn ends.
    Fail(Failure),
    /// Death by a signal, without tidying up.
    #[serde(deserialize_with = "signal")]
    Crash(i32),
    /// An orderly exit with a code.
    Exit(u8),
    Repeat(Repeat),
    /// Output as fast as it is taken.
    Flood(Flood),
    /// Nothing at all, for a time: no spinner, no animation.
    #[serde(deserialize_with = "value::duration")]
    Pause(Duration),
}

impl Step {
    /// Whether playing this takes time or waits for someone. A loop without such a step would never let
    /// go of the processor.
    fn takes_time(&self) -> bool {
        match self {
            Step::Think(think) => think.time != HowLong::For(Duration::ZERO),
            Step::Pause(time) => !time.is_zero(),
            Step::Tool(tool) => tool.time != HowLong::For(Duration::ZERO),
            Step::Stream(stream) => !stream.text.is_empty(),
            Step::Repeat(repeat) => repeat.steps.iter().any(Step::takes_time),
            Step::Ask(_) | Step::Flood(_) | Step::Crash(_) | Step::Exit(_) | Step::Error(_) | Step::Fail(_) => true,
            _ => false,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Think {
    pub time: HowLong,
    /// The word in the spinner row, without its dots.
    pub verb: Option<String>,
    /// The whole text of the spinner row instead, such as a notice of a retry.
    pub row: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ThinkTable {
    r#for: HowLong,
    verb: Option<String>,
    row: Option<String>,
}

impl From<ThinkTable> for Think {
    fn from(table: ThinkTable) -> Think {
        Think { time: table.r#for, verb: table.verb, row: table.row }
    }
}

impl FromStr for Think {
    type Err = String;
    fn from_str(word: &str) -> Result<Think, String> {
        Ok(Think { time: word.parse()?, verb: None, row: None })
    }
}

impl<'de> Deserialize<'de> for Think {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        word_or_table::<_, _, ThinkTable>(deserializer, "a duration, or a table { for, verb, row }")
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stream {
    pub text: String,
    /// Characters per second.
    pub rate: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StreamTable {
    text: String,
    #[serde(default = "reading_pace", deserialize_with = "at_least_one")]
    rate: u32,
}

/// About what a model streams.
fn reading_pace() -> u32 {
    120
}

impl From<StreamTable> for Stream {
    fn from(table: StreamTable) -> Stream {
        Stream { text: table.text, rate: table.rate }
    }
}

impl FromStr for Stream {
    type Err = std::convert::Infallible;
    fn from_str(text: &str) -> Result<Stream, Self::Err> {
        Ok(Stream { text: text.to_owned(), rate: reading_pace() })
    }
}

impl<'de> Deserialize<'de> for Stream {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        word_or_table::<_, _, StreamTable>(deserializer, "a text, or a table { text, rate }")
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tool {
    #[serde(default = "shell_tool")]
    pub name: String,
    #[serde(default)]
    pub input: String,
    #[serde(default)]
    pub output: Option<String>,
    #[serde(rename = "for", default = "at_once")]
    pub time: HowLong,
}

fn shell_tool() -> String {
    "Bash".to_owned()
}

fn at_once() -> HowLong {
    HowLong::For(Duration::ZERO)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AskKind {
    Permission,
    Question,
    Plan,
    Startup,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "AskTable")]
pub struct Ask {
    pub kind: AskKind,
    pub title: Option<String>,
    pub text: Option<String>,
    /// The tool that asks, for the row that tells of a refusal.
    pub tool: String,
    pub command: Option<String>,
    pub detail: Option<String>,
    /// The labels; empty means the look's own.
    pub options: Vec<String>,
    /// The options that let the turn go on, from 1, in order of preference.
    pub accept: Vec<usize>,
    /// The option under the cursor at first, from 1.
    pub cursor: usize,
    /// Without numbers digits do nothing.
    pub numbered: bool,
    pub footer: Option<String>,
    /// How long before the dialog is drawn the agent says that it waits.
    pub announce: Duration,
}

impl Ask {
    /// The look's own question whether a command may run.
    pub(crate) fn permission(command: String) -> Ask {
        Ask {
            kind: AskKind::Permission,
            title: None,
            text: None,
            tool: shell_tool(),
            command: Some(command),
            detail: None,
            options: Vec::new(),
            accept: vec![1, 2],
            cursor: first(),
            numbered: true,
            footer: None,
            announce: Duration::ZERO,
        }
    }
}

impl AskKind {
    /// As the file, the log and OSC 7501 write it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            AskKind::Permission => "permission",
            AskKind::Question => "question",
            AskKind::Plan => "plan",
            AskKind::Startup => "startup",
        }
    }

    /// How many options there are if the file names none. Every look has labels for so many.
    pub(crate) fn usual_options(self) -> Option<usize> {
        match self {
            AskKind::Permission | AskKind::Plan => Some(3),
            AskKind::Startup => Some(2),
            AskKind::Question => None,
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AskTable {
    kind: AskKind,
    title: Option<String>,
    text: Option<String>,
    #[serde(default = "shell_tool")]
    tool: String,
    command: Option<String>,
    detail: Option<String>,
    #[serde(default)]
    options: Vec<String>,
    accept: Option<OneOrMore>,
    #[serde(default = "first")]
    cursor: usize,
    #[serde(default = "yes")]
    numbered: bool,
    footer: Option<String>,
    #[serde(default, deserialize_with = "value::duration")]
    announce: Duration,
}

fn first() -> usize {
    1
}

fn yes() -> bool {
    true
}

impl TryFrom<AskTable> for Ask {
    type Error = String;
    fn try_from(table: AskTable) -> Result<Ask, String> {
        let count = match (table.options.len(), table.kind.usual_options()) {
            (0, Some(usual)) => usual,
            (0, None) => return Err("a question needs `options`".to_owned()),
            (10.., _) => return Err("at most 9 `options`: they are chosen with one digit".to_owned()),
            (count, _) => count,
        };
        let accept = match (table.accept, table.kind) {
            (Some(OneOrMore(accept)), _) => accept,
            (None, AskKind::Question) => (1..=count).collect(),
            (None, AskKind::Startup) => vec![1],
            // The last option is the one that refuses.
            (None, AskKind::Permission | AskKind::Plan) => (1..count.max(2)).collect(),
        };
        for (key, number) in accept.iter().map(|n| ("accept", *n)).chain([("cursor", table.cursor)]) {
            if !(1..=count).contains(&number) {
                return Err(format!("`{key}` is {number}, but the options are 1 to {count}"));
            }
        }
        Ok(Ask {
            kind: table.kind,
            title: table.title,
            text: table.text,
            tool: table.tool,
            command: table.command,
            detail: table.detail,
            options: table.options,
            accept,
            cursor: table.cursor,
            numbered: table.numbered,
            footer: table.footer,
            announce: table.announce,
        })
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Write {
    pub path: String,
    pub text: String,
    #[serde(default)]
    pub how: WriteHow,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WriteHow {
    /// Beside it first, then renamed into place: seen whole or not at all.
    #[default]
    Rename,
    /// Truncated and written: a reader may see it empty or half.
    Plain,
    Append,
    /// No file at all: a folder of that name.
    Directory,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "RepeatTable")]
pub struct Repeat {
    pub times: Times,
    pub steps: Arc<[Step]>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Times {
    Count(u32),
    Forever,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RepeatTable {
    times: Times,
    steps: Vec<Step>,
}

impl TryFrom<RepeatTable> for Repeat {
    type Error = &'static str;
    fn try_from(table: RepeatTable) -> Result<Repeat, Self::Error> {
        if table.times == Times::Forever && !table.steps.iter().any(Step::takes_time) {
            return Err("repeating forever needs a step that takes time, such as `pause`");
        }
        Ok(Repeat { times: table.times, steps: table.steps.into() })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Flood {
    Lines(u64),
    Bytes(u64),
}

fn bytes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<[u8]>, D::Error> {
    unescape(&String::deserialize(deserializer)?).map(Arc::from).map_err(D::Error::custom)
}

fn signal<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i32, D::Error> {
    match i32::deserialize(deserializer)? {
        number @ 1..=31 => Ok(number),
        other => Err(D::Error::custom(format!("{other} is no signal: choose 1 to 31, such as 9 or 11"))),
    }
}

fn at_least_one<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    match u32::deserialize(deserializer)? {
        0 => Err(D::Error::custom("a rate of 0 would never end: choose 1 or more")),
        rate => Ok(rate),
    }
}

impl<'de> Deserialize<'de> for Times {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct CountOrForever;
        impl Visitor<'_> for CountOrForever {
            type Value = Times;
            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a count or \"forever\"")
            }
            fn visit_i64<E: Error>(self, count: i64) -> Result<Times, E> {
                u32::try_from(count).map(Times::Count).map_err(|_| E::custom("a count is 0 or more"))
            }
            fn visit_str<E: Error>(self, word: &str) -> Result<Times, E> {
                if word == "forever" {
                    Ok(Times::Forever)
                } else {
                    Err(E::custom(format!("`{word}` is no count: write a number or \"forever\"")))
                }
            }
        }
        deserializer.deserialize_any(CountOrForever)
    }
}

/// `accept = 1` or `accept = [1, 2]`, and so `nth`.
pub(super) struct OneOrMore(pub(super) Vec<usize>);

impl<'de> Deserialize<'de> for OneOrMore {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Numbers;
        impl<'de> Visitor<'de> for Numbers {
            type Value = OneOrMore;
            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a number, or a list of them")
            }
            fn visit_i64<E: Error>(self, number: i64) -> Result<OneOrMore, E> {
                usize::try_from(number).map(|number| OneOrMore(vec![number])).map_err(E::custom)
            }
            fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut seq: A) -> Result<OneOrMore, A::Error> {
                let mut numbers = Vec::new();
                while let Some(number) = seq.next_element()? {
                    numbers.push(number);
                }
                Ok(OneOrMore(numbers))
            }
        }
        deserializer.deserialize_any(Numbers)
    }
}

//! What is to be played: the data model of a scenario file, and reading it.
//!
//! Everything that can be wrong in a file is found here, with its line; the stage plays what it is given.

mod answer;
mod step;
mod value;

use std::path::PathBuf;
use std::time::Duration;

use posse_core::nearest::nearest;
use serde::Deserialize;
use serde::de::IgnoredAny;
use toml::Spanned;

use crate::look::Look;
use crate::rounds::TurnKey;

pub use answer::{Answer, Failure, LoopPlay, Oddity, PlayKind, Verdict};
use step::OneOrMore;
pub use step::{Ask, AskKind, Flood, Repeat, Step, Stream, Think, Times, Tool, Write, WriteHow};
pub use value::HowLong;

/// A whole scenario. `README.md` of this crate documents the file format.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    pub look: Look,
    /// Draw on the alternate screen, with the input at the bottom.
    #[serde(default)]
    pub alternate: bool,
    /// The name in the window title; the look has a default.
    #[serde(default)]
    pub name: Option<String>,
    /// The directory shown where the look shows one.
    #[serde(default = "default_directory")]
    pub directory: String,
    /// What the agent says of itself out of band; the look has a default.
    #[serde(default)]
    pub osc: Option<Vec<SelfReport>>,
    #[serde(default)]
    pub busy_title: BusyTitle,
    /// Frames per second of everything that moves.
    #[serde(default = "default_fps", deserialize_with = "value::fps")]
    pub fps: u32,
    /// The row that closes a turn, with `{verb}` and `{time}`; the look has a default.
    #[serde(default)]
    pub closing: Option<String>,
    /// A prompt that submits itself as soon as the agent is ready.
    #[serde(default)]
    pub auto_prompt: Option<String>,
    #[serde(default)]
    pub play: PlayKind,
    #[serde(default, rename = "loop")]
    pub loop_play: LoopPlay,
    /// Where to append one JSON line per thing that happened.
    #[serde(default)]
    pub log: Option<PathBuf>,

    /// Ignore an Enter that comes within 100 ms of the first input box.
    #[serde(default)]
    pub swallow_first_enter: bool,
    /// Drop keys for so long after a dialog is drawn.
    #[serde(default, rename = "dialog_deaf_ms", deserialize_with = "value::milliseconds")]
    pub dialog_deaf: Duration,
    /// Whether `y` accepts a dialog (and `n` refuses); the look has a default.
    #[serde(default)]
    pub y_accepts: Option<bool>,
    /// An Enter so soon after a typed character is taken for part of a paste and becomes a line break.
    #[serde(default, rename = "burst_guard_ms", deserialize_with = "value::milliseconds")]
    pub burst_guard: Duration,
    #[serde(default)]
    pub ctrl_u: CtrlU,
    /// Pastes longer than this many characters are shown as a label; 0 is never; the look has a default.
    #[serde(default)]
    pub fold_paste: Option<usize>,

    /// Played before the agent is ready.
    #[serde(default)]
    pub start: Vec<Step>,
    #[serde(default, rename = "turn")]
    pub turns: Vec<Turn>,
}

/// What is played when a prompt is submitted.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(try_from = "TurnTable")]
pub struct Turn {
    /// Play this turn for every prompt that contains this text.
    pub on: Option<String>,
    /// In the loop: for prompts that ask for this.
    pub key: Option<TurnKey>,
    /// In the loop: for the prompts with these numbers among those that ask for the same, from 1. Empty is all.
    pub nth: Vec<usize>,
    /// The prompt is taken and nothing comes of it.
    pub ignore: bool,
    pub steps: Vec<Step>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TurnTable {
    on: Option<String>,
    key: Option<TurnKey>,
    nth: Option<OneOrMore>,
    #[serde(default)]
    ignore: bool,
    steps: Option<Vec<Step>>,
}

impl TryFrom<TurnTable> for Turn {
    type Error = &'static str;
    fn try_from(table: TurnTable) -> Result<Turn, Self::Error> {
        let nth = table.nth.map(|OneOrMore(nth)| nth).unwrap_or_default();
        if nth.contains(&0) {
            return Err("`nth` counts from 1");
        }
        let steps = match (table.steps, table.ignore) {
            (Some(_), true) => return Err("a turn that is ignored has no `steps`"),
            (None, false) => return Err("missing field `steps`; for a prompt that nothing comes of, `ignore = true`"),
            (steps, _) => steps.unwrap_or_default(),
        };
        Ok(Turn { on: table.on, key: table.key, nth, ignore: table.ignore, steps })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum SelfReport {
    /// The agent's state by OSC 7501.
    #[serde(rename = "7501")]
    State,
    /// Progress by OSC 9;4.
    #[serde(rename = "9;4")]
    Progress,
    /// The window title.
    #[serde(rename = "title")]
    Title,
}

/// Which glyphs stand in the title of a busy Claude; it changed between versions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BusyTitle {
    #[default]
    Braille,
    Circle,
}

/// What Ctrl-U removes; it changed between versions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CtrlU {
    #[default]
    All,
    /// The last line of the draft.
    Line,
}

/// Why a scenario cannot be played.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message}{}", hint.as_deref().map(|hint| format!(" ({hint})")).unwrap_or_default())]
pub struct ScenarioError {
    pub line: usize,
    pub column: usize,
    pub message: String,
    pub hint: Option<String>,
}

impl Scenario {
    /// # Errors
    /// If the text is no TOML, or names a thing we do not know, or asks for something impossible.
    pub fn parse(text: &str) -> Result<Scenario, ScenarioError> {
        let wrong = |at: usize, message: &str| {
            let (line, column) = position(text, at);
            ScenarioError { line, column, message: message.to_owned(), hint: hint(message) }
        };
        let scenario: Scenario =
            toml::from_str(text).map_err(|error| wrong(error.span().map_or(0, |span| span.start), error.message()))?;
        if scenario.play != PlayKind::Loop {
            let places: Places = toml::from_str(text).unwrap_or_default();
            if let Some(at) = places.of_the_loop() {
                return Err(wrong(at, "this is for agents of the loop: add `play = \"loop\"`"));
            }
        }
        Ok(scenario)
    }

    /// The turn of the loop for a prompt; `asked` is what it asks for, and which time that is. The first that fits
    /// in all it says.
    pub(crate) fn loop_turn_for(&self, prompt: &str, asked: Option<(TurnKey, u32)>) -> Option<&Turn> {
        self.turns.iter().find(|turn| {
            let nth = asked.and_then(|(_, nth)| usize::try_from(nth).ok());
            turn.on.as_ref().is_none_or(|on| prompt.contains(on))
                && turn.key.is_none_or(|key| asked.is_some_and(|(asked, _)| asked == key))
                && (turn.nth.is_empty() || nth.is_some_and(|nth| turn.nth.contains(&nth)))
        })
    }

    /// The index of the turn for a prompt, when `in_order` turns without `on` were played before.
    /// None means that the scenario has nothing to say to it.
    pub(crate) fn turn_for(&self, prompt: &str, in_order: usize) -> Option<usize> {
        let matching = self.turns.iter().position(|turn| turn.on.as_ref().is_some_and(|on| prompt.contains(on)));
        matching.or_else(|| {
            let plain = || self.turns.iter().enumerate().filter(|(_, turn)| turn.on.is_none()).map(|(at, _)| at);
            plain().nth(in_order).or_else(|| plain().next_back())
        })
    }
}

/// Where in a file the things stand that only make sense in the loop.
#[derive(Default, Deserialize)]
struct Places {
    #[serde(rename = "loop")]
    loop_play: Option<Spanned<IgnoredAny>>,
    #[serde(default)]
    turn: Vec<TurnPlaces>,
}

#[derive(Deserialize)]
struct TurnPlaces {
    key: Option<Spanned<IgnoredAny>>,
    nth: Option<Spanned<IgnoredAny>>,
}

impl Places {
    fn of_the_loop(&self) -> Option<usize> {
        let turns = self.turn.iter().flat_map(|turn| [&turn.key, &turn.nth]);
        [&self.loop_play].into_iter().chain(turns).flatten().map(|place| place.span().start).min()
    }
}

fn default_directory() -> String {
    "/project".to_owned()
}

/// The spinners we imitate move about ten times a second.
fn default_fps() -> u32 {
    10
}

/// Line and column of a byte offset, both from 1, columns in characters.
fn position(text: &str, offset: usize) -> (usize, usize) {
    let mut end = offset.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let before = &text[..end];
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}

/// A suggestion, if the message names an unknown word and the words it might have been: serde puts them
/// all into backticks, the unknown one first.
fn hint(message: &str) -> Option<String> {
    if !message.starts_with("unknown ") {
        return None;
    }
    let mut words = message.split('`').skip(1).step_by(2);
    let unknown = words.next()?;
    nearest(unknown, words).map(|nearest| format!("did you mean `{nearest}`?"))
}

#[cfg(test)]
mod tests;

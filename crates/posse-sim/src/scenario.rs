//! The scenario language: the turns of an agent or a model, as TOML. README.md documents the format.
//!
//! A scripted agent plays a [`Scenario`] on a screen ([`crate::agent`]), and a scripted model over HTTP to a real agent
//! ([`crate::model`]). Both understand the same steps, except for a few that need a screen or a connection.

mod step;

use std::path::PathBuf;
use std::time::Duration;

use posse_core::review_loop::Key;
use serde::Deserialize;

pub use step::{
    AgentAnswer, AgentQuestion, AnswerOddity, CommandUse, FileWrite, QuestionKind, ScriptStep, ServiceFailure, Spoken,
    Thought, ToolUse,
};
#[cfg(feature = "testing")]
pub(crate) use step::{OneOrSeveral, duration, word_or_table};

/// A conversation, and the behaviour of its agent.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Scenario {
    /// The agent that the scripted agent imitates.
    pub look: AgentLook,
    /// Draws on the alternate screen.
    pub alternate: bool,
    /// Reports nothing about itself: neither its state by OSC 7501 nor a title.
    pub silent: bool,
    /// A prompt that submits itself as soon as the agent is ready.
    pub auto_prompt: Option<String>,
    pub play: PlayKind,
    #[serde(rename = "loop")]
    pub review_loop: LoopPlay,
    /// The file that gets one JSON line per record.
    pub log: Option<PathBuf>,
    /// Time during which a new dialog ignores keys (Claude Code 2.1.325: about 200 ms).
    #[serde(deserialize_with = "step::duration")]
    pub dialog_deaf: Duration,
    /// Time after a typed character in which an Enter becomes a line break (Codex: about 100 ms).
    #[serde(deserialize_with = "step::duration")]
    pub burst_guard: Duration,
    /// Steps played before the agent is ready.
    pub start: Vec<ScriptStep>,
    /// Words of the first prompt. A model server with several scenarios selects the scenario by them. A scenario without
    /// an opening fits every conversation except those of subagents.
    pub opening: Option<String>,
    #[serde(rename = "turn")]
    pub turns: Vec<ScriptTurn>,
}

/// The steps played for one prompt, or for one request to the model.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ScriptTurn {
    /// Plays only for prompts that contain this text.
    pub on: Option<String>,
    /// Plays only for prompts of the review loop that ask for this answer.
    pub key: Option<Key>,
    /// Plays only for these prompts among those that ask for the same answer, counted from 1. Empty means all.
    #[serde(deserialize_with = "step::numbers")]
    pub nth: Vec<usize>,
    /// Accepts the prompt and does nothing.
    pub ignore: bool,
    pub steps: Vec<ScriptStep>,
}

/// The agent that a scripted agent looks like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentLook {
    #[default]
    Claude,
    Codex,
}

/// The reaction of a scripted agent to prompts for which the scenario has no turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlayKind {
    /// Repeats the prompt.
    #[default]
    Script,
    /// Answers as a role of the review loop.
    Loop,
}

/// The behaviour of an agent of the review loop in turns that the scenario does not describe.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LoopPlay {
    #[serde(deserialize_with = "step::duration")]
    pub think: Duration,
    /// The number of permissions it asks for before it answers.
    pub permissions: u32,
    /// The number of reviews that say REVISE before one approves.
    pub revisions: u32,
    /// The number of tests that FAIL before one passes.
    pub failures: u32,
    /// The directory that counts turns, so that a replacement agent continues the count.
    pub state_dir: Option<PathBuf>,
}

impl Default for LoopPlay {
    fn default() -> LoopPlay {
        // The loop requires two reviews by default.
        LoopPlay { think: Duration::ZERO, permissions: 0, revisions: 1, failures: 0, state_dir: None }
    }
}

/// The player of a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScenarioPlayer {
    Agent,
    Model,
}

/// The reason a scenario cannot be played.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScenarioError {
    #[error("{0}")]
    Text(#[from] toml::de::Error),
    #[error("turn {turn}, step {step}: a scripted {} cannot play `{name}`", match player {
        ScenarioPlayer::Agent => "agent",
        ScenarioPlayer::Model => "model",
    })]
    Player { turn: usize, step: usize, name: &'static str, player: ScenarioPlayer },
}

impl Scenario {
    /// # Errors
    /// If the text is not TOML, has unknown names, or contains an impossible value.
    pub fn parse(text: &str) -> Result<Scenario, ScenarioError> {
        Ok(toml::from_str(text)?)
    }

    /// Checks that this player understands every step of the turns.
    ///
    /// # Errors
    /// The first step that needs another player.
    pub fn check_for(&self, player: ScenarioPlayer) -> Result<(), ScenarioError> {
        for (turn, steps) in self.turns.iter().enumerate() {
            for (step, one) in steps.steps.iter().enumerate() {
                if let Some((name, _)) = one.needs().filter(|(_, needed)| *needed != player) {
                    return Err(ScenarioError::Player { turn: turn + 1, step: step + 1, name, player });
                }
            }
        }
        Ok(())
    }

    /// Selects the turn for a prompt. A turn with conditions plays if all of them hold; otherwise turns without
    /// conditions play in order, and the last one repeats. `asked` is what the prompt asks for in the review loop, and how
    /// often it was asked for; `in_order` is the number of unconditional turns played before.
    pub(crate) fn turn_for(&self, prompt: &str, asked: Option<(Key, u32)>, in_order: usize) -> Option<&ScriptTurn> {
        let nth = asked.and_then(|(_, nth)| usize::try_from(nth).ok());
        let fits = |turn: &&ScriptTurn| {
            turn.is_conditional()
                && turn.on.as_ref().is_none_or(|on| prompt.contains(on))
                && turn.key.is_none_or(|wanted| asked.is_some_and(|(key, _)| key == wanted))
                && (turn.nth.is_empty() || nth.is_some_and(|nth| turn.nth.contains(&nth)))
        };
        let mut plain = self.turns.iter().filter(|turn| !turn.is_conditional());
        self.turns.iter().find(fits).or_else(|| plain.clone().nth(in_order).or_else(|| plain.next_back()))
    }

    /// A conversation with any opening.
    pub fn of(turns: impl IntoIterator<Item = ScriptTurn>) -> Scenario {
        Scenario { turns: turns.into_iter().collect(), ..Scenario::default() }
    }
}

impl ScriptTurn {
    pub fn of(steps: impl IntoIterator<Item = ScriptStep>) -> ScriptTurn {
        ScriptTurn { steps: steps.into_iter().collect(), ..ScriptTurn::default() }
    }

    pub(crate) fn is_conditional(&self) -> bool {
        self.on.is_some() || self.key.is_some() || !self.nth.is_empty()
    }
}

#[cfg(test)]
mod tests;

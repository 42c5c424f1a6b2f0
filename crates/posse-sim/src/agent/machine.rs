//! The scripted agent as a value: input and time go in, effects come out. It has no terminal, file or clock.
//!
//! `play` goes through the steps of a turn, `input` handles keys, and this file holds the state and draws it. After
//! every input the whole picture is made again and the painter finds the difference, so no transition can forget to
//! update the screen.

mod draft;
mod input;
mod play;
mod report;
mod review_loop;
mod screen;

use std::path::PathBuf;
use std::time::Duration;

use posse_core::time::Mono;

use crate::agent::keys::{Decoder, ESCAPE_WAIT};
use crate::agent::look::Mood;
use crate::agent::paint::Painter;
use crate::agent::record::AgentRecord;
use crate::agent::review_loop::Tally;
use crate::agent::rows::ScreenSize;
use crate::agent::transcript::Transcript;
use crate::scenario::Scenario;

use draft::{PromptDraft, PromptMessage};
use play::{PlayPart, TurnPlay};
use report::Reporter;
use review_loop::{DelayedEffect, LoopMemory};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AgentInput<'a> {
    /// Bytes from the terminal, cut anywhere.
    Bytes(&'a [u8]),
    Resize(ScreenSize),
    /// Time has passed. Late or extra ticks are harmless.
    Tick,
    /// The process got a signal, or its terminal is gone (1).
    Signal(i32),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AgentEffect {
    /// The escape bytes that draw a frame.
    Paint(String),
    Title(String),
    /// An OSC with this payload.
    Osc(String),
    Raw(String),
    /// Writes a temporary file and renames it.
    Write {
        path: PathBuf,
        bytes: Vec<u8>,
    },
    /// Writes a piece of a file in place. The first piece empties the file. The file stays open until the
    /// last piece, even if someone moves it.
    Piece {
        path: PathBuf,
        bytes: Vec<u8>,
        last: bool,
    },
    Count(PathBuf),
    Log(AgentRecord),
    Exit(i32),
    Kill(i32),
}

impl AgentEffect {
    /// Returns the bytes to write to the terminal, if this effect has any.
    pub(crate) fn bytes(&self) -> Option<Vec<u8>> {
        match self {
            AgentEffect::Paint(text) | AgentEffect::Raw(text) => Some(text.clone().into_bytes()),
            AgentEffect::Title(title) => {
                let title: String = title.chars().filter(|c| !c.is_control()).collect();
                Some(format!("\x1b]0;{title}\x07").into_bytes())
            }
            AgentEffect::Osc(payload) => Some(format!("\x1b]{payload}\x1b\\").into_bytes()),
            _ => None,
        }
    }
}

/// The time between two frames of spinners and titles, as in the agents we imitate.
const FRAME_TIME: Duration = Duration::from_millis(100);

#[derive(Debug, Default)]
pub(crate) struct ScriptedAgent {
    scenario: Scenario,
    size: ScreenSize,
    opened: Mono,
    keys: Decoder,
    escape_due: Option<Mono>,
    transcript: Transcript,
    painter: Painter,
    reporter: Reporter,
    draft: PromptDraft,
    queue: Vec<PromptMessage>,
    mood: Mood,
    /// `None` while the agent waits for a prompt.
    play: Option<TurnPlay>,
    /// Whether the input box is shown.
    ready: bool,
    typed: Option<Mono>,
    turns_started: u32,
    turns_in_order: usize,
    memory: LoopMemory,
    later: Vec<DelayedEffect>,
    /// Whether more steps are due at once, after a look at the input.
    busy_now: bool,
    /// The last effect, if the agent ends.
    ending: Option<AgentEffect>,
    over: bool,
    records: Vec<AgentRecord>,
    effects: Vec<AgentEffect>,
    wake: Option<Mono>,
}

impl ScriptedAgent {
    /// Starts the agent. `tally` counts the turns that its predecessors of the review loop played.
    pub(crate) fn open(
        scenario: Scenario,
        tally: Tally,
        size: ScreenSize,
        now: Mono,
    ) -> (ScriptedAgent, Vec<AgentEffect>) {
        let mut agent = ScriptedAgent {
            size,
            opened: now,
            transcript: Transcript::new(scenario.look, size),
            painter: Painter::new(scenario.alternate),
            reporter: Reporter::new(&scenario),
            play: Some(TurnPlay::new(PlayPart::Start, scenario.start.clone(), now)),
            memory: LoopMemory::new(tally),
            scenario,
            ..ScriptedAgent::default()
        };
        let alternate = if agent.scenario.alternate { "\x1b[?1049h" } else { "" };
        agent.effects.push(AgentEffect::Paint(format!("{alternate}\x1b[?2004h")));
        let effects = agent.conclude(now);
        (agent, effects)
    }

    /// Handles an input. The caller carries out the effects in order.
    pub(crate) fn handle(&mut self, input: AgentInput<'_>, now: Mono) -> Vec<AgentEffect> {
        if self.over {
            return Vec::new();
        }
        if self.escape_due.is_some_and(|due| due <= now) {
            self.escape_due = None;
            let keys = self.keys.flush();
            self.take_keys(keys, now);
        }
        self.run_due_effects(now);
        match input {
            AgentInput::Bytes(bytes) => {
                let keys = self.keys.feed(bytes);
                self.escape_due = self.keys.is_waiting().then_some(now + ESCAPE_WAIT);
                self.take_keys(keys, now);
            }
            AgentInput::Resize(size) => {
                if size != self.size {
                    self.size = size;
                    self.transcript.resize(size);
                    self.painter.clear();
                }
            }
            AgentInput::Tick => {}
            AgentInput::Signal(signal) => self.ending = Some(AgentEffect::Exit(128 + signal)),
        }
        self.conclude(now)
    }

    /// Returns when the agent needs a tick. `None` while nothing moves.
    pub(crate) fn deadline(&self) -> Option<Mono> {
        self.wake
    }

    fn conclude(&mut self, now: Mono) -> Vec<AgentEffect> {
        if self.ending.is_none() {
            self.advance(now);
        }
        self.show(now);
        if let Some(ending) = self.ending.clone() {
            if let AgentEffect::Exit(_) = ending {
                self.effects.extend(self.reporter.farewell());
                self.effects.push(AgentEffect::Paint(format!("{}\x1b[?2004l", self.painter.leave())));
            }
            self.effects.push(ending);
            self.over = true;
        }
        self.wake = self.next_wake(now);
        std::mem::take(&mut self.effects)
    }

    fn next_wake(&self, now: Mono) -> Option<Mono> {
        if self.over {
            return None;
        }
        let step = self.play.as_ref().and_then(|play| play.act.due(now));
        let at_once = self.busy_now.then_some(now);
        let later = self.later.iter().map(|later| later.due).min();
        [step, at_once, self.escape_due, later].into_iter().flatten().min()
    }

    /// Draws the state, reports changes out of band, then logs: a record describes what is already visible.
    fn show(&mut self, now: Mono) {
        let live = self.live(now);
        let bytes = self.painter.paint(self.transcript.rows(), &live, self.size);
        if !bytes.is_empty() {
            self.effects.push(AgentEffect::Paint(bytes));
        }
        self.effects.extend(self.reporter.update(self.mood, frame_number(self.opened, now)));
        self.effects.extend(self.records.drain(..).map(AgentEffect::Log));
    }
}

fn frame_number(since: Mono, now: Mono) -> u64 {
    u64::try_from(now.since(since).as_nanos() / FRAME_TIME.as_nanos()).unwrap_or(u64::MAX)
}

/// Returns the time of the first frame after `now`. Animations take their phase from the clock, so that a late tick
/// skips frames instead of delaying them.
fn next_frame(since: Mono, now: Mono) -> Mono {
    let frames = u32::try_from(frame_number(since, now)).unwrap_or(u32::MAX).saturating_add(1);
    since + FRAME_TIME * frames
}

#[cfg(test)]
mod tests;

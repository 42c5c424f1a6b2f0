//! Goes through the steps of a turn.

use std::collections::VecDeque;
use std::num::NonZeroU32;
use std::time::Duration;

use posse_core::placeholders::fill;
use posse_core::time::Mono;
use serde_json::Value;

use super::draft::PromptMessage;
use super::{AgentEffect, ScriptedAgent, next_frame};
use crate::agent::look::Mood;
use crate::agent::record::{AgentRecord, TurnOutcome};
use crate::agent::transcript::TranscriptEntry;
use crate::scenario::{AgentLook, AgentQuestion, QuestionKind, ScriptStep, ToolUse};

/// The number of steps that play at once before the agent looks for input.
const STEPS_AT_ONCE: usize = 200;

/// The progress of the start or of a turn.
#[derive(Debug)]
pub(super) struct TurnPlay {
    pub(super) part: PlayPart,
    steps: VecDeque<ScriptStep>,
    pub(super) act: ActiveStep,
    pub(super) since: Mono,
}

#[derive(Debug)]
pub(super) enum PlayPart {
    Start,
    Turn { number: u32, message: PromptMessage },
}

/// The step in progress.
#[derive(Debug)]
pub(super) enum ActiveStep {
    /// No step is in progress; the next one may begin.
    Next,
    Think {
        since: Mono,
        until: Mono,
    },
    Stream {
        text: String,
        /// The number of visible bytes.
        shown: usize,
        rate: NonZeroU32,
        since: Mono,
    },
    Tool {
        name: String,
        input: String,
        output: String,
        since: Mono,
        until: Mono,
    },
    /// The agent reports that it is blocked, but has not drawn the dialog yet.
    Announce {
        ask: Box<AgentQuestion>,
        since: Mono,
        until: Mono,
    },
    Ask(Box<OpenDialog>),
    Pause {
        until: Mono,
    },
}

#[derive(Debug)]
pub(super) struct OpenDialog {
    pub(super) ask: AgentQuestion,
    pub(super) options: Vec<String>,
    /// The selected option, from 0.
    pub(super) cursor: usize,
    pub(super) drawn: Mono,
}

impl TurnPlay {
    pub(super) fn new(part: PlayPart, steps: Vec<ScriptStep>, now: Mono) -> TurnPlay {
        TurnPlay { part, steps: steps.into(), act: ActiveStep::Next, since: now }
    }
}

impl ActiveStep {
    /// Returns when this step needs a tick.
    pub(super) fn due(&self, now: Mono) -> Option<Mono> {
        match self {
            ActiveStep::Think { since, until }
            | ActiveStep::Tool { since, until, .. }
            | ActiveStep::Announce { since, until, .. } => Some(next_frame(*since, now).min(*until)),
            ActiveStep::Stream { text, shown, rate, since } => {
                let chars = |bytes: usize| text[..bytes].chars().count() as u64;
                // Rounded up: a nanosecond earlier the character is not due yet.
                let when = |count: u64| {
                    *since + Duration::from_nanos(count.saturating_mul(1_000_000_000).div_ceil(rate.get().into()))
                };
                // A frame shows all characters of its time, instead of one wake-up per character.
                let next = when(chars(*shown) + 1).max(next_frame(*since, now));
                Some(next.min(when(chars(text.len()))).max(now))
            }
            ActiveStep::Pause { until } => Some(*until),
            ActiveStep::Next | ActiveStep::Ask(_) => None,
        }
    }
}

impl ScriptedAgent {
    /// Plays as far as possible without time passing.
    pub(super) fn advance(&mut self, now: Mono) {
        self.busy_now = false;
        for _ in 0..STEPS_AT_ONCE {
            if self.ending.is_some() {
                return;
            }
            if self.play.is_none() {
                if self.queue.is_empty() {
                    return;
                }
                let message = self.queue.remove(0);
                self.begin_turn(message, now);
                if self.play.is_none() {
                    continue;
                }
            }
            if !self.finish_step(now) {
                return;
            }
            match self.play.as_mut().and_then(|play| play.steps.pop_front()) {
                Some(step) => self.begin_step(step, now),
                None => self.end_part(now),
            }
        }
        self.busy_now = true;
    }

    /// Ends the step in progress if its time has come. Returns whether the next one may begin.
    fn finish_step(&mut self, now: Mono) -> bool {
        let Some(play) = &mut self.play else {
            return false;
        };
        let over = match &mut play.act {
            ActiveStep::Next => true,
            ActiveStep::Think { until, .. } | ActiveStep::Tool { until, .. } | ActiveStep::Pause { until } => {
                *until <= now
            }
            ActiveStep::Stream { text, shown, rate, since } => {
                let count = now.since(*since).as_nanos().saturating_mul(rate.get().into()) / 1_000_000_000;
                let count = usize::try_from(count).unwrap_or(usize::MAX);
                *shown = text.char_indices().nth(count).map_or(text.len(), |(at, _)| at);
                *shown == text.len()
            }
            ActiveStep::Announce { ask, until, .. } if *until <= now => {
                let ask = ask.clone();
                self.open_dialog(*ask, now);
                return false;
            }
            ActiveStep::Announce { .. } | ActiveStep::Ask(_) => false,
        };
        if over {
            match std::mem::replace(&mut play.act, ActiveStep::Next) {
                ActiveStep::Stream { text, .. } => self.transcript.push(TranscriptEntry::Answer(text)),
                ActiveStep::Tool { name, input, output, .. } => {
                    self.transcript.push(TranscriptEntry::Tool { name, input, output });
                }
                _ => {}
            }
        }
        over
    }

    pub(super) fn begin_step(&mut self, step: ScriptStep, now: Mono) {
        let act = match step {
            ScriptStep::Say(said) => {
                let text = self.fill(&said.text);
                match said.rate {
                    None => return self.transcript.push(TranscriptEntry::Answer(text)),
                    Some(rate) => ActiveStep::Stream { text, shown: 0, rate, since: now },
                }
            }
            ScriptStep::Think(thought) => ActiveStep::Think { until: now + thought.time, since: now },
            ScriptStep::Tool(tool) => self.tool_step(tool, now),
            ScriptStep::Run(run) => {
                let question = run.escalated.then(|| AgentQuestion::permission(run.command.clone()));
                if let Some(play) = &mut self.play {
                    play.steps.push_front(ScriptStep::Tool(ToolUse::shell(run.command, run.output, run.time)));
                }
                if let Some(question) = question {
                    self.begin_ask(question, now);
                }
                return;
            }
            ScriptStep::Ask(ask) => return self.begin_ask(*ask, now),
            ScriptStep::Write(write) => {
                let path = self.fill(&write.path).into();
                let bytes = self.fill(&write.text).into_bytes();
                return self.emit(AgentEffect::Write { path, bytes }, now);
            }
            ScriptStep::Answer(answer) => return self.begin_answer(&answer, now),
            ScriptStep::Print(text) => return self.emit(AgentEffect::Raw(text), now),
            ScriptStep::Fail(failure) => {
                let row = match &failure.message {
                    Some(message) => TranscriptEntry::Error(self.fill(message)),
                    None => self.scenario.look.failure(&failure),
                };
                return self.fail_turn_with(row, now);
            }
            ScriptStep::Crash(signal) => {
                self.ending = Some(AgentEffect::Kill(signal));
                // A real agent that is killed at work leaves its spinner on the screen.
                ActiveStep::Think { since: now, until: now }
            }
            ScriptStep::Exit(code) => return self.ending = Some(AgentEffect::Exit(code.into())),
            ScriptStep::Pause(time) => ActiveStep::Pause { until: now + time },
            // `Scenario::check_for` rejects these for an agent.
            ScriptStep::WaitFor(_) | ScriptStep::Report(_) | ScriptStep::Result(_) => return,
        };
        self.set_step(act);
    }

    fn tool_step(&self, tool: ToolUse, now: Mono) -> ActiveStep {
        let input = match tool.input {
            Value::String(text) => text,
            input => input.to_string(),
        };
        ActiveStep::Tool {
            name: tool.name,
            input: self.fill(&input),
            output: tool.output.map_or_else(|| "(no output)".to_owned(), |output| self.fill(&output)),
            since: now,
            until: now + tool.time,
        }
    }

    /// Emits an effect after everything before it has been drawn.
    pub(super) fn emit(&mut self, effect: AgentEffect, now: Mono) {
        self.show(now);
        self.effects.push(effect);
    }

    fn set_step(&mut self, act: ActiveStep) {
        if let Some(play) = &mut self.play {
            play.act = act;
        }
    }

    pub(super) fn fill(&self, text: &str) -> String {
        let Some(TurnPlay { part: PlayPart::Turn { message, .. }, .. }) = &self.play else { return text.to_owned() };
        fill(text, |name| match name {
            "prompt" => Some(message.text.clone()),
            name => self.memory.placeholder(name),
        })
    }

    fn begin_ask(&mut self, mut ask: AgentQuestion, now: Mono) {
        for text in [&mut ask.text, &mut ask.command, &mut ask.detail].into_iter().flatten() {
            *text = self.fill(text);
        }
        if self.mood != Mood::Starting {
            self.mood = Mood::Blocked(ask.kind);
        }
        if ask.announce.is_zero() {
            self.open_dialog(ask, now);
        } else {
            self.set_step(ActiveStep::Announce { until: now + ask.announce, ask: Box::new(ask), since: now });
        }
    }

    fn open_dialog(&mut self, ask: AgentQuestion, now: Mono) {
        let options = if ask.options.is_empty() {
            self.scenario.look.dialog(ask.kind).options.iter().map(|label| (*label).to_owned()).collect()
        } else {
            ask.options.clone()
        };
        self.records.push(AgentRecord::DialogDrawn);
        self.set_step(ActiveStep::Ask(Box::new(OpenDialog { cursor: 0, ask, options, drawn: now })));
    }

    /// Closes the dialog with an option, counted from 0, or cancels it.
    pub(super) fn answer(&mut self, choice: Option<usize>, now: Mono) {
        let Some(play) = &mut self.play else {
            return;
        };
        let ActiveStep::Ask(dialog) = std::mem::replace(&mut play.act, ActiveStep::Next) else {
            return;
        };
        let OpenDialog { ask, options, .. } = *dialog;
        let accepted = choice.is_some_and(|choice| ask.accept.contains(&(choice + 1)));
        let label = choice.and_then(|choice| options.get(choice).cloned());
        self.records.push(AgentRecord::DialogClosed { choice: choice.map(|at| at + 1), accepted });
        let question = ask.text.unwrap_or_default();
        let command = ask.command.unwrap_or_default();
        if accepted {
            match ask.kind {
                QuestionKind::Question => {
                    self.transcript.push(TranscriptEntry::Answered { question, answer: label.unwrap_or_default() });
                }
                QuestionKind::Permission if !command.is_empty() => {
                    self.transcript.push(TranscriptEntry::Approved(command));
                }
                _ => {}
            }
            if self.mood != Mood::Starting {
                self.mood = Mood::Working;
            }
            return;
        }
        // An agent whose directory is not trusted exits.
        if ask.kind == QuestionKind::Startup || matches!(play.part, PlayPart::Start) {
            self.ending = Some(AgentEffect::Exit(1));
            return;
        }
        self.transcript.push(match ask.kind {
            QuestionKind::Question => TranscriptEntry::Declined(question),
            _ => TranscriptEntry::Refused(command),
        });
        self.end_turn(TurnOutcome::Interrupted, now);
    }

    pub(super) fn submit(&mut self, message: PromptMessage, now: Mono) {
        self.records.push(AgentRecord::Submitted { prompt: message.text.clone() });
        if matches!(message.text.trim(), "/exit" | "/quit") {
            self.ending = Some(AgentEffect::Exit(0));
        } else if self.play.is_some() {
            self.records.push(AgentRecord::Queued { prompt: message.text.clone() });
            self.queue.push(message);
        } else {
            self.begin_turn(message, now);
        }
    }

    fn begin_turn(&mut self, message: PromptMessage, now: Mono) {
        let Some(steps) = self.steps_for(&message.text) else {
            return self.records.push(AgentRecord::Ignored);
        };
        self.turns_started += 1;
        let number = self.turns_started;
        self.transcript.push(TranscriptEntry::User(message.shown.clone()));
        self.mood = Mood::Working;
        self.play = Some(TurnPlay::new(PlayPart::Turn { number, message }, steps, now));
        // Even the shortest turn is drawn and reported.
        self.show(now);
    }

    fn end_part(&mut self, now: Mono) {
        match self.play.as_ref().map(|play| &play.part) {
            Some(PlayPart::Start) => {
                self.play = None;
                self.ready = true;
                self.mood = Mood::Idle;
                if let Some(prompt) = self.scenario.auto_prompt.clone() {
                    // The input box is visible before its prompt for at least one frame.
                    self.show(now);
                    self.submit(PromptMessage::plain(&prompt), now);
                }
            }
            _ => self.end_turn(TurnOutcome::Done, now),
        }
    }

    pub(super) fn fail_turn(&mut self, text: String, now: Mono) {
        self.fail_turn_with(TranscriptEntry::Error(text), now);
    }

    fn fail_turn_with(&mut self, row: TranscriptEntry, now: Mono) {
        self.transcript.push(row);
        match &self.play {
            Some(TurnPlay { part: PlayPart::Turn { .. }, .. }) => self.end_turn(TurnOutcome::Error, now),
            Some(TurnPlay { part: PlayPart::Start, .. }) => self.ending = Some(AgentEffect::Exit(1)),
            None => {}
        }
    }

    /// Interrupts the turn: Esc or Ctrl-C while the agent works.
    pub(super) fn interrupt(&mut self, now: Mono) {
        let Some(TurnPlay { part: PlayPart::Turn { .. }, act, .. }) = &mut self.play else {
            return;
        };
        match std::mem::replace(act, ActiveStep::Next) {
            ActiveStep::Stream { text, shown, .. } => {
                self.transcript.push(TranscriptEntry::Answer(text[..shown].to_owned()));
            }
            ActiveStep::Tool { name, input, .. } => {
                self.transcript.push(TranscriptEntry::Tool { name, input, output: "(interrupted)".to_owned() });
            }
            _ => {}
        }
        self.transcript.push(TranscriptEntry::Interrupted);
        self.end_turn(TurnOutcome::Interrupted, now);
    }

    fn end_turn(&mut self, outcome: TurnOutcome, now: Mono) {
        let Some(play) = self.play.take() else {
            return;
        };
        let PlayPart::Turn { number, .. } = play.part else {
            return;
        };
        self.later.retain(|later| !later.in_turn);
        let look = self.scenario.look;
        // Claude Code closes failed turns like all others.
        if outcome == TurnOutcome::Done || (outcome == TurnOutcome::Error && look == AgentLook::Claude) {
            let row = look.closing(number, now.since(play.since));
            self.transcript.push(TranscriptEntry::Closing(row));
        }
        self.mood = match outcome {
            TurnOutcome::Done => Mood::Done,
            TurnOutcome::Interrupted => Mood::Idle,
            TurnOutcome::Error => Mood::Failed,
        };
        self.records.push(AgentRecord::TurnEnded { turn: number, outcome });
    }
}

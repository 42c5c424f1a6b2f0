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

#[derive(Debug)]
pub(super) struct ActiveStep {
    pub(super) kind: StepKind,
    pub(super) since: Mono,
    until: Mono,
}

#[derive(Debug)]
pub(super) enum StepKind {
    /// No step is in progress; the next one may begin.
    Next,
    Think,
    /// The text appears at this many characters per second.
    Stream(String, NonZeroU32),
    Tool {
        name: String,
        input: String,
        output: String,
    },
    /// The agent reports that it is blocked, but has not drawn the dialog yet.
    Announce(Box<AgentQuestion>),
    Ask(Box<OpenDialog>),
    Pause,
}

#[derive(Debug)]
pub(super) struct OpenDialog {
    pub(super) ask: AgentQuestion,
    pub(super) options: Vec<String>,
    /// The selected option, from 0.
    pub(super) cursor: usize,
}

impl TurnPlay {
    pub(super) fn new(part: PlayPart, steps: Vec<ScriptStep>, now: Mono) -> TurnPlay {
        TurnPlay { part, steps: steps.into(), act: ActiveStep::next(now), since: now }
    }
}

impl ActiveStep {
    fn next(now: Mono) -> ActiveStep {
        ActiveStep { kind: StepKind::Next, since: now, until: now }
    }

    pub(super) fn due(&self, now: Mono) -> Option<Mono> {
        let frame = next_frame(self.since, now);
        match &self.kind {
            StepKind::Think | StepKind::Tool { .. } | StepKind::Announce(_) => Some(frame.min(self.until)),
            StepKind::Stream(text, rate) => {
                // A frame shows all characters of its time, instead of one wake-up per character.
                let shown = visible(text, *rate, self.since, now).chars().count();
                let next = self.since + streaming_time(shown as u64 + 1, *rate);
                Some(next.max(frame).min(self.until).max(now))
            }
            StepKind::Pause => Some(self.until),
            StepKind::Next | StepKind::Ask(_) => None,
        }
    }
}

/// Returns the time after which so many characters are visible. Rounded up: a nanosecond earlier the last one is not.
fn streaming_time(count: u64, rate: NonZeroU32) -> Duration {
    Duration::from_nanos(count.saturating_mul(1_000_000_000).div_ceil(rate.get().into()))
}

/// Returns the visible part of a streamed text.
pub(super) fn visible(text: &str, rate: NonZeroU32, since: Mono, now: Mono) -> &str {
    let count = now.since(since).as_nanos().saturating_mul(rate.get().into()) / 1_000_000_000;
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    &text[..text.char_indices().nth(count).map_or(text.len(), |(at, _)| at)]
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
        if now < play.act.until || matches!(play.act.kind, StepKind::Ask(_)) {
            return false;
        }
        match std::mem::replace(&mut play.act, ActiveStep::next(now)).kind {
            StepKind::Stream(text, _) => self.transcript.push(TranscriptEntry::Answer(text)),
            StepKind::Tool { name, input, output } => {
                self.transcript.push(TranscriptEntry::Tool { name, input, output });
            }
            StepKind::Announce(ask) => {
                self.open_dialog(*ask, now);
                return false;
            }
            _ => {}
        }
        true
    }

    pub(super) fn begin_step(&mut self, step: ScriptStep, now: Mono) {
        let (kind, time) = match step {
            ScriptStep::Say(said) => {
                let text = self.fill(&said.text);
                match said.rate {
                    None => return self.transcript.push(TranscriptEntry::Answer(text)),
                    Some(rate) => {
                        let time = streaming_time(text.chars().count() as u64, rate);
                        (StepKind::Stream(text, rate), time)
                    }
                }
            }
            ScriptStep::Think(thought) => (StepKind::Think, thought.time),
            ScriptStep::Tool(tool) => {
                let input = match tool.input {
                    Value::String(text) => text,
                    input => input.to_string(),
                };
                let output = tool.output.map_or_else(|| "(no output)".to_owned(), |output| self.fill(&output));
                (StepKind::Tool { name: tool.name, input: self.fill(&input), output }, tool.time)
            }
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
                return self.fail_turn(row, now);
            }
            ScriptStep::Crash(signal) => {
                self.ending = Some(AgentEffect::Kill(signal));
                // A real agent that is killed at work leaves its spinner on the screen.
                (StepKind::Think, Duration::ZERO)
            }
            ScriptStep::Exit(code) => return self.ending = Some(AgentEffect::Exit(code.into())),
            ScriptStep::Pause(time) => (StepKind::Pause, time),
            // `Scenario::check_for` rejects these for an agent.
            ScriptStep::WaitFor(_) | ScriptStep::Report(_) | ScriptStep::Result(_) => return,
        };
        self.set_step(kind, time, now);
    }

    /// Emits an effect after everything before it has been drawn.
    pub(super) fn emit(&mut self, effect: AgentEffect, now: Mono) {
        self.show(now);
        self.effects.push(effect);
    }

    fn set_step(&mut self, kind: StepKind, time: Duration, now: Mono) {
        if let Some(play) = &mut self.play {
            play.act = ActiveStep { kind, since: now, until: now + time };
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
            let time = ask.announce;
            self.set_step(StepKind::Announce(Box::new(ask)), time, now);
        }
    }

    fn open_dialog(&mut self, ask: AgentQuestion, now: Mono) {
        let options = if ask.options.is_empty() {
            self.scenario.look.dialog(ask.kind).options.iter().map(|label| (*label).to_owned()).collect()
        } else {
            ask.options.clone()
        };
        self.records.push(AgentRecord::DialogDrawn);
        self.set_step(StepKind::Ask(Box::new(OpenDialog { cursor: 0, ask, options })), Duration::ZERO, now);
    }

    /// Closes the dialog with an option, counted from 0, or cancels it.
    pub(super) fn answer(&mut self, choice: Option<usize>, now: Mono) {
        let Some(play) = &mut self.play else {
            return;
        };
        let StepKind::Ask(dialog) = std::mem::replace(&mut play.act, ActiveStep::next(now)).kind else {
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

    pub(super) fn fail_turn(&mut self, row: TranscriptEntry, now: Mono) {
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
        let ActiveStep { kind, since, .. } = std::mem::replace(act, ActiveStep::next(now));
        match kind {
            StepKind::Stream(text, rate) => {
                self.transcript.push(TranscriptEntry::Answer(visible(&text, rate, since, now).to_owned()));
            }
            StepKind::Tool { name, input, .. } => {
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

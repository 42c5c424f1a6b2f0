//! Goes through the turns of a scenario and their steps, one after the other.
//!
//! Each step runs to its end before the next one begins. A step that takes time waits in [`ScriptedAgent::wait`], which
//! draws the agent before it blocks. Steps that take no time therefore appear in one frame.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;

use posse_core::placeholders::fill;
use posse_core::time::Mono;
use serde_json::Value;

use super::draft::{PromptDraft, PromptMessage};
use super::keys::{Decoder, ESCAPE_WAIT, TypedKey};
use super::look::Mood;
use super::paint::Painter;
use super::record::{AgentRecord, TurnOutcome};
use super::report::Reporter;
use super::review_loop::LoopMemory;
use super::rows::{LookText, ScreenSize, Transcript, TranscriptEntry};
use super::run::AgentRunError;
use crate::scenario::{AgentLook, AgentQuestion, QuestionKind, Scenario, ScriptStep, ToolUse};

/// The environment of a scripted agent: the time, the input of its terminal, and effects.
pub(super) trait AgentHost {
    fn now(&self) -> Mono;
    /// Waits for input, until a time at most.
    fn wait(&mut self, until: Option<Mono>) -> Result<AgentInput, AgentCut>;
    fn carry_out(&mut self, effect: &AgentEffect) -> Result<(), AgentCut>;
    /// Adds a line to a file, and returns the number of its lines.
    fn count(&mut self, path: &Path) -> Result<u32, AgentCut>;
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum AgentInput {
    /// Bytes from the terminal, cut anywhere.
    Bytes(Vec<u8>),
    Resize(ScreenSize),
    TimeIsUp,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum AgentEffect {
    /// Prints to the terminal.
    Print(String),
    /// Writes a temporary file and renames it.
    Write {
        path: PathBuf,
        bytes: Vec<u8>,
    },
    /// Writes a piece of a file in place. The first piece empties the file. The file stays open until the last piece,
    /// even if another program moves it.
    Piece {
        path: PathBuf,
        bytes: Vec<u8>,
        last: bool,
    },
    Log(AgentRecord),
}

/// The reason steps end early.
#[derive(Debug)]
pub(super) enum AgentCut {
    /// The user interrupted the turn by a key.
    Interrupted,
    /// The user refused a dialog. The transcript says so.
    Refused,
    /// The turn failed. The transcript says so.
    Failed,
    /// The agent exits with this code, and leaves the screen in order.
    Exit(i32),
    /// The agent dies by this signal, and leaves the screen as it is.
    Kill(i32),
    Error(AgentRunError),
}

/// The time between two frames of spinners and titles, as in the agents we imitate.
const FRAME_TIME: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub(super) struct ScriptedAgent<H> {
    pub(super) host: H,
    pub(super) scenario: Scenario,
    pub(super) size: ScreenSize,
    opened: Mono,
    keys: Decoder,
    decoded: VecDeque<TypedKey>,
    escape_due: Option<Mono>,
    pub(super) transcript: Transcript,
    pub(super) painter: Painter,
    reporter: Reporter,
    pub(super) draft: PromptDraft,
    pub(super) queue: VecDeque<PromptMessage>,
    mood: Mood,
    pub(super) turn: Option<AgentTurn>,
    pub(super) activity: Option<Activity>,
    /// Whether the input box is shown.
    pub(super) ready: bool,
    /// The time of the last typed character.
    pub(super) typed: Option<Mono>,
    turns_started: u32,
    pub(super) turns_in_order: usize,
    pub(super) memory: LoopMemory,
    /// Effects that happen later, during or after the turn.
    pub(super) later: Vec<(Mono, AgentEffect)>,
    pub(super) records: Vec<AgentRecord>,
}

#[derive(Debug)]
pub(super) struct AgentTurn {
    pub(super) number: u32,
    pub(super) since: Mono,
    prompt: String,
}

/// What the agent shows while a step takes time.
#[derive(Debug)]
pub(super) struct Activity {
    pub(super) kind: ActivityKind,
    pub(super) since: Mono,
}

#[derive(Debug)]
pub(super) enum ActivityKind {
    Think,
    /// The text appears at this many characters per second.
    Stream(String, NonZeroU32),
    Tool(LookText),
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

/// The number of the frame at a time. Animations take their phase from the clock, so that a late wake-up skips frames
/// instead of delaying them.
pub(super) fn frame_number(since: Mono, now: Mono) -> u64 {
    u64::try_from(now.since(since).as_nanos() / FRAME_TIME.as_nanos()).unwrap_or(u64::MAX)
}

/// Returns the visible part of a streamed text.
pub(super) fn visible(text: &str, rate: NonZeroU32, since: Mono, now: Mono) -> &str {
    let count = now.since(since).as_nanos().saturating_mul(rate.get().into()) / 1_000_000_000;
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    &text[..text.char_indices().nth(count).map_or(text.len(), |(at, _)| at)]
}

impl<H: AgentHost> ScriptedAgent<H> {
    pub(super) fn new(host: H, scenario: Scenario, size: ScreenSize) -> Self {
        ScriptedAgent {
            size,
            opened: host.now(),
            keys: Decoder::default(),
            decoded: VecDeque::new(),
            escape_due: None,
            transcript: Transcript::new(size),
            painter: Painter::default(),
            reporter: Reporter::new(&scenario),
            draft: PromptDraft::default(),
            queue: VecDeque::new(),
            mood: Mood::default(),
            turn: None,
            activity: None,
            ready: false,
            typed: None,
            turns_started: 0,
            turns_in_order: 0,
            memory: LoopMemory::default(),
            later: Vec::new(),
            records: Vec::new(),
            host,
            scenario,
        }
    }

    /// Plays the scenario until the agent ends, and returns how it ended: never as a cut of a turn.
    pub(super) fn play(&mut self) -> AgentCut {
        let Err(end) = self.play_all();
        let shown = match end {
            AgentCut::Exit(_) => self.show().and_then(|()| {
                let farewell = self.reporter.farewell() + &self.painter.leave();
                let alternate = if self.scenario.alternate { "\x1b[?1049l" } else { "" };
                self.print(format!("{farewell}{alternate}\x1b[?2004l"))
            }),
            AgentCut::Kill(_) => self.show(),
            _ => Ok(()),
        };
        shown.err().unwrap_or(end)
    }

    fn play_all(&mut self) -> Result<Infallible, AgentCut> {
        let alternate = if self.scenario.alternate { "\x1b[?1049h" } else { "" };
        self.print(format!("{alternate}\x1b[?2004h"))?;
        match self.play_steps(self.scenario.start.clone()) {
            // An agent whose directory is not trusted exits.
            Err(AgentCut::Interrupted | AgentCut::Refused | AgentCut::Failed) => return Err(AgentCut::Exit(1)),
            played => played?,
        }
        self.ready = true;
        self.mood = Mood::Idle;
        if let Some(prompt) = self.scenario.auto_prompt.clone() {
            // The input box is visible before its prompt for at least one frame.
            self.show()?;
            self.submit(PromptMessage::plain(prompt))?;
        }
        loop {
            if let Some(message) = self.queue.pop_front() {
                self.play_turn(message)?;
            } else if let Some(key) = self.wait(None)? {
                self.composer_key(key)?;
            }
        }
    }

    fn play_turn(&mut self, message: PromptMessage) -> Result<(), AgentCut> {
        let Some(steps) = self.steps_for(&message.text)? else { return Ok(()) };
        self.turns_started += 1;
        let (look, number, since) = (self.scenario.look, self.turns_started, self.host.now());
        self.transcript.push(look.user(message.shown));
        self.mood = Mood::Working;
        self.turn = Some(AgentTurn { number, since, prompt: message.text });
        // Even the shortest turn is drawn and reported.
        self.show()?;
        let (outcome, mood) = match self.play_steps(steps) {
            Ok(()) => (TurnOutcome::Done, Mood::Done),
            Err(AgentCut::Interrupted) => {
                self.transcript.push(look.interrupted());
                (TurnOutcome::Interrupted, Mood::Idle)
            }
            Err(AgentCut::Refused) => (TurnOutcome::Interrupted, Mood::Idle),
            Err(AgentCut::Failed) => (TurnOutcome::Error, Mood::Failed),
            Err(end) => return Err(end),
        };
        self.mood = mood;
        self.turn = None;
        self.activity = None;
        // Claude Code closes failed turns like all others.
        if outcome == TurnOutcome::Done || (outcome == TurnOutcome::Error && look == AgentLook::Claude) {
            self.transcript.push(look.closing(number, self.host.now().since(since)));
        }
        self.records.push(AgentRecord::TurnEnded { turn: number, outcome });
        Ok(())
    }

    fn play_steps(&mut self, steps: Vec<ScriptStep>) -> Result<(), AgentCut> {
        steps.into_iter().try_for_each(|step| self.step(step))
    }

    fn step(&mut self, step: ScriptStep) -> Result<(), AgentCut> {
        match step {
            ScriptStep::Say(said) => self.say(self.fill(&said.text), said.rate),
            ScriptStep::Think(thought) => self.act(ActivityKind::Think, thought.time),
            ScriptStep::Pause(time) => self.act(ActivityKind::Pause, time),
            ScriptStep::Tool(tool) => self.use_tool(tool),
            ScriptStep::Run(run) => {
                if run.escalated {
                    self.ask(AgentQuestion::permission(run.command.clone()))?;
                }
                self.use_tool(ToolUse::shell(run.command, run.output, run.time))
            }
            ScriptStep::Ask(ask) => self.ask(*ask),
            ScriptStep::Write(write) => {
                let bytes = self.fill(&write.text).into_bytes();
                self.emit(&AgentEffect::Write { path: self.fill(&write.path).into(), bytes })
            }
            ScriptStep::Answer(answer) => self.answer(&answer),
            ScriptStep::Fail(failure) => {
                let look = self.scenario.look;
                let message = failure.message.as_deref().map(|message| look.error(self.fill(message)));
                self.fail(message.unwrap_or_else(|| look.failure(failure.http_status())))
            }
            ScriptStep::Crash(signal) => {
                // A real agent that is killed at work leaves its spinner on the screen.
                self.activity = Some(Activity { kind: ActivityKind::Think, since: self.host.now() });
                Err(AgentCut::Kill(signal))
            }
            ScriptStep::Exit(code) => Err(AgentCut::Exit(code.into())),
            // `Scenario::check_for` rejects it for an agent.
            ScriptStep::WaitFor(_) => Ok(()),
        }
    }

    fn say(&mut self, text: String, rate: Option<NonZeroU32>) -> Result<(), AgentCut> {
        let look = self.scenario.look;
        let Some(rate) = rate else {
            self.transcript.push(look.answer(text));
            return Ok(());
        };
        let (since, time) = (self.host.now(), Duration::from_secs(text.chars().count() as u64) / rate.get());
        let said = self.act(ActivityKind::Stream(text.clone(), rate), time);
        match said {
            Ok(()) => self.transcript.push(look.answer(text)),
            Err(AgentCut::Interrupted) => {
                let text = visible(&text, rate, since, self.host.now()).to_owned();
                self.transcript.push(look.answer(text));
            }
            Err(_) => {}
        }
        said
    }

    fn use_tool(&mut self, tool: ToolUse) -> Result<(), AgentCut> {
        let input = match tool.input {
            Value::String(text) => text,
            input => input.to_string(),
        };
        let output = tool.output.as_deref().map(|output| self.fill(output));
        self.show_tool(&tool.name, &self.fill(&input), output, |agent| agent.pass(agent.host.now() + tool.time))
    }

    /// Shows a tool while it works, and then its output.
    pub(super) fn show_tool(
        &mut self,
        name: &str,
        input: &str,
        output: Option<String>,
        work: impl FnOnce(&mut Self) -> Result<(), AgentCut>,
    ) -> Result<(), AgentCut> {
        let row = self.scenario.look.running(name, input);
        let worked = self.busy(ActivityKind::Tool(row), work);
        let output = match worked {
            Ok(()) => output.unwrap_or_else(|| "(no output)".to_owned()),
            Err(AgentCut::Interrupted) => "(interrupted)".to_owned(),
            Err(_) => return worked,
        };
        self.transcript.push(self.scenario.look.tool(name, input, output));
        worked
    }

    pub(super) fn fail(&mut self, row: TranscriptEntry) -> Result<(), AgentCut> {
        self.transcript.push(row);
        Err(AgentCut::Failed)
    }

    fn ask(&mut self, mut ask: AgentQuestion) -> Result<(), AgentCut> {
        for text in [&mut ask.text, &mut ask.command, &mut ask.detail].into_iter().flatten() {
            *text = self.fill(text);
        }
        if self.mood != Mood::Starting {
            self.mood = Mood::Blocked(ask.kind);
        }
        self.act(ActivityKind::Think, ask.announce)?;
        let mut options = ask.options.clone();
        if options.is_empty() {
            options = self.scenario.look.dialog(ask.kind).options.iter().map(|&label| label.into()).collect();
        }
        self.records.push(AgentRecord::DialogDrawn);
        let dialog = Box::new(OpenDialog { ask: ask.clone(), options, cursor: 0 });
        let choice = self.busy(ActivityKind::Ask(dialog), |agent| {
            loop {
                if let Some(key) = agent.wait(None)?
                    && let Some(choice) = agent.dialog_key(&key)
                {
                    return Ok(choice.map(|at| at + 1));
                }
            }
        })?;
        let accepted = choice.is_some_and(|choice| ask.accept.contains(&choice));
        self.records.push(AgentRecord::DialogClosed { choice, accepted });
        if accepted {
            if self.mood != Mood::Starting {
                self.mood = Mood::Working;
            }
            return Ok(());
        }
        let refused = match ask.kind {
            QuestionKind::Question => ask.text,
            _ => ask.command,
        };
        self.transcript.push(self.scenario.look.refused(ask.kind, &refused.unwrap_or_default()));
        Err(AgentCut::Refused)
    }

    /// Shows an activity for a time.
    fn act(&mut self, kind: ActivityKind, time: Duration) -> Result<(), AgentCut> {
        self.busy(kind, |agent| agent.pass(agent.host.now() + time))
    }

    fn busy<T>(
        &mut self,
        kind: ActivityKind,
        work: impl FnOnce(&mut Self) -> Result<T, AgentCut>,
    ) -> Result<T, AgentCut> {
        self.activity = Some(Activity { kind, since: self.host.now() });
        let done = work(self)?;
        self.activity = None;
        Ok(done)
    }

    /// Lets time pass. Keys are typed into the input box meanwhile.
    pub(super) fn pass(&mut self, until: Mono) -> Result<(), AgentCut> {
        while self.host.now() < until {
            if let Some(key) = self.wait(Some(until))? {
                self.composer_key(key)?;
            }
        }
        Ok(())
    }

    /// Waits for a key, until a time at most. The agent moves meanwhile.
    pub(super) fn wait(&mut self, until: Option<Mono>) -> Result<Option<TypedKey>, AgentCut> {
        loop {
            if let Some(key) = self.decoded.pop_front() {
                return Ok(Some(key));
            }
            let now = self.host.now();
            if let Some(at) = self.later.iter().position(|(due, _)| *due <= now) {
                let (_, effect) = self.later.remove(at);
                self.emit(&effect)?;
                continue;
            }
            if self.escape_due.is_some_and(|due| due <= now) {
                self.escape_due = None;
                self.decoded.extend(self.keys.flush());
                continue;
            }
            if until.is_some_and(|until| until <= now) {
                return Ok(None);
            }
            self.show()?;
            let later = self.later.iter().map(|(due, _)| *due).min();
            let due = [until, self.next_frame(now), self.escape_due, later].into_iter().flatten().min();
            match self.host.wait(due)? {
                AgentInput::Bytes(bytes) => {
                    self.decoded.extend(self.keys.feed(&bytes));
                    self.escape_due = self.keys.is_waiting().then(|| self.host.now() + ESCAPE_WAIT);
                }
                AgentInput::Resize(size) if size != self.size => {
                    self.size = size;
                    self.transcript.resize(size);
                    self.painter.clear();
                }
                AgentInput::Resize(_) | AgentInput::TimeIsUp => {}
            }
        }
    }

    fn next_frame(&self, now: Mono) -> Option<Mono> {
        let activity = self.activity.as_ref()?;
        let frames = u32::try_from(frame_number(activity.since, now)).unwrap_or(u32::MAX).saturating_add(1);
        let moves = !matches!(activity.kind, ActivityKind::Ask(_) | ActivityKind::Pause);
        moves.then_some(activity.since + FRAME_TIME * frames)
    }

    /// Draws the state, reports changes out of band, then logs: a record describes what is already visible.
    fn show(&mut self) -> Result<(), AgentCut> {
        let now = self.host.now();
        let live = self.live(now);
        let painted = self.painter.paint(self.transcript.rows(), &live.rows, live.cursor, self.size);
        let reported = self.reporter.update(self.mood, frame_number(self.opened, now));
        self.print(painted + &reported)?;
        let mut records = self.records.drain(..);
        records.try_for_each(|record| self.host.carry_out(&AgentEffect::Log(record)))
    }

    fn print(&mut self, text: String) -> Result<(), AgentCut> {
        if text.is_empty() { Ok(()) } else { self.host.carry_out(&AgentEffect::Print(text)) }
    }

    /// Carries out an effect after everything before it has been drawn.
    pub(super) fn emit(&mut self, effect: &AgentEffect) -> Result<(), AgentCut> {
        self.show()?;
        self.host.carry_out(effect)
    }

    pub(super) fn fill(&self, text: &str) -> String {
        let Some(turn) = &self.turn else { return text.to_owned() };
        fill(text, |name| match name {
            "prompt" => Some(turn.prompt.clone()),
            name => self.memory.placeholder(name),
        })
    }
}

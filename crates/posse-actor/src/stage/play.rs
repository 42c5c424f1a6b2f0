//! Going through the steps of a turn.

use std::time::Duration;

use super::draft::Message;
use super::script::{Blanks, Script, fill};
use super::{Effect, Ending, Stage};
use crate::look::{Look, Mood};
use crate::record::{By, Ignored, Outcome, Record};
use crate::scenario::{Ask, AskKind, Flood, HowLong, Step, Think, Tool};
use crate::time::Mono;
use crate::transcript::Entry;

/// Steps that take no time are played at once, but after so many we look for input first.
const STEPS_AT_ONCE: usize = 200;
/// How much of a flood is written before we look for input; as much as a PTY takes in some tens of writes.
const FLOOD_CHUNK: usize = 64 * 1024;

/// What is being played: the way to readiness, or a turn.
#[derive(Debug)]
pub(super) struct Play {
    pub(super) part: Part,
    script: Script,
    pub(super) act: Act,
    pub(super) since: Mono,
}

#[derive(Debug)]
pub(super) enum Part {
    Start,
    Turn { number: u32, message: Message },
}

/// The step in progress.
#[derive(Debug)]
pub(super) enum Act {
    /// None: the next one may begin.
    Next,
    Think {
        think: Think,
        since: Mono,
        /// None is forever, here and below.
        until: Option<Mono>,
    },
    Stream {
        text: String,
        /// Bytes of it that are visible.
        shown: usize,
        rate: u32,
        since: Mono,
    },
    Tool {
        tool: Tool,
        since: Mono,
        until: Option<Mono>,
    },
    /// The agent says that it waits, but the dialog is yet to be drawn.
    Announce {
        ask: Box<Ask>,
        since: Mono,
        until: Mono,
    },
    Ask(Box<Dialog>),
    Flood {
        left: Flood,
        line: u64,
    },
    Pause {
        until: Mono,
    },
}

#[derive(Debug)]
pub(super) struct Dialog {
    pub(super) ask: Ask,
    pub(super) options: Vec<String>,
    /// From 0.
    pub(super) cursor: usize,
    pub(super) drawn: Mono,
}

impl Play {
    pub(super) fn new(part: Part, steps: Vec<Step>, now: Mono) -> Play {
        Play { part, script: Script::new(steps.into()), act: Act::Next, since: now }
    }
}

impl Act {
    /// When this step wants to be looked at again.
    pub(super) fn due(&self, now: Mono, frame: Duration, animated: bool) -> Option<Mono> {
        match self {
            Act::Think { since, until, .. } | Act::Tool { since, until, .. } => {
                let next_frame = animated.then(|| since.next_on_grid(frame, now));
                [*until, next_frame].into_iter().flatten().min()
            }
            Act::Stream { text, shown, rate, since } => {
                let chars = |bytes: usize| text[..bytes].chars().count() as u64;
                // Rounded up: a nanosecond too early the character would not be there yet.
                let when = |count: u64| {
                    *since + Duration::from_nanos(count.saturating_mul(1_000_000_000).div_ceil((*rate).into()))
                };
                // Not one wake-up per character: a frame shows all that have come in its time.
                let next = when(chars(*shown) + 1).max(since.next_on_grid(frame, now));
                Some(next.min(when(chars(text.len()))).max(now))
            }
            Act::Announce { since, until, .. } => {
                let next_frame = animated.then(|| since.next_on_grid(frame, now));
                [Some(*until), next_frame].into_iter().flatten().min()
            }
            Act::Pause { until } => Some(*until),
            Act::Next | Act::Ask(_) | Act::Flood { .. } => None,
        }
    }
}

impl Stage {
    /// Plays as far as possible without time passing.
    pub(super) fn advance(&mut self, now: Mono) {
        self.hurry = false;
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
            if !self.finish_act(now) {
                return;
            }
            match self.play.as_mut().and_then(|play| play.script.next()) {
                Some(step) => self.begin_step(step, now),
                None => self.end_part(now),
            }
        }
        self.hurry = true;
    }

    /// Ends the step in progress if its time has come, and says whether the next may begin.
    fn finish_act(&mut self, now: Mono) -> bool {
        let Some(play) = &mut self.play else {
            return false;
        };
        let is_over = |until: Option<Mono>| until.is_some_and(|until| until <= now);
        let over = match &mut play.act {
            Act::Next => true,
            Act::Think { until, .. } => is_over(*until),
            Act::Pause { until } => is_over(Some(*until)),
            Act::Stream { text, shown, rate, since } => {
                let count = (now - *since).as_nanos().saturating_mul((*rate).into()) / 1_000_000_000;
                let count = usize::try_from(count).unwrap_or(usize::MAX);
                *shown = text.char_indices().nth(count).map_or(text.len(), |(at, _)| at);
                *shown == text.len()
            }
            Act::Tool { until, .. } => is_over(*until),
            Act::Announce { ask, until, .. } if *until <= now => {
                let ask = ask.clone();
                self.open_dialog(*ask, now);
                return false;
            }
            Act::Flood { left: Flood::Lines(0) | Flood::Bytes(0), .. } => true,
            Act::Flood { left, line } => {
                let chunk = flood_chunk(left, line);
                self.effects.push(Effect::Raw(chunk));
                self.hurry = true;
                false
            }
            Act::Announce { .. } | Act::Ask(_) => false,
        };
        if over {
            match std::mem::replace(&mut play.act, Act::Next) {
                Act::Stream { text, .. } => self.transcript.push(Entry::Answer(text)),
                Act::Tool { tool, .. } => {
                    let output = tool.output.unwrap_or_else(|| "(no output)".to_owned());
                    self.transcript.push(Entry::Tool { name: tool.name, input: tool.input, output });
                }
                _ => {}
            }
        }
        over
    }

    pub(super) fn begin_step(&mut self, step: Step, now: Mono) {
        let until = |time: HowLong| match time {
            HowLong::For(time) => Some(now + time),
            HowLong::Forever => None,
        };
        let act = match step {
            Step::Splash(text) => return self.transcript.push(Entry::Splash(self.fill(&text))),
            Step::Say(text) => return self.transcript.push(Entry::Answer(self.fill(&text))),
            Step::Think(think) => Act::Think { until: until(think.time), think, since: now },
            Step::Stream(stream) => {
                Act::Stream { text: self.fill(&stream.text), shown: 0, rate: stream.rate, since: now }
            }
            Step::Tool(mut tool) => {
                tool.input = self.fill(&tool.input);
                tool.output = tool.output.map(|output| self.fill(&output));
                Act::Tool { until: until(tool.time), tool, since: now }
            }
            Step::Ask(ask) => return self.begin_ask(ask, now),
            Step::Write(write) => {
                let path = self.fill(&write.path);
                if path.contains("{path") {
                    return self.fail_turn("the prompt names no file to write".to_owned(), now);
                }
                let bytes = self.fill(&write.text).into_bytes();
                return self.do_now(Effect::Write { path: path.into(), bytes, how: write.how }, now);
            }
            Step::Answer(answer) => return self.begin_answer(&answer, now),
            Step::Title(title) => {
                self.name = self.fill(&title);
                if !self.titles_itself() {
                    self.do_now(Effect::Title(self.name.clone()), now);
                }
                return;
            }
            Step::Osc(payload) => return self.do_now(Effect::Osc(payload), now),
            Step::Bell(times) => return (0..times).for_each(|_| self.do_now(Effect::Bell, now)),
            Step::Print(bytes) => return self.do_now(Effect::Raw(bytes.to_vec()), now),
            Step::Error(text) => return self.fail_turn(self.fill(&text), now),
            Step::Fail(failure) => return self.fail_turn_with(self.scenario.look.failure(failure), now),
            Step::Crash(signal) => {
                self.ending = Some(Ending::Kill(signal));
                // Killed in the middle of its work, a real agent leaves its spinner standing.
                Act::Think { think: Think { time: HowLong::Forever, verb: None, row: None }, since: now, until: None }
            }
            Step::Exit(code) => return self.ending = Some(Ending::Exit(code.into())),
            Step::Repeat(repeat) => {
                if let Some(play) = &mut self.play {
                    play.script.enter(repeat);
                }
                return;
            }
            Step::Flood(left) => {
                self.show(now);
                let aside = self.painter.step_aside(self.transcript.rows().len());
                self.effects.push(Effect::Paint(aside));
                Act::Flood { left, line: 0 }
            }
            Step::Pause(time) => Act::Pause { until: now + time },
        };
        self.set_act(act);
    }

    /// Does something outside of the picture after everything before it has been drawn.
    pub(super) fn do_now(&mut self, effect: Effect, now: Mono) {
        self.show(now);
        self.effects.push(effect);
    }

    fn set_act(&mut self, act: Act) {
        if let Some(play) = &mut self.play {
            play.act = act;
        }
    }

    pub(super) fn fill(&self, text: &str) -> String {
        match &self.play {
            Some(Play { part: Part::Turn { number, message }, .. }) => {
                fill(text, &Blanks { prompt: &message.text, turn: *number, asked: self.asked() })
            }
            _ => text.to_owned(),
        }
    }

    fn begin_ask(&mut self, mut ask: Ask, now: Mono) {
        for text in [&mut ask.title, &mut ask.text, &mut ask.command, &mut ask.detail].into_iter().flatten() {
            *text = self.fill(text);
        }
        if self.mood != Mood::Starting {
            self.mood = Mood::Blocked(ask.kind);
        }
        if ask.announce.is_zero() {
            self.open_dialog(ask, now);
        } else {
            self.set_act(Act::Announce { until: now + ask.announce, ask: Box::new(ask), since: now });
        }
    }

    fn open_dialog(&mut self, ask: Ask, now: Mono) {
        let options = if ask.options.is_empty() {
            self.scenario.look.usual_labels(ask.kind).iter().map(|label| (*label).to_owned()).collect()
        } else {
            ask.options.clone()
        };
        let record = Record::DialogDrawn { kind: ask.kind, options: options.clone(), cursor: ask.cursor };
        self.records.push(record);
        self.armed = None;
        self.set_act(Act::Ask(Box::new(Dialog { cursor: ask.cursor - 1, ask, options, drawn: now })));
    }

    /// Closes the dialog with the option chosen, from 0, or with none; `pressed` is the key that did it.
    pub(super) fn answer(&mut self, choice: Option<usize>, pressed: String, now: Mono) {
        let Some(play) = &mut self.play else {
            return;
        };
        let Act::Ask(dialog) = std::mem::replace(&mut play.act, Act::Next) else {
            return;
        };
        let Dialog { ask, options, .. } = *dialog;
        let accepted = choice.is_some_and(|choice| ask.accept.contains(&(choice + 1)));
        let label = choice.and_then(|choice| options.get(choice).cloned());
        self.records.push(Record::DialogClosed {
            choice: choice.map(|at| at + 1),
            label: label.clone(),
            accepted,
            pressed,
        });
        let question = ask.text.unwrap_or_default();
        let command = ask.command.unwrap_or_default();
        if accepted {
            match ask.kind {
                AskKind::Question => {
                    self.transcript.push(Entry::Answered { question, answer: label.unwrap_or_default() });
                }
                AskKind::Permission if !command.is_empty() => self.transcript.push(Entry::Approved { command }),
                _ => {}
            }
            if self.mood != Mood::Starting {
                self.mood = Mood::Working;
            }
            return;
        }
        // Who does not trust the folder does not want the agent either.
        if ask.kind == AskKind::Startup || matches!(play.part, Part::Start) {
            self.ending = Some(Ending::Exit(1));
            return;
        }
        self.transcript.push(match ask.kind {
            AskKind::Question => Entry::Declined { question },
            _ => Entry::Refused { tool: ask.tool, command },
        });
        self.end_turn(Outcome::Interrupted, now);
    }

    pub(super) fn submit(&mut self, message: Message, by: By, now: Mono) {
        self.records.push(Record::Submitted { prompt: message.text.clone(), by });
        if matches!(message.text.trim(), "/exit" | "/quit") {
            self.ending = Some(Ending::Exit(0));
        } else if self.play.is_some() {
            self.records.push(Record::Queued { prompt: message.text.clone() });
            self.queue.push(message);
        } else {
            self.begin_turn(message, now);
        }
    }

    fn begin_turn(&mut self, message: Message, now: Mono) {
        let Some(steps) = self.steps_for(&message.text) else {
            return self.records.push(Record::Ignored(Ignored::Prompt));
        };
        self.turns_started += 1;
        let number = self.turns_started;
        self.records.push(Record::TurnStarted { turn: number, prompt: message.text.clone() });
        self.transcript.push(Entry::User(message.shown.clone()));
        self.mood = Mood::Working;
        self.play = Some(Play::new(Part::Turn { number, message }, steps, now));
        // However short it is, a turn is seen and heard to begin.
        self.show(now);
    }

    /// The steps are through.
    fn end_part(&mut self, now: Mono) {
        match self.play.as_ref().map(|play| &play.part) {
            Some(Part::Start) => {
                self.play = None;
                self.ready = Some(now);
                self.mood = Mood::Idle;
                self.records.push(Record::Ready);
                if let Some(prompt) = self.scenario.auto_prompt.clone() {
                    // The box has been there before its prompt, if only for one frame.
                    self.show(now);
                    self.submit(Message::plain(&prompt), By::Auto, now);
                }
            }
            _ => self.end_turn(Outcome::Done, now),
        }
    }

    pub(super) fn fail_turn(&mut self, text: String, now: Mono) {
        self.fail_turn_with(Entry::Error(text), now);
    }

    fn fail_turn_with(&mut self, row: Entry, now: Mono) {
        self.transcript.push(row);
        match &self.play {
            Some(Play { part: Part::Turn { .. }, .. }) => self.end_turn(Outcome::Error, now),
            Some(Play { part: Part::Start, .. }) => self.ending = Some(Ending::Exit(1)),
            None => {}
        }
    }

    /// Breaks off the turn: Esc or Ctrl-C while it works.
    pub(super) fn interrupt(&mut self, now: Mono) {
        let Some(Play { part: Part::Turn { message, .. }, act, .. }) = &mut self.play else {
            return;
        };
        let nothing_said = matches!(act, Act::Think { .. });
        match std::mem::replace(act, Act::Next) {
            Act::Stream { text, shown, .. } => self.transcript.push(Entry::Answer(text[..shown].to_owned())),
            Act::Tool { tool, .. } => {
                let output = "(interrupted)".to_owned();
                self.transcript.push(Entry::Tool { name: tool.name, input: tool.input, output });
            }
            // What was printed is on the screen already; the picture goes on below it.
            _ => {}
        }
        // Before its first word Claude takes the prompt back into the box, without a trace.
        let nothing_said = nothing_said && matches!(self.transcript.last(), Some(Entry::User(_)));
        if self.scenario.look == Look::Claude && nothing_said {
            let message = std::mem::take(message);
            self.draft.prepend(message);
            self.transcript.pop();
        } else {
            self.transcript.push(Entry::Interrupted);
        }
        self.end_turn(Outcome::Interrupted, now);
    }

    fn end_turn(&mut self, outcome: Outcome, now: Mono) {
        let Some(play) = self.play.take() else {
            return;
        };
        let Part::Turn { number, .. } = play.part else {
            return;
        };
        self.drop_what_is_left_of_the_turn();
        let look = self.scenario.look;
        // Claude closes failed turns like any other.
        if outcome == Outcome::Done || (outcome == Outcome::Error && look == Look::Claude) {
            let row = self.scenario.closing.as_deref().unwrap_or_else(|| look.usual_closing());
            let row = row.replace("{verb}", past_verb(number)).replace("{time}", &look.took(now - play.since));
            self.transcript.push(Entry::Closing(row));
        }
        self.mood = match outcome {
            Outcome::Done => Mood::Done,
            Outcome::Interrupted => Mood::Idle,
            Outcome::Error => Mood::Failed,
        };
        self.records.push(Record::TurnEnded { turn: number, outcome });
    }

    /// A prompt given while the agent works, where that joins the running turn.
    pub(super) fn steer(&mut self, message: Message) {
        self.records.push(Record::Submitted { prompt: message.text.clone(), by: By::Keys });
        self.records.push(Record::Steered { prompt: message.text });
        self.transcript.push(Entry::User(message.shown));
    }
}

/// The next part of a flood: numbered lines, the last one cut where the bytes end.
fn flood_chunk(left: &mut Flood, line: &mut u64) -> Vec<u8> {
    let mut chunk = Vec::with_capacity(FLOOD_CHUNK + 128);
    while chunk.len() < FLOOD_CHUNK {
        let mut text = format!("{line:>9} all work and no play makes a dull log file\r\n").into_bytes();
        match left {
            Flood::Lines(0) | Flood::Bytes(0) => break,
            Flood::Lines(lines) => *lines -= 1,
            Flood::Bytes(bytes) => {
                let length = text.len().min(usize::try_from(*bytes).unwrap_or(usize::MAX));
                *bytes -= length as u64;
                if *bytes == 0 {
                    // Whatever is cut, the picture below begins on a row of its own.
                    text.truncate(length.saturating_sub(2));
                    text.extend_from_slice(&b"\r\n"[..length.min(2)]);
                }
            }
        }
        chunk.append(&mut text);
        *line += 1;
    }
    chunk
}

pub(super) fn verb(turn: u32) -> &'static str {
    const VERBS: [&str; 4] = ["Pondering", "Tinkering", "Puzzling", "Rummaging"];
    VERBS[turn as usize % VERBS.len()]
}

fn past_verb(turn: u32) -> &'static str {
    const VERBS: [&str; 5] = ["Crunched", "Worked", "Baked", "Brewed", "Cooked"];
    VERBS[turn as usize % VERBS.len()]
}

//! The actor as a value: events and time go in, effects come out. Knows no terminal, no file, no clock.
//!
//! The parts: `play` goes through the steps of a turn, `input` takes keys, this file holds the state and draws
//! it. Drawing is immediate: after every event the whole picture is made anew and the painter finds out what
//! changed, so no transition can forget to update the screen.

mod draft;
mod input;
mod play;
mod report;
mod rounds;
mod script;

use std::path::PathBuf;
use std::time::Duration;

use crate::keys::{Decoder, ESCAPE_WAIT};
use crate::look::{DialogView, Input, Look, Mood, Spinner, SpinnerText, View};
use crate::paint::{Painter, Screen};
use crate::record::Record;
use crate::rounds::Tally;
use crate::rows::Size;
use crate::scenario::{Scenario, SelfReport, WriteHow};
use crate::time::Mono;
use crate::transcript::Transcript;

use draft::{Draft, Message};
use play::{Act, Part, Play};
use report::Reporter;
use rounds::{Later, Memory};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// Bytes from the terminal, cut anywhere.
    Input(&'a [u8]),
    Resize(Size),
    /// Time has passed. Late or needless ticks do no harm.
    Tick,
    /// A file could not be written.
    WriteFailed {
        path: String,
        error: String,
    },
    /// The process was told to end by a signal, or its terminal is gone (1).
    Signal(i32),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// A frame, as the escape bytes that draw it.
    Paint(String),
    Title(String),
    /// An OSC with this payload.
    Osc(String),
    Bell,
    /// Bytes of a `print` or `flood` step.
    Raw(Vec<u8>),
    Write {
        path: PathBuf,
        bytes: Vec<u8>,
        how: WriteHow,
    },
    /// A part of a file that is written straight into its place. The first one empties it; the file stays open, be
    /// it moved or not, until the last.
    Piece {
        path: PathBuf,
        bytes: Vec<u8>,
        last: bool,
    },
    /// One more line in a file that counts.
    Count(PathBuf),
    Log(Record),
    /// The last effect there is, like the next.
    Exit(i32),
    Kill(i32),
}

impl Effect {
    /// The bytes this means on a terminal; none for what happens elsewhere.
    pub fn bytes(&self) -> Option<Vec<u8>> {
        match self {
            Effect::Paint(text) => Some(text.clone().into_bytes()),
            Effect::Title(title) => {
                let title: String = title.chars().filter(|c| !c.is_control()).collect();
                Some(format!("\x1b]0;{title}\x07").into_bytes())
            }
            Effect::Osc(payload) => Some(format!("\x1b]{payload}\x1b\\").into_bytes()),
            Effect::Bell => Some(b"\x07".to_vec()),
            Effect::Raw(bytes) => Some(bytes.clone()),
            Effect::Write { .. }
            | Effect::Piece { .. }
            | Effect::Count(_)
            | Effect::Log(_)
            | Effect::Exit(_)
            | Effect::Kill(_) => None,
        }
    }
}

/// How the play ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    Exit(i32),
    Kill(i32),
}

/// A first key press that waits for a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Armed {
    what: Arms,
    until: Mono,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Arms {
    /// Ctrl-C or Ctrl-D on an empty draft.
    Exit,
    /// Esc on a draft.
    ClearDraft,
}

/// How long a double press may take. The real window was not measured; a second suits a human and a test.
const DOUBLE_PRESS: Duration = Duration::from_secs(1);

/// Titles turn ten times a second at most.
const TITLE_FRAME: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub struct Stage {
    scenario: Scenario,
    size: Size,
    opened: Mono,
    name: String,
    keys: Decoder,
    escape_due: Option<Mono>,
    transcript: Transcript,
    painter: Painter,
    reporter: Reporter,
    draft: Draft,
    queue: Vec<Message>,
    mood: Mood,
    /// None while it waits for a prompt.
    play: Option<Play>,
    /// When the input was first shown.
    ready: Option<Mono>,
    typed: Option<Mono>,
    armed: Option<Armed>,
    turns_started: u32,
    turns_in_order: usize,
    memory: Memory,
    later: Vec<Later>,
    /// There is more to do at once, after a look at the input.
    hurry: bool,
    ending: Option<Ending>,
    over: bool,
    records: Vec<Record>,
    effects: Vec<Effect>,
    wake: Option<Mono>,
}

impl Stage {
    /// Raises the curtain. `tally` is what others of this name have done in the loop before.
    pub fn open(scenario: Scenario, tally: Tally, size: Size, now: Mono) -> (Stage, Vec<Effect>) {
        let look = scenario.look;
        let screen = if scenario.alternate { Screen::Alternate } else { Screen::Main };
        let mut stage = Stage {
            size,
            opened: now,
            name: scenario.name.clone().unwrap_or_else(|| look.usual_name().to_owned()),
            keys: Decoder::default(),
            escape_due: None,
            transcript: Transcript::new(look, size),
            painter: Painter::new(screen, look != Look::Plain),
            reporter: Reporter::new(&scenario),
            draft: Draft::default(),
            queue: Vec::new(),
            mood: Mood::Starting,
            play: Some(Play::new(Part::Start, scenario.start.clone(), now)),
            ready: None,
            typed: None,
            armed: None,
            turns_started: 0,
            turns_in_order: 0,
            memory: Memory::new(tally),
            later: Vec::new(),
            hurry: false,
            ending: None,
            over: false,
            records: Vec::new(),
            effects: Vec::new(),
            wake: None,
            scenario,
        };
        let mut modes = String::new();
        if stage.scenario.alternate {
            modes.push_str("\x1b[?1049h");
        }
        if look != Look::Plain {
            modes.push_str("\x1b[?2004h");
        }
        if !modes.is_empty() {
            stage.effects.push(Effect::Paint(modes));
        }
        let effects = stage.conclude(now);
        (stage, effects)
    }

    /// Takes an event; what it leads to has to be carried out in order.
    pub fn handle(&mut self, event: Event<'_>, now: Mono) -> Vec<Effect> {
        if self.over {
            return Vec::new();
        }
        if self.escape_due.is_some_and(|due| due <= now) {
            self.escape_due = None;
            let keys = self.keys.flush();
            self.take_keys(keys, now);
        }
        if self.armed.is_some_and(|armed| armed.until <= now) {
            self.armed = None;
        }
        self.do_what_is_due(now);
        match event {
            Event::Input(bytes) => {
                self.effects.push(Effect::Log(Record::Keys(bytes.to_vec())));
                let keys = self.keys.feed(bytes);
                self.escape_due = self.keys.is_waiting().then_some(now + ESCAPE_WAIT);
                self.take_keys(keys, now);
            }
            Event::Resize(size) => {
                if size != self.size {
                    self.size = size;
                    self.transcript.resize(size);
                    self.painter.clear();
                    self.records.push(Record::Resized { columns: size.columns, rows: size.rows });
                }
            }
            Event::Tick => {}
            Event::WriteFailed { path, error } => {
                let text = format!("cannot write {path}: {error}");
                self.records.push(Record::WriteFailed { path, error });
                self.fail_turn(text, now);
            }
            Event::Signal(signal) => self.ending = Some(Ending::Exit(128 + signal)),
        }
        self.conclude(now)
    }

    /// When it wants a tick. None while nothing moves: a waiting actor sleeps until it is spoken to.
    pub fn deadline(&self) -> Option<Mono> {
        self.wake
    }

    fn conclude(&mut self, now: Mono) -> Vec<Effect> {
        if self.ending.is_none() {
            self.advance(now);
        }
        self.show(now);
        match self.ending {
            Some(Ending::Exit(code)) => {
                self.effects.extend(self.reporter.farewell());
                let mut leave = self.painter.leave();
                if self.scenario.look != Look::Plain {
                    leave.push_str("\x1b[?2004l");
                }
                self.effects.push(Effect::Paint(leave));
                self.effects.push(Effect::Log(Record::Exit { code }));
                self.effects.push(Effect::Exit(code));
                self.over = true;
            }
            Some(Ending::Kill(signal)) => {
                self.effects.push(Effect::Log(Record::Crash { signal }));
                self.effects.push(Effect::Kill(signal));
                self.over = true;
            }
            None => {}
        }
        self.wake = self.next_wake(now);
        std::mem::take(&mut self.effects)
    }

    fn next_wake(&self, now: Mono) -> Option<Mono> {
        if self.over {
            return None;
        }
        let act = self.play.as_ref().and_then(|play| play.act.due(now, self.frame_time(), self.animated()));
        let hurry = self.hurry.then_some(now);
        [act, hurry, self.escape_due, self.next_due(), self.armed.map(|armed| armed.until)].into_iter().flatten().min()
    }

    fn frame_time(&self) -> Duration {
        Duration::from_secs(1) / self.scenario.fps
    }

    fn animated(&self) -> bool {
        self.scenario.look != Look::Plain
    }

    /// Draws the present state, says what changed out of band, then logs: a record says what can be seen.
    fn show(&mut self, now: Mono) {
        // While a flood runs the screen belongs to it.
        if !matches!(self.play, Some(Play { act: Act::Flood { .. }, .. })) {
            let live = self.scenario.look.live(&self.view(now, &self.draft.message().shown));
            let bytes = self.painter.paint(&live.over(self.transcript.rows()), self.size);
            if !bytes.is_empty() {
                self.effects.push(Effect::Paint(bytes));
            }
            let forgotten = self.transcript.trim(self.painter.forgettable());
            self.painter.forget(forgotten);
        }
        let frame = (now - self.opened).as_nanos() / TITLE_FRAME.as_nanos();
        let frame = u64::try_from(frame).unwrap_or(u64::MAX);
        self.effects.extend(self.reporter.update(self.mood, &self.name, frame));
        self.effects.extend(self.records.drain(..).map(Effect::Log));
    }

    fn view<'a>(&'a self, now: Mono, draft: &'a str) -> View<'a> {
        let mut view = View {
            size: self.size,
            directory: &self.scenario.directory,
            partial: None,
            tool: None,
            spinner: None,
            dialog: None,
            input: if self.ready.is_some() { Input::Draft(draft) } else { Input::Absent },
            busy: self.play.is_some(),
            queue: self.queue.iter().map(|message| message.shown.as_str()).collect(),
            hint: self.armed.map(|armed| match armed.what {
                Arms::Exit => "Press Ctrl-C again to exit",
                Arms::ClearDraft => "Press Esc again to clear",
            }),
        };
        let Some(play) = &self.play else {
            return view;
        };
        let verb = play::verb(self.turns_started);
        let spinner = |since: Mono, text| Spinner {
            frame: u64::try_from((now - since).as_nanos() / self.frame_time().as_nanos()).unwrap_or(u64::MAX),
            text,
            elapsed: now - play.since,
        };
        match &play.act {
            Act::Think { think, since, .. } => {
                let verb = SpinnerText::Verb(think.verb.as_deref().unwrap_or(verb));
                view.spinner = Some(spinner(*since, think.row.as_deref().map_or(verb, SpinnerText::Row)));
            }
            Act::Tool { tool, since, .. } => {
                view.tool = Some((&tool.name, &tool.input));
                view.spinner = Some(spinner(*since, SpinnerText::Verb(verb)));
            }
            Act::Announce { since, .. } => view.spinner = Some(spinner(*since, SpinnerText::Verb(verb))),
            Act::Stream { text, shown, .. } => view.partial = Some(&text[..*shown]),
            Act::Ask(dialog) => {
                view.dialog = Some(DialogView { ask: &dialog.ask, options: &dialog.options, cursor: dialog.cursor });
            }
            Act::Next | Act::Flood { .. } | Act::Pause { .. } => {}
        }
        view
    }

    /// Whether titles are the actor's business; if not, a `title` step speaks for itself.
    fn titles_itself(&self) -> bool {
        self.reporter.sends(SelfReport::Title) && self.mood != Mood::Starting
    }
}

#[cfg(test)]
mod tests;

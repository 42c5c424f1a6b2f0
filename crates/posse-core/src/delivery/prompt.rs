//! Delivers one message to an agent: waits for an empty input field, pastes, sees the text, submits, and sees it taken.

use std::time::Duration;

use super::order::{Failure, Left, Order, Why};
use super::rules::Submit;
use super::shown::{Recognised, clean, paste};
use super::typist::Typist;
use super::{Clock, Event, LOOK_AGAIN, PromptEffect as Effect, Seen};
use crate::detect::{Reading, Strength};
use crate::status::{Claim, StatusKind, WaitingKind};
use crate::time::Mono;

/// The time in which the input field must appear. Claude Code draws the end of a turn 38 to 180 ms after it reports it;
/// the rest is chosen, for a busy machine.
const READY: Duration = Duration::from_secs(3);
/// The time in which a key that clears a draft must show an effect. Chosen: eight looks.
const CLEAR: Duration = Duration::from_secs(2);
/// The maximum number of clearing keys. A longer draft is a person's work and is not cleared.
const CLEARINGS: usize = 64;
/// The maximum number of keys without a visible effect, which may clear lines that are not shown.
const IN_VAIN: usize = 8;
/// The time in which a paste must appear. Chosen: 36 KB arrive without delay, and only a stalled program needs longer.
const SEE: Duration = Duration::from_secs(5);
/// The time after the submit key in which a report of work counts: hooks and OSC report it within 62 ms. A later report
/// may be about a question that was answered before any look showed it. It is assumed that people need 300 ms for that.
const CLAIM: Duration = Duration::from_millis(150);
/// The time in which a sign must appear that the message was taken or a key was read. Chosen: the sender waits for the
/// answer, and a longer stall is better reported than waited for.
const TAKE: Duration = Duration::from_secs(5);
/// Codex takes an Enter within 100 ms of a typed character for a line break of a paste.
const AFTER_TYPING: Duration = Duration::from_millis(120);
/// The maximum number of presses: a key lost three times is lost for a reason.
const PRESSES: u32 = 3;
const ENTER: u8 = b'\r';
/// Typed and erased to find out whether Enter was read. Visible, and without meaning in any dialog.
const PROBE: &str = ".";

#[derive(Clone, Debug, PartialEq, Eq)]
enum PromptStep {
    /// Nothing has been typed; the input field is not ready.
    Waiting,
    /// Keys were pressed on a draft that had this text before; the number counts consecutive keys without effect.
    Clearing {
        before: String,
        presses: usize,
        vain: usize,
    },
    /// The text was typed and not seen yet.
    Pasting,
    /// The text was first seen at this time; the gap before the submit key has started.
    Pausing {
        since: Mono,
    },
    Submitted,
    /// The submit key had no visible effect; a character was typed after it.
    Probing,
    /// The character appeared behind the text: the submit key was read and lost. The character is being erased.
    Erasing,
    /// The text was typed without looks.
    Raw,
    Over,
}

#[derive(Clone, Debug)]
pub struct Prompt {
    order: Order,
    how: Submit,
    /// Mark the text as pasted. Without the mark a line break may submit.
    bracketed: bool,
    text: Recognised,
    step: PromptStep,
    clock: Clock,
    typist: Typist,
    checked: bool,
    /// The screen shows work that is believed to be over.
    held: bool,
    /// The content of the input field, and the last echo, when the submit key was pressed.
    draft: String,
    echo: Option<String>,
    pressed: Option<Mono>,
    claimed: bool,
    /// The question in the last look, and whether any look since the submit key showed one.
    asked: Option<Option<WaitingKind>>,
    was_asked: bool,
    presses: u32,
    /// The input field was only a row of text when the submit key was pressed.
    plain: bool,
}

impl Prompt {
    pub fn new(mut order: Order, how: Submit, bracketed: bool, now: Mono) -> Self {
        order.text = clean(&order.text);
        Self {
            text: Recognised::new(&order.text, how.pasted.clone()),
            order,
            how,
            bracketed,
            step: PromptStep::Waiting,
            clock: Clock::new(now, now + READY),
            typist: Typist::default(),
            checked: false,
            held: false,
            draft: String::new(),
            echo: None,
            pressed: None,
            claimed: false,
            asked: None,
            was_asked: false,
            presses: 0,
            plain: false,
        }
    }

    /// Creates a delivery to an unreadable program: text and Enter at once, without proof.
    pub fn raw(text: &str, bracketed: bool, now: Mono) -> Self {
        let order = Order { text: text.to_owned(), ..Order::default() };
        Self { step: PromptStep::Raw, ..Self::new(order, Submit::default(), bracketed, now) }
    }

    /// Returns whether the text is a command of the agent itself or for a shell. All agents know these marks.
    pub fn is_command(&self) -> bool {
        self.order.text.starts_with(['/', '!', '#'])
    }

    pub fn deadline(&self) -> Option<Mono> {
        (self.step != PromptStep::Over).then(|| self.clock.deadline())
    }

    pub fn handle(&mut self, event: Event<'_>, now: Mono) -> Vec<Effect> {
        if self.step == PromptStep::Over {
            return Vec::new();
        }
        if self.step == PromptStep::Raw {
            return self.raw_event(event, now);
        }
        match event {
            Event::Gone => self.fail(Why::Gone),
            Event::TypingFailed(id) if self.typist.failed(id) => self.fail(Why::Typing),
            Event::Typed(id) if self.typist.typed(id, now) => self.typed(now),
            // A later report, or one after a question was seen, may be about the answer to a question.
            Event::Said(Claim::Working) if self.pressed.is_some_and(|at| now < at + CLAIM) && !self.was_asked => {
                self.claimed = true;
                vec![Effect::Look]
            }
            Event::TypingFailed(_) | Event::Typed(_) | Event::Said(_) => Vec::new(),
            Event::Read(seen) => self.read(seen, now),
            Event::Time if now >= self.clock.give_up => self.give_up(),
            Event::Time => self.clock.ring(now),
        }
    }

    fn raw_event(&mut self, event: Event<'_>, now: Mono) -> Vec<Effect> {
        match event {
            Event::Gone => self.fail(Why::Gone),
            Event::TypingFailed(id) if self.typist.failed(id) => self.fail(Why::Typing),
            Event::Typed(id) if self.typist.typed(id, now) => self.done(),
            _ if !self.typist.has_typed() => {
                self.clock = Clock { look: None, give_up: now + TAKE };
                let mut bytes = if self.order.text.is_empty() { Vec::new() } else { self.pasted() };
                bytes.push(ENTER);
                vec![self.typist.key(bytes)]
            }
            _ if now >= self.clock.give_up => self.fail(Why::NotTaken),
            _ => Vec::new(),
        }
    }

    fn read(&mut self, seen: Seen<'_>, now: Mono) -> Vec<Effect> {
        self.clock.looked(now);
        if !self.checked {
            self.checked = true;
            if let Some(why) = self.refused(seen) {
                return self.fail(why);
            }
        }
        self.asked = asks(seen).then_some(seen.reading.waiting_kind.or(seen.status.waiting_kind));
        self.was_asked |= self.asked.is_some();
        let submitted = matches!(self.step, PromptStep::Submitted | PromptStep::Probing);
        if let (Some(kind), false) = (self.asked, submitted) {
            return self.fail(Why::Dialog(kind));
        }
        if ended(seen.reading) {
            return self.fail(Why::Gone);
        }
        let draft = seen.reading.draft.as_deref();
        match (&self.step, draft) {
            (PromptStep::Waiting, Some(draft)) => self.begin(draft, seen, now),
            (PromptStep::Clearing { .. }, Some("")) => self.type_text(now),
            (PromptStep::Clearing { before, presses, vain }, Some(draft)) => {
                let (presses, vain) = (*presses, if draft == before { vain + 1 } else { 0 });
                let wait = if vain > 0 { LOOK_AGAIN } else { Duration::ZERO };
                if self.typist.taken().is_none_or(|taken| now < taken + wait) {
                    return Vec::new();
                }
                self.clear(draft, presses, vain, now)
            }
            (PromptStep::Pasting | PromptStep::Pausing { .. }, Some(draft)) => self.submit_if_seen(draft, seen, now),
            (PromptStep::Submitted, draft) => self.judge(draft, seen, now),
            (PromptStep::Probing, draft) => self.judge_probe(draft, seen, now),
            (PromptStep::Erasing, Some(draft)) if draft == self.draft || self.text.shown_by(draft) => {
                self.submit_again(draft, seen, now)
            }
            (PromptStep::Erasing, Some("")) => self.fail_with(Why::NotTaken, Left::Unknown),
            _ => Vec::new(),
        }
    }

    fn refused(&self, seen: Seen<'_>) -> Option<Why> {
        let status = seen.status;
        if self.order.text.trim().is_empty() {
            return Some(Why::Empty);
        }
        if self.order.expect.is_some_and(|expected| expected != status.kind) {
            return Some(Why::Status(status.kind));
        }
        self.order.epoch.filter(|epoch| *epoch != status.epoch).map(|_| Why::Epoch(status.epoch))
    }

    fn begin(&mut self, draft: &str, seen: Seen<'_>, now: Mono) -> Vec<Effect> {
        if seen.status.is_busy() {
            return self.fail(Why::Busy);
        }
        // The end of a turn may be known a moment before the screen shows it.
        self.held = works(seen);
        if self.held {
            return Vec::new();
        }
        if draft.is_empty() { self.type_text(now) } else { self.clear(draft, 0, 0, now) }
    }

    fn clear(&mut self, draft: &str, presses: usize, vain: usize, now: Mono) -> Vec<Effect> {
        if self.how.clear.is_empty() || presses >= CLEARINGS || vain >= IN_VAIN {
            return self.fail(Why::Draft);
        }
        self.go(PromptStep::Clearing { before: draft.to_owned(), presses: presses + 1, vain }, now, CLEAR);
        vec![self.typist.key(self.how.clear.clone())]
    }

    fn type_text(&mut self, now: Mono) -> Vec<Effect> {
        self.go(PromptStep::Pasting, now, SEE);
        vec![self.typist.key(self.pasted())]
    }

    fn typed(&mut self, now: Mono) -> Vec<Effect> {
        // The next look is due when the wait is over.
        self.clock.look = Some(match self.step {
            PromptStep::Pausing { since } => now.max(since + self.how.gap),
            PromptStep::Erasing => now + AFTER_TYPING,
            PromptStep::Submitted => now + self.how.retry,
            _ => return Vec::new(),
        });
        Vec::new()
    }

    fn submit_if_seen(&mut self, draft: &str, seen: Seen<'_>, now: Mono) -> Vec<Effect> {
        if !self.text.shown_by(draft) {
            return Vec::new();
        }
        let since = if let PromptStep::Pausing { since } = self.step { since } else { now };
        self.step = PromptStep::Pausing { since };
        self.submit(draft, seen, since + self.how.gap, now)
    }

    fn submit_again(&mut self, draft: &str, seen: Seen<'_>, now: Mono) -> Vec<Effect> {
        if self.presses >= PRESSES {
            return self.fail(Why::NotTaken);
        }
        match self.typist.taken() {
            Some(taken) => self.submit(draft, seen, taken + self.how.gap.max(AFTER_TYPING), now),
            None => Vec::new(),
        }
    }

    /// Presses the submit key, but not before `from`.
    fn submit(&mut self, draft: &str, seen: Seen<'_>, from: Mono, now: Mono) -> Vec<Effect> {
        if seen.status.is_busy() {
            return self.fail(Why::Busy);
        }
        // As before typing: if only the screen shows work, it may be a title that turned for a moment.
        if works(seen) || self.typist.taken().is_none() {
            return Vec::new();
        }
        if now < from {
            self.clock.look = Some(from);
            return Vec::new();
        }
        self.presses += 1;
        self.draft = draft.to_owned();
        self.echo = seen.echo.map(str::to_owned);
        self.pressed = Some(now);
        self.plain = seen.plain;
        self.claimed = false;
        self.was_asked = false;
        self.go(PromptStep::Submitted, now, TAKE.max(self.how.retry * 2));
        vec![self.typist.key(vec![ENTER])]
    }

    /// Decides after the submit key whether the message was taken.
    fn judge(&mut self, draft: Option<&str>, seen: Seen<'_>, now: Mono) -> Vec<Effect> {
        if self.is_taken(draft, seen) {
            return self.done();
        }
        let late = self.typist.taken().is_some_and(|taken| now >= taken + self.how.retry);
        if !draft.is_some_and(|draft| self.is_there(draft)) || self.asked.is_some() || !late {
            return Vec::new();
        }
        // The key is lost or unread, which the screen does not show. A character behind the text will show it.
        self.go(PromptStep::Probing, now, TAKE);
        vec![self.typist.key(PROBE.into())]
    }

    fn judge_probe(&mut self, draft: Option<&str>, seen: Seen<'_>, now: Mono) -> Vec<Effect> {
        if let Some(draft) = draft.filter(|draft| self.text.is_followed_by(PROBE, draft, &self.draft)) {
            // An announced question does not matter here: typed text is only erased.
            self.draft = draft.strip_suffix(PROBE).unwrap_or(draft).to_owned();
            self.go(PromptStep::Erasing, now, TAKE);
            return vec![self.typist.key(vec![0x7f])];
        }
        if !self.is_taken(draft, seen) {
            return Vec::new();
        }
        // The character is now in the next draft, or will be.
        let erase = self.typist.key(vec![0x7f]);
        [vec![erase], self.done()].concat()
    }

    /// Returns whether the screen proves that the message was taken.
    fn is_taken(&self, draft: Option<&str>, seen: Seen<'_>) -> bool {
        let echoed = seen.echo.is_some_and(|echo| self.echo.as_deref() != Some(echo) && self.text.echoed_by(echo));
        match draft {
            Some(draft) if self.is_there(draft) => false,
            Some(draft) if draft.is_empty() || draft == PROBE => true,
            // On a half-drawn screen the last prompt may be an older one.
            _ if echoed && seen.reading.strength == Strength::Layout => true,
            // On a half-drawn screen another draft may be something else.
            Some(_) => false,
            // The cursor has left the row of the text.
            None if self.plain && self.asked.is_none() => true,
            // The input field is hidden, perhaps by a question that was open when the key arrived: only reports count.
            None => self.claimed || works(seen),
        }
    }

    fn is_there(&self, draft: &str) -> bool {
        draft == self.draft || self.text.is_in(draft)
    }

    fn give_up(&mut self) -> Vec<Effect> {
        let why = match self.step {
            PromptStep::Waiting if self.held => Why::Busy,
            PromptStep::Waiting => Why::NoComposer,
            PromptStep::Clearing { .. } => Why::Draft,
            PromptStep::Pasting | PromptStep::Pausing { .. } => Why::NotSeen,
            _ => self.asked.map_or(Why::NotTaken, Why::Dialog),
        };
        self.fail(why)
    }

    fn fail(&mut self, why: Why) -> Vec<Effect> {
        let left = match self.step {
            PromptStep::Waiting | PromptStep::Clearing { .. } | PromptStep::Over => Left::Nothing,
            PromptStep::Pasting | PromptStep::Pausing { .. } | PromptStep::Erasing => Left::Draft,
            PromptStep::Submitted if why == Why::Typing => Left::Draft,
            PromptStep::Raw if !self.typist.has_typed() || why == Why::Typing => Left::Nothing,
            PromptStep::Submitted | PromptStep::Probing | PromptStep::Raw => Left::Unknown,
        };
        self.fail_with(why, left)
    }

    fn fail_with(&mut self, why: Why, left: Left) -> Vec<Effect> {
        self.step = PromptStep::Over;
        vec![Effect::Over(Err(Failure { why, left }))]
    }

    fn done(&mut self) -> Vec<Effect> {
        self.step = PromptStep::Over;
        vec![Effect::Over(Ok(()))]
    }

    fn go(&mut self, step: PromptStep, now: Mono, patience: Duration) {
        self.step = step;
        self.clock = Clock::new(now + LOOK_AGAIN, now + patience);
    }

    fn pasted(&self) -> Vec<u8> {
        paste(&self.order.text, self.bracketed)
    }
}

/// Returns whether a question is open or announced.
fn asks(seen: Seen<'_>) -> bool {
    let waiting = |kind| kind == StatusKind::WaitingUserAnswer;
    seen.about_to_ask
        || seen.reading.dialog.is_some()
        || seen.reading.status.is_some_and(waiting)
        || waiting(seen.status.kind)
}

/// Returns whether the screen shows work. An unrecognised screen defaults to work and does not count.
fn works(seen: Seen<'_>) -> bool {
    seen.reading.status == Some(StatusKind::Processing) && seen.reading.strength != Strength::Fallback
}

/// Returns whether the program has exited. Such an error has no row as evidence, as the last output may remain visible.
fn ended(reading: &Reading) -> bool {
    let elsewhere = reading.evidence.as_ref().is_some_and(|evidence| evidence.row.is_none());
    reading.status == Some(StatusKind::Error) && elsewhere
}

#[cfg(test)]
mod tests;

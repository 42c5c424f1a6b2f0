//! Answers a question with the key that chooses the decided option, and waits until the question is closed.

use std::time::Duration;

use super::decision::{Answered, Decision, NotAnswered, Unanswered, Verified, Wish};
use super::rules::DialogKeys;
use super::typist::Typist;
use super::{AnswerEffect as Effect, Clock, Event, LOOK_AGAIN, Seen};
use crate::detect::dialog::Dialog;
use crate::detect::{Reading, Strength};
use crate::keys::key;
use crate::status::{Claim, StatusKind};
use crate::time::Mono;

/// The time for which a question must be on the screen before a key is pressed. Claude Code 2.1.325 dropped keys right
/// after a dialog was drawn: 0 of 6 arrived at 0 ms, 0 of 1 at 100 ms, 6 of 6 at 200 ms and more.
const SETTLE: Duration = Duration::from_millis(300);
/// The time for which a question may stay after its answering key. Chosen: four looks, and far more than a frame takes.
const CLOSE: Duration = Duration::from_secs(1);
/// The time in which the cursor must move, or an answer must be echoed. Chosen: eight looks.
const MOVE: Duration = Duration::from_secs(2);
/// The time after which the caller learns that the question is still open. Longer than `CLOSE`, for a stalled program.
const GIVE_UP: Duration = Duration::from_secs(3);
/// The time for which an unrecognised screen without the question must stay, because it may be half drawn. Three times
/// the quiet that ends a frame.
const CONFIRM: Duration = Duration::from_millis(100);
/// The maximum number of presses: a key lost three times is lost for a reason.
const PRESSES: u32 = 3;
/// Chooses the option under the cursor, and ends a typed answer.
const ENTER: &[u8] = b"\r";

#[derive(Clone, Debug, PartialEq, Eq)]
enum AnswerStep {
    /// The question has not been on the screen for long enough.
    Settling,
    /// An arrow key was pressed; the cursor is expected on this option.
    Moving {
        to: usize,
    },
    /// The answer to a textual question was typed. The row had this text before.
    Echoing {
        before: String,
        answer: Vec<u8>,
    },
    /// Words were typed into the option under the cursor.
    Writing {
        at: usize,
        text: String,
    },
    /// The answering key was pressed when this many bytes had been printed.
    Pressed {
        printed: u64,
    },
    Over,
}

enum Way {
    /// This key chooses the option, independent of the cursor.
    Key(Vec<u8>),
    /// The cursor must be on the option.
    Cursor(usize),
}

#[derive(Clone, Debug)]
pub struct Answer {
    decision: Decision,
    keys: DialogKeys,
    step: AnswerStep,
    clock: Clock,
    typist: Typist,
    /// Options that the cursor has to visit before the answering key, in this order.
    path: Vec<usize>,
    presses: u32,
    /// The agent has reported something since the key that it would not report if the key were lost.
    claimed: bool,
    /// The question on the screen is another one if the cursor moves away and back.
    proves: bool,
    /// The time since when the question is missing on an unrecognised screen.
    missing: Option<Mono>,
}

impl Answer {
    pub fn new(decision: Decision, keys: DialogKeys, now: Mono) -> Self {
        Self {
            decision,
            keys,
            step: AnswerStep::Settling,
            clock: Clock::new(now, now + GIVE_UP),
            typist: Typist::default(),
            path: Vec::new(),
            presses: 0,
            claimed: false,
            proves: false,
            missing: None,
        }
    }

    pub fn deadline(&self) -> Option<Mono> {
        (self.step != AnswerStep::Over).then(|| self.clock.deadline())
    }

    /// Returns the keys that answer the question as it is shown now, if each key works. For the record only: each look
    /// decides anew what is typed.
    pub fn plan(&self, reading: &Reading) -> Vec<Vec<u8>> {
        let Some(dialog) = &reading.dialog else { return vec![self.plain(), ENTER.into()] };
        if let Some(answer) = self.typed(dialog) {
            return vec![answer, ENTER.into()];
        }
        let (path, way) = (self.detour(dialog), self.way(dialog));
        let (target, press) = match way {
            Ok(Way::Key(key)) => (None, key),
            Ok(Way::Cursor(at)) => (Some(at), ENTER.into()),
            Err(_) => return Vec::new(),
        };
        let mut keys = Vec::new();
        let mut cursor = dialog.selected();
        for to in path.into_iter().flatten().chain(target) {
            let from = cursor.replace(to).unwrap_or(to);
            let arrow = if to > from { &self.keys.down.0 } else { &self.keys.up.0 };
            keys.extend(std::iter::repeat_n(arrow.clone(), to.abs_diff(from)));
        }
        keys.extend(self.decision.words.as_ref().map(|words| words.text.clone().into_bytes()));
        keys.push(press);
        keys
    }

    pub fn handle(&mut self, event: Event<'_>, now: Mono) -> Vec<Effect> {
        if self.step == AnswerStep::Over {
            return Vec::new();
        }
        match event {
            Event::Gone => self.fail(NotAnswered::Gone),
            Event::TypingFailed(id) if self.typist.failed(id) => self.fail(NotAnswered::Typing),
            Event::Typed(id) => {
                if self.typist.typed(id, now) && matches!(self.step, AnswerStep::Pressed { .. }) {
                    self.clock = Clock::new(now + CLOSE, now + GIVE_UP);
                }
                Vec::new()
            }
            Event::Said(Claim::Working | Claim::Asking(_)) if self.presses > 0 => {
                self.claimed = true;
                vec![Effect::Look]
            }
            Event::TypingFailed(_) | Event::Said(_) => Vec::new(),
            Event::Read(seen) => self.read(seen, now),
            Event::Time if now >= self.clock.give_up => self.give_up(),
            Event::Time => self.clock.ring(now),
        }
    }

    fn read(&mut self, seen: Seen<'_>, now: Mono) -> Vec<Effect> {
        self.clock.looked(now);
        match self.step.clone() {
            AnswerStep::Pressed { printed } => return self.verify(printed, seen, now),
            AnswerStep::Echoing { before, answer } => return self.echoed(&before, &answer, seen, now),
            AnswerStep::Writing { at, text } => return self.written(at, &text, seen, now),
            AnswerStep::Settling | AnswerStep::Moving { .. } | AnswerStep::Over => {}
        }
        match self.decision.check(seen.reading) {
            Ok(()) => {}
            // The key that seemed lost was only slow.
            Err(NotAnswered::Vanished) if self.presses > 0 => return self.vanished(seen.reading, now),
            Err(NotAnswered::Changed) if self.presses > 0 => return self.done(Verified::Another),
            Err(why) => return self.fail(why),
        }
        match (&self.step, &seen.reading.dialog) {
            (AnswerStep::Settling, dialog) => {
                let settled = *self.decision.since.get_or_insert(now) + SETTLE;
                if now < settled {
                    self.clock.look = Some(settled);
                    return Vec::new();
                }
                let Some(dialog) = dialog else { return self.type_text(self.plain(), seen, now) };
                match self.typed(dialog) {
                    Some(answer) => self.type_text(answer, seen, now),
                    None => self.choose(dialog, seen, now),
                }
            }
            (AnswerStep::Moving { to }, Some(dialog))
                if dialog.selected() == Some(*to) && self.typist.taken().is_some() =>
            {
                self.go_on(dialog, seen, now)
            }
            _ => Vec::new(),
        }
    }

    /// Returns the answer to a question that is only text.
    fn plain(&self) -> Vec<u8> {
        if self.decision.wish == Wish::Deny { self.keys.no.0.clone() } else { b"y".into() }
    }

    /// Returns the moves that the cursor has to make first, if an earlier key may still be unread.
    fn detour(&self, dialog: &Dialog) -> Option<Vec<usize>> {
        if self.decision.again { there_and_back(dialog) } else { None }
    }

    /// Returns the answer to type and confirm, for options that are words and not keys.
    fn typed(&self, dialog: &Dialog) -> Option<Vec<u8>> {
        let at = match self.decision.wish {
            Wish::Accept => dialog.accepting(),
            Wish::Option(at) => Some(at),
            Wish::Deny => dialog.denying(),
        };
        let option = dialog.options.get(at?).filter(|option| option.then_enter)?;
        key(option.key.as_deref()?)
    }

    fn way(&self, dialog: &Dialog) -> Result<Way, NotAnswered> {
        let at = match self.decision.wish {
            Wish::Accept => dialog.accepting().ok_or(NotAnswered::NotPlain)?,
            Wish::Option(at) => at,
            Wish::Deny => match (dialog.denying(), &self.keys.deny) {
                (Some(at), _) => at,
                (None, Some(deny)) => return Ok(Way::Key(deny.0.clone())),
                (None, None) => return Err(NotAnswered::NoRefusal),
            },
        };
        let option = dialog.options.get(at).ok_or(NotAnswered::NoSuchOption)?;
        if self.decision.words.is_some() || self.keys.cursor_only.contains(&dialog.kind) {
            return Ok(Way::Cursor(at));
        }
        Ok(option.key.as_deref().and_then(key).map_or(Way::Cursor(at), Way::Key))
    }

    /// Starts the shortest way to the answer, unless an earlier key may still be unread.
    fn choose(&mut self, dialog: &Dialog, seen: Seen<'_>, now: Mono) -> Vec<Effect> {
        self.path = match (self.way(dialog), self.detour(dialog)) {
            (Err(why), _) => return self.fail(why),
            (_, None) if self.decision.again => return self.fail(NotAnswered::Stuck),
            (_, path) => path.unwrap_or_default(),
        };
        if let Ok(Way::Cursor(at)) = self.way(dialog) {
            self.path.push(at);
        }
        self.go_on(dialog, seen, now)
    }

    /// Takes one step towards the answer: an arrow key, or the answering key if the cursor has arrived.
    fn go_on(&mut self, dialog: &Dialog, seen: Seen<'_>, now: Mono) -> Vec<Effect> {
        let Some(at) = dialog.selected() else {
            // Without a visible cursor only an option's own key chooses it.
            let moves = !self.path.is_empty();
            return if moves { self.fail(NotAnswered::Stuck) } else { self.press(dialog, seen, now) };
        };
        while self.path.first() == Some(&at) {
            self.path.remove(0);
        }
        let Some(&target) = self.path.first() else {
            if self.proves {
                return self.done(Verified::Another);
            }
            return match self.decision.words.as_ref().map(|words| words.text.clone()) {
                Some(text) => self.type_and_watch(text.clone().into_bytes(), AnswerStep::Writing { at, text }, now),
                None => self.press(dialog, seen, now),
            };
        };
        // One arrow at a time, and no second one if the first seems to have no effect: it may still be on its way.
        let (arrow, to) = if target > at { (&self.keys.down.0, at + 1) } else { (&self.keys.up.0, at - 1) };
        let arrow = arrow.clone();
        self.type_and_watch(arrow, AnswerStep::Moving { to }, now)
    }

    fn press(&mut self, dialog: &Dialog, seen: Seen<'_>, now: Mono) -> Vec<Effect> {
        if self.presses > 0 && self.claimed {
            return self.fail(NotAnswered::StillOpen);
        }
        let bytes = match self.way(dialog) {
            Err(why) => return self.fail(why),
            Ok(Way::Key(bytes)) => bytes,
            Ok(Way::Cursor(at)) if dialog.selected() == Some(at) => ENTER.into(),
            Ok(Way::Cursor(_)) => return self.fail(NotAnswered::Stuck),
        };
        self.answering(bytes, seen, now)
    }

    fn answering(&mut self, bytes: Vec<u8>, seen: Seen<'_>, now: Mono) -> Vec<Effect> {
        self.presses += 1;
        self.claimed = false;
        self.proves = false;
        self.missing = None;
        self.step = AnswerStep::Pressed { printed: seen.printed };
        self.clock = Clock::new(now + CLOSE, now + GIVE_UP);
        vec![self.typist.key(bytes)]
    }

    fn verify(&mut self, printed: u64, seen: Seen<'_>, now: Mono) -> Vec<Effect> {
        match self.decision.check(seen.reading) {
            // The kind is read from the screen around the question; the question itself is the same.
            Ok(()) | Err(NotAnswered::Kind(_)) => self.again(printed, seen, now),
            Err(NotAnswered::Vanished) => self.vanished(seen.reading, now),
            Err(_) => self.done(Verified::Another),
        }
    }

    fn vanished(&mut self, reading: &Reading, now: Mono) -> Vec<Effect> {
        let since = *self.missing.get_or_insert(now);
        let recognised =
            reading.strength != Strength::Fallback && reading.status != Some(StatusKind::WaitingUserAnswer);
        if recognised || now >= since + CONFIRM {
            return self.done(Verified::Closed);
        }
        self.clock.look = Some(since + CONFIRM);
        Vec::new()
    }

    /// Handles a question that is still there after the key, or the next one in the same words. If the agent has both
    /// reported and printed something since the key, it is the next one. If it has only reported something, the caller
    /// decides anew. Otherwise the cursor is moved away and back, which shows that everything before was read. Then the
    /// key has answered if there was output since. If not, the key was lost and is pressed again.
    fn again(&mut self, printed: u64, seen: Seen<'_>, now: Mono) -> Vec<Effect> {
        self.missing = None;
        if self.decision.words.is_some() {
            return Vec::new();
        }
        let late = self.typist.taken().is_some_and(|taken| now >= taken + CLOSE);
        if !late || self.presses >= PRESSES {
            return Vec::new();
        }
        let changed = seen.printed != printed;
        if self.claimed {
            // With nothing new on the screen the report may be about something before the key.
            return if changed { self.done(Verified::Another) } else { Vec::new() };
        }
        let Some(dialog) = &seen.reading.dialog else { return Vec::new() };
        let Some(path) = there_and_back(dialog) else { return Vec::new() };
        self.path = path;
        self.proves = changed;
        self.go_on(dialog, seen, now)
    }

    fn type_text(&mut self, answer: Vec<u8>, seen: Seen<'_>, now: Mono) -> Vec<Effect> {
        let before = seen.cursor_row.unwrap_or_default().trim_end().to_owned();
        self.type_and_watch(answer.clone(), AnswerStep::Echoing { before, answer }, now)
    }

    /// Types something that does not answer yet, and continues with `step`.
    fn type_and_watch(&mut self, bytes: Vec<u8>, step: AnswerStep, now: Mono) -> Vec<Effect> {
        self.step = step;
        self.clock = Clock::new(now + LOOK_AGAIN, now + MOVE);
        vec![self.typist.key(bytes)]
    }

    /// Confirms the words when the option under the cursor shows them and nothing else.
    fn written(&mut self, at: usize, text: &str, seen: Seen<'_>, now: Mono) -> Vec<Effect> {
        if let Err(why) = self.decision.check(seen.reading) {
            return self.fail(why);
        }
        let Some(dialog) = &seen.reading.dialog else { return Vec::new() };
        // Long text is wrapped, and the rows are joined.
        let squeezed = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
        let shown = dialog.options.get(at).is_some_and(|option| squeezed(&option.label) == squeezed(text));
        if !shown || dialog.selected() != Some(at) || self.typist.taken().is_none() {
            return Vec::new();
        }
        self.answering(ENTER.into(), seen, now)
    }

    fn echoed(&mut self, before: &str, answer: &[u8], seen: Seen<'_>, now: Mono) -> Vec<Effect> {
        match self.decision.check(seen.reading) {
            Ok(()) => {}
            // The program accepts the letter without Enter.
            Err(NotAnswered::Vanished) => {
                self.presses = 1;
                return self.vanished(seen.reading, now);
            }
            Err(_) => return self.fail(NotAnswered::Changed),
        }
        let Some(taken) = self.typist.taken() else { return Vec::new() };
        let row = seen.cursor_row.unwrap_or_default().trim_end();
        let echoed = row.strip_prefix(before).is_some_and(|typed| typed.trim_start().as_bytes() == answer);
        // Some programs do not show typed text. The question is the same, and no other text appeared.
        let silent = row == before && now >= taken + CLOSE;
        if !echoed && !silent {
            return Vec::new();
        }
        self.answering(ENTER.into(), seen, now)
    }

    fn give_up(&mut self) -> Vec<Effect> {
        self.fail(match self.step {
            AnswerStep::Moving { .. } => NotAnswered::Stuck,
            AnswerStep::Echoing { .. } | AnswerStep::Writing { .. } => NotAnswered::NotEchoed,
            AnswerStep::Pressed { .. } => NotAnswered::StillOpen,
            AnswerStep::Settling | AnswerStep::Over => NotAnswered::Unclear,
        })
    }

    fn fail(&mut self, why: NotAnswered) -> Vec<Effect> {
        self.step = AnswerStep::Over;
        vec![Effect::Over(Err(Unanswered { why, presses: self.presses }))]
    }

    fn done(&mut self, verified: Verified) -> Vec<Effect> {
        self.step = AnswerStep::Over;
        vec![Effect::Over(Ok(Answered { verified, presses: self.presses }))]
    }
}

/// Returns moves of the cursor that end at its position.
fn there_and_back(dialog: &Dialog) -> Option<Vec<usize>> {
    let at = dialog.selected().filter(|_| dialog.options.len() > 1)?;
    let away = if at + 1 < dialog.options.len() { at + 1 } else { at - 1 };
    Some(vec![away, at])
}

#[cfg(test)]
mod tests;

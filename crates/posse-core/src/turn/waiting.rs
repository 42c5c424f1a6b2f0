//! A turn whose agent waits for an answer: accept, warn, notify a person, fail.

use std::time::Duration;

use super::{AcceptFailure, Cause, Effect, Level, Notice, Seen, Turn};
use crate::detect::dialog::short;
use crate::ids::TerminalId;
use crate::permission::{AcceptVerdict, CAP, COOLDOWN};
use crate::status::{StatusKind, WaitingKind};
use crate::time::Mono;

/// Time for an agent to draw its announced question, which takes up to a second. Earlier attempts would be refused only
/// because the question cannot be read yet.
const DRAWN: Duration = Duration::from_millis(1500);
/// Interval between two warnings about the same question. From the spec (LOOP-37).
const WARN_AGAIN: Duration = Duration::from_secs(60);
/// Number of refusals of one question that are ignored, because another client may have been answering it. After that a
/// person is notified, and each warning retries once.
const BAD_LUCK: u32 = 1;
/// Number of accepts without effect on a question before a person is notified. From the spec (LOOP-41).
const IN_VAIN: u32 = 3;

/// The question of a pending accept; `None` if it could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tried {
    question: Option<String>,
}

/// A terminal that waits for an answer, possibly to several questions in a row.
#[derive(Clone, Debug, Default)]
pub(super) struct Waiting {
    /// When this question appeared.
    since: Mono,
    /// The last readable question.
    question: Option<String>,
    /// When the question became unreadable.
    undrawn: Option<Mono>,
    warned: Option<Mono>,
    /// Number of refusals of this question, and number of accepts without effect.
    refusals: u32,
    accepts: u32,
    /// The reason only a person can answer this question.
    unproven: Option<String>,
}

/// The party that can answer.
enum Hands {
    Ours,
    /// Only a person: the evidence is not enough, for this reason.
    Unproven(String),
    /// Posse, but the accept was refused more than once. A person is notified; retries continue.
    Refused,
    /// Only a person: auto-accept is off.
    Off,
    /// Only a person: the question has no plain yes.
    NotPlain,
}

impl Waiting {
    /// Records a status that reports a question.
    pub(super) fn follow(waiting: &mut Option<Waiting>, seen: &Seen, now: Mono) {
        let first = || Waiting { since: now, ..Waiting::default() };
        let known = waiting.get_or_insert_with(first);
        let Some(question) = &seen.question else {
            known.undrawn.get_or_insert(now);
            return;
        };
        known.undrawn = None;
        if known.question.as_ref() != Some(question) {
            // The first readable question is the announced one. A person who answered the previous question has not
            // been notified of this one.
            let (since, warned) = if known.question.is_some() { (now, None) } else { (known.since, known.warned) };
            *known = Waiting { since, warned, question: Some(question.clone()), ..Waiting::default() };
        }
    }

    /// Returns whether the attempted question is the displayed one.
    fn is_about(&self, tried: &Tried) -> bool {
        let shown = if self.undrawn.is_some() { None } else { self.question.as_ref() };
        tried.question.as_ref() == shown
    }

    /// Returns when the warning is repeated. Insufficient evidence is reported once per question: only a person or
    /// another question changes it.
    fn next_warning(&self) -> Option<Mono> {
        let again = self.warned? + WARN_AGAIN;
        self.unproven.is_none().then_some(again)
    }

    fn refused(&mut self, tried: &Tried) {
        if self.is_about(tried) {
            self.refusals += 1;
            self.accepts = self.accepts.saturating_sub(1);
        }
    }
}

impl Turn {
    fn hands(&self, seen: &Seen, waiting: &Waiting) -> Hands {
        let plain = match seen.waiting {
            // The terminal, not the turn, refuses an unreadable question.
            None => true,
            Some(WaitingKind::Permission) => seen.plain_yes || seen.question.is_none(),
            Some(_) => false,
        };
        match () {
            () if !self.handoff.auto_accept_permissions => Hands::Off,
            () if !plain => Hands::NotPlain,
            () if waiting.unproven.is_some() => Hands::Unproven(waiting.unproven.clone().unwrap_or_default()),
            () if waiting.refusals > BAD_LUCK => Hands::Refused,
            () => Hands::Ours,
        }
    }

    /// Returns the next deadline if no event arrives. `permission` has handled everything that is already due.
    pub(super) fn waiting_deadline(&self, seen: &Seen) -> Option<Mono> {
        let waiting = self.waiting.as_ref()?;
        if self.accepting.is_some() {
            return None;
        }
        if let Hands::Ours = self.hands(seen, waiting) {
            let drawn = waiting.undrawn.map(|since| since + DRAWN);
            return drawn.max(self.accepts.last.map(|last| last + COOLDOWN));
        }
        let warn = waiting.next_warning();
        let give_up = self.handoff.patience().map(|timeout| waiting.since + timeout + Duration::from_nanos(1));
        [warn, give_up].into_iter().flatten().min()
    }

    pub(super) fn permission(&mut self, seen: &Seen, now: Mono, effects: &mut Vec<Effect>) {
        if self.api_failure(seen, effects) || self.accepting.is_some() {
            return;
        }
        let Some(waiting) = &self.waiting else { return };
        match self.hands(seen, waiting) {
            Hands::Ours if waiting.undrawn.is_some_and(|since| now < since + DRAWN) => {}
            Hands::Ours => self.accept(seen, now, effects),
            person => self.need_person(&person, seen, now, effects),
        }
    }

    fn accept(&mut self, seen: &Seen, now: Mono, effects: &mut Vec<Effect>) {
        match self.accepts.verdict(StatusKind::WaitingUserAnswer, self.handoff.auto_accept_permissions, now) {
            AcceptVerdict::NotAsked | AcceptVerdict::Off | AcceptVerdict::Cooldown(_) => {}
            AcceptVerdict::Capped => {
                let message = format!("{} asked for more than {CAP} permissions in one turn", self.name());
                self.fail(Cause::Cap, message, effects);
            }
            // The turn is about to end, so an accepted action would run unwatched.
            AcceptVerdict::Accept { .. } if now > self.last_instant => {}
            AcceptVerdict::Accept { n } => {
                self.tell_if_in_vain(seen, effects);
                self.accepts.sending(now);
                self.accepting = Some(Tried { question: seen.question.clone() });
                effects.push(Effect::Accept { n, cap: CAP, question: seen.question.clone(), shown: seen.snippet() });
            }
        }
    }

    /// Handles the result of an accept.
    pub(super) fn accepted(&mut self, result: Result<(), AcceptFailure>, now: Mono, effects: &mut Vec<Effect>) {
        let Some(tried) = self.accepting.take() else { return };
        match result {
            Ok(()) => self.sent(now),
            Err(AcceptFailure::Gone(why)) => self.gone(&why, effects),
            Err(AcceptFailure::Failed(why)) => {
                self.sent(now);
                self.say(Level::Warning, |who| format!("accepting the permission of {who} failed: {why}"), effects);
            }
            Err(AcceptFailure::Unproven(why)) => {
                self.accepts.refused(now);
                if let Some(waiting) = self.waiting.as_mut().filter(|waiting| waiting.is_about(&tried)) {
                    waiting.accepts = waiting.accepts.saturating_sub(1);
                    waiting.unproven = Some(why);
                    // The reason has not been reported yet, even if there was a warning about the question.
                    waiting.warned = None;
                }
            }
            Err(AcceptFailure::Refused(why)) => {
                self.accepts.refused(now);
                self.say(Level::Warning, |who| format!("the question of {who} was not accepted: {why}"), effects);
                if let Some(waiting) = &mut self.waiting {
                    waiting.refused(&tried);
                }
            }
        }
    }

    /// Handles a key that was pressed, or may have been. The wait for a person ends; a question that remains starts a
    /// new wait.
    fn sent(&mut self, now: Mono) {
        self.accepts.sent(now);
        if let Some(waiting) = &mut self.waiting {
            waiting.refusals = 0;
            waiting.since = now;
        }
    }

    fn tell_if_in_vain(&mut self, seen: &Seen, effects: &mut Vec<Effect>) {
        let Some(waiting) = &mut self.waiting else { return };
        waiting.accepts += 1;
        if waiting.accepts <= IN_VAIN || std::mem::replace(&mut self.vain_told, true) {
            return;
        }
        let words =
            |who: &str| format!("accepting seems to have no effect: {who} was accepted {IN_VAIN} times and still asks");
        self.say(Level::Warning, words, effects);
        self.notify("accepting seems to have no effect", seen, effects);
    }

    fn need_person(&mut self, why: &Hands, seen: &Seen, now: Mono, effects: &mut Vec<Effect>) {
        let Some(waiting) = &mut self.waiting else { return };
        let (since, id) = (waiting.since, self.terminal);
        if self.handoff.patience().is_some_and(|timeout| now > since + timeout) {
            let waited = now.since(since).as_secs();
            let message =
                format!("{} waited {waited} s for an answer ({}), and nobody gave one", self.name(), kind(seen));
            return self.fail(Cause::Waiting, message, effects);
        }
        let due = match waiting.warned {
            None => true,
            Some(_) => waiting.next_warning().is_some_and(|again| now >= again),
        };
        if due {
            waiting.warned = Some(now);
            let what = match why {
                Hands::Off => "and accepting is off (AUTO_ACCEPT_PERMISSIONS=1 would accept permissions)".to_owned(),
                Hands::NotPlain => "and there is no plain yes to it".to_owned(),
                Hands::Unproven(why) => format!("and is not accepted without a person: {why}"),
                Hands::Refused | Hands::Ours => "and accepting it was refused".to_owned(),
            };
            let (kind, answers) = (kind(seen), answers(id, seen));
            let warning = |who: &str| format!("{who} waits for an answer ({kind}) {what}; {answers}");
            self.say(Level::Warning, warning, effects);
            if !std::mem::replace(&mut self.human_told, true) {
                self.notify("an agent waits for an answer", seen, effects);
            }
            if let Hands::Refused = why {
                self.accept(seen, now, effects);
            }
        }
    }

    /// Sends an urgent notification: the run is blocked until a person answers. It names the role and terminal, never
    /// the question's text.
    fn notify(&self, what: &str, seen: &Seen, effects: &mut Vec<Effect>) {
        let text = format!("{}. {}.", self.name(), answers(self.terminal, seen));
        effects.push(Effect::Notify(Notice { priority: 5, title: format!("posse: {what}"), text }));
    }
}

/// Names the question, so that a late person does not answer another one. `posse approve` cannot answer a question
/// without a plain yes.
fn answers(terminal: TerminalId, seen: &Seen) -> String {
    if !seen.plain_yes {
        return format!("`posse show {terminal}` says what answers");
    }
    let question = seen.question.as_ref().map(|id| format!(" --question {}", short(id))).unwrap_or_default();
    format!("`posse approve {terminal}{question}` or `posse deny {terminal}{question}` answers")
}

fn kind(seen: &Seen) -> &'static str {
    seen.waiting.map_or("unknown kind", WaitingKind::as_str)
}

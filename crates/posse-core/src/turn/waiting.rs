//! A turn whose agent waits for an answer: accept, warn, tell a person, give up.

use std::time::Duration;

use super::{AcceptFailure, Cause, Effect, Level, Notice, Seen, Turn};
use crate::detect::dialog::short;
use crate::ids::TerminalId;
use crate::permission::{AcceptVerdict, CAP, COOLDOWN};
use crate::status::{StatusKind, WaitingKind};
use crate::time::Mono;

/// Agents say that they ask up to a second before they draw the question. So long, and a little longer, nothing is tried
/// that would be refused only because nobody can read it yet.
const DRAWN: Duration = Duration::from_millis(1500);
/// Between two warnings about the same waiting. From the spec (LOOP-37).
const WARN_AGAIN: Duration = Duration::from_secs(60);
/// So many refusals of one question are taken for bad luck: someone else was answering it. After that a person is told, and
/// it is tried again only with each warning.
const BAD_LUCK: u32 = 1;
/// So many accepts of a question that stays as it is are told to a person. From the spec (LOOP-41).
const IN_VAIN: u32 = 3;

/// Which question an accept under way is for. `None`: one that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tried {
    question: Option<String>,
}

/// The terminal waits for an answer, maybe for one after the other.
#[derive(Clone, Debug, Default)]
pub(super) struct Waiting {
    /// Since when for this one.
    since: Mono,
    /// The last question that could be read.
    question: Option<String>,
    /// Since when none can be read.
    undrawn: Option<Mono>,
    warned: Option<Mono>,
    /// How often this question was refused, and how often accepted, and is still there.
    refusals: u32,
    accepts: u32,
    /// Why only a person can answer this question.
    unproven: Option<String>,
}

/// Who can answer.
enum Hands {
    Ours,
    /// The evidence is not enough for a yes without a person, and why.
    Unproven(String),
    /// Ours, but it was refused more than once. A person is told; that does not forbid to try again.
    Refused,
    /// Accepting is off.
    Off,
    /// There is no plain yes to this.
    NotPlain,
}

impl Waiting {
    /// Takes in a status that says waiting.
    pub(super) fn follow(waiting: &mut Option<Waiting>, seen: &Seen, now: Mono) {
        let first = || Waiting { since: now, ..Waiting::default() };
        let known = waiting.get_or_insert_with(first);
        let Some(question) = &seen.question else {
            known.undrawn.get_or_insert(now);
            return;
        };
        known.undrawn = None;
        if known.question.as_ref() != Some(question) {
            // The first one that can be read is the one that was announced. A person who answered the question before
            // another one has not heard of that.
            let (since, warned) = if known.question.is_some() { (now, None) } else { (known.since, known.warned) };
            *known = Waiting { since, warned, question: Some(question.clone()), ..Waiting::default() };
        }
    }

    /// Whether what was tried is what is shown.
    fn is_about(&self, tried: &Tried) -> bool {
        let shown = if self.undrawn.is_some() { None } else { self.question.as_ref() };
        tried.question.as_ref() == shown
    }

    /// When the warning is repeated. Evidence that is not enough is reported once per question: nothing but a person
    /// or another question changes it.
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
            // What nobody could read is for the terminal to refuse, not for us.
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

    /// What comes next if nothing else happens. Whatever is not in the future has been done by `permission`.
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
            // The turn is about to end; what is allowed now nobody would watch over.
            AcceptVerdict::Accept { .. } if now > self.last_instant => {}
            AcceptVerdict::Accept { n } => {
                self.tell_if_in_vain(seen, effects);
                self.accepts.sending(now);
                self.accepting = Some(Tried { question: seen.question.clone() });
                effects.push(Effect::Accept { n, cap: CAP, question: seen.question.clone(), shown: seen.snippet() });
            }
        }
    }

    /// What became of an accept.
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
                    // The reason has not been given yet, even if there was a warning about the question.
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

    /// A key was pressed, or may have been. Nobody is waited for any more; if the question is still there, it begins anew.
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

    /// Urgent: the run stands still until someone comes. Only who and where, never what is asked.
    fn notify(&self, what: &str, seen: &Seen, effects: &mut Vec<Effect>) {
        let text = format!("{}. {}.", self.name(), answers(self.terminal, seen));
        effects.push(Effect::Notify(Notice { priority: 5, title: format!("posse: {what}"), text }));
    }
}

/// Names the question, so that a person who comes later does not answer another one. Where no option is plainly a yes,
/// `posse approve` could not answer.
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

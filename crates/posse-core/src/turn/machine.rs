//! The turn's state machine: records each event, then judges it like one poll of the spec.

use std::time::Duration;

use super::looking::{LookReason, Looking};
use super::waiting::{Tried, Waiting};
use super::{Answer, AnswerFrom, Cause, Effect, Event, Level, Seen, TurnError, TurnRecord, failure};
use crate::ids::TerminalId;
use crate::permission::Accepts;
use crate::review_loop::Key;
use crate::review_loop::config::Handoff;
use crate::status::StatusKind;
use crate::time::{Mono, Wall};

/// The smallest step of the clock, because the seed compares strictly.
const STRICTLY: Duration = Duration::from_nanos(1);
/// Extra time for a file that is being written at the timeout. Chosen: a heredoc takes milliseconds, and a nearly
/// finished answer should not be lost.
const LAST_MOMENT: Duration = Duration::from_secs(1);
/// Time limit of a read of the file or of the last message when the turn waits for nothing else. Chosen: both are
/// local, and a hanging file system must not hold up the run.
const PATIENCE: Duration = Duration::from_secs(5);
#[derive(Clone, Debug)]
pub struct Turn {
    pub(super) handoff: Handoff,
    key: Key,
    pub(super) terminal: TerminalId,
    pub(super) file: String,
    /// The last instant of the turn.
    pub(super) last_instant: Mono,
    guard_since: Mono,
    idle_since: Option<Mono>,
    started: bool,
    reminders: u32,
    seen: Option<Seen>,
    pub(super) looking: Looking,
    /// When the agent had been quiet for too long. The turn fails after one more read of the file.
    last_look: Option<Mono>,
    /// When the last message was requested as a substitute for the answer.
    last_output_asked: Option<Mono>,
    pub(super) complained: bool,
    pub(super) accepts: Accepts,
    pub(super) accepting: Option<Tried>,
    pub(super) waiting: Option<Waiting>,
    pub(super) human_told: bool,
    pub(super) vain_told: bool,
    over: bool,
}

impl Turn {
    /// Starts the timers after the prompt was sent (`send_and_wait`), by this daemon or a previous one. All timers
    /// count from now; the timeout continues with its remainder. `file` is the response file's displayed path.
    /// `accepted_at` is the last accept in this terminal in any turn, because the cooldown outlives turns.
    pub fn new(
        handoff: Handoff,
        record: &TurnRecord,
        file: String,
        accepted_at: Option<Mono>,
        (now, wall): (Mono, Wall),
    ) -> Self {
        let elapsed = record.sent.map_or(Duration::ZERO, |sent| wall.since(sent));
        Self {
            handoff,
            key: record.key,
            terminal: record.terminal,
            file,
            last_instant: now + handoff.timeout().saturating_sub(elapsed),
            guard_since: now,
            idle_since: None,
            started: false,
            reminders: record.reminders,
            seen: None,
            looking: Looking::No,
            last_look: None,
            last_output_asked: None,
            complained: false,
            accepts: Accepts::new(record.accepts, accepted_at),
            accepting: None,
            waiting: None,
            human_told: record.human_told,
            vain_told: false,
            over: false,
        }
    }

    pub fn set_auto_accept(&mut self, on: bool) {
        self.handoff.auto_accept_permissions = on;
    }

    /// Returns the number of permissions accepted in this turn, including a pending one.
    pub fn accepts(&self) -> u32 {
        self.accepts.count
    }

    /// Records the state that a resumed turn needs.
    pub fn note(&self, record: &mut TurnRecord) {
        (record.accepts, record.reminders, record.human_told) = (self.accepts.count, self.reminders, self.human_told);
    }

    /// Returns the time of the terminal's last accept.
    pub fn last_accept(&self) -> Option<Mono> {
        self.accepts.last
    }

    /// Returns whether the agent was seen at work or the startup guard has expired.
    #[cfg(test)]
    pub fn started(&self) -> bool {
        self.started
    }

    /// Returns when to send `Time`. Late, early or repeated sending is harmless.
    pub fn deadline(&self) -> Option<Mono> {
        if self.over {
            return None;
        }
        if let Some(asked) = self.last_output_asked {
            return Some(asked + PATIENCE + STRICTLY);
        }
        let again = if let Looking::Again(at) = self.looking { Some(at) } else { None };
        let own = match self.last_look {
            Some(since) => {
                let patience = if again.is_some() { LAST_MOMENT } else { PATIENCE };
                Some(since + patience + STRICTLY)
            }
            None => Some(self.last_instant + STRICTLY).into_iter().chain(self.patience_with_agent()).min(),
        };
        again.into_iter().chain(own).min()
    }

    /// Returns when the present status has a consequence without another event.
    fn patience_with_agent(&self) -> Option<Mono> {
        match self.kind()? {
            StatusKind::Idle | StatusKind::Completed if self.started => {
                self.idle_since.map(|since| since + self.handoff.grace() + STRICTLY)
            }
            StatusKind::Idle | StatusKind::Completed => Some(self.guard_since + self.handoff.grace() + STRICTLY),
            StatusKind::WaitingUserAnswer => self.waiting_deadline(self.seen.as_ref()?),
            StatusKind::Processing | StatusKind::Error => None,
        }
    }

    pub fn handle(&mut self, event: Event, now: Mono) -> Vec<Effect> {
        let mut effects = Vec::new();
        if !self.over {
            self.take_in(event, now, &mut effects);
        }
        if !self.over {
            self.judge(now, &mut effects);
        }
        effects
    }

    fn kind(&self) -> Option<StatusKind> {
        self.seen.as_ref().and_then(|seen| seen.kind)
    }

    pub fn is_quiet(&self) -> bool {
        matches!(self.kind(), Some(StatusKind::Idle | StatusKind::Completed))
    }

    fn take_in(&mut self, event: Event, now: Mono, effects: &mut Vec<Effect>) {
        match event {
            Event::Time => {}
            Event::Gone(why) => self.gone(&why, effects),
            Event::Accepted(result) => self.accepted(result, now, effects),
            Event::LastOutput(text) if self.last_output_asked.is_some() => self.take_last_output(text, effects),
            // The turn is decided; only the answer's text is missing.
            _ if self.last_output_asked.is_some() => {}
            Event::LastOutput(_) => {}
            Event::Status(seen) => self.observe(seen, now, effects),
            Event::MessageChanged => {
                if self.is_quiet() && !self.started {
                    self.started = true;
                    self.idle_since = None;
                    self.say(Level::Detail, |who| format!("{who} has said something new: it has started"), effects);
                    self.want_look(LookReason::Stirred, effects);
                }
            }
            Event::FileStirred if self.is_quiet() => self.want_look(LookReason::Stirred, effects),
            Event::FileStirred => {}
            Event::File(look) => self.looked(look, now, effects),
            Event::NotReminded(why) => {
                self.say(Level::Warning, |who| format!("{who} could not be reminded of its file: {why}"), effects);
            }
        }
    }

    fn observe(&mut self, seen: Seen, now: Mono, effects: &mut Vec<Effect>) {
        let was = (self.is_quiet(), self.seen.as_ref().map(|seen| seen.epoch));
        let was_unproven = self.seen.as_ref().is_some_and(|seen| seen.unproven);
        let (epoch, unproven) = (Some(seen.epoch), seen.unproven);
        self.seen = Some(seen);
        if !self.is_quiet() {
            self.last_look = None;
            self.looking.forget();
        } else if was != (true, epoch) {
            self.want_look(LookReason::QuietBegins, effects);
        }
        // An unknown status is no observation.
        let Some(kind) = self.kind() else { return };
        if !self.is_quiet() {
            // A submitted prompt does not show that the agent works on it.
            self.started |= !unproven;
            self.idle_since = None;
        } else if was_unproven && !unproven {
            // The agent worked in the meantime, and finished.
            self.started = true;
        }
        match (kind, &self.seen) {
            (StatusKind::WaitingUserAnswer, Some(seen)) => Waiting::follow(&mut self.waiting, seen, now),
            _ => self.waiting = None,
        }
    }

    /// Performs one poll.
    fn judge(&mut self, now: Mono, effects: &mut Vec<Effect>) {
        if let Some(asked) = self.last_output_asked {
            if now > asked + PATIENCE {
                self.take_last_output(None, effects);
            }
            return;
        }
        if let Some(seen) = self.seen.clone() {
            match seen.kind {
                Some(StatusKind::Error) => return self.error_state(&seen, effects),
                Some(StatusKind::WaitingUserAnswer) => self.permission(&seen, now, effects),
                Some(StatusKind::Idle | StatusKind::Completed) => return self.quiet(&seen, now, effects),
                Some(StatusKind::Processing) | None => {}
            }
        }
        if !self.over && now > self.last_instant {
            self.timed_out(effects);
        }
    }

    fn error_state(&mut self, seen: &Seen, effects: &mut Vec<Effect>) {
        let words = seen.words.as_deref().unwrap_or_default();
        let mut message = format!("{} is in ERROR state: {}", self.name(), seen.reason);
        if let Some(said) = failure::row(words) {
            message = format!("{message}; it says: {said}");
        }
        let api = failure::classify(words).or_else(|| failure::classify(&seen.reason));
        self.fail(api.map_or(Cause::ErrorState, Cause::Api), message, effects);
    }

    /// Handles a quiet agent: the file may be read, and its absence counts.
    fn quiet(&mut self, seen: &Seen, now: Mono, effects: &mut Vec<Effect>) {
        if matches!(self.looking, Looking::Again(at) if now >= at) {
            self.want_look(LookReason::Anyway, effects);
        }
        if self.started {
            self.idle_since.get_or_insert(now);
        }
        if self.started && self.looking == Looking::No && self.api_failure(seen, effects) {
            return;
        }
        let counts_from = if self.started { self.idle_since } else { Some(self.guard_since) };
        let expired = counts_from.is_some_and(|since| now > since + self.handoff.grace());
        if !expired && now <= self.last_instant {
            self.last_look = None;
            return;
        }
        if self.last_look.is_none() {
            self.want_look(LookReason::Anyway, effects);
        }
        let since = *self.last_look.get_or_insert(now);
        match self.looking {
            Looking::Asked { .. } if now <= since + PATIENCE => return,
            Looking::Again(_) if now <= since + LAST_MOMENT => return,
            _ => {}
        }
        self.last_look = None;
        self.looking.forget();
        if !self.started && expired {
            self.release_guard(seen, now, effects);
            if self.over || now <= self.last_instant {
                return;
            }
        }
        self.no_file(now, effects);
    }

    /// Releases the startup guard if the agent was not seen at work for too long.
    fn release_guard(&mut self, seen: &Seen, now: Mono, effects: &mut Vec<Effect>) {
        let grace = self.handoff.idle_grace_seconds;
        let warning =
            |who: &str| format!("{who} never entered processing within {grace} s; its quiet counts from now on");
        self.say(Level::Warning, warning, effects);
        self.started = true;
        self.idle_since = Some(now);
        self.api_failure(seen, effects);
    }

    /// Fails the turn if the service failed, and the agent returned to its prompt without a later message. Returns
    /// whether it did.
    pub(super) fn api_failure(&mut self, seen: &Seen, effects: &mut Vec<Effect>) -> bool {
        let Some(api) = seen.words.as_deref().and_then(failure::standing) else { return false };
        let said = seen.words.as_deref().and_then(failure::row).unwrap_or_default();
        let message = format!("the model's service failed {}; it says: {said}", self.name());
        self.fail(Cause::Api(api), message, effects);
        true
    }

    /// Handles a missing file after the agent was quiet for too long, or is quiet at the timeout.
    fn no_file(&mut self, now: Mono, effects: &mut Vec<Effect>) {
        if self.reminders < self.handoff.max_file_reminders && now <= self.last_instant {
            self.reminders += 1;
            self.idle_since = None;
            self.started = false;
            self.guard_since = now;
            let n = self.reminders;
            self.say(Level::Warning, |who| format!("{who} is quiet and wrote no file; reminding it ({n})"), effects);
            return effects.push(Effect::Remind { n });
        }
        if !self.handoff.strict_file_handoff {
            self.last_output_asked = Some(now);
            self.say(Level::Warning, |who| format!("{who} wrote no file; its last message is taken instead"), effects);
            return effects.push(Effect::AskLastOutput);
        }
        let after = match self.reminders {
            0 => String::new(),
            1 => " after 1 reminder".into(),
            n => format!(" after {n} reminders"),
        };
        let why = if now > self.last_instant {
            format!("within {} s", self.handoff.response_timeout)
        } else {
            format!("and was quiet for more than {} s", self.handoff.idle_grace_seconds)
        };
        let message = format!("{} wrote no answer to {} {why}{after}", self.name(), self.file);
        self.fail(Cause::NoFile, message, effects);
    }

    fn take_last_output(&mut self, text: Option<String>, effects: &mut Vec<Effect>) {
        if let Some(text) = text.filter(|text| !text.trim().is_empty()) {
            let answer = Answer { text: text.trim().to_owned(), from: AnswerFrom::LastOutput };
            return self.end(Ok(answer), effects);
        }
        let why = "no message of the agent is on its screen that came after the prompt";
        let message = format!("{} wrote no answer to {}, and {why}", self.name(), self.file);
        self.fail(Cause::NothingSaid, message, effects);
    }

    fn timed_out(&mut self, effects: &mut Vec<Effect>) {
        let kind = self.kind();
        let is = kind.map_or("unknown", StatusKind::as_str);
        let mut message =
            format!("no answer from {} within {} s; it is {is}", self.name(), self.handoff.response_timeout);
        if kind == Some(StatusKind::WaitingUserAnswer) && !self.handoff.auto_accept_permissions {
            message.push_str(" (AUTO_ACCEPT_PERMISSIONS=1 accepts permissions without a person)");
        }
        self.fail(Cause::TimedOut, message, effects);
    }

    pub(super) fn gone(&mut self, why: &str, effects: &mut Vec<Effect>) {
        let message = format!("the terminal is gone: {}: {why}", self.name());
        self.fail(Cause::Gone, message, effects);
    }

    pub(super) fn fail(&mut self, cause: Cause, message: String, effects: &mut Vec<Effect>) {
        self.end(Err(TurnError { cause, message }), effects);
    }

    pub(super) fn end(&mut self, result: Result<Answer, TurnError>, effects: &mut Vec<Effect>) {
        self.over = true;
        effects.push(Effect::End(result));
    }

    pub(super) fn say(&self, level: Level, words: impl FnOnce(&str) -> String, effects: &mut Vec<Effect>) {
        effects.push(Effect::Say(level, words(&self.name())));
    }

    /// Returns the display name, such as "programmer (programmer_review, terminal 00c0ffee)".
    pub(super) fn name(&self) -> String {
        let Self { key, terminal, .. } = self;
        let role = key.role();
        if role.as_str() == key.as_str() {
            format!("{role} (terminal {terminal})")
        } else {
            format!("{role} ({key}, terminal {terminal})")
        }
    }
}

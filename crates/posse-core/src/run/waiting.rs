//! A turn between its accepted prompt and its answer.

use super::machine::{Failed, Live, Run};
use super::park::parking;
use super::{Effect, Entry, Stop, TurnEffect};
use crate::engine::hold::Hold;
use crate::plan::limits::reset_at;
use crate::review_loop::Role;
use crate::turn::files::{self, Suffix};
use crate::turn::{self, AnswerFrom, ApiFailure, Cause, Event, Level, Notice, Turn, TurnError};
use crate::visible::lasted;

impl Run {
    /// Starts the wait after the prompt was taken: from here on the turn decides.
    pub(super) fn wait(&mut self) {
        let Some(record) = self.turn() else { return };
        // The cooldown of a terminal survives turns and restarts of posse.
        let accepted_at = self.accepted.get(&record.terminal).copied();
        let file = self.response_file(record.key);
        let turn = Turn::new(self.spec.config.handoff, record, file, accepted_at, (self.now, self.progress.now));
        let (terminal, reminders) = (record.terminal, record.reminders);
        self.live = Live::Waiting(Box::new(turn));
        self.watch(terminal);
        if reminders > 0 {
            // The reminder was recorded before it was typed, and may be missing. Its number tells whether it was typed.
            self.remind(reminders);
        }
    }

    fn remind(&mut self, n: u32) {
        let Some(record) = self.turn() else { return };
        // A separate delimiter: the agent may have used the first one.
        let word = self.heredoc_word(record.turn, n);
        let text = files::reminder(&self.spec.prompts, &self.response_file(record.key), &word);
        self.request(TurnEffect::Remind { n, text });
    }

    /// Passes an event to the turn whose answer is awaited.
    pub(super) fn hand_to_turn(&mut self, event: Event) {
        let (Live::Waiting(turn), Some(record)) = (&mut self.live, &mut self.record) else { return };
        let n = turn.accepts();
        let accepted = match &event {
            Event::Accepted(result) => Some(result.as_ref().err().map(ToString::to_string)),
            _ => None,
        };
        let effects = turn.handle(event, self.now);
        turn.note(record);
        self.accepted.extend(turn.last_accept().map(|at| (record.terminal, at)));
        let turn = record.turn;
        if let Some(why) = accepted {
            self.tell(Entry::Accepted { turn, n, why });
        }
        for effect in effects {
            self.turn_effect(effect);
        }
    }

    fn turn_effect(&mut self, effect: turn::Effect) {
        let Some(record) = self.turn() else { return };
        let (turn, role, terminal) = (record.turn, record.key.role(), record.terminal);
        match effect {
            turn::Effect::Accept { n, cap, question, shown } => {
                self.tell(Entry::Accepting { turn, n, cap, role, terminal, shown });
                self.request(TurnEffect::Accept { n, cap, question });
            }
            turn::Effect::LookAtFile => self.request(TurnEffect::LookAtFile { lived_until: None }),
            turn::Effect::AskLastOutput => self.request(TurnEffect::AskLastOutput),
            turn::Effect::Remind { n } => self.remind(n),
            turn::Effect::Say(level, text) => self.say(level, text),
            turn::Effect::Notify(mut notice) => {
                // Each turn notifies once, and identical messages in quick succession would be suppressed.
                notice.text = format!("Run {}, turn {turn}: {}", self.spec.id, notice.text);
                self.progress.request(Effect::Notify { event: "waiting", notice });
            }
            turn::Effect::End(Ok(answer)) => self.answered(answer.text, answer.from),
            // The agent's partial output is kept, and the message names it.
            turn::Effect::End(Err(error)) if error.cause == Cause::TimedOut => {
                self.request(TurnEffect::Archive { number: self.archived + 1, suffix: Some(Suffix::Late) });
                self.live = Live::KeepingLate(error);
            }
            turn::Effect::End(Err(error)) => self.fail(error),
        }
    }

    pub(super) fn answered(&mut self, text: String, from: AnswerFrom) {
        let Some(record) = self.turn_mut() else { return };
        record.answered = true;
        let (turn, key) = (record.turn, record.key);
        (self.attempts, self.hold, self.failed) = (0, None, None);
        (self.outages, self.limits) = (0, 0);
        let notes = self.rounds.answered(key, &text);
        self.tell(Entry::Answered { turn, text, from });
        for note in notes {
            self.say(note.level, note.text);
        }
        self.archive();
    }

    /// The answer is in the journal; its file goes to the archive.
    pub(super) fn archive(&mut self) {
        self.live = Live::Archiving;
        self.request(TurnEffect::Archive { number: self.archived + 1, suffix: None });
    }

    /// Handles the archiving of an answer's file, if the file could be moved.
    pub(super) fn kept(&mut self, name: Option<String>) {
        let Some(record) = self.record.take() else { return };
        self.archived += u32::from(name.is_some());
        self.tell(Entry::Archived { turn: record.turn, name });
        self.advance();
    }

    /// Handles late output, kept under this name if there was any.
    pub(super) fn kept_late(&mut self, mut error: TurnError, name: Option<String>) {
        if let Some(name) = name {
            error = error.keeping(&name);
            self.archived += 1;
            self.tell(Entry::KeptLate { name });
        }
        self.fail(error);
    }

    /// Ends a failed turn and returns its role.
    pub(super) fn break_off(&mut self, error: TurnError) -> Option<Role> {
        let record = self.record.take_if(|record| !record.answered)?;
        let (role, TurnError { cause, message }) = (record.key.role(), error);
        // What the agent remembers of the task is unknown.
        self.rounds.forget(role);
        self.tell(Entry::TurnFailed { turn: record.turn, cause: cause.clone(), message: message.clone() });
        // An agent cannot be working on a prompt that was never sent; then the previous failure counts.
        if record.dispatching.is_some() || self.failed.is_none() {
            self.failed = Some(Failed { record, cause, message, lived_until: self.progress.now });
        }
        Some(role)
    }

    /// Handles a failed turn: the run waits and retries, or stops.
    pub(super) fn fail(&mut self, error: TurnError) {
        let Some(role) = self.break_off(error.clone()) else { return };
        if error.cause == Cause::Gone {
            self.terminal_lost(role, "its terminal is gone");
        }
        match &error.cause {
            Cause::Api(failure) => self.park(failure, error.message),
            _ => self.stop(Stop::Turn, &error.message),
        }
    }

    fn park(&mut self, failure: &ApiFailure, reason: String) {
        let (times, resets) = match failure {
            ApiFailure::UsageLimit { resets } => (&mut self.limits, resets.as_deref()),
            _ => (&mut self.outages, None),
        };
        let resets = resets.and_then(|words| reset_at(words, self.progress.now, self.spec.zone.as_deref()));
        let Some(until) = parking(failure, *times, resets, self.progress.now) else {
            return self.stop(Stop::Turn, &reason);
        };
        *times += 1;
        let wait = until.since(self.progress.now);
        let text = format!("{reason}\nTried again in {} (time {times}).", lasted(wait));
        self.say(Level::Warning, text.clone());
        let notice = Notice { priority: 3, title: format!("run {} is parked", self.spec.id), text };
        self.progress.request(Effect::Notify { event: "parked", notice });
        self.mirror_due = true;
        self.hold = Some(Hold { until, reason, known: resets.is_some() });
        self.live = Live::Parked { until: self.now + wait };
    }
}

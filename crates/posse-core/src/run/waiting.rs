//! A turn whose prompt was taken, until its answer.

use super::machine::{Failed, Live, Run};
use super::park::parking;
use super::{Effect, Entry, Stop};
use crate::engine::hold::Hold;
use crate::plan::limits::reset_at;
use crate::review_loop::Role;
use crate::time::Mono;
use crate::turn::files::{self, Suffix};
use crate::turn::{self, AcceptFailure, AnswerFrom, ApiFailure, Cause, Event, Level, Notice, Turn, TurnError};
use crate::visible::lasted;

impl Run {
    /// The prompt was taken: from here on the turn itself decides.
    pub(super) fn wait(&mut self) {
        let Some(record) = self.turn() else { return };
        // The cooldown of a terminal survives turns, and posse itself. Only for that the clock on the wall must do.
        let before_us = || {
            let ago = self.wall.since(*self.last_accepts.get(&record.terminal)?);
            (ago < crate::permission::COOLDOWN).then(|| Mono(self.now.0.saturating_sub(ago)))
        };
        let accepted_at = self.accepted.get(&record.terminal).copied().max(before_us());
        let file = self.response_file(record.key);
        let turn = Turn::new(self.spec.config.handoff, record, file, accepted_at, (self.now, self.wall));
        let (terminal, reminders) = (record.terminal, record.reminders);
        self.live = Live::Waiting(Box::new(turn));
        self.watch(terminal);
        if reminders > 0 {
            // Written down before it was typed; perhaps it never was. By its number it is known if it was.
            self.remind(reminders);
        }
    }

    fn remind(&mut self, n: u32) {
        let Some(record) = self.turn() else { return };
        let (turn, terminal) = (record.turn, record.terminal);
        // A word of its own: the agent may have used up the first one.
        let text = files::reminder(&self.spec.prompts, &self.response_file(record.key), &self.heredoc_word(turn, n));
        self.out.push(Effect::Remind { turn, terminal, n, text });
    }

    /// Something about the turn.
    pub(super) fn turn_event(&mut self, event: Event) {
        if let (Live::Reconsidering, Event::File(look)) = (&self.live, &event) {
            return self.looked(look.clone());
        }
        // It went away between being found alive and being watched.
        if let (Live::Reconsidering, Event::Gone(why)) = (&self.live, &event) {
            let Some(Failed { record, lived_until, .. }) = &mut self.failed else { return self.go_between() };
            *lived_until = self.wall;
            let role = record.key.role();
            self.terminal_lost(role, why.clone());
            return self.look_for_answer();
        }
        // It went away since its last turn, and nothing was sent yet.
        if let (Live::Settling { .. }, Event::Gone(why)) = (&self.live, &event) {
            return self.gone(why);
        }
        let Live::Waiting(turn) = &mut self.live else { return };
        let accepts = turn.accepts();
        let outcome = match &event {
            Event::Accepted(result) => Some(result.clone()),
            _ => None,
        };
        let effects = turn.handle(event, self.now);
        if let (Some(result), Some(record)) = (outcome, self.turn_mut()) {
            let (turn, terminal, n) = (record.turn, record.terminal, accepts.max(record.accepts));
            // Nothing was typed, and it does not count.
            if let Err(AcceptFailure::Refused(_) | AcceptFailure::Unproven(_)) = result {
                record.accepts = record.accepts.saturating_sub(1);
            }
            self.accepted.insert(terminal, self.now);
            self.tell(Entry::Accepted { turn, n, why: result.err().map(|failure| failure.to_string()) });
        }
        for effect in effects {
            self.turn_effect(effect);
        }
    }

    fn turn_effect(&mut self, effect: turn::Effect) {
        let Some(record) = self.record.as_mut().filter(|record| !record.answered) else { return };
        let (turn, key, terminal) = (record.turn, record.key, record.terminal);
        match effect {
            turn::Effect::Accept { n, cap, question, shown } => {
                let role = key.role();
                record.accepts += 1;
                self.last_accepts.insert(terminal, self.wall);
                self.tell(Entry::Accepting { turn, n, cap, role, terminal, shown });
                self.out.push(Effect::Accept { turn, terminal, role, n, cap, question });
            }
            turn::Effect::LookAtFile => self.out.push(Effect::LookAtFile { turn, key, lived_until: None }),
            turn::Effect::AskLastOutput => self.out.push(Effect::AskLastOutput { turn, terminal }),
            turn::Effect::Remind { n } => {
                record.reminders += 1;
                self.remind(n);
            }
            turn::Effect::Say(level, text) => self.say(level, text),
            turn::Effect::Notify(mut notice) => {
                // That accepting does not help is told besides.
                record.human_told |= matches!(&self.live, Live::Waiting(turn) if turn.human_told());
                // Each turn tells once, and the same words would be kept back so soon after the last.
                notice.text = format!("Run {}, turn {turn}: {}", self.spec.id, notice.text);
                self.out.push(Effect::Notify { event: "waiting", notice });
            }
            turn::Effect::End(Ok(answer)) => self.answered(answer.text, answer.from),
            // What the agent has written by now is kept, and the message names it.
            turn::Effect::End(Err(error)) if error.cause == Cause::TimedOut => {
                let number = self.archived + 1;
                self.out.push(Effect::Archive { turn, key, number, suffix: Some(Suffix::Late) });
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

    /// The answer is in the journal; the file that carried it goes to the archive.
    pub(super) fn archive(&mut self) {
        if let Some(record) = &self.record {
            let (turn, key, number) = (record.turn, record.key, self.archived + 1);
            self.live = Live::Archiving;
            self.out.push(Effect::Archive { turn, key, number, suffix: None });
        }
    }

    /// What came too late is kept under this name, if there was something.
    pub(super) fn kept_late(&mut self, mut error: TurnError, name: Option<String>) {
        if let Some(name) = name {
            error = error.keeping(&name);
            self.archived += 1;
            self.tell(Entry::KeptLate { name });
        }
        self.fail(error);
    }

    /// Ends a turn that has failed. Returns whose it was.
    pub(super) fn break_off(&mut self, error: TurnError) -> Option<Role> {
        let record = self.record.take_if(|record| !record.answered)?;
        let (role, TurnError { cause, message }) = (record.key.role(), error);
        // Nobody knows what it remembers of the task.
        self.rounds.forget(role);
        self.tell(Entry::TurnFailed { turn: record.turn, cause: cause.clone(), message: message.clone() });
        // What an agent was never asked it cannot be at: then the one before it counts.
        if record.dispatching.is_some() || self.failed.is_none() {
            self.failed = Some(Failed { record, cause, message, lived_until: self.wall });
        }
        Some(role)
    }

    /// A turn failed: the run waits and tries again, or it stops.
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
        let resets = resets.and_then(|words| reset_at(words, self.wall, self.spec.zone.as_deref()));
        let Some(until) = parking(failure, *times, resets, self.wall) else { return self.stop(Stop::Turn, &reason) };
        *times += 1;
        let wait = until.since(self.wall);
        let text = format!("{reason}\nTried again in {} (time {times}).", lasted(wait));
        self.say(Level::Warning, text.clone());
        let notice = Notice { priority: 3, title: format!("run {} is parked", self.spec.id), text };
        self.out.push(Effect::Notify { event: "parked", notice });
        self.mirror_due = true;
        self.hold = Some(Hold { until, reason, known: resets.is_some() });
        self.live = Live::Parked { until: self.now + wait };
    }
}

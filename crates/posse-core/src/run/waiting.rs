//! A turn whose prompt was taken, until its answer.

use std::time::Duration;

use super::ledger::elapsed;
use super::machine::{Live, Run};
use super::park::{Parking, is_limit, parking};
use super::{Effect, Entry, Stop};
use crate::plan::limits::reset_at;
use crate::time::{Mono, Wall};
use crate::turn::files::{self, Suffix};
use crate::turn::{
    self, AcceptFailure, ApiFailure, Cause, EarlierTurn, Event, Level, Notice, Turn, TurnError, TurnOwner,
};

impl Run {
    /// The prompt was taken: from here on the turn itself decides.
    pub(super) fn wait(&mut self) {
        let Some(record) = self.ledger.turn() else { return };
        let rules = rules(&self.ledger.spec.config.handoff);
        let who = TurnOwner {
            role: record.key.role().to_string(),
            key: record.key.to_string(),
            terminal: record.terminal,
            file: self.response_file(record.key),
        };
        // The cooldown of a terminal survives turns, and posse itself. Only for that the clock on the wall must do.
        let before_us = || {
            let ago = self.ledger.since_accept(record.terminal, self.wall)?;
            (ago < crate::permission::COOLDOWN).then(|| Mono(self.now.0.saturating_sub(ago)))
        };
        let accepted_at = self.accepted.get(&record.terminal).copied().max(before_us());
        let before = EarlierTurn {
            accepts: record.accepts,
            reminders: record.reminders,
            human_told: record.human_told,
            elapsed: elapsed(record.sent.unwrap_or(self.wall), self.wall),
            started: false,
        };
        let turn = Turn::resumed(rules, who, before, accepted_at, self.now);
        let (terminal, reminders) = (record.terminal, record.reminders);
        self.live = Live::Waiting(Box::new(turn));
        self.watch(terminal);
        if reminders > 0 {
            // Written down before it was typed; perhaps it never was. By its number it is known if it was.
            self.remind(reminders);
        }
    }

    fn remind(&mut self, n: u32) {
        let Some(record) = self.ledger.turn() else { return };
        let (turn, terminal) = (record.turn, record.terminal);
        // A word of its own: the agent may have used up the first one.
        let text =
            files::reminder(&self.ledger.spec.prompts, &self.response_file(record.key), &self.heredoc_word(turn, n));
        self.out.push(Effect::Remind { turn, terminal, n, text });
    }

    /// Something about the turn.
    pub(super) fn turn_event(&mut self, event: Event) {
        if let (Live::Salvaging | Live::Reconsidering, Event::File(look)) = (&self.live, &event) {
            return self.looked(look.clone());
        }
        // It went away between being found alive and being watched.
        if let (Live::Reconsidering, Event::Gone(why)) = (&self.live, &event) {
            let failed = self.ledger.failed.as_ref().map(|failed| (failed.record.turn, failed.record.key));
            let Some((turn, key)) = failed else { return self.go_between() };
            self.record(Entry::TerminalLost { role: key.role(), why: why.clone() });
            return self.out.push(Effect::LookAtFile { turn, key });
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
        if let (Some(result), Some(record)) = (outcome, self.ledger.turn()) {
            let (turn, n) = (record.turn, accepts.max(record.accepts));
            let refused = matches!(result, Err(AcceptFailure::Refused(_) | AcceptFailure::Unproven(_)));
            self.accepted.insert(record.terminal, self.now);
            let why = result.err().map(|failure| failure.to_string());
            self.record(Entry::Accepted { turn, n, refused, why });
        }
        for effect in effects {
            self.turn_effect(effect);
        }
    }

    fn turn_effect(&mut self, effect: turn::Effect) {
        let Some(record) = self.ledger.turn() else { return };
        let (turn, key, terminal) = (record.turn, record.key, record.terminal);
        match effect {
            turn::Effect::Accept { n, cap, question, shown } => {
                let role = key.role();
                self.record(Entry::Accepting { turn, n, cap, role, terminal, shown });
                self.out.push(Effect::Accept { turn, terminal, role, n, cap, question });
            }
            turn::Effect::LookAtFile => self.out.push(Effect::LookAtFile { turn, key }),
            turn::Effect::AskLastOutput => self.out.push(Effect::AskLastOutput { turn, terminal }),
            turn::Effect::Remind { n } => {
                self.record(Entry::Reminding { turn, n });
                self.remind(n);
            }
            turn::Effect::Say(level, text) => self.say(level, text),
            turn::Effect::Notify(mut notice) => {
                // That accepting does not help is told besides.
                if matches!(&self.live, Live::Waiting(turn) if turn.human_told()) {
                    self.record(Entry::HumanTold { turn });
                }
                // Each turn tells once, and the same words would be kept back so soon after the last.
                notice.text = format!("Run {}, turn {turn}: {}", self.ledger.spec.id, notice.text);
                self.out.push(Effect::Notify { event: "waiting", notice });
            }
            turn::Effect::KeepLateFile => {
                let number = self.ledger.archived + 1;
                self.out.push(Effect::Archive { turn, key, number, suffix: Some(Suffix::Late) });
            }
            turn::Effect::End(Ok(answer)) => {
                self.record(Entry::Answered { turn, text: answer.text, from: answer.from });
                self.archive();
            }
            // The last thing a turn that ran out of time wanted is to keep its file; the message is to name it.
            turn::Effect::End(Err(error)) if matches!(self.out.last(), Some(Effect::Archive { .. })) => {
                self.live = Live::KeepingLate(error);
            }
            turn::Effect::End(Err(error)) => self.fail(error),
        }
    }

    /// The answer is in the journal; the file that carried it goes to the archive.
    pub(super) fn archive(&mut self) {
        if let super::Place::Unarchived { turn, key } = self.ledger.place {
            self.live = Live::Archiving;
            let number = self.ledger.archived + 1;
            self.out.push(Effect::Archive { turn, key, number, suffix: None });
        }
    }

    /// What came too late is kept under this name, if there was something.
    pub(super) fn kept_late(&mut self, mut error: TurnError, name: Option<String>) {
        if let Some(name) = name {
            error = error.keeping(&name);
            self.record(Entry::KeptLate { name });
        }
        self.fail(error);
    }

    /// A turn failed: the run waits and tries again, or it stops.
    pub(super) fn fail(&mut self, error: TurnError) {
        let Some(record) = self.ledger.turn() else { return };
        let (turn, key) = (record.turn, record.key);
        let TurnError { kind, cause, message } = error;
        self.record(Entry::TurnFailed { turn, kind, cause: cause.clone(), message: message.clone() });
        if cause == Cause::Gone {
            self.record(Entry::TerminalLost { role: key.role(), why: "its terminal is gone".into() });
        }
        let Cause::Api(failure) = &cause else {
            return self.stop(Stop::Turn, &message);
        };
        let times = self.ledger.parked_times.of(failure);
        let resets = match failure {
            ApiFailure::UsageLimit { resets: Some(words) } => {
                reset_at(words, self.wall, self.ledger.spec.zone.as_deref())
            }
            _ => None,
        };
        let until = match parking(failure, times, resets, self.wall) {
            Parking::No => return self.stop(Stop::Turn, &message),
            Parking::For(wait) => self.wall.after(wait),
            Parking::Until(until) => until,
        };
        let (times, limit) = (times + 1, is_limit(failure));
        self.record(Entry::Parked { until, times, limit, why: message.clone() });
        self.park(until, times, &message);
    }

    fn park(&mut self, until: Wall, times: u32, why: &str) {
        let wait = elapsed(self.wall, until);
        let id = self.ledger.spec.id;
        let text = format!("{why}\nTried again in {} (time {times}).", in_words(wait));
        self.say(Level::Warning, text.clone());
        let notice = Notice { priority: 3, title: format!("run {id} is parked"), text };
        self.out.push(Effect::Notify { event: "parked", notice });
        self.mirror();
        self.live = Live::Parked { until: self.now + wait };
    }
}

fn rules(handoff: &crate::rounds::config::Handoff) -> turn::Rules {
    turn::Rules {
        grace: Duration::from_secs(handoff.idle_grace_seconds.into()),
        timeout: Duration::from_secs(handoff.response_timeout.into()),
        strict: handoff.strict_file_handoff,
        reminders: handoff.max_file_reminders,
        auto_accept: handoff.auto_accept_permissions,
        waiting_timeout: (handoff.waiting_timeout > 0).then(|| Duration::from_secs(handoff.waiting_timeout.into())),
    }
}

fn in_words(wait: Duration) -> String {
    let seconds = wait.as_secs();
    match seconds {
        0..=119 => format!("{seconds} s"),
        120..=7199 => format!("{} min", seconds / 60),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

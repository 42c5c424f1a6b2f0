//! A turn until its prompt is taken: wait for quiet, archive stale files, type once, confirm.

use std::collections::BTreeSet;
use std::time::Duration;

use super::machine::{Live, Run};
use super::{Effect, Entry, Sent, TurnEffect, TurnEvent, TurnRecord};
use crate::ids::TerminalId;
use crate::review_loop::Key;
use crate::status::StatusKind;
use crate::turn::{self, Cause, Event, Level, TurnError, files};

/// Wait for a terminal to become quiet before its turn, until a warning (LOOP-32).
pub(super) const SETTLE: Duration = Duration::from_secs(10);
/// Maximum number of retries for a prompt that is known not to have arrived.
const DELIVERIES: u32 = 3;

impl Run {
    pub(super) fn begin_turn(&mut self, key: Key) {
        let role = key.role();
        let Some(terminal) = self.terminals.get(&role).copied() else {
            return self.start(BTreeSet::from([role]));
        };
        self.turns += 1;
        self.attempts += 1;
        let (turn, attempt) = (self.turns, self.attempts);
        let prompts = &self.spec.prompts;
        let instruction = files::instruction(prompts, &self.response_file(key), &self.heredoc_word(turn, 0));
        // The agent of a failed turn may have done part of the work. It still gets the full prompt, because what it
        // remembers is unknown (LOOP-27).
        let broke_off = self.failed.as_ref().filter(|failed| {
            failed.record.key == key && failed.record.terminal == terminal && failed.record.sent.is_some()
        });
        let mut text = self.rounds.text(key, &instruction);
        if let Some(failed) = broke_off {
            text = format!("{}\n\n{text}", broken_off(&failed.message));
        }
        // Each prompt starts differently, so that it can be recognized on a screen.
        let text = format!("[run {}, turn {turn}]\n{text}", self.spec.id);
        self.undelivered = 0;
        self.record = Some(TurnRecord::new(turn, key, terminal, attempt, text.clone(), self.progress.now));
        self.tell(Entry::TurnBegun { turn, key, terminal, attempt, text });
        self.mirror_due = true;
        self.settle_at(terminal);
    }

    /// Watches a terminal. Its previous status is discarded.
    pub(super) fn watch(&mut self, terminal: TerminalId) {
        self.seen = None;
        self.progress.request(Effect::Watch(terminal));
    }

    /// Waits until the terminal of a turn is quiet.
    pub(super) fn settle_at(&mut self, terminal: TerminalId) {
        self.live = Live::Settling { since: self.now, told: false, asks: None };
        self.watch(terminal);
    }

    pub(super) fn response_file(&self, key: Key) -> String {
        format!("{}/.tmp/agent-responses/{}", self.spec.directory, key.file_name())
    }

    /// Returns the delimiter of an answer's heredoc. No earlier answer can contain it, because the run's name is
    /// random.
    pub(super) fn heredoc_word(&self, turn: u64, reminder: u32) -> String {
        let run = u64::from(self.spec.id.bits());
        files::heredoc_word(run << 32 | (turn & 0xff_ffff) << 8 | u64::from(reminder & 0xff))
    }

    /// Waits for quiet: a prompt is typed only into a quiet terminal.
    pub(super) fn settle(&mut self) {
        let Live::Settling { since, told, asks } = self.live else { return };
        let Some(turn) = self.turn() else { return };
        let (key, terminal) = (turn.key, turn.terminal);
        let waited = self.now.since(since);
        let kind = self.seen.as_ref().and_then(|seen| seen.kind);
        let asks = (kind == Some(StatusKind::WaitingUserAnswer)).then(|| asks.unwrap_or(self.now));
        self.live = Live::Settling { since, told, asks };
        let ready = match kind {
            Some(StatusKind::Idle | StatusKind::Completed) => true,
            // An agent that returned to its prompt after a model failure stays there until it gets a prompt.
            Some(StatusKind::Error) => self.attempts > 1 || self.model_failed(),
            _ => false,
        };
        match kind {
            _ if ready => {
                self.live = Live::Clearing;
                let number = self.archived + 1;
                self.request(TurnEffect::ClearStale { number });
            }
            // Nothing was typed yet, so the error can be confirmed: a redraw is no error.
            Some(StatusKind::Error) if waited >= SETTLE => {
                let reason = self.seen.as_ref().map_or("", |seen| seen.reason.as_str());
                let text = format!("terminal {terminal} of the {} is in ERROR state: {reason}", key.role());
                self.fail(TurnError::new(Cause::ErrorState, text));
            }
            Some(StatusKind::WaitingUserAnswer) if asks.is_some_and(|asks| self.now.since(asks) >= SETTLE) => {
                let text = format!(
                    "terminal {terminal} of the {} waits for an answer, and a prompt is not typed into a question; \
                     `posse show {terminal}` says what answers it; then resume",
                    key.role()
                );
                self.fail(TurnError::new(Cause::Waiting, text));
            }
            _ if waited > self.spec.config.handoff.timeout() => {
                let text = format!("terminal {terminal} of the {} did not become quiet", key.role());
                self.fail(TurnError::new(Cause::TimedOut, text));
            }
            _ if waited >= SETTLE && !told => {
                self.live = Live::Settling { since, told: true, asks };
                let text = format!("the {} is still busy with what came before; its next prompt waits", key.role());
                self.say(Level::Warning, text);
            }
            _ => {}
        }
    }

    /// Returns whether the displayed error is one of the model's service.
    fn model_failed(&self) -> bool {
        let Some(seen) = &self.seen else { return false };
        let words = [seen.words.as_deref().unwrap_or_default(), &seen.reason];
        words.into_iter().any(|words| turn::failure::classify(words).is_some())
    }

    /// Requests an effect for the current turn.
    pub(super) fn request(&mut self, effect: TurnEffect) {
        if let Some(turn) = self.record.clone() {
            self.progress.request(Effect::Turn(Box::new(turn), effect));
        }
    }

    /// Sends the prompt of the current turn. A prompt number is typed once, even if requested repeatedly.
    pub(super) fn dispatch(&mut self) {
        self.live = Live::Sending;
        self.request(TurnEffect::Send);
    }

    pub(super) fn turn_event(&mut self, event: TurnEvent) {
        match (event, &self.live) {
            (TurnEvent::StaleCleared { stale: Ok(stale), printed }, Live::Clearing) => self.cleared(stale, printed),
            // If the file stayed, it would be taken for the answer to this turn.
            (TurnEvent::StaleCleared { stale: Err(why), .. }, Live::Clearing) => {
                let text = format!("an older answer is in the way and cannot be moved: {why}");
                self.fail(TurnError::new(Cause::Unarchived, text));
            }
            (TurnEvent::Sent(sent), Live::Sending) => self.sent(sent),
            (TurnEvent::Waiting(event), Live::Waiting(_)) => self.hand_to_turn(event),
            (TurnEvent::Waiting(Event::File(look)), Live::Reconsidering) => self.looked(look),
            (TurnEvent::Waiting(Event::Gone(why)), Live::Reconsidering) => self.gone_again(why),
            // The agent exited after its last turn, and no prompt was sent yet.
            (TurnEvent::Waiting(Event::Gone(why)), Live::Settling { .. }) => self.gone(&why),
            (TurnEvent::Archived(name), Live::Archiving) => self.kept(name),
            (TurnEvent::Archived(name), Live::KeepingLate(error)) => self.kept_late(error.clone(), name),
            _ => {}
        }
    }

    /// Continues after the response file was moved away.
    fn cleared(&mut self, stale: Option<String>, printed: Option<u64>) {
        self.archived += u32::from(stale.is_some());
        let Some(record) = &mut self.record else { return };
        (record.dispatching, record.printed) = (Some(self.progress.now), printed);
        let turn = record.turn;
        self.tell(Entry::Dispatching { turn, stale });
        self.dispatch();
    }

    fn taken(&mut self) {
        let at = self.progress.now;
        let Some(record) = self.turn_mut() else { return };
        record.sent = Some(at);
        let (turn, role) = (record.turn, record.key.role());
        self.rounds.told(role);
        self.tell(Entry::Sent { turn });
        self.mirror_due = true;
        self.wait();
    }

    fn sent(&mut self, sent: Sent) {
        match sent {
            Sent::Taken => self.taken(),
            Sent::Uncertain(why) => {
                let text = format!("nobody knows whether the prompt arrived, and it is not sent twice: {why}");
                self.fail(TurnError::new(Cause::Uncertain, text));
            }
            Sent::Lost => {
                self.record = None;
                self.advance();
            }
            Sent::Not(why) => {
                self.undelivered += 1;
                if self.undelivered >= DELIVERIES {
                    let text = format!("the prompt was not taken: {why}");
                    return self.fail(TurnError::new(Cause::ErrorState, text));
                }
                self.say(Level::Warning, format!("the prompt was not taken: {why}; trying again"));
                if let Some(turn) = self.turn() {
                    self.settle_at(turn.terminal);
                }
            }
            Sent::Gone(why) => self.gone(&why),
        }
    }

    fn gone(&mut self, why: &str) {
        let text = match self.turn() {
            Some(turn) => format!("terminal {} of the {} is gone: {why}", turn.terminal, turn.key.role()),
            None => format!("a terminal is gone: {why}"),
        };
        self.fail(TurnError::new(Cause::Gone, text));
    }
}

fn broken_off(why: &str) -> String {
    format!(
        "Your last turn broke off before its answer was written ({why}). Take the task up where you left it, finish it, \
         and write the answer. Here it is again."
    )
}

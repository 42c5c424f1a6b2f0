//! Requests that the keeper has not taken yet. A stopped keeper takes none; the requests are then given up one by one, and
//! the keeper does not execute them when it runs again (see `wire::RequestStamp`).

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use posse_core::ids::{TerminalId, WriterId};
use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, sleep_until};

use crate::monotonic_ns;
use crate::wire::{KeeperRequest, LATE_AFTER, NEVER_LATE, RequestStamp};

/// The time in which the keeper must take a request. Longer than `LATE_AFTER`, so a request that is given up is too old
/// to be executed. Every command answers within 10 s.
pub(super) const PATIENCE: Duration = LATE_AFTER.saturating_add(Duration::from_secs(2));

/// A request that was given up: the keeper did not take it in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Untaken {
    Spawn {
        id: TerminalId,
    },
    Input {
        id: TerminalId,
        writer: WriterId,
        sequence: u64,
    },
    End {
        id: TerminalId,
    },
    /// Its caller waits for an answer.
    Other,
    /// The only request that is executed however late: the daemon leaves without waiting for an answer.
    Rest,
}

impl Untaken {
    /// Returns `None` for requests that have no effect by themselves; these are never given up.
    pub(super) fn of(request: &KeeperRequest) -> Option<Self> {
        Some(match request {
            KeeperRequest::Spawn { id, .. } => Self::Spawn { id: *id },
            KeeperRequest::Input { id, writer, sequence, .. } => {
                Self::Input { id: *id, writer: *writer, sequence: *sequence }
            }
            KeeperRequest::End { id, .. } => Self::End { id: *id },
            KeeperRequest::Rest => Self::Rest,
            KeeperRequest::Hello { .. } | KeeperRequest::List => Self::Other,
            KeeperRequest::HangUp { .. } | KeeperRequest::StartDaemon { .. } => Self::Other,
            _ => return None,
        })
    }
}

pub(super) struct Pending {
    patience: Duration,
    state: Mutex<PendingState>,
    added: Notify,
}

#[derive(Default)]
struct PendingState {
    tokens: u64,
    /// Ordered by the time at which each is given up.
    requests: VecDeque<PendingRequest>,
    /// A request was given up, and no message arrived since.
    silent: bool,
}

struct PendingRequest {
    token: u64,
    due: Instant,
    untaken: Untaken,
    reply: Option<oneshot::Sender<bool>>,
}

impl PendingRequest {
    fn tell(self, taken: bool) -> Untaken {
        if let Some(reply) = self.reply {
            let _ = reply.send(taken);
        }
        self.untaken
    }
}

impl Pending {
    /// Requests are given up if they are not taken within `patience`.
    pub(super) fn new(patience: Duration) -> Self {
        Self { patience, state: Mutex::default(), added: Notify::new() }
    }

    fn state(&self) -> MutexGuard<'_, PendingState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts to wait for a request to be taken. Returns `None` if the keeper is silent: the request is given up at once and
    /// must not be sent.
    pub(super) fn add(&self, untaken: Untaken, reply: Option<oneshot::Sender<bool>>) -> Option<RequestStamp> {
        let mut state = self.state();
        state.tokens += 1;
        let token = state.tokens;
        let silent = state.silent;
        let now = Instant::now();
        if silent {
            state.requests.push_front(PendingRequest { token, due: now, untaken, reply });
        } else {
            state.requests.push_back(PendingRequest { token, due: now + self.patience, untaken, reply });
        }
        drop(state);
        self.added.notify_one();
        match untaken {
            Untaken::Rest => Some(RequestStamp { token, sent: NEVER_LATE }),
            _ if silent => None,
            _ => Some(RequestStamp { token, sent: monotonic_ns() }),
        }
    }

    pub(super) fn keeper_spoke(&self) {
        self.state().silent = false;
    }

    pub(super) fn is_silent(&self) -> bool {
        self.state().silent
    }

    /// Records that the keeper took a request, or found it too old. Returns the request in the latter case.
    pub(super) fn taken(&self, token: u64, late: bool) -> Option<Untaken> {
        let mut state = self.state();
        let place = state.requests.iter().position(|request| request.token == token)?;
        let untaken = state.requests.remove(place)?.tell(!late);
        late.then_some(untaken)
    }

    pub(super) async fn overdue(&self) -> Untaken {
        loop {
            let due = self.state().requests.front().map(|request| request.due);
            match due {
                None => self.added.notified().await,
                Some(due) if due <= Instant::now() => {
                    let mut state = self.state();
                    if let Some(request) = state.requests.pop_front() {
                        state.silent = true;
                        return request.tell(false);
                    }
                }
                Some(due) => tokio::select! {
                    () = sleep_until(due) => {}
                    () = self.added.notified() => {}
                },
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id() -> TerminalId {
        TerminalId::from_random(7)
    }

    #[tokio::test]
    async fn taken_request_is_not_given_up() {
        let pending = Pending::new(Duration::from_millis(1));
        let stamp = pending.add(Untaken::Other, None).unwrap();
        assert_eq!(pending.taken(stamp.token, false), None);
        let overdue = tokio::time::timeout(Duration::from_millis(20), pending.overdue()).await;
        assert!(overdue.is_err(), "{overdue:?}");
        assert!(!pending.is_silent());
    }

    #[tokio::test]
    async fn requests_to_a_silent_keeper_are_given_up() {
        let pending = Pending::new(Duration::from_millis(1));
        let (reply, taken) = oneshot::channel();
        let first = pending.add(Untaken::End { id: id() }, Some(reply)).unwrap();
        assert_eq!(pending.overdue().await, Untaken::End { id: id() });
        assert!(!taken.await.unwrap());
        assert!(PATIENCE > LATE_AFTER, "what is given up is too old to be carried out");
        assert_eq!(pending.add(Untaken::Spawn { id: id() }, None), None, "not sent");
        let rest = pending.add(Untaken::Rest, None).unwrap();
        assert_eq!(rest.sent, NEVER_LATE, "sent all the same");
        assert_eq!(pending.overdue().await, Untaken::Rest);
        assert_eq!(pending.overdue().await, Untaken::Spawn { id: id() });
        // The answer to the first one arrives when the keeper runs again.
        assert!(pending.is_silent());
        pending.keeper_spoke();
        assert_eq!(pending.taken(first.token, true), None, "given up before");
        assert!(pending.add(Untaken::Spawn { id: id() }, None).is_some());
    }

    #[tokio::test]
    async fn request_that_the_keeper_finds_too_old_is_given_up() {
        let pending = Pending::new(Duration::from_millis(1));
        let (reply, taken) = oneshot::channel();
        let stamp = pending.add(Untaken::Other, Some(reply)).unwrap();
        assert_eq!(pending.taken(stamp.token, true), Some(Untaken::Other));
        assert!(!taken.await.unwrap());
    }
}

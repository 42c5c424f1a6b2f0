//! The state that the threads of a model server share: the log, the gates, the script.

use std::collections::{BTreeMap, BTreeSet};
use std::net::TcpStream;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::model::conversation::ConversationScript;
use crate::model::log::{ModelEvent, ModelLog, ModelLogEntry};

pub(crate) struct ServerShared {
    state: Mutex<ServerState>,
    changed: Condvar,
}

pub(crate) struct ServerState {
    pub(crate) started: Instant,
    pub(crate) log: ModelLog,
    pub(crate) script: ConversationScript,
    pub(crate) open_gates: BTreeSet<String>,
    pub(crate) stopping: bool,
    pub(crate) connections: BTreeMap<u64, TcpStream>,
    /// Requests whose connection was lost before the reply was complete.
    lost: BTreeSet<u64>,
    requests: u64,
}

impl ServerState {
    pub(crate) fn record(&mut self, request: Option<u64>, event: ModelEvent) {
        self.log.entries.push(ModelLogEntry { at: self.started.elapsed(), request, event });
    }

    pub(crate) fn next_request(&mut self) -> u64 {
        self.requests += 1;
        self.requests
    }

    fn must_end(&self, request: u64) -> bool {
        self.stopping || self.lost.contains(&request)
    }
}

/// The connection of a request is lost, or the server stops.
#[derive(Debug)]
pub(crate) struct ConnectionGone;

impl ServerShared {
    pub(crate) fn new(script: ConversationScript) -> Self {
        let state = ServerState {
            started: Instant::now(),
            log: ModelLog::default(),
            script,
            open_gates: BTreeSet::new(),
            stopping: false,
            connections: BTreeMap::new(),
            lost: BTreeSet::new(),
            requests: 0,
        };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, ServerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state and wakes all waiting threads.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut ServerState) -> T) -> T {
        let changed = change(&mut self.lock());
        self.changed.notify_all();
        changed
    }

    pub(crate) fn record(&self, request: u64, event: ModelEvent) {
        self.change(|state| state.record(Some(request), event));
    }

    /// Records a lost connection, once and only if the reply was incomplete.
    pub(crate) fn lose(&self, request: u64) {
        self.change(|state| {
            if state.connections.contains_key(&request) && !state.stopping && state.lost.insert(request) {
                state.record(Some(request), ModelEvent::ConnectionLost);
            }
        });
    }

    pub(crate) fn forget(&self, request: u64) {
        self.change(|state| state.connections.remove(&request));
    }

    /// Waits until the state fits, and returns whether it did in time.
    pub(crate) fn wait(&self, patience: Duration, fits: impl Fn(&ServerState) -> bool) -> bool {
        let waited = self.changed.wait_timeout_while(self.lock(), patience, |state| !fits(state));
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }

    /// Pauses a reply, unless its connection is lost.
    pub(crate) fn pause(&self, request: u64, time: Duration) -> Result<(), ConnectionGone> {
        if self.wait(time, |state| state.must_end(request)) { Err(ConnectionGone) } else { Ok(()) }
    }

    pub(crate) fn pass_gate(&self, request: u64, gate: &str) -> Result<(), ConnectionGone> {
        let mut state = self.lock();
        if !state.open_gates.contains(gate) {
            state.record(Some(request), ModelEvent::Waiting { gate: gate.to_owned() });
            self.changed.notify_all();
        }
        let closed = |state: &mut ServerState| !state.open_gates.contains(gate) && !state.must_end(request);
        let state = self.changed.wait_while(state, closed).unwrap_or_else(PoisonError::into_inner);
        if state.must_end(request) { Err(ConnectionGone) } else { Ok(()) }
    }

    pub(crate) fn log(&self) -> ModelLog {
        self.lock().log.clone()
    }
}

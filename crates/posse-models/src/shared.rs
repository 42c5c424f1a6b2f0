//! What the threads of a model server have in common: the log, the gates, the script.

use std::collections::{BTreeMap, BTreeSet};
use std::net::TcpStream;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::log::{Entry, Event, Log};
use crate::script::Script;

pub(crate) struct Shared {
    started: Instant,
    state: Mutex<State>,
    /// Something in the state changed.
    changed: Condvar,
}

pub(crate) struct State {
    started: Instant,
    pub(crate) log: Log,
    pub(crate) script: Script,
    pub(crate) open_gates: BTreeSet<String>,
    pub(crate) stopping: bool,
    /// Connections that are open, by request.
    pub(crate) connections: BTreeMap<u64, TcpStream>,
    /// Requests whose connection was lost before they were answered.
    lost: BTreeSet<u64>,
    requests: u64,
}

impl State {
    pub(crate) fn record(&mut self, request: Option<u64>, event: Event) {
        self.log.entries.push(Entry { at: self.started.elapsed(), request, event });
    }

    pub(crate) fn next_request(&mut self) -> u64 {
        self.requests += 1;
        self.requests
    }

    fn must_end(&self, request: u64) -> bool {
        self.stopping || self.lost.contains(&request)
    }
}

/// The connection of a request is gone, or the server stops.
#[derive(Debug)]
pub(crate) struct Gone;

impl Shared {
    pub(crate) fn new(script: Script) -> Self {
        let started = Instant::now();
        let state = State {
            started,
            log: Log::default(),
            script,
            open_gates: BTreeSet::new(),
            stopping: false,
            connections: BTreeMap::new(),
            lost: BTreeSet::new(),
            requests: 0,
        };
        Self { started, state: Mutex::new(state), changed: Condvar::new() }
    }

    pub(crate) fn started(&self) -> Instant {
        self.started
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state, and tells everyone who waits for a change.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let changed = change(&mut self.lock());
        self.changed.notify_all();
        changed
    }

    pub(crate) fn record(&self, request: u64, event: Event) {
        self.change(|state| state.record(Some(request), event));
    }

    /// The agent went away. Told once, and not when the answer was complete.
    pub(crate) fn lose(&self, request: u64) {
        self.change(|state| {
            if state.connections.contains_key(&request) && !state.stopping && state.lost.insert(request) {
                state.record(Some(request), Event::ConnectionLost);
            }
        });
    }

    /// Nothing more happens with this request.
    pub(crate) fn forget(&self, request: u64) {
        self.change(|state| state.connections.remove(&request));
    }

    /// Waits until the state fits; the answer is whether it did in time.
    pub(crate) fn wait(&self, patience: Duration, fits: impl Fn(&State) -> bool) -> bool {
        let waited = self.changed.wait_timeout_while(self.lock(), patience, |state| !fits(state));
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }

    /// A pause in an answer, unless nobody is there any more to notice.
    pub(crate) fn pause(&self, request: u64, time: Duration) -> Result<(), Gone> {
        if self.wait(time, |state| state.must_end(request)) { Err(Gone) } else { Ok(()) }
    }

    pub(crate) fn pass_gate(&self, request: u64, gate: &str) -> Result<(), Gone> {
        let mut state = self.lock();
        if !state.open_gates.contains(gate) {
            state.record(Some(request), Event::Waiting { gate: gate.to_owned() });
            self.changed.notify_all();
        }
        let closed = |state: &mut State| !state.open_gates.contains(gate) && !state.must_end(request);
        let state = self.changed.wait_while(state, closed).unwrap_or_else(PoisonError::into_inner);
        if state.must_end(request) { Err(Gone) } else { Ok(()) }
    }

    pub(crate) fn log(&self) -> Log {
        self.lock().log.clone()
    }
}

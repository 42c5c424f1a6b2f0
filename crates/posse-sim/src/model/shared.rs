//! The state that the threads of a model server share: the log, the gates, the script.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use crate::model::conversation::ConversationScript;
use crate::model::log::{ModelEvent, ModelLog, ModelLogEntry};
use crate::watched::Watched;

pub(crate) struct ServerState {
    pub(crate) started: Instant,
    pub(crate) log: ModelLog,
    pub(crate) script: ConversationScript,
    pub(crate) open_gates: BTreeSet<String>,
    pub(crate) stopping: bool,
    /// Requests without a complete reply, whose connection is still there.
    pub(crate) unanswered: BTreeSet<u64>,
    requests: u64,
}

/// The reason a reply ends before its steps are over.
#[derive(Debug)]
pub(crate) enum ReplyCut {
    /// The connection is lost, or the server stops.
    ConnectionGone,
    /// The scenario lets the request fail.
    Failed,
}

impl ServerState {
    pub(crate) fn new(script: ConversationScript) -> Self {
        Self {
            started: Instant::now(),
            log: ModelLog::default(),
            script,
            open_gates: BTreeSet::new(),
            stopping: false,
            unanswered: BTreeSet::new(),
            requests: 0,
        }
    }

    pub(crate) fn record(&mut self, request: Option<u64>, event: ModelEvent) {
        self.log.entries.push(ModelLogEntry { at: self.started.elapsed(), request, event });
    }

    pub(crate) fn next_request(&mut self) -> u64 {
        self.requests += 1;
        self.unanswered.insert(self.requests);
        self.requests
    }

    fn must_end(&self, request: u64) -> bool {
        self.stopping || !self.unanswered.contains(&request)
    }
}

impl Watched<ServerState> {
    pub(crate) fn record(&self, request: u64, event: ModelEvent) {
        self.change(|state| state.record(Some(request), event));
    }

    /// Records a lost connection, once and only if the reply was incomplete.
    pub(crate) fn lose(&self, request: u64) {
        self.change(|state| {
            if state.unanswered.remove(&request) && !state.stopping {
                state.record(Some(request), ModelEvent::ConnectionLost);
            }
        });
    }

    /// Pauses a reply, unless its connection is lost.
    pub(crate) fn pause(&self, request: u64, time: Duration) -> Result<(), ReplyCut> {
        if self.wait(time, |state| state.must_end(request)) { Err(ReplyCut::ConnectionGone) } else { Ok(()) }
    }

    pub(crate) fn pass_gate(&self, request: u64, gate: &str) -> Result<(), ReplyCut> {
        self.change(|state| {
            if !state.open_gates.contains(gate) {
                state.record(Some(request), ModelEvent::Waiting { gate: gate.to_owned() });
            }
        });
        self.wait(Duration::MAX, |state| state.open_gates.contains(gate) || state.must_end(request));
        self.pause(request, Duration::ZERO)
    }
}

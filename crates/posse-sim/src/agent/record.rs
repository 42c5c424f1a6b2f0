//! The agent's own record of events, as JSON lines: a truth for tests that does not depend on the screen.

use posse_core::review_loop::Key;
use serde::Serialize;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(super) enum AgentRecord {
    Submitted {
        prompt: String,
    },
    /// The prompt waits for the running turn to end.
    Queued {
        prompt: String,
    },
    /// The prompt asks for an answer in a file.
    Asked {
        key: Key,
        nth: u32,
        path: String,
    },
    /// Turns count from 1.
    TurnEnded {
        turn: u32,
        outcome: TurnOutcome,
    },
    DialogDrawn,
    /// Options count from 1; a cancelled dialog has no choice.
    DialogClosed {
        choice: Option<usize>,
        accepted: bool,
    },
    Wrote {
        path: String,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum TurnOutcome {
    Done,
    Interrupted,
    Error,
}

/// A record as it is written, with its time and the process that writes it. Several agents may share a log.
#[derive(Serialize)]
pub(super) struct RecordLine<'a> {
    /// A reading of `CLOCK_MONOTONIC`, in nanoseconds.
    pub(super) ns: u64,
    pub(super) pid: u32,
    /// The agent's terminal, if posse started the agent.
    pub(super) terminal: Option<&'a str>,
    #[serde(flatten)]
    pub(super) record: &'a AgentRecord,
}

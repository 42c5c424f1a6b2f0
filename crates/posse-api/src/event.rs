//! Events: what happened, as the log keeps it and every subscriber gets it.

use jiff::Timestamp;
use posse_core::detect::Dialog;
use posse_core::ids::{Name, RunId, TerminalId};
use posse_core::signal::Signal;
use posse_core::status::Exit;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::{JournalView, StatusView};

#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct LogEvent {
    /// The place in the log. Absent for events that are not kept, and for those that could not be written yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seq: Option<i64>,
    pub at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub terminal: Option<TerminalId>,
    /// The output offset up to which the terminal had been read, for events that come from what its program printed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    #[serde(flatten)]
    pub body: EventBody,
}

impl LogEvent {
    /// Returns whether the state of this terminal may have changed.
    pub fn changes(&self, terminal: TerminalId) -> bool {
        self.terminal == Some(terminal) && !self.body.is_transient()
    }
}

/// The kind of an event and its facts.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(tag = "kind", content = "data", rename_all = "snake_case")]
pub enum EventBody {
    DaemonStarted {
        pid: u32,
        version: String,
    },
    /// The daemon stops. No event follows.
    DaemonStopped {},
    SettingChanged {
        name: String,
        value: Option<String>,
    },
    /// The connection to the keeper is lost, and its terminals with it.
    KeeperLost {
        reason: String,
    },
    /// The keeper is connected but does not answer.
    KeeperSilent {
        reason: String,
    },
    KeeperAnswers {},
    TerminalCreated {
        name: Name,
        session: Name,
        command: Vec<String>,
    },
    TerminalStarted {
        pid: u32,
    },
    /// The program could not be started.
    TerminalFailed {
        reason: String,
    },
    /// A new daemon found the terminal at the keeper, but not in its database.
    TerminalAdopted {
        pid: u32,
    },
    TerminalExited {
        exit: Exit,
        text: String,
    },
    TerminalDeleted {
        reason: DeleteReason,
        /// Processes that could not be ended.
        processes_left: u32,
    },
    StatusChanged(StatusView),
    /// The agent did not react to an input. Its status is the same as before.
    NoReaction(StatusView),
    /// A message was typed into the terminal, or could not be.
    PromptDelivered {
        characters: usize,
        result: String,
    },
    /// A question of the agent was answered, or could not be.
    QuestionAnswered {
        wish: String,
        dialog: Option<Dialog>,
        /// The entry in the audit.
        audit: i64,
        result: String,
    },
    /// The size of the terminal while no viewer is attached was set.
    SizeSet {
        rows: u16,
        cols: u16,
    },
    /// Not kept.
    Resized {
        rows: u16,
        cols: u16,
    },
    /// Not kept.
    TitleChanged {
        title: String,
    },
    /// An escape sequence that reports something, such as a bell. Not kept.
    Signal {
        #[schema(value_type = Object)]
        signal: Signal,
    },
    /// A new entry in the journal of a run.
    RunEntry {
        run_id: RunId,
        /// The place in the journal of the run, from 1.
        run_seq: i64,
        /// Absent in events that are read from the log: the journal has it.
        #[serde(flatten)]
        view: Option<Box<JournalView>>,
    },
    /// A run was dropped: neither the run nor its journal exists any more.
    RunDropped {
        run_id: RunId,
    },
    /// The log of a session has more lines. Not kept.
    SessionSaid {
        run_id: RunId,
        session: String,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum DeleteReason {
    Asked,
    /// The terminal ended long ago.
    Expired,
}

impl EventBody {
    /// Returns whether the event is published but not kept, because it changes nothing else.
    pub fn is_transient(&self) -> bool {
        matches!(
            self,
            Self::TitleChanged { .. } | Self::Resized { .. } | Self::Signal { .. } | Self::SessionSaid { .. }
        )
    }

    /// The event as the log keeps it: the entries of journals are stored there and nowhere else.
    pub fn for_log(&self) -> Self {
        match self {
            Self::RunEntry { run_id, run_seq, .. } => Self::RunEntry { run_id: *run_id, run_seq: *run_seq, view: None },
            body => body.clone(),
        }
    }

    /// The run whose journal has a new entry, and the place of the entry.
    pub fn entry_of(&self) -> Option<(RunId, i64)> {
        match self {
            Self::RunEntry { run_id, run_seq, .. } => Some((*run_id, *run_seq)),
            _ => None,
        }
    }
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct LogQuery {
    pub terminal: Option<TerminalId>,
    /// Only what came after this number; otherwise the newest.
    pub after: Option<i64>,
    pub limit: Option<u32>,
}

#[cfg(test)]
mod tests {
    use posse_core::run::Entry;
    use serde_json::json;

    use super::*;
    use crate::EntryView;

    /// Clients read `kind` and `data`; an entry of a journal is part of `data`.
    #[test]
    fn events_read_back_as_they_were_written() {
        let run_id = RunId::from_random(1);
        let at = Timestamp::UNIX_EPOCH;
        let view = JournalView { seq: 3, at, entry: EntryView::Loop(Entry::Sent { turn: 2 }) };
        let entry = EventBody::RunEntry { run_id, run_seq: 3, view: Some(Box::new(view)) };
        let of_entry = json!({
            "run_id": run_id, "run_seq": 3, "seq": 3, "at": "1970-01-01T00:00:00Z", "run_kind": "loop", "entry": "sent", "turn": 2,
        });
        let cases = [
            (EventBody::DaemonStopped {}, json!({ "kind": "daemon_stopped", "data": {} })),
            (
                EventBody::TerminalExited { exit: Exit::Code(1), text: "exit code 1".into() },
                json!({ "kind": "terminal_exited", "data": { "exit": { "code": 1 }, "text": "exit code 1" } }),
            ),
            (
                EventBody::Signal { signal: Signal::Bell },
                json!({ "kind": "signal", "data": { "signal": { "signal": "bell" } } }),
            ),
            (entry.for_log(), json!({ "kind": "run_entry", "data": { "run_id": run_id, "run_seq": 3 } })),
            (entry, json!({ "kind": "run_entry", "data": of_entry })),
        ];
        for (body, written) in cases {
            let event = LogEvent { seq: Some(7), at, terminal: None, offset: Some(1 << 40), body };
            let value = serde_json::to_value(&event).unwrap();
            assert_eq!((&value["kind"], &value["data"]), (&written["kind"], &written["data"]));
            let read: LogEvent = serde_json::from_value(value.clone()).unwrap();
            assert_eq!(serde_json::to_value(&read).unwrap(), value);
        }
    }
}

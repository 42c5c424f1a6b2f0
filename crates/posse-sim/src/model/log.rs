//! The log of a model server: the truth that an agent's status is compared with.

use std::fmt;
use std::time::Duration;

use serde_json::Value;

use crate::model::request::{ModelRequest, ModelToolResult, RequestRole};

#[derive(Clone, Debug)]
pub struct ModelLogEntry {
    pub at: Duration,
    /// The request, counted from 1; releases have none.
    pub request: Option<u64>,
    pub event: ModelEvent,
}

#[derive(Clone, Debug)]
pub enum ModelEvent {
    Opened(Box<ModelRequest>),
    ToolAsked {
        id: String,
        name: String,
        input: Value,
    },
    /// The reply waits until this gate is released.
    Waiting {
        gate: String,
    },
    Released {
        gate: String,
    },
    /// The server sent an error, as HTTP status or inside the stream.
    Failed {
        status: u16,
    },
    Dropped,
    Ended {
        reason: &'static str,
    },
    /// The agent closed the connection before the reply was complete.
    ConnectionLost,
    /// A request that is not for a model, and the status of its answer.
    Other {
        method: String,
        path: String,
        status: u16,
    },
}

#[derive(Clone, Debug, Default)]
pub struct ModelLog {
    pub entries: Vec<ModelLogEntry>,
}

impl ModelLog {
    /// Returns the requests that played a turn, in order.
    pub fn turns(&self) -> impl Iterator<Item = (&ModelLogEntry, &ModelRequest)> {
        self.opened().filter(|(_, opened)| matches!(opened.role, RequestRole::Turn { .. }))
    }

    pub fn opened(&self) -> impl Iterator<Item = (&ModelLogEntry, &ModelRequest)> {
        self.entries.iter().filter_map(|entry| match &entry.event {
            ModelEvent::Opened(opened) => Some((entry, &**opened)),
            _ => None,
        })
    }

    /// Returns the events of one turn of the first scenario, in all attempts.
    pub fn of_turn(&self, number: usize) -> Vec<&ModelEvent> {
        let wanted = |role: &RequestRole| matches!(role, RequestRole::Turn { scenario: 0, turn: Some(turn), .. } if *turn == number);
        let requests: Vec<_> = self.turns().filter(|(_, o)| wanted(&o.role)).map(|(entry, _)| entry.request).collect();
        self.entries.iter().filter(|e| requests.contains(&e.request)).map(|entry| &entry.event).collect()
    }

    /// Returns whether a turn of the first scenario was answered to its end.
    pub fn ended(&self, turn: usize) -> bool {
        self.of_turn(turn).iter().any(|event| matches!(event, ModelEvent::Ended { .. }))
    }

    pub fn waits_at(&self, gate: &str) -> bool {
        self.entries.iter().any(|entry| matches!(&entry.event, ModelEvent::Waiting { gate: at } if at == gate))
    }

    pub fn tool_results(&self) -> impl Iterator<Item = &ModelToolResult> {
        self.turns().flat_map(|(_, opened)| &opened.tool_results)
    }
}

impl fmt::Display for ModelLog {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for ModelLogEntry { at, request, event } in &self.entries {
            let request = request.map(|number| format!("#{number}")).unwrap_or_default();
            writeln!(out, "{:9.3}s {request:>4} {event:?}", at.as_secs_f64())?;
        }
        Ok(())
    }
}

//! What happened at a model server, and when. This is the truth that an agent's status is compared with.

use std::fmt;
use std::time::Duration;

use serde_json::Value;

use crate::request::{Asked, ToolResult};

/// One thing that happened.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Since the server started, by the monotonic clock.
    pub at: Duration,
    /// The request it belongs to, counted from 1; releases belong to none.
    pub request: Option<u64>,
    pub event: Event,
}

#[derive(Clone, Debug)]
pub enum Event {
    /// A model was asked.
    Opened(Box<Opened>),
    /// The first bytes of an answer went out: its head, and the beginning of a stream if it is one.
    FirstByte,
    ToolAsked {
        id: String,
        name: String,
        input: Value,
    },
    /// The answer stops here until this gate is released.
    Waiting {
        gate: String,
    },
    Released {
        gate: String,
    },
    /// An error was answered, by HTTP or inside the stream.
    Failed {
        status: u16,
    },
    /// The connection was cut because the scenario says so.
    Dropped,
    /// The answer went out to its end.
    Ended {
        reason: String,
    },
    /// The agent closed the connection before the answer was complete.
    ConnectionLost,
    /// Anything else that was asked for, and the answer's status.
    Other {
        method: String,
        path: String,
        status: u16,
    },
}

#[derive(Clone, Debug)]
pub struct Opened {
    pub role: Role,
    pub model: String,
    pub streamed: bool,
    /// The newest thing the user said.
    pub user_text: String,
    /// What the agent put beside the user's words, such as the project's instructions. Claude Code only.
    pub reminders: String,
    /// Results of tools that came with this request.
    pub tool_results: Vec<ToolResult>,
}

/// What a request is to the scenarios.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// The turn it got (`None` when the script is over), and how often that turn was asked for, this time included.
    Turn { scenario: usize, turn: Option<usize>, attempt: u32 },
    /// Something the agent asks for itself, such as a title. Answered in a few words, no turn is used up.
    Side(&'static str),
}

impl Opened {
    pub(crate) fn new(role: Role, asked: &Asked) -> Self {
        Self {
            role,
            model: asked.model.clone(),
            streamed: asked.streamed,
            user_text: asked.user_text.clone(),
            reminders: asked.reminders.clone(),
            tool_results: asked.tool_results.clone(),
        }
    }
}

/// Everything so far, in order.
#[derive(Clone, Debug, Default)]
pub struct Log {
    pub entries: Vec<Entry>,
}

impl Log {
    /// The requests that got a turn, in order; side requests are left out.
    pub fn turns(&self) -> impl Iterator<Item = (&Entry, &Opened)> {
        self.opened().filter(|(_, opened)| matches!(opened.role, Role::Turn { .. }))
    }

    pub fn opened(&self) -> impl Iterator<Item = (&Entry, &Opened)> {
        self.entries.iter().filter_map(|entry| match &entry.event {
            Event::Opened(opened) => Some((entry, &**opened)),
            _ => None,
        })
    }

    /// What happened with one turn of the first scenario, all attempts together.
    pub fn of_turn(&self, number: usize) -> Vec<&Event> {
        let wanted = |role: &Role| matches!(role, Role::Turn { scenario: 0, turn: Some(turn), .. } if *turn == number);
        let requests: Vec<_> = self.turns().filter(|(_, o)| wanted(&o.role)).map(|(entry, _)| entry.request).collect();
        self.entries.iter().filter(|e| requests.contains(&e.request)).map(|entry| &entry.event).collect()
    }

    /// Whether a turn of the first scenario was answered to its end.
    pub fn ended(&self, turn: usize) -> bool {
        self.of_turn(turn).iter().any(|event| matches!(event, Event::Ended { .. }))
    }

    pub fn waits_at(&self, gate: &str) -> bool {
        self.entries.iter().any(|entry| matches!(&entry.event, Event::Waiting { gate: at } if at == gate))
    }

    /// Every result of a tool that came back, in order.
    pub fn tool_results(&self) -> impl Iterator<Item = &ToolResult> {
        self.turns().flat_map(|(_, opened)| &opened.tool_results)
    }

    /// The kinds of events of the requests that got a turn, for comparing their order.
    pub fn words(&self) -> Vec<&'static str> {
        let requests: Vec<_> = self.turns().map(|(entry, _)| entry.request).collect();
        self.entries.iter().filter(|e| requests.contains(&e.request)).map(|entry| entry.event.word()).collect()
    }
}

impl Event {
    pub fn word(&self) -> &'static str {
        match self {
            Self::Opened(_) => "opened",
            Self::FirstByte => "first_byte",
            Self::ToolAsked { .. } => "tool_asked",
            Self::Waiting { .. } => "waiting",
            Self::Released { .. } => "released",
            Self::Failed { .. } => "failed",
            Self::Dropped => "dropped",
            Self::Ended { .. } => "ended",
            Self::ConnectionLost => "connection_lost",
            Self::Other { .. } => "other",
        }
    }
}

impl fmt::Display for Log {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Entry { at, request, event } in &self.entries {
            let request = request.map(|number| format!("#{number}")).unwrap_or_default();
            writeln!(out, "{:9.3}s {request:>4} {event:?}", at.as_secs_f64())?;
        }
        Ok(())
    }
}

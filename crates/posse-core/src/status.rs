//! The life of one terminal: what happened × now → what we believe.
//!
//! Today only process facts speak: a running program is `processing`, an ended one is `error`.
//! Readings of the screen and signals will enter through the same `handle`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::time::Wall;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StatusKind {
    Idle,
    Processing,
    WaitingUserAnswer,
    Completed,
    Error,
}

impl StatusKind {
    pub const ALL: [StatusKind; 5] =
        [Self::Idle, Self::Processing, Self::WaitingUserAnswer, Self::Completed, Self::Error];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Processing => "processing",
            Self::WaitingUserAnswer => "waiting_user_answer",
            Self::Completed => "completed",
            Self::Error => "error",
        }
    }
}

impl fmt::Display for StatusKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("unknown status {0:?}; known are idle, processing, waiting_user_answer, completed, error")]
pub struct UnknownStatus(String);

impl FromStr for StatusKind {
    type Err = UnknownStatus;
    fn from_str(s: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == s).ok_or_else(|| UnknownStatus(s.to_owned()))
    }
}

/// What kind of answer a waiting terminal wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitingKind {
    Permission,
    Question,
    Plan,
    Startup,
}

/// What we believe about a terminal, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    #[serde(rename = "status")]
    pub kind: StatusKind,
    /// The rule or the fact that decided, in words for people.
    pub reason: String,
    pub waiting_kind: Option<WaitingKind>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dialog: Option<crate::detect::Dialog>,
    /// When this status began.
    pub since: Wall,
    /// Counts the changes of this terminal's status. A command that carries the epoch it was decided
    /// on can be refused when the world has moved on.
    pub epoch: u64,
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    Code(i32),
    Signal(i32),
    /// Whoever held the terminal is gone; nobody saw the end.
    Lost,
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Exit::Code(code) => write!(f, "exited with {code}"),
            Exit::Signal(signal) => match signal_name(*signal) {
                Some(name) => write!(f, "ended by {name}"),
                None => write!(f, "ended by signal {signal}"),
            },
            Exit::Lost => f.write_str("lost: its keeper is gone"),
        }
    }
}

fn signal_name(signal: i32) -> Option<&'static str> {
    Some(match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        15 => "SIGTERM",
        _ => return None,
    })
}

/// What can happen to a terminal, as far as its status is concerned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    Started,
    Exited(Exit),
}

/// Remembers one terminal's status and decides the next one.
#[derive(Clone, Debug)]
pub struct Life {
    status: Status,
    ended: bool,
}

impl Life {
    /// A terminal whose program is being started.
    pub fn starting(now: Wall) -> Self {
        Self { status: status(StatusKind::Processing, "starting".into(), now, 0), ended: false }
    }

    /// A terminal known from before, as it was last seen.
    pub fn resumed(status: Status, ended: bool) -> Self {
        Self { status, ended }
    }

    pub fn status(&self) -> &Status {
        &self.status
    }

    /// Takes in what happened; `Some` is the new status, to be told to everyone. An ended program
    /// stays ended whatever arrives late.
    pub fn handle(&mut self, event: &Event, now: Wall) -> Option<&Status> {
        if self.ended {
            return None;
        }
        let (kind, reason) = match event {
            Event::Started => (StatusKind::Processing, "running".to_owned()),
            Event::Exited(exit) => {
                self.ended = true;
                (StatusKind::Error, exit.to_string())
            }
        };
        if kind == self.status.kind && reason == self.status.reason {
            return None;
        }
        // The same status for another reason is not a new spell of it: `since` stands.
        let since = if kind == self.status.kind { self.status.since } else { now };
        self.status = status(kind, reason, since, self.status.epoch + 1);
        Some(&self.status)
    }
}

fn status(kind: StatusKind, reason: String, since: Wall, epoch: u64) -> Status {
    Status { kind, reason, waiting_kind: None, dialog: None, since, epoch }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Kind, reason, since, epoch.
    type Told = (StatusKind, &'static str, i64, u64);

    /// Events one second apart, and the status told after each (or nothing).
    fn check(events: &[(Event, Option<Told>)]) {
        let mut life = Life::starting(Wall(0));
        for (second, (event, expected)) in (1..).zip(events) {
            let told = life.handle(event, Wall(second * 1000)).cloned();
            let told = told.as_ref().map(|s| (s.kind, s.reason.as_str(), s.since.0, s.epoch));
            assert_eq!(told, *expected, "after {event:?}");
        }
    }

    #[test]
    fn process_facts_decide() {
        use StatusKind::{Error, Processing};
        let exited = |code| Event::Exited(Exit::Code(code));
        check(&[(Event::Started, Some((Processing, "running", 0, 1)))]);
        check(&[(Event::Started, Some((Processing, "running", 0, 1))), (Event::Started, None)]);
        check(&[(exited(0), Some((Error, "exited with 0", 1000, 1)))]);
        check(&[(exited(3), Some((Error, "exited with 3", 1000, 1))), (Event::Started, None), (exited(0), None)]);
        check(&[(Event::Exited(Exit::Signal(9)), Some((Error, "ended by SIGKILL", 1000, 1)))]);
        check(&[(Event::Exited(Exit::Lost), Some((Error, "lost: its keeper is gone", 1000, 1)))]);
    }

    #[test]
    fn every_status_has_one_spelling() {
        for kind in StatusKind::ALL {
            assert_eq!(kind.as_str().parse(), Ok(kind));
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.as_str());
        }
    }
}

//! The part of the user's config.toml that the daemon itself goes by. It is read from the file whenever it is needed and
//! never taken from a request: the process that sends a request may be an agent.

use std::path::PathBuf;

use posse_core::config::ConfigLayer;
use posse_term::config_files::{self, ConfigFileError};
use posse_term::paths::Paths;
use serde::de::DeserializeOwned;
use serde_json::Value as Json;

use crate::disk::Disk;

const SYSLOG: &str = "/dev/log";

/// The operator's decisions. The defaults allow nothing.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Operator {
    /// Processes in terminals may answer what agents ask.
    pub answers_from_terminals: bool,
    /// The place where the end of the audit is recorded too.
    pub anchor: Option<AnchorRule>,
    /// The program that is run for each event, and its arguments.
    pub notification_command: Vec<String>,
}

impl Operator {
    /// Reads config.toml. A missing file decides nothing.
    pub fn load(_: &Disk, paths: &Paths) -> Result<Self, ConfigFileError> {
        config_files::user(paths, None).map(|layer| Self::of(&layer))
    }

    /// Like `load`. A file that cannot be read or parsed allows nothing, and is logged.
    pub fn load_or_deny(disk: &Disk, paths: &Paths) -> Self {
        Self::load(disk, paths).unwrap_or_else(|error| {
            tracing::warn!("{error}; what it might allow is not allowed");
            Self::default()
        })
    }

    pub fn of(layer: &ConfigLayer) -> Self {
        Self {
            answers_from_terminals: value(layer, "permissions.answers_from_terminals").unwrap_or_default(),
            anchor: layer.get("audit.anchor").and_then(AnchorRule::of),
            notification_command: value(layer, "notifications.command").unwrap_or_default(),
        }
    }
}

fn value<T: DeserializeOwned>(layer: &ConfigLayer, path: &str) -> Option<T> {
    serde_json::from_value(layer.get(path)?.clone()).ok()
}

/// `[audit] anchor` of config.toml: a path, `syslog`, `syslog:SOCKET`, or a command and its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnchorRule {
    File(PathBuf),
    Syslog(PathBuf),
    Command(Vec<String>),
}

impl AnchorRule {
    /// Reads a value that was checked for its key. An empty text means nowhere.
    fn of(value: &Json) -> Option<Self> {
        Some(match value.as_str() {
            None => Self::Command(serde_json::from_value(value.clone()).ok()?),
            Some("") => return None,
            Some("syslog") => Self::Syslog(SYSLOG.into()),
            Some(text) => match text.strip_prefix("syslog:") {
                Some(socket) => Self::Syslog(socket.into()),
                None => Self::File(text.into()),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use posse_core::config::{ConfigFormat, LayerSource};

    use super::*;

    #[test]
    fn only_a_plain_true_allows_answers_from_terminals() {
        let allowed = |text: &str| {
            let read = ConfigLayer::read(LayerSource::User, ConfigFormat::Toml, "config.toml", text, None);
            read.is_ok_and(|(layer, _)| Operator::of(&layer).answers_from_terminals)
        };
        assert!(allowed("[loop]\nmode = 'ask'\n[permissions]\nanswers_from_terminals = true"));
        for text in [
            "",
            "[permissions]\nauto_accept = true",
            "[permissions]\nanswers_from_terminals = false",
            "[permissions]\nanswers_from_terminals = 'true'",
            "[permissions]\nanswers_from_terminals = 1",
            "answers_from_terminals = true",
            "[permissions",
        ] {
            assert!(!allowed(text), "{text}");
        }
    }
}

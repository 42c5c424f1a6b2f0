//! The part of the user's config.toml that the daemon itself goes by. It is read from the file whenever it is needed and
//! never taken from a request: the process that sends a request may be an agent.

#![expect(clippy::disallowed_methods, reason = "the command line uses it too; the daemon calls it through `Disk`")]

use std::io;
use std::path::PathBuf;

use posse_term::paths::Paths;
use posse_term::text_file;
use serde::Deserialize;

use crate::anchor::AnchorRule;

/// What the operator has decided. The defaults allow nothing.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Operator {
    #[serde(default)]
    pub permissions: OperatorPermissions,
    #[serde(default)]
    pub audit: OperatorAudit,
    #[serde(default)]
    pub notifications: OperatorNotifications,
}

#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
pub struct OperatorAudit {
    /// Where the end of the audit is written down besides its own files.
    pub anchor: Option<AnchorRule>,
}

#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
pub struct OperatorNotifications {
    /// The program that is run for each event, and its arguments.
    #[serde(default)]
    pub command: Vec<String>,
}

#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
pub struct OperatorPermissions {
    /// Processes in terminals may answer what agents ask.
    #[serde(default)]
    pub answers_from_terminals: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum OperatorError {
    #[error("cannot read {path}: {error}")]
    Io { path: PathBuf, error: io::Error },
    #[error("{path}: {message}")]
    Invalid { path: PathBuf, message: String },
}

impl Operator {
    /// Reads config.toml. A missing file decides nothing.
    pub fn load(paths: &Paths) -> Result<Self, OperatorError> {
        let path = paths.config.join("config.toml");
        match text_file::read(&path) {
            Ok(text) => Self::parse(&text).map_err(|message| OperatorError::Invalid { path, message }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(OperatorError::Io { path, error }),
        }
    }

    /// As `load`. A file that cannot be read or understood allows nothing, and the log says so.
    pub(crate) fn load_or_deny(paths: &Paths) -> Self {
        Self::load(paths).unwrap_or_else(|error| {
            tracing::warn!("{error}; what it might allow is not allowed");
            Self::default()
        })
    }

    fn parse(text: &str) -> Result<Self, String> {
        toml::from_str(text).map_err(|error| error.message().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_plain_true_allows_answers_from_terminals() {
        let allowed = |text: &str| Operator::parse(text).is_ok_and(|one| one.permissions.answers_from_terminals);
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

//! Everything that can go wrong for someone at the command line: what happened, what to do next, and the exit
//! code. Errors of the libraries are turned into these once, here.

use std::io;
use std::process::ExitCode;

use posse_api::{Problem, ProblemKind};
use posse_core::words::UnknownWord;
use posse_term::client::KeeperError;
use posse_term::lock::LockError;
use posse_term::paths::PathsError;

use crate::daemon::ServeFailure;

/// The exit codes, for all commands. Documented in docs/reference/exit-codes.md.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    Ok = 0,
    Failed = 1,
    /// The money of a plan is spent.
    OutOfMoney = 2,
    /// A plan was stopped on request.
    Stopped = 3,
    /// Sessions of a plan failed one after the other.
    CircuitOpen = 4,
    /// A plan is not valid, or cannot continue.
    Invalid = 5,
    /// Another instance holds the lock.
    Locked = 6,
    /// A task of a plan asks a question, and no other task is left.
    Suspended = 7,
    Usage = 64,
    Missing = 69,
    Bug = 70,
    /// Out of quota, with `--no-wait`.
    OutOfQuota = 75,
    HungUp = 129,
    Interrupted = 130,
    Terminated = 143,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit as u8)
    }
}

/// The reason why an argument cannot be used. clap prints it behind the argument.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadArgument {
    #[error("{0:?} is no time; write it like 500ms, 90s, 10m or 2h")]
    Duration(String),
    #[error("{0:?} is no time; try 2h, 14:30, 2026-11-16 or 2026-11-16T14:30")]
    Time(String),
    #[error("{0:?} is no amount; it is a number, 0 or more")]
    Amount(String),
    #[error("{0}, exited")]
    Goal(UnknownWord),
    #[error("write it like 127.0.0.1:9889, or `off`")]
    Address,
    #[error("a variable is written NAME=VALUE")]
    Variable,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// A problem that this program found, or that the daemon reports.
    #[error("{}", .0.detail)]
    Refused(Problem),
    #[error(transparent)]
    Paths(#[from] PathsError),
    #[error(transparent)]
    Keeper(#[from] KeeperError),
    #[error(transparent)]
    Serve(#[from] ServeFailure),
    #[error(transparent)]
    Lock(#[from] LockError),
    #[error("lost the connection to the daemon: {0}")]
    Lost(String),
    #[error("the daemon answered something this posse does not understand: {0}")]
    Nonsense(String),
    #[error("the daemon was stopped")]
    Stopped,
    #[error("the window was closed")]
    HungUp,
    #[error("interrupted")]
    Interrupted,
    #[error("terminated")]
    Terminated,
    #[error("{what}: {error}")]
    Io { what: String, error: io::Error },
}

impl Error {
    pub(crate) fn new(kind: ProblemKind, message: impl Into<String>) -> Self {
        Error::Refused(Problem { kind, detail: message.into(), hint: None })
    }

    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self::new(ProblemKind::Failed, message)
    }

    /// The command line asks for something that cannot be.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(ProblemKind::Usage, message)
    }

    pub(crate) fn no_terminal(name: &str) -> Self {
        let message = format!("there is no terminal called {name:?}");
        Self::new(ProblemKind::NoTerminal, message).with_hint("`posse ls` shows those there are")
    }

    /// Adds what to do next.
    #[must_use]
    pub(crate) fn with_hint(self, text: impl Into<String>) -> Self {
        match self {
            Error::Refused(problem) => Error::Refused(Problem { hint: Some(text.into()), ..problem }),
            other => other,
        }
    }

    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |error| Error::Io { what, error }
    }

    pub(crate) fn exit(&self) -> Exit {
        match self.kind() {
            ProblemKind::Usage
            | ProblemKind::Ambiguous
            | ProblemKind::BadId
            | ProblemKind::BadName
            | ProblemKind::BadSize
            | ProblemKind::Malformed
            | ProblemKind::Invalid
            | ProblemKind::NoDirectory
            | ProblemKind::NoFile
            | ProblemKind::NoTask => Exit::Usage,
            ProblemKind::InvalidPlan => Exit::Invalid,
            ProblemKind::Running | ProblemKind::Locked => Exit::Locked,
            ProblemKind::NoProgram | ProblemKind::NoTmux => Exit::Missing,
            ProblemKind::Nonsense => Exit::Bug,
            ProblemKind::HungUp => Exit::HungUp,
            ProblemKind::Interrupted => Exit::Interrupted,
            ProblemKind::Terminated => Exit::Terminated,
            _ => Exit::Failed,
        }
    }

    /// Returns what to do next.
    pub(crate) fn hint(&self) -> Option<String> {
        match self {
            Error::Refused(problem) => problem.hint.clone(),
            Error::Lost(_) | Error::Stopped => Some("`posse ls` starts it again; terminals go on without it".into()),
            Error::Nonsense(_) => Some("`posse stop` and try again; if it stays, this is a bug worth reporting".into()),
            _ => None,
        }
    }

    /// A stable word for programs.
    pub(crate) fn kind(&self) -> ProblemKind {
        match self {
            Error::Refused(problem) => problem.kind,
            Error::Paths(_) => ProblemKind::Paths,
            Error::Keeper(_) => ProblemKind::Keeper,
            Error::Serve(ServeFailure::Lock(LockError::Held(_))) | Error::Lock(LockError::Held(_)) => {
                ProblemKind::Locked
            }
            Error::Serve(_) => ProblemKind::Serve,
            Error::Lost(_) => ProblemKind::LostConnection,
            Error::Nonsense(_) => ProblemKind::Nonsense,
            Error::Stopped => ProblemKind::Stopped,
            Error::HungUp => ProblemKind::HungUp,
            Error::Interrupted => ProblemKind::Interrupted,
            Error::Terminated => ProblemKind::Terminated,
            Error::Lock(LockError::Io { .. }) | Error::Io { .. } => ProblemKind::Io,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use posse_testkit::docs;

    /// The codes there are, read off the type itself.
    fn codes() -> BTreeSet<u8> {
        let source = include_str!("error.rs");
        let (_, rest) = source.split_once("enum Exit {\n").unwrap();
        let variants = rest.split_once("\n}").unwrap().0.lines().filter(|line| !line.trim().starts_with("//"));
        variants.map(|line| line.split_once(" = ").unwrap().1.trim_end_matches(',').parse().unwrap()).collect()
    }

    #[test]
    fn every_exit_code_is_documented_and_no_other() {
        let text = docs::text("docs/reference/exit-codes.md");
        let rows = text.lines().filter_map(|line| line.strip_prefix("| ")?.split_once(" |"));
        let documented: BTreeSet<u8> = rows.filter_map(|(code, _)| code.parse().ok()).collect();
        assert_eq!(documented, codes());
    }

    #[test]
    fn the_help_lists_every_exit_code() {
        let (_, help) = crate::cmd::AFTER_HELP.split_once("Exit codes:").unwrap();
        let numbers = help.split(|c: char| !c.is_ascii_digit()).filter_map(|word| word.parse::<u8>().ok());
        let listed: BTreeSet<u8> = numbers.collect();
        // A range is written by its ends.
        let missing: Vec<u8> = codes().difference(&listed).copied().filter(|code| !(2..=5).contains(code)).collect();
        assert!(missing.is_empty(), "{missing:?} is not in {help}");
        assert!(listed.is_subset(&codes()), "{listed:?}");
    }
}

//! Which tmux server the terminals in tmux live on: ours, or one of the user's.
//!
//! Whoever runs the command says so, with the `TMUX_TMPDIR` of their own shell: the daemon's decides nothing. It is
//! written down with every terminal that is started in tmux, so that a daemon after this one finds them again.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The setting that is remembered.
pub(crate) const SETTING: &str = "tmux_server";

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum TmuxServer {
    /// One of our own, which nobody's configuration reaches.
    #[default]
    Private,
    /// The user's, which must be running.
    User {
        /// As in `tmux -L`; the usual one is called `default`.
        name: String,
        /// The `TMUX_TMPDIR` of whoever said so.
        #[schema(value_type = Option<String>)]
        directory: Option<PathBuf>,
    },
}

#[derive(Debug, thiserror::Error)]
#[error("{0:?} is no name of a tmux server: write it as in `tmux -L`, without slashes")]
pub struct BadTmuxServer(String);

impl TmuxServer {
    /// What somebody wrote, in a shell with this `TMUX_TMPDIR`.
    pub fn parse(text: &str, directory: Option<PathBuf>) -> Result<Self, BadTmuxServer> {
        match text {
            "private" => Ok(Self::Private),
            name => {
                let directory = directory.filter(|directory| !directory.as_os_str().is_empty());
                Self::User { name: name.to_owned(), directory }.checked()
            }
        }
    }

    /// What came from outside, if it can be one.
    pub(crate) fn checked(self) -> Result<Self, BadTmuxServer> {
        match &self {
            Self::User { name, .. } if name.is_empty() || name.starts_with('.') || name.contains(['/', '\0']) => {
                Err(BadTmuxServer(name.clone()))
            }
            _ => Ok(self),
        }
    }
}

impl fmt::Display for TmuxServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Private => "private",
            Self::User { name, .. } => name,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_known_by_its_name_and_where_the_shell_looks_for_it() {
        let user = |name: &str, directory: Option<&str>| TmuxServer::User {
            name: name.into(),
            directory: directory.map(Into::into),
        };
        let parse = |text, directory: &str| TmuxServer::parse(text, Some(directory.into())).ok();
        assert_eq!(parse("private", "/run/user/1"), Some(TmuxServer::Private));
        assert_eq!(parse("default", ""), Some(user("default", None)));
        assert_eq!(parse("work", "/run/user/1"), Some(user("work", Some("/run/user/1"))));
        for wrong in ["", "..", "a/b", "/tmp/tmux-0/default", "a\0"] {
            assert_eq!(parse(wrong, ""), None, "{wrong:?}");
        }
    }
}

//! The configuration of posse: one declaration of keys, one way to merge their sources, one kind of error.
//!
//! A value comes from a command line option, else from the environment, else from the project's file (plans) or the run's JSON
//! file (loop), else from the user's config.toml, else it is the default. Every value keeps its origin. What a project's file
//! may set is a property of the key ([`keys::ProjectRule`]): agents can write that file, so it may only narrow what they may
//! do.

pub mod keys;
mod kind;
mod layer;
mod show;
mod tree;

pub use keys::{ConfigKey, KEYS};
pub(crate) use keys::{LONG, NUMBER, POSITIVE};
pub use kind::ValueKind;
pub use layer::{ConfigFormat, ConfigLayer, LayerSource, Setting, ValueOrigin, resolve, tree_of};
#[cfg(test)]
pub(crate) use show::check_reference;
pub use show::{project_template, shown_duration, shown_value, user_template};

pub(crate) use tree::{Typed, typed};

use crate::file_problem::{ExcerptLook, FileProblems};

/// The reason a configuration cannot be loaded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// A file with errors, and its text for excerpts.
    #[error("{problems}")]
    File { problems: FileProblems, text: String },
    /// An error in a variable or an option.
    #[error("{message}{}", .hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default())]
    Value { message: String, hint: Option<String> },
}

impl ConfigError {
    /// Returns the full error, with an excerpt if it is in a file.
    pub fn report(&self) -> String {
        match self {
            Self::File { problems, text } => {
                let excerpts = problems.errors(text, ExcerptLook::PLAIN);
                format!("{} cannot be used\n{}", problems.file, excerpts.trim_end())
            }
            Self::Value { .. } => self.to_string(),
        }
    }
}

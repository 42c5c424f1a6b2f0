//! What can be wrong with a configuration. Every message names the culprit.

use std::fmt;

use crate::nearest::nearest;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    #[error("the configuration is not valid JSON: {what}, at line {line}, column {column}")]
    Json { what: String, line: usize, column: usize },
    #[error("the configuration must be a JSON object, and it is {0}")]
    NotAnObject(&'static str),
    /// All of them, sorted.
    #[error("unknown {}: {}", if .0.len() == 1 { "key" } else { "keys" }, listed(.0))]
    Unknown(Vec<UnknownName>),
    #[error("unknown {} under `agents`: {}; the roles are {}", if .unknown.len() == 1 { "role" } else { "roles" }, listed(.unknown), .known.join(", "))]
    Roles { unknown: Vec<UnknownName>, known: Vec<String> },
    #[error("{place}: {wrong}")]
    Value { place: Place, wrong: Wrong },
    /// Cannot happen: every key was checked before.
    #[error("the configuration does not fit together: {0}")]
    Inconsistent(String),
}

/// Where a value stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    Json(String),
    Variable(String),
    User(String),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Json(path) => write!(f, "`{path}`"),
            Place::Variable(name) => write!(f, "the variable {name}"),
            Place::User(key) => write!(f, "`{key}` in your config.toml"),
        }
    }
}

/// What is wrong with a value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Wrong {
    #[error("it must be {wanted}, and it is {found}")]
    Type { wanted: &'static str, found: &'static str },
    #[error("{0:?} is not a whole number")]
    Number(String),
    #[error("{0:?} is not a boolean; use {words}", words = crate::variables::BOOLEAN_WORDS)]
    Boolean(String),
    #[error("{found} is out of range: {}", range(*.min, *.max))]
    Range { min: u32, max: Option<u32>, found: i64 },
    #[error("there is no provider {name:?}; there are {}", .known.join(", "))]
    Provider { name: String, known: Vec<String> },
    #[error("there is no role {name:?}; the roles are {}", .known.join(", "))]
    Role { name: String, known: Vec<String> },
    #[error("there is no mode {name:?}; the modes are {}", .known.join(", "))]
    Mode { name: String, known: Vec<String> },
}

fn range(min: u32, max: Option<u32>) -> String {
    max.map_or_else(|| format!("at least {min}"), |max| format!("{min} to {max}"))
}

/// A name nobody knows, and one that may have been meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownName {
    pub name: String,
    pub meant: Option<String>,
}

impl UnknownName {
    pub(super) fn among<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Self {
        Self { name: name.to_owned(), meant: nearest(name, known).map(str::to_owned) }
    }
}

fn listed(names: &[UnknownName]) -> String {
    let one = |unknown: &UnknownName| match &unknown.meant {
        Some(meant) => format!("`{}` (did you mean `{meant}`?)", unknown.name),
        None => format!("`{}`", unknown.name),
    };
    names.iter().map(one).collect::<Vec<_>>().join(", ")
}

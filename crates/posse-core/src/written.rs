//! Values in manifests that are checked and prepared while they are read.

use std::ops::Deref;
use std::time::Duration;

use regex::Regex;
use serde::{Deserialize, Deserializer};

/// A regular expression.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "String")]
pub struct Expression(Regex);

impl TryFrom<String> for Expression {
    type Error = regex::Error;
    fn try_from(pattern: String) -> Result<Self, Self::Error> {
        Regex::new(&pattern).map(Self)
    }
}

impl Deref for Expression {
    type Target = Regex;
    fn deref(&self) -> &Regex {
        &self.0
    }
}

/// Compiles a constant regular expression. A test compiles each of them.
pub(crate) fn constant(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the pattern of a constant is valid")
}

/// Reads a number of milliseconds.
pub(crate) fn milliseconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    u64::deserialize(deserializer).map(Duration::from_millis)
}

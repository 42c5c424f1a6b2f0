//! What is wrong with a plan file, in words and with the place, so that it can be mended without looking for it.

use std::fmt;

use serde::Serialize;

use super::Place;

/// One thing wrong with a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    pub at: Place,
    pub message: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Other places that belong to it, each with a word on why: the first of two equal ids, for example.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<(Place, String)>,
}

/// Odd, but no reason not to run the plan. It looks the same.
pub type Warning = Problem;

impl Problem {
    pub fn new(at: Place, message: impl Into<String>) -> Self {
        Self { at, message: message.into(), hint: None, also: Vec::new() }
    }

    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    #[must_use]
    pub fn also(mut self, at: Place, why: impl Into<String>) -> Self {
        self.also.push((at, why.into()));
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.at, self.message)?;
        for (at, why) in &self.also {
            write!(f, "; {why} at {at}")?;
        }
        match &self.hint {
            Some(hint) => write!(f, " ({hint})"),
            None => Ok(()),
        }
    }
}

/// Why a text is not a plan. There is at least one problem; all that could be found are listed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
pub struct PlanProblems {
    /// The name of the file, as the reader was told.
    pub file: String,
    pub problems: Vec<Problem>,
    pub warnings: Vec<Warning>,
}

impl fmt::Display for PlanProblems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, problem) in self.problems.iter().enumerate() {
            if i > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{}:{problem}", self.file)?;
        }
        Ok(())
    }
}

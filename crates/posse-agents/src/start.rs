//! Startup dialogs, and the ones posse answers. posse answers only what the operator has confirmed, and never an
//! unknown dialog.

use std::time::Duration;

use posse_core::detect::Dialog;
use serde::{Deserialize, Serialize};

use crate::launch::Mode;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum If {
    Trusted,
    Bypass,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StartAnswer {
    /// The beginning of the label to choose. It also identifies the dialog.
    pub choose: String,
    #[serde(rename = "if")]
    pub condition: If,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Start {
    pub timeout_ms: u64,
    /// A variable that overrides the timeout, in seconds. An invalid number is ignored.
    pub timeout_variable: Option<String>,
    /// Variables that name the agent's home, for agents that create databases at their first start. Two first starts at
    /// once would fail, so the first start in a home runs alone.
    #[serde(default)]
    pub first_alone: Vec<String>,
    #[serde(default, rename = "answer")]
    pub answers: Vec<StartAnswer>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confirmed {
    pub trusted: bool,
    pub mode: Mode,
}

impl Start {
    pub fn timeout(&self, variable: impl Fn(&str) -> Option<String>) -> Duration {
        let said = self.timeout_variable.as_deref().and_then(variable).and_then(|text| text.trim().parse().ok());
        said.map_or(Duration::from_millis(self.timeout_ms), Duration::from_secs)
    }

    /// Returns the option of this dialog to choose, if it is to be answered.
    pub fn answer(&self, dialog: &Dialog, confirmed: Confirmed) -> Option<usize> {
        self.answers.iter().find_map(|answer| {
            let allowed = match answer.condition {
                If::Trusted => confirmed.trusted,
                If::Bypass => confirmed.mode == Mode::Bypass,
            };
            let option = dialog.options.iter().position(|option| option.label.starts_with(&answer.choose));
            option.filter(|_| allowed)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S-87.
    #[test]
    fn a_malformed_timeout_is_the_usual_one() {
        let codex = crate::manifest::built_in("codex").unwrap().unwrap();
        let start = codex.manifest.start.unwrap();
        let timeout = |text: Option<&str>| {
            start
                .timeout(|name| (name == "POSSE_CODEX_INIT_TIMEOUT_SECONDS").then(|| text.map(str::to_owned)).flatten())
        };
        for (text, seconds) in [(None, 180), (Some("abc"), 180), (Some(""), 180), (Some("-1"), 180), (Some(" 20 "), 20)]
        {
            assert_eq!(timeout(text), Duration::from_secs(seconds), "{text:?}");
        }
    }
}

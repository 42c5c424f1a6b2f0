//! Whether sessions are confined at all: one switch, from four places.

use posse_core::variables::{BOOLEAN_WORDS, boolean};
use serde::{Deserialize, Serialize};

/// Whether sessions are confined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sandbox {
    #[default]
    On,
    /// They may do everything, and are never asked. Whoever starts sessions like that says so, loudly.
    Off,
}

/// The boolean variable that turns the sandbox on or off.
pub const VARIABLE: &str = "POSSE_SANDBOX";
/// The variable of the original tool, with its meaning there: anything but `false` means on.
pub const LEGACY_VARIABLE: &str = "ORCHESTRATOR_SANDBOX_ENABLED";

/// What was said about it, and where.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Switches<'a> {
    /// `--no-sandbox`
    pub no_sandbox: bool,
    /// [`VARIABLE`]
    pub variable: Option<&'a str>,
    /// [`LEGACY_VARIABLE`]
    pub legacy_variable: Option<&'a str>,
    /// `sandbox.enabled`
    pub config: Option<bool>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the variable {VARIABLE}: {0:?} is not a boolean; use {BOOLEAN_WORDS}")]
pub struct BadSwitch(String);

/// Returns a warning if the value of [`LEGACY_VARIABLE`] reads like "off" or like nothing, and means on all the same.
pub fn legacy_warning(value: &str) -> Option<String> {
    let off = value.eq_ignore_ascii_case("false");
    let plain = off || value.is_empty() || boolean(value) == Some(true);
    (!plain).then(|| {
        format!("{LEGACY_VARIABLE} is {value:?}, which leaves the sandbox on: only false turns it off; {VARIABLE} accepts {BOOLEAN_WORDS}")
    })
}

impl Sandbox {
    /// The command line before the environment, before the configuration. On, if nobody said anything.
    pub fn decide(switches: &Switches<'_>) -> Result<Self, BadSwitch> {
        let from_variable = match switches.variable.map(str::trim).filter(|value| !value.is_empty()) {
            None => None,
            Some(value) => Some(Self::from_enabled(boolean(value).ok_or_else(|| BadSwitch(value.into()))?)),
        };
        let from_legacy =
            switches.legacy_variable.map(|value| Self::from_enabled(!value.eq_ignore_ascii_case("false")));
        let from_config = switches.config.map(Self::from_enabled);
        let by_hand = switches.no_sandbox.then_some(Sandbox::Off);
        Ok(by_hand.or(from_variable).or(from_legacy).or(from_config).unwrap_or_default())
    }

    fn from_enabled(enabled: bool) -> Self {
        if enabled { Sandbox::On } else { Sandbox::Off }
    }
}

#[cfg(test)]
mod tests {
    use super::Sandbox::{Off, On};
    use super::*;

    /// T04 and the order of the four.
    #[test]
    fn who_is_heard() {
        let legacy = |value| Switches { legacy_variable: Some(value), ..Switches::default() };
        let variable = |value| Switches { variable: Some(value), ..Switches::default() };
        for (switches, expected) in [
            (Switches::default(), On),
            (legacy("FALSE"), Off),
            (legacy("false"), Off),
            (legacy("0"), On),
            (legacy(""), On),
            (variable("off"), Off),
            (variable("0"), Off),
            (variable("False"), Off),
            (variable("no"), Off),
            (variable(" ON "), On),
            (variable("1"), On),
            (variable("true"), On),
            (variable("yes"), On),
            (variable(""), On),
            (Switches { config: Some(false), ..Switches::default() }, Off),
            (Switches { config: Some(false), ..variable("on") }, On),
            (Switches { config: Some(false), ..legacy("true") }, On),
            (Switches { legacy_variable: Some("false"), ..variable("on") }, On),
            (Switches { no_sandbox: true, config: Some(true), ..variable("on") }, Off),
        ] {
            assert_eq!(Sandbox::decide(&switches), Ok(expected), "{switches:?}");
        }
        for (value, warned) in [("false", false), ("true", false), ("1", false), ("", false), ("0", true), ("x", true)]
        {
            assert_eq!(legacy_warning(value).is_some(), warned, "{value:?}");
        }
        let error = Sandbox::decide(&variable("maybe")).unwrap_err().to_string();
        assert_eq!(
            error,
            "the variable POSSE_SANDBOX: \"maybe\" is not a boolean; use true, yes, on, 1, false, no, off or 0"
        );
    }
}

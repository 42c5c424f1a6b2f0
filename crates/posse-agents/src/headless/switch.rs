//! Whether sessions are confined at all: one switch, from four places.

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

/// The variable that says `on` or `off`.
pub const VARIABLE: &str = "POSSE_SANDBOX";
/// The variable of the original tool. Anything but `false` means on.
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
#[error("{VARIABLE} is {0:?}; it is either on or off")]
pub struct BadSwitch(String);

impl Sandbox {
    /// The command line before the environment, before the configuration. On, if nobody said anything.
    pub fn decide(switches: &Switches<'_>) -> Result<Self, BadSwitch> {
        let from_variable = match switches.variable.map(str::trim).filter(|value| !value.is_empty()) {
            None => None,
            Some(value) if value.eq_ignore_ascii_case("on") => Some(Sandbox::On),
            Some(value) if value.eq_ignore_ascii_case("off") => Some(Sandbox::Off),
            Some(value) => return Err(BadSwitch(value.into())),
        };
        let from_legacy = switches.legacy_variable.map(|value| match value.eq_ignore_ascii_case("false") {
            true => Sandbox::Off,
            false => Sandbox::On,
        });
        let from_config = switches.config.map(|enabled| if enabled { Sandbox::On } else { Sandbox::Off });
        let by_hand = switches.no_sandbox.then_some(Sandbox::Off);
        Ok(by_hand.or(from_variable).or(from_legacy).or(from_config).unwrap_or_default())
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
            (variable(" ON "), On),
            (variable(""), On),
            (Switches { config: Some(false), ..Switches::default() }, Off),
            (Switches { config: Some(false), ..variable("on") }, On),
            (Switches { config: Some(false), ..legacy("true") }, On),
            (Switches { legacy_variable: Some("false"), ..variable("on") }, On),
            (Switches { no_sandbox: true, config: Some(true), ..variable("on") }, Off),
        ] {
            assert_eq!(Sandbox::decide(&switches), Ok(expected), "{switches:?}");
        }
        assert_eq!(Sandbox::decide(&variable("maybe")), Err(BadSwitch("maybe".into())));
    }
}

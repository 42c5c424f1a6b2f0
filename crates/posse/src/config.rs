//! What the user has written down for good: `config.toml` in the configuration directory. A flag or a variable wins over
//! it. Never read from a project.

mod origins;

use std::path::{Path, PathBuf};

use posse_agents::launch::Mode;
use posse_core::nearest::nearest;
use posse_core::rounds::config::{Notifications, UserDefaults};
use posse_server::anchor::AnchorRule;
use posse_term::paths::Paths;
use posse_term::text_file;
use serde::Deserialize;

use crate::client;
use crate::error::Error;

pub(crate) use origins::{Origin, Setting, settings};

/// Every key, with a comment and what counts if nothing is said.
pub(crate) const DEFAULT: &str = include_str!("config/default.toml");

/// The same with nothing said: for people to begin with. What a later version changes then reaches them.
pub(crate) fn commented_out() -> String {
    let is_key = |line: &str| line.split_once(" = ").is_some_and(|(name, _)| !name.contains(['#', ' ']));
    let line = |line: &str| if is_key(line) { format!("# {line}\n") } else { format!("{line}\n") };
    DEFAULT.lines().map(line).collect()
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Config {
    #[serde(default)]
    permissions: Permissions,
    #[serde(default)]
    pub(crate) audit: Audit,
    #[serde(default, rename = "loop")]
    rounds: Rounds,
    notifications: Option<Notifications>,
    /// What plans go by. Read, with its mistakes, where plans are (`posse_core::plan::config`).
    #[serde(rename = "plans")]
    _plans: Option<toml::Table>,
}

#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Permissions {
    /// A run answers what its agents ask with yes.
    auto_accept: Option<bool>,
    /// Read by the daemon itself (`posse_server::operator`).
    #[serde(rename = "answers_from_terminals")]
    _answers_from_terminals: Option<bool>,
}

#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Audit {
    pub(crate) anchor: Option<AnchorRule>,
}

#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rounds {
    /// The agent of every role.
    provider: Option<String>,
    /// What agents may do without asking.
    mode: Option<Mode>,
}

impl Config {
    /// What is written there; nothing, if there is no file.
    pub(crate) fn load() -> Result<Self, Error> {
        let path = Self::path(&client::paths()?);
        match Self::read(&path)? {
            Some(text) => Self::parse(&text).map_err(|error| Error::Usage(format!("{}: {error}", path.display()))),
            None => Ok(Self::default()),
        }
    }

    pub(crate) fn path(paths: &Paths) -> PathBuf {
        paths.config.join("config.toml")
    }

    /// The file as it is, if there is one.
    pub(crate) fn read(path: &Path) -> Result<Option<String>, Error> {
        match text_file::read(path) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::Usage(format!("cannot read {}: {error}", path.display()))),
        }
    }

    fn parse(text: &str) -> Result<Self, String> {
        toml::from_str(text).map_err(|error| {
            let meant = meant(error.message()).map(|name| format!("\ndid you mean `{name}`?"));
            format!("{}{}", error.to_string().trim_end(), meant.unwrap_or_default())
        })
    }

    /// What runs of the loop start from.
    pub(crate) fn for_runs(&self) -> UserDefaults {
        UserDefaults {
            auto_accept_permissions: self.permissions.auto_accept,
            notifications: self.notifications.clone(),
            mode: self.rounds.mode.map(|mode| mode.to_string()),
            provider: self.rounds.provider.clone(),
        }
    }
}

/// The name that was meant, if the message is about an unknown one: serde puts that one into backticks first, and then
/// those it knows.
fn meant(message: &str) -> Option<&str> {
    let mut names = message.strip_prefix("unknown ")?.split('`').skip(1).step_by(2);
    let unknown = names.next()?;
    nearest(unknown, names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_can_be_written_down() {
        let empty = Config::parse("").unwrap();
        assert_eq!(empty.for_runs(), UserDefaults::default(), "what is not written there is not said");

        let text = "
            [permissions]
            auto_accept = true
            [loop]
            provider = 'claude_code'
            mode = 'ask'
            [notifications]
            ntfy_topic = 'my-topic'
            command = ['notify-send', 'posse']
        ";
        let expected = UserDefaults {
            auto_accept_permissions: Some(true),
            notifications: Some(Notifications {
                ntfy_topic: "my-topic".into(),
                command: vec!["notify-send".into(), "posse".into()],
                ..Notifications::default()
            }),
            mode: Some("ask".into()),
            provider: Some("claude_code".into()),
        };
        assert_eq!(Config::parse(text).unwrap().for_runs(), expected);
        let text = "notifications = { ntfy_url = 'https://ntfy.example.org', webhook = 'https://example.org/hook' }";
        let notifications = Config::parse(text).unwrap().for_runs().notifications.unwrap();
        assert_eq!(notifications.ntfy_url, "https://ntfy.example.org");
        assert_eq!(notifications.webhook, "https://example.org/hook");
    }

    #[test]
    fn what_is_written_for_people_says_nothing_yet() {
        let text = commented_out();
        assert_eq!(Config::parse(&text).unwrap().for_runs().notifications, Some(Notifications::default()));
        let without = Config { notifications: None, _plans: None, ..Config::parse(&text).unwrap() };
        assert_eq!(without, Config::default());
        assert!(text.contains("\n# auto_accept = false\n") && text.contains("\n[loop]\n"), "{text}");
    }

    #[test]
    fn the_documentation_has_the_default_file_as_it_is() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/configuration.md");
        let text = std::fs::read_to_string(path).unwrap();
        assert!(
            text.contains(&format!("```toml\n{DEFAULT}```\n")),
            "copy crates/posse/src/config/default.toml into it"
        );
    }

    #[test]
    fn a_misspelt_key_is_an_error() {
        for (text, words) in [
            ("[permision]", "`permision`, expected one of"),
            ("[permision]", "did you mean `permissions`?"),
            ("[permissions]\nautoaccept = true", "line 2"),
            ("[permissions]\nautoaccept = true", "did you mean `auto_accept`?"),
            ("[permissions]\nauto_accept = 'yes'", "expected a boolean"),
            ("[loop]\nmdoe = 'ask'", "did you mean `mode`?"),
            ("[loop]\nmode = 'bypas'", "did you mean `bypass`?"),
            ("[notifications]\nntfy_topics = 'x'", "did you mean `ntfy_topic`?"),
            ("[notifications]\ncommand = 'notify-send'", "expected a sequence"),
        ] {
            let error = Config::parse(text).unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
        }
        assert!(!Config::parse("colour = 1").unwrap_err().contains("did you mean"));
    }
}

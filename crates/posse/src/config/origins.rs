//! Which values count, and where each comes from: a variable, a line of the file, or nobody said anything. A flag of a
//! command wins over all of them, and is not known here.

use posse_core::rounds::config::{self, Origin as Layer, Resolved};
use serde::Serialize;
use serde_json::Value;
use toml::de::{DeTable, DeValue};

use super::{Config, DEFAULT};
use crate::error::Error;

/// One value that counts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Setting {
    pub(crate) key: String,
    pub(crate) value: Value,
    pub(crate) origin: Origin,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Origin {
    Variable(String),
    /// A line of config.toml.
    Line(usize),
    Default,
}

/// A key of config.toml.
struct Key {
    path: &'static str,
    rule: Rule,
}

/// What else has a say in it.
enum Rule {
    /// It is a key of runs, under this path, with all that counts there.
    Run(&'static str),
    /// Nothing: a request or a variable cannot change it.
    FileOnly,
}

const KEYS: &[Key] = &[
    Key { path: "permissions.auto_accept", rule: Rule::Run("handoff.auto_accept_permissions") },
    Key { path: "permissions.answers_from_terminals", rule: Rule::FileOnly },
    Key { path: "audit.anchor", rule: Rule::FileOnly },
    Key { path: "loop.provider", rule: Rule::Run("provider") },
    Key { path: "loop.mode", rule: Rule::Run("mode") },
    Key { path: "notifications.ntfy_topic", rule: Rule::Run("notifications.ntfy_topic") },
    Key { path: "notifications.ntfy_url", rule: Rule::Run("notifications.ntfy_url") },
    Key { path: "notifications.webhook", rule: Rule::Run("notifications.webhook") },
    Key { path: "notifications.command", rule: Rule::Run("notifications.command") },
];

/// All values, in the order of the default file. `text` is the user's file, empty if there is none.
pub(crate) fn settings(
    text: &str,
    variable: &dyn Fn(&str) -> Option<String>,
    providers: &[&str],
) -> Result<Vec<Setting>, Error> {
    let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
    let config = Config::parse(text).map_err(|error| Error::Usage(format!("config.toml: {error}")))?;
    let runs = Resolved::new(None, &variable, &config.for_runs(), providers)
        .map_err(|error| Error::Usage(error.to_string()))?;
    let run_values = serde_json::to_value(&runs.config).unwrap_or_default();
    let (file, defaults) = (Written::new(text), Written::new(DEFAULT));
    let setting = |key: &Key| {
        let of_file = || match file.line(key.path) {
            Some(line) => (file.value(key.path), Origin::Line(line)),
            None => (defaults.value(key.path), Origin::Default),
        };
        let (value, origin) = match key.rule {
            Rule::FileOnly => of_file(),
            Rule::Run(path) => match (runs.origins.get(path), config::variable_of(path)) {
                (Some(Layer::Environment), Some(bare)) => {
                    let prefixed = format!("POSSE_{bare}");
                    let name = if variable(&prefixed).is_some() { prefixed } else { bare.to_owned() };
                    (at(&run_values, path).cloned().unwrap_or_default(), Origin::Variable(name))
                }
                _ => of_file(),
            },
        };
        Setting { key: key.path.to_owned(), value, origin }
    };
    let mut settings: Vec<Setting> = KEYS.iter().map(setting).collect();
    // What counts in a project also depends on the project's own file: `posse plan config` has that.
    let mut plans = Vec::new();
    leaves("plans", &file.value("plans"), &mut plans);
    settings.extend(plans.into_iter().map(|(key, value)| {
        let origin = file.line(&key).map_or(Origin::Default, Origin::Line);
        Setting { key, value, origin }
    }));
    Ok(settings)
}

fn at<'v>(value: &'v Value, path: &str) -> Option<&'v Value> {
    path.split('.').try_fold(value, |value, name| value.get(name))
}

/// Every key with its value, by its full path.
fn leaves(path: &str, value: &Value, into: &mut Vec<(String, Value)>) {
    match value {
        Value::Object(table) => {
            for (name, value) in table {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                leaves(&path, value, into);
            }
        }
        Value::Null => {}
        value => into.push((path.to_owned(), value.clone())),
    }
}

/// A file of this kind, which is known to be sound.
struct Written<'t> {
    text: &'t str,
    values: Value,
}

impl<'t> Written<'t> {
    fn new(text: &'t str) -> Self {
        Self { text, values: toml::from_str(text).unwrap_or_default() }
    }

    fn value(&self, path: &str) -> Value {
        at(&self.values, path).cloned().unwrap_or_default()
    }

    /// On which line it stands, counted from 1.
    fn line(&self, path: &str) -> Option<usize> {
        let document = DeTable::parse(self.text).ok()?;
        let mut table = document.get_ref();
        let mut names = path.split('.').peekable();
        loop {
            let (key, value) = table.get_key_value(names.next()?)?;
            match (names.peek(), value.get_ref()) {
                (None, _) => return Some(self.text[..key.span().start].matches('\n').count() + 1),
                (Some(_), DeValue::Table(inner)) => table = inner,
                _ => return None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::json;

    use super::*;

    const PROVIDERS: [&str; 2] = ["claude_code", "codex"];

    fn all(text: &str, variables: &[(&str, &str)]) -> Result<Vec<Setting>, Error> {
        let variable = |name: &str| variables.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned());
        settings(text, &variable, &PROVIDERS)
    }

    fn one(text: &str, variables: &[(&str, &str)], key: &str) -> (Value, Origin) {
        let setting = all(text, variables).unwrap().into_iter().find(|setting| setting.key == key).unwrap();
        (setting.value, setting.origin)
    }

    #[test]
    fn the_default_file_says_what_counts_without_a_file() {
        let mut written = Vec::new();
        leaves("", &toml::from_str(DEFAULT).unwrap(), &mut written);
        let keys: BTreeSet<&str> = written.iter().map(|(path, _)| path.as_str()).collect();
        assert_eq!(keys, KEYS.iter().map(|key| key.path).collect::<BTreeSet<_>>(), "the same keys here and there");
        for setting in all("", &[]).unwrap() {
            assert_eq!(setting.origin, Origin::Default, "{}", setting.key);
        }
        // Not what the file claims, but what the program does.
        let usual = serde_json::to_value(posse_core::rounds::config::Config::default()).unwrap();
        for key in KEYS {
            let (_, value) = written.iter().find(|(path, _)| path == key.path).unwrap();
            let truth = match key.rule {
                Rule::Run(path) => at(&usual, path).unwrap().clone(),
                Rule::FileOnly if key.path == "audit.anchor" => json!(""),
                Rule::FileOnly => json!(false),
            };
            assert_eq!(*value, truth, "{}", key.path);
        }
    }

    #[test]
    fn a_variable_wins_over_the_file_and_the_file_over_the_default() {
        let text = "# mine\n\n[permissions]\nauto_accept = true\n[loop]\nmode = 'ask'\n";
        let variable = |name: &str| Origin::Variable(name.to_owned());
        for (variables, key, expected) in [
            (&[][..], "permissions.auto_accept", (json!(true), Origin::Line(4))),
            (&[("AUTO_ACCEPT_PERMISSIONS", "")], "permissions.auto_accept", (json!(true), Origin::Line(4))),
            (&[], "audit.anchor", (json!(""), Origin::Default)),
            (
                &[("AUTO_ACCEPT_PERMISSIONS", "0")],
                "permissions.auto_accept",
                (json!(false), variable("AUTO_ACCEPT_PERMISSIONS")),
            ),
            (&[("PROVIDER", "claude_code")], "loop.provider", (json!("claude_code"), variable("PROVIDER"))),
            (
                &[("PROVIDER", "claude_code"), ("POSSE_PROVIDER", "codex")],
                "loop.provider",
                (json!("codex"), variable("POSSE_PROVIDER")),
            ),
            (&[("MODE", "bypass")], "loop.mode", (json!("ask"), Origin::Line(6))),
            (&[("WEBHOOK", "http://x")], "notifications.webhook", (json!("http://x"), variable("WEBHOOK"))),
        ] {
            assert_eq!(one(text, variables, key), expected, "{key} with {variables:?}");
        }
        let inline = "\nnotifications = { ntfy_topic = 'mine' }";
        assert_eq!(one(inline, &[], "notifications.ntfy_topic"), (json!("mine"), Origin::Line(2)));
        let plans = "[plans]\ntest_command = 'make'\n[plans.budget]\nwindow = '7d'\n";
        assert_eq!(one(plans, &[], "plans.test_command"), (json!("make"), Origin::Line(2)));
        assert_eq!(one(plans, &[], "plans.budget.window"), (json!("7d"), Origin::Line(4)));
        // Said, even if it is the default.
        assert_eq!(one("[notifications]\nwebhook = ''", &[], "notifications.webhook"), (json!(""), Origin::Line(2)));
    }

    #[test]
    fn what_is_wrong_is_an_error() {
        for (text, variables, words) in [
            ("[permision]", &[][..], "did you mean `permissions`?"),
            ("", &[("PROVIDER", "codxe")], "codxe"),
            ("[loop]\nprovider = 'nobody'", &[], "nobody"),
        ] {
            let error = all(text, variables).unwrap_err().to_string();
            assert!(error.contains(words), "{text} {variables:?}: {error}");
        }
    }
}

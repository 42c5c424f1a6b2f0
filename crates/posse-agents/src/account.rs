//! Detects an account with an agent. Credentials are never read; only the existence of a file or a variable is checked.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The places where an agent stores its account, as written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Account {
    /// A file that exists if the user is signed in: `{NAME}` stands for a variable. Of several the first that can be
    /// filled in counts.
    #[serde(default)]
    pub files: Vec<String>,
    #[serde(default)]
    pub variables: Vec<String>,
    pub sign_in: String,
}

/// The evidence of an account. Only the agent knows whether the account is still valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sign {
    File(PathBuf),
    Variable(String),
}

impl Account {
    /// Returns the first evidence found. `variable` returns environment variables, `is_there` checks for a file.
    pub fn sign(
        &self,
        variable: impl Fn(&str) -> Option<String>,
        is_there: impl FnOnce(&Path) -> bool,
    ) -> Option<Sign> {
        let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
        let file = self.files.iter().find_map(|pattern| fill(pattern, |name| variable(name).map(Into::into)));
        if let Some(file) = file.filter(|file| is_there(file)) {
            return Some(Sign::File(file));
        }
        let set = self.variables.iter().find(|name| variable(name).is_some())?;
        Some(Sign::Variable(set.clone()))
    }
}

/// Fills in a path: `{NAME}` is replaced by the result of `variable`. Returns `None` if a value is missing.
pub fn fill(pattern: &str, variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let mut filled = OsString::new();
    let mut rest = pattern;
    while let Some((before, after)) = rest.split_once('{') {
        let (name, after) = after.split_once('}')?;
        filled.push(before);
        filled.push(variable(name)?);
        rest = after;
    }
    filled.push(rest);
    Some(filled.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_or_a_variable_is_a_sign() {
        let account = Account {
            files: vec!["{TOOL_HOME}/auth".into(), "{HOME}/.tool/auth".into()],
            variables: vec!["TOOL_KEY".into()],
            sign_in: "tool login".into(),
        };
        let file = |path: &str| Some(Sign::File(path.into()));
        let key = Some(Sign::Variable("TOOL_KEY".into()));
        for (variables, files, expected) in [
            (&[("HOME", "/h")][..], &["/h/.tool/auth"][..], file("/h/.tool/auth")),
            (&[("HOME", "/h"), ("TOOL_HOME", "/t")], &["/t/auth", "/h/.tool/auth"], file("/t/auth")),
            // Credentials in the default home do not sign in a user with another home.
            (&[("HOME", "/h"), ("TOOL_HOME", "/t")], &["/h/.tool/auth"], None),
            (&[("HOME", "/h"), ("TOOL_HOME", "")], &["/h/.tool/auth"], file("/h/.tool/auth")),
            (&[("HOME", "/h"), ("TOOL_KEY", "k")], &[], key.clone()),
            (&[("HOME", "/h"), ("TOOL_KEY", "")], &[], None),
            (&[("TOOL_KEY", "k")], &[], key),
            (&[], &["/h/.tool/auth"], None),
        ] {
            let variable =
                |name: &str| variables.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned());
            let found = account.sign(variable, |path| files.iter().any(|file| Path::new(file) == path));
            assert_eq!(found, expected, "{variables:?} {files:?}");
        }
    }

    #[test]
    fn a_path_needs_every_variable_that_it_names() {
        let variable = |name: &str| match name {
            "HOME" => Some("/home/me".into()),
            "pid" => Some("7".into()),
            _ => None,
        };
        assert_eq!(fill("{CONF}/s/{pid}.json", variable), None);
        assert_eq!(fill("{HOME}/s/{pid}.json", variable), Some("/home/me/s/7.json".into()));
        assert_eq!(fill("{HOME", variable), None);
    }
}

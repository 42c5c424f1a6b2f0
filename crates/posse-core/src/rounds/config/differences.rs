//! What somebody wants now, and what a run was begun with.

use std::fmt;

use serde_json::Value;

use super::keys::{AGENT_KEYS, KEYS};
use super::layers::AUTO_ACCEPT;
use super::{Config, Origin, Resolved};
use crate::rounds::Role;

/// Which configuration file is named now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    None,
    /// The one the run was begun with, letter for letter: it says nothing new.
    TheSame,
    Another,
}

/// A key of which a run has another value than is wanted now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    pub path: String,
    pub of_run: Value,
    pub wanted: Value,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is {} there, and not {}", self.path, self.of_run, self.wanted)
    }
}

/// They say where a run is or how it begins, or change nothing. Prompts are compared as prompts.
const OF_NO_MATTER: [&str; 8] =
    ["api", "wd", "prompt", "prompt_file", "start_agent", "resume", "state_file", "limits.poll_seconds"];

impl Resolved {
    /// What was said now and is not so in this run. What nobody has said now may be as it is.
    pub fn differences(&self, of_run: &Config, named: Named) -> Vec<Difference> {
        let tree = |config: &Config| serde_json::to_value(config).unwrap_or_default();
        let (of_run, wanted) = (tree(of_run), tree(&self.config));
        let of_agents = Role::ALL.into_iter().flat_map(|role| {
            let path = move |(name, _): &(&str, _)| format!("agents.{role}.{name}");
            AGENT_KEYS.iter().map(path)
        });
        let paths = KEYS.iter().map(|key| key.path.to_owned()).chain(of_agents);
        let mut differences: Vec<Difference> = Vec::new();
        for path in paths.filter(|path| self.is_said(path, named)) {
            // What the environment said of that was never the run's.
            let place = if path == AUTO_ACCEPT { "handoff.auto_accept_configured" } else { &path };
            let at = |tree: &Value| tree.pointer(&format!("/{}", place.replace('.', "/"))).cloned().unwrap_or_default();
            let difference = Difference { of_run: at(&of_run), wanted: at(&wanted), path: path.clone() };
            // What is said of all roles is not said again of each.
            let name = difference.path.rsplit('.').next().unwrap_or_default();
            let told = differences.iter().any(|told| {
                told.path == name && (&told.of_run, &told.wanted) == (&difference.of_run, &difference.wanted)
            });
            if difference.of_run != difference.wanted && !told {
                differences.push(difference);
            }
        }
        differences
    }

    fn is_said(&self, path: &str, named: Named) -> bool {
        let origin = self.origins.get(path).copied().unwrap_or(Origin::Default);
        let said = match origin {
            // Whoever comes back says anew whether permissions are accepted.
            Origin::Environment => path != AUTO_ACCEPT,
            // A file that leaves a key out says that it is as usual.
            Origin::Json | Origin::Default => named == Named::Another,
            Origin::User => false,
        };
        said && !OF_NO_MATTER.contains(&path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rounds::config::UserDefaults;

    fn resolved(json: Option<&str>, variables: &[(&str, &str)], user: &UserDefaults) -> Resolved {
        let variable =
            |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).into());
        Resolved::new(json, &variable, user, &["codex", "claude_code"]).unwrap()
    }

    #[test]
    fn only_what_is_said_now_can_differ() {
        const RUN: &str = r#"{"limits": {"max_rounds": 5}, "agents": {"tester": {"model": "x"}}}"#;
        let nobody = UserDefaults::default();
        let run = resolved(Some(RUN), &[], &nobody).config;
        let rounds = "`limits.max_rounds` is 5 there, and not 3";
        let usual_rounds = "`limits.max_rounds` is 5 there, and not 8";
        let model = "`agents.tester.model` is \"x\" there, and not null";
        let provider = "`provider` is \"codex\" there, and not \"claude_code\"";
        type Row<'a> = (Option<&'a str>, &'a [(&'a str, &'a str)], Named, &'a [&'a str]);
        let rows: &[Row] = &[
            (None, &[], Named::None, &[]),
            (Some(RUN), &[], Named::TheSame, &[]),
            // Written in another way, it says the same.
            (Some(RUN), &[], Named::Another, &[]),
            (
                Some(r#"{"limits": {"max_rounds": 3}, "agents": {"tester": {"model": "x"}}}"#),
                &[],
                Named::Another,
                &[rounds],
            ),
            (Some("{}"), &[], Named::Another, &[usual_rounds, model]),
            (None, &[("MAX_ROUNDS", "3")], Named::None, &[rounds]),
            (None, &[("MAX_ROUNDS", "5")], Named::None, &[]),
            (Some(RUN), &[("MAX_ROUNDS", "3")], Named::TheSame, &[rounds]),
            // Of all roles, told once; where a role is named, of that role.
            (None, &[("PROVIDER", "claude_code")], Named::None, &[provider]),
            (
                Some(r#"{"limits": {"max_rounds": 5}, "agents": {"tester": {"model": "x", "mode": "ask"}}}"#),
                &[],
                Named::Another,
                &["`agents.tester.mode` is \"edits\" there, and not \"ask\""],
            ),
            // Where it is and how it begins.
            (None, &[("WD", "/p"), ("START_AGENT", "tester"), ("RESUME", "1"), ("PROMPT", "x")], Named::None, &[]),
            // Told anew by whoever comes back; what a file says is the run's.
            (None, &[("AUTO_ACCEPT_PERMISSIONS", "1")], Named::None, &[]),
            (
                Some(
                    r#"{"limits": {"max_rounds": 5}, "agents": {"tester": {"model": "x"}}, "handoff": {"auto_accept_permissions": true}}"#,
                ),
                &[],
                Named::Another,
                &["`handoff.auto_accept_permissions` is false there, and not true"],
            ),
        ];
        for (json, variables, named, expected) in rows {
            let found = resolved(*json, variables, &nobody).differences(&run, *named);
            let found: Vec<String> = found.iter().map(ToString::to_string).collect();
            assert_eq!(found, *expected, "{json:?} {variables:?} {named:?}");
        }
        // What the environment said when it began is not what its file said.
        let accepting = resolved(Some(RUN), &[("AUTO_ACCEPT_PERMISSIONS", "1")], &nobody).config;
        assert_eq!(resolved(Some(RUN), &[], &nobody).differences(&accepting, Named::Another), []);
        // What changed in config.toml since then was not said now.
        let user = UserDefaults { provider: Some("claude_code".into()), ..UserDefaults::default() };
        assert_eq!(resolved(None, &[], &user).differences(&run, Named::None), []);
    }
}

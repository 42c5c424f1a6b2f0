//! Every key there is, what it may be, and who may say it.

use std::time::Duration;

use serde_json::{Value as Json, json};

use super::tree::{Node, Value};
use crate::file_problem::FileProblem;
use crate::nearest::nearest;
use crate::plan::{cannot_fail, duration};

/// One key.
pub struct Key {
    /// `section.name`, as it is written.
    pub path: &'static str,
    pub(super) kind: Kind,
    pub(super) who: Who,
    pub(super) both: Both,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    /// Below the project.
    Directory,
    /// The same, and not where agents may not write.
    State,
    Command,
    Switch,
    Count {
        min: u32,
    },
    Amount,
    /// Longer than nothing, unless nothing makes sense.
    Duration {
        zero: bool,
    },
    Isolation,
    Words,
    /// Agent → profile.
    Agents,
    Profiles,
}

/// Who may say it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Who {
    Anyone,
    /// It can loosen a guard.
    User,
    /// In a project only `true`.
    OnlyOn,
    /// In a project only the narrowest profile.
    OnlyNarrowest,
}

/// What holds if the user and the project both say something.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Both {
    Project,
    User,
    /// Lists and tables: all of it, and of two entries of one name the user's.
    Together,
}

const fn key(path: &'static str, kind: Kind) -> Key {
    Key { path, kind, who: Who::Anyone, both: Both::Project }
}

/// A check that the user wants cannot be taken away by a project.
const fn check(path: &'static str) -> Key {
    Key { path, kind: Kind::Command, who: Who::Anyone, both: Both::User }
}

const fn guard(path: &'static str, kind: Kind, who: Who) -> Key {
    Key { path, kind, who, both: Both::Together }
}

const LONG: Kind = Kind::Duration { zero: false };
const MAY_BE_NONE: Kind = Kind::Duration { zero: true };
const ONE_UP: Kind = Kind::Count { min: 1 };

/// In the order in which they are shown.
pub(super) const KEYS: &[Key] = &[
    key("state_dir", Kind::State),
    key("plans_dir", Kind::Directory),
    key("design_dir", Kind::Directory),
    key("agents_dir", Kind::Directory),
    check("build_command"),
    check("test_command"),
    check("lint_command"),
    check("e2e_command"),
    guard("env_strip", Kind::Words, Who::Anyone),
    guard("claude.binary", Kind::Text, Who::User),
    key("claude.models.haiku", Kind::Text),
    key("claude.models.sonnet", Kind::Text),
    key("claude.models.opus", Kind::Text),
    Key { path: "sandbox.enabled", kind: Kind::Switch, who: Who::OnlyOn, both: Both::Project },
    Key { path: "sandbox.strict", kind: Kind::Switch, who: Who::OnlyOn, both: Both::Project },
    guard("sandbox.profiles", Kind::Profiles, Who::User),
    guard("sandbox.agents", Kind::Agents, Who::OnlyNarrowest),
    guard("sandbox.deny", Kind::Words, Who::Anyone),
    key("task.timeout", LONG),
    key("task.idle_timeout", LONG),
    key("task.max_parallel", ONE_UP),
    key("rate_limit.buffer", MAY_BE_NONE),
    key("rate_limit.max_wait", LONG),
    key("rate_limit.probe", LONG),
    key("breaker.threshold", ONE_UP),
    key("breaker.reset", LONG),
    key("breaker.max_trips", ONE_UP),
    key("git.isolation", Kind::Isolation),
    key("git.keep_failed", MAY_BE_NONE),
    key("budget.quota_ceiling_usd", Kind::Amount),
    key("budget.max_quota_percent", Kind::Amount),
    key("budget.reserved_budget_usd", Kind::Amount),
    key("budget.window", LONG),
    key("backlog.defects", Kind::Directory),
    key("backlog.features", Kind::Directory),
    key("backlog.completed", Kind::Directory),
    key("backlog.failed", Kind::Directory),
    key("pipeline.max_parallel_items", ONE_UP),
    key("pipeline.max_verification_cycles", ONE_UP),
    key("pipeline.max_item_attempts", ONE_UP),
    key("pipeline.safety_scan_seconds", ONE_UP),
    key("pipeline.plan_timeout", LONG),
    key("limits.max_item_starts_per_hour", ONE_UP),
    key("limits.items_per_hour", ONE_UP),
];

/// Names that other versions of such a file have, and what is to be done instead.
pub(super) const ELSEWHERE: &[(&str, &str)] = &[
    ("notify", "who is told is yours alone to say: `[notifications]` in your own config.toml (docs/configuration.md)"),
    ("inbound", "there are no channels on which items come in; put files into the backlog"),
    ("git.commit_plan", "the plan's file is written and left to you; commit it as you like"),
    ("budget.ceiling_usd", "the name is `quota_ceiling_usd`"),
    ("sandbox.permission_mode", "permission modes follow from the profile; `posse plan flags AGENT` shows them"),
];

const POLICIES: [&str; 3] = ["none", "read_only", "full"];

impl Kind {
    /// The value in the form in which it is kept.
    pub(super) fn check(self, node: &Node, path: &str, warnings: &mut Vec<FileProblem>) -> Result<Json, FileProblem> {
        let wrong =
            |wanted: &str| FileProblem::new(node.at, format!("`{path}` should be {wanted}, this is {}", node.kind()));
        match (self, &node.value) {
            (Kind::Text, Value::Text(text)) if !text.trim().is_empty() => Ok(json!(text)),
            (Kind::Text, _) => Err(wrong("a text")),
            (Kind::Command, Value::Text(text)) if !text.trim().is_empty() => {
                if let Some(why) = cannot_fail(text) {
                    warnings.push(FileProblem::new(node.at, format!("this gate cannot fail: {why}")));
                }
                Ok(json!(text))
            }
            (Kind::Command, _) => Err(wrong("a command line in quotes").hint("leave it out if there is none")),
            (Kind::Directory | Kind::State, Value::Text(text)) => self.directory(node, path, text),
            (Kind::Directory | Kind::State, _) => Err(wrong("a directory of the project, in quotes")),
            (Kind::Switch, Value::Switch(on)) => Ok(json!(on)),
            (Kind::Switch, _) => Err(wrong("true or false, without quotes")),
            (Kind::Count { min }, Value::Whole(number)) => match u32::try_from(*number) {
                Ok(number) if number >= min => Ok(json!(number)),
                _ => Err(wrong(&format!("a whole number, {min} or more"))),
            },
            (Kind::Count { min }, _) => Err(wrong(&format!("a whole number, {min} or more"))),
            (Kind::Amount, Value::Whole(number)) if *number >= 0 => Ok(json!(*number as f64)),
            (Kind::Amount, Value::Fraction(number)) if number.is_finite() && *number >= 0.0 => Ok(json!(number)),
            (Kind::Amount, _) => Err(wrong("a number, 0 or more")),
            (Kind::Duration { zero }, value) => {
                let long = match value {
                    Value::Text(text) => duration(text),
                    Value::Whole(seconds) => u64::try_from(*seconds).ok().map(Duration::from_secs),
                    _ => None,
                };
                let wanted = "a duration such as \"90s\", \"15m\" or \"7d\", or a number of seconds";
                let long = long.filter(|long| zero || !long.is_zero()).ok_or_else(|| wrong(wanted))?;
                Ok(serde_json::to_value(long).unwrap_or_default())
            }
            (Kind::Isolation, Value::Text(text)) if matches!(text.as_str(), "worktree" | "in_place") => Ok(json!(text)),
            (Kind::Isolation, _) => Err(wrong("\"worktree\" or \"in_place\"")),
            (Kind::Words, _) => Ok(json!(words(node, path)?)),
            (Kind::Agents, Value::Table(agents)) => {
                let mut map = serde_json::Map::new();
                for (agent, _, profile) in agents {
                    map.insert(agent.clone(), Kind::Text.check(profile, &format!("{path}.{agent}"), warnings)?);
                }
                Ok(map.into())
            }
            (Kind::Agents, _) => Err(wrong("a table: an agent, and its profile")),
            (Kind::Profiles, Value::Table(profiles)) => {
                let mut map = serde_json::Map::new();
                for (name, _, node) in profiles {
                    map.insert(name.clone(), profile(node, &format!("{path}.{name}"))?);
                }
                Ok(map.into())
            }
            (Kind::Profiles, _) => Err(wrong("a table of profiles, each with `tools` and `bash`")),
        }
    }

    fn directory(self, node: &Node, path: &str, text: &str) -> Result<Json, FileProblem> {
        let parts: Vec<&str> = text.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
        if text.starts_with('/') || text.starts_with('~') || parts.contains(&"..") || parts.is_empty() {
            let message = format!("`{path}` should be a directory below the project, this is {text:?}");
            return Err(FileProblem::new(node.at, message).hint("write it relative to the project, without `..`"));
        }
        if self == Kind::State && parts.first() == Some(&".claude") {
            let message = format!("`{path}` must not be under .claude/: Claude Code guards that directory");
            return Err(FileProblem::new(node.at, message).hint("leave it out; the default is .posse/state"));
        }
        Ok(json!(parts.join("/")))
    }
}

fn words(node: &Node, path: &str) -> Result<Vec<String>, FileProblem> {
    let wrong =
        |node: &Node| FileProblem::new(node.at, format!("`{path}` should be a list of words, this is {}", node.kind()));
    let Value::List(items) = &node.value else { return Err(wrong(node)) };
    let word = |item: &Node| match &item.value {
        Value::Text(text) if !text.trim().is_empty() => Ok(text.clone()),
        _ => Err(wrong(item)),
    };
    items.iter().map(word).collect()
}

fn profile(node: &Node, path: &str) -> Result<Json, FileProblem> {
    let (mut tools, mut bash) = (None, json!("none"));
    if !matches!(node.value, Value::Table(_)) {
        return Err(FileProblem::new(node.at, format!("`{path}` should be a table, this is {}", node.kind())));
    }
    for (name, at, value) in node.entries() {
        match (name.as_str(), &value.value) {
            ("tools", _) => tools = Some(words(value, &format!("{path}.tools"))?),
            ("bash", Value::List(_)) => bash = json!(words(value, &format!("{path}.bash"))?),
            ("bash", Value::Text(policy)) if POLICIES.contains(&policy.as_str()) => bash = json!(policy),
            ("bash", _) => {
                let message = format!("`{path}.bash` should be one of {}, or a list of rules", POLICIES.join(", "));
                let meant = match &value.value {
                    Value::Text(text) => nearest(text, POLICIES),
                    _ => None,
                };
                let problem = FileProblem::new(value.at, message);
                return Err(match meant {
                    Some(meant) => problem.hint(format!("did you mean `{meant}`?")),
                    None => problem,
                });
            }
            (other, _) => {
                let problem = FileProblem::new(*at, format!("a profile has no `{other}`"));
                return Err(problem.hint("it has `tools` and `bash`"));
            }
        }
    }
    match tools {
        Some(tools) if !tools.is_empty() => Ok(json!({ "tools": tools, "bash": bash })),
        _ => Err(FileProblem::new(node.at, format!("`{path}` has no `tools`"))
            .hint("list what sessions may use, like tools = [\"Read\", \"Grep\"]")),
    }
}

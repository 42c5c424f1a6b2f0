//! One file, read; and several, one over the other.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::guard::refused;
use super::keys::{Both, ELSEWHERE, KEYS};
use super::tree::{self, Node, Value};
use super::{Config, Window, window_limit};
use crate::file_problem::{FileProblem, FileProblems, TextSpan};
use crate::nearest::nearest;
use crate::plan::file::BudgetMeta;

/// Whose file it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Whose {
    /// The user's own, in which `[plans]` is about this.
    User,
    /// One that agents can write.
    Project,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Toml,
    /// Of the original orchestrator. Names in it that we do not know have no effect; they may be meant for that one.
    Yaml,
}

/// What one file says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Layer {
    values: BTreeMap<&'static str, Json>,
}

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    Default,
    User,
    Project,
    /// Of a list, which both have a part in.
    Both,
}

/// A configuration, and where each of its keys comes from, in the order of the keys.
#[derive(Clone, Debug, PartialEq)]
pub struct Resolved {
    pub config: Config,
    pub origins: Vec<(&'static str, Origin)>,
}

impl Layer {
    /// Reads a file. `file` is its name, for messages.
    pub fn read(
        file: &str,
        text: &str,
        format: Format,
        whose: Whose,
    ) -> Result<(Self, Vec<FileProblem>), FileProblems> {
        let mut reader = Reader { format, whose, layer: Self::default(), problems: Vec::new(), warnings: Vec::new() };
        let parsed = match format {
            Format::Toml => tree::from_toml(text),
            Format::Yaml => tree::from_yaml(text),
        };
        match parsed {
            Err(problem) => reader.problems.push(problem),
            Ok(root) if whose == Whose::Project => reader.file(&root),
            Ok(root) => {
                if let Some((.., plans)) = root.entries().iter().find(|(name, ..)| name == "plans") {
                    reader.file(plans);
                }
            }
        }
        let Reader { layer, problems, warnings, .. } = reader;
        match problems.is_empty() {
            true => Ok((layer, warnings)),
            false => Err(FileProblems { file: file.to_owned(), problems, warnings }),
        }
    }

    fn amount(&self, path: &str) -> Option<f64> {
        self.values.get(path).and_then(Json::as_f64)
    }

    fn budget(&self) -> BudgetMeta {
        BudgetMeta {
            ceiling_usd: self.amount("budget.quota_ceiling_usd"),
            percent: self.amount("budget.max_quota_percent"),
            reserved_usd: self.amount("budget.reserved_budget_usd"),
        }
    }

    fn window(&self, whose: Whose) -> Option<Window> {
        let window = serde_json::from_value(self.values.get("budget.window")?.clone()).ok()?;
        Some(Window { whose, window, limit_usd: window_limit(self.budget())? })
    }
}

struct Reader {
    format: Format,
    whose: Whose,
    layer: Layer,
    problems: Vec<FileProblem>,
    warnings: Vec<FileProblem>,
}

impl Reader {
    fn file(&mut self, root: &Node) {
        match root.value {
            Value::Table(_) => self.table(root, ""),
            _ => {
                self.problems.push(FileProblem::new(root.at, format!("this should be a table, it is {}", root.kind())));
            }
        }
        let said = |path| self.layer.values.contains_key(path);
        if said("budget.window") && !said("budget.quota_ceiling_usd") {
            let at = place(root, &["budget", "window"]).unwrap_or_default();
            let problem = FileProblem::new(at, "`budget.window` limits nothing without a ceiling");
            self.problems.push(problem.hint("add `quota_ceiling_usd`, what may be spent within it"));
        }
    }

    fn table(&mut self, node: &Node, above: &str) {
        for (name, at, value) in node.entries() {
            let path = if above.is_empty() { name.clone() } else { format!("{above}.{name}") };
            if let Some(key) = KEYS.iter().find(|key| key.path == path) {
                if value.value != Value::Nothing {
                    self.value(key.path, value);
                }
            } else if let Some((_, hint)) = ELSEWHERE.iter().find(|(other, _)| *other == path) {
                self.unknown(*at, &path, Some((*hint).to_owned()));
            } else if KEYS.iter().any(|key| key.path.starts_with(&format!("{path}."))) {
                match value.value {
                    Value::Table(_) => self.table(value, &path),
                    Value::Nothing => {}
                    _ => {
                        let message = format!("`{path}` should be a table, this is {}", value.kind());
                        self.problems.push(FileProblem::new(value.at, message));
                    }
                }
            } else {
                self.unknown(*at, &path, meant(above, name).map(|meant| format!("did you mean `{meant}`?")));
            }
        }
    }

    fn value(&mut self, path: &'static str, node: &Node) {
        let Some(key) = KEYS.iter().find(|key| key.path == path) else { return };
        match key.kind.check(node, path, &mut self.warnings) {
            Err(problem) => self.problems.push(problem),
            // A table with nothing in it says nothing.
            Ok(Json::Object(table)) if table.is_empty() => {}
            Ok(value) => match refused(key, &value, node).filter(|_| self.whose == Whose::Project) {
                Some(problem) => self.problems.push(problem),
                None => drop(self.layer.values.insert(path, value)),
            },
        }
    }

    /// A name nobody knows. What looks like a slip is always an error: it would be a default that nobody chose.
    fn unknown(&mut self, at: TextSpan, path: &str, hint: Option<String>) {
        let is_slip = hint.is_some();
        let problem = FileProblem::new(at, format!("there is no `{path}`"));
        let problem = match hint {
            Some(hint) => problem.hint(hint),
            None => problem.hint("`posse plan config --default` shows all there are"),
        };
        match self.format {
            Format::Yaml if !is_slip => {
                self.warnings.push(FileProblem::new(at, format!("there is no `{path}`; it has no effect")));
            }
            Format::Toml | Format::Yaml => self.problems.push(problem),
        }
    }
}

fn place(node: &Node, path: &[&str]) -> Option<TextSpan> {
    let (first, rest) = path.split_first()?;
    let (_, at, value) = node.entries().iter().find(|(name, ..)| name == first)?;
    if rest.is_empty() { Some(*at) } else { place(value, rest) }
}

/// The key that was meant: one of this table, or the same name elsewhere.
fn meant(above: &str, name: &str) -> Option<String> {
    let inside = |key: &'static str| match above {
        "" => key.split('.').next(),
        above => key.strip_prefix(above)?.strip_prefix('.')?.split('.').next(),
    };
    let near = nearest(name, KEYS.iter().filter_map(|key| inside(key.path)));
    let elsewhere = || KEYS.iter().map(|key| key.path).find(|path| path.rsplit('.').next() == Some(name));
    near.map(|near| if above.is_empty() { near.to_owned() } else { format!("{above}.{near}") })
        .or_else(|| elsewhere().map(str::to_owned))
}

/// The project's word over the user's, except where that could loosen something; defaults for the rest.
pub fn resolve(user: &Layer, project: &Layer) -> Resolved {
    let mut whole = serde_json::to_value(Config::default()).unwrap_or_default();
    let mut origins = Vec::new();
    let windows: Vec<Window> =
        [user.window(Whose::User), project.window(Whose::Project)].into_iter().flatten().collect();
    for key in KEYS {
        // Money that is meant for a window is not what a plan may spend.
        let counts = |layer: &Layer| !key.path.starts_with("budget.") || !layer.values.contains_key("budget.window");
        let (mine, theirs) = (user.values.get(key.path), project.values.get(key.path));
        let (value, origin) = match (mine, theirs) {
            (None, None) => {
                origins.push((key.path, Origin::Default));
                continue;
            }
            (Some(mine), None) => (Some(mine.clone()).filter(|_| counts(user)), Origin::User),
            (None, Some(theirs)) => (Some(theirs.clone()).filter(|_| counts(project)), Origin::Project),
            (Some(mine), Some(theirs)) => match key.both {
                Both::User => (Some(mine.clone()), Origin::User),
                Both::Together => (Some(together(theirs, mine)), Origin::Both),
                Both::Project if !counts(project) => (Some(mine.clone()).filter(|_| counts(user)), Origin::User),
                Both::Project => (Some(theirs.clone()), Origin::Project),
            },
        };
        origins.push((key.path, origin));
        if let Some(value) = value {
            put(&mut whole, key.path, value);
        }
    }
    // Every value was checked for its key; a test writes down all of them.
    let mut config: Config = serde_json::from_value(whole).expect("the keys are those of the configuration");
    config.windows = windows;
    Resolved { config, origins }
}

impl Resolved {
    /// Every key: what it is, and who says so.
    pub fn rows(&self) -> Vec<(&'static str, String, Origin)> {
        let mut texts = BTreeMap::new();
        super::flatten("", &serde_json::to_value(&self.config).unwrap_or_default(), &mut texts);
        let shown = |path: &'static str| {
            if path == "budget.window" {
                let windows = self.config.windows.iter().map(|window| {
                    let whose = if window.whose == Whose::User { "all projects" } else { "this project" };
                    format!("{:.2} USD in {} for {whose}", window.limit_usd, shown_duration(window.window))
                });
                return windows.collect::<Vec<_>>().join(", ");
            }
            let of_table = || {
                let inside = texts.iter().filter_map(|(name, text)| {
                    Some(format!("{} = {text}", name.strip_prefix(path)?.strip_prefix('.')?))
                });
                inside.collect::<Vec<_>>().join(", ")
            };
            texts.get(stored(path)).cloned().unwrap_or_else(of_table)
        };
        self.origins.iter().map(|(path, origin)| (*path, shown(path), *origin)).collect()
    }
}

/// `7d`, `90s`.
pub fn shown_duration(long: std::time::Duration) -> String {
    let seconds = long.as_secs();
    match seconds {
        _ if seconds > 0 && seconds.is_multiple_of(86_400) => format!("{}d", seconds / 86_400),
        _ if seconds > 0 && seconds.is_multiple_of(3600) => format!("{}h", seconds / 3600),
        _ if seconds > 0 && seconds.is_multiple_of(60) => format!("{}m", seconds / 60),
        _ => format!("{seconds}s"),
    }
}

/// All of both; of two entries of one name the second's.
fn together(first: &Json, second: &Json) -> Json {
    match (first, second) {
        (Json::Array(first), Json::Array(second)) => {
            let mut all = first.clone();
            all.extend(second.iter().filter(|item| !first.contains(item)).cloned());
            Json::Array(all)
        }
        (Json::Object(first), Json::Object(second)) => {
            let mut all = first.clone();
            all.extend(second.clone());
            Json::Object(all)
        }
        _ => second.clone(),
    }
}

fn put(whole: &mut Json, path: &str, value: Json) {
    if path != "budget.window" {
        *stored(path).split('.').fold(whole, |place, name| &mut place[name]) = value;
    }
}

/// Under which name it is kept.
fn stored(path: &str) -> &str {
    match path {
        "budget.quota_ceiling_usd" => "budget.ceiling_usd",
        "budget.max_quota_percent" => "budget.percent",
        "budget.reserved_budget_usd" => "budget.reserved_usd",
        path => path,
    }
}

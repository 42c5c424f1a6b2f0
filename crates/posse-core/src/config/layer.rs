//! Sources of configuration values, and their merging.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::Serialize;
use serde_json::Value as Json;

use super::ConfigError;
use super::keys::{Combine, ConfigKey, ELSEWHERE, KEYS, KeyVariable, LEGACY_SANDBOX, ProjectRule, SANDBOX};
use super::kind::{BOOLEAN_WORDS, ValueKind, boolean};
use super::tree::{self, Typed, describe, typed};
use crate::file_problem::{FileProblem, FileProblems, ProblemList, TextSpan};
use crate::nearest::nearest;
use crate::plan::yaml::{Node, YamlEntry};

/// The sources of values, the weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LayerSource {
    /// config.toml in the user's configuration directory.
    User,
    /// A file in the project, which agents can write.
    Project,
    /// The JSON file of a loop run, which the operator named.
    RunFile,
    Environment,
    Flags,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigFormat {
    Toml,
    /// The file of the original orchestrator. Unknown names cause warnings, because they may be meant for that tool.
    Yaml,
    Json,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ValueOrigin {
    Default,
    /// A line of config.toml.
    User(usize),
    /// A line of the project's file.
    Project(usize),
    /// Entries of a list or table come from both files.
    UserAndProject,
    /// A line of the JSON file of a loop run.
    RunFile(usize),
    Variable(String),
    Flag(String),
}

impl fmt::Display for ValueOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::User(line) => write!(f, "config.toml, line {line}"),
            Self::Project(line) => write!(f, "the project's file, line {line}"),
            Self::UserAndProject => f.write_str("config.toml and the project's file"),
            Self::RunFile(line) => write!(f, "the run's file, line {line}"),
            Self::Variable(name) => write!(f, "variable {name}"),
            Self::Flag(name) => write!(f, "option {name}"),
        }
    }
}

/// The checked values of one source.
#[derive(Clone, Debug, PartialEq)]
pub struct ConfigLayer {
    source: LayerSource,
    values: BTreeMap<&'static str, (Json, ValueOrigin)>,
    pub warnings: Vec<String>,
}

/// The narrowest permission profile.
const NARROWEST: &str = "READ_ONLY";

impl ConfigLayer {
    pub fn empty(source: LayerSource) -> Self {
        Self { source, values: BTreeMap::new(), warnings: Vec::new() }
    }

    /// Reads a file. `file` is its name in messages; `providers` are the known agents, if they are to be checked.
    pub fn read(
        source: LayerSource,
        format: ConfigFormat,
        file: &str,
        text: &str,
        providers: Option<&[&str]>,
    ) -> Result<(Self, Vec<FileProblem>), FileProblems> {
        let names = KEYS.iter().filter_map(|key| Some((key.name_in(source)?, key))).collect();
        let found = ProblemList::default();
        let mut reader = FileReader { format, names, providers, layer: Self::empty(source), found, window_at: None };
        let parsed = match format {
            ConfigFormat::Toml => tree::from_toml(text),
            ConfigFormat::Yaml => tree::from_yaml(text),
            ConfigFormat::Json => tree::from_json(text),
        };
        match parsed {
            Err(problem) => reader.found.errors.push(problem),
            Ok(root) => reader.root(&root),
        }
        let FileReader { mut layer, found: ProblemList { errors, warnings }, .. } = reader;
        if !errors.is_empty() {
            return Err(FileProblems { file: file.to_owned(), problems: errors, warnings });
        }
        layer.warnings = warnings.iter().map(|warning| format!("{file}:{warning}")).collect();
        Ok((layer, warnings))
    }

    /// Reads the variables of the keys that `wanted` selects. An empty variable counts as not set.
    pub fn environment(
        variable: &dyn Fn(&str) -> Option<String>,
        providers: Option<&[&str]>,
        wanted: impl Fn(&ConfigKey) -> bool,
    ) -> Result<Self, ConfigError> {
        let mut layer = Self::empty(LayerSource::Environment);
        for key in KEYS.iter().filter(|key| !matches!(key.variable, KeyVariable::Option(_)) && wanted(key)) {
            let names = key.variables().into_iter();
            let found = names.filter_map(|name| Some((variable(&name)?, name)));
            let mut found = found.filter(|(text, name)| !text.is_empty() || name == LEGACY_SANDBOX);
            let Some((text, name)) = found.next() else { continue };
            layer.warnings.extend(odd_value(key, &name, &text));
            let value = if name == LEGACY_SANDBOX {
                let on = !text.eq_ignore_ascii_case("false");
                Some(Node::scalar(TextSpan::default(), on.to_string(), true))
            } else {
                key.kind.of_variable(&text)
            };
            layer.set(key, value, &text, providers, &format!("the variable {name}"), ValueOrigin::Variable(name))?;
        }
        Ok(layer)
    }

    /// Reads the values of command line options: key, text.
    pub fn flags(values: &[(&'static str, &str)]) -> Result<Self, ConfigError> {
        let mut layer = Self::empty(LayerSource::Flags);
        for (path, text) in values {
            let Some(key) = KEYS.iter().find(|key| key.path == *path) else { continue };
            let flag = key.flag.unwrap_or(key.path);
            layer.set(key, key.kind.of_variable(text), text, None, flag, ValueOrigin::Flag(flag.to_owned()))?;
        }
        Ok(layer)
    }

    fn set(
        &mut self,
        key: &ConfigKey,
        value: Option<Node>,
        text: &str,
        providers: Option<&[&str]>,
        subject: &str,
        origin: ValueOrigin,
    ) -> Result<(), ConfigError> {
        let problem = |message: String, hint| ConfigError::Value { message, hint };
        let no_boolean = || format!("{subject} should be a boolean ({BOOLEAN_WORDS}), this is {text:?}");
        let node = value.ok_or_else(|| problem(no_boolean(), None))?;
        let checked = key.kind.check(&node, subject, providers, &mut Vec::new());
        let checked = checked.map_err(|wrong| problem(wrong.message, wrong.hint))?;
        self.values.insert(key.path, (checked, origin));
        Ok(())
    }

    pub fn take(&mut self, path: &str) -> Option<(Json, ValueOrigin)> {
        self.values.remove(path)
    }

    pub fn get(&self, path: &str) -> Option<&Json> {
        self.values.get(path).map(|(value, _)| value)
    }
}

/// Warns about a value that looks like another meaning than its actual one.
fn odd_value(key: &ConfigKey, name: &str, text: &str) -> Option<String> {
    if key.kind == ValueKind::OptIn && text != "1" && boolean(text) != Some(false) {
        return Some(format!("{name} is {text:?}, which counts as off: only 1 means on"));
    }
    let means_on = !text.is_empty() && !text.eq_ignore_ascii_case("false") && boolean(text) != Some(true);
    (name == LEGACY_SANDBOX && means_on).then(|| {
        format!("{name} is {text:?}, which leaves the sandbox on: only false turns it off; {SANDBOX} accepts {BOOLEAN_WORDS}")
    })
}

struct FileReader<'p> {
    format: ConfigFormat,
    /// The keys that the file may contain, by their names there.
    names: Vec<(&'static str, &'static ConfigKey)>,
    providers: Option<&'p [&'p str]>,
    layer: ConfigLayer,
    found: ProblemList,
    /// The span of `budget.window`.
    window_at: Option<TextSpan>,
}

impl FileReader<'_> {
    fn root(&mut self, root: &Node) {
        self.table(root, "");
        if let Some(at) = self.window_at.filter(|_| self.layer.get("plans.budget.quota_ceiling_usd").is_none()) {
            let problem = self.found.error(at, "`budget.window` limits nothing without a ceiling");
            problem.add_hint("add `quota_ceiling_usd`, the amount that may be spent within it");
        }
    }

    fn table(&mut self, node: &Node, above: &str) {
        let Typed::Table(entries) = typed(node) else {
            let subject = if above.is_empty() { "the file".to_owned() } else { format!("`{above}`") };
            self.found.error(node.at, format!("{subject} should be a table, this is {}", describe(node)));
            return;
        };
        for entry in entries {
            let name = entry.name().unwrap_or_default();
            let path = if above.is_empty() { name.to_owned() } else { format!("{above}.{name}") };
            let key = self.names.iter().find(|(name, _)| *name == path).map(|(_, key)| *key);
            let plan_path = path.strip_prefix("plans.").unwrap_or(&path);
            let elsewhere = ELSEWHERE.iter().find(|(other, _)| *other == plan_path);
            let is_section = || self.names.iter().any(|(name, _)| name.starts_with(&format!("{path}.")));
            match (key, elsewhere) {
                _ if entry.value.is_null() && (key.is_some() || is_section()) => {}
                (Some(key), _) => self.value(key, &path, entry),
                (None, Some((_, hint))) => self.unknown(entry.key.at, above, &path, Some((*hint).to_owned())),
                (None, None) if is_section() => self.table(&entry.value, &path),
                (None, None) => {
                    let meant = self.meant(above, name).map(|meant| format!("did you mean `{meant}`?"));
                    self.unknown(entry.key.at, above, &path, meant);
                }
            }
        }
    }

    fn value(&mut self, key: &'static ConfigKey, path: &str, YamlEntry { key: name, value: node }: &YamlEntry) {
        let (source, line) = (self.layer.source, name.at.line);
        let origin = match source {
            LayerSource::User => ValueOrigin::User(line),
            LayerSource::Project => ValueOrigin::Project(line),
            _ => ValueOrigin::RunFile(line),
        };
        match key.kind.check(node, &format!("`{path}`"), self.providers, &mut self.found.warnings) {
            Err(problem) => self.found.errors.push(problem),
            // An empty table sets nothing.
            Ok(Json::Object(table)) if table.is_empty() => {}
            Ok(value) => match refused(key, &value, node.at).filter(|_| source == LayerSource::Project) {
                Some(problem) => self.found.errors.push(problem),
                None => {
                    self.window_at = self.window_at.or((key.path == "plans.budget.window").then_some(name.at));
                    self.layer.values.insert(key.path, (value, origin));
                }
            },
        }
    }

    /// Reports an unknown name. A likely typo is an error, because the key would silently keep its default.
    fn unknown(&mut self, at: TextSpan, above: &str, path: &str, hint: Option<String>) {
        match hint {
            None if self.format == ConfigFormat::Yaml => {
                self.found.warning(at, format!("there is no `{path}`; it has no effect"));
            }
            hint => {
                let show = match self.layer.source {
                    LayerSource::User => "`posse config default` shows all keys",
                    LayerSource::Project => "`posse plan config --default` shows all keys",
                    _ => "docs/reference/loop-configuration.md lists all keys",
                };
                let inside: BTreeSet<&str> = self.names_in(above).collect();
                let all = match inside.len() {
                    1..8 => format!("the names here are {}", inside.into_iter().collect::<Vec<_>>().join(", ")),
                    _ => show.to_owned(),
                };
                self.found.error(at, format!("there is no `{path}`")).add_hint(hint.unwrap_or(all));
            }
        }
    }

    /// Returns the names that a table may contain.
    fn names_in<'s>(&'s self, above: &'s str) -> impl Iterator<Item = &'static str> + 's {
        self.names.iter().filter_map(move |(path, _)| match above {
            "" => path.split('.').next(),
            above => path.strip_prefix(above)?.strip_prefix('.')?.split('.').next(),
        })
    }

    /// Returns the key that was probably meant: one of this table, or the same name elsewhere.
    fn meant(&self, above: &str, name: &str) -> Option<String> {
        let near = nearest(name, self.names_in(above));
        let elsewhere = || self.names.iter().find(|(path, _)| path.rsplit('.').next() == Some(name));
        near.map(|near| if above.is_empty() { near.to_owned() } else { format!("{above}.{near}") })
            .or_else(|| elsewhere().map(|(path, _)| (*path).to_owned()))
    }
}

/// Returns the reason a project's file must not set this value, if any.
fn refused(key: &ConfigKey, value: &Json, at: TextSpan) -> Option<FileProblem> {
    let name = key.plan_name().unwrap_or(key.path);
    let loosens = match key.project {
        ProjectRule::Any => return None,
        ProjectRule::Never => format!("`{name}` decides what is run, or what it may do"),
        ProjectRule::OnlyTrue if *value == Json::Bool(true) => return None,
        ProjectRule::OnlyTrue => format!("`{name}` off loosens what sessions are held by"),
        ProjectRule::OnlyNarrowest => {
            let narrow = |profile: &Json| profile.as_str().is_some_and(|name| name.eq_ignore_ascii_case(NARROWEST));
            if value.as_object()?.values().all(narrow) {
                return None;
            }
            format!("only {NARROWEST} can be given to an agent here")
        }
    };
    let (section, name) = key.path.rsplit_once('.').unwrap_or(("", key.path));
    let option = key.flag.map(|flag| format!(", or with `{flag}`")).unwrap_or_default();
    let problem = FileProblem::new(at, format!("{loosens}: a project's file cannot say that, agents can write it"));
    Some(problem.hint(format!("set it in your own config.toml, as `{name}` in [{section}]{option}")))
}

/// A key with its effective value.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Setting {
    pub key: &'static str,
    pub value: Json,
    pub origin: ValueOrigin,
}

/// Merges layers, the weakest first, over the defaults: one setting for each key that `wanted` selects.
pub fn resolve(layers: &[&ConfigLayer], wanted: impl Fn(&ConfigKey) -> bool) -> Vec<Setting> {
    let setting = |key: &ConfigKey| {
        let mut setting = Setting { key: key.path, value: default_of(key), origin: ValueOrigin::Default };
        for layer in layers {
            let Some((value, origin)) = layer.values.get(key.path) else { continue };
            let of_both = layer.source == LayerSource::Project && matches!(setting.origin, ValueOrigin::User(_));
            match key.combine {
                Combine::User if of_both => {}
                Combine::Union if of_both => {
                    setting.value = union(value, &setting.value);
                    setting.origin = ValueOrigin::UserAndProject;
                }
                _ => (setting.value, setting.origin) = (value.clone(), origin.clone()),
            }
        }
        setting
    };
    KEYS.iter().filter(|key| wanted(key)).map(setting).collect()
}

/// Returns the default in its stored form. A test checks that every default is a valid value of its key.
pub(super) fn default_of(key: &ConfigKey) -> Json {
    let node = tree::from_toml(&format!("x = {}", key.default)).ok();
    let value = node.iter().flat_map(Node::entries).next();
    let value = value.map(|entry| key.kind.check(&entry.value, key.path, None, &mut Vec::new()));
    value.and_then(Result::ok).unwrap_or_default()
}

/// Returns all entries of both; of two entries with one name, the second's.
fn union(first: &Json, second: &Json) -> Json {
    match (first, second) {
        (Json::Array(first), Json::Array(second)) => {
            let new = second.iter().filter(|item| !first.contains(item));
            first.iter().chain(new).cloned().collect()
        }
        (Json::Object(first), Json::Object(second)) => {
            first.iter().chain(second).map(|(name, value)| (name.clone(), value.clone())).collect()
        }
        _ => second.clone(),
    }
}

/// Returns the settings as a tree, each at the path that `name` returns. Settings without a value are left out.
pub fn tree_of(settings: &[Setting], name: impl Fn(&ConfigKey) -> Option<&'static str>) -> Json {
    let mut whole = Json::Object(serde_json::Map::new());
    for setting in settings {
        let key = KEYS.iter().find(|key| key.path == setting.key);
        if let Some(path) = key.and_then(&name).filter(|_| !setting.value.is_null()) {
            *path.split('.').fold(&mut whole, |place, part| &mut place[part]) = setting.value.clone();
        }
    }
    whole
}

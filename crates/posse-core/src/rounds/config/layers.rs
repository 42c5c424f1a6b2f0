//! One layer over the other: defaults, the user's, the JSON file's, the environment's.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::error::{ConfigError, Place, UnknownName, Wrong};
use super::keys::{AGENT_KEYS, KEYS, Key, Kind, type_of};
use super::{Config, UserDefaults};
use crate::rounds::Role;
use crate::variables::boolean;

pub(super) const AUTO_ACCEPT: &str = "handoff.auto_accept_permissions";

/// Where a value came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    Default,
    User,
    Json,
    Environment,
}

/// A configuration, and how it came about.
#[derive(Clone, Debug, PartialEq)]
pub struct Resolved {
    pub config: Config,
    /// What the operator should know, and what does not stop the run.
    pub warnings: Vec<String>,
    /// Of each key, by its path in JSON.
    pub origins: BTreeMap<String, Origin>,
}

impl Resolved {
    pub fn new(
        json: Option<&str>,
        env: &dyn Fn(&str) -> Option<String>,
        user: &UserDefaults,
        providers: &[&str],
    ) -> Result<Self, ConfigError> {
        let json = json.map_or(Ok(Map::new()), parse)?;
        refuse_unknown_keys(&json)?;
        let mut layers = Layers::new(providers);
        for key in KEYS {
            layers.user(key, user)?;
            layers.json(key, &json)?;
            if key.path == AUTO_ACCEPT {
                let configured = layers.values.get(AUTO_ACCEPT).cloned().unwrap_or(Value::Bool(false));
                layers.values.insert("handoff.auto_accept_configured".into(), configured);
            }
            layers.variable(key, env)?;
        }
        for role in Role::ALL {
            layers.agent(role, &json)?;
        }
        layers.finish()
    }
}

/// Whether the environment says that permissions are accepted; nothing if it says nothing about it.
pub fn auto_accept_in(env: &dyn Fn(&str) -> Option<String>) -> Option<bool> {
    let mut layers = Layers::new(&[]);
    let key = KEYS.iter().find(|key| key.path == AUTO_ACCEPT)?;
    layers.variable(key, env).ok()?;
    layers.values.get(AUTO_ACCEPT)?.as_bool()
}

fn parse(json: &str) -> Result<Map<String, Value>, ConfigError> {
    let text = json.trim_start_matches('\u{feff}');
    let value: Value = serde_json::from_str(text).map_err(|error| {
        let said = error.to_string();
        let what = said.split(" at line ").next().unwrap_or_default().to_owned();
        ConfigError::Json { what, line: error.line(), column: error.column() }
    })?;
    match value {
        Value::Object(object) => Ok(object),
        other => Err(ConfigError::NotAnObject(type_of(&other))),
    }
}

/// What stands at a path; null stands for nothing.
fn at<'a>(json: &'a Map<String, Value>, path: &str) -> Option<&'a Value> {
    let (first, rest) = path.split_once('.').map_or((path, None), |(first, rest)| (first, Some(rest)));
    let found = json.get(first).filter(|value| !value.is_null())?;
    rest.map_or(Some(found), |rest| at(found.as_object()?, rest))
}

/// A misspelt key would otherwise be a default that nobody chose.
fn refuse_unknown_keys(json: &Map<String, Value>) -> Result<(), ConfigError> {
    let roles = Role::ALL.map(Role::as_str);
    let mut known: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::from([("", BTreeSet::from(["agents"]))]);
    for key in KEYS {
        let (section, name) = key.path.split_once('.').unwrap_or(("", key.path));
        known.entry(section).or_default().insert(name);
        if !section.is_empty() {
            known.entry("").or_default().insert(section);
        }
    }
    let mut unknown = Vec::new();
    let mut look = |place: &str, object: &Map<String, Value>, known: &BTreeSet<&str>| {
        for name in object.keys().filter(|name| !known.contains(name.as_str())) {
            let slip = UnknownName::among(name, known.iter().copied()).meant.map(|meant| join(place, &meant));
            let misplaced =
                || KEYS.iter().find(|key| key.path.rsplit('.').next() == Some(name)).map(|key| key.path.into());
            unknown.push(UnknownName { name: join(place, name), meant: slip.or_else(misplaced) });
        }
    };
    for (section, names) in &known {
        let object = if section.is_empty() { Some(json) } else { section_of(json, section)? };
        if let Some(object) = object {
            look(section, object, names);
        }
    }
    let agents = section_of(json, "agents")?.cloned().unwrap_or_default();
    let of_an_agent: BTreeSet<&str> = AGENT_KEYS.iter().map(|(name, _)| *name).collect();
    for role in roles {
        if let Some(object) = section_of(&agents, role).map_err(|error| inside("agents", error))? {
            look(&join("agents", role), object, &of_an_agent);
        }
    }
    unknown.sort_by(|a, b| a.name.cmp(&b.name));
    if !unknown.is_empty() {
        return Err(ConfigError::Unknown(unknown));
    }
    let mut strangers: Vec<UnknownName> = agents
        .keys()
        .filter(|name| !roles.contains(&name.as_str()))
        .map(|name| UnknownName::among(name, roles))
        .collect();
    strangers.sort_by(|a, b| a.name.cmp(&b.name));
    if strangers.is_empty() {
        Ok(())
    } else {
        Err(ConfigError::Roles { unknown: strangers, known: roles.map(str::to_owned).to_vec() })
    }
}

fn section_of<'a>(json: &'a Map<String, Value>, name: &str) -> Result<Option<&'a Map<String, Value>>, ConfigError> {
    match json.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Object(object)) => Ok(Some(object)),
        Some(other) => {
            let wrong = Wrong::Type { wanted: "an object", found: type_of(other) };
            Err(ConfigError::Value { place: Place::Json(name.to_owned()), wrong })
        }
    }
}

fn inside(section: &str, error: ConfigError) -> ConfigError {
    match error {
        ConfigError::Value { place: Place::Json(path), wrong } => {
            ConfigError::Value { place: Place::Json(join(section, &path)), wrong }
        }
        other => other,
    }
}

fn join(section: &str, name: &str) -> String {
    if section.is_empty() { name.to_owned() } else { format!("{section}.{name}") }
}

/// The values so far, checked, by path.
struct Layers<'a> {
    providers: &'a [&'a str],
    values: BTreeMap<String, Value>,
    origins: BTreeMap<String, Origin>,
    warnings: Vec<String>,
}

impl<'a> Layers<'a> {
    fn new(providers: &'a [&'a str]) -> Self {
        let origins = KEYS.iter().map(|key| (key.path.to_owned(), Origin::Default)).collect();
        Self { providers, values: BTreeMap::new(), origins, warnings: Vec::new() }
    }

    fn put(&mut self, path: &str, kind: Kind, value: &Value, origin: Origin, place: Place) -> Result<(), ConfigError> {
        let value = kind.check(value, self.providers).map_err(|wrong| ConfigError::Value { place, wrong })?;
        self.values.insert(path.to_owned(), value);
        self.origins.insert(path.to_owned(), origin);
        Ok(())
    }

    fn user(&mut self, key: &Key, user: &UserDefaults) -> Result<(), ConfigError> {
        let usual = super::Notifications::default();
        let told = |mine: fn(&super::Notifications) -> Value| {
            let notifications = user.notifications.as_ref()?;
            Some(mine(notifications)).filter(|value| *value != mine(&usual))
        };
        let value = match key.path {
            "provider" => user.provider.clone().map(Value::from),
            "mode" => user.mode.clone().map(Value::from),
            AUTO_ACCEPT => user.auto_accept_permissions.map(Value::from),
            "notifications.ntfy_topic" => told(|mine| mine.ntfy_topic.clone().into()),
            "notifications.ntfy_url" => told(|mine| mine.ntfy_url.clone().into()),
            "notifications.webhook" => told(|mine| mine.webhook.clone().into()),
            "notifications.command" => told(|mine| mine.command.clone().into()),
            _ => None,
        };
        let Some(value) = value else { return Ok(()) };
        let name = key.path.rsplit('.').next().unwrap_or(key.path);
        self.put(key.path, key.kind, &value, Origin::User, Place::User(name.to_owned()))
    }

    fn json(&mut self, key: &Key, json: &Map<String, Value>) -> Result<(), ConfigError> {
        let Some(value) = at(json, key.path) else { return Ok(()) };
        self.put(key.path, key.kind, value, Origin::Json, Place::Json(key.path.to_owned()))
    }

    /// `POSSE_X` is looked at before `X`; an empty one counts as not set.
    fn variable(&mut self, key: &Key, env: &dyn Fn(&str) -> Option<String>) -> Result<(), ConfigError> {
        let Some(bare) = key.variable else { return Ok(()) };
        let names = [format!("POSSE_{bare}"), bare.to_owned()];
        let found =
            names.into_iter().find_map(|name| env(&name).filter(|text| !text.is_empty()).map(|text| (name, text)));
        let Some((name, text)) = found else { return Ok(()) };
        if matches!(key.kind, Kind::OptIn) && text != "1" && boolean(&text) != Some(false) {
            self.warnings.push(format!("{name} is {text:?}, which counts as off: only 1 means on"));
        }
        let place = Place::Variable(name);
        let value = match key.kind.read_variable(&text) {
            Ok(value) => value,
            Err(wrong) => return Err(ConfigError::Value { place, wrong }),
        };
        self.put(key.path, key.kind, &value, Origin::Environment, place)
    }

    /// What is not said of a role is as for all of them.
    fn agent(&mut self, role: Role, json: &Map<String, Value>) -> Result<(), ConfigError> {
        for (name, kind) in AGENT_KEYS {
            let path = format!("agents.{role}.{name}");
            if let Some(value) = at(json, &path) {
                self.put(&path, *kind, value, Origin::Json, Place::Json(path.clone()))?;
            } else if *name == "profile" {
                self.values.insert(path.clone(), role.profile().into());
                self.origins.insert(path, Origin::Default);
            } else {
                let usual = self.values.get(*name).cloned().or_else(|| default_of(name)).unwrap_or_default();
                let origin = self.origins.get(*name).copied().unwrap_or(Origin::Default);
                self.values.insert(path.clone(), usual);
                self.origins.insert(path, origin);
            }
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Resolved, ConfigError> {
        let mut whole = serde_json::to_value(Config::default()).map_err(inconsistent)?;
        for (path, value) in &self.values {
            *path.split('.').fold(&mut whole, |place, name| &mut place[name]) = value.clone();
        }
        let config: Config = serde_json::from_value(whole).map_err(inconsistent)?;
        let limits = &config.limits;
        if limits.min_review_cycles_before_approval > limits.max_review_cycles {
            self.warnings.push(format!(
                "no review can be approved: `limits.min_review_cycles_before_approval` is {}, and `limits.max_review_cycles` is {}",
                limits.min_review_cycles_before_approval, limits.max_review_cycles
            ));
        }
        Ok(Resolved { config, warnings: self.warnings, origins: self.origins })
    }
}

fn default_of(name: &str) -> Option<Value> {
    serde_json::to_value(Config::default()).ok()?.get(name).cloned()
}

#[expect(clippy::needless_pass_by_value, reason = "it is what `map_err` hands over")]
fn inconsistent(error: serde_json::Error) -> ConfigError {
    ConfigError::Inconsistent(error.to_string())
}

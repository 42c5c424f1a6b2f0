//! Reads a map of a plan. An invalid value is reported and read as absent, so that one mistake does not hide the next.

use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value as Json};

use super::yaml::{Node, Value, YamlEntry};
use crate::config::ValueKind;
use crate::file_problem::{ProblemList, TextSpan};
use crate::nearest::nearest;

/// The keys that a map may have.
pub(crate) struct Keys {
    /// The name of the map, for messages.
    pub(crate) of: &'static str,
    /// Keys with a value of this kind.
    pub(crate) fields: &'static [(&'static str, ValueKind)],
    /// Keys that are read elsewhere, or accepted and ignored.
    pub(crate) others: &'static [&'static str],
    /// Aliases of known keys: alias, name.
    pub(crate) aliases: &'static [(&'static str, &'static str)],
    /// Names of known keys in other tools. They are reported as mistakes, with the right name as the hint.
    pub(crate) elsewhere: &'static [(&'static str, &'static str)],
    /// Known keys whose absence cannot run or merge anything unwanted. A misspelling of one is a warning; of any other
    /// it is an error.
    pub(crate) harmless: &'static [&'static str],
}

impl Keys {
    pub(crate) const NONE: Keys =
        Keys { of: "", fields: &[], others: &[], aliases: &[], elsewhere: &[], harmless: &[] };

    fn name<'t>(&self, typed: &'t str) -> &'t str {
        self.aliases.iter().find(|(alias, _)| *alias == typed).map_or(typed, |(_, name)| *name)
    }

    fn report_unknown(&self, typed: &str, at: TextSpan, found: &mut ProblemList) {
        let known = self.fields.iter().map(|(name, _)| *name).chain(self.others.iter().copied());
        let elsewhere = self.elsewhere.iter().find(|(other, _)| *other == typed).map(|(_, name)| *name);
        let meant = elsewhere.or_else(|| nearest(typed, known));
        let problem = match meant {
            Some(meant) if !self.harmless.contains(&meant) => found.error(at, format!("{} has no `{typed}`", self.of)),
            _ => found.warning(at, format!("{} has no `{typed}`; it has no effect", self.of)),
        };
        problem.hint = meant.map(|meant| format!("did you mean `{meant}`?"));
    }
}

/// A map, and the values of its fields.
pub(crate) struct MapFields<'n> {
    node: &'n Node,
    keys: &'static Keys,
    pub(crate) values: Map<String, Json>,
}

impl<'n> MapFields<'n> {
    /// Checks keys and values. Returns `None` if the node is not a map.
    pub(crate) fn read(node: &'n Node, keys: &'static Keys, found: &mut ProblemList) -> Option<Self> {
        if !matches!(node.value, Value::Map(..)) {
            found.error(node.at, format!("{} should be a map, this is {}", keys.of, node.kind()));
            return None;
        }
        let mut values = Map::new();
        let mut seen: Vec<(&str, TextSpan)> = Vec::new();
        for YamlEntry { key, value } in node.entries() {
            let Some(typed) = key.as_scalar() else {
                found.error(key.at, "a key should be a word");
                continue;
            };
            let name = keys.name(typed);
            let field = keys.fields.iter().find(|(field, _)| *field == name);
            if field.is_none() && !keys.others.contains(&name) {
                keys.report_unknown(typed, key.at, found);
                continue;
            }
            if let Some((_, first)) = seen.iter().find(|(seen, _)| *seen == name) {
                let twice = found.error(key.at, format!("`{name}` is given twice"));
                twice.add_span(*first, "first").add_hint("keep one of them");
            }
            seen.push((name, key.at));
            let Some((_, kind)) = field.filter(|_| !value.is_null()) else { continue };
            // Numbers and booleans may be quoted.
            let unquoted = value.as_scalar().map(|text| Node::scalar(value.at, text, true));
            let value = unquoted.as_ref().unwrap_or(value);
            match kind.check(value, &format!("`{name}`"), None, &mut found.warnings) {
                Ok(value) if value.is_null() => {}
                Ok(value) => drop(values.insert(name.to_owned(), value)),
                Err(problem) => found.errors.push(problem),
            }
        }
        Some(Self { node, keys, values })
    }

    /// Reads a map that is the value of a key, and adds it to the values.
    pub(crate) fn nest(&mut self, key: &str, keys: &'static Keys, found: &mut ProblemList) -> Option<MapFields<'n>> {
        let fields = MapFields::read(self.node(key)?, keys, found)?;
        self.values.insert(key.to_owned(), fields.values.clone().into());
        Some(fields)
    }

    /// Returns the values as a type whose field names and types match the keys.
    pub(crate) fn whole<T: DeserializeOwned>(&self) -> T {
        serde_json::from_value(self.values.clone().into()).expect("every value was checked for its key")
    }

    /// Returns the values on top of an existing value.
    pub(crate) fn over<T: Serialize + DeserializeOwned>(&self, empty: &T) -> T {
        let mut all = serde_json::to_value(empty).unwrap_or_default();
        all.as_object_mut().into_iter().for_each(|all| all.extend(self.values.clone()));
        serde_json::from_value(all).expect("every value was checked for its key")
    }

    pub(crate) fn text(&self, key: &str) -> Option<String> {
        self.values.get(key)?.as_str().map(str::to_owned)
    }

    /// Returns the value of a key.
    pub(crate) fn node(&self, key: &str) -> Option<&'n Node> {
        let named = |entry: &&YamlEntry| entry.name().is_some_and(|name| self.keys.name(name) == key);
        self.node.entries().iter().find(named).map(|entry| &entry.value).filter(|node| !node.is_null())
    }

    /// Returns the scalar values of a key that may have a list.
    pub(crate) fn words(&self, key: &str) -> impl Iterator<Item = &'n Node> + use<'n> {
        let items = self.node(key).map(|node| match &node.value {
            Value::List(items) => items.as_slice(),
            _ => std::slice::from_ref(node),
        });
        let is_word = |node: &&Node| node.as_scalar().is_some_and(|text| !text.trim().is_empty());
        items.unwrap_or_default().iter().filter(is_word)
    }
}

pub(crate) fn as_bool(text: &str) -> Option<bool> {
    // YAML 1.1 booleans are accepted too, because the original orchestrator read them.
    match text.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" => Some(true),
        "false" | "no" | "off" => Some(false),
        _ => None,
    }
}

/// Parses a duration: `90`, `90s`, `15m`, `1h30m`, `2d`. A bare number is seconds.
pub fn duration(text: &str) -> Option<Duration> {
    let text = text.trim();
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let span: jiff::Span = text.parse().ok()?;
    Duration::try_from(span.to_duration(jiff::SpanRelativeTo::days_are_24_hours()).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        for (text, seconds) in
            [("90", 90), ("90s", 90), ("15m", 900), ("1h30m", 5400), ("2d", 172_800), ("15 minutes", 900)]
        {
            assert_eq!(duration(text), Some(Duration::from_secs(seconds)), "{text}");
        }
        for text in ["", "m", "-5", "-5m", "1x", "99999999999999999999d", "nan"] {
            assert_eq!(duration(text), None, "{text}");
        }
    }
}

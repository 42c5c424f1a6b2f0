//! Reading a map of a plan field by field. What does not fit is reported and read as absent, so that one mistake does not
//! hide the next.

use std::cell::RefCell;
use std::str::FromStr;
use std::time::Duration;

use super::yaml::{Node, Value, YamlEntry};
use crate::file_problem::{FileProblem, ProblemList, TextSpan};
use crate::nearest::nearest;
use crate::words::UnknownWord;

/// The keys that a map may have, besides those that are read.
pub(crate) struct Keys {
    /// What the map is, for messages.
    pub(crate) of: &'static str,
    /// Keys that are accepted and mean nothing.
    pub(crate) ignored: &'static [&'static str],
    /// Other names that are read as a known one: alias, name.
    pub(crate) aliases: &'static [(&'static str, &'static str)],
    /// Names that other tools have for a known one. Taken for a mistake, with the right name as the hint.
    pub(crate) elsewhere: &'static [(&'static str, &'static str)],
    /// Known keys without which nothing unwanted is run or merged. A misspelling of one is a warning; of any other it is an
    /// error.
    pub(crate) harmless: &'static [&'static str],
}

impl Keys {
    pub(crate) const NONE: Keys = Keys { of: "", ignored: &[], aliases: &[], elsewhere: &[], harmless: &[] };
}

/// The fields of a map, read one by one. When all are read, the other keys are reported.
pub(crate) struct MapFields<'n, 'f> {
    node: &'n Node,
    keys: &'static Keys,
    /// The keys that were asked for.
    known: RefCell<Vec<&'static str>>,
    pub(crate) found: &'f mut ProblemList,
}

impl Drop for MapFields<'_, '_> {
    /// Reports keys that are unknown, misspelt or given twice.
    fn drop(&mut self) {
        let Self { node, keys, known, found } = self;
        let known = known.get_mut();
        known.extend(keys.ignored);
        let mut seen: Vec<(&str, &YamlEntry)> = Vec::new();
        for entry in node.entries() {
            let at = entry.key.at;
            let Some(typed) = entry.name() else {
                found.error(at, "a key should be a word");
                continue;
            };
            let alias = keys.aliases.iter().find(|(alias, _)| *alias == typed);
            let name = alias.map_or(typed, |(_, name)| name);
            if known.contains(&name) {
                if let Some((_, first)) = seen.iter().find(|(seen, _)| *seen == name) {
                    let twice = found.error(at, format!("`{name}` is given twice"));
                    twice.add_span(first.key.at, "first").add_hint("keep one of them");
                }
                seen.push((name, entry));
                continue;
            }
            let elsewhere = keys.elsewhere.iter().find(|(other, _)| *other == typed).map(|(_, name)| *name);
            let meant = elsewhere.or_else(|| nearest(typed, known.iter().copied()));
            let problem = match meant {
                Some(meant) if !keys.harmless.contains(&meant) => {
                    found.error(at, format!("{} has no `{typed}`", keys.of))
                }
                _ => found.warning(at, format!("{} has no `{typed}`; it has no effect", keys.of)),
            };
            problem.hint = meant.map(|meant| format!("did you mean `{meant}`?"));
        }
    }
}

impl<'n, 'f> MapFields<'n, 'f> {
    pub(crate) fn open(node: &'n Node, keys: &'static Keys, found: &'f mut ProblemList) -> Option<Self> {
        if !matches!(node.value, Value::Map(..)) {
            found.error(node.at, format!("{} should be a map, this is {}", keys.of, node.kind()));
            return None;
        }
        Some(Self { node, keys, known: RefCell::default(), found })
    }

    pub(crate) fn error(&mut self, at: TextSpan, message: impl Into<String>) -> &mut FileProblem {
        self.found.error(at, message)
    }

    /// The value of a field, if it has one.
    pub(crate) fn node(&self, key: &'static str) -> Option<&'n Node> {
        self.known.borrow_mut().push(key);
        self.node
            .get(key)
            .or_else(|| {
                let mut aliases = self.keys.aliases.iter().filter(|(_, name)| *name == key);
                aliases.find_map(|(alias, _)| self.node.get(alias))
            })
            .map(|entry| &entry.value)
            .filter(|node| !node.is_null())
    }

    fn wrong<T>(&mut self, node: &Node, key: &str, wanted: &str) -> Option<T> {
        let shown = match &node.value {
            Value::Scalar { text, .. } => format!("`{}`", text.chars().take(40).collect::<String>()),
            _ => node.kind().to_owned(),
        };
        self.error(node.at, format!("`{key}` should be {wanted}, this is {shown}"));
        None
    }

    pub(crate) fn text(&mut self, key: &'static str) -> Option<String> {
        self.text_at(key).map(|(text, _)| text)
    }

    pub(crate) fn text_at(&mut self, key: &'static str) -> Option<(String, TextSpan)> {
        let node = self.node(key)?;
        match &node.value {
            Value::Scalar { text, .. } => Some((text.clone(), node.at)),
            _ => self.wrong(node, key, "text"),
        }
    }

    /// Text that may be left empty.
    pub(crate) fn words(&mut self, key: &'static str) -> Option<String> {
        self.text(key).filter(|text| !text.trim().is_empty())
    }

    fn read<T>(&mut self, key: &'static str, wanted: &str, read: impl Fn(&str) -> Option<T>) -> Option<T> {
        let node = self.node(key)?;
        let value = match &node.value {
            Value::Scalar { text, .. } => read(text),
            _ => None,
        };
        value.or_else(|| self.wrong(node, key, wanted))
    }

    pub(crate) fn count(&mut self, key: &'static str) -> Option<u32> {
        self.read(key, "a whole number, 0 or more", |text| text.parse().ok())
    }

    pub(crate) fn count_from_1(&mut self, key: &'static str) -> Option<u32> {
        self.read(key, "a whole number, 1 or more", |text| text.parse().ok().filter(|n| *n >= 1))
    }

    /// Money and shares of it.
    pub(crate) fn amount(&mut self, key: &'static str) -> Option<f64> {
        self.read(key, "a number, 0 or more", |text| text.parse().ok().filter(|n: &f64| n.is_finite() && *n >= 0.0))
    }

    pub(crate) fn switch(&mut self, key: &'static str) -> Option<bool> {
        self.read(key, "true or false", as_bool)
    }

    pub(crate) fn duration(&mut self, key: &'static str) -> Option<Duration> {
        self.read(key, "a duration such as 90s, 15m or 1h30m", |text| duration(text).filter(|d| !d.is_zero()))
    }

    /// A word of an enum.
    pub(crate) fn choice<T: FromStr<Err = UnknownWord>>(&mut self, key: &'static str) -> Option<T> {
        let node = self.node(key)?;
        let Value::Scalar { text, .. } = &node.value else { return self.wrong(node, key, "a word") };
        let unknown = |error: UnknownWord| {
            self.error(node.at, format!("`{text}` is no {key}")).add_hint(error.hint());
        };
        text.parse().map_err(unknown).ok()
    }

    /// A list of words. A single word is a list of one.
    pub(crate) fn list(&mut self, key: &'static str) -> Option<Vec<&'n Node>> {
        let node = self.node(key)?;
        let items: Vec<&Node> = match &node.value {
            Value::Scalar { .. } => vec![node],
            Value::List(items) => items.iter().collect(),
            Value::Map(..) => return self.wrong(node, key, "a list"),
        };
        let (words, others): (Vec<&Node>, Vec<&Node>) =
            items.into_iter().partition(|item| matches!(item.value, Value::Scalar { .. }) && !item.is_null());
        for other in others {
            self.error(other.at, format!("`{key}` lists words, this is {}", other.kind()));
        }
        Some(words)
    }

    pub(crate) fn words_of(&mut self, key: &'static str) -> Option<Vec<String>> {
        Some(self.list(key)?.into_iter().map(word).collect())
    }

    pub(crate) fn map(&mut self, key: &'static str, keys: &'static Keys) -> Option<MapFields<'n, '_>> {
        let node = self.node(key)?;
        MapFields::open(node, keys, self.found)
    }
}

pub(crate) fn word(node: &Node) -> String {
    match &node.value {
        Value::Scalar { text, .. } => text.clone(),
        _ => String::new(),
    }
}

pub(crate) fn as_bool(text: &str) -> Option<bool> {
    // The words of YAML 1.1 too: the files of the tool we follow were read by that.
    match text.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" => Some(true),
        "false" | "no" | "off" => Some(false),
        _ => None,
    }
}

/// `90`, `90s`, `15m`, `1h30m`, `2d`. A bare number is seconds.
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

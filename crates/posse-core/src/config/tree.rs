//! TOML, YAML and JSON as one tree that knows the span of every value.

use serde_json::value::RawValue;
use toml::de::{DeTable, DeValue};

use crate::file_problem::{FileProblem, TextSpan};
use crate::plan::yaml;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct ConfigNode {
    pub(super) at: TextSpan,
    pub(super) value: NodeValue,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum NodeValue {
    /// `null`, or a YAML key without a value.
    Nothing,
    Text(String),
    Bool(bool),
    Whole(i64),
    Fraction(f64),
    /// A type that no key has: a date, a number that is too large.
    Other(&'static str),
    List(Vec<ConfigNode>),
    Table(Vec<TableEntry>),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct TableEntry {
    pub(super) name: String,
    /// The span of the name.
    pub(super) at: TextSpan,
    pub(super) node: ConfigNode,
}

const TOO_LARGE: NodeValue = NodeValue::Other("a number that is too large");

impl ConfigNode {
    /// Describes the value for a message that something else was expected.
    pub(super) fn describe(&self) -> String {
        match &self.value {
            NodeValue::Nothing => "nothing".into(),
            NodeValue::Text(text) => format!("the text {:?}", text.chars().take(40).collect::<String>()),
            NodeValue::Bool(on) => on.to_string(),
            NodeValue::Whole(number) => number.to_string(),
            NodeValue::Fraction(number) => number.to_string(),
            NodeValue::Other(kind) => (*kind).into(),
            NodeValue::List(_) => "a list".into(),
            NodeValue::Table(_) => "a table".into(),
        }
    }

    pub(super) fn text(&self) -> Option<&str> {
        match &self.value {
            NodeValue::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn whole(&self) -> Option<i64> {
        match self.value {
            NodeValue::Whole(number) => Some(number),
            _ => None,
        }
    }
}

/// The places where lines of a text start, so that the span of a value does not cost a walk through the text.
struct LineIndex<'t> {
    text: &'t str,
    starts: Vec<usize>,
}

impl<'t> LineIndex<'t> {
    fn new(text: &'t str) -> Self {
        let starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Self { text, starts }
    }

    fn span(&self, bytes: std::ops::Range<usize>) -> TextSpan {
        let line = self.starts.partition_point(|start| *start <= bytes.start);
        let start = self.starts[line - 1];
        let column = self.text.get(start..bytes.start).map_or(0, |before| before.chars().count()) + 1;
        TextSpan { start: bytes.start, end: bytes.end, line, column }
    }

    fn toml_table(&self, table: &DeTable<'_>) -> NodeValue {
        let mut entries: Vec<TableEntry> = table
            .iter()
            .map(|(key, value)| TableEntry {
                name: key.get_ref().clone().into_owned(),
                at: self.span(key.span()),
                node: self.toml_value(value),
            })
            .collect();
        // In the order of the file, so that mistakes are reported in that order.
        entries.sort_by_key(|entry| entry.at.start);
        NodeValue::Table(entries)
    }

    fn toml_value(&self, value: &toml::Spanned<DeValue<'_>>) -> ConfigNode {
        let node = match value.get_ref() {
            DeValue::String(text) => NodeValue::Text(text.clone().into_owned()),
            DeValue::Boolean(on) => NodeValue::Bool(*on),
            DeValue::Integer(number) => {
                i64::from_str_radix(number.as_str(), number.radix()).map_or(TOO_LARGE, NodeValue::Whole)
            }
            DeValue::Float(number) => number.as_str().parse().map_or(TOO_LARGE, NodeValue::Fraction),
            DeValue::Datetime(_) => NodeValue::Other("a date"),
            DeValue::Array(items) => NodeValue::List(items.iter().map(|item| self.toml_value(item)).collect()),
            DeValue::Table(table) => self.toml_table(table),
        };
        ConfigNode { at: self.span(value.span()), value: node }
    }

    /// A JSON value. The text is known to be valid, and not deeper than `serde_json` allows.
    fn json_value(&self, raw: &RawValue) -> ConfigNode {
        let start = raw.get().as_ptr() as usize - self.text.as_ptr() as usize;
        let at = self.span(start..start + raw.get().len());
        let value = match raw.get().as_bytes().first() {
            Some(b'{') => {
                let entries = serde_json::from_str::<std::collections::BTreeMap<String, &RawValue>>(raw.get());
                // By name: the specification wants unknown keys in that order.
                let entries = entries.unwrap_or_default().into_iter();
                NodeValue::Table(entries.map(|(name, value)| self.json_entry(name, value)).collect())
            }
            Some(b'[') => {
                let items = serde_json::from_str::<Vec<&RawValue>>(raw.get()).unwrap_or_default();
                NodeValue::List(items.into_iter().map(|item| self.json_value(item)).collect())
            }
            _ => match serde_json::from_str(raw.get()).unwrap_or_default() {
                serde_json::Value::String(text) => NodeValue::Text(text),
                serde_json::Value::Bool(on) => NodeValue::Bool(on),
                serde_json::Value::Number(number) if number.is_f64() => {
                    number.as_f64().map_or(TOO_LARGE, NodeValue::Fraction)
                }
                serde_json::Value::Number(number) => number.as_i64().map_or(TOO_LARGE, NodeValue::Whole),
                _ => NodeValue::Nothing,
            },
        };
        ConfigNode { at, value }
    }

    fn json_entry(&self, name: String, value: &RawValue) -> TableEntry {
        let node = self.json_value(value);
        // The name ends at the last quote before the value. A name with escapes is longer in the file: the value will do.
        let end = self.text[..node.at.start].rfind('"').unwrap_or_default();
        let start = end.saturating_sub(name.len());
        let at = if self.text.get(start..end) == Some(&name) { self.span(start..end) } else { node.at };
        TableEntry { name, at, node }
    }
}

pub(super) fn from_toml(text: &str) -> Result<ConfigNode, FileProblem> {
    let index = LineIndex::new(text);
    let table = DeTable::parse(text).map_err(|error| {
        let at = index.span(error.span().unwrap_or(0..0));
        FileProblem::new(at, format!("not valid TOML: {}", error.message().lines().collect::<Vec<_>>().join(", ")))
    })?;
    Ok(ConfigNode { at: index.span(table.span()), value: index.toml_table(table.get_ref()) })
}

pub(super) fn from_json(text: &str) -> Result<ConfigNode, FileProblem> {
    let index = LineIndex::new(text);
    let body = text.trim_start_matches('\u{feff}');
    let not_json = |error: serde_json::Error| {
        let line = index.starts.get(error.line().max(1) - 1).copied().unwrap_or_default();
        let start = (line + error.column().saturating_sub(1)).min(text.len());
        let what = error.to_string().split(" at line ").next().unwrap_or_default().to_owned();
        FileProblem::new(index.span(start..start), format!("not valid JSON: {what}"))
    };
    // The whole first: it finds every mistake, and bounds the depth.
    serde_json::from_str::<serde_json::Value>(body).map_err(not_json)?;
    let raw = serde_json::from_str::<&RawValue>(body).map_err(not_json)?;
    Ok(index.json_value(raw))
}

pub(super) fn from_yaml(text: &str) -> Result<ConfigNode, FileProblem> {
    // The parser takes a file of nothing but comments for an empty value.
    if text.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#')) {
        return Ok(ConfigNode { at: TextSpan::default(), value: NodeValue::Table(Vec::new()) });
    }
    Ok(yaml_node(&yaml::parse(text)?.root))
}

fn yaml_node(node: &yaml::Node) -> ConfigNode {
    let value = match &node.value {
        _ if node.is_null() => NodeValue::Nothing,
        yaml::Value::Scalar { text, plain: false } => NodeValue::Text(text.clone()),
        yaml::Value::Scalar { text, plain: true } => yaml_scalar(text),
        yaml::Value::List(items) => NodeValue::List(items.iter().map(yaml_node).collect()),
        yaml::Value::Map(entries, _) => {
            let entry = |entry: &yaml::YamlEntry| TableEntry {
                name: entry.name().unwrap_or_default().to_owned(),
                at: entry.key.at,
                node: yaml_node(&entry.value),
            };
            NodeValue::Table(entries.iter().map(entry).collect())
        }
    };
    ConfigNode { at: node.at, value }
}

fn yaml_scalar(text: &str) -> NodeValue {
    if let Some(on) = crate::plan::fields::as_bool(text) {
        return NodeValue::Bool(on);
    }
    if let Ok(number) = text.parse() {
        return NodeValue::Whole(number);
    }
    // `nan` and `inf` are words.
    match text.parse::<f64>() {
        Ok(number) if text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c)) => {
            NodeValue::Fraction(number)
        }
        _ => NodeValue::Text(text.to_owned()),
    }
}

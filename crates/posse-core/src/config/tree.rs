//! TOML, YAML and JSON as one tree that knows the span of every value.

use serde_json::value::RawValue;
use toml::de::{DeTable, DeValue};

use crate::file_problem::{FileProblem, TextSpan};
use crate::plan::fields::as_bool;
use crate::plan::yaml::{self, Node, Notation, Value, YamlEntry};

/// A value by its type. Only unquoted words can be something other than text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Typed<'n> {
    /// `null`, or a YAML key without a value.
    Nothing,
    Text(&'n str),
    Bool(bool),
    Whole(i64),
    Fraction(f64),
    List(&'n [Node]),
    Table(&'n [YamlEntry]),
}

pub(crate) fn typed(node: &Node) -> Typed<'_> {
    match &node.value {
        _ if node.is_null() => Typed::Nothing,
        Value::Scalar { text, plain: true } => typed_word(text),
        Value::Scalar { text, plain: false } => Typed::Text(text),
        Value::List(items) => Typed::List(items),
        Value::Map(entries, _) => Typed::Table(entries),
    }
}

fn typed_word(text: &str) -> Typed<'_> {
    if let Some(on) = as_bool(text) {
        return Typed::Bool(on);
    }
    if let Ok(number) = text.parse() {
        return Typed::Whole(number);
    }
    // `nan` and `inf` are words.
    match text.parse() {
        Ok(number) if text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c)) => Typed::Fraction(number),
        _ => Typed::Text(text),
    }
}

/// Describes a value for a message about an unexpected type.
pub(super) fn describe(node: &Node) -> String {
    match typed(node) {
        Typed::Nothing => "nothing".into(),
        Typed::Text(text) => format!("the text {:?}", text.chars().take(40).collect::<String>()),
        Typed::Bool(on) => on.to_string(),
        Typed::Whole(number) => number.to_string(),
        Typed::Fraction(number) => number.to_string(),
        Typed::List(_) => "a list".into(),
        Typed::Table(_) => "a table".into(),
    }
}

/// The start offsets of a text's lines, so that spans are computed without scanning the text.
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

    fn toml_table(&self, table: &DeTable<'_>) -> Value {
        let entry = |(key, value): (&toml::Spanned<_>, _)| {
            let name: &std::borrow::Cow<'_, str> = key.get_ref();
            YamlEntry { key: Node::scalar(self.span(key.span()), &**name, false), value: self.toml_value(value) }
        };
        let mut entries: Vec<YamlEntry> = table.iter().map(entry).collect();
        // In the order of the file, so that errors are reported in that order.
        entries.sort_by_key(|entry| entry.key.at.start);
        Value::Map(entries, Notation::Block)
    }

    fn toml_value(&self, value: &toml::Spanned<DeValue<'_>>) -> Node {
        let at = self.span(value.span());
        let value = match value.get_ref() {
            DeValue::String(text) => return Node::scalar(at, &**text, false),
            DeValue::Datetime(time) => return Node::scalar(at, time.to_string(), false),
            DeValue::Boolean(on) => return Node::scalar(at, on.to_string(), true),
            DeValue::Integer(number) => {
                let whole = i64::from_str_radix(number.as_str(), number.radix());
                return Node::scalar(at, whole.map_or_else(|_| number.to_string(), |whole| whole.to_string()), true);
            }
            DeValue::Float(number) => return Node::scalar(at, number.as_str(), true),
            DeValue::Array(items) => Value::List(items.iter().map(|item| self.toml_value(item)).collect()),
            DeValue::Table(table) => self.toml_table(table),
        };
        Node { at, value }
    }

    /// Converts a JSON value. The text is known to be valid, and within the depth limit of `serde_json`.
    fn json_value(&self, raw: &RawValue) -> Node {
        let start = raw.get().as_ptr() as usize - self.text.as_ptr() as usize;
        let at = self.span(start..start + raw.get().len());
        let value = match raw.get().as_bytes().first() {
            Some(b'{') => {
                let entries = serde_json::from_str::<std::collections::BTreeMap<String, &RawValue>>(raw.get());
                // Sorted by name: the specification requires unknown keys in that order.
                let entries = entries.unwrap_or_default().into_iter();
                Value::Map(entries.map(|(name, value)| self.json_entry(&name, value)).collect(), Notation::Flow)
            }
            Some(b'[') => {
                let items = serde_json::from_str::<Vec<&RawValue>>(raw.get()).unwrap_or_default();
                Value::List(items.into_iter().map(|item| self.json_value(item)).collect())
            }
            Some(b'"') => {
                return Node::scalar(at, serde_json::from_str::<String>(raw.get()).unwrap_or_default(), false);
            }
            _ => return Node::scalar(at, raw.get(), true),
        };
        Node { at, value }
    }

    fn json_entry(&self, name: &str, value: &RawValue) -> YamlEntry {
        let value = self.json_value(value);
        // The name ends at the last quote before the value. For a name with escapes, whose length differs, the value's
        // span is used.
        let end = self.text[..value.at.start].rfind('"').unwrap_or_default();
        let start = end.saturating_sub(name.len());
        let at = if self.text.get(start..end) == Some(name) { self.span(start..end) } else { value.at };
        YamlEntry { key: Node::scalar(at, name, false), value }
    }
}

pub(super) fn from_toml(text: &str) -> Result<Node, FileProblem> {
    let index = LineIndex::new(text);
    let table = DeTable::parse(text).map_err(|error| {
        let at = index.span(error.span().unwrap_or(0..0));
        FileProblem::new(at, format!("not valid TOML: {}", error.message().lines().collect::<Vec<_>>().join(", ")))
    })?;
    Ok(Node { at: index.span(table.span()), value: index.toml_table(table.get_ref()) })
}

pub(super) fn from_json(text: &str) -> Result<Node, FileProblem> {
    let index = LineIndex::new(text);
    let body = text.trim_start_matches('\u{feff}');
    let not_json = |error: serde_json::Error| {
        let line = index.starts.get(error.line().max(1) - 1).copied().unwrap_or_default();
        let start = (line + error.column().saturating_sub(1)).min(text.len());
        let what = error.to_string().split(" at line ").next().unwrap_or_default().to_owned();
        FileProblem::new(index.span(start..start), format!("not valid JSON: {what}"))
    };
    // Parsing the whole text first finds every error, and bounds the depth.
    serde_json::from_str::<serde_json::Value>(body).map_err(not_json)?;
    let raw = serde_json::from_str::<&RawValue>(body).map_err(not_json)?;
    Ok(index.json_value(raw))
}

pub(super) fn from_yaml(text: &str) -> Result<Node, FileProblem> {
    // The parser returns an empty value for a file that has only comments.
    if text.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#')) {
        return Ok(Node { at: TextSpan::default(), value: Value::Map(Vec::new(), Notation::Block) });
    }
    Ok(yaml::parse(text)?.root)
}

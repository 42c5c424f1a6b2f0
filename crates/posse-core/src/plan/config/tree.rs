//! TOML and YAML as one kind of tree, which remembers where everything stood.

use toml::de::{DeTable, DeValue};

use crate::file_problem::{FileProblem, TextSpan};
use crate::plan::yaml;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node {
    pub(super) at: TextSpan,
    pub(super) value: Value,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    /// A key without a value, which only YAML has.
    Nothing,
    Text(String),
    Switch(bool),
    Whole(i64),
    Fraction(f64),
    /// Of a kind that no key has: a date, a number beyond all sense.
    Other(&'static str),
    List(Vec<Node>),
    Table(Vec<(String, TextSpan, Node)>),
}

impl Node {
    /// What it is, for a sentence that says it should be something else.
    pub(super) fn kind(&self) -> String {
        match &self.value {
            Value::Nothing => "nothing".into(),
            Value::Text(text) => format!("the text {:?}", text.chars().take(40).collect::<String>()),
            Value::Switch(on) => on.to_string(),
            Value::Whole(number) => number.to_string(),
            Value::Fraction(number) => number.to_string(),
            Value::Other(kind) => (*kind).into(),
            Value::List(_) => "a list".into(),
            Value::Table(_) => "a table".into(),
        }
    }

    pub(super) fn entries(&self) -> &[(String, TextSpan, Node)] {
        match &self.value {
            Value::Table(entries) => entries,
            _ => &[],
        }
    }
}

pub(super) fn from_toml(text: &str) -> Result<Node, FileProblem> {
    let places = Places { text };
    let table = DeTable::parse(text).map_err(|error| {
        let at = places.of(error.span().unwrap_or(0..0));
        FileProblem::new(at, format!("not valid TOML: {}", error.message().lines().collect::<Vec<_>>().join(", ")))
    })?;
    let at = places.of(table.span());
    Ok(Node { at, value: places.table(table.get_ref()) })
}

struct Places<'t> {
    text: &'t str,
}

impl Places<'_> {
    fn of(&self, bytes: std::ops::Range<usize>) -> TextSpan {
        let before = self.text.get(..bytes.start).unwrap_or(self.text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        TextSpan { start: bytes.start, end: bytes.end, line, column }
    }

    fn table(&self, table: &DeTable<'_>) -> Value {
        let mut entries: Vec<(String, TextSpan, Node)> = table
            .iter()
            .map(|(key, value)| {
                let node = Node { at: self.of(value.span()), value: self.value(value.get_ref()) };
                (key.get_ref().clone().into_owned(), self.of(key.span()), node)
            })
            .collect();
        // As they stand in the file, so that mistakes are told in that order.
        entries.sort_by_key(|(_, at, _)| at.start);
        Value::Table(entries)
    }

    fn value(&self, value: &DeValue<'_>) -> Value {
        match value {
            DeValue::String(text) => Value::Text(text.clone().into_owned()),
            DeValue::Boolean(on) => Value::Switch(*on),
            DeValue::Integer(number) => {
                let number = i64::from_str_radix(number.as_str(), number.radix());
                number.map_or(Value::Other("a number beyond all sense"), Value::Whole)
            }
            DeValue::Float(number) => {
                number.as_str().parse().map_or(Value::Other("a number beyond all sense"), Value::Fraction)
            }
            DeValue::Datetime(_) => Value::Other("a date"),
            DeValue::Array(items) => {
                let node = |item: &toml::Spanned<DeValue<'_>>| Node {
                    at: self.of(item.span()),
                    value: self.value(item.get_ref()),
                };
                Value::List(items.iter().map(node).collect())
            }
            DeValue::Table(table) => self.table(table),
        }
    }
}

pub(super) fn from_yaml(text: &str) -> Result<Node, FileProblem> {
    // A file of nothing but comments says nothing.
    if text.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#')) {
        return Ok(Node { at: TextSpan::default(), value: Value::Table(Vec::new()) });
    }
    Ok(yaml_node(&yaml::parse(text)?.root))
}

fn yaml_node(node: &yaml::Node) -> Node {
    let value = match &node.value {
        _ if node.is_null() => Value::Nothing,
        yaml::Value::Scalar { text, plain: false } => Value::Text(text.clone()),
        yaml::Value::Scalar { text, plain: true } => scalar(text),
        yaml::Value::List(items) => Value::List(items.iter().map(yaml_node).collect()),
        yaml::Value::Map(entries, _) => {
            let entry = |entry: &yaml::Entry| {
                (entry.name().unwrap_or_default().to_owned(), entry.key.at, yaml_node(&entry.value))
            };
            Value::Table(entries.iter().map(entry).collect())
        }
    };
    Node { at: node.at, value }
}

fn scalar(text: &str) -> Value {
    if let Some(on) = crate::plan::fields::as_bool(text) {
        return Value::Switch(on);
    }
    if let Ok(number) = text.parse() {
        return Value::Whole(number);
    }
    // `nan` and `inf` are words.
    match text.parse::<f64>() {
        Ok(number) if text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c)) => Value::Fraction(number),
        _ => Value::Text(text.to_owned()),
    }
}

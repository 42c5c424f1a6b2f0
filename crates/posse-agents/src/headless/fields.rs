//! Optional fields of a JSON line, of any type.

use serde_json::Value;

const SUMMARY_LENGTH: usize = 80;

pub(super) fn text<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    value.get(name)?.as_str()
}

pub(super) fn owned(value: &Value, name: &str) -> Option<String> {
    text(value, name).map(str::to_owned)
}

pub(super) fn number(value: &Value, name: &str) -> Option<u64> {
    value.get(name)?.as_u64()
}

pub(super) fn status(value: &Value, name: &str) -> Option<u16> {
    number(value, name)?.try_into().ok()
}

pub(super) fn list<'a>(value: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    value.get(name).and_then(Value::as_array).into_iter().flatten()
}

pub(super) fn shortened(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or_default();
    let mut short: String = line.chars().take(SUMMARY_LENGTH).collect();
    if short.len() < text.trim().len() {
        short.push('…');
    }
    short
}

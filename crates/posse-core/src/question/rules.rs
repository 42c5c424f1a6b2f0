//! Manifest rules for the input of a tool and its appearance in a dialog.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::compare::ink;
use super::{CAPTION_TEXT, QuestionReport, REPORT_TEXT, ReportedParts, bounded};
use crate::audit::Hash;
use crate::status::{Source, WaitingKind};

/// The maximum number of strings of an input that is compared.
const MOST_VALUES: usize = 256;

/// One tool. Members are named by `a.b`; a member that the input lacks counts as absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReportedToolRule {
    /// The names under which it is reported.
    pub names: Vec<String>,
    /// Members whose text the dialog shows verbatim, such as a command.
    #[serde(default)]
    pub text: Vec<String>,
    /// Members with a path. The dialog may shorten it.
    #[serde(default)]
    pub path: Vec<String>,
    /// Members with the text before and after a change.
    pub change: Option<(String, String)>,
    /// Members with the model's own words. They prove nothing and need not be on the screen.
    #[serde(default)]
    pub caption: Vec<String>,
    /// The tool's name in `[[screen.dialog.tool]]`. Empty: not compared.
    #[serde(default)]
    pub screen: Vec<String>,
}

/// Returns a member of a value, named by `a.b`.
pub(crate) fn member<'v>(value: &'v Value, path: &str) -> Option<&'v Value> {
    path.split('.').try_fold(value, |value, name| value.get(name))
}

/// Returns the size of an input as JSON, and its hash. Members of objects are ordered, so equal inputs hash equally.
pub(crate) fn input_hash(input: &Value) -> (u64, Hash) {
    let text = input.to_string();
    (text.len() as u64, Hash::of_text(&text))
}

impl QuestionReport {
    /// Creates a report by the rules of its agent. `None` as input means that it was too large to be passed on. The
    /// number is assigned when the report is filed.
    pub(crate) fn new(
        source: Source,
        kind: Option<WaitingKind>,
        tool: &str,
        input: Option<&Value>,
        rules: &[ReportedToolRule],
    ) -> Self {
        let empty = Value::Null;
        let rule = rules.iter().find(|rule| rule.names.iter().any(|name| name == tool));
        let (input_bytes, input_sha256) = input_hash(input.unwrap_or(&empty));
        let (parts, text, caption) = match (input, rule) {
            (None, _) => {
                let parts = ReportedParts { too_large: true, ..ReportedParts::default() };
                (parts, "(too large to be passed on)".to_owned(), None)
            }
            (Some(input), Some(rule)) => known(input, rule),
            (Some(input), None) => {
                let mut values = Vec::new();
                strings(input, &mut values);
                // Names of MCP tools contain the names of the server and the tool.
                values.extend(tool.split("__").skip(1).map(str::to_owned));
                let text = match input.as_object() {
                    Some(members) if members.is_empty() => String::new(),
                    _ => serde_json::to_string_pretty(input).unwrap_or_default(),
                };
                let too_large = values.len() > MOST_VALUES;
                let values = values.iter().take(MOST_VALUES).map(|value| (ink(value), ink(&quoted(value)))).collect();
                (ReportedParts { values, too_large, ..ReportedParts::default() }, text, None)
            }
        };
        let text = bounded(&text, REPORT_TEXT);
        let caption = caption.map(|caption| bounded(&caption, CAPTION_TEXT));
        Self { source, number: 0, kind, tool: tool.to_owned(), text, caption, input_bytes, input_sha256, parts }
    }
}

fn known(input: &Value, rule: &ReportedToolRule) -> (ReportedParts, String, Option<String>) {
    let text = |path: &String| member(input, path).and_then(Value::as_str).map(str::to_owned);
    let all = |paths: &[String]| paths.iter().filter_map(text).collect::<Vec<String>>();
    let texts = all(&rule.text);
    let paths = all(&rule.path);
    let change = rule.change.as_ref().and_then(|(before, after)| text(before).zip(text(after)));
    // Members without a rule are shown to people and must not be hidden.
    let mut named: Vec<&str> =
        [&rule.text, &rule.path, &rule.caption].into_iter().flatten().map(String::as_str).collect();
    named.extend(rule.change.iter().flat_map(|(before, after)| [before.as_str(), after.as_str()]));
    let others = input.as_object().into_iter().flatten().filter(|(name, _)| !named.contains(&name.as_str()));
    let others: Vec<String> = others.map(|(name, value)| format!("{name}: {value}")).collect();
    let lines = |sign: &str, text: &str| text.lines().map(|line| format!("{sign}{line}")).collect::<Vec<_>>();
    let mut shown: Vec<String> = paths.clone();
    shown.extend(texts.iter().cloned());
    if let Some((before, after)) = &change {
        shown.extend(lines("-", before));
        shown.extend(lines("+", after));
    }
    shown.extend(others);
    let caption = all(&rule.caption);
    let parts = ReportedParts {
        text: texts.iter().map(|text| ink(text)).collect(),
        paths: paths.iter().map(|path| ink(path)).collect(),
        changes: change.iter().map(|(before, after)| (ink(before), ink(after))).collect(),
        values: Vec::new(),
        screen_tools: rule.screen.clone(),
        too_large: false,
    };
    (parts, shown.join("\n"), (!caption.is_empty()).then(|| caption.join("\n")))
}

/// Returns a string as in JSON, without its quotes.
fn quoted(text: &str) -> String {
    let quoted = Value::from(text).to_string();
    quoted.strip_prefix('"').and_then(|quoted| quoted.strip_suffix('"')).unwrap_or(&quoted).to_owned()
}

fn strings(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) => found.push(text.clone()),
        Value::Array(values) => values.iter().for_each(|value| strings(value, found)),
        Value::Object(members) => members.values().for_each(|value| strings(value, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

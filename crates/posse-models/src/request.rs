//! What an agent asks a model, whatever the protocol.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::Value;

#[derive(Clone, Debug, Default)]
pub(crate) struct Asked {
    pub(crate) model: String,
    pub(crate) streamed: bool,
    /// The first and the newest thing the user said; what the agent puts beside it is left out.
    pub(crate) opening: String,
    pub(crate) user_text: String,
    /// What the agent has put beside it, such as the project's instructions. Claude Code only.
    pub(crate) reminders: String,
    pub(crate) tool_results: Vec<ToolResult>,
    pub(crate) offered: Vec<Offered>,
    pub(crate) kind: Kind,
    /// Where the agent says that it works.
    pub(crate) directory: Option<String>,
    /// How many times the user said something and a tool answered, so far.
    pub(crate) heard: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Kind {
    #[default]
    Conversation,
    /// The conversation of a helper that the agent started.
    Subagent,
    /// Something the agent asks for itself; with what to answer.
    Side { name: &'static str, answer: &'static str },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolResult {
    /// Of the call it answers.
    pub id: String,
    pub text: String,
    /// Only where the protocol says so.
    pub is_error: bool,
}

/// A tool that the agent offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Offered {
    pub(crate) name: String,
    /// The group it is called by, in the Responses API.
    pub(crate) namespace: Option<String>,
    /// Takes text instead of JSON.
    pub(crate) freeform: bool,
}

impl Asked {
    /// The same for a request and its repetitions, different for any other of the conversation. Codex repeats a
    /// request with what it already heard of the answer, so that must not count.
    pub(crate) fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (&self.opening, &self.user_text, self.heard).hash(&mut hasher);
        hasher.finish()
    }

    pub(crate) fn offers(&self, name: &str) -> Option<&Offered> {
        self.offered.iter().find(|tool| tool.name == name)
    }
}

/// The text of a message's content: a string, or a list of parts of which some have text.
pub(crate) fn texts(content: &Value) -> Vec<&str> {
    match content {
        Value::String(text) => vec![text],
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        _ => Vec::new(),
    }
}

pub(crate) fn string(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

pub(crate) fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// The reminders that an agent has woven into this text.
pub(crate) fn reminders(text: &str) -> impl Iterator<Item = &str> {
    text.split("<system-reminder>").skip(1).filter_map(|after| after.split("</system-reminder>").next())
}

/// What a person said in this text: without the reminders that agents weave in, and nothing at all if the agent
/// itself is speaking in the user's name.
pub(crate) fn said(text: &str, not_the_user: &[&str]) -> Option<String> {
    let mut rest = text;
    let mut kept = String::new();
    while let Some((before, after)) = rest.split_once("<system-reminder>") {
        kept.push_str(before);
        rest = after.split_once("</system-reminder>").map_or("", |(_, after)| after);
    }
    kept.push_str(rest);
    let kept = kept.trim();
    let theirs = kept.is_empty() || not_the_user.iter().any(|start| kept.starts_with(start));
    (!theirs).then(|| kept.to_owned())
}

#[cfg(test)]
mod tests {
    use super::{reminders, said};

    #[test]
    fn only_what_a_person_said() {
        let reminded = "<system-reminder>be good</system-reminder>\nport it<system-reminder>x</system-reminder>";
        assert_eq!(said(reminded, &[]).as_deref(), Some("port it"));
        assert_eq!(reminders(reminded).collect::<Vec<_>>(), ["be good", "x"]);
        assert_eq!(said("<system-reminder>never closed", &[]), None);
        assert_eq!(said("<environment_context>…", &["<environment_context"]), None);
    }
}

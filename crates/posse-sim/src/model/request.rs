//! A request of an agent to a model, independent of the protocol.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::Value;

#[derive(Clone, Debug, Default)]
pub struct ModelRequest {
    pub role: RequestRole,
    pub model: String,
    pub streamed: bool,
    /// The last message of the user, without additions of the agent.
    pub user_text: String,
    /// The text that Claude Code adds to the user's, such as project instructions.
    pub reminders: String,
    /// The tool results since the model's last reply.
    pub tool_results: Vec<ModelToolResult>,
    pub(crate) opening: String,
    pub(crate) offered: Vec<OfferedTool>,
    pub(crate) kind: RequestKind,
    /// The directory of the agent, if the request names it.
    pub(crate) directory: Option<String>,
    /// The number of user messages and tool results so far.
    pub(crate) heard: usize,
}

/// The relation of a request to the scenarios.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestRole {
    /// The request plays a turn (`None` when the script is over). `attempt` counts the requests for it from 1.
    Turn { scenario: usize, turn: Option<usize>, attempt: u32 },
    /// A request of the agent itself, such as one for a title. It uses no turn.
    Side(&'static str),
}

impl Default for RequestRole {
    fn default() -> Self {
        RequestRole::Side("")
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum RequestKind {
    #[default]
    Conversation,
    /// The conversation of a subagent.
    Subagent,
    /// A request of the agent itself, and its answer.
    Side { name: &'static str, answer: &'static str },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelToolResult {
    pub id: String,
    pub text: String,
    /// Set only if the protocol has this.
    pub is_error: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OfferedTool {
    pub(crate) name: String,
    /// The tool group in the Responses API.
    pub(crate) namespace: Option<String>,
    /// Takes text instead of JSON.
    pub(crate) freeform: bool,
}

impl ModelRequest {
    /// Reads what all protocols have in common. `messages` is the conversation; `results` returns the tool results in one
    /// of its messages.
    pub(crate) fn new(
        body: &Value,
        messages: &[Value],
        not_the_user: &[&str],
        results: impl Fn(&Value) -> Vec<ModelToolResult>,
    ) -> ModelRequest {
        let said: Vec<String> = user_texts(messages).filter_map(|text| said(text, not_the_user)).collect();
        let is_models = |message: &Value| {
            message["role"] == "assistant" || message["type"].as_str().is_some_and(|kind| kind.ends_with("_call"))
        };
        let unanswered = messages.iter().rposition(is_models).map_or(0, |at| at + 1);
        ModelRequest {
            model: string(&body["model"]),
            streamed: body["stream"] == true,
            opening: said.first().cloned().unwrap_or_default(),
            user_text: said.last().cloned().unwrap_or_default(),
            tool_results: messages[unanswered..].iter().flat_map(&results).collect(),
            heard: said.len() + messages.iter().flat_map(&results).count(),
            ..ModelRequest::default()
        }
    }

    /// The number of this attempt at its turn, from 1.
    pub(crate) fn attempt(&self) -> u32 {
        if let RequestRole::Turn { attempt, .. } = self.role { attempt } else { 1 }
    }

    /// Returns a value that is the same for a request and its repetitions only. Codex repeats a request with the part of
    /// the reply it already got, so replies do not count.
    pub(crate) fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (&self.opening, &self.user_text, self.heard).hash(&mut hasher);
        hasher.finish()
    }

    pub(crate) fn offers(&self, name: &str) -> Option<&OfferedTool> {
        self.offered.iter().find(|tool| tool.name == name)
    }
}

/// Returns the texts of a message's content, which is a string or a list of parts.
pub(crate) fn texts(content: &Value) -> Vec<&str> {
    match content {
        Value::String(text) => vec![text],
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        _ => Vec::new(),
    }
}

pub(crate) fn user_texts(messages: &[Value]) -> impl Iterator<Item = &str> {
    let is_said =
        |message: &&Value| message["role"] == "user" && matches!(message["type"].as_str(), None | Some("message"));
    messages.iter().filter(is_said).flat_map(|message| texts(&message["content"]))
}

pub(crate) fn string(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

pub(crate) fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

pub(crate) fn reminders(text: &str) -> impl Iterator<Item = &str> {
    text.split("<system-reminder>").skip(1).filter_map(|after| after.split("</system-reminder>").next())
}

/// Returns what the user said in this text: without the agent's reminders, and `None` if the agent itself speaks in the
/// user's name.
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
    fn additions_of_the_agent_are_removed() {
        let reminded = "<system-reminder>be good</system-reminder>\nport it<system-reminder>x</system-reminder>";
        assert_eq!(said(reminded, &[]).as_deref(), Some("port it"));
        assert_eq!(reminders(reminded).collect::<Vec<_>>(), ["be good", "x"]);
        assert_eq!(said("<system-reminder>never closed", &[]), None);
        assert_eq!(said("<environment_context>…", &["<environment_context"]), None);
    }
}

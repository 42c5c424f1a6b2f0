//! `codex exec --json`, versions 0.145.0 and 0.166.0.
//!
//! Failures, including limits, are plain texts. A refused patch, or a command that needs more than the sandbox, appears
//! only on standard error. A command stopped by the sandbox counts as failed, if it appears: some do not, and some
//! begin and never end. Prices are not reported. Input tokens include cached tokens.

use std::collections::BTreeSet;

use serde_json::Value;

use super::event::{End, Event, Limit, LimitSource, Reason, Tokens, Usage};
use super::fields::{list, number, owned, shortened, text};
use super::texts::HeadlessRules;

#[derive(Debug, Default)]
pub struct CodexStream {
    begun: BTreeSet<String>,
    last_words: String,
}

impl CodexStream {
    pub fn line(&mut self, line: &Value, texts: &HeadlessRules) -> Vec<Event> {
        match text(line, "type").unwrap_or_default() {
            "thread.started" => {
                vec![Event::Started { session: owned(line, "thread_id"), model: None, version: None }]
            }
            "turn.started" => Vec::new(),
            "item.started" | "item.updated" | "item.completed" => {
                let over = text(line, "type") == Some("item.completed");
                line.get("item").map(|item| self.item(item, over)).unwrap_or_default()
            }
            "error" => {
                let message = plain(text(line, "message"));
                vec![match texts.retry(&message) {
                    Some((attempt, of)) => Event::Retry { attempt, of, status: texts.status(&message) },
                    None => Event::Warning(message),
                }]
            }
            "turn.completed" => self.completed(line),
            "turn.failed" => failed(line, texts),
            kind => vec![Event::Unknown(kind.to_owned())],
        }
    }

    fn item(&mut self, item: &Value, over: bool) -> Vec<Event> {
        let (name, summary) = match text(item, "type").unwrap_or_default() {
            "agent_message" => {
                let said = owned(item, "text").filter(|_| over);
                self.last_words = said.clone().unwrap_or_else(|| std::mem::take(&mut self.last_words));
                return said.map(Event::Said).into_iter().collect();
            }
            "error" => return owned(item, "message").map(Event::Warning).into_iter().collect(),
            "reasoning" | "todo_list" => return Vec::new(),
            "command_execution" => ("command", command(text(item, "command").unwrap_or_default())),
            "file_change" => ("file_change", changes(item)),
            "web_search" => ("web_search", shortened(text(item, "query").unwrap_or_default())),
            "mcp_tool_call" => {
                let part = |name| text(item, name).unwrap_or_default();
                ("mcp_tool_call", format!("{}.{}", part("server"), part("tool")))
            }
            kind => return vec![Event::Unknown(format!("item/{kind}"))],
        };
        let id = owned(item, "id").unwrap_or_default();
        let mut events = Vec::new();
        // Some items end without a start.
        if self.begun.insert(id.clone()) {
            events.push(Event::ToolUse { id: id.clone(), name: name.into(), summary: summary.clone() });
        }
        if over {
            self.begun.remove(&id);
            if text(item, "status") == Some("declined") {
                let why = owned(item, "aggregated_output").filter(|text| !text.is_empty());
                let why = why.unwrap_or_else(|| "declined".into());
                events.push(Event::ToolDenied { name: Some(name.into()), summary: Some(summary), why });
            }
            events.push(Event::ToolDone { id, ok: matches!(text(item, "status"), None | Some("completed")) });
        }
        events
    }

    fn completed(&mut self, line: &Value) -> Vec<Event> {
        let usage = line.get("usage").unwrap_or(&Value::Null);
        let cached = number(usage, "cached_input_tokens");
        let tokens = Tokens {
            input: number(usage, "input_tokens").map(|all| all.saturating_sub(cached.unwrap_or(0))),
            output: number(usage, "output_tokens"),
            cache_read: cached,
            cache_write: number(usage, "cache_write_input_tokens"),
        };
        let text = std::mem::take(&mut self.last_words);
        vec![
            Event::Usage(Usage { tokens, models: Vec::new() }),
            Event::Cost(None),
            Event::Ended(End::told(true, text, Reason::Completed)),
        ]
    }
}

fn failed(line: &Value, texts: &HeadlessRules) -> Vec<Event> {
    let said = plain(line.get("error").and_then(|error| text(error, "message")));
    let status = texts.status(&said);
    let limit = texts.limit(&said).or_else(|| {
        let text = Some(said.clone());
        (status == Some(429)).then_some(Limit { source: LimitSource::Status, kind: None, resets_at: None, text })
    });
    let reason = match status {
        _ if limit.is_some() => Reason::Limit,
        Some(401 | 403) => Reason::SignedOut,
        _ if texts.signed_out(&said) => Reason::SignedOut,
        status => Reason::Api { status },
    };
    let mut events: Vec<Event> = limit.map(Event::Limit).into_iter().collect();
    events.push(Event::Cost(None));
    events.push(Event::Ended(End::told(false, said, reason)));
    events
}

/// Returns an error as text. Some errors are the server's JSON response.
fn plain(message: Option<&str>) -> String {
    let message = message.unwrap_or_default();
    let answer: Option<Value> = serde_json::from_str(message).ok();
    let inner = answer.as_ref().and_then(|answer| answer.pointer("/error/message")?.as_str());
    inner.unwrap_or(message).to_owned()
}

/// Returns the inner command, without the `/bin/bash -lc 'make test'` wrapper of every command.
fn command(line: &str) -> String {
    let inner = line.split_once(" -lc ").map_or(line, |(_, command)| command);
    let unquoted = inner.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
    shortened(unquoted.unwrap_or(inner))
}

fn changes(item: &Value) -> String {
    let one = |change| format!("{} {}", text(change, "kind").unwrap_or("?"), text(change, "path").unwrap_or("?"));
    shortened(&list(item, "changes").map(one).collect::<Vec<_>>().join(", "))
}

//! `claude -p --output-format stream-json --verbose`, versions 2.1.197 and 2.1.325.
//!
//! One answer of the model arrives as several lines with the same id and the same usage. An API error arrives as text
//! of the model, marked by the field `error`. A denial appears up to three times: as a line of its own in newer
//! versions, in the tool's result, and in the final list. One kind appears only in the tool's result (2.1.197: edits
//! that a path rule denies). In a failed session the usage of the last line covers only the last answer.

use std::collections::{BTreeMap, BTreeSet};

use posse_core::plan::budget::ModelUsage;
use serde_json::Value;

use super::event::{End, Event, Limit, LimitSource, Reason, Tokens, Usage};
use super::fields::{list, number, owned, shortened, status, text};
use super::texts::HeadlessRules;

#[derive(Debug, Default)]
pub struct ClaudeStream {
    /// Pending tool calls: name and main argument.
    tools: BTreeMap<String, (String, String)>,
    denied: BTreeSet<String>,
    counted: BTreeSet<String>,
    so_far: Tokens,
    limited: bool,
}

/// The most informative arguments of a tool; the first one present is used.
const MAIN_ARGUMENTS: [&str; 10] =
    ["file_path", "notebook_path", "pattern", "command", "url", "query", "path", "description", "prompt", "skill"];
/// Ignored lines of `system`.
const SILENT: [&str; 5] = ["thinking_tokens", "status", "hook_started", "hook_response", "vcs_state_changed"];

impl ClaudeStream {
    pub fn line(&mut self, line: &Value, texts: &HeadlessRules) -> Vec<Event> {
        let kind = text(line, "type").unwrap_or_default();
        match (kind, text(line, "subtype")) {
            ("system", Some("init")) => vec![Event::Started {
                session: owned(line, "session_id"),
                model: owned(line, "model"),
                version: owned(line, "claude_code_version"),
            }],
            ("system", Some("api_retry")) => vec![Event::Retry {
                attempt: number(line, "attempt").and_then(|count| count.try_into().ok()),
                of: number(line, "max_retries").and_then(|count| count.try_into().ok()),
                status: status(line, "error_status"),
            }],
            ("system", Some("permission_denied")) => {
                let id = text(line, "tool_use_id").unwrap_or_default();
                let name = owned(line, "tool_name");
                let why = text(line, "message").or(text(line, "decision_reason")).unwrap_or_default();
                self.deny(id, name, None, why).into_iter().collect()
            }
            ("system", Some(subtype)) if SILENT.contains(&subtype) => Vec::new(),
            ("system", subtype) => vec![Event::Unknown(format!("system/{}", subtype.unwrap_or_default()))],
            ("assistant", _) => self.assistant(line),
            ("user", _) => self.answers(line, texts),
            ("rate_limit_event", _) => self.rate_limit(line).into_iter().collect(),
            ("result", subtype) => self.result(line, subtype.unwrap_or_default(), texts),
            ("stream_event", _) => Vec::new(),
            (kind, _) => vec![Event::Unknown(kind.to_owned())],
        }
    }

    fn assistant(&mut self, line: &Value) -> Vec<Event> {
        let message = line.get("message").unwrap_or(&Value::Null);
        // The tool itself, not the model, reports an error, and reports it again at the end.
        if text(line, "error").is_some() || text(message, "model") == Some("<synthetic>") {
            return Vec::new();
        }
        let mut events = Vec::new();
        let of_subagent = text(line, "parent_tool_use_id").is_some();
        for block in list(message, "content") {
            match text(block, "type") {
                Some("text") if !of_subagent => events.extend(owned(block, "text").map(Event::Said)),
                Some("tool_use") => {
                    let id = owned(block, "id").unwrap_or_default();
                    let name = owned(block, "name").unwrap_or_default();
                    let summary = block.get("input").map(summary).unwrap_or_default();
                    self.tools.insert(id.clone(), (name.clone(), summary.clone()));
                    events.push(Event::ToolUse { id, name, summary });
                }
                _ => {}
            }
        }
        let id = text(message, "id").unwrap_or_default();
        if let Some(usage) = message.get("usage").filter(|_| !self.counted.contains(id)) {
            self.counted.insert(id.to_owned());
            self.so_far = self.so_far.plus(tokens(usage));
            events.push(Event::Usage(Usage { tokens: self.so_far, models: Vec::new() }));
        }
        events
    }

    fn answers(&mut self, line: &Value, texts: &HeadlessRules) -> Vec<Event> {
        let rejected: Vec<&str> = list(line, "tool_result_meta")
            .filter(|meta| meta.pointer("/permission_decision/decision").and_then(Value::as_str) == Some("reject"))
            .filter_map(|meta| text(meta, "id"))
            .collect();
        let mut events = Vec::new();
        let message = line.get("message").unwrap_or(&Value::Null);
        for block in list(message, "content").filter(|block| text(block, "type") == Some("tool_result")) {
            let id = text(block, "tool_use_id").unwrap_or_default();
            let failed = block.get("is_error").and_then(Value::as_bool).unwrap_or(false);
            let answer = plain(block.get("content"));
            let denied = failed.then(|| texts.denied(&answer)).flatten();
            let denied = denied.or_else(|| rejected.contains(&id).then(|| answer.clone()));
            if let Some(why) = denied {
                let (name, summary) = self.tools.get(id).cloned().unzip();
                events.extend(self.deny(id, name, summary, &why));
            }
            self.tools.remove(id);
            events.push(Event::ToolDone { id: id.to_owned(), ok: !failed });
        }
        events
    }

    /// Reports a denial once, even if the stream repeats it.
    fn deny(&mut self, id: &str, name: Option<String>, summary: Option<String>, why: &str) -> Option<Event> {
        if !self.denied.insert(id.to_owned()) {
            return None;
        }
        let known = self.tools.get(id).cloned();
        let (known_name, known_summary) = known.unzip();
        let name = name.or(known_name);
        Some(Event::ToolDenied { name, summary: summary.or(known_summary), why: why.to_owned() })
    }

    /// `allowed` and `allowed_warning` are no limits, even if other fields are rejected.
    fn rate_limit(&mut self, line: &Value) -> Option<Event> {
        let info = line.get("rate_limit_info")?;
        (text(info, "status") == Some("rejected")).then(|| {
            self.limited = true;
            Event::Limit(Limit {
                source: LimitSource::Structured,
                kind: owned(info, "rateLimitType"),
                resets_at: info.get("resetsAt").and_then(Value::as_i64),
                text: None,
            })
        })
    }

    fn result(&mut self, line: &Value, subtype: &str, texts: &HeadlessRules) -> Vec<Event> {
        let mut events = Vec::new();
        for denial in list(line, "permission_denials") {
            let id = text(denial, "tool_use_id").unwrap_or_default();
            let arguments = denial.get("tool_input").map(summary);
            events.extend(self.deny(id, owned(denial, "tool_name"), arguments, "permission denied"));
        }
        let failed = line.get("is_error").and_then(Value::as_bool).unwrap_or(subtype != "success");
        let said = owned(line, "result")
            .unwrap_or_else(|| list(line, "errors").filter_map(Value::as_str).collect::<Vec<_>>().join("; "));
        let status = status(line, "api_error_status");
        let limit = match status {
            _ if !failed => None,
            Some(429) => {
                let (kind, text) = (owned(line, "api_error_type"), Some(said.clone()));
                Some(Limit { source: LimitSource::Status, kind, resets_at: None, text })
            }
            _ => texts.limit(&said),
        };
        let reason = match subtype {
            _ if limit.is_some() || (failed && self.limited) => Reason::Limit,
            "success" if !failed => Reason::Completed,
            "success" if matches!(status, Some(401 | 403)) || texts.signed_out(&said) => Reason::SignedOut,
            "success" => Reason::Api { status },
            "error_max_turns" => Reason::MaxTurns,
            "error_max_budget_usd" => Reason::MaxBudget,
            other => Reason::Other(other.to_owned()),
        };
        events.extend(limit.filter(|_| !self.limited).map(Event::Limit));
        events.push(Event::Usage(final_usage(line)));
        let cost = line.get("total_cost_usd").and_then(Value::as_f64).filter(|cost| *cost >= 0.0);
        events.push(Event::Cost(cost));
        events.push(Event::Ended(End {
            ok: !failed,
            text: said,
            reason,
            turns: number(line, "num_turns"),
            duration_ms: number(line, "duration_ms"),
            api_ms: number(line, "duration_api_ms"),
        }));
        events
    }
}

/// Returns the usage by model if present, because only that is complete.
fn final_usage(line: &Value) -> Usage {
    let models: Vec<ModelUsage> = line
        .get("modelUsage")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .map(|(model, usage)| ModelUsage {
            model: model.clone(),
            cost_usd: usage.get("costUSD").and_then(Value::as_f64),
            input_tokens: number(usage, "inputTokens"),
            output_tokens: number(usage, "outputTokens"),
            cache_read_tokens: number(usage, "cacheReadInputTokens"),
            cache_creation_tokens: number(usage, "cacheCreationInputTokens"),
        })
        .collect();
    let summed = models.iter().map(Tokens::of_model).reduce(Tokens::plus);
    let tokens = summed.or_else(|| line.get("usage").map(tokens)).unwrap_or_default();
    Usage { tokens, models }
}

fn tokens(usage: &Value) -> Tokens {
    Tokens {
        input: number(usage, "input_tokens"),
        output: number(usage, "output_tokens"),
        cache_read: number(usage, "cache_read_input_tokens"),
        cache_write: number(usage, "cache_creation_input_tokens"),
    }
}

fn summary(input: &Value) -> String {
    MAIN_ARGUMENTS.iter().find_map(|name| text(input, name)).map(shortened).unwrap_or_default()
}

/// Returns the text of an answer, which is a string or a list of blocks.
fn plain(content: Option<&Value>) -> String {
    let text = match content {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(blocks)) => {
            blocks.iter().filter_map(|block| text(block, "text")).collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    };
    let inner = text.strip_prefix("<tool_use_error>").and_then(|rest| rest.strip_suffix("</tool_use_error>"));
    inner.unwrap_or(&text).to_owned()
}

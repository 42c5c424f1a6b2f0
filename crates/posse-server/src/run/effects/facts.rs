//! A summary of a session's stream: all that counts when the session is over.

use posse_agents::headless::Event;
use posse_agents::headless::event::{End, Limit, LimitSource, Reason, Usage as Used};
use posse_core::plan::budget::Usage;
use posse_core::plan::limits::{LimitEvent, Signs};
use posse_core::plan::outcome::{Denial, ToolResult};

#[derive(Clone, Debug, Default)]
pub(crate) struct Facts {
    pub(crate) last_message: Option<String>,
    denials: Vec<Denial>,
    usage: Option<Used>,
    cost: Option<f64>,
    limit: Option<Limit>,
    end: Option<End>,
}

impl Facts {
    pub(crate) fn add(&mut self, event: Event) {
        match event {
            Event::Said(text) => self.last_message = Some(text),
            Event::ToolDenied { name, summary, why } => {
                self.denials.push(Denial { tool: name.unwrap_or(why), target: summary });
            }
            Event::Usage(usage) => self.usage = Some(usage),
            Event::Cost(cost) => self.cost = cost.or(self.cost),
            Event::Limit(limit) => self.limit = Some(limit),
            Event::Ended(end) => self.end = Some(end),
            Event::Started { .. }
            | Event::ToolUse { .. }
            | Event::ToolDone { .. }
            | Event::Retry { .. }
            | Event::Warning(_)
            | Event::Unknown(_) => {}
        }
    }

    pub(crate) fn denials(&self) -> &[Denial] {
        &self.denials
    }

    pub(crate) fn result(&self) -> Option<ToolResult> {
        let end = self.end.as_ref()?;
        Some(ToolResult {
            is_error: !end.ok,
            turns: end.turns.and_then(|turns| u32::try_from(turns).ok()),
            text: end.text.clone(),
            denials: self.denials.clone(),
        })
    }

    /// The text that may contain a report.
    pub(crate) fn last_words(&self) -> Option<&str> {
        let end = self.end.as_ref().filter(|end| end.ok).map(|end| end.text.as_str());
        end.filter(|text| !text.trim().is_empty()).or(self.last_message.as_deref())
    }

    /// The usage. Unknown is not zero.
    pub(crate) fn usage(&self) -> Usage {
        let tokens = self.usage.as_ref().map(|usage| usage.tokens).unwrap_or_default();
        Usage {
            cost_usd: self.cost,
            turns: self.end.as_ref().and_then(|end| end.turns).and_then(|turns| u32::try_from(turns).ok()),
            input_tokens: tokens.input,
            output_tokens: tokens.output,
            cache_read_tokens: tokens.cache_read,
            cache_creation_tokens: tokens.cache_write,
            api_seconds: self.end.as_ref().and_then(|end| end.api_ms).map(|ms| ms as f64 / 1000.0),
            partial: self.end.is_none(),
            models: self.usage.iter().flat_map(|usage| &usage.models).cloned().collect(),
            no_session: false,
        }
    }

    pub(crate) fn out_of_money(&self) -> bool {
        self.end.as_ref().is_some_and(|end| end.reason == Reason::MaxBudget)
    }

    pub(super) fn limit_signs<'a>(&'a self, failed: bool, stderr: &'a str) -> Signs<'a> {
        let structured = self.limit.as_ref().filter(|limit| limit.source == LimitSource::Structured);
        let event = structured.map(|limit| LimitEvent { resets_at: limit.resets_at, kind: limit.kind.as_deref() });
        let said = self.limit.as_ref().and_then(|limit| limit.text.as_deref()).unwrap_or_default();
        let ended = self.end.as_ref();
        let api_status = match ended.map(|end| &end.reason) {
            Some(Reason::Api { status }) => *status,
            // The tool knows it in its own words.
            Some(Reason::Limit) => Some(429),
            _ => self.limit.as_ref().filter(|limit| limit.source == LimitSource::Status).map(|_| 429),
        };
        let failed = failed || ended.is_some_and(|end| !end.ok);
        let result_text = ended.map_or(said, |end| if said.is_empty() { &end.text } else { said });
        let event = event.filter(|_| failed);
        Signs { event, failed, api_status, stderr, result_text, said_at: None }
    }
}

//! Translates signals, hooks, session files and lines of events into claims, by the rules of one agent. Stateless: a
//! repeated signal gives a repeated claim.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Signal;
use super::rules::{Closes, EventRule, Means, Rule, SignalRules, Word};
use crate::question::{QuestionReport, ReportEvent, input_hash, member};
use crate::status::{Claim, Source, WaitingKind};

/// A source's claim about the agent's state, and its report about questions.
pub type Heard = (Option<(Source, Claim)>, Option<ReportEvent>);

/// Replaces an input that was too large to be passed on.
pub const TOO_LARGE: &str = "posse: too large";

impl SignalRules {
    /// Translates a signal from the terminal.
    pub fn hear(&self, signal: &Signal) -> Option<(Source, Claim)> {
        match signal {
            Signal::AgentState { payload } => self.agent_state(payload).map(|claim| (Source::Osc, claim)),
            Signal::Title { title } => {
                Some((Source::Title, self.title.as_ref()?.claim(|pattern| pattern.is_match(title))))
            }
            Signal::Progress { state } => {
                Some((Source::Progress, self.progress.as_ref()?.claim(|known| known == state)))
            }
            _ => None,
        }
    }

    /// Translates a call of a hook: the event's name and payload.
    pub fn hook(&self, event: &str, payload: &Value) -> Heard {
        self.heard(Source::Hook, self.hooks.get(event), payload)
    }

    /// Translates a line of the file of events; `before` is the line before it.
    pub fn event(&self, line: &Value, before: Option<&Value>) -> Heard {
        let after = |like: &BTreeMap<String, Value>| before.is_some_and(|before| is_like(before, like));
        let decides = |rule: &&EventRule| is_like(line, &rule.is) && !rule.unless_after.as_ref().is_some_and(after);
        self.heard(Source::SessionFile, self.events.iter().find(decides).map(|rule| &rule.means), line)
    }

    fn heard(&self, source: Source, means: Option<&Means>, with: &Value) -> Heard {
        let said = means.and_then(|means| claim(means, with)).map(|claim| (source, claim));
        (said, means.and_then(|means| self.report(source, means, with)))
    }

    /// Returns the sources that report the subject of a question.
    pub fn reporting(&self) -> Vec<Source> {
        let reports =
            |means: &&Means| matches!(means, Means::Rule(Rule { says: Word::Asking, input_from: Some(_), .. }));
        let hooks = self.hooks.values().find(reports).map(|_| Source::Hook);
        let events = self.events.iter().map(|rule| &rule.means).find(reports).map(|_| Source::SessionFile);
        hooks.into_iter().chain(events).collect()
    }

    fn report(&self, source: Source, means: &Means, with: &Value) -> Option<ReportEvent> {
        let Means::Rule(rule) = means else { return None };
        let tool = rule.tool_from.as_ref().and_then(|path| member(with, path)).and_then(Value::as_str);
        let input = rule.input_from.as_ref().and_then(|path| member(with, path));
        match rule.closes {
            Some(Closes::All) => return Some(ReportEvent::NoneOpen),
            Some(Closes::One) => {
                let of_tool = tool.zip(input).map(|(tool, input)| (tool.to_owned(), input_hash(input).1));
                return Some(ReportEvent::Closed(of_tool));
            }
            None => {}
        }
        if rule.says != Word::Asking || rule.input_from.is_none() {
            return None;
        }
        let Some(Claim::Asking(kind)) = claim(means, with) else { return None };
        let input = input.filter(|input| input.as_str() != Some(TOO_LARGE));
        let report = QuestionReport::new(source, kind, tool.unwrap_or_default(), input, &self.tool);
        Some(ReportEvent::Asked(Box::new(report)))
    }

    /// Translates the changed session file.
    pub fn session_file(&self, content: &Value) -> Option<(Source, Claim)> {
        let rules = self.session_file.as_ref()?;
        let state = content.get(&rules.field).and_then(Value::as_str);
        let means = state.and_then(|state| rules.states.get(state));
        Some((Source::SessionFile, means.map_or(Some(Claim::Nothing), |means| claim(means, content))?))
    }

    /// Parses `state=blocked:app=codex:kind=permission:id=7:msg=Um0gLXJmPw==`, in any order.
    fn agent_state(&self, payload: &str) -> Option<Claim> {
        let field = |name: &str| {
            let fields = payload.split(':').filter_map(|field| field.split_once('='));
            fields.into_iter().find(|(key, _)| *key == name).map(|(_, value)| value)
        };
        let app = field("app").unwrap_or_default();
        if !self.osc_apps.iter().any(|known| known == app) {
            return None;
        }
        Some(match field("state")? {
            "idle" => Claim::Ready,
            "working" => Claim::Working,
            // Claude Code 2.1.325 after a rejected API key. This is not a question: the turn has failed.
            "blocked" if field("kind") == Some("auth") => {
                Claim::Failed(field("msg").and_then(base64).unwrap_or_else(|| "authentication".to_owned()))
            }
            "blocked" => Claim::Asking(match field("kind") {
                Some("permission") => Some(WaitingKind::Permission),
                Some("question") => Some(WaitingKind::Question),
                _ => None,
            }),
            "done" => Claim::TurnOver,
            "error" => Claim::Failed(field("msg").and_then(base64).unwrap_or_else(|| "error".to_owned())),
            "clear" => Claim::Nothing,
            _ => return None,
        })
    }
}

fn claim(means: &Means, with: &Value) -> Option<Claim> {
    let (word, rule) = match means {
        Means::Word(word) => (*word, None),
        Means::Rule(rule) => (rule.says, Some(rule)),
    };
    let told = |name: fn(&Rule) -> Option<&String>| rule.and_then(name).and_then(|name| member(with, name));
    if told(|rule| rule.unless.as_ref()).is_some_and(is_filled) {
        return None;
    }
    Some(match word {
        Word::Working => Claim::Working,
        Word::Ready => Claim::Ready,
        Word::TurnOver => Claim::TurnOver,
        Word::Nothing => Claim::Nothing,
        Word::Asking => {
            let kind = told(|rule| rule.kind_from.as_ref()).and_then(Value::as_str);
            let known = rule.zip(kind).and_then(|(rule, kind)| rule.kinds.get(kind).copied());
            if known.is_none() && rule.is_some_and(|rule| rule.known_kinds_only) {
                return Some(Claim::Nothing);
            }
            Claim::Asking(known.or(rule.and_then(|rule| rule.kind)))
        }
        Word::Failed => {
            let class = told(|rule| rule.class_from.as_ref()).and_then(Value::as_str);
            Claim::Failed(class.unwrap_or("error").to_owned())
        }
    })
}

fn is_like(line: &Value, like: &BTreeMap<String, Value>) -> bool {
    like.iter().all(|(path, expected)| member(line, path) == Some(expected))
}

fn is_filled(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::Array(items) => !items.is_empty(),
        Value::Object(members) => !members.is_empty(),
        Value::String(text) => !text.is_empty(),
        Value::Bool(true) | Value::Number(_) => true,
    }
}

/// Decodes text in base 64; `None` if it is invalid. Small enough not to need a crate.
fn base64(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let (mut bits, mut count) = (0_u32, 0);
    for byte in text.trim_end_matches('=').bytes() {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => return None,
        };
        (bits, count) = ((bits << 6) | u32::from(value), count + 6);
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
            bits &= (1 << count) - 1;
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::SignalRules;

    #[test]
    fn misspelt_rules_are_errors() {
        for text in [
            "osc_app = ['x']",
            "[title]\nbussy = []",
            "[hooks]\nStop = 'over'",
            "[hooks.Stop]\nsays = 'turn_over'\nunles = 'x'",
            "[session_file]\nfield = 'status'",
            "[[events]]\nmeans = 'ready'",
            "[[events]]\nif = {}\nafter = {}\nmeans = 'ready'",
            "[title]\nasking = ['(']",
        ] {
            assert!(toml::from_str::<SignalRules>(text).is_err(), "{text}");
        }
    }
}

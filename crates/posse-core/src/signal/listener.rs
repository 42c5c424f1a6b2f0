//! From signals, hooks, session files and lines of events to claims, by the rules of one agent. Without memory: what is
//! claimed twice is said twice.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Signal;
use super::rules::{Closes, EventRule, Means, Rule, SignalRules, Word};
use crate::question::{QuestionReport, ReportEvent, Reported, input_hash, member};
use crate::status::{Claim, Source, WaitingKind};
use crate::written::Expression;

/// Stands in the place of an input that was too large to be passed on.
pub const TOO_LARGE: &str = "posse: too large";

impl SignalRules {
    /// What came through the terminal.
    pub fn hear(&self, signal: &Signal) -> Option<(Source, Claim)> {
        match signal {
            Signal::AgentState { payload } => self.agent_state(payload).map(|claim| (Source::Osc, claim)),
            Signal::Title { title } => {
                let rules = self.title.as_ref()?;
                let is_one = |patterns: &[Expression]| patterns.iter().any(|pattern| pattern.is_match(title));
                let claim = match () {
                    () if is_one(&rules.busy) => Claim::Working,
                    () if is_one(&rules.asking) => Claim::Asking(None),
                    () if is_one(&rules.quiet) => Claim::Ready,
                    () => Claim::Nothing,
                };
                Some((Source::Title, claim))
            }
            Signal::Progress { state, .. } => {
                let rules = self.progress.as_ref()?;
                let claim = match state {
                    state if rules.busy.contains(state) => Claim::Working,
                    state if rules.asking.contains(state) => Claim::Asking(None),
                    state if rules.quiet.contains(state) => Claim::Ready,
                    _ => Claim::Nothing,
                };
                Some((Source::Progress, claim))
            }
            _ => None,
        }
    }

    /// A hook was called: its event, and what it was given.
    pub fn hook(&self, event: &str, payload: &Value) -> Option<(Source, Claim)> {
        Some((Source::Hook, claim(self.hooks.get(event)?, payload)?))
    }

    /// What the same hook tells about questions.
    pub fn hook_report(&self, event: &str, payload: &Value) -> Option<ReportEvent> {
        self.report(Source::Hook, self.hooks.get(event)?, payload)
    }

    /// The sources that report what a question is about.
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
                return Some(ReportEvent::Closed(
                    tool.zip(input).map(|(tool, input)| (tool.to_owned(), input_hash(input).1)),
                ));
            }
            None => {}
        }
        if rule.says != Word::Asking || rule.input_from.is_none() {
            return None;
        }
        let Some(Claim::Asking(kind)) = claim(means, with) else { return None };
        let input = input.filter(|input| input.as_str() != Some(TOO_LARGE));
        let reported = Reported { source, kind, tool: tool.unwrap_or_default(), input };
        Some(ReportEvent::Asked(Box::new(QuestionReport::new(&reported, &self.tool))))
    }

    /// The session file has changed.
    pub fn session_file(&self, content: &Value) -> Option<(Source, Claim)> {
        let rules = self.session_file.as_ref()?;
        let state = content.get(&rules.field).and_then(Value::as_str);
        let means = state.and_then(|state| rules.states.get(state));
        Some((Source::SessionFile, means.map_or(Some(Claim::Nothing), |means| claim(means, content))?))
    }

    /// A line was written into the file of events, after this one.
    pub fn event(&self, line: &Value, before: Option<&Value>) -> Option<(Source, Claim)> {
        Some((Source::SessionFile, claim(&self.event_rule(line, before)?.means, line)?))
    }

    /// What the same line tells about questions.
    pub fn event_report(&self, line: &Value, before: Option<&Value>) -> Option<ReportEvent> {
        self.report(Source::SessionFile, &self.event_rule(line, before)?.means, line)
    }

    fn event_rule(&self, line: &Value, before: Option<&Value>) -> Option<&EventRule> {
        let after = |like: &BTreeMap<String, Value>| before.is_some_and(|before| is_like(before, like));
        let decides = |rule: &&EventRule| is_like(line, &rule.is) && !rule.unless_after.as_ref().is_some_and(after);
        self.events.iter().find(decides)
    }

    /// `state=blocked:app=codex:kind=permission:id=7:msg=Um0gLXJmPw==`, in any order.
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
            // Claude Code 2.1.325 after a refused key. Nobody is asked anything: the turn has failed.
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

/// Text in base 64; `None` if it is not. Small enough not to need a crate.
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
    use super::*;
    use serde_json::json;
    use {Claim::*, WaitingKind::*};

    const CLAUDE_CODE: &str = r#"
        osc_apps = ["claude-code"]

        [title]
        # Before 2.1.3xx braille, then half moons. `✳` is idle or asking, so it says nothing.
        busy = ['^[\x{2800}-\x{28ff}◐◑◒◓](?: |$)']

        [progress]
        # Only with TERM_PROGRAM=ghostty. 3 is a turn under way, also while it asks.
        busy = [3]
        quiet = [0]

        [hooks]
        UserPromptSubmit = "working"
        PostToolUse = "working"
        Stop = { says = "turn_over", unless = "background_tasks" }
        StopFailure = { says = "failed", class_from = "error" }

        [hooks.PermissionRequest]
        says = "asking"
        kind = "permission"
        kind_from = "tool_name"
        kinds = { AskUserQuestion = "question", ExitPlanMode = "plan" }

        [session_file]
        field = "status"

        [session_file.states]
        idle = "ready"
        shell = "ready"
        busy = "working"

        [session_file.states.waiting]
        says = "asking"
        kind_from = "waitingFor"
        kinds = { "permission prompt" = "permission", "input needed" = "question" }
        known_kinds_only = true
    "#;

    const CODEX: &str = r#"
        osc_apps = ["codex"]

        [title]
        busy = ['^[\x{2800}-\x{28ff}] ']
        asking = ['^\[ [!.] \] Action Required']

        [hooks]
        UserPromptSubmit = "working"
        PostToolUse = "working"
        PermissionRequest = { says = "asking", kind = "permission" }
        Stop = "turn_over"
    "#;

    /// A plugin of ours says it in its own words.
    const OPENCODE: &str = r#"
        [hooks]
        busy = "working"
        idle = "turn_over"
        error = { says = "failed", class_from = "error" }
        asked = { says = "asking", kind_from = "tool_name", kinds = { permission = "permission", question = "question" } }
    "#;

    const QWEN: &str = r#"
        [[events]]
        if = { type = "control_request", "request.subtype" = "can_use_tool" }
        [events.means]
        says = "asking"
        kind = "permission"
        kind_from = "request.tool_name"
        kinds = { ask_user_question = "question" }

        [[events]]
        if = { type = "control_response", "response.response.allowed" = false }
        means = "ready"

        [[events]]
        if = { type = "stream_event", "event.type" = "message_stop" }
        unless_after = { "message.stop_reason" = "tool_use" }
        means = "ready"

        [[events]]
        if = { type = "user" }
        means = "working"
    "#;

    fn listener(text: &str) -> SignalRules {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn agents_report_their_state() {
        let codex = listener(CODEX);
        let claude = listener(CLAUDE_CODE);
        for (payload, expected) in [
            ("state=idle:app=codex", Some(Ready)),
            ("state=working:app=codex", Some(Working)),
            ("state=done:app=codex", Some(TurnOver)),
            ("state=blocked:app=codex:kind=permission", Some(Asking(Some(Permission)))),
            ("app=codex:id=3:kind=question:state=blocked", Some(Asking(Some(Question)))),
            ("state=blocked:app=codex", Some(Asking(None))),
            ("state=blocked:app=codex:kind=riddle", Some(Asking(None))),
            ("state=blocked:app=codex:kind=auth:msg=b3ZlcmxvYWRlZA==", Some(Failed("overloaded".into()))),
            ("state=blocked:app=codex:kind=auth", Some(Failed("authentication".into()))),
            ("state=error:app=codex", Some(Failed("error".into()))),
            ("state=error:app=codex:msg=b3ZlcmxvYWRlZA==", Some(Failed("overloaded".into()))),
            ("state=error:app=codex:msg=****", Some(Failed("error".into()))),
            ("state=clear:app=codex", Some(Nothing)),
            ("state=dreaming:app=codex", None),
            ("state=idle:app=claude-code", None),
            ("state=idle", None),
            ("?", None),
            ("", None),
        ] {
            let signal = Signal::AgentState { payload: payload.into() };
            assert_eq!(codex.hear(&signal), expected.map(|claim| (Source::Osc, claim)), "{payload}");
        }
        let signal = Signal::AgentState { payload: "state=idle:app=claude-code".into() };
        assert_eq!(claude.hear(&signal), Some((Source::Osc, Ready)));
    }

    #[test]
    fn titles_and_progress_have_meanings() {
        let heard = |listener: &SignalRules, title: &str| listener.hear(&Signal::Title { title: title.into() });
        let (codex, claude) = (listener(CODEX), listener(CLAUDE_CODE));
        for (title, expected) in [
            ("⠼ Mock task title | proj", Working),
            ("[ ! ] Action Required | proj", Asking(None)),
            ("[ . ] Action Required | Mock task title | proj", Asking(None)),
            ("proj", Nothing),
            ("vm", Nothing),
        ] {
            assert_eq!(heard(&codex, title), Some((Source::Title, expected)), "{title}");
        }
        for (title, expected) in
            [("◐ Claude Code", Working), ("⠂ fix it", Working), ("✳ Claude Code", Nothing), ("Gi=31,s=1", Nothing)]
        {
            assert_eq!(heard(&claude, title), Some((Source::Title, expected)), "{title}");
        }
        let progress = |state| Signal::Progress { state, percent: None };
        assert_eq!(claude.hear(&progress(3)), Some((Source::Progress, Working)));
        assert_eq!(claude.hear(&progress(0)), Some((Source::Progress, Ready)));
        assert_eq!(claude.hear(&progress(1)), Some((Source::Progress, Nothing)));
        assert_eq!(codex.hear(&progress(3)), None, "nothing is known of it");
        assert_eq!(codex.hear(&Signal::Bell), None);
        assert_eq!(heard(&SignalRules::default(), "⠼ x"), None);
    }

    #[test]
    fn hooks_have_meanings() {
        let (codex, claude) = (listener(CODEX), listener(CLAUDE_CODE));
        for (event, payload, expected) in [
            ("UserPromptSubmit", json!({"prompt": "x"}), Some(Working)),
            ("PostToolUse", json!({"tool_name": "Bash"}), Some(Working)),
            ("PermissionRequest", json!({"tool_name": "Bash"}), Some(Asking(Some(Permission)))),
            ("PermissionRequest", json!({"tool_name": "AskUserQuestion"}), Some(Asking(Some(Question)))),
            ("PermissionRequest", json!({"tool_name": "ExitPlanMode"}), Some(Asking(Some(Plan)))),
            ("PermissionRequest", json!(null), Some(Asking(Some(Permission)))),
            ("Stop", json!({"background_tasks": []}), Some(TurnOver)),
            ("Stop", json!({}), Some(TurnOver)),
            ("Stop", json!({"background_tasks": [{"id": "1"}]}), None),
            ("StopFailure", json!({"error": "invalid_request"}), Some(Failed("invalid_request".into()))),
            ("StopFailure", json!({}), Some(Failed("error".into()))),
            ("Notification", json!({}), None),
        ] {
            let expected = expected.map(|claim| (Source::Hook, claim));
            assert_eq!(claude.hook(event, &payload), expected, "{event} {payload}");
        }
        assert_eq!(codex.hook("Stop", &json!({"stop_hook_active": false})), Some((Source::Hook, TurnOver)));
        assert_eq!(codex.hook("StopFailure", &json!({})), None);
        let opencode = listener(OPENCODE);
        for (event, payload, expected) in [
            ("busy", json!({}), Some(Working)),
            ("idle", json!({}), Some(TurnOver)),
            ("error", json!({"error": "APIError"}), Some(Failed("APIError".into()))),
            ("asked", json!({"tool_name": "permission"}), Some(Asking(Some(Permission)))),
            ("asked", json!({"tool_name": "question"}), Some(Asking(Some(Question)))),
            ("asked", json!({"tool_name": "riddle"}), Some(Asking(None))),
            ("replied", json!({}), None),
        ] {
            assert_eq!(
                opencode.hook(event, &payload),
                expected.map(|claim| (Source::Hook, claim)),
                "{event} {payload}"
            );
        }
    }

    #[test]
    fn session_files_have_meanings() {
        let claude = listener(CLAUDE_CODE);
        for (content, expected) in [
            (json!({"pid": 7, "status": "idle"}), Ready),
            (json!({"status": "shell"}), Ready),
            (json!({"status": "busy"}), Working),
            (json!({"status": "waiting", "waitingFor": "permission prompt"}), Asking(Some(Permission))),
            (json!({"status": "waiting", "waitingFor": "input needed"}), Asking(Some(Question))),
            (json!({"status": "waiting", "waitingFor": "dialog open"}), Nothing),
            (json!({"status": "new"}), Nothing),
            (json!({}), Nothing),
            (json!(null), Nothing),
        ] {
            assert_eq!(claude.session_file(&content), Some((Source::SessionFile, expected)), "{content}");
        }
        assert_eq!(listener(CODEX).session_file(&json!({"status": "idle"})), None);
    }

    #[test]
    fn lines_of_events_have_meanings() {
        let qwen = listener(QWEN);
        let asks = |tool| json!({"type": "control_request", "request": {"subtype": "can_use_tool", "tool_name": tool}});
        let answered =
            |allowed: bool| json!({"type": "control_response", "response": {"response": {"allowed": allowed}}});
        let stop = json!({"type": "stream_event", "event": {"type": "message_stop"}});
        let said = |reason: Value| json!({"type": "assistant", "message": {"stop_reason": reason}});
        for (line, before, expected) in [
            (json!({"type": "user", "message": {"content": "hi"}}), None, Some(Working)),
            (asks("run_shell_command"), None, Some(Asking(Some(Permission)))),
            (asks("ask_user_question"), None, Some(Asking(Some(Question)))),
            (json!({"type": "control_request", "request": {"subtype": "initialize"}}), None, None),
            (answered(false), None, Some(Ready)),
            (answered(true), None, None),
            (stop.clone(), Some(said(json!(null))), Some(Ready)),
            (stop.clone(), Some(said(json!("tool_use"))), None),
            (stop.clone(), None, Some(Ready)),
            (said(json!("tool_use")), None, None),
            (json!({"type": "stream_event", "event": "message_stop"}), None, None),
            (json!({"type": ["user"]}), None, None),
            (json!("user"), None, None),
        ] {
            let expected = expected.map(|claim| (Source::SessionFile, claim));
            assert_eq!(qwen.event(&line, before.as_ref()), expected, "{line} after {before:?}");
        }
        assert_eq!(listener(CODEX).event(&stop, None), None, "nothing is known of it");
    }

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

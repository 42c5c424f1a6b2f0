//! What agents say of themselves: in signals, hooks, session files, and events as a real one wrote them.
#![allow(clippy::unwrap_used)]

mod common;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use common::{Folder, detector, fixture, read};
use posse_agents::Provider;
use posse_agents::manifest::BUILT_IN;
use posse_core::signal::{Signal, SignalRules};
use posse_core::status::Claim::{self, Asking, Failed, Nothing, Ready, TurnOver, Working};
use posse_core::status::Source;
use posse_core::status::WaitingKind::{Permission, Plan, Question};
use serde_json::{Value, json};

static SIGNALS: LazyLock<BTreeMap<&str, SignalRules>> = LazyLock::new(|| {
    BUILT_IN.into_iter().map(|(id, text)| (id, Provider::parse(text).unwrap().manifest.signals.clone())).collect()
});

/// What an agent claims by this. Texts are of a channel of the terminal, objects of a hook with this name, of the session
/// file, or a line of events.
fn claim(provider: &str, from: &str, told: &Value) -> Option<Claim> {
    let signals = &SIGNALS[provider];
    let text = told.as_str().unwrap_or_default().to_owned();
    let (expected, (source, claim)) = match from {
        "osc" => (Source::Osc, signals.hear(&Signal::AgentState { payload: text })?),
        "title" => (Source::Title, signals.hear(&Signal::Title { title: text })?),
        "progress" => {
            let state = u8::try_from(told.as_u64().unwrap()).unwrap();
            (Source::Progress, signals.hear(&Signal::Progress { state })?)
        }
        "session file" => (Source::SessionFile, signals.session_file(told)?),
        "event" => (Source::SessionFile, signals.event(told, None).0?),
        hook => (Source::Hook, signals.hook(hook, told).0?),
    };
    assert_eq!(source, expected, "{from}");
    Some(claim)
}

fn check(provider: &str, from: &str, rows: &[(Value, Option<Claim>)]) {
    for (told, expected) in rows {
        assert_eq!(claim(provider, from, told), *expected, "{provider}, {from}: {told}");
    }
}

#[test]
fn agents_report_their_state() {
    for (payload, expected) in [
        ("state=idle:app=codex", Some(Ready)),
        ("state=working:app=codex", Some(Working)),
        ("state=done:app=codex", Some(TurnOver)),
        ("state=blocked:app=codex:kind=permission", Some(Asking(Some(Permission)))),
        ("app=codex:id=3:kind=question:state=blocked", Some(Asking(Some(Question)))),
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
        ("", None),
    ] {
        check("codex", "osc", &[(json!(payload), expected)]);
    }
    check("claude_code", "osc", &[(json!("state=idle:app=claude-code"), Some(Ready))]);
}

#[test]
fn titles_and_progress_have_meanings() {
    for (provider, title, expected) in [
        ("codex", "⠼ Mock task title | proj", Some(Working)),
        ("codex", "[ ! ] Action Required | proj", Some(Asking(None))),
        ("codex", "[ . ] Action Required | Mock task title | proj", Some(Asking(None))),
        ("codex", "proj", Some(Ready)),
        ("codex", "", Some(Nothing)),
        ("claude_code", "◐ Claude Code", Some(Working)),
        ("claude_code", "⠂ fix it", Some(Working)),
        ("claude_code", "✳ Claude Code", Some(Nothing)),
        ("opencode", "⠼ x", None),
    ] {
        check(provider, "title", &[(json!(title), expected)]);
    }
    let states = [(json!(3), Some(Working)), (json!(0), Some(Ready)), (json!(1), Some(Nothing))];
    check("claude_code", "progress", &states);
    check("codex", "progress", &[(json!(3), None)]);
}

#[test]
fn hooks_have_meanings() {
    let tool = |name: &str| json!({ "tool_name": name });
    let permission = || Some(Asking(Some(Permission)));
    for (provider, event, payload, expected) in [
        ("claude_code", "UserPromptSubmit", json!({ "prompt": "x" }), Some(Working)),
        ("claude_code", "PostToolUse", tool("Bash"), Some(Working)),
        ("claude_code", "PermissionRequest", tool("Bash"), permission()),
        ("claude_code", "PermissionRequest", tool("AskUserQuestion"), Some(Asking(Some(Question)))),
        ("claude_code", "PermissionRequest", tool("ExitPlanMode"), Some(Asking(Some(Plan)))),
        ("claude_code", "PermissionRequest", json!(null), permission()),
        ("claude_code", "Stop", json!({ "background_tasks": [] }), Some(TurnOver)),
        ("claude_code", "Stop", json!({}), Some(TurnOver)),
        ("claude_code", "Stop", json!({ "background_tasks": [{ "id": "1" }] }), None),
        ("claude_code", "StopFailure", json!({ "error": "invalid" }), Some(Failed("invalid".into()))),
        ("claude_code", "StopFailure", json!({}), Some(Failed("error".into()))),
        ("claude_code", "Notification", json!({}), None),
        ("opencode", "asked", tool("permission"), permission()),
        ("opencode", "asked", tool("riddle"), Some(Asking(None))),
    ] {
        check(provider, event, &[(payload, expected)]);
    }
}

#[test]
fn session_files_and_events_have_meanings() {
    let waiting = |what: &str| json!({ "status": "waiting", "waitingFor": what });
    let states = [
        (json!({ "pid": 7, "status": "idle" }), Some(Ready)),
        (json!({ "status": "busy" }), Some(Working)),
        (waiting("permission prompt"), Some(Asking(Some(Permission)))),
        (waiting("input needed"), Some(Asking(Some(Question)))),
        (waiting("dialog open"), Some(Nothing)),
        (json!({ "status": "new" }), Some(Nothing)),
        (json!(null), Some(Nothing)),
    ];
    check("claude_code", "session file", &states);
    check("codex", "session file", &[(json!({ "status": "idle" }), None)]);
    let request = |what, tool| json!({ "type": "control_request", "request": { "subtype": what, "tool_name": tool } });
    let lines = [
        (request("can_use_tool", "ask_user_question"), Some(Asking(Some(Question)))),
        (request("initialize", ""), None),
        (json!({ "type": "stream_event", "event": "message_stop" }), None),
        (json!({ "type": ["user"] }), None),
        (json!("user"), None),
    ];
    check("qwen", "event", &lines);
}

/// A start, an answer, a tool that was allowed, one that was refused, an interruption, a refused key, the end.
#[test]
fn qwen_tells_what_it_does() {
    let text = std::fs::read_to_string(fixture("qwen/0.15.10/events.jsonl")).unwrap();
    let written: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut said: Vec<Claim> = Vec::new();
    for (number, line) in written.iter().enumerate() {
        let before = number.checked_sub(1).map(|before| &written[before]);
        said.extend(SIGNALS["qwen"].event(line, before).0.map(|(_, claim)| claim));
    }
    // That it works is said with every prompt and every answer.
    said.dedup();
    let (answer, asks) = ([Working, Ready], [Working, Asking(Some(Permission))]);
    let all = [&[Nothing], &answer[..], &asks, &answer, &asks, &answer, &answer].concat();
    assert_eq!(said, all);
}

/// Where nothing is written the screen shows that a turn is over, and nobody has to wait and see.
#[test]
fn qwen_shows_how_a_turn_ended() {
    let detector = detector("qwen", None);
    let folder = Folder::open("qwen/0.15.10");
    for (screen, rule) in [
        ("error_401.txt", Some("box.failed_for_good")),
        ("completed_ctrl_c_once.txt", Some("box.cancelled")),
        ("completed_edit_cancelled.txt", Some("box.denied")),
        ("completed_short.txt", None),
    ] {
        let reading = read(&detector, &folder.rows(screen));
        assert_eq!(reading.ends_turn.then_some(reading.rule.as_str()), rule, "{screen}");
    }
}

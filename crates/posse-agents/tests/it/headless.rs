//! Sessions without a terminal, recorded from the real agents (`record_headless` of posse-testkit), and what is read in them.

use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use posse_agents::headless::event::{Event, Limit, LimitSource, Reason};
use posse_agents::headless::{HeadlessRules, Reader};
use posse_agents::manifest::built_in;
use proptest::prelude::*;
use serde_json::{Value, json};

/// Loading a manifest checks all its rules, which is slow; once is enough.
fn texts(provider: &str) -> Arc<HeadlessRules> {
    static LOADED: LazyLock<[Arc<HeadlessRules>; 2]> =
        LazyLock::new(|| ["claude_code", "codex"].map(|id| built_in(id).unwrap().unwrap().manifest.headless.unwrap()));
    LOADED[usize::from(provider == "codex")].clone()
}

struct Recording {
    provider: String,
    version: String,
    case: String,
    path: PathBuf,
}

fn recordings() -> Vec<Recording> {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    let mut found = Vec::new();
    let entries = |path: &Path| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(path).into_iter().flatten();
        let mut entries: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
        entries.sort();
        entries
    };
    let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    for provider in entries(&fixtures) {
        for version in entries(&provider) {
            for path in entries(&version.join("headless")) {
                if let Some(case) = name(&path).strip_suffix(".jsonl") {
                    let (provider, version) = (name(&provider), name(&version));
                    found.push(Recording { provider, version, case: case.into(), path });
                }
            }
        }
    }
    found
}

impl Recording {
    fn events(&self, chunk: usize) -> Vec<Event> {
        let stdout = std::fs::read(&self.path).unwrap();
        let stderr = std::fs::read(self.path.with_extension("stderr")).unwrap_or_default();
        let mut reader = Reader::new(texts(&self.provider));
        let mut events: Vec<Event> = stdout.chunks(chunk).flat_map(|bytes| reader.stdout(bytes)).collect();
        events.extend(stderr.chunks(chunk).flat_map(|bytes| reader.stderr(bytes)));
        events.extend(reader.finish());
        events
    }

    fn expected(&self) -> Vec<Event> {
        let text = std::fs::read_to_string(self.path.with_extension("events")).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn called(&self) -> String {
        format!("{} {} {}", self.provider, self.version, self.case)
    }
}

#[test]
fn every_recording_is_read_as_it_is_written_beside_it() {
    let recordings = recordings();
    assert!(recordings.len() >= 60, "{}", recordings.len());
    for recording in recordings {
        let expected = recording.expected();
        for chunk in [1, 7, 4096, usize::MAX] {
            assert_eq!(recording.events(chunk), expected, "{} in pieces of {chunk}", recording.called());
        }
    }
}

/// What must be read in each, in any version. Written by hand.
#[test]
fn every_case_says_what_happened() {
    use Reason::{Api, Completed, MaxTurns, SignedOut};
    let api = |status| Some(Api { status });
    for recording in recordings() {
        let claude = recording.provider == "claude_code";
        // Reason, denials, retries, limits.
        let (reason, denials, retries, limits) = match recording.case.as_str() {
            "answer" | "answer_subscribed" | "edit_inside" => (Some(Completed), 0, 0, 0),
            "edit_outside" | "escalation" => (Some(Completed), 1, 0, 0),
            // To Codex a command that the sandbox stops is one that failed.
            "command_outside" => (Some(Completed), usize::from(claude), 0, 0),
            "reader_writes" => (Some(Completed), if claude { 2 } else { 1 }, 0, 0),
            "error_400" => (if claude { api(Some(400)) } else { api(None) }, 0, 0, 0),
            "error_401" => (Some(SignedOut), 0, 1, 0),
            "error_429" => (Some(Reason::Limit), 0, usize::from(claude), 1),
            "error_500" => (if claude { api(Some(500)) } else { api(None) }, 0, 1, 0),
            // Codex repeats a request without a word.
            "retry_500" => (Some(Completed), 0, usize::from(claude), 0),
            "dropped" => (api(None), 0, 1, 0),
            "limit" => (Some(Reason::Limit), 0, 0, 1),
            "max_turns" => (Some(MaxTurns), 0, 0, 0),
            "killed" => (None, 0, 0, 0),
            other => panic!("what is {other}?"),
        };
        let events = recording.events(usize::MAX);
        let count = |fits: fn(&Event) -> bool| events.iter().filter(|event| fits(event)).count();
        let ends: Vec<_> =
            events.iter().filter_map(|event| if let Event::Ended(end) = event { Some(end) } else { None }).collect();
        assert_eq!(
            ends.iter().map(|end| &end.reason).collect::<Vec<_>>(),
            Vec::from_iter(&reason),
            "{}",
            recording.called()
        );
        assert!(ends.iter().all(|end| end.ok == (end.reason == Completed)), "{}", recording.called());
        let counted = (
            count(|event| matches!(event, Event::ToolDenied { .. })),
            count(|event| matches!(event, Event::Retry { .. })),
            count(|event| matches!(event, Event::Limit(_))),
        );
        assert_eq!(counted, (denials, retries, limits), "{}", recording.called());
        assert_eq!(count(|event| matches!(event, Event::Unknown(_))), 0, "{}", recording.called());
        assert!(matches!(events[0], Event::Started { session: Some(_), .. }), "{}", recording.called());
        // Codex tells no prices, and a session that was killed tells none either.
        let costs: Vec<_> = events
            .iter()
            .filter_map(|event| if let Event::Cost(cost) = event { Some(cost.is_some()) } else { None })
            .collect();
        assert_eq!(costs, if reason.is_none() { vec![] } else { vec![claude] }, "{}", recording.called());
    }
}

/// Lines of one session, made by hand.
fn read(provider: &str, lines: &[Value]) -> Vec<Event> {
    let mut reader = Reader::new(texts(provider));
    lines.iter().flat_map(|line| reader.stdout(format!("{line}\n").as_bytes())).collect()
}

fn limits(events: &[Event]) -> Vec<&Limit> {
    events.iter().filter_map(|event| if let Event::Limit(limit) = event { Some(limit) } else { None }).collect()
}

/// T62, T63, T64.
#[test]
fn a_limit_is_what_was_rejected_and_nothing_else() {
    let event = |info: Value| read("claude_code", &[json!({ "type": "rate_limit_event", "rate_limit_info": info })]);
    let rejected = event(json!({ "status": "rejected", "resetsAt": 1_794_807_038, "rateLimitType": "seven_day" }));
    let expected = Limit {
        source: LimitSource::Structured,
        kind: Some("seven_day".into()),
        resets_at: Some(1_794_807_038),
        text: None,
    };
    assert_eq!(rejected, [Event::Limit(expected)]);
    for info in [
        json!({ "status": "allowed" }),
        json!({ "status": "allowed_warning", "resetsAt": 1 }),
        json!({ "status": "allowed", "overageStatus": "rejected" }),
        json!(null),
    ] {
        assert_eq!(event(info.clone()), [], "{info}");
    }
    let said = "You've hit your limit · resets 3pm";
    let text = json!({ "type": "assistant", "message": { "content": [{ "type": "text", "text": said }] } });
    let end = json!({ "type": "result", "subtype": "success", "is_error": false, "result": said });
    assert!(limits(&read("claude_code", &[text, end])).is_empty(), "what a model says is no evidence");
    let message = json!({ "type": "item.completed", "item": { "type": "agent_message", "text": said } });
    assert!(limits(&read("codex", &[message, json!({ "type": "turn.completed" })])).is_empty());
}

/// §9.2: the phrases, in either apostrophe.
#[test]
fn limits_in_the_words_of_errors() {
    let claude = texts("claude_code");
    for error in [
        "You've hit your limit · resets Feb 9 at 6pm (America/Toronto)",
        "You’ve hit your session limit · resets 1am (Asia/Singapore)",
        "You've hit your weekly limit ∙ resets Feb 16, 11am (Europe/Berlin)",
        "You've hit your 5-hour limit · resets 5:30am (UTC)",
        "Usage limit reached",
        "Claude usage limit reached. Your limit will reset at 1pm (Etc/GMT+5)",
        "Claude AI usage limit reached|1762952400",
        "5-hour limit reached ∙ resets 3pm",
        "Weekly limit reached",
        "You're out of extra usage · resets 3pm",
    ] {
        let found = claude.limit(&format!("something before\n  {error}\n")).unwrap_or_else(|| panic!("{error}"));
        assert_eq!((found.text.as_deref(), found.source), (Some(error), LimitSource::Text));
    }
    for error in ["The tests for \"You've hit your limit\" fail", "rate limits are documented", "", "API Error: 500"] {
        assert_eq!(claude.limit(error), None, "{error}");
    }
    let codex = texts("codex");
    assert!(codex.limit("You’ve hit your usage limit. Try again at 6:30 AM.").is_some());
    let failed = read(
        "claude_code",
        &[json!({ "type": "result", "subtype": "success", "is_error": true,
        "result": "Claude AI usage limit reached|1762952400" })],
    );
    assert_eq!(limits(&failed)[0].source, LimitSource::Text);
    assert!(matches!(failed.last(), Some(Event::Ended(end)) if end.reason == Reason::Limit));
}

/// T76: what is not said is not known.
#[test]
fn nothing_is_zero_by_omission() {
    let events =
        read("claude_code", &[json!({ "type": "result", "subtype": "success", "is_error": false, "result": "" })]);
    assert!(events.contains(&Event::Cost(None)), "{events:?}");
    let Some(Event::Usage(usage)) = events.first() else { panic!("{events:?}") };
    assert_eq!(usage.tokens, Default::default());
    let Some(Event::Ended(end)) = events.last() else { panic!("{events:?}") };
    assert_eq!((end.ok, end.turns), (true, None));
    let events = read(
        "codex",
        &[json!({ "type": "turn.completed",
        "usage": { "input_tokens": 900, "cached_input_tokens": 700, "output_tokens": 5 } })],
    );
    let Some(Event::Usage(usage)) = events.first() else { panic!("{events:?}") };
    assert_eq!((usage.tokens.input, usage.tokens.cache_read), (Some(200), Some(700)));
    assert_eq!(usage.tokens.cache_write, None);
}

/// A result without `is_error` counts as failed unless it says success.
#[test]
fn ends_of_other_kinds() {
    let end = |line: Value| match read("claude_code", &[line]).pop() {
        Some(Event::Ended(end)) => (end.ok, end.reason, end.text),
        other => panic!("{other:?}"),
    };
    let result = |subtype: &str| json!({ "type": "result", "subtype": subtype, "errors": ["one", "two"] });
    assert_eq!(end(result("error_max_budget_usd")), (false, Reason::MaxBudget, "one; two".into()));
    let other = Reason::Other("error_during_execution".into());
    assert_eq!(end(result("error_during_execution")), (false, other, "one; two".into()));
    assert_eq!(end(json!({ "type": "result" })), (false, Reason::Other(String::new()), String::new()));
    let signed_out = json!({ "type": "result", "subtype": "success", "is_error": true, "result": "Not logged in · Please run /login" });
    assert_eq!(end(signed_out).1, Reason::SignedOut);
}

#[test]
fn a_denial_is_told_once() {
    let lines = [
        json!({ "type": "assistant", "message": { "id": "m", "content": [{ "type": "tool_use", "id": "t", "name": "Write",
            "input": { "file_path": "/etc/x", "content": "" } }] } }),
        json!({ "type": "system", "subtype": "permission_denied", "tool_use_id": "t", "tool_name": "Write", "message": "no" }),
        json!({ "type": "user", "tool_result_meta": [{ "id": "t", "permission_decision": { "decision": "reject" } }],
            "message": { "content": [{ "type": "tool_result", "tool_use_id": "t", "is_error": true, "content": "no" }] } }),
        json!({ "type": "result", "subtype": "success", "is_error": false, "result": "",
            "permission_denials": [{ "tool_name": "Write", "tool_use_id": "t", "tool_input": {} },
                                   { "tool_name": "Bash", "tool_use_id": "u", "tool_input": { "command": "rm x" } }] }),
    ];
    let events = read("claude_code", &lines);
    let denied = |name: &str, summary: &str, why: &str| Event::ToolDenied {
        name: Some(name.into()),
        summary: Some(summary.into()),
        why: why.into(),
    };
    let denials: Vec<_> = events.iter().filter(|event| matches!(event, Event::ToolDenied { .. })).collect();
    assert_eq!(denials, [&denied("Write", "/etc/x", "no"), &denied("Bash", "rm x", "permission denied")]);
}

#[test]
fn what_is_new_is_named_and_left_alone() {
    let new = json!({ "type": "telepathy", "field": 1 });
    for provider in ["claude_code", "codex"] {
        assert_eq!(read(provider, std::slice::from_ref(&new)), [Event::Unknown("telepathy".into())]);
    }
    assert_eq!(
        read("codex", &[json!({ "type": "item.completed", "item": { "type": "dream" } })]),
        [Event::Unknown("item/dream".into())]
    );
    let mut reader = Reader::new(texts("codex"));
    assert_eq!(reader.stdout(b"\n  \nnot json\n"), [Event::Unknown("no JSON".into())]);
    // A subagent's words are not the session's.
    let inner = json!({ "type": "assistant", "parent_tool_use_id": "t", "message": { "content": [{ "type": "text", "text": "x" }] } });
    assert_eq!(read("claude_code", &[inner]), []);
}

/// A tree of JSON with the words that streams are made of.
fn any_json() -> impl Strategy<Value = Value> {
    const WORDS: &str = "type subtype message content result success assistant user system init text id tool_use tool_result \
        tool_use_id is_error usage modelUsage permission_denials errors rate_limit_event rate_limit_info status \
        rejected item item.completed item.started error turn.completed turn.failed command_execution file_change \
        changes agent_message input api_error_status tool_result_meta permission_decision reject command \
        max_retries api_retry";
    let words = prop::sample::select(WORDS.split(' ').collect::<Vec<_>>());
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        words.clone().prop_map(Value::from),
        ".{0,20}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((words.clone(), inner), 0..6)
                .prop_map(|fields| fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()),
        ]
    })
}

fn in_pieces(provider: &str, bytes: &[u8], cuts: &[usize]) -> Vec<Event> {
    let mut reader = Reader::new(texts(provider));
    let mut events = Vec::new();
    let (mut rest, mut cuts) = (bytes, cuts.iter());
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(cuts.next().map_or(rest.len(), |cut| cut % rest.len() + 1).min(rest.len()));
        events.extend(reader.stdout(piece));
        rest = after;
    }
    events.extend(reader.finish());
    events
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn any_bytes_in_any_pieces(bytes in prop::collection::vec(any::<u8>(), 0..400), cuts in prop::collection::vec(0_usize..50, 0..20)) {
        for provider in ["claude_code", "codex"] {
            prop_assert_eq!(in_pieces(provider, &bytes, &cuts), in_pieces(provider, &bytes, &[]));
        }
    }

    #[test]
    fn any_lines_of_json(lines in prop::collection::vec(any_json(), 0..8), cuts in prop::collection::vec(0_usize..200, 0..20)) {
        let bytes: String = lines.iter().map(|line| format!("{line}\n")).collect();
        for provider in ["claude_code", "codex"] {
            let events = in_pieces(provider, bytes.as_bytes(), &cuts);
            prop_assert_eq!(&events, &in_pieces(provider, bytes.as_bytes(), &[]));
            // They can be written down.
            prop_assert!(serde_json::to_string(&events).is_ok());
        }
    }

    /// A stream that breaks off, or has a damaged place, is read up to there and after it.
    #[test]
    fn damaged_recordings(which in any::<prop::sample::Index>(), at in any::<prop::sample::Index>(), byte: u8) {
        let recordings = recordings();
        let recording = which.get(&recordings);
        let mut bytes = std::fs::read(&recording.path).unwrap();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        in_pieces(&recording.provider, &bytes, &[]);
        let cut = in_pieces(&recording.provider, &bytes[..at], &[]);
        prop_assert!(cut.len() <= recording.events(usize::MAX).len() + 1);
    }
}

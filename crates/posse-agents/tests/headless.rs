//! Sessions without a terminal, recorded from the real agents, and what is read in them.
#![allow(clippy::unwrap_used)]

mod common;

use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use common::cases;

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

fn entries(path: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(path).into_iter().flatten().map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn every_recording_is_read_as_it_is_written_beside_it() {
    let mut recordings = 0;
    for agent in entries(&Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures")) {
        let texts = || texts(agent.file_name().unwrap().to_str().unwrap());
        let files = entries(&agent).into_iter().flat_map(|version| entries(&version.join("headless")));
        for path in files.filter(|path| path.extension().is_some_and(|extension| extension == "jsonl")) {
            let stdout = std::fs::read(&path).unwrap();
            let stderr = std::fs::read(path.with_extension("stderr")).unwrap_or_default();
            let expected = std::fs::read_to_string(path.with_extension("events")).unwrap();
            let expected: Vec<Event> = expected.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            for chunk in [1, 7, 4096, usize::MAX] {
                let mut reader = Reader::new(texts());
                let mut events: Vec<Event> = stdout.chunks(chunk).flat_map(|bytes| reader.stdout(bytes)).collect();
                events.extend(stderr.chunks(chunk).flat_map(|bytes| reader.stderr(bytes)));
                events.extend(reader.finish());
                assert_eq!(events, expected, "{} in pieces of {chunk}", path.display());
            }
            recordings += 1;
        }
    }
    assert!(recordings >= 60, "{recordings}");
}

/// Lines of a session, made by hand, and the events that are read in them.
#[derive(serde::Deserialize)]
struct Stream {
    name: String,
    provider: String,
    lines: String,
    events: String,
}

#[test]
fn streams_made_by_hand_are_read_as_it_is_written_beside_them() {
    for Stream { name, provider, lines, events } in cases(include_str!("texts/streams.toml"), "streams") {
        let read = Reader::new(texts(&provider)).stdout(lines.as_bytes());
        let expected: Vec<Event> = events.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(read, expected, "{name}");
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

fn in_pieces(provider: &str, bytes: &[u8], cuts: &[usize]) -> Vec<Event> {
    let mut reader = Reader::new(texts(provider));
    let (mut events, mut rest) = (Vec::new(), bytes);
    for cut in cuts {
        let (piece, next) = rest.split_at((*cut).min(rest.len()));
        events.extend(reader.stdout(piece));
        rest = next;
    }
    events.extend(reader.stdout(rest));
    events.extend(reader.finish());
    events
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Agents may print anything: bytes, words that the formats know in places where they mean nothing, and any mixture.
    #[test]
    fn any_output_in_any_pieces_gives_the_same_events(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        words in prop::collection::vec("[{}\\[\\]\",:0-9\n]{0,4}(type|result|system|usage|error|item.completed|turn.failed|null)?", 0..40),
        cuts in prop::collection::vec(0_usize..50, 0..20),
    ) {
        let bytes = [bytes, words.concat().into_bytes()].concat();
        for provider in ["claude_code", "codex"] {
            let events = in_pieces(provider, &bytes, &cuts);
            prop_assert_eq!(&events, &in_pieces(provider, &bytes, &[]));
            prop_assert!(serde_json::to_string(&events).is_ok());
        }
    }
}

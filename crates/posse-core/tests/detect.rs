//! The engine on rules of our own, as no agent has them.
#![allow(clippy::unwrap_used)]

use posse_core::detect::rules::Rules;
use posse_core::detect::{BadRules, Detector, Look, Memo, Reading};

fn detector(rules: serde_json::Value) -> Result<Detector, BadRules> {
    let rules: Rules = serde_json::from_value(rules).unwrap();
    Detector::new(rules, |_| None)
}

fn read(detector: &Detector, text: &str) -> Reading {
    let rows: Vec<String> = text.lines().map(str::to_owned).collect();
    detector.read(Look { rows: &rows, ..Look::default() }, &mut Memo::default())
}

#[test]
fn a_field_without_a_frame_ends_above_its_footer() {
    let layout = serde_json::json!({ "composer": "^>", "only_below": "^  ", "not_below": "enter confirms" });
    let detector = detector(serde_json::json!({ "layout": layout })).unwrap();
    let draft = |text: &str| read(&detector, text).draft;
    assert_eq!(draft("said\n\n> one\n  two\n\n  three\n\n  footer").as_deref(), Some("one\ntwo\n\nthree"));
    assert_eq!(draft("> one\n\n  footer\n  more").as_deref(), Some("one"));
    assert_eq!(draft("> one"), None, "nothing tells it from text");
    assert_eq!(draft("> one\n\nsaid\n\n  footer"), None, "something was said below");
    assert_eq!(draft("> one\n\n  enter confirms"), None, "a dialog");
}

#[test]
fn a_field_with_a_border_is_the_last_block() {
    let layout = serde_json::json!({ "composer": "^ *┃", "frame_below": "^ *╹", "info_rows": 1 });
    let detector = detector(serde_json::json!({ "layout": layout })).unwrap();
    let text = "  ┃  asked\n\n  ┃\n  ┃  one\n  ┃    two\n  ┃\n  ┃  mode\n  ╹▀▀\n  footer";
    assert_eq!(read(&detector, text).draft.as_deref(), Some("one\n  two"));
    assert_eq!(read(&detector, "  ┃  asked").draft, None);
}

#[test]
fn a_name_for_several_patterns_is_one_condition() {
    let rule = serde_json::json!({ "id": "a", "status": "idle", "all": ["@EITHER", "^c"], "why": "" });
    let patterns = serde_json::json!({ "EITHER": ["^a", "^b"] });
    let detector = detector(serde_json::json!({ "patterns": patterns, "rule": [rule] })).unwrap();
    assert_eq!(read(&detector, "b\nc").rule, "a");
    assert_eq!(read(&detector, "a\nb").rule, "none");
}

#[test]
fn right_below_skips_blank_rows() {
    let rule = serde_json::json!({ "id": "a", "status": "error", "any": ["^end"], "right_below": "^bad", "why": "" });
    let detector = detector(serde_json::json!({ "rule": [rule] })).unwrap();
    assert_eq!(read(&detector, "bad\n\nend").rule, "a");
    assert_eq!(read(&detector, "bad\ngood\nend").rule, "none");
    assert_eq!(read(&detector, "end").rule, "none");
}

#[test]
fn a_rule_that_fails_its_example_is_refused() {
    let rule = serde_json::json!({ "id": "a", "status": "idle", "any": ["^x"], "why": "", "holds": ["y"] });
    let error = detector(serde_json::json!({ "rule": [rule] })).unwrap_err();
    assert!(error.to_string().contains("\"a\" does not hold"), "{error}");
}

/// A prompt is typed where a screen is ready, and a menu would take its Enter as an answer.
#[test]
fn rules_that_call_a_menu_ready_are_refused() {
    let dialog = serde_json::json!({ "cursors": "❯" });
    let idle = serde_json::json!({ "id": "ready", "status": "idle", "any": ["^ *❯"], "why": "" });
    let menu = serde_json::json!({ "id": "menu", "status": "waiting_user_answer", "kind": "question", "when": ["menu"], "why": "" });
    let with = |rules: &[&serde_json::Value]| detector(serde_json::json!({ "dialog": dialog, "rule": rules }));
    let error = with(&[&idle]).unwrap_err().to_string();
    assert!(error.starts_with("rule \"ready\" says idle while a menu stands on the screen"), "{error}");
    with(&[&menu, &idle]).unwrap();
}

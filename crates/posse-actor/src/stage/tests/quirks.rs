//! The measured oddities of the real tools, each switched on by an option.

use super::*;

#[test]
fn an_enter_right_after_the_first_box_is_swallowed() {
    for (option, wait, expected) in [
        ("", 0, vec![submitted("x"), started(1, "x"), ended(1, Outcome::Done)]),
        ("swallow_first_enter = true", 99, vec![Record::Ignored(Ignored::FirstEnter)]),
        ("swallow_first_enter = true", 100, vec![submitted("x"), started(1, "x"), ended(1, Outcome::Done)]),
    ] {
        let mut theatre = with_steps(&format!("look = \"claude\"\n{option}"), "");
        theatre.records();
        theatre.wait_ms(wait);
        theatre.keys("\x1b[200~x\x1b[201~\r");
        assert_eq!(theatre.records(), expected, "{option} {wait}");
    }
}

#[test]
fn a_fresh_dialog_is_deaf() {
    let mut theatre = with_steps("look = \"claude\"\nauto_prompt = \"x\"\ndialog_deaf_ms = 200", ASK);
    theatre.records();
    theatre.wait_ms(199);
    theatre.keys("1");
    assert_eq!(theatre.records(), [Record::Ignored(Ignored::DialogDeaf)]);
    theatre.wait_ms(1);
    theatre.keys("1");
    assert_eq!(theatre.records().last(), Some(&ended(1, Outcome::Done)));
}

#[test]
fn y_can_be_made_to_accept_and_not_to() {
    for (head, closes) in
        [("look = \"claude\"\ny_accepts = true", true), ("look = \"codex\"\ny_accepts = false", false)]
    {
        let mut theatre = with_steps(&format!("{head}\nauto_prompt = \"x\""), ASK);
        theatre.records();
        theatre.keys("y");
        assert_eq!(!theatre.records().is_empty(), closes, "{head}");
    }
}

#[test]
fn keys_between_the_announcement_and_the_dialog_become_a_draft() {
    let steps = r#"{ ask = { kind = "permission", command = "make", announce = "900ms" } }"#;
    let mut theatre = with_steps("look = \"codex\"\nauto_prompt = \"x\"", steps);
    let blocked = osc("7501;state=blocked:app=codex:kind=permission");
    assert!(theatre.happened().contains(&blocked));
    theatre.wait_ms(500);
    theatre.keys("y");
    assert!(theatre.screen().contains("› y\n"), "{}", theatre.screen());
    assert_eq!(theatre.records(), []);
    theatre.wait_ms(400);
    assert!(matches!(theatre.records()[..], [Record::DialogDrawn { .. }]));
    theatre.keys("y");
    assert_eq!(theatre.records().last(), Some(&ended(1, Outcome::Done)));
    assert!(theatre.screen().contains("› y\n"), "the draft is still there");
}

#[test]
fn typed_text_with_an_enter_at_its_heels_looks_like_a_paste() {
    let mut theatre = with_steps("look = \"codex\"\nburst_guard_ms = 100", "");
    theatre.records();
    theatre.keys("typed\r");
    assert_eq!(theatre.records(), []);
    theatre.wait_ms(100);
    theatre.keys("\r");
    assert_eq!(theatre.records()[0], submitted("typed\n"));
    theatre.keys("\x1b[200~pasted\x1b[201~\r");
    assert_eq!(theatre.records()[0], submitted("pasted"), "a real paste needs no delay");
}

#[test]
fn clearing_a_draft() {
    for (option, keys, left) in [
        ("", "one\ntwo\x15", ""),
        ("ctrl_u = \"line\"", "one\ntwo\x15", "one\n"),
        ("ctrl_u = \"line\"", "one\ntwo\x15\x15\x15", ""),
        ("", "one\x7f\x7f", "o"),
        ("", "one\x1b\x1b\x15", ""),
    ] {
        let mut theatre = open(&format!("look = \"claude\"\n{option}"));
        theatre.keys(keys);
        assert_eq!(theatre.stage.draft.message().text, left, "{option} {keys:?}");
    }
    let mut theatre = open("look = \"claude\"");
    theatre.keys("three\nline\ndraft\x1b");
    theatre.wait_ms(60);
    assert!(theatre.screen().contains("Press Esc again to clear"));
    theatre.keys("\x1b");
    theatre.wait_ms(60);
    assert!(theatre.stage.draft.is_empty());
}

#[test]
fn a_draft_goes_before_the_next_paste_and_early_keys_are_kept() {
    let mut theatre = with_steps("look = \"claude\"\nstart = [{ pause = \"1s\" }]", "");
    theatre.keys("early \r");
    theatre.wait_ms(1000);
    theatre.records();
    theatre.keys("\x1b[200~prompt\x1b[201~\r");
    assert_eq!(theatre.records()[0], submitted("early prompt"));
}

#[test]
fn without_turns_it_repeats_what_it_hears() {
    let mut theatre = open("look = \"codex\"");
    theatre.keys("hello\r");
    assert!(theatre.screen().contains("• You said: hello\n"));
}

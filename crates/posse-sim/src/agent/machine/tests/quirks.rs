//! Measured quirks of the real tools.

use super::*;

#[test]
fn new_dialog_ignores_keys() {
    let mut theatre = with_steps("look = \"claude\"\nauto_prompt = \"x\"\ndialog_deaf = \"200ms\"", ASK);
    theatre.records();
    theatre.wait_ms(199);
    theatre.keys("1");
    assert_eq!(theatre.records(), [AgentRecord::Ignored]);
    theatre.wait_ms(1);
    theatre.keys("1");
    assert_eq!(theatre.records().last(), Some(&ended(1, TurnOutcome::Done)));
}

#[test]
fn keys_between_announcement_and_dialog_become_a_draft() {
    let steps = r#"{ ask = { kind = "permission", command = "make", announce = "900ms" } }"#;
    let mut theatre = with_steps("look = \"codex\"\nauto_prompt = \"x\"", steps);
    let blocked = osc("7501;state=blocked:app=codex:kind=permission");
    assert!(theatre.happened().contains(&blocked));
    theatre.wait_ms(500);
    theatre.keys("y");
    assert!(theatre.screen().contains("› y\n"), "{}", theatre.screen());
    assert_eq!(theatre.records(), []);
    theatre.wait_ms(400);
    assert_eq!(theatre.records(), [AgentRecord::DialogDrawn]);
    theatre.keys("y");
    assert_eq!(theatre.records().last(), Some(&ended(1, TurnOutcome::Done)));
    assert!(theatre.screen().contains("› y\n"), "the draft is still there");
}

#[test]
fn enter_right_after_typed_text_becomes_a_line_break() {
    let mut theatre = with_steps("look = \"codex\"\nburst_guard = \"100ms\"", "");
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
fn draft_can_be_cleared() {
    for (keys, left) in [("one\ntwo\x15", ""), ("one\x7f\x7f", "o")] {
        let mut theatre = open("look = \"claude\"");
        theatre.keys(keys);
        assert_eq!(theatre.agent.draft.message().text, left, "{keys:?}");
    }
}

#[test]
fn early_keys_are_kept_and_precede_the_next_paste() {
    let mut theatre = with_steps("look = \"claude\"\nstart = [{ pause = \"1s\" }]", "");
    theatre.keys("early \r");
    theatre.wait_ms(1000);
    theatre.records();
    theatre.keys("\x1b[200~prompt\x1b[201~\r");
    assert_eq!(theatre.records()[0], submitted("early prompt"));
}

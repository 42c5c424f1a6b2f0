use jiff::Timestamp;
use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr;

use super::*;
use crate::status_area::painted;
use crate::ui::Ui;

fn view() -> LoopView {
    serde_json::from_value(json!({
        "id": "0a0b0c0d", "status": "running", "directory": "/p", "session_name": "s", "round": 1, "max_rounds": 8,
        "cycle": 1, "phase": "programmer", "turns": 3, "auto_accept": true, "steps": [], "state_file": "/p/s",
        "files": "/p/a", "waits": false, "limits": [], "used": {}, "created": Timestamp::now(), "changed": Timestamp::now(),
        "turn": { "number": 3, "key": "programmer", "role": "programmer", "terminal": "00000003", "attempt": 2,
            "since": Timestamp::now(), "sent": true, "accepts": 1 },
        "terminals": { "analyst": "00000001", "programmer": "00000003" },
    }))
    .unwrap()
}

fn terminal(id: &str, status: &str, dialog: &Value) -> Terminal {
    serde_json::from_value(json!({
        "id": id, "name": "n", "session_name": "s", "provider": "claude_code", "status": status,
        "reason": "", "dialog": dialog, "since": Timestamp::now(), "epoch": 1, "awaiting_reaction": false,
        "title": "✳ 日本語 ".repeat(20),
        "working_directory": "/p", "command": [], "size": { "rows": 24, "cols": 80 }, "created_at": Timestamp::now(),
        "last_active": Timestamp::now(),
    }))
    .unwrap()
}

fn terminals() -> Vec<Terminal> {
    let dialog = json!({ "id": "d", "kind": "permission", "title": "", "question": "Do you want to proceed?",
        "detail": [], "tool": "Bash", "subject": "cargo test\u{1b}[2J ".repeat(9), "options": [], "evidence": "screen_only" });
    vec![terminal("00000001", "completed", &Value::Null), terminal("00000003", "waiting_user_answer", &dialog)]
}

/// The rows as somebody without colours sees them.
fn shown(tail: &str, rows: usize, columns: usize) -> Vec<String> {
    let ui = Ui::dull();
    picture(&view(), &terminals(), tail, rows, columns).iter().map(|row| painted(row, columns, &ui).0).collect()
}

/// What is wider or higher than the window cannot be drawn over again.
#[test]
fn it_fits_the_window() {
    let tail = "a very long line that goes on and on \u{7} ".repeat(20) + "\n" + &"line\n".repeat(40);
    for (rows, columns) in [(9, 1), (10, 20), (24, 40), (24, 80), (40, 120), (100, 300)] {
        let shown = shown(&tail, rows, columns);
        assert!(shown.len() < rows, "{rows}x{columns}: {shown:#?}");
        for line in shown {
            assert!(line.width() <= columns && !line.chars().any(char::is_control), "{rows}x{columns}: {line:?}");
        }
    }
}

#[test]
fn it_says_where_the_run_is_and_what_each_agent_does() {
    let shown = shown("● Running the tests.\n\n────────────\n❯ \n────────────\n", 24, 80);
    assert_eq!(shown[1], "round 1/8  programmer, review 1  turn 3  0s  1 accepted  run 0a0b0c0d");
    assert!(shown[2].starts_with("  analyst         ✓ completed             0s  00000001  claude_code"), "{shown:#?}");
    assert_eq!(shown[3], "  peer_analyst    starting");
    assert!(shown[4].starts_with("▸ programmer      ? waiting_user_answer   0s  00000003  asks"), "{shown:#?}");
    assert_eq!(shown[7..], ["  │ ● Running the tests.", "  │ ❯ "], "frames and empty rows say nothing");
}

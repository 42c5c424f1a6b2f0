use jiff::Timestamp;
use serde_json::{Value, json};

use super::*;

fn view() -> RunView {
    serde_json::from_value(json!({
        "id": "0a0b0c0d", "status": "running", "directory": "/p", "session_name": "s", "round": 1, "max_rounds": 8,
        "cycle": 1, "phase": "programmer", "turns": 3, "auto_accept": true, "steps": [], "state_file": "/p/s",
        "archive": "/p/a", "created": Timestamp::now(), "changed": Timestamp::now(),
        "turn": { "number": 3, "key": "programmer", "role": "programmer", "terminal": "00000003", "attempt": 2,
            "since": Timestamp::now(), "sent": true, "accepts": 1 },
        "terminals": { "analyst": "00000001", "programmer": "00000003" },
    }))
    .unwrap()
}

fn terminal(id: &str, status: &str, dialog: Value) -> Terminal {
    serde_json::from_value(json!({
        "id": id, "name": "n", "session_name": "s", "provider": "claude_code", "backend": "embedded", "status": status,
        "reason": "", "dialog": dialog, "since": Timestamp::now(), "epoch": 1, "title": "✳ 日本語 ".repeat(20),
        "working_directory": "/p", "command": [], "size": { "rows": 24, "cols": 80 }, "created_at": Timestamp::now(),
        "last_active": Timestamp::now(),
    }))
    .unwrap()
}

fn terminals() -> Vec<Terminal> {
    let dialog = json!({ "id": "d", "kind": "permission", "title": "", "question": "Do you want to proceed?",
        "detail": [], "tool": "Bash", "subject": "cargo test\u{1b}[2J ".repeat(9), "options": [] });
    vec![terminal("00000001", "completed", Value::Null), terminal("00000003", "waiting_user_answer", dialog)]
}

/// What is wider or higher than the window cannot be drawn over again.
#[test]
fn it_fits_any_window() {
    let tail = "a very long line that goes on and on \u{7} ".repeat(20) + "\n" + &"line\n".repeat(40);
    for (rows, columns) in [(1, 1), (4, 20), (24, 40), (24, 80), (40, 120), (100, 300)] {
        let text = picture(&view(), &terminals(), &tail, (rows, columns), &Ui::dull());
        assert!(text.lines().count() < rows.max(1), "{rows}x{columns}:\n{text}");
        for line in text.lines() {
            assert!(line.width() <= columns && !line.chars().any(char::is_control), "{rows}x{columns}: {line:?}");
        }
    }
}

#[test]
fn it_says_where_the_run_is_and_what_each_agent_does() {
    let tail = "● Running the tests.\n\n────────────\n❯ \n────────────\n";
    let text = picture(&view(), &terminals(), tail, (24, 80), &Ui::dull());
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[1], "round 1 of at most 8 · programmer · turn 3, 0s · try 2 · 1 accepted");
    assert!(lines[2].starts_with("  analyst          ✓ completed "), "{text}");
    assert_eq!(lines[3], "  peer_analyst     starting");
    assert!(
        lines[4].starts_with("▸ programmer       ? waiting_user_answer   0s  claude_code  00000003  asks: "),
        "{text}"
    );
    assert!(lines[7].starts_with("── programmer 00000003 ──"), "{text}");
    assert_eq!(lines[8..], ["● Running the tests.", "❯ "], "frames and empty rows say nothing");
}

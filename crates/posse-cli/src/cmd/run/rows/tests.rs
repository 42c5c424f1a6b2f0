use serde_json::{Value, json};

use super::*;

const NOW: &str = "2026-01-01T00:10:05Z";

fn loop_run() -> (RunView, RunDetails) {
    let dialog = json!({ "id": "d", "kind": "permission", "title": "", "question": "Do you want to proceed?",
        "detail": [], "tool": "Bash", "subject": "cargo test\u{1b}[2J ".repeat(9), "options": [], "evidence": "screen_only" });
    let terminal = |id: &str, status: &str, dialog: &Value| -> Terminal {
        serde_json::from_value(json!({
            "id": id, "name": "n", "session_name": "s", "provider": "claude_code", "status": status,
            "reason": "", "dialog": dialog, "since": Timestamp::now(), "epoch": 1, "awaiting_reaction": false,
            "title": "✳ 日本語 ".repeat(20),
            "working_directory": "/p", "command": [], "size": { "rows": 24, "cols": 80 }, "created_at": NOW,
            "last_active": NOW,
        }))
        .unwrap()
    };
    let run = json!({
        "kind": "loop", "id": "0a0b0c0d", "status": "running", "directory": "/p", "session_name": "s", "round": 1,
        "max_rounds": 8, "cycle": 1, "phase": "programmer", "turns": 3, "auto_accept": true, "steps": [],
        "state_file": "/p/s", "files": "/p/a", "waits": false, "limits": [], "used": {}, "created": "2026-01-01T00:00:00Z", "changed": NOW,
        "turn": { "number": 3, "key": "programmer", "role": "programmer", "terminal": "00000003", "attempt": 2,
            "since": Timestamp::now(), "sent": true, "accepts": 1 },
        "terminals": { "analyst": "00000001", "programmer": "00000003" },
    });
    let terminals =
        vec![terminal("00000001", "completed", &Value::Null), terminal("00000003", "waiting_user_answer", &dialog)];
    let screen = "● Running the tests.\n\n────────────\n❯ \n────────────\n".into();
    (serde_json::from_value(run).unwrap(), RunDetails { terminals, screen, ..RunDetails::default() })
}

fn plan(many: usize) -> (RunView, RunDetails) {
    let task = |id: &str, section: &str, status: &str, more: Value| {
        let mut record = json!({ "status": status, "attempts": 0, "last_attempt": null, "model_used": null,
            "completed_at": null, "result_message": null, "last_error": null, "failure_kind": null,
            "validation_attempts": 0, "validation_findings": [], "suspended_at": null, "question": null,
            "answer": null, "skip_reason": null, "cost_usd": null, "commits": [] });
        record.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({ "id": id, "name": format!("Do {id} 日本"), "section": section, "status": status, "record": record })
    };
    let verified = json!({ "attempts": 1, "last_attempt": "2026-01-01T00:00:00Z",
        "completed_at": "2026-01-01T00:01:12Z", "model_used": "sonnet", "cost_usd": 0.25 });
    let mut tasks = vec![
        task("1.1", "Commands", "verified", verified),
        task("1.2", "Commands", "in_progress", json!({ "attempts": 2, "last_attempt": "2026-01-01T00:10:00Z" })),
        task("2.1", "Finish", "pending", json!({})),
        task("2.2", "Finish", "failed", json!({ "attempts": 3, "last_error": "no \u{1b}[2J report" })),
        task("2.3", "Finish", "suspended", json!({ "question": "Which\ncolour?" })),
    ];
    tasks.extend((0..many).map(|n| task(&format!("9.{n}"), "Many", "pending", json!({}))));
    let run = json!({
        "kind": "plan", "id": "0a0b0c0d", "status": "running", "file": "/p/plan.yaml", "name": "A plan",
        "directory": "/p", "outcome": null, "reason": null, "tasks": tasks,
        "sessions": [{ "task": "1.2", "name": "1.2-2", "validates": false, "agent": "coder", "model": "opus",
            "attempt": 2, "since": "2026-01-01T00:10:00Z", "doing": "Edit lib/count.sh" }],
        "hold": null, "resting": [], "limits": [], "taken": [], "provider": "claude_code", "wishes": [],
        "waits": false, "used": { "sessions": 3, "cost_usd": 0.75, "cost_unknown": 0, "partial": 0, "turns": 3,
            "input_tokens": 1, "output_tokens": 1, "cache_read_tokens": 0, "cache_creation_tokens": 0,
            "api_seconds": 1.0, "seconds": 1.0 },
        "sandbox": "on", "created": "2026-01-01T00:00:00Z", "changed": NOW, "files": "/s", "report": null,
    });
    (serde_json::from_value(run).unwrap(), RunDetails::default())
}

/// The rows without colours.
fn shown((run, details): &(RunView, RunDetails), rows: usize, columns: usize) -> Vec<String> {
    let rows = picture(run, details, NOW.parse().unwrap(), rows, columns);
    rows.iter().map(|row| painted(row, columns, &Ui::dull()).0.trim_end().to_owned()).collect()
}

/// Rows wider or higher than the window cannot be redrawn.
#[test]
fn pictures_fit_the_window_and_show_what_is_worked_on() {
    let mut loop_run = loop_run();
    loop_run.1.screen = "a very long line that goes on and on \u{7} ".repeat(20) + "\n" + &"line\n".repeat(40);
    for (run, busy) in [(loop_run, "▸ programmer"), (plan(0), "▸ 1.2"), (plan(3), "▸ 1.2"), (plan(200), "▸ 1.2")]
    {
        for (rows, columns) in [(2, 10), (6, 1), (8, 20), (12, 40), (24, 80), (60, 200)] {
            let shown = shown(&run, rows, columns);
            assert!(shown.len() < rows, "{rows}x{columns}: {shown:#?}");
            for line in &shown {
                let fits = line.width() <= columns && !line.chars().any(char::is_control);
                assert!(fits, "{rows}x{columns}: {line:?}");
            }
            if rows > 8 && columns > 30 {
                assert!(shown.iter().any(|line| line.contains(busy)), "{rows}x{columns}: {shown:#?}");
            }
        }
    }
}

#[test]
fn rows_say_where_the_loop_is_and_what_each_agent_does() {
    let shown = shown(&loop_run(), 24, 80);
    assert_eq!(shown[1], "round 1/8  programmer, review 1  turn 3  0s  run 0a0b0c0d  10m05s");
    assert!(shown[2].starts_with("  analyst          ✓ completed            0s  00000001  claude_code"), "{shown:#?}");
    assert_eq!(shown[3], "  peer_analyst     starting");
    assert!(
        shown[4].starts_with("▸ programmer       ? waiting_user_answer  0s  00000003  1 accepted  asks"),
        "{shown:#?}"
    );
    assert_eq!(shown[7..], ["  │ ● Running the tests.", "  │ ❯"], "frames and empty rows say nothing");
}

#[test]
fn rows_of_a_backlog_name_the_task_of_the_items_plan() {
    let (RunView::Plan(plan), _) = plan(0) else { panic!("it is a plan") };
    let run = json!({
        "kind": "backlog", "id": "0a0b0c0e", "status": "running", "directory": "/p", "mode": "drain", "waits": false,
        "limits": [], "used": {}, "created": "2026-01-01T00:00:00Z", "changed": NOW, "files": "/s", "sandbox": "on",
        "doing": [{ "item": "1-foo", "step": "executing", "since": Timestamp::now(), "plan_run": "0a0b0c0d" }],
        "items": [{ "item": "1-foo", "title": "Foo", "standing": "in_progress", "reason": "executing", "attempts": 0,
            "verifications_failed": 0, "cost": "" }],
    });
    let details = RunDetails { plans: vec![plan], ..RunDetails::default() };
    let shown = shown(&(serde_json::from_value(run).unwrap(), details), 24, 80);
    assert_eq!(shown[2], "▸ 1-foo  Foo  executing  0s  1/5 tasks  1.2 Do 1.2 日本");
}

#[test]
fn rows_say_how_each_task_stands() {
    insta::assert_snapshot!(shown(&plan(0), 24, 100).join("\n"));
}

#[test]
fn narrow_window_counts_the_sections_of_a_long_plan() {
    insta::assert_snapshot!(shown(&plan(200), 12, 44).join("\n"));
}

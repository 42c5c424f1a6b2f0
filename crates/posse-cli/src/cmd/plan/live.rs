//! The rows of a plan: sections and tasks, the state of each, and what its session does.

use posse_api::{PlanView, SessionView, TaskView};
use posse_core::plan::TaskStatus;
use unicode_width::UnicodeWidthStr;

use crate::cmd::run::picture::{self, holds, is_done, mark};
use crate::status_area::Row;
use crate::ui::{Colour, cut, plain, took};

/// Rows that are left to what scrolls by above.
const ABOVE: usize = 4;

/// The picture: never higher or wider than the window. Sections that do not fit are shown as numbers; tasks that run are always shown.
pub(crate) fn picture(view: &PlanView, now: jiff::Timestamp, rows: usize, columns: usize) -> Vec<Row> {
    let mut head = head(view, now, columns);
    let room = rows.saturating_sub(head.len() + ABOVE).max(1);
    let names = names(&view.tasks, columns);
    let sections = sections(&view.tasks);
    let whole: usize = sections.iter().map(|tasks| 1 + tasks.len()).sum();
    let mut tree = Vec::new();
    // The row of the first task that is worked on.
    let mut busy = None;
    for tasks in &sections {
        tree.push(section(tasks));
        let moves = tasks.iter().any(|task| is_busy(task, &view.sessions));
        if whole > room && !moves {
            continue;
        }
        for task in *tasks {
            if busy.is_none() && is_busy(task, &view.sessions) {
                busy = Some(tree.len());
            }
            tree.push(row(task, &view.sessions, now, &names));
        }
    }
    let from = busy.unwrap_or(0).saturating_sub(room / 2).min(tree.len().saturating_sub(room));
    head.extend(tree.into_iter().skip(from).take(room));
    head.truncate(rows.saturating_sub(1));
    head
}

/// All sections and tasks, each task with a note if there is one.
pub(super) fn tree(
    tasks: &[TaskView],
    sessions: &[SessionView],
    note: impl Fn(&TaskView) -> Option<String>,
) -> Vec<Row> {
    let names = names(tasks, usize::MAX);
    let mut tree = Vec::new();
    for tasks in self::sections(tasks) {
        tree.push(section(tasks));
        for task in tasks {
            let mut row = row(task, sessions, jiff::Timestamp::now(), &names);
            row.extend(note(task).map(|note| (format!("  {}", plain(&note)), Some(Colour::Dim))));
            tree.push(row);
        }
    }
    tree
}

fn head(view: &PlanView, now: jiff::Timestamp, columns: usize) -> Vec<Row> {
    let done = view.tasks.iter().filter(|task| is_done(task.status)).count();
    let elapsed = took(now.duration_since(view.created).as_secs());
    let mut facts = format!("  {done}/{} tasks  {elapsed}", view.tasks.len());
    if view.used.sessions > 0 {
        facts.push_str(&format!("  {}", view.used.cost()));
    }
    let name = cut(&plain(&view.name), columns.saturating_sub(facts.width()).max(8));
    let mut head = picture::head("─", columns, vec![(name, Some(Colour::Bold)), (facts, None)]);
    let holds = holds(view.hold.as_ref(), view.paused_until);
    head.extend(holds.into_iter().map(|text| vec![(text, Some(Colour::Yellow))]));
    head
}

/// Tasks of one section follow each other.
fn sections(tasks: &[TaskView]) -> Vec<&[TaskView]> {
    tasks.chunk_by(|a, b| a.section == b.section).collect()
}

fn session_of<'a>(task: &TaskView, sessions: &'a [SessionView]) -> Option<&'a SessionView> {
    sessions.iter().find(|session| session.task == task.id)
}

fn is_busy(task: &TaskView, sessions: &[SessionView]) -> bool {
    task.status == TaskStatus::InProgress || session_of(task, sessions).is_some()
}

fn section(tasks: &[TaskView]) -> Row {
    let name = tasks.first().map(|task| plain(&task.section)).unwrap_or_default();
    let done = tasks.iter().filter(|task| is_done(task.status)).count();
    let failed = tasks.iter().any(|task| task.status == TaskStatus::Failed);
    let colour = match (failed, done == tasks.len()) {
        (true, _) => Colour::Red,
        (false, true) => Colour::Green,
        _ => Colour::Dim,
    };
    vec![(name, Some(Colour::Bold)), (format!("  {done}/{}", tasks.len()), Some(colour))]
}

/// The widths of the columns of ids and names.
struct NameWidths {
    id: usize,
    name: usize,
}

fn names(tasks: &[TaskView], columns: usize) -> NameWidths {
    let widest = |of: &dyn Fn(&TaskView) -> usize| tasks.iter().map(of).max().unwrap_or(0);
    let id = widest(&|task| task.id.as_str().width()).min(12);
    // Room for what it does, in any window that has room at all.
    let name = widest(&|task| plain(&task.name).width()).min((columns / 2).max(12));
    NameWidths { id, name }
}

fn padded(text: &str, width: usize) -> String {
    let text = cut(&plain(text), width);
    format!("{text}{}", " ".repeat(width.saturating_sub(text.width())))
}

fn row(task: &TaskView, sessions: &[SessionView], now: jiff::Timestamp, names: &NameWidths) -> Row {
    let (sign, colour) = mark(task.status);
    let session = session_of(task, sessions);
    let quiet = !is_busy(task, sessions) && (is_done(task.status) || task.status == TaskStatus::Pending);
    let name = format!("{}  {}", padded(task.id.as_str(), names.id), padded(&task.name, names.name));
    let mut row: Row = vec![(format!("  {sign} "), colour), (name, quiet.then_some(Colour::Dim))];
    let facts = facts(task, session, now);
    row.extend(facts.iter().map(|fact| (format!("  {fact}"), Some(Colour::Dim))));
    if let Some(doing) = session.and_then(|session| session.doing.as_deref()) {
        row.push((format!("  {}", plain(doing)), None));
    }
    row
}

/// Time, attempt, model, cost: what is known of it.
fn facts(task: &TaskView, session: Option<&SessionView>, now: jiff::Timestamp) -> Vec<String> {
    let record = &task.record;
    let time = |text: &Option<String>| text.as_deref().and_then(|text| text.parse::<jiff::Timestamp>().ok());
    let ended = match task.status {
        TaskStatus::InProgress | TaskStatus::Completed => Some(now),
        TaskStatus::Verified => time(&record.completed_at),
        _ => None,
    };
    let took_so_long =
        time(&record.last_attempt).zip(ended).map(|(begun, end)| took(end.duration_since(begun).as_secs()));
    let mut facts: Vec<String> = took_so_long.into_iter().collect();
    if record.attempts > 1 || (record.attempts > 0 && task.status == TaskStatus::Pending) {
        facts.push(match task.status {
            TaskStatus::InProgress => format!("attempt {}", record.attempts),
            _ => format!("{} attempts", record.attempts),
        });
    }
    match session {
        Some(session) if session.validates => facts.push(format!("{} looks at it", session.agent)),
        Some(session) => facts.push(session.agent.clone()),
        None => {}
    }
    facts.extend(session.and_then(|session| session.model.clone()).or_else(|| record.model_used.clone()));
    facts.extend(record.cost_usd.map(|cost| format!("{cost:.2} USD")));
    match task.status {
        TaskStatus::Failed => facts.extend(record.last_error.as_deref().map(plain)),
        TaskStatus::Suspended => facts.extend(record.question.as_deref().map(plain)),
        _ => {}
    }
    facts
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::status_area::painted;
    use crate::ui::Ui;

    const NOW: &str = "2026-01-01T00:10:05Z";

    fn view(many: usize) -> PlanView {
        let task = |id: &str, section: &str, status: &str, more: serde_json::Value| {
            let mut record = json!({ "status": status, "attempts": 0, "last_attempt": null, "model_used": null,
                "completed_at": null, "result_message": null, "last_error": null, "failure_kind": null,
                "validation_attempts": 0, "validation_findings": [], "suspended_at": null, "question": null,
                "answer": null, "skip_reason": null, "cost_usd": null, "commits": [] });
            record.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            json!({ "id": id, "name": format!("Do {id} 日本"), "section": section, "status": status, "record": record })
        };
        let mut tasks = vec![
            task(
                "1.1",
                "Commands",
                "verified",
                json!({ "attempts": 1, "last_attempt": "2026-01-01T00:00:00Z",
                "completed_at": "2026-01-01T00:01:12Z", "model_used": "sonnet", "cost_usd": 0.25 }),
            ),
            task("1.2", "Commands", "in_progress", json!({ "attempts": 2, "last_attempt": "2026-01-01T00:10:00Z" })),
            task("2.1", "Finish", "pending", json!({})),
            task("2.2", "Finish", "failed", json!({ "attempts": 3, "last_error": "no \u{1b}[2J report" })),
            task("2.3", "Finish", "suspended", json!({ "question": "Which\ncolour?" })),
        ];
        tasks.extend((0..many).map(|n| task(&format!("9.{n}"), "Many", "pending", json!({}))));
        serde_json::from_value(json!({
            "id": "0a0b0c0d", "status": "running", "file": "/p/plan.yaml", "name": "A plan", "directory": "/p",
            "outcome": null, "reason": null, "tasks": tasks,
            "sessions": [{ "task": "1.2", "name": "1.2-2", "validates": false, "agent": "coder", "model": "opus",
                "attempt": 2, "since": "2026-01-01T00:10:00Z", "doing": "Edit lib/count.sh" }],
            "hold": null, "resting": [], "limits": [], "taken": [], "provider": "claude_code", "wishes": [],
            "waits": false, "used": { "sessions": 3, "cost_usd": 0.75, "cost_unknown": 0, "partial": 0, "turns": 3,
                "input_tokens": 1, "output_tokens": 1, "cache_read_tokens": 0, "cache_creation_tokens": 0,
                "api_seconds": 1.0, "seconds": 1.0 },
            "sandbox": "on", "created": "2026-01-01T00:00:00Z", "changed": NOW, "files": "/s", "report": null,
        }))
        .unwrap()
    }

    fn shown(view: &PlanView, rows: usize, columns: usize) -> Vec<String> {
        let ui = Ui::dull();
        let rows = picture(view, NOW.parse().unwrap(), rows, columns);
        rows.iter().map(|row| painted(row, columns, &ui).0.trim_end().to_owned()).collect()
    }

    #[test]
    fn it_fits_the_window_and_what_runs_is_in_it() {
        for many in [0, 3, 200] {
            let view = view(many);
            for (rows, columns) in [(2, 10), (6, 1), (8, 20), (10, 40), (24, 80), (60, 200)] {
                let shown = shown(&view, rows, columns);
                assert!(shown.len() < rows, "{rows}x{columns}: {shown:#?}");
                for line in &shown {
                    assert!(
                        line.width() <= columns && !line.chars().any(char::is_control),
                        "{rows}x{columns}: {line:?}"
                    );
                }
                if rows > 6 && columns > 30 {
                    assert!(shown.iter().any(|line| line.contains("▸ 1.2")), "{many} {rows}x{columns}: {shown:#?}");
                }
            }
        }
    }

    #[test]
    fn it_says_how_each_task_stands() {
        insta::assert_snapshot!(shown(&view(0), 24, 100).join("\n"));
    }

    #[test]
    fn a_narrow_window_and_a_long_plan() {
        insta::assert_snapshot!(shown(&view(200), 12, 44).join("\n"));
    }
}

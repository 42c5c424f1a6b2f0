//! Plans for people to look at.

use posse_core::plan::file::{Task, section_status};
use posse_core::plan::select::{Selection, Standing, Why};
use posse_core::plan::{Plan, Problem, State, TaskStatus};

use posse_server::plans::view::PlanView;

use crate::foot::Row;
use crate::ui::{Colour, Ui, age, plain};

/// A problem, with the line it is about.
pub(super) fn problem(file: &str, text: &str, problem: &Problem, word: &str, ui: &Ui) -> String {
    let colour = if word == "error" { Colour::Red } else { Colour::Yellow };
    let mut shown = format!("{} {}\n", ui.paint(&format!("{word}:"), colour), plain(&problem.message));
    let mut quote = |line: usize, column: usize, width: usize, why: &str| {
        let row = text.lines().nth(line.saturating_sub(1)).unwrap_or_default();
        let margin = line.to_string();
        let blank = " ".repeat(margin.len());
        shown.push_str(&format!("  {}{file}:{line}:{column}\n", ui.paint(&format!("{blank}─ "), Colour::Dim)));
        shown.push_str(&format!("  {} {}\n", ui.paint(&format!("{margin} │"), Colour::Dim), plain(row)));
        let mark = "^".repeat(width.clamp(1, row.chars().count().saturating_sub(column - 1).max(1)));
        let mark = format!("{}{} {why}", " ".repeat(column.saturating_sub(1)), ui.paint(&mark, colour));
        shown.push_str(&format!("  {} {}\n", ui.paint(&format!("{blank} │"), Colour::Dim), mark.trim_end()));
    };
    quote(problem.at.line.max(1), problem.at.column.max(1), problem.at.end.saturating_sub(problem.at.start), "");
    for (at, why) in &problem.also {
        quote(at.line.max(1), at.column.max(1), at.end.saturating_sub(at.start), why);
    }
    if let Some(hint) = &problem.hint {
        shown.push_str(&format!("  {} {}\n", ui.paint("hint:", Colour::Blue), plain(hint)));
    }
    shown.push('\n');
    shown
}

fn mark(status: TaskStatus) -> (&'static str, Option<Colour>) {
    match status {
        TaskStatus::Pending => ("○", Some(Colour::Dim)),
        TaskStatus::InProgress => ("▸", Some(Colour::Blue)),
        TaskStatus::Completed => ("●", Some(Colour::Green)),
        TaskStatus::Verified => ("✓", Some(Colour::Green)),
        TaskStatus::Failed => ("✗", Some(Colour::Red)),
        TaskStatus::Skipped => ("–", Some(Colour::Dim)),
        TaskStatus::Suspended => ("?", Some(Colour::Yellow)),
    }
}

/// Sections and tasks.
pub(super) fn tree(plan: &Plan, state: &State, selection: &Selection, ui: &Ui) -> String {
    let mut text = format!("{}\n", ui.paint(&plain(&plan.name), Colour::Bold));
    for section in &plan.sections {
        let status = section_status(section.tasks.iter().map(|task| state.status(&task.id)));
        text.push_str(&format!(
            "{} {}  {}\n",
            section.id,
            plain(&section.name),
            ui.paint(status.as_str(), Colour::Dim)
        ));
        for task in &section.tasks {
            let status = state.status(&task.id);
            let (sign, colour) = mark(status);
            let sign = colour.map_or_else(|| sign.to_owned(), |colour| ui.paint(sign, colour));
            let said = note(task, state, selection);
            text.push_str(&format!("  {sign} {:<8} {}", task.id.as_str(), plain(&task.name)));
            if !said.is_empty() {
                text.push_str(&format!("  {}", ui.paint(&plain(&said), Colour::Dim)));
            }
            text.push('\n');
        }
    }
    let word = match selection.standing {
        Standing::Going => "can go on",
        Standing::Complete => "complete",
        Standing::Failed => "at its end, with failures",
        Standing::Suspended => "waits for an answer",
        Standing::Deadlocked => "deadlocked: what is left needs something that failed",
        Standing::Partial => "done as far as was asked",
    };
    text.push_str(&format!("{word}\n"));
    text
}

/// What a run does now, in lines.
pub(super) fn run(view: &PlanView) -> String {
    let mut text = format!("run {} goes on, for {}\n", view.id, age(view.created));
    for session in &view.sessions {
        text.push_str(&format!("  {}\n", session_line(session)));
    }
    if let Some(hold) = &view.hold {
        let until = hold.until.to_zoned(jiff::tz::TimeZone::system()).strftime("%F %T");
        text.push_str(&format!("  no session before {until}: {}\n", plain(&hold.reason)));
    }
    for taken in &view.taken {
        text.push_str(&format!("  {} is held by {}\n", plain(&taken.name), plain(&taken.held_by)));
    }
    for limit in &view.limits {
        text.push_str(&format!("  {}: {} of {:.2} USD\n", plain(&limit.name), limit.spent.cost(), limit.limit_usd));
    }
    if view.waits {
        text.push_str(&format!("  waits: `posse plan run {}` goes on with it\n", view.file));
    }
    text
}

fn session_line(session: &posse_server::plans::view::SessionView) -> String {
    let verb = if session.validates { "is validated by" } else { "by" };
    let doing = session.doing.as_deref().map(|doing| format!("  {}", plain(doing))).unwrap_or_default();
    format!(
        "task {} {verb} {}, attempt {}, {}{doing}",
        session.task,
        session.agent,
        session.attempt,
        age(session.since)
    )
}

/// The tree of a run, for the foot of a window: as much of it as fits, what runs first.
pub(super) fn progress(view: &PlanView, rows: usize, columns: usize) -> Vec<Row> {
    let dim = |text: String| (text, Some(Colour::Dim));
    let done = view.tasks.iter().filter(|task| matches!(task.status, TaskStatus::Verified | TaskStatus::Skipped));
    let head = format!("{}  {}/{} tasks  {}", plain(&view.name), done.count(), view.tasks.len(), age(view.created));
    let mut picture: Vec<Row> = vec![vec![dim("─".repeat(columns))], vec![(head, Some(Colour::Bold))]];
    if let Some(hold) = &view.hold {
        let until = hold.until.to_zoned(jiff::tz::TimeZone::system()).strftime("%T");
        picture.push(vec![(format!("no session before {until}: {}", plain(&hold.reason)), Some(Colour::Yellow))]);
    }
    let room = rows.saturating_sub(picture.len() + 2);
    let busy = view.tasks.iter().position(|task| task.status == TaskStatus::InProgress).unwrap_or(0);
    let from = busy.saturating_sub(room / 2).min(view.tasks.len().saturating_sub(room));
    for task in view.tasks.iter().skip(from).take(room) {
        let (sign, colour) = mark(task.status);
        let mut row: Row =
            vec![(format!("{sign} "), colour), (format!("{:<8} {}", task.id.as_str(), plain(&task.name)), None)];
        if let Some(session) = view.sessions.iter().find(|session| session.task == task.id) {
            let doing = session.doing.as_deref().map(plain).unwrap_or_default();
            row.push(dim(format!("  {} {}  {doing}", session.agent, age(session.since))));
        }
        picture.push(row);
    }
    picture
}

/// What to say behind a task.
fn note(task: &Task, state: &State, selection: &Selection) -> String {
    if selection.start.contains(&task.id) {
        return "next".into();
    }
    let record = state.get(&task.id);
    match (state.status(&task.id), selection.blocked.iter().find(|(id, _)| *id == task.id)) {
        (TaskStatus::Failed, _) => record.and_then(|record| record.last_error.clone()).unwrap_or_default(),
        (TaskStatus::Suspended, _) => record.and_then(|record| record.question.clone()).unwrap_or_default(),
        (_, Some((_, why))) => in_words(why),
        _ => String::new(),
    }
}

fn in_words(why: &Why) -> String {
    match why {
        Why::Running => "a session works on it".into(),
        Why::Validating => "is being validated".into(),
        Why::ValidationDue => "waits for its validation".into(),
        Why::Suspended => "waits for an answer".into(),
        Why::Needs(chains) => {
            let chains: Vec<String> = chains
                .iter()
                .map(|chain| {
                    let links: Vec<String> = chain.iter().map(|(task, status)| format!("{task} ({status})")).collect();
                    links.join(" ← ")
                })
                .collect();
            format!("needs {}", chains.join(", "))
        }
        Why::NoAttemptsLeft { attempts, of } => format!("was tried {attempts} times of {of}"),
        Why::Resting => "pauses after a failure".into(),
        Why::Resource { name, held_by } => format!("{name} is held by {held_by}"),
        Why::Files { path, task } => format!("{task} writes {path} too"),
        Why::Turn => "waits for its turn".into(),
        Why::NotAsked => "was not asked for".into(),
    }
}

/// One task, and why it stands where it stands.
pub(super) fn why(task: &Task, state: &State, selection: &Selection) -> String {
    let mut text = format!("{} {}\nstatus     {}\n", task.id, plain(&task.name), state.status(&task.id));
    let mut add = |name: &str, value: &str| text.push_str(&format!("{name:<10} {}\n", plain(value)));
    let said = if selection.start.contains(&task.id) {
        "nothing is in its way: it is next".into()
    } else {
        note(task, state, selection)
    };
    if !said.is_empty() {
        add("because", &said);
    }
    add("agent", task.agent());
    if let Some(record) = state.get(&task.id) {
        if record.attempts > 0 {
            add("attempts", &record.attempts.to_string());
        }
        for (name, value) in [
            ("result", &record.result_message),
            ("error", &record.last_error),
            ("question", &record.question),
            ("answer", &record.answer),
            ("skipped", &record.skip_reason),
        ] {
            if let Some(value) = value {
                add(name, value);
            }
        }
        record.validation_findings.iter().for_each(|finding| add("finding", finding));
        record.commits.iter().for_each(|commit| add("commit", commit));
    }
    text
}

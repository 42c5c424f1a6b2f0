//! Plans for people to look at.

use posse_api::PlanView;
use posse_core::plan::file::{Task, section_status};
use posse_core::plan::select::{Selection, Standing, Why};
use posse_core::plan::{Plan, State, TaskStatus};

use crate::ui::{Colour, Ui, age, plain};

/// How wide bars are.
const BAR: usize = 10;

pub(super) fn mark(status: TaskStatus) -> (&'static str, Option<Colour>) {
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

fn is_done(status: TaskStatus) -> bool {
    matches!(status, TaskStatus::Verified | TaskStatus::Skipped)
}

/// How much of a section is done.
fn bar(done: usize, of: usize) -> String {
    let full = (done * BAR).checked_div(of).unwrap_or(0);
    format!("{}{} {done}/{of}", "█".repeat(full), "░".repeat(BAR - full))
}

/// Sections and tasks.
pub(super) fn tree(plan: &Plan, state: &State, selection: &Selection, ui: &Ui) -> String {
    let mut text = format!("{}\n", ui.paint(&plain(&plan.name), Colour::Bold));
    for section in &plan.sections {
        let status = section_status(section.tasks.iter().map(|task| state.status(&task.id)));
        let done = section.tasks.iter().filter(|task| is_done(state.status(&task.id))).count();
        let bar = bar(done, section.tasks.len());
        let title = match section.name == section.id {
            true => plain(&section.id),
            false => format!("{} {}", plain(&section.id), plain(&section.name)),
        };
        text.push_str(&format!("{title}  {bar} {}\n", ui.paint(status.as_str(), Colour::Dim)));
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
    if let Some(until) = view.paused_until {
        let until = until.to_zoned(jiff::tz::TimeZone::system()).strftime("%F %T");
        text.push_str(&format!("  sessions failed one after the other; none before {until}\n"));
    }
    if view.used.sessions > 0 {
        text.push_str(&format!("  {} sessions ended, {}\n", view.used.sessions, view.used.cost()));
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

fn session_line(session: &posse_api::SessionView) -> String {
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

pub(super) fn in_words(why: &Why) -> String {
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

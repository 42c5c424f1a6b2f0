//! Runs as text: the table of all runs, and a single run.

use posse_api::{LoopView, RunView};
use posse_core::engine::RunOutcome;
use posse_core::run::RunStatus;

use super::follow::how_to_continue;
use super::rows::{mode, obstacles, progress};
use super::{render, sessions};
use crate::ui::{Cell, Colour, Ui, age, plain};

fn colour(status: RunStatus) -> Colour {
    match status {
        RunStatus::Running => Colour::Blue,
        RunStatus::Parked | RunStatus::Stopped => Colour::Yellow,
        RunStatus::Passed => Colour::Green,
        RunStatus::Failed => Colour::Red,
    }
}

/// Returns a run's current activity, or the reason why it is idle.
fn doing(run: &RunView) -> String {
    if let Some(reason) = &run.reason {
        return reason.lines().next().unwrap_or_default().to_owned();
    }
    let now: Vec<String> = match run {
        RunView::Loop(run) => run.turn.iter().map(|turn| format!("{}, turn {}", turn.key, turn.number)).collect(),
        RunView::Plan(plan) => plan.sessions.iter().map(|session| session.name.clone()).collect(),
        RunView::Backlog(backlog) => {
            backlog.doing.iter().map(|doing| format!("{} {}", doing.item, doing.step)).collect()
        }
    };
    now.join(", ")
}

pub(super) fn table(runs: &[RunView], ui: &Ui) -> String {
    let row = |run: &RunView| {
        vec![
            Cell::new(run.id.to_string(), Colour::Bold),
            Cell::new(run.kind().as_str(), None),
            Cell::new(run.status.to_string(), Some(colour(run.status))),
            Cell::from(age(run.created)),
            Cell::from(progress(run)),
            Cell::from(if let RunView::Plan(plan) = run { plan.file.clone() } else { run.directory.clone() }),
            Cell::new(doing(run), Colour::Dim),
        ]
    };
    ui.table(&["ID", "KIND", "STATUS", "AGE", "PROGRESS", "OF", "DOING"], runs.iter().map(row))
}

/// One run without its jobs.
pub(in crate::cmd) fn facts(run: &RunView, ui: &Ui) -> String {
    let mut text = String::new();
    let mut add = |name: &str, value: String| text.push_str(&format!("{name:<16} {value}\n"));
    let of = match run {
        RunView::Loop(_) => "of the loop".into(),
        RunView::Plan(plan) => format!("of the plan {}", plan.file),
        RunView::Backlog(backlog) => format!("of the backlog: {}", mode(backlog.mode)),
    };
    add("run", format!("{}, {of}", run.id));
    let status = ui.paint(run.status.as_str(), colour(run.status));
    match (run.is_active(), run.outcome) {
        (true, _) => add("status", format!("{status}, for {}", age(run.created))),
        (false, Some(outcome)) => {
            let how = sessions::ended(outcome, run.reason.as_deref());
            add("status", format!("{status} {} ago: {how}", age(run.changed)));
        }
        (false, None) => {
            add("status", format!("{status}, {} ago", age(run.changed)));
            run.reason.iter().for_each(|reason| add("because", plain(reason)));
        }
    }
    let is_over = run.outcome.is_some_and(RunOutcome::is_success) || run.status.is_over();
    if run.waits || !(run.is_active() || is_over) {
        add("next", how_to_continue(run));
    }
    add("project", run.directory.clone());
    obstacles(run).into_iter().for_each(|text| add("waits", text));
    add("progress", progress(run));
    if let RunView::Loop(run) = run {
        of_loop(run, &mut add);
    } else {
        add("used", format!("{} sessions, {}", run.used.sessions, run.used.cost()));
        for limit in &run.limits {
            add("used", format!("{}: {} of {:.2} USD", plain(&limit.name), limit.spent.cost(), limit.limit_usd));
        }
    }
    add(if matches!(run, RunView::Loop(_)) { "answers" } else { "files" }, run.files.clone());
    text
}

fn of_loop(run: &LoopView, add: &mut impl FnMut(&str, String)) {
    add("turns", run.turns.to_string());
    if let Some(turn) = &run.turn {
        let (key, role, terminal) = (turn.key, turn.role, turn.terminal);
        let since = age(turn.since);
        add("turn", format!("{key} of the {role} in terminal {terminal}, for {since}, {} accepted", turn.accepts));
    }
    for step in &run.steps {
        add("after", format!("{}: {}: {}", render::step(step.step), step.outcome, plain(&step.text)));
    }
    let accepts = if run.auto_accept { "permissions are accepted by posse" } else { "a person answers" };
    add("accepts", accepts.into());
    add("state", run.state_file.clone());
}

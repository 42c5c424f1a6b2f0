//! Runs as text: the table of all, and one of them.

use posse_api::{LoopView, PlanView, RunView};
use posse_core::run::RunStatus;

use super::followed::how_to_continue;
use super::picture::{holds, is_done, money};
use super::{render, sessions};
use crate::cmd::{auto, plan};
use crate::ui::{Cell, Colour, Ui, age, plain};

fn colour(status: RunStatus) -> Colour {
    match status {
        RunStatus::Running => Colour::Blue,
        RunStatus::Parked | RunStatus::Stopped => Colour::Yellow,
        RunStatus::Passed => Colour::Green,
        RunStatus::Failed => Colour::Red,
    }
}

/// How far a run is.
fn progress(run: &RunView) -> String {
    match run {
        RunView::Loop(run) => format!("round {}/{}, {}", run.round, run.max_rounds, run.phase),
        RunView::Plan(plan) => {
            let done = plan.tasks.iter().filter(|task| is_done(task.status)).count();
            format!("{done}/{} tasks", plan.tasks.len())
        }
        RunView::Backlog(backlog) => auto::draw::counts(backlog),
    }
}

/// What a run does now, or the reason why it does nothing.
fn doing(run: &RunView) -> String {
    let reason = run.reason.as_deref().and_then(|reason| reason.lines().next()).map(str::to_owned);
    let now = || match run {
        RunView::Loop(run) => run.turn.iter().map(|turn| format!("{}, turn {}", turn.key, turn.number)).collect(),
        RunView::Plan(plan) => plan.sessions.iter().map(|session| session.name.clone()).collect::<Vec<_>>(),
        RunView::Backlog(backlog) => {
            backlog.doing.iter().map(|doing| format!("{} {}", doing.item, doing.step)).collect()
        }
    };
    reason.unwrap_or_else(|| now().join(", "))
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

/// One run. `plans`: the runs of a backlog's plans.
pub(super) fn text(run: &RunView, plans: &[PlanView], ui: &Ui) -> String {
    let mut text = String::new();
    let mut add = |name: &str, value: String| text.push_str(&format!("{name:<16} {value}\n"));
    add("run", format!("{}, {}", run.id, what(run)));
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
    let is_over = run.outcome.is_some_and(posse_core::engine::RunOutcome::is_success) || run.status.is_over();
    if run.waits || !(run.is_active() || is_over) {
        add("next", how_to_continue(run));
    }
    add("project", run.directory.clone());
    let paused = if let RunView::Plan(plan) = run { plan.paused_until } else { None };
    holds(run.hold.as_ref(), paused).into_iter().for_each(|hold| add("parked", hold));
    add("progress", progress(run));
    if let RunView::Loop(run) = run {
        of_loop(run, &mut add);
    } else {
        money(&run.used, &run.limits).into_iter().for_each(|line| add("used", line));
    }
    add(if matches!(run, RunView::Loop(_)) { "answers" } else { "files" }, run.files.clone());
    match run {
        RunView::Loop(_) => {}
        RunView::Plan(view) => text.push_str(&plan::draw::tasks(view, ui)),
        RunView::Backlog(view) => text.push_str(&auto::draw::status(view, plans, ui)),
    }
    text
}

fn what(run: &RunView) -> String {
    match run {
        RunView::Loop(_) => "of the loop".into(),
        RunView::Plan(plan) => format!("of the plan {}", plan.file),
        RunView::Backlog(backlog) => format!("of the backlog: {}", auto::draw::mode(backlog.mode)),
    }
}

fn of_loop(run: &LoopView, add: &mut impl FnMut(&str, String)) {
    add("turns", run.turns.to_string());
    if let Some(turn) = &run.turn {
        let accepted =
            if turn.accepts > 0 { format!(", {} permissions accepted", turn.accepts) } else { String::new() };
        let (key, role, terminal) = (turn.key, turn.role, turn.terminal);
        add("turn", format!("{key} of the {role} in terminal {terminal}, for {}{accepted}", age(turn.since)));
    }
    for (role, terminal) in &run.terminals {
        add(role.as_str(), terminal.to_string());
    }
    for step in &run.steps {
        add("after", format!("{}: {}: {}", render::step(step.step), step.outcome, plain(&step.text)));
    }
    add(
        "accepts",
        if run.auto_accept { "permissions are accepted by posse".into() } else { "a person answers".into() },
    );
    add("state", run.state_file.clone());
}

//! The text of `posse plan status`.

use posse_api::{PlanView, TaskView};
use posse_core::plan::select::Standing;
use posse_core::plan::{Plan, TaskStatus};

use super::{KnownPlan, live};
use crate::cmd::run::picture::{holds, money};
use crate::status_area::painted;
use crate::ui::{Colour, Ui, age, plain};

/// The status of a plan: sections and tasks, whether it can go on, and its run.
pub(super) fn status(plan: &Plan, known: &KnownPlan, ui: &Ui) -> String {
    let mut tasks = Vec::new();
    for section in &plan.sections {
        tasks.extend(section.tasks.iter().map(|task| TaskView {
            id: task.id.clone(),
            name: task.name.clone(),
            section: section.name.clone(),
            status: known.state.status(&task.id),
            record: known.state.get(&task.id).cloned().unwrap_or_default(),
            shown: None,
        }));
    }
    let note = |task: &TaskView| match (known.selection.start.contains(&task.id), known.blocked(&task.id)) {
        (true, _) => Some("next".to_owned()),
        (false, Some(why)) if task.status != TaskStatus::Suspended => Some(why.to_string()),
        _ => None,
    };
    let sessions = known.run.as_ref().map(|run| run.sessions.as_slice()).unwrap_or_default();
    let rows = live::tree(&tasks, sessions, note);
    let rows: String = rows.iter().map(|row| format!("{}\n", painted(row, usize::MAX, ui).0.trim_end())).collect();
    let word = match known.selection.standing {
        Standing::Going => "can go on",
        Standing::Complete => "complete",
        Standing::Failed => "at its end, with failures",
        Standing::Suspended => "waits for an answer",
        Standing::Deadlocked => "deadlocked: what is left needs something that failed",
        Standing::Partial => "done as far as was asked",
    };
    let name = ui.paint(&plain(&plan.name), Colour::Bold);
    let run = known.run.as_ref().map(run).unwrap_or_default();
    format!("{name}\n{rows}{word}\n{run}")
}

/// The tasks of a run, and what it needs that others hold.
pub(in crate::cmd) fn tasks(view: &PlanView, ui: &Ui) -> String {
    let rows = live::tree(&view.tasks, &view.sessions, |_| None);
    let taken = view.taken.iter().map(|taken| format!("{} is held by {}\n", plain(&taken.name), plain(&taken.held_by)));
    rows.iter().map(|row| format!("{}\n", painted(row, usize::MAX, ui).0.trim_end())).chain(taken).collect()
}

/// The lines about a run that is not over.
fn run(view: &PlanView) -> String {
    let mut lines = vec![format!("run {} goes on, for {}", view.id, age(view.created))];
    lines.extend(holds(view.hold.as_ref(), view.paused_until));
    lines.extend(money(&view.used, &view.limits));
    lines.extend(view.taken.iter().map(|taken| format!("{} is held by {}", plain(&taken.name), plain(&taken.held_by))));
    if view.waits {
        lines.push(format!("waits: `posse plan run {}` goes on with it", view.file));
    }
    lines.join("\n  ") + "\n"
}

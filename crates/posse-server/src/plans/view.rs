//! Makes the view of a run of a plan.

use posse_api::{PlanView, RestView, SessionView, TakenView, TaskView};
use posse_core::plan::file::{Section, Task};
use posse_core::plan::machine::{Part, Run};
use posse_core::time::Wall;

use super::PlanLedger;
use crate::run::view::summary;

pub(super) fn plan_view(ledger: &PlanLedger, files: &str) -> PlanView {
    PlanView { tasks: task_views(&ledger.machine), ..without_tasks(ledger, files) }
}

pub(super) fn without_tasks(ledger: &PlanLedger, files: &str) -> PlanView {
    let machine = &ledger.machine;
    PlanView {
        run: summary(ledger, files),
        file: ledger.spec.file.clone(),
        name: machine.plan().name.clone(),
        item: ledger.spec.item.clone(),
        tasks: Vec::new(),
        sessions: ledger
            .launched
            .iter()
            .map(|(run, launched)| SessionView {
                task: run.task.clone(),
                name: run.to_string(),
                validates: run.part != Part::Work,
                agent: launched.agent.clone(),
                model: launched.model.clone(),
                attempt: launched.attempt.unwrap_or(1),
                since: launched.at.timestamp(),
                doing: ledger.activity.get(run).cloned(),
            })
            .collect(),
        paused_until: machine.paused().map(Wall::timestamp),
        resting: machine
            .resting()
            .iter()
            .map(|(task, until)| RestView { task: task.clone(), until: until.timestamp() })
            .collect(),
        taken: machine
            .taken_by_others()
            .iter()
            .map(|(name, held_by)| TakenView { name: name.clone(), held_by: held_by.clone() })
            .collect(),
        sandbox: ledger.spec.sandbox,
        wishes: ledger.spec.wishes.clone(),
        report: ledger.report.clone(),
    }
}

fn task_views(run: &Run) -> Vec<TaskView> {
    let (plan, state) = (run.plan(), run.state());
    let of_section = |section: &Section| {
        let view = |task: &Task| TaskView {
            id: task.id.clone(),
            name: task.name.clone(),
            section: section.name.clone(),
            status: state.status(&task.id),
            shown: run.status_left_in_file(&task.id),
            record: state.get(&task.id).cloned().unwrap_or_default(),
        };
        section.tasks.iter().map(view).collect::<Vec<_>>()
    };
    plan.sections.iter().flat_map(of_section).collect()
}

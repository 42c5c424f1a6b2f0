//! Makes the view of a run of a plan.

use std::collections::BTreeMap;
use std::sync::Arc;

use posse_api::{
    EventBody, HoldView, LimitView, PlanEntry, PlanJournalView, PlanRunStatus, PlanView, RestView, SessionView,
    TakenView, TaskView,
};
use posse_core::ids::RunId;
use posse_core::plan::file::{Section, Task};
use posse_core::plan::machine::{self, Part, Run};
use posse_core::plan::{Plan, State};
use posse_core::time::Wall;

use super::ledger::Ledger;

pub(super) fn plan_view(ledger: &Ledger, files: &str) -> PlanView {
    PlanView { tasks: Tasks::of(&ledger.run).views(), ..without_tasks(ledger, files) }
}

pub(super) fn without_tasks(ledger: &Ledger, files: &str) -> PlanView {
    PlanView {
        id: ledger.spec.id,
        status: if ledger.closed { PlanRunStatus::Over } else { PlanRunStatus::Running },
        file: ledger.spec.file.clone(),
        name: ledger.run.plan().name.clone(),
        directory: ledger.spec.directory.clone(),
        outcome: ledger.ended.as_ref().map(|(outcome, _)| *outcome),
        reason: ledger.ended.as_ref().map(|(_, reason)| reason.clone()),
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
                attempt: launched.attempt,
                since: launched.at.timestamp(),
                doing: None,
            })
            .collect(),
        hold: ledger.run.hold().map(|hold| HoldView { until: hold.until.timestamp(), reason: hold.reason.clone() }),
        paused_until: ledger.run.paused().map(Wall::timestamp),
        resting: ledger
            .run
            .resting()
            .iter()
            .map(|(task, until)| RestView { task: task.clone(), until: until.timestamp() })
            .collect(),
        waits: ledger.waits,
        used: ledger.total.clone(),
        limits: ledger
            .run
            .levels()
            .iter()
            .filter_map(|level| {
                let (name, spent) = (level.name.clone(), level.spent.clone());
                Some(LimitView { name, limit_usd: level.limit_usd?, spent })
            })
            .collect(),
        taken: ledger
            .run
            .taken_by_others()
            .iter()
            .map(|(name, held_by)| TakenView { name: name.clone(), held_by: held_by.clone() })
            .collect(),
        provider: ledger.spec.provider.clone(),
        sandbox: ledger.spec.sandbox,
        wishes: ledger.spec.wishes.clone(),
        created: ledger.begun.timestamp(),
        changed: ledger.changed.timestamp(),
        files: files.to_owned(),
        report: ledger.report.clone(),
    }
}

/// Adds what the sessions are doing.
pub(super) fn with_activity(mut view: PlanView, heard: &BTreeMap<String, String>) -> PlanView {
    for session in &mut view.sessions {
        session.doing = heard.get(&session.name).cloned();
    }
    view
}

/// The tasks of a run as they were at a time. Cheap to take; to be seen they are written out.
#[derive(Clone)]
pub(super) struct Tasks {
    plan: Arc<Plan>,
    state: State,
}

impl Tasks {
    pub(super) fn of(run: &Run) -> Self {
        Self { plan: run.shared_plan(), state: run.state().clone() }
    }

    pub(super) fn views(&self) -> Vec<TaskView> {
        let of_section = |section: &Section| {
            let view = |task: &Task| TaskView {
                id: task.id.clone(),
                name: task.name.clone(),
                section: section.name.clone(),
                status: self.state.status(&task.id),
                record: self.state.get(&task.id).cloned().unwrap_or_default(),
            };
            section.tasks.iter().map(view).collect::<Vec<_>>()
        };
        self.plan.sections.iter().flat_map(of_section).collect()
    }
}

/// The event for a new entry.
pub(super) fn entry_event(run_id: RunId, run_seq: i64, at: Wall, entry: &PlanEntry) -> EventBody {
    let view = PlanJournalView { seq: run_seq, at: at.timestamp(), entry: entry.clone() };
    EventBody::PlanEntry { run_id, run_seq, view: Some(Box::new(view)) }
}

/// The name of a session's terminal.
pub(super) fn terminal_name(plan: RunId, run: &machine::RunId) -> String {
    fitting(&format!("plan-{plan}-{run}"))
}

/// As a name for a terminal. Dots, which ids have and names of terminals may not, become `_`.
pub(crate) fn fitting(name: &str) -> String {
    let name: String = name.chars().map(|c| if c == '.' { '_' } else { c }).collect();
    if name.chars().count() <= posse_core::ids::NAME_MAX {
        return name;
    }
    // Long ids differ somewhere: their fingerprint does too.
    let mark = name
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    let head: String = name.chars().take(posse_core::ids::NAME_MAX - 17).collect();
    format!("{head}-{mark:016x}")
}

//! Parts that the views of all kinds of runs have.

use posse_api::{HoldView, LimitView, RunSummary};
use posse_core::engine::{Machine, RunOutcome};
use posse_core::plan::budget::Level;
use posse_core::run::RunStatus;

use super::{RunLedger, Workflow};

pub(crate) fn summary<W: Workflow>(ledger: &RunLedger<W>, files: &str) -> RunSummary {
    let machine = &ledger.machine;
    let fields = W::fields(&ledger.spec);
    let outcome = machine.outcome().map(|(outcome, _)| outcome);
    RunSummary {
        id: fields.id,
        status: match outcome.filter(|_| ledger.closed) {
            Some(outcome) => status(outcome),
            None if machine.hold().is_some() => RunStatus::Parked,
            None => RunStatus::Running,
        },
        directory: fields.directory.to_owned(),
        outcome,
        reason: machine.outcome().map(|(_, reason)| reason.to_owned()),
        hold: machine.hold().map(|hold| HoldView { until: hold.until.timestamp(), reason: hold.reason.clone() }),
        waits: ledger.waits,
        used: W::used(ledger).clone(),
        limits: machine.levels().iter().filter_map(limit_view).collect(),
        provider: Some(fields.provider.to_owned()),
        created: ledger.begun.timestamp(),
        changed: ledger.changed.timestamp(),
        files: files.to_owned(),
    }
}

fn status(outcome: RunOutcome) -> RunStatus {
    match outcome {
        RunOutcome::Verified | RunOutcome::CompletedWithWarnings => RunStatus::Passed,
        RunOutcome::Stopped | RunOutcome::Suspended | RunOutcome::BudgetExhausted | RunOutcome::RateLimited => {
            RunStatus::Stopped
        }
        _ => RunStatus::Failed,
    }
}

fn limit_view(level: &Level) -> Option<LimitView> {
    let (name, spent) = (level.name.clone(), level.spent.clone());
    Some(LimitView { name, limit_usd: level.limit_usd?, spent })
}

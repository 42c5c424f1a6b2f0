//! Makes the view of a run.

use posse_api::{EventBody, LoopJournalView, RunView, StepView, StoppedView, TurnView};
use posse_core::ids::RunId;
use posse_core::run::{Entry, Ledger, Place, Step, StepOutcome};
use posse_core::time::Wall;

pub(super) fn run_view(ledger: &Ledger) -> RunView {
    let spec = &ledger.spec;
    RunView {
        id: spec.id,
        status: ledger.status(),
        directory: spec.directory.clone(),
        session_name: spec.session.to_string(),
        round: ledger.rounds.round(),
        max_rounds: spec.config.limits.max_rounds,
        cycle: ledger.rounds.cycle(),
        phase: match ledger.place {
            Place::After(_) | Place::Over(_) => "done".into(),
            _ => ledger.rounds.phase().to_string(),
        },
        turn: ledger.turn().map(|turn| TurnView {
            number: turn.turn,
            key: turn.key,
            role: turn.key.role(),
            terminal: turn.terminal,
            attempt: turn.attempt,
            since: turn.sent.unwrap_or(turn.begun).timestamp(),
            sent: turn.sent.is_some(),
            accepts: turn.accepts,
        }),
        turns: ledger.turns,
        terminals: ledger.terminals.clone(),
        auto_accept: spec.config.handoff.auto_accept_permissions,
        parked_until: ledger.parked.map(Wall::timestamp),
        stopped: ledger.stopped.clone().map(|(stop, why)| StoppedView { stop, why }),
        steps: ledger.steps.iter().map(|(step, outcome)| step_view(*step, outcome)).collect(),
        created: ledger.begun.timestamp(),
        changed: ledger.changed.timestamp(),
        state_file: spec.state_file.clone(),
        archive: format!("{}/.tmp/{}", spec.directory, spec.stamp),
        config_hash: spec.config_hash.clone(),
    }
}

fn step_view(step: Step, outcome: &StepOutcome) -> StepView {
    let (outcome, text) = match outcome {
        StepOutcome::Done(text) => ("done", text),
        StepOutcome::Skipped(text) => ("skipped", text),
        StepOutcome::Failed(text) => ("failed", text),
    };
    StepView { step, outcome: outcome.into(), text: text.clone() }
}

/// The event for a new entry.
pub(super) fn entry_event(run_id: RunId, run_seq: i64, at: Wall, entry: &Entry) -> EventBody {
    let view = LoopJournalView { seq: run_seq, at: at.timestamp(), entry: entry.clone() };
    EventBody::LoopEntry { run_id, run_seq, view: Some(Box::new(view)) }
}

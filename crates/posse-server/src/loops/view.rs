//! Makes the views of a run of the loop and of its journal.

use posse_api::{LoopJournalView, RunView, StepView, StoppedView, TurnView};
use posse_core::engine::Machine;
use posse_core::run::{Ledger, Place, Run, Step, StepOutcome};
use posse_core::time::Wall;

use super::driver::LoopEntry;
use crate::run::journal::Replay;

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

/// What the last input of a run has led to.
pub(super) fn told(run: &Run, at: Wall) -> impl Iterator<Item = LoopJournalView> {
    run.told().map(move |(seq, entry)| LoopJournalView { seq, at: at.timestamp(), entry: entry.clone() })
}

/// Everything that a run was told of, oldest first.
pub(super) struct ToldJournal(pub(super) Vec<LoopJournalView>);

impl Replay for ToldJournal {
    type Entry = LoopEntry;

    fn replay(journal: impl IntoIterator<Item = (Wall, LoopEntry)>) -> Option<Self> {
        let mut journal = journal.into_iter();
        let (at, LoopEntry::Created(spec)) = journal.next()? else { return None };
        let mut run = Run::new(*spec, at);
        let mut all: Vec<LoopJournalView> = told(&run, at).collect();
        for (at, entry) in journal {
            if let LoopEntry::Happened(input) = entry {
                run.handle(*input, at);
                all.extend(told(&run, at));
            }
        }
        Some(Self(all))
    }
}

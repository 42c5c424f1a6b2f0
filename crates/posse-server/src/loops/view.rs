//! Makes the views of a run of the loop and of its journal.

use posse_api::{EntryView, HoldView, JournalView, LoopView, RunSummary, StepView, TurnView};
use posse_core::engine::Machine;
use posse_core::plan::budget::Total;
use posse_core::run::{Ledger, Place, Run, Step, StepOutcome, Stop};
use posse_core::time::Wall;

use super::driver::LoopEntry;
use crate::run::journal::Replay;

/// The reason of a parked run.
const PARKED: &str = "the model cannot be reached, or its quota is used up";

pub(super) fn run_view(ledger: &Ledger) -> LoopView {
    let spec = &ledger.spec;
    let hold = |until: Wall| HoldView { until: until.timestamp(), reason: PARKED.into() };
    let stop = ledger.stopped.as_ref().map(|(stop, _)| *stop);
    LoopView {
        run: RunSummary {
            id: spec.id,
            status: ledger.status(),
            directory: spec.directory.clone(),
            outcome: None,
            reason: ledger.stopped.as_ref().map(|(_, why)| why.clone()),
            hold: ledger.parked.map(hold),
            waits: stop == Some(Stop::Alone),
            used: Total::default(),
            limits: Vec::new(),
            provider: None,
            created: ledger.begun.timestamp(),
            changed: ledger.changed.timestamp(),
            files: format!("{}/.tmp/{}", spec.directory, spec.stamp),
        },
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
        stop,
        steps: ledger.steps.iter().map(|(step, outcome)| step_view(*step, outcome)).collect(),
        state_file: spec.state_file.clone(),
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
pub(super) fn told(run: &Run, at: Wall) -> impl Iterator<Item = JournalView> {
    run.told().map(move |(seq, entry)| JournalView { seq, at: at.timestamp(), entry: EntryView::Loop(entry.clone()) })
}

/// Everything that a run was told of, oldest first.
pub(super) struct ToldJournal(pub(super) Vec<JournalView>);

impl Replay for ToldJournal {
    type Entry = LoopEntry;

    fn replay(journal: impl IntoIterator<Item = (Wall, LoopEntry)>) -> Option<Self> {
        let mut journal = journal.into_iter();
        let (at, LoopEntry::Created { spec }) = journal.next()? else { return None };
        let mut run = Run::new(*spec, at);
        let mut all: Vec<JournalView> = told(&run, at).collect();
        for (at, entry) in journal {
            if let LoopEntry::Happened { event } = entry {
                run.handle(*event, at);
                all.extend(told(&run, at));
            }
        }
        Some(Self(all))
    }
}

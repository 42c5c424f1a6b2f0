//! Makes the views of a run of the loop and of its journal.

use posse_api::{EntryView, JournalView, LoopView, RunSummary, StepView, TurnView};
use posse_core::engine::Machine;
use posse_core::run::{Run, Step, StepOutcome, Stop};
use posse_core::time::Wall;

use super::LoopLedger;
use super::driver::LoopEntry;
use crate::run::view::summary;

pub(super) fn run_view(ledger: &LoopLedger, files: &str) -> LoopView {
    let (run, spec) = (&ledger.machine, &ledger.spec);
    let (stop, summary) = (run.stopped, summary(ledger, files));
    LoopView {
        run: RunSummary {
            status: run.status(),
            // A stopped run can be resumed.
            outcome: None,
            reason: summary.reason.filter(|_| stop.is_some()),
            waits: stop == Some(Stop::Alone),
            provider: None,
            ..summary
        },
        session_name: spec.session.to_string(),
        round: run.rounds.round(),
        max_rounds: spec.config.limits.max_rounds,
        cycle: run.rounds.cycle(),
        phase: run.rounds.phase().to_string(),
        turn: run.turn().map(|turn| TurnView {
            number: turn.turn,
            key: turn.key,
            role: turn.key.role(),
            terminal: turn.terminal,
            attempt: turn.attempt,
            since: turn.sent.unwrap_or(turn.begun).timestamp(),
            sent: turn.sent.is_some(),
            accepts: turn.accepts,
        }),
        turns: run.turns,
        terminals: run.terminals.clone(),
        auto_accept: run.spec.config.handoff.auto_accept_permissions,
        stop,
        steps: run.steps.iter().map(|(step, outcome)| step_view(*step, outcome)).collect(),
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

/// Returns the log entries that the last input of a run produced.
pub(super) fn told(run: &Run, at: Wall) -> impl Iterator<Item = JournalView> {
    run.told().map(move |(seq, entry)| JournalView { seq, at: at.timestamp(), entry: EntryView::Loop(entry.clone()) })
}

/// Returns the log entries after this one, oldest first.
pub(super) fn told_after(journal: Vec<(i64, Wall, LoopEntry)>, after: i64) -> Vec<JournalView> {
    let mut journal = journal.into_iter();
    let Some((_, at, LoopEntry::Created { spec })) = journal.next() else { return Vec::new() };
    let mut run = Run::new(*spec, at);
    let mut all: Vec<JournalView> = told(&run, at).collect();
    for (_, at, entry) in journal {
        if let LoopEntry::Happened { event } = entry {
            run.handle(*event, at);
            all.extend(told(&run, at));
        }
    }
    all.retain(|view| view.seq > after);
    all
}

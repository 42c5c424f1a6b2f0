//! The run as its state file shows it: a mirror of the journal, for people and other tools.

use serde_json::Value;

use super::Effect;
use super::ledger::{Ledger, Place};
use crate::rounds::state::{FinalStatus, InFlight, StateFile, TerminalOf};
use crate::rounds::{Final, Phase};
use crate::time::Wall;

/// The file as it is now.
pub(super) fn now(ledger: &Ledger, at: Wall) -> Effect {
    let (state, dispatched) = state_file(ledger);
    Effect::Mirror { state: Box::new(state), at, dispatched }
}

/// The file as it goes to the archive: only now, when all that comes after the verdict is done, does it tell of it.
pub(super) fn last(ledger: &Ledger, verdict: Final, at: Wall) -> Effect {
    let (mut state, dispatched) = state_file(ledger);
    state.final_status = match verdict {
        Final::Pass => FinalStatus::Pass,
        Final::Fail => FinalStatus::Fail,
    };
    Effect::Mirror { state: Box::new(state), at, dispatched }
}

/// What the file says, but for times: those are put into words by whoever writes it. Also when the turn that is under way
/// was dispatched.
fn state_file(ledger: &Ledger) -> (StateFile, Option<Wall>) {
    let spec = &ledger.spec;
    let mut state = ledger.rounds.to_state();
    state.api = spec.config.api.clone();
    state.provider = spec.config.provider.clone();
    state.wd = spec.directory.clone();
    state.session_name = spec.session.to_string();
    state.run_dir = Some(format!("{}/.tmp/{}", spec.directory, spec.stamp));
    let provider = |role| spec.config.agents.get(role).map_or_else(String::new, |choice| choice.provider.clone());
    state.terminals = (ledger.terminals.iter())
        .map(|(role, id)| (*role, TerminalOf { id: id.to_string(), provider: provider(role) }))
        .collect();
    state.final_status = FinalStatus::Running;
    if let Place::After(_) | Place::Over(_) = ledger.place {
        state.current_phase = Phase::Done;
    }
    state.other.insert("run".into(), Value::String(spec.id.to_string()));
    let dispatched = ledger.turn().and_then(|turn| {
        let in_flight = InFlight { key: turn.key, terminal: turn.terminal.to_string(), dispatched_at: String::new() };
        state.in_flight = Some(in_flight);
        turn.sent.or(turn.dispatching).or(Some(turn.begun))
    });
    (state, dispatched)
}

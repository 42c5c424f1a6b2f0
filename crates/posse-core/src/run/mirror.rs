//! The run as its state file shows it: a mirror of the journal, for people and other tools.

use serde_json::Value;

use super::Mirror;
use super::ledger::{Ledger, Place};
use crate::rounds::state::{FinalStatus, InFlight, TerminalOf};
use crate::rounds::{Final, Phase};
use crate::time::Wall;

/// The file as it is now. The times in it are left to the driver, which writes it. `verdict`: all that comes after the
/// verdict is done, and the file goes to the archive. Before that it does not name the verdict.
pub(super) fn mirror(ledger: &Ledger, verdict: Option<Final>, at: Wall) -> Mirror {
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
    state.final_status = match verdict {
        None => FinalStatus::Running,
        Some(Final::Pass) => FinalStatus::Pass,
        Some(Final::Fail) => FinalStatus::Fail,
    };
    if let Place::After(_) | Place::Over(_) = ledger.place {
        state.current_phase = Phase::Done;
    }
    state.other.insert("run".into(), Value::String(spec.id.to_string()));
    let dispatched = ledger.turn().and_then(|turn| {
        let in_flight = InFlight { key: turn.key, terminal: turn.terminal.to_string(), dispatched_at: String::new() };
        state.in_flight = Some(in_flight);
        turn.sent.or(turn.dispatching).or(Some(turn.begun))
    });
    Mirror { state: Box::new(state), at, dispatched }
}

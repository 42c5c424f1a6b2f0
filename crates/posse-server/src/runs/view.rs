//! A run as the world sees it.

use std::collections::BTreeMap;

use posse_core::ids::{RunId, TerminalId};
use posse_core::rounds::{Key, Role};
use posse_core::run::{Entry, Ledger, Place, RunStatus, Step, StepOutcome, Stop};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A run of the loop.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct RunView {
    #[schema(value_type = String)]
    pub id: RunId,
    /// `running`, `parked`, `stopped`, `passed` or `failed`.
    #[schema(value_type = String)]
    pub status: RunStatus,
    pub directory: String,
    pub session_name: String,
    pub round: u32,
    pub max_rounds: u32,
    /// Which review of this phase.
    pub cycle: u32,
    pub phase: String,
    /// The turn that is under way.
    pub turn: Option<TurnView>,
    /// Turns so far.
    pub turns: u64,
    /// By role.
    #[schema(value_type = BTreeMap<String, String>)]
    pub terminals: BTreeMap<Role, TerminalId>,
    /// Permissions are accepted by posse itself.
    pub auto_accept: bool,
    /// When a parked run tries again.
    pub parked_until: Option<jiff::Timestamp>,
    /// Why it stopped.
    pub stopped: Option<StoppedView>,
    /// What happened after PASS.
    pub steps: Vec<StepView>,
    pub created: jiff::Timestamp,
    pub changed: jiff::Timestamp,
    pub state_file: String,
    /// Where its answers are kept.
    pub archive: String,
    /// SHA-256 of the configuration the operator named.
    pub config_hash: Option<String>,
}

/// A turn that is under way.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct TurnView {
    pub number: u64,
    /// Which of the five turns.
    #[schema(value_type = String)]
    pub key: Key,
    #[schema(value_type = String)]
    pub role: Role,
    #[schema(value_type = String)]
    pub terminal: TerminalId,
    /// The how-manieth try.
    pub attempt: u32,
    pub since: jiff::Timestamp,
    /// Its prompt was taken.
    pub sent: bool,
    /// Permissions accepted in it.
    pub accepts: u32,
}

/// Why a run stopped.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct StoppedView {
    /// `asked`, `start`, `turn`, `alone` or `stuck`.
    #[schema(value_type = String)]
    pub stop: Stop,
    pub why: String,
}

/// What happened after PASS.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct StepView {
    /// `openspec_archive` or `git_commit`.
    #[schema(value_type = String)]
    pub step: Step,
    /// `done`, `skipped` or `failed`.
    pub outcome: String,
    pub text: String,
}

impl From<&Ledger> for RunView {
    fn from(ledger: &Ledger) -> Self {
        let spec = &ledger.spec;
        Self {
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
                since: crate::timestamp(turn.sent.unwrap_or(turn.begun)),
                sent: turn.sent.is_some(),
                accepts: turn.accepts,
            }),
            turns: ledger.turns,
            terminals: ledger.terminals.clone(),
            auto_accept: spec.config.handoff.auto_accept_permissions,
            parked_until: ledger.parked.map(crate::timestamp),
            stopped: ledger.stopped.clone().map(|(stop, why)| StoppedView { stop, why }),
            steps: ledger.steps.iter().map(|(step, outcome)| StepView::of(*step, outcome)).collect(),
            created: crate::timestamp(ledger.begun),
            changed: crate::timestamp(ledger.changed),
            state_file: spec.state_file.clone(),
            archive: format!("{}/.tmp/{}", spec.directory, spec.stamp),
            config_hash: spec.config_hash.clone(),
        }
    }
}

impl StepView {
    fn of(step: Step, outcome: &StepOutcome) -> Self {
        let (outcome, text) = match outcome {
            StepOutcome::Done(text) => ("done", text),
            StepOutcome::Skipped(text) => ("skipped", text),
            StepOutcome::Failed(text) => ("failed", text),
        };
        Self { step, outcome: outcome.into(), text: text.clone() }
    }
}

/// What everyone is told of an entry: prompts and answers stay in the journal, their sizes are enough for the others.
pub(super) fn told(run: RunId, seq: i64, entry: &Entry) -> serde_json::Value {
    let mut told = serde_json::to_value(entry).unwrap_or_default();
    if let Some(told) = told.as_object_mut() {
        if let Entry::Created { spec } = entry {
            told.insert("spec".into(), serde_json::json!({ "directory": spec.directory }));
        }
        if let (Entry::TurnBegun { text, .. } | Entry::Answered { text, .. }, true) = (entry, told.contains_key("text"))
        {
            told.insert("text".into(), serde_json::json!({ "bytes": text.len() }));
        }
        told.insert("run".into(), run.as_str().into());
        told.insert("run_seq".into(), seq.into());
    }
    told
}

//! The audit.

use jiff::Timestamp;
use posse_core::audit::{Answering, Ended, Entry, Flaw, Note, Step, Who};
use posse_core::ids::TerminalId;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct AuditQuery {
    pub run: Option<String>,
    /// By its id or its name.
    pub terminal: Option<String>,
    /// Only what was written at this time or later.
    pub since: Option<Timestamp>,
    /// The newest so many; 100 unless given.
    pub limit: Option<u32>,
}

/// An entry of the audit. Each answer to a dialog has two: one before the first key, one with what became of it.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct AuditEntry {
    pub seq: i64,
    pub at: Timestamp,
    pub terminal: TerminalId,
    /// The name of the terminal when it was answered.
    pub name: Option<String>,
    #[serde(flatten)]
    pub who: Who,
    /// Before the first key: what is about to be done.
    pub answering: Option<Answering>,
    /// Afterwards: what became of it.
    pub outcome: Option<Ended>,
    /// Over this entry and the hash of the one before.
    pub hash: String,
}

/// The result of checking the audit.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct AuditVerdict {
    pub intact: bool,
    pub entries: u64,
    /// The hash of the last entry: who keeps it elsewhere can tell later that nothing up to here was changed.
    pub hash: Option<String>,
    pub flaws: Vec<Flaw>,
}

impl From<(Entry, String)> for AuditEntry {
    fn from((Entry { seq, note }, hash): (Entry, String)) -> Self {
        let (answering, outcome) = match note.step {
            Step::Answering(answering) => (Some(*answering), None),
            Step::Outcome(ended) => (None, Some(ended)),
        };
        let Note { at, terminal, name, who, .. } = note;
        Self { seq, at: at.timestamp(), terminal, name, who, answering, outcome, hash }
    }
}

//! The audit.

use jiff::Timestamp;
use posse_core::audit::{Answering, By, End, Ended, Entry, Flaw, Step};
use posse_core::detect::Dialog;
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
    #[schema(value_type = String, pattern = "^[a-f0-9]{8}$")]
    pub terminal: TerminalId,
    /// The name of the terminal when it was answered.
    pub name: Option<String>,
    /// `person`, `client` (over TCP), `terminal` (a process in one of posse's terminals), `run`, or `startup`: a question of
    /// the start that was answered in advance.
    #[schema(value_type = String)]
    pub by: By,
    /// The terminal of the process that answered, if it runs in one and that is known.
    #[schema(value_type = Option<String>, pattern = "^[a-f0-9]{8}$")]
    pub from: Option<TerminalId>,
    pub role: Option<String>,
    pub run: Option<String>,
    pub turn: Option<u64>,
    /// The number of this accept in its turn, and the maximum.
    pub count: Option<Vec<u32>>,
    /// Before the first key: what is about to be done.
    pub answering: Option<AuditAnswering>,
    /// Afterwards: what became of it.
    pub outcome: Option<AuditOutcome>,
    /// Over this entry and the hash of the one before.
    pub hash: String,
}

#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct AuditAnswering {
    /// `accept`, `deny`, or `option` and its number.
    pub wish: String,
    /// The label of the option that is chosen.
    pub chosen: Option<String>,
    /// The reason for a refusal, in the words of the person who refuses.
    pub reason: Option<String>,
    /// The question; null where it is only text.
    #[schema(value_type = Option<Object>)]
    pub dialog: Option<Dialog>,
    /// The last five rows of the screen that are not empty.
    pub tail: Vec<String>,
    /// The keys that answer.
    pub keys: Vec<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct AuditOutcome {
    /// The entry this one completes.
    pub of: i64,
    /// `answered`, `refused` (no key that answers was pressed) or `uncertain`.
    #[schema(value_type = String)]
    pub end: End,
    pub text: String,
    /// The keys that were typed. Null if that is not known.
    pub typed: Option<Vec<String>>,
}

/// The result of checking the audit.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct AuditVerdict {
    pub intact: bool,
    pub entries: u64,
    /// The hash of the last entry: who keeps it elsewhere can tell later that nothing up to here was changed.
    pub hash: Option<String>,
    pub flaws: Vec<AuditFlaw>,
}

#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct AuditFlaw {
    /// `changed`, `rewritten`, `missing`, `added`, `moved` or `unvouched`.
    pub kind: String,
    /// The first and the last entry it is about.
    pub from: i64,
    pub to: i64,
    pub text: String,
}

impl From<(Entry, String)> for AuditEntry {
    fn from((Entry { seq, note }, hash): (Entry, String)) -> Self {
        let (answering, outcome) = match note.step {
            Step::Answering(answering) => (Some((*answering).into()), None),
            Step::Outcome(ended) => (None, Some(ended.into())),
        };
        Self {
            seq,
            at: note.at.timestamp(),
            terminal: note.terminal,
            name: note.name,
            by: note.who.by,
            from: note.who.from,
            role: note.who.role,
            run: note.who.run,
            turn: note.who.turn,
            count: note.who.count.map(|(n, cap)| vec![n, cap]),
            answering,
            outcome,
            hash,
        }
    }
}

impl From<Answering> for AuditAnswering {
    fn from(answering: Answering) -> Self {
        let Answering { wish, chosen, reason, dialog, tail, keys } = answering;
        Self { wish, chosen, reason, dialog, tail, keys }
    }
}

impl From<Ended> for AuditOutcome {
    fn from(ended: Ended) -> Self {
        Self { of: ended.of, end: ended.end, text: ended.outcome, typed: ended.typed }
    }
}

impl From<&Flaw> for AuditFlaw {
    fn from(flaw: &Flaw) -> Self {
        let (from, to) = flaw.entries();
        Self { kind: flaw.kind().into(), from, to, text: flaw.to_string() }
    }
}

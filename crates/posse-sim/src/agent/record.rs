//! The agent's own account of what happened, as JSON lines: a truth for tests that does not depend on the screen.

use serde::Serialize;

use crate::scenario::{QuestionKind, TurnKey};

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum AgentRecord {
    /// The input box is on the screen for the first time.
    Ready,
    Ignored {
        why: IgnoredInput,
    },
    Submitted {
        prompt: String,
    },
    /// The prompt waits for the running turn to end.
    Queued {
        prompt: String,
    },
    /// The prompt asks for an answer in a file.
    Asked {
        key: TurnKey,
        nth: u32,
        path: String,
    },
    /// Turns count from 1.
    TurnStarted {
        turn: u32,
        prompt: String,
    },
    TurnEnded {
        turn: u32,
        outcome: TurnOutcome,
    },
    DialogDrawn {
        kind: QuestionKind,
        options: Vec<String>,
    },
    /// Options count from 1; a cancelled dialog has no choice.
    DialogClosed {
        choice: Option<usize>,
        label: Option<String>,
        accepted: bool,
    },
    /// A file was written, or a piece of one.
    Wrote {
        path: String,
        length: usize,
    },
    WriteFailed {
        path: String,
        error: String,
    },
    Exit {
        code: i32,
    },
    Crash {
        signal: i32,
    },
}

/// Input that the agent ignored on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum IgnoredInput {
    /// A key too soon after the dialog was drawn.
    DialogDeaf,
    PasteIntoDialog,
    /// A prompt that the scenario ignores.
    Prompt,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnOutcome {
    Done,
    Interrupted,
    Error,
}

/// The process that writes a record. Several agents may share a log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RecordSource {
    pub pid: u32,
    /// The agent's terminal, if posse started the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub terminal: Option<String>,
}

#[derive(Serialize)]
struct RecordLine<'a> {
    ns: u64,
    #[serde(flatten)]
    source: &'a RecordSource,
    #[serde(flatten)]
    record: &'a AgentRecord,
}

impl AgentRecord {
    /// Returns the record as one line of JSON. `ns` is a reading of `CLOCK_MONOTONIC`.
    pub fn to_json(&self, ns: u64, source: &RecordSource) -> serde_json::Result<String> {
        serde_json::to_string(&RecordLine { ns, source, record: self })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn record_is_one_line_of_json() {
        let closed = AgentRecord::DialogClosed { choice: None, label: Some("\"No\"".into()), accepted: false };
        let source = RecordSource { pid: 3, terminal: None };
        assert_eq!(
            closed.to_json(7, &source).unwrap(),
            r#"{"ns":7,"pid":3,"event":"dialog_closed","choice":null,"label":"\"No\"","accepted":false}"#
        );
        let source = RecordSource { terminal: Some("0a".into()), ..source };
        assert_eq!(
            AgentRecord::Ready.to_json(7, &source).unwrap(),
            r#"{"ns":7,"pid":3,"terminal":"0a","event":"ready"}"#
        );
    }
}

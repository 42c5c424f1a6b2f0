//! The agent's own account of what happened, as JSON lines: a truth for tests that does not depend on the screen.

use serde::Serialize;

use crate::scenario::{QuestionKind, TurnKey};

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum AgentRecord {
    /// The input box is on the screen for the first time.
    Ready,
    /// Input bytes, as text and in hexadecimal digits.
    Keys {
        text: String,
        hex: String,
    },
    Ignored {
        why: IgnoredInput,
    },
    Submitted {
        prompt: String,
        by: SubmittedBy,
    },
    /// The prompt waits for the running turn to end.
    Queued {
        prompt: String,
    },
    /// The prompt asks for an answer in a file. `hash` is the [`hash`] of the prompt, `first` its first line.
    Asked {
        key: TurnKey,
        nth: u32,
        path: String,
        hash: String,
        length: usize,
        first: String,
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
    /// Options count from 1; a cancelled dialog has no choice. `pressed` is the key that closed the dialog.
    DialogClosed {
        choice: Option<usize>,
        label: Option<String>,
        accepted: bool,
        pressed: String,
    },
    /// `whole` is false for a piece that other pieces follow.
    Wrote {
        path: String,
        length: usize,
        whole: bool,
    },
    WriteFailed {
        path: String,
        error: String,
    },
    Resized {
        columns: usize,
        rows: usize,
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
pub enum SubmittedBy {
    Keys,
    Auto,
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
    pub(crate) fn keys(bytes: &[u8]) -> AgentRecord {
        AgentRecord::Keys {
            text: String::from_utf8_lossy(bytes).into_owned(),
            hex: bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
        }
    }

    /// Returns the record as one line of JSON. `ns` is a reading of `CLOCK_MONOTONIC`.
    pub fn to_json(&self, ns: u64, source: &RecordSource) -> serde_json::Result<String> {
        serde_json::to_string(&RecordLine { ns, source, record: self })
    }
}

/// Returns a short name for a prompt: FNV-1a with 64 bits, in hexadecimal digits. It only tells prompts apart.
pub fn hash(text: &str) -> String {
    let hash = text
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    format!("{hash:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn record_is_one_line_of_json() {
        let cases = [
            (AgentRecord::Ready, r#"{"ns":7,"pid":3,"event":"ready"}"#),
            (
                AgentRecord::keys(b"\x1b[A\"\\\xff\n"),
                "{\"ns\":7,\"pid\":3,\"event\":\"keys\",\"text\":\"\\u001b[A\\\"\\\\\u{fffd}\\n\",\"hex\":\"1b5b41225cff0a\"}",
            ),
            (
                AgentRecord::DialogDrawn { kind: QuestionKind::Plan, options: vec!["Yes".into(), "\"No\"".into()] },
                r#"{"ns":7,"pid":3,"event":"dialog_drawn","kind":"plan","options":["Yes","\"No\""]}"#,
            ),
            (
                AgentRecord::DialogClosed { choice: None, label: None, accepted: false, pressed: "esc".into() },
                r#"{"ns":7,"pid":3,"event":"dialog_closed","choice":null,"label":null,"accepted":false,"pressed":"esc"}"#,
            ),
            (
                AgentRecord::TurnEnded { turn: 2, outcome: TurnOutcome::Interrupted },
                r#"{"ns":7,"pid":3,"event":"turn_ended","turn":2,"outcome":"interrupted"}"#,
            ),
        ];
        for (record, expected) in cases {
            assert_eq!(record.to_json(7, &RecordSource { pid: 3, terminal: None }).unwrap(), expected);
        }
        let source = RecordSource { pid: 3, terminal: Some("0a".into()) };
        assert_eq!(
            AgentRecord::Ready.to_json(7, &source).unwrap(),
            r#"{"ns":7,"pid":3,"terminal":"0a","event":"ready"}"#
        );
    }

    #[test]
    fn hash_is_fnv_1a() {
        assert_eq!(hash(""), "cbf29ce484222325");
        assert_eq!(hash("foobar"), "85944171f73967e8");
    }
}

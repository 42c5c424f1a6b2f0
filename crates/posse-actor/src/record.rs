//! The actor's own account of what happened, one JSON line each: a truth for tests that does not go
//! through the screen.

use std::fmt::Write;

use crate::rounds::TurnKey;
use crate::scenario::AskKind;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// The input is on the screen for the first time.
    Ready,
    /// Bytes that came in, as they came.
    Keys(Vec<u8>),
    /// A key or a paste that was deliberately ignored.
    Ignored(Ignored),
    Submitted {
        prompt: String,
        by: By,
    },
    /// The prompt waits for the running turn to end.
    Queued {
        prompt: String,
    },
    /// The prompt joined the running turn.
    Steered {
        prompt: String,
    },
    /// The prompt wants an answer in a file. The hash is that of the whole prompt, see [`hash`].
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
        outcome: Outcome,
    },
    DialogDrawn {
        kind: AskKind,
        options: Vec<String>,
        cursor: usize,
    },
    /// Options count from 1; none was chosen if the dialog was cancelled.
    DialogClosed {
        choice: Option<usize>,
        label: Option<String>,
        accepted: bool,
        /// The key that closed it.
        pressed: String,
    },
    /// `whole` is false for a part that others follow.
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ignored {
    /// An Enter too soon after the first input box.
    FirstEnter,
    /// A key too soon after the dialog was drawn.
    DialogDeaf,
    PasteIntoDialog,
    /// A prompt the scenario ignores.
    Prompt,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    Keys,
    Auto,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Done,
    Interrupted,
    Error,
}

/// Who writes the log: several actors may share one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Witness {
    pub pid: u32,
    /// The terminal it runs in, if posse started it.
    pub terminal: Option<String>,
}

/// A short name for a prompt, the same wherever it is computed: FNV-1a with 64 bits, in hexadecimal digits. It is to
/// tell prompts apart, not to withstand anyone.
pub fn hash(text: &str) -> String {
    let hash = text
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    format!("{hash:016x}")
}

impl Record {
    /// The line for the log, without its end. `at` is nanoseconds of the monotonic clock.
    pub fn to_json(&self, at: u64, witness: &Witness) -> String {
        let mut line = Line(format!("{{\"ns\":{at},\"pid\":{}", witness.pid));
        if let Some(terminal) = &witness.terminal {
            line.text("terminal", terminal);
        }
        match self {
            Record::Ready => line.event("ready"),
            Record::Keys(bytes) => {
                let hex = bytes.iter().fold(String::new(), |mut hex, byte| {
                    let _ = write!(hex, "{byte:02x}");
                    hex
                });
                line.event("keys").text("text", &String::from_utf8_lossy(bytes)).text("hex", &hex)
            }
            Record::Ignored(why) => line.event("ignored").text(
                "why",
                match why {
                    Ignored::FirstEnter => "first_enter",
                    Ignored::DialogDeaf => "dialog_deaf",
                    Ignored::PasteIntoDialog => "paste_into_dialog",
                    Ignored::Prompt => "prompt",
                },
            ),
            Record::Submitted { prompt, by } => {
                line.event("submitted").text("prompt", prompt).text("by", if *by == By::Auto { "auto" } else { "keys" })
            }
            Record::Queued { prompt } => line.event("queued").text("prompt", prompt),
            Record::Steered { prompt } => line.event("steered").text("prompt", prompt),
            Record::Asked { key, nth, path, hash, length, first } => line
                .event("asked")
                .text("key", key.word())
                .raw("nth", nth)
                .text("path", path)
                .text("hash", hash)
                .raw("length", length)
                .text("first", first),
            Record::TurnStarted { turn, prompt } => line.event("turn_started").raw("turn", turn).text("prompt", prompt),
            Record::TurnEnded { turn, outcome } => line.event("turn_ended").raw("turn", turn).text(
                "outcome",
                match outcome {
                    Outcome::Done => "done",
                    Outcome::Interrupted => "interrupted",
                    Outcome::Error => "error",
                },
            ),
            Record::DialogDrawn { kind, options, cursor } => {
                let options: Vec<String> = options.iter().map(|option| quoted(option)).collect();
                line.event("dialog_drawn")
                    .text("kind", kind.word())
                    .raw("options", format_args!("[{}]", options.join(",")))
                    .raw("cursor", cursor)
            }
            Record::DialogClosed { choice, label, accepted, pressed } => {
                let choice = choice.map_or("null".to_owned(), |choice| choice.to_string());
                let label = label.as_ref().map_or("null".to_owned(), |label| quoted(label));
                line.event("dialog_closed")
                    .raw("choice", choice)
                    .raw("label", label)
                    .raw("accepted", accepted)
                    .text("pressed", pressed)
            }
            Record::Wrote { path, length, whole } => {
                line.event("wrote").text("path", path).raw("length", length).raw("whole", whole)
            }
            Record::WriteFailed { path, error } => line.event("write_failed").text("path", path).text("error", error),
            Record::Resized { columns, rows } => line.event("resized").raw("columns", columns).raw("rows", rows),
            Record::Exit { code } => line.event("exit").raw("code", code),
            Record::Crash { signal } => line.event("crash").raw("signal", signal),
        };
        line.0.push('}');
        line.0
    }
}

/// Writing this little JSON by hand spares the crate, which others embed, a dependency.
struct Line(String);

impl Line {
    fn event(&mut self, name: &str) -> &mut Line {
        self.text("event", name)
    }

    fn text(&mut self, key: &str, value: &str) -> &mut Line {
        self.raw(key, quoted(value))
    }

    fn raw(&mut self, key: &str, value: impl std::fmt::Display) -> &mut Line {
        let _ = write!(self.0, ",\"{key}\":{value}");
        self
    }
}

fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            c if u32::from(c) < 0x20 => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_one_line_of_json() {
        let cases = [
            (Record::Ready, r#"{"ns":7,"pid":3,"event":"ready"}"#),
            (
                Record::Keys(b"\x1b[A\"\\\xff\n".to_vec()),
                "{\"ns\":7,\"pid\":3,\"event\":\"keys\",\"text\":\"\\u001b[A\\\"\\\\\u{fffd}\\n\",\"hex\":\"1b5b41225cff0a\"}",
            ),
            (
                Record::DialogDrawn { kind: AskKind::Plan, options: vec!["Yes".into(), "\"No\"".into()], cursor: 1 },
                r#"{"ns":7,"pid":3,"event":"dialog_drawn","kind":"plan","options":["Yes","\"No\""],"cursor":1}"#,
            ),
            (
                Record::DialogClosed { choice: None, label: None, accepted: false, pressed: "esc".into() },
                r#"{"ns":7,"pid":3,"event":"dialog_closed","choice":null,"label":null,"accepted":false,"pressed":"esc"}"#,
            ),
            (
                Record::TurnEnded { turn: 2, outcome: Outcome::Interrupted },
                r#"{"ns":7,"pid":3,"event":"turn_ended","turn":2,"outcome":"interrupted"}"#,
            ),
        ];
        for (record, expected) in cases {
            assert_eq!(record.to_json(7, &Witness { pid: 3, terminal: None }), expected);
        }
        let witness = Witness { pid: 3, terminal: Some("0a".into()) };
        assert_eq!(Record::Ready.to_json(7, &witness), r#"{"ns":7,"pid":3,"terminal":"0a","event":"ready"}"#);
    }

    #[test]
    fn the_hash_is_the_one_everyone_computes() {
        assert_eq!(hash(""), "cbf29ce484222325");
        assert_eq!(hash("foobar"), "85944171f73967e8");
    }
}

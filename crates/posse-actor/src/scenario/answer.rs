//! Answers of an agent that plays in the loop, and how its turns are set up.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use serde::Deserialize;
use serde::de::{Deserializer, Error};

use super::WriteHow;
use super::value::{self, HowLong, word_or_table};

/// How prompts find their turns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlayKind {
    /// By `on`, else in the order of the file.
    #[default]
    Script,
    /// By `key`, `nth` and `on`; a prompt that asks for an answer gets one, whatever the file says.
    Loop,
}

/// What an agent of the loop does in turns the scenario does not describe.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LoopPlay {
    /// How long it thinks before anything else.
    pub think: HowLong,
    /// How many permissions it asks for before it answers.
    pub permissions: u32,
    /// How many reviews find something before one approves.
    pub revisions: u32,
    /// How many tests fail before one passes.
    pub failures: u32,
    /// Where to count turns, for whoever takes the place of this agent.
    pub state_dir: Option<PathBuf>,
}

impl Default for LoopPlay {
    fn default() -> LoopPlay {
        // The loop wants two reviews at least, unless told otherwise.
        let revisions = 1;
        LoopPlay { think: HowLong::For(Duration::ZERO), permissions: 0, revisions, failures: 0, state_dir: None }
    }
}

/// The answer file of a turn of the loop.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// Instead of an answer that fits the turn.
    pub text: Option<String>,
    /// Instead of the verdict that is due.
    pub verdict: Option<Verdict>,
    pub how: WriteHow,
    /// What is odd about its bytes.
    pub with: Vec<Oddity>,
    /// Written straight into the file, in so many pieces; 0 is whole.
    pub pieces: u32,
    /// The pause between two pieces.
    pub gap: Duration,
    /// Written so long after this step, whatever the agent does by then.
    pub late: Option<Duration>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Whatever is good: approved, passed.
    #[serde(alias = "pass")]
    Approve,
    /// Whatever is not.
    #[serde(alias = "fail")]
    Revise,
    /// The form the prompt shows, not filled in.
    Template,
    /// Words without any verdict.
    Nonsense,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Oddity {
    /// A byte order mark in front.
    Bom,
    /// Lines that end in CR LF.
    Crlf,
    /// Bytes at the end that are no UTF-8.
    Invalid,
}

/// Long enough for two looks of a reader between the pieces.
const USUAL_GAP: Duration = Duration::from_millis(300);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AnswerTable {
    text: Option<String>,
    verdict: Option<Verdict>,
    #[serde(default)]
    how: WriteHow,
    #[serde(default)]
    with: Vec<Oddity>,
    #[serde(default)]
    pieces: u32,
    #[serde(default = "usual_gap", deserialize_with = "value::duration")]
    gap: Duration,
    #[serde(default, deserialize_with = "some_duration")]
    late: Option<Duration>,
}

fn usual_gap() -> Duration {
    USUAL_GAP
}

fn some_duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    value::duration(deserializer).map(Some)
}

impl From<AnswerTable> for Answer {
    fn from(table: AnswerTable) -> Answer {
        let AnswerTable { text, verdict, how, with, pieces, gap, late } = table;
        Answer { text, verdict, how, with, pieces, gap, late }
    }
}

impl FromStr for Answer {
    type Err = std::convert::Infallible;
    fn from_str(text: &str) -> Result<Answer, Self::Err> {
        Ok(Answer { text: Some(text.to_owned()), gap: USUAL_GAP, ..Answer::default() })
    }
}

impl<'de> Deserialize<'de> for Answer {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let answer: Answer = word_or_table::<_, _, AnswerTable>(deserializer, "a text, or a table")?;
        if answer.text.is_some() && answer.verdict.is_some() {
            return Err(D::Error::custom("`text` and `verdict` are two answers: choose one"));
        }
        if answer.pieces > 0 && answer.how != WriteHow::default() {
            return Err(D::Error::custom("`pieces` go straight into the file: leave out `how`"));
        }
        Ok(answer)
    }
}

impl Answer {
    /// Its bytes, given its text.
    pub(crate) fn bytes(&self, text: &str) -> Vec<u8> {
        let crlf = self.with.contains(&Oddity::Crlf);
        let mut bytes = if crlf { text.replace('\n', "\r\n") } else { text.to_owned() }.into_bytes();
        if self.with.contains(&Oddity::Bom) {
            bytes.splice(..0, *b"\xef\xbb\xbf");
        }
        if self.with.contains(&Oddity::Invalid) {
            bytes.extend_from_slice(b"\xff\xc3\x28\n");
        }
        bytes
    }
}

/// Ways in which the service behind an agent fails. Each look has the row it shows then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum Failure {
    #[serde(rename = "500")]
    Internal,
    #[serde(rename = "529")]
    Overloaded,
    #[serde(rename = "401")]
    Unauthorized,
    #[serde(rename = "usage_limit")]
    UsageLimit,
    #[serde(rename = "dropped")]
    Dropped,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oddities_change_the_bytes_and_may_be_combined() {
        let cases: [(&[Oddity], &[u8]); 5] = [
            (&[], b"a\nb\n"),
            (&[Oddity::Crlf], b"a\r\nb\r\n"),
            (&[Oddity::Bom], b"\xef\xbb\xbfa\nb\n"),
            (&[Oddity::Invalid], b"a\nb\n\xff\xc3\x28\n"),
            (&[Oddity::Bom, Oddity::Crlf, Oddity::Invalid], b"\xef\xbb\xbfa\r\nb\r\n\xff\xc3\x28\n"),
        ];
        for (with, expected) in cases {
            let answer = Answer { with: with.to_vec(), ..Answer::default() };
            assert_eq!(answer.bytes("a\nb\n"), expected, "{with:?}");
        }
    }
}

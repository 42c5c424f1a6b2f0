//! Decides whether a prompt arrived if posse died between recording and confirming the delivery. A repeated prompt
//! might do the work twice; a lost prompt would block the run forever.

use super::Sent;
use crate::status::{Status, StatusKind};
use crate::time::Wall;

/// The traces of a prompt in a terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// The prompt is in the input field.
    pub in_composer: bool,
    /// Whether this prompt is the last one in the conversation, if visible.
    pub is_last_prompt: Option<bool>,
    /// Bytes printed so far.
    pub printed: u64,
}

/// A terminal that printed fewer bytes has not even echoed a prompt; the bytes are a cursor blink or a clock.
const NOTHING: u64 = 64;

/// Judges the traces. `since` is the earliest time at which the prompt may have been typed, `printed` the terminal's
/// output count by then.
pub fn judge_traces(shown: &Shown, status: &Status, since: Wall, printed: Option<u64>) -> Sent {
    if status.is_busy() || status.kind == StatusKind::WaitingUserAnswer {
        return Sent::Taken;
    }
    if shown.in_composer {
        return Sent::Lost;
    }
    if shown.is_last_prompt == Some(true) {
        return Sent::Taken;
    }
    let silent = printed.is_some_and(|before| before <= shown.printed && shown.printed - before < NOTHING);
    if silent {
        return Sent::Lost;
    }
    // The agent became quiet after the dispatch, so it has worked.
    if status.since > since {
        return Sent::Taken;
    }
    Sent::Uncertain("the agent is quiet, and its screen does not show what it was asked last".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_shows_decides_whether_a_prompt_arrived() {
        use StatusKind::*;
        let (taken, not_taken, unclear) = ("taken", "not taken", "unclear");
        for (kind, since, in_composer, is_last_prompt, printed, expected) in [
            (Processing, 0, false, None, 10, taken),
            (WaitingUserAnswer, 0, false, None, 10, taken),
            (Idle, 0, true, None, 5_000, not_taken),
            (Idle, 0, true, Some(false), 5_000, not_taken),
            (Completed, 0, false, Some(true), 5_000, taken),
            (Idle, 0, false, Some(false), 1_010, not_taken),
            (Idle, 0, false, None, 1_010, not_taken),
            (Completed, 900, false, None, 5_000, taken),
            (Completed, 0, false, None, 5_000, unclear),
            (Completed, 0, false, Some(false), 5_000, unclear),
            // The count was reset and gives no information.
            (Idle, 0, false, None, 3, unclear),
        ] {
            let status = Status {
                kind,
                reason: String::new(),
                waiting_kind: None,
                dialog: None,
                since: Wall(since),
                epoch: 1,
                awaiting_reaction: false,
                unproven: false,
            };
            let shown = Shown { in_composer, is_last_prompt, printed };
            let word = match judge_traces(&shown, &status, Wall(500), Some(1_000)) {
                Sent::Taken => taken,
                Sent::Lost => not_taken,
                Sent::Uncertain(_) => unclear,
                other => panic!("{other:?}"),
            };
            assert_eq!(word, expected, "{kind} since {since}, {shown:?}");
        }
    }
}

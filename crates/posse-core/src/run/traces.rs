//! Decides whether a prompt arrived: posse died between writing down that it would be typed and seeing it
//! taken. Typed a second time it might be done twice; never typed, the run would wait for nothing.

use super::Sent;
use crate::status::{Status, StatusKind};
use crate::time::Wall;

/// What a terminal shows of a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// It stands in the input field.
    pub in_composer: bool,
    /// The last prompt in the conversation is this one, or is another one, where that can be seen.
    pub is_last_prompt: Option<bool>,
    /// Bytes printed so far.
    pub printed: u64,
}

/// A terminal that printed less than this since has not even echoed a prompt: a blink of the cursor, a clock.
const NOTHING: u64 = 64;

/// `since` is when the prompt may first have been on its way, `printed` how much the terminal had printed by then.
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
    // Quiet, but not since before: it has worked.
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
            // The count began anew: it says nothing.
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

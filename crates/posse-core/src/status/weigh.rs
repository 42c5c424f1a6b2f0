//! The evidence: how long a screen must stand to be believed, and how long a word of the agent holds against it.

use std::time::Duration;

use super::{Claim, Source, StatusKind};
use crate::detect::{Evidence, Reading, Strength};
use crate::time::Mono;

/// A screen without a sign of work is quiet after this long without a change of the conversation. Codex and Claude Code
/// show no spinner while an answer streams in; the pauses between its pieces are shorter. PRV-4 asks for no less.
pub(super) const SETTLE: Duration = Duration::from_millis(1000);
/// An error on the screen, or text that merely looks like something, must stand for this long: a frame caught half-way
/// is repainted sooner (PRV-2: two captures 0.5 s apart).
pub(super) const STAND: Duration = Duration::from_millis(500);
/// An empty screen must stand for this long. Agents clear the screen and draw it anew; with five of them starting on two
/// busy processors Claude Code's was empty for more than a second in between. As long as a wrong status may stand.
pub(super) const EMPTY: Duration = Duration::from_millis(2000);
/// An agent may take back the work that it reports at its start until this long after it was ready. Codex takes 75 ms on an
/// idle machine and more than 300 ms beside compilers.
pub(super) const START: Duration = Duration::from_millis(2000);
/// Work that nobody asked for and that the screen does not show must last this long. Claude Code says that it works for 4
/// to 60 ms when the user opens one of its menus.
pub(super) const STIR: Duration = Duration::from_millis(150);
/// The screen follows the word after at most this long: Claude Code repaints 38 to 180 ms after its `Stop` hook, and a
/// look is taken up to 30 ms after that. Hooks of one turn come up to 121 ms late, too (Codex).
pub(super) const LAG: Duration = Duration::from_millis(300);
/// A title comes with the frame that shows why it changed: Codex draws it within 10 ms, and a look is taken up to 30 ms
/// after that. A few times that for a busy machine.
pub(super) const FRAME: Duration = Duration::from_millis(150);

/// How long a screen must be quiet if all that ended the turn is a title, or a word that the agent is ready: Codex 0.160
/// draws the row of an error 6 ms after the frame that ends the turn, and Codex 0.163 after it said that it is idle.
pub(super) const ROW: Duration = Duration::from_millis(40);
/// How long a title that turned must be plain to confirm a hook's claim that the turn is over. Claude Code turns it once
/// more while it runs its Stop hooks, at most 22 ms after it was plain.
pub(super) const REST: Duration = Duration::from_millis(60);
/// A word that the screen does not bear out holds for this long. A wrong status must not stand for more than 2 s
/// whatever one source does; this leaves half a second for the look. Codex says that it asks about 0.92 s before it
/// draws the question.
pub(super) const DOUBT: Duration = Duration::from_millis(1500);
/// Until this long after an agent said that it will ask, nothing may be typed: the longest Codex took to draw the
/// question was 2.15 s, while someone typed.
pub(super) const ASKING: Duration = Duration::from_millis(2500);

/// A prompt was taken, and an agent that tells when it begins has not begun: for this long a quiet screen is still the one
/// of before. Qwen Code took 3.5 s on a machine with six compilers; three times that.
pub(super) const UNHEARD: Duration = Duration::from_secs(10);

/// The end of a turn that was told and is shown within this time is one end; a screen that is quiet later must settle.
/// As long as a wrong status may stand.
const SHOWN: Duration = Duration::from_millis(2000);

/// Reports whether this word ends a turn without saying how it ended. Progress and the session file of Claude Code end up
/// to 40 ms before an error is drawn, and before its hook, and the title of Codex 10 ms before its word. Codex 0.160 to
/// 0.165 says `idle` after every turn, in front of the frame that shows an error. The screen decides how the turn ended.
pub(super) fn is_vague(source: Source, claim: &Claim) -> bool {
    matches!(source, Source::Progress | Source::SessionFile | Source::Title)
        || (source == Source::Osc && *claim == Claim::Ready)
}

/// Whether the end of a turn, told by this source, is only a claim until the screen or another source agrees. All Stop
/// hooks of an agent run side by side with ours. One of the user's may take long, or make the agent go on (Claude Code
/// 2.1.310 and 2.1.325); only ours is told, and too early.
pub(super) fn needs_second(source: Source) -> bool {
    source == Source::Hook
}

/// What a screen says, as far as belief is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Says {
    /// The screen says nothing about the state, or is only guessed at.
    Nothing,
    Working,
    /// Only the title, or something else that is not on the screen, says that it works.
    Busy,
    Asking,
    Quiet,
    Failed,
    /// There is nothing on it.
    Empty,
}

fn says(reading: &Reading) -> Says {
    match (reading.status, reading.strength) {
        (Some(StatusKind::Error), Strength::Fallback) => Says::Empty,
        (None, _) | (_, Strength::Fallback) => Says::Nothing,
        (Some(StatusKind::Processing), _) if matches!(reading.evidence, Some(Evidence { row: None, .. })) => Says::Busy,
        (Some(StatusKind::Processing), _) => Says::Working,
        (Some(StatusKind::WaitingUserAnswer), _) => Says::Asking,
        (Some(StatusKind::Idle | StatusKind::Completed), _) => Says::Quiet,
        (Some(StatusKind::Error), _) => Says::Failed,
    }
}

fn commands(reading: &Reading) -> bool {
    reading.draft.as_ref().is_some_and(|draft| draft.starts_with('/'))
}

fn dialog_id(reading: &Reading) -> Option<&str> {
    reading.dialog.as_ref().map(|dialog| dialog.id.as_str())
}

/// The screen as it was last read, and since when.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) reading: Reading,
    pub(super) says: Says,
    /// Since when it says this.
    pub(super) since: Mono,
    /// Whether the look before told nothing of the state, because a menu or another view was there, or showed a command of
    /// the agent's own in the input field. Claude Code shows work for a moment when a menu opens or closes.
    pub(super) was_hidden: bool,
    /// When the conversation last changed, or what is said about it.
    pub(super) moved: Mono,
    /// Since when the row that closes a turn is there.
    pub(super) closed: Option<Mono>,
}

impl Seen {
    pub(super) fn new(reading: &Reading, now: Mono) -> Self {
        let closed = reading.ends_turn.then_some(now);
        Self { reading: reading.clone(), says: says(reading), since: now, was_hidden: false, moved: now, closed }
    }

    /// Takes in the next reading. An equal one changes nothing and allocates nothing.
    pub(super) fn update(&mut self, reading: &Reading, now: Mono) {
        let says = says(reading);
        if says != self.says || dialog_id(reading) != dialog_id(&self.reading) {
            self.was_hidden = self.says == Says::Nothing || commands(&self.reading);
            (self.says, self.since, self.moved) = (says, now, now);
        }
        if reading.content != self.reading.content {
            self.moved = now;
        }
        self.closed = if reading.ends_turn { self.closed.or(Some(now)) } else { None };
        if *reading != self.reading {
            self.reading.clone_from(reading);
        }
    }

    /// A question that is certainly there. It beats every word.
    pub(super) fn is_question(&self) -> bool {
        self.says == Says::Asking && self.reading.strength == Strength::Layout
    }
}

/// Who said something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Speaker {
    Agent(Source),
    /// We did something that makes it so: what, in words.
    Us(&'static str),
}

/// The last word that the screen has not refuted.
#[derive(Clone, Debug)]
pub(super) struct Word {
    pub(super) by: Speaker,
    pub(super) claim: Claim,
    pub(super) at: Mono,
}

impl Word {
    /// Whether it says that a turn is over, well or not.
    pub(super) fn is_end(&self) -> bool {
        matches!(self.claim, Claim::Ready | Claim::TurnOver | Claim::Failed(_))
    }

    /// Whether it is the end of a turn, told by a source that another one has to agree with.
    pub(super) fn is_claim(&self) -> bool {
        self.is_end() && matches!(self.by, Speaker::Agent(source) if needs_second(source))
    }

    /// Whether it announced the end that this screen shows.
    pub(super) fn announced(&self, seen: &Seen) -> bool {
        self.is_end() && seen.since <= self.at + SHOWN
    }
}

//! Weighs the evidence: how long a screen must stand to be believed, and how long a claim holds against it.

use std::time::Duration;

use super::{Claim, Source, StatusKind};
use crate::detect::{Evidence, Reading, Strength};
use crate::time::Mono;

/// A screen without a sign of work is quiet if the conversation does not change for this time. Codex and Claude Code
/// show no spinner while an answer streams in; the pauses between its parts are shorter. PRV-4 requires at least this.
pub(super) const SETTLE: Duration = Duration::from_millis(1000);
/// An error on the screen, or ambiguous text, must stand for this time: a half-drawn frame is repainted sooner (PRV-2:
/// two captures 0.5 s apart).
pub(super) const STAND: Duration = Duration::from_millis(500);
/// An empty screen must stand for this time. Agents clear the screen and redraw it; with five instances starting on two
/// busy processors Claude Code's screen was empty for more than a second. Equal to the maximum time of a wrong status.
pub(super) const EMPTY: Duration = Duration::from_millis(2000);
/// The time after readiness in which an agent may withdraw the work that it reports at its start. Codex takes 75 ms on
/// an idle machine and more than 300 ms on one that compiles.
pub(super) const START: Duration = Duration::from_millis(2000);
/// Work without a prompt that the screen does not show must last this long. Claude Code reports work for 4 to 60 ms
/// when the user opens one of its menus.
pub(super) const STIR: Duration = Duration::from_millis(150);
/// The maximum delay of the screen after a claim: Claude Code repaints 38 to 180 ms after its `Stop` hook, and a look
/// is taken up to 30 ms later. Hooks of one turn also arrive up to 121 ms late (Codex).
pub(super) const LAG: Duration = Duration::from_millis(300);
/// A title comes with the frame that shows why it changed: Codex draws it within 10 ms, and a look is taken up to 30 ms
/// later. Several times that, for a busy machine.
pub(super) const FRAME: Duration = Duration::from_millis(150);

/// The time for which a screen must be quiet if only a title or a `ready` claim ended the turn: Codex 0.160 draws the
/// row of an error 6 ms after the frame that ends the turn, and Codex 0.163 after it reports idle.
pub(super) const ROW: Duration = Duration::from_millis(40);
/// The time for which a title must be plain to confirm a hook's claim of an end. Claude Code turns it once more while
/// it runs its Stop hooks, at most 22 ms after it was plain.
pub(super) const REST: Duration = Duration::from_millis(60);
/// A claim that the screen does not confirm holds for this time. With one faulty source a wrong status must not stand
/// for more than 2 s; this leaves half a second for the look. Codex announces questions about 0.92 s before drawing.
pub(super) const DOUBT: Duration = Duration::from_millis(1500);
/// After an announced question nothing may be typed for this time. Codex took up to 2.15 s to draw it during typing.
pub(super) const ASKING: Duration = Duration::from_millis(2500);

/// If an agent reports its starts and has not started a taken prompt, a quiet screen is outdated for this time. Qwen
/// Code took 3.5 s on a machine with six compilers; three times that.
pub(super) const UNHEARD: Duration = Duration::from_secs(10);

/// A reported end and a screen that shows it within this time are the same end; a screen that is quiet later must
/// settle. Equal to the maximum time of a wrong status.
const SHOWN: Duration = Duration::from_millis(2000);

/// Returns whether a claim ends a turn without its result. In Claude Code progress and the session file end before its
/// hook, and up to 40 ms before an error is drawn. The title of Codex ends 10 ms before its claim. Codex 0.160 to 0.165
/// reports `idle` after every turn, before the frame that shows an error. The screen decides the result.
pub(super) fn is_vague(source: Source, claim: &Claim) -> bool {
    matches!(source, Source::Progress | Source::SessionFile | Source::Title)
        || (source == Source::Osc && *claim == Claim::Ready)
}

/// Returns whether a reported end needs confirmation by the screen or another source. An agent runs all Stop hooks in
/// parallel. A hook of the user may take long, or make the agent continue (Claude Code 2.1.310 and 2.1.325); only the
/// hook of posse reports, and too early.
pub(super) fn needs_second(source: Source) -> bool {
    source == Source::Hook
}

/// The content of a screen as evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Says {
    /// The screen shows no state, or the state is only a guess.
    Nothing,
    Working,
    /// Only evidence outside the screen, such as the title, shows work.
    Busy,
    Asking,
    Quiet,
    Failed,
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

/// The last reading of the screen, and its times.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) reading: Reading,
    pub(super) says: Says,
    /// The time since when the screen is read like this.
    pub(super) since: Mono,
    /// True if the look before showed no state because of a menu or another view, or showed a command of the agent
    /// itself in the input field. Claude Code briefly shows work when a menu opens or closes.
    pub(super) was_hidden: bool,
    /// The time of the last change of the conversation or its state.
    pub(super) moved: Mono,
    /// The time since when the row that closes a turn is visible.
    pub(super) closed: Option<Mono>,
}

impl Seen {
    pub(super) fn new(reading: &Reading, now: Mono) -> Self {
        let closed = reading.ends_turn.then_some(now);
        Self { reading: reading.clone(), says: says(reading), since: now, was_hidden: false, moved: now, closed }
    }

    /// Processes the next reading. An equal one changes nothing and allocates nothing.
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

    /// Returns whether the screen certainly shows a question, which takes precedence over every claim.
    pub(super) fn is_question(&self) -> bool {
        self.says == Says::Asking && self.reading.strength == Strength::Layout
    }
}

/// The origin of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Speaker {
    Agent(Source),
    /// An action of posse, in words.
    Us(&'static str),
}

/// The last claim that the screen has not refuted.
#[derive(Clone, Debug)]
pub(super) struct Word {
    pub(super) by: Speaker,
    pub(super) claim: Claim,
    pub(super) at: Mono,
}

impl Word {
    /// Returns whether the claim ends a turn, with success or not.
    pub(super) fn is_end(&self) -> bool {
        matches!(self.claim, Claim::Ready | Claim::TurnOver | Claim::Failed(_))
    }

    /// Returns whether this end of a turn needs confirmation by another source.
    pub(super) fn is_claim(&self) -> bool {
        self.is_end() && matches!(self.by, Speaker::Agent(source) if needs_second(source))
    }

    /// Returns whether the claim announced the end that this screen shows.
    pub(super) fn announced(&self, seen: &Seen) -> bool {
        self.is_end() && seen.since <= self.at + SHOWN
    }
}

//! The life of one terminal: what happened × now → what we believe.

use super::weigh::{self, Against, LAG, Says, Seen, Speaker, Word};
use super::{Claim, Event, Source, Status, StatusKind, WaitingKind};
use crate::detect::{Dialog, Reading};
use crate::time::{Mono, Wall};

const STARTING: &str = "starting";
const PROMPTED: &str = "a prompt was submitted";
const ANSWERED: &str = "the question was answered";

/// Where in its life a terminal is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// It has not been ready for a prompt yet.
    Starting,
    Going,
    /// For ever.
    Ended,
}

/// Whether there was a turn since the start. Decides between `idle` and `completed`: screens cannot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Turns {
    None,
    /// It worked, but maybe not on a prompt: Codex says working and then idle once while it starts, and shows the row
    /// of a turn while it connects to servers.
    Perhaps,
    Some,
}

/// Remembers one terminal's status and decides the next one.
#[derive(Clone, Debug)]
pub struct Life {
    status: Status,
    phase: Phase,
    turns: Turns,
    seen: Option<Seen>,
    word: Option<Word>,
    /// What each source said last, in the order of `Source::ALL`.
    said: [Option<Claim>; Source::ALL.len()],
    /// When the agent said that it asks; `None` once the question is on the screen.
    asking: Option<Mono>,
    /// When it became ready, and who said so if it was not the screen.
    ready: Option<(Mono, Option<Source>)>,
}

/// A status to come, and why.
#[derive(Clone, Copy)]
struct Next<'a> {
    kind: StatusKind,
    waiting_kind: Option<WaitingKind>,
    dialog: Option<&'a Dialog>,
    why: Why<'a>,
}

#[derive(Clone, Copy)]
enum Why<'a> {
    Rule(&'a str),
    Gone(&'a str),
    Moves(&'a str),
    Said(Source, &'a Claim),
    Fact(&'static str),
}

impl Why<'_> {
    fn reason(self) -> String {
        match self {
            Why::Rule(rule) => format!("rule {rule}"),
            Why::Gone(rule) => format!("the question is gone (rule {rule})"),
            Why::Moves(rule) => format!("the answer goes on (rule {rule})"),
            Why::Said(source, claim) => format!("the agent said {claim} ({source})"),
            Why::Fact(fact) => fact.to_owned(),
        }
    }
}

impl Life {
    /// A terminal whose program is being started.
    pub fn starting(now: Wall) -> Self {
        let kind = StatusKind::Processing;
        let status = Status { kind, reason: STARTING.into(), waiting_kind: None, dialog: None, since: now, epoch: 0 };
        Self::resumed(status, false)
    }

    /// A terminal known from before, as it was last seen. That holds until there is evidence.
    pub fn resumed(status: Status, ended: bool) -> Self {
        let starting = status.kind == StatusKind::Processing && status.reason == STARTING;
        let starting = starting || status.waiting_kind == Some(WaitingKind::Startup);
        let phase = match () {
            () if ended => Phase::Ended,
            () if starting => Phase::Starting,
            () => Phase::Going,
        };
        let turns = if starting || status.kind == StatusKind::Idle { Turns::None } else { Turns::Some };
        let said = [const { None }; Source::ALL.len()];
        Self { status, phase, turns, seen: None, word: None, said, asking: None, ready: None }
    }

    pub fn status(&self) -> &Status {
        &self.status
    }

    /// Whether a question may appear any moment: the agent said that it asks, and it is not on the screen yet. The
    /// status is `waiting_user_answer` at once, without a dialog; it may go back to `processing` while the screen still
    /// shows work. Nothing may be typed before this is over: it would go into the question.
    pub fn about_to_ask(&self, now: Mono) -> bool {
        self.asking.is_some_and(|at| now < at + weigh::ASKING)
    }

    /// When to send `Time`. Sending it late, early or too often is harmless.
    pub fn deadline(&self) -> Option<Mono> {
        self.next().map(|(due, _)| due)
    }

    /// Takes in what happened; `Some` is the new status, to be told to everyone. An ended program stays ended whatever
    /// arrives late.
    pub fn handle(&mut self, event: &Event, now: Mono, wall: Wall) -> Option<&Status> {
        if self.phase == Phase::Ended {
            return None;
        }
        let before = self.status.epoch;
        match event {
            Event::Time => {}
            Event::Running => self.fact(StatusKind::Processing, "running".into(), wall),
            Event::Exited(exit) => {
                self.phase = Phase::Ended;
                self.fact(StatusKind::Error, exit.to_string(), wall);
            }
            Event::Read(reading) => self.read(reading, now),
            Event::Said(source, claim) => self.said(*source, claim, now, wall),
            Event::Prompted => self.prompted(now),
            Event::Answered => self.answered(now),
            Event::Missed => self.missed(),
        }
        // A question that is gone and a turn that is over may come due together.
        for _ in 0..2 {
            self.settle(now, wall);
        }
        (self.status.epoch != before).then_some(&self.status)
    }

    fn read(&mut self, reading: &Reading, now: Mono) {
        match &mut self.seen {
            Some(seen) => seen.update(reading, now),
            None => self.seen = Some(Seen::new(reading, now)),
        }
        let Some(seen) = &self.seen else { return };
        if matches!(seen.says, Says::Working | Says::Busy) {
            self.turns = self.turns.max(if self.phase == Phase::Starting { Turns::Perhaps } else { Turns::Some });
        }
        if seen.is_question() {
            self.asking = None;
            self.word.take_if(|word| matches!(word.claim, Claim::Asking(_)));
        }
        // The cursor of the same question has moved. That is no news.
        let same = |shown: &Dialog| seen.dialog.as_ref().filter(|dialog| dialog.id == shown.id && *dialog != shown);
        if let Some(moved) = self.status.dialog.as_ref().and_then(same) {
            self.status.dialog = Some(moved.clone());
        }
    }

    fn said(&mut self, source: Source, claim: &Claim, now: Mono, wall: Wall) {
        let last = &mut self.said[source as usize];
        // These are states that are read again and again; only their changes say something. The others are events.
        let is_state = matches!(source, Source::Title | Source::Progress | Source::SessionFile);
        if is_state && last.as_ref() == Some(claim) {
            return;
        }
        *last = Some(claim.clone());
        let failed = matches!(self.word, Some(Word { claim: Claim::Failed(_), .. }));
        // A hook, a file or a title of the turn that has just ended, overtaken by another source.
        let overtaken = |(ready, by)| now < ready + LAG && by != Some(source);
        let late = source != Source::Osc && self.ready.is_some_and(overtaken);
        match claim {
            Claim::Nothing => {
                self.word.take_if(|word| word.by == Speaker::Agent(source));
                return;
            }
            Claim::Asking(_) if self.shows_question() => return,
            Claim::Working if late => return,
            // An error is an end as well, and some sources tell no more than that.
            Claim::Ready | Claim::TurnOver if failed => return,
            // The hook of one tool says nothing about the question of another.
            Claim::Working if source == Source::Hook => {}
            Claim::Asking(_) => self.asking = Some(now),
            _ => self.asking = None,
        }
        self.word = Some(Word { by: Speaker::Agent(source), claim: claim.clone(), at: now });
        let starting = self.phase == Phase::Starting;
        self.turns = self.turns.max(match claim {
            Claim::TurnOver | Claim::Failed(_) => Turns::Some,
            Claim::Working if source == Source::Hook => Turns::Some,
            Claim::Asking(_) if !starting => Turns::Some,
            Claim::Working | Claim::Asking(_) => Turns::Perhaps,
            Claim::Ready | Claim::Nothing => Turns::None,
        });
        // What is on the screen is on the screen. The word counts when the question is gone.
        if self.shows_question() {
            return;
        }
        let (kind, waiting_kind) = match claim {
            Claim::Working => (StatusKind::Processing, None),
            Claim::Asking(kind) => {
                let known = self.status.waiting_kind.filter(|_| self.status.dialog.is_none());
                (StatusKind::WaitingUserAnswer, kind.or(known))
            }
            Claim::Failed(_) => (StatusKind::Error, None),
            Claim::Ready | Claim::TurnOver | Claim::Nothing => {
                let shows = self.seen.as_ref().map_or(Says::Nothing, |seen| seen.says);
                // It confirms the error on the screen. And at the start nothing is ready before the screen is.
                if shows == Says::Failed || (starting && shows != Says::Quiet) {
                    return;
                }
                (self.ready_kind(), None)
            }
        };
        let next = Next { kind, waiting_kind, dialog: None, why: Why::Said(source, claim) };
        if let Some(status) = self.after(next, wall) {
            self.enter(status, now, Some(source));
        }
    }

    fn prompted(&mut self, now: Mono) {
        self.turns = Turns::Some;
        (self.ready, self.asking) = (None, None);
        if !self.shows_question() {
            self.word = Some(Word { by: Speaker::Us(PROMPTED), claim: Claim::Working, at: now });
        }
    }

    fn answered(&mut self, now: Mono) {
        self.asking = None;
        self.word = Some(Word { by: Speaker::Us(ANSWERED), claim: Claim::Working, at: now });
    }

    fn missed(&mut self) {
        (self.seen, self.word, self.asking) = (None, None, None);
        self.said = [const { None }; Source::ALL.len()];
    }

    /// What the process did. Another reason is news even where the status is the same.
    fn fact(&mut self, kind: StatusKind, reason: String, wall: Wall) {
        if kind == self.status.kind && reason == self.status.reason {
            return;
        }
        let since = if kind == self.status.kind { self.status.since } else { wall };
        let epoch = self.status.epoch + 1;
        self.status = Status { kind, reason, waiting_kind: None, dialog: None, since, epoch };
    }

    fn shows_question(&self) -> bool {
        self.seen.as_ref().is_some_and(Seen::is_question)
    }

    /// How many sources say that it works and would also say when it does not. Hooks do not tell every end.
    fn standing(&self) -> usize {
        let tells_ends = Source::ALL.iter().filter(|source| **source != Source::Hook);
        tells_ends.filter(|source| self.said[**source as usize] == Some(Claim::Working)).count()
    }

    fn ready_kind(&self) -> StatusKind {
        let shown = self.seen.as_ref().and_then(|seen| seen.status) == Some(StatusKind::Completed);
        if shown || self.turns == Turns::Some { StatusKind::Completed } else { StatusKind::Idle }
    }

    /// Believes what is due.
    fn settle(&mut self, now: Mono, wall: Wall) {
        let Some((_, next)) = self.next().filter(|(due, _)| *due <= now) else { return };
        let refuted = matches!(next.why, Why::Rule(_) | Why::Gone(_) | Why::Moves(_));
        let Some(status) = self.after(next, wall) else { return };
        // The screen says otherwise. But the end of a turn may be told before the last frames of it come.
        self.word.take_if(|word| refuted && !matches!(word.claim, Claim::Ready | Claim::TurnOver));
        if is_ready(status.kind) {
            // An end that was not told. Titles and files are read again, this is not.
            self.said[Source::Osc as usize].take_if(|claim| *claim == Claim::Working);
        }
        self.enter(status, now, None);
    }

    /// What we will believe next if nothing else happens, and when.
    fn next(&self) -> Option<(Mono, Next<'_>)> {
        if self.phase == Phase::Ended {
            return None;
        }
        let differs = |(_, next): &(Mono, Next<'_>)| self.differs(next);
        self.by_word().filter(differs).or_else(|| self.by_screen().filter(differs))
    }

    fn by_screen(&self) -> Option<(Mono, Next<'_>)> {
        let seen = self.seen.as_ref()?;
        let next = |kind, why| Next { kind, waiting_kind: None, dialog: None, why };
        let rule = Why::Rule(&seen.rule);
        let announced = self.word.as_ref().filter(|word| matches!(word.claim, Claim::Asking(_))).map(|word| word.at);
        let standing = self.standing();
        let next = match seen.says {
            Says::Nothing => return None,
            Says::Working | Says::Busy => next(StatusKind::Processing, rule),
            Says::Asking => {
                let (waiting_kind, dialog) = (seen.waiting_kind, seen.dialog.as_ref());
                Next { waiting_kind, dialog, ..next(StatusKind::WaitingUserAnswer, rule) }
            }
            Says::Failed | Says::Empty => next(StatusKind::Error, rule),
            Says::Quiet if is_ready(self.status.kind) => {
                // Someone said that the turn is over, someone else that it is not, and the answer goes on.
                if standing > 0 && self.ready.is_some_and(|(ready, _)| seen.moved > ready + LAG) {
                    return Some((seen.moved, next(StatusKind::Processing, Why::Moves(&seen.rule))));
                }
                // Idle or completed: only what we call it changes.
                return Some((seen.since, next(self.ready_kind(), rule)));
            }
            // The turn goes on or is over; what is certain is that nobody is asked.
            Says::Quiet if self.status.kind == StatusKind::WaitingUserAnswer => {
                let due = announced.map_or(seen.since, |at| seen.since.max(at + weigh::DOUBT));
                return Some((due, next(StatusKind::Processing, Why::Gone(&seen.rule))));
            }
            Says::Quiet => next(self.ready_kind(), rule),
        };
        let starting = self.phase == Phase::Starting;
        let against =
            Against { word: self.word.as_ref(), standing, fresh: starting && self.turns == Turns::None, starting };
        Some((weigh::due(seen, against)?, next))
    }

    fn by_word(&self) -> Option<(Mono, Next<'_>)> {
        let word = self.word.as_ref()?;
        let next = |kind, why| Next { kind, waiting_kind: None, dialog: None, why };
        match (word.by, &word.claim) {
            // Until the question is gone from the screen it may not have been taken.
            (Speaker::Us(fact), _) if !self.shows_question() => {
                Some((word.at, next(StatusKind::Processing, Why::Fact(fact))))
            }
            // Said while a question was on the screen.
            (Speaker::Agent(source), Claim::Failed(_)) if !self.shows_question() => {
                Some((word.at, next(StatusKind::Error, Why::Said(source, &word.claim))))
            }
            // At the start the agent may be ready before its screen is. Without a screen to wait for its word must do.
            (Speaker::Agent(source), Claim::Ready | Claim::TurnOver) if self.phase == Phase::Starting => {
                let why = Why::Said(source, &word.claim);
                let blank = self.seen.as_ref().is_none_or(|seen| matches!(seen.says, Says::Nothing | Says::Empty));
                blank.then(|| (word.at + weigh::SETTLE, next(self.ready_kind(), why)))
            }
            _ => None,
        }
    }

    fn differs(&self, next: &Next<'_>) -> bool {
        let Status { kind, waiting_kind, dialog, .. } = &self.status;
        let shown = dialog.as_ref().map(|dialog| &dialog.id);
        *kind != next.kind || *waiting_kind != next.waiting_kind || shown != next.dialog.map(|dialog| &dialog.id)
    }

    /// The status with its reason; `None` if it would be the same. The same status for another reason is no news.
    fn after(&self, next: Next<'_>, wall: Wall) -> Option<Status> {
        if !self.differs(&next) {
            return None;
        }
        let Next { kind, waiting_kind, dialog, why } = next;
        // A question drawn after it was announced is the same one; another question begins anew.
        let another = self.status.dialog.as_ref().zip(dialog).is_some_and(|(shown, next)| shown.id != next.id);
        let since = if kind == self.status.kind && !another { self.status.since } else { wall };
        let epoch = self.status.epoch + 1;
        Some(Status { kind, reason: why.reason(), waiting_kind, dialog: dialog.cloned(), since, epoch })
    }

    fn enter(&mut self, status: Status, now: Mono, by: Option<Source>) {
        if is_ready(status.kind) {
            self.phase = Phase::Going;
            if !is_ready(self.status.kind) {
                self.ready = Some((now, by));
            }
        }
        self.status = status;
    }
}

fn is_ready(kind: StatusKind) -> bool {
    matches!(kind, StatusKind::Idle | StatusKind::Completed)
}

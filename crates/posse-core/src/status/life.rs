//! Decides the status of one terminal from its events and the time.

mod next;

use next::{Next, Why};

use super::weigh::{self, LAG, Says, Seen, Speaker, Word};
use super::{Claim, Event, Exit, Source, Status, StatusKind, WaitingKind};
use crate::detect::{Dialog, Reading};
use crate::time::{Mono, Wall};

const STARTING: &str = "starting";
const RUNNING: &str = "running";
const PROMPTED: &str = "a prompt was submitted";
const COMMANDED: &str = "a command was submitted";
const ANSWERED: &str = "the question was answered";

/// The phase in the life of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The agent has not been ready for a prompt yet.
    Starting,
    Going,
    Ended,
}

/// The turns since the start. They distinguish `idle` from `completed`, which screens cannot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Turns {
    None,
    /// The agent worked, but perhaps not on a prompt: Codex reports working and then idle once while it starts, and
    /// shows the row of a turn while it connects to servers.
    Perhaps,
    Some,
}

/// The last boundary between two turns. Slow sources may still report events from before it.
#[derive(Clone, Copy, Debug)]
enum Border {
    /// The end of a turn, and the source that reported it, unless that was the screen.
    Over(Mono, Option<Source>),
    Prompted(Mono),
}

/// Remembers one terminal's status and decides the next one.
#[derive(Clone, Debug)]
pub struct Life {
    /// The presumed status. After an input it is `processing` before anything is observed.
    presumed: Status,
    /// The public status: the last observed one.
    reported: Status,
    phase: Phase,
    turns: Turns,
    seen: Option<Seen>,
    word: Option<Word>,
    /// The last claim of each source, in the order of `Source::ALL`.
    said: [Option<Claim>; Source::ALL.len()],
    /// The time of each of these claims.
    said_at: [Mono; Source::ALL.len()],
    /// The time at which the agent announced a question; `None` once the question is on the screen.
    asking: Option<Mono>,
    border: Option<Border>,
    /// The time at which the agent was first ready.
    started: Option<Mono>,
    /// The agent reports work by OSC 7501: some versions of an agent report only that they are idle.
    osc_works: bool,
    /// Work on the last prompt was seen or reported.
    at_it: bool,
    /// The title has turned: in some versions of an agent it never does.
    title_turns: bool,
}

impl Life {
    pub fn starting(now: Wall) -> Self {
        Self::resumed(Status::new(StatusKind::Processing, STARTING, now), false)
    }

    /// Creates the state of a known terminal with its last status, which holds until there is evidence.
    pub fn resumed(status: Status, ended: bool) -> Self {
        let starting = status.kind == StatusKind::Processing && status.reason == STARTING;
        let starting = starting || status.waiting_kind == Some(WaitingKind::Startup);
        let phase = match () {
            () if ended => Phase::Ended,
            () if starting => Phase::Starting,
            () => Phase::Going,
        };
        let idle = status.kind == StatusKind::Idle && !status.awaiting_reaction;
        let turns = if starting || idle { Turns::None } else { Turns::Some };
        let reported = status.clone();
        let presumed = if status.awaiting_reaction {
            Status { kind: StatusKind::Processing, reason: PROMPTED.into(), ..status }
        } else {
            status
        };
        Self {
            at_it: !reported.awaiting_reaction,
            presumed,
            reported,
            phase,
            turns,
            seen: None,
            word: None,
            said: Default::default(),
            said_at: Default::default(),
            asking: None,
            border: None,
            started: None,
            osc_works: false,
            title_turns: false,
        }
    }

    pub fn status(&self) -> &Status {
        &self.reported
    }

    /// Returns whether an announced question may appear at any moment. The status is then `waiting_user_answer` without
    /// a dialog; it may return to `processing` while the screen still shows work. Nothing may be typed until this is
    /// over: it would go into the question.
    pub fn about_to_ask(&self, now: Mono) -> bool {
        self.asking.is_some_and(|at| now < at + weigh::ASKING)
    }

    /// Returns the last claim of each source.
    pub fn claims(&self) -> impl Iterator<Item = (Source, &Claim)> {
        Source::ALL.into_iter().zip(&self.said).filter_map(|(source, said)| Some((source, said.as_ref()?)))
    }

    /// Returns the time to send `Time`. Sending it late, early or too often is harmless.
    pub fn deadline(&self) -> Option<Mono> {
        self.next().map(|(due, _)| due)
    }

    /// Processes an event and returns the new status if it must be published. Events after the end have no effect.
    pub fn handle(&mut self, event: &Event, now: Mono, wall: Wall) -> Option<&Status> {
        if self.phase == Phase::Ended {
            return None;
        }
        let before = self.presumed.epoch;
        match event {
            Event::Time => {}
            Event::Running => self.fact(StatusKind::Processing, RUNNING.into(), wall),
            Event::Exited(exit) => {
                self.phase = Phase::Ended;
                let kind = if self.ends_well(*exit) { StatusKind::Completed } else { StatusKind::Error };
                self.fact(kind, exit.to_string(), wall);
            }
            Event::Read(reading) => self.read(reading, now),
            Event::Said(source, claim) => self.said(*source, claim, now, wall),
            Event::Recalled(source, claim) => {
                self.said[*source as usize] = Some(claim.clone());
                self.said_at[*source as usize] = now;
                self.title_turns |= *source == Source::Title && *claim == Claim::Working;
            }
            Event::Prompted => self.prompted(PROMPTED, now),
            Event::Commanded => self.prompted(COMMANDED, now),
            Event::Answered => self.answered(now),
            Event::Denied => self.asking = None,
            Event::AskedAgain => self.asked_again(wall),
            Event::Missed => self.missed(),
        }
        // The disappearance of a question and the end of a turn may be due together.
        for _ in 0..2 {
            self.settle(now, wall);
        }
        if self.presumed.epoch == before {
            return None;
        }
        self.report();
        Some(&self.reported)
    }

    /// Updates the public status. A status that is only presumed after an input stays private.
    fn report(&mut self) {
        if !self.presumed.awaiting_reaction {
            self.reported.clone_from(&self.presumed);
            return;
        }
        let Status { epoch, since, unproven, .. } = self.presumed;
        if !is_ready(self.reported.kind) {
            // The agent took the prompt, so the error or the question belongs to the turn before.
            let kind = self.ready_kind();
            let reason = self.presumed.reason.clone();
            self.reported = Status { kind, reason, waiting_kind: None, dialog: None, since, ..self.presumed };
        }
        (self.reported.epoch, self.reported.unproven, self.reported.awaiting_reaction) = (epoch, unproven, true);
    }

    fn read(&mut self, reading: &Reading, now: Mono) {
        match &mut self.seen {
            Some(seen) => seen.update(reading, now),
            None => self.seen = Some(Seen::new(reading, now)),
        }
        let Some(seen) = &self.seen else { return };
        match seen.says {
            Says::Working if self.phase != Phase::Starting && !self.flashes(seen, now) => self.turns = Turns::Some,
            // A title may turn briefly without work.
            Says::Working | Says::Busy => self.turns = self.turns.max(Turns::Perhaps),
            _ => {}
        }
        self.at_it |= matches!(seen.says, Says::Working | Says::Busy | Says::Asking | Says::Failed);
        if seen.says == Says::Working {
            // The action of posse has had its effect.
            self.word.take_if(|word| matches!(word.by, Speaker::Us(_)));
        }
        if seen.is_question() {
            let since = seen.since;
            self.asking.take_if(|at| *at <= since);
            self.word.take_if(|word| matches!(word.claim, Claim::Asking(_)) && word.at <= since);
        }
        // A moved cursor in the same question is no change of status.
        let same =
            |shown: &Dialog| seen.reading.dialog.as_ref().filter(|dialog| dialog.id == shown.id && *dialog != shown);
        if let Some(moved) = self.presumed.dialog.as_ref().and_then(same) {
            self.presumed.dialog = Some(moved.clone());
            self.reported.dialog.clone_from(&self.presumed.dialog);
        }
    }

    fn said(&mut self, source: Source, claim: &Claim, now: Mono, wall: Wall) {
        let last = &mut self.said[source as usize];
        // These sources are states that are read repeatedly, so only their changes count. The others are events.
        let is_state = matches!(source, Source::Title | Source::Progress | Source::SessionFile);
        if is_state && last.as_ref() == Some(claim) {
            return;
        }
        let before_at = std::mem::replace(&mut self.said_at[source as usize], now);
        let before = last.replace(claim.clone()).map(|claim| (claim, before_at));
        self.title_turns |= source == Source::Title && *claim == Claim::Working;
        self.osc_works |= source == Source::Osc && *claim == Claim::Working;
        // Progress is also "busy" while a menu of the user is open (Claude Code), and so is the session file (2.1.120).
        // Both start no turn and withdraw no end. A title that turns during work does not turn then.
        let title_is_plain = self.title_turns && self.said[Source::Title as usize] != Some(Claim::Working);
        let of_a_menu = source == Source::Progress || (source == Source::SessionFile && title_is_plain);
        if of_a_menu && *claim == Claim::Working && (self.is_stirring(source) || self.hook_claims_end()) {
            return;
        }
        let failed = matches!(self.word, Some(Word { claim: Claim::Failed(_), .. }));
        match claim {
            Claim::Nothing => {
                self.word.take_if(|word| word.by == Speaker::Agent(source));
                if self.word.is_none() && self.hook_claims_end() {
                    // A claim of another source in between does not withdraw the hook's claim or renew its time.
                    let at = self.said_at[Source::Hook as usize];
                    self.word = Some(Word { by: Speaker::Agent(Source::Hook), claim: Claim::TurnOver, at });
                }
                return;
            }
            // After the start, a plain title counts only if the title reported work or a question before.
            Claim::Ready
                if source == Source::Title
                    && self.phase != Phase::Starting
                    && !matches!(before, Some((Claim::Working | Claim::Asking(_), _))) =>
            {
                return;
            }
            // This is the question on the screen, unless a later claim makes it the next one.
            Claim::Asking(_) if self.shows_question() && self.word.is_none() => return,
            _ if self.is_late(source, claim, before.as_ref(), now) => return,
            // An error is also an end, and some sources report only the end.
            Claim::Ready | Claim::TurnOver if failed => return,
            // The hook of one tool is no evidence about the question of another.
            Claim::Working if source == Source::Hook => {}
            Claim::Asking(_) => self.asking = Some(now),
            _ => self.asking = None,
        }
        self.at_it |= !matches!(claim, Claim::Ready | Claim::Nothing);
        // The minimum duration of work counts from its first report.
        let lasting =
            |word: &Word| *claim == Claim::Working && word.claim == Claim::Working && self.is_stirring(source);
        let at = self.word.as_ref().filter(|word| lasting(word)).map_or(now, |word| word.at);
        let seconds_claim = self.word.as_ref().is_some_and(Word::is_claim) && self.standing() == 0;
        self.word = Some(Word { by: Speaker::Agent(source), claim: claim.clone(), at });
        let starting = self.phase == Phase::Starting;
        self.note(match claim {
            Claim::TurnOver | Claim::Failed(_) => Turns::Some,
            Claim::Working if source == Source::Hook => Turns::Some,
            Claim::Asking(_) if !starting => Turns::Some,
            Claim::Working | Claim::Asking(_) => Turns::Perhaps,
            Claim::Ready | Claim::Nothing => Turns::None,
        });
        // The screen takes precedence. The claim counts when the question is gone.
        let waits = *claim == Claim::Working && (self.just_started(now) || self.is_stirring(source));
        if self.shows_question() || waits {
            return;
        }
        let (kind, waiting_kind) = match claim {
            Claim::Working => (StatusKind::Processing, None),
            Claim::Asking(kind) => {
                let known = self.presumed.waiting_kind.filter(|_| self.presumed.dialog.is_none());
                (StatusKind::WaitingUserAnswer, kind.or(known))
            }
            Claim::Failed(_) => (StatusKind::Error, None),
            Claim::Ready | Claim::TurnOver | Claim::Nothing => {
                let shows = self.seen.as_ref().map_or(Says::Nothing, |seen| seen.says);
                // The claim confirms the error on the screen. During the start nothing is ready before the screen is.
                let starting = self.phase == Phase::Starting;
                // Behind a panel of the user no screen will show how the turn ended. The hook has reported that.
                let told = matches!(shows, Says::Nothing | Says::Busy) && seconds_claim;
                // OSC 7501 precedes the frame, so even a quiet screen is outdated.
                let old = shows != Says::Quiet || source == Source::Osc || self.title_blinked() || self.ends_start();
                let vague = weigh::is_vague(source, claim) && old && !told;
                let alone = weigh::needs_second(source) && (shows != Says::Quiet || self.standing() > 0);
                if shows == Says::Failed || vague || alone || (starting && shows != Says::Quiet) {
                    return;
                }
                (self.ready_kind(), None)
            }
        };
        let next = Next { kind, waiting_kind, dialog: None, why: Why::Said(source, claim) };
        if let Some(status) = self.after(next, wall) {
            self.enter(status, now, (now, Some(source)));
        }
    }

    /// Returns whether a hook, a file or a title belongs to the turn before and was overtaken by another source.
    fn is_late(&self, source: Source, claim: &Claim, before: Option<&(Claim, Mono)>, now: Mono) -> bool {
        let young = |at: Mono| source != Source::Osc && now < at + LAG;
        match (self.border, claim) {
            // A source that has reported the end as well reports the next turn: a prompt was queued.
            (Some(Border::Over(at, by)), Claim::Working) => {
                let told_end =
                    |(claim, when): &(Claim, Mono)| matches!(claim, Claim::Ready | Claim::TurnOver) && *when >= at;
                young(at) && by != Some(source) && !before.is_some_and(told_end)
            }
            // A source that reported the start of this turn may report its end.
            (Some(Border::Prompted(at)), Claim::Ready | Claim::TurnOver | Claim::Failed(_)) => {
                young(at) && !matches!(before, Some((Claim::Working, _)))
            }
            _ => false,
        }
    }

    fn prompted(&mut self, what: &'static str, now: Mono) {
        self.note(Turns::Some);
        self.border = Some(Border::Prompted(now));
        self.asking = None;
        for (source, claim) in Source::ALL.into_iter().zip(&mut self.said) {
            // A title that has just started to turn belongs to this prompt: the delivery is noticed a moment later.
            let of_this = source == Source::Title && now <= self.said_at[source as usize] + LAG;
            claim.take_if(|claim| *claim == Claim::Working && !of_this);
        }
        self.at_it = self.said[Source::Title as usize] == Some(Claim::Working);
        if !self.shows_question() {
            self.word = Some(Word { by: Speaker::Us(what), claim: Claim::Working, at: now });
        }
    }

    fn answered(&mut self, now: Mono) {
        self.asking = None;
        // The answer is known from the screen that followed it, which may show the end already.
        if self.seen.as_ref().is_some_and(|seen| seen.closed.is_some()) {
            return;
        }
        self.word = Some(Word { by: Speaker::Us(ANSWERED), claim: Claim::Working, at: now });
    }

    /// Records the next question in the same words. The new epoch makes it visible to observers of the first one.
    fn asked_again(&mut self, wall: Wall) {
        self.asking = None;
        if self.shows_question() && self.is_waiting() {
            self.presumed.since = wall;
            self.presumed.epoch += 1;
        }
    }

    /// Records turns. A terminal that has had a turn has started.
    fn note(&mut self, turns: Turns) {
        self.turns = self.turns.max(turns);
        if turns == Turns::Some {
            self.phase = Phase::Going;
        }
    }

    fn missed(&mut self) {
        (self.seen, self.word, self.asking) = (None, None, None);
        self.said = Default::default();
    }

    /// Applies an event of the process. A new reason counts as a change even if the status is the same.
    fn fact(&mut self, kind: StatusKind, reason: String, wall: Wall) {
        if kind == self.presumed.kind && reason == self.presumed.reason {
            return;
        }
        let since = if kind == self.presumed.kind { self.presumed.since } else { wall };
        self.presumed = Status { epoch: self.presumed.epoch + 1, ..Status::new(kind, reason, since) };
    }

    /// Returns whether an exit is no error: a program reports success, or an agent does so while it is quiet.
    fn ends_well(&self, exit: Exit) -> bool {
        exit == Exit::Code(0) && (self.presumed.reason == RUNNING || is_ready(self.presumed.kind))
    }

    /// Returns whether the agent was first ready only a moment ago. Codex is ready, reports work and withdraws it, all
    /// within 100 ms. A prompt sent then must not be refused as busy, so the first report of work must stand for a
    /// while.
    fn just_started(&self, at: Mono) -> bool {
        self.turns < Turns::Some && self.started.is_some_and(|started| at < started + weigh::STAND)
    }

    /// Returns whether work reported by this source may be a command of the agent itself, such as one that opens a
    /// menu: the agent is ready, and no prompt was sent. Hooks report only real turns.
    fn is_stirring(&self, source: Source) -> bool {
        let prompted = matches!(self.border, Some(Border::Prompted(_)));
        is_ready(self.presumed.kind) && !prompted && source != Source::Hook
    }

    /// Returns whether a sign of work is so new that it may come from a menu of the user that is closing.
    fn flashes(&self, seen: &Seen, now: Mono) -> bool {
        seen.was_hidden && self.is_stirring(Source::Title) && now < seen.since + weigh::STAND
    }

    /// Returns whether a hook has claimed the end of the current turn.
    fn hook_claims_end(&self) -> bool {
        let hook = Source::Hook as usize;
        let of_this_turn = !matches!(self.border, Some(Border::Prompted(at)) if at >= self.said_at[hook]);
        self.said[hook] == Some(Claim::TurnOver) && of_this_turn && !is_over(self.presumed.kind)
    }

    /// Returns whether the title ended a turn that OSC 7501 has not started yet. Codex 0.163 turns its title, stops it
    /// and turns it again before it reports work.
    fn title_blinked(&self) -> bool {
        let osc = Source::Osc as usize;
        let by_title = self.word.as_ref().is_some_and(|word| word.by == Speaker::Agent(Source::Title));
        let unheard = matches!(self.border, Some(Border::Prompted(at)) if self.said_at[osc] < at);
        by_title && unheard && self.said[osc].is_some()
    }

    /// Returns whether the agent may only have withdrawn the work that it reports when it starts. Codex 0.166 does so
    /// within 100 ms, later on a busy machine, and starts the turn of a prompt submitted meanwhile only after that.
    fn ends_start(&self) -> bool {
        let is_early = |at: Mono| self.started.is_some_and(|started| at < started + weigh::START);
        let takes_back = |word: &Word| {
            word.claim == Claim::Ready
                && matches!(word.by, Speaker::Agent(Source::Title | Source::Osc))
                && is_early(word.at)
        };
        let prompted = matches!(self.border, Some(Border::Prompted(_)));
        prompted && self.osc_works && self.word.as_ref().is_some_and(takes_back)
    }

    /// Returns the time at which the title stopped turning, if that was after the hook claimed the end. The title still
    /// turns while a Stop hook of the user runs.
    fn title_rests(&self) -> Option<Mono> {
        let [hook, title] = [Source::Hook as usize, Source::Title as usize];
        let plain = matches!(self.said[title], Some(Claim::Nothing | Claim::Ready));
        (self.title_turns && plain && self.said_at[title] >= self.said_at[hook]).then_some(self.said_at[title])
    }

    fn is_waiting(&self) -> bool {
        self.presumed.kind == StatusKind::WaitingUserAnswer
    }

    fn shows_question(&self) -> bool {
        self.seen.as_ref().is_some_and(Seen::is_question)
    }

    fn ready_kind(&self) -> StatusKind {
        let shown = self.seen.as_ref().and_then(|seen| seen.reading.status) == Some(StatusKind::Completed);
        if shown || self.turns == Turns::Some { StatusKind::Completed } else { StatusKind::Idle }
    }

    /// Applies the next status if it is due.
    fn settle(&mut self, now: Mono, wall: Wall) {
        let Some((_, next)) = self.next().filter(|(due, _)| *due <= now) else { return };
        let why = next.why;
        let (shown, moves) = (matches!(why, Why::Rule(_)), matches!(why, Why::Moves(_)));
        // A reported end that waited for the screen counts from the time of the report.
        let over = match (why, &self.word) {
            (Why::Said(source, _), Some(word)) => (word.at, Some(source)),
            _ => (now, None),
        };
        let Some(status) = self.after(next, wall) else { return };
        let told = |word: &Word| matches!(word.claim, Claim::Ready | Claim::TurnOver);
        if shown && is_ready(status.kind) && !self.word.as_ref().is_some_and(told) {
            // The end was not reported. Titles and files are read again, this source is not.
            self.said[Source::Osc as usize].take_if(|claim| *claim == Claim::Working);
        }
        // The screen contradicts the claim. However, the report of an end may precede the last frames of the turn.
        self.word.take_if(|word| moves || (shown && !told(word)));
        self.enter(status, now, over);
    }

    /// Applies a status. `over` is the time and the source of the end, if this ends a turn.
    fn enter(&mut self, status: Status, now: Mono, over: (Mono, Option<Source>)) {
        // Before the start there was no turn, so no late report can belong to one.
        if self.phase == Phase::Going && is_over(status.kind) && !is_over(self.presumed.kind) {
            self.border = Some(Border::Over(over.0, over.1));
        }
        if is_ready(status.kind) {
            if self.phase == Phase::Starting {
                self.started = Some(now);
            }
            self.phase = Phase::Going;
        }
        self.presumed = status;
    }
}

fn is_over(kind: StatusKind) -> bool {
    is_ready(kind) || kind == StatusKind::Error
}

fn is_ready(kind: StatusKind) -> bool {
    matches!(kind, StatusKind::Idle | StatusKind::Completed)
}

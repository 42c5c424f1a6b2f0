//! Predicts the next status, with its source, reason and time. Pure. A screen that is soon replaced leads to no status.

use std::time::Duration;

use super::super::weigh::{self, ASKING, DOUBT, EMPTY, LAG, ROW, SETTLE, STAND, Says, Seen, Speaker, UNHEARD, Word};
use super::super::{Claim, Source, Status, StatusKind, WaitingKind};
use super::{ANSWERED, Border, Life, PROMPTED, Phase, Turns, is_over, is_ready};
use crate::detect::{Dialog, Strength};
use crate::time::{Mono, Wall};

#[derive(Clone, Copy)]
pub(super) struct Next<'a> {
    pub(super) kind: StatusKind,
    pub(super) waiting_kind: Option<WaitingKind>,
    pub(super) dialog: Option<&'a Dialog>,
    pub(super) why: Why<'a>,
}

#[derive(Clone, Copy)]
pub(super) enum Why<'a> {
    /// The rule that read the screen.
    Rule(&'a str),
    /// The question is gone; this rule read the screen that replaced it.
    Gone(&'a str),
    /// The screen looks quiet by this rule, but the conversation continues.
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
    /// Returns the next status if no other event occurs, and its time.
    pub(super) fn next(&self) -> Option<(Mono, Next<'_>)> {
        if self.phase == Phase::Ended {
            return None;
        }
        let differs = |(_, next): &(Mono, Next<'_>)| self.differs(next);
        self.by_word().filter(differs).or_else(|| self.by_screen().filter(differs))
    }

    /// Returns the status on the screen, and the time at which it has stood for long enough.
    fn by_screen(&self) -> Option<(Mono, Next<'_>)> {
        let seen = self.seen.as_ref()?;
        let due = self.due(seen);
        let rule = Why::Rule(&seen.reading.rule);
        match seen.says {
            Says::Nothing => None,
            Says::Busy if self.just_started(seen.since) => {
                Some((due?.max(seen.since + LAG), next(StatusKind::Processing, rule)))
            }
            Says::Working | Says::Busy
                if self.is_stirring(Source::Title) && (seen.says == Says::Busy || seen.was_hidden) =>
            {
                let lasts = if seen.was_hidden { STAND } else { weigh::STIR };
                Some((due?.max(seen.since + lasts), next(StatusKind::Processing, rule)))
            }
            Says::Working | Says::Busy => Some((due?, next(StatusKind::Processing, rule))),
            Says::Failed | Says::Empty => Some((due?, next(StatusKind::Error, rule))),
            Says::Asking => {
                let (waiting_kind, dialog) = (seen.reading.waiting_kind, seen.reading.dialog.as_ref());
                Some((due?, Next { waiting_kind, dialog, ..next(StatusKind::WaitingUserAnswer, rule) }))
            }
            Says::Quiet if is_ready(self.presumed.kind) => {
                // One source reported the end of the turn, another one contradicts it, and the answer continues.
                let progress = self.said[Source::Progress as usize] == Some(Claim::Working);
                let moves = self.standing() > usize::from(progress)
                    && matches!(self.border, Some(Border::Over(at, _)) if seen.moved > at + LAG);
                let going_on = || next(StatusKind::Processing, Why::Moves(&seen.reading.rule));
                // Otherwise only the name of the status changes.
                Some((seen.since, if moves { going_on() } else { next(self.ready_kind(), rule) }))
            }
            Says::Quiet if self.is_waiting() => {
                // The turn continues or is over; in both cases no question is open.
                let announced = self.word.as_ref().filter(|word| matches!(word.claim, Claim::Asking(_)));
                let gone = announced.map_or(seen.since, |word| seen.since.max(word.at + DOUBT));
                let over = due.filter(|over| *over <= gone).map(|over| (over, next(self.ready_kind(), rule)));
                over.or_else(|| Some((gone, next(StatusKind::Processing, Why::Gone(&seen.reading.rule)))))
            }
            Says::Quiet => Some((due?, next(self.ready_kind(), rule))),
        }
    }

    /// Returns the time at which the screen is believed if it stays; `None` if it is not believed on its own.
    fn due(&self, seen: &Seen) -> Option<Mono> {
        let word = self.word.as_ref();
        let text = seen.reading.strength < Strength::Layout;
        let stands = match seen.says {
            Says::Nothing => return None,
            Says::Quiet => return self.quiet_due(seen),
            Says::Busy => return busy_due(seen, word),
            Says::Asking | Says::Working if !text => seen.since,
            // Announced or closed, so it is no half-drawn frame.
            Says::Failed if seen.closed.is_some() || word.is_some_and(|word| word.announced(seen)) => seen.since,
            Says::Asking | Says::Working | Says::Failed => seen.since + STAND,
            // Programs start with an empty screen, and one that reports work has not exited.
            Says::Empty if self.phase == Phase::Starting || self.standing() > 0 => return None,
            Says::Empty => seen.since + EMPTY,
        };
        let hold = |word: &Word| match (&word.claim, seen.says) {
            (_, Says::Asking) if !text => Duration::ZERO,
            (_, Says::Working) if word.is_end() => LAG,
            (_, Says::Working) if word.claim == Claim::Working => Duration::ZERO,
            (_, Says::Failed) if word.is_end() => Duration::ZERO,
            // An error after the claim is new; an older one may not have been painted over yet.
            (Claim::Working, Says::Failed) if seen.since > word.at => Duration::ZERO,
            _ => DOUBT,
        };
        Some(word.map_or(stands, |word| stands.max(word.at + hold(word))))
    }

    /// Returns the time at which a quiet screen is believed. Moments without a sign of work also occur during a turn.
    fn quiet_due(&self, seen: &Seen) -> Option<Mono> {
        let (word, standing, starting) = (self.word.as_ref(), self.standing(), self.phase == Phase::Starting);
        // The row that closes a turn belongs to the turn before if it is older than the claim.
        let closed = |word: &Word| seen.closed.is_some_and(|closed| closed > word.at);
        // An agent with an event file also reports the start of a prompt.
        let unheard = self.said[Source::SessionFile as usize].is_some();
        let patience = match word {
            _ if starting && self.turns == Turns::None && seen.reading.strength == Strength::Layout => {
                return Some(seen.since);
            }
            Some(Word { claim: Claim::Failed(_), .. }) => return None,
            Some(_) if self.title_blinked() || (self.ends_start() && seen.closed.is_none()) => SETTLE,
            Some(word) if word.announced(seen) && !(word.is_claim() && standing > 0) => {
                let is_plain = word.claim == Claim::Ready
                    && matches!(word.by, Speaker::Agent(Source::Title | Source::Osc))
                    && !(self.hook_claims_end() || starting)
                    && seen.closed.is_none();
                return Some(seen.since.max(word.at) + if is_plain { ROW } else { Duration::ZERO });
            }
            Some(word) if !word.is_end() && closed(word) => return seen.closed,
            Some(Word { by: Speaker::Us(PROMPTED), .. }) if unheard => UNHEARD,
            // The action of posse is certain, and its effect may still be on its way.
            Some(Word { by: Speaker::Us(_), .. }) => DOUBT,
            // The quiet moment before a question must not count as the end.
            Some(Word { claim: Claim::Asking(_), .. }) => ASKING,
            Some(Word { claim: Claim::Working, .. }) => SETTLE,
            _ if seen.closed.is_some() => return seen.closed,
            // The title, which turns during work, does not turn.
            _ if self.title_turns && self.said[Source::Title as usize] == Some(Claim::Ready) && standing == 0 => {
                return Some(seen.since);
            }
            _ => SETTLE,
        };
        let patience = match standing {
            0 => patience,
            1 => patience.max(DOUBT),
            // One source may be lost or late, but not two.
            _ => return None,
        };
        Some(word.map_or(seen.moved, |word| seen.moved.max(word.at)) + patience)
    }

    /// Returns the status of a claim that could not be believed when it was made.
    fn by_word(&self) -> Option<(Mono, Next<'_>)> {
        let word = self.word.as_ref()?;
        let shows = self.seen.as_ref().map_or(Says::Nothing, |seen| seen.says);
        if self.shows_question() {
            return None;
        }
        match (word.by, &word.claim) {
            (Speaker::Us(fact), _) => Some((word.at, next(StatusKind::Processing, Why::Fact(fact)))),
            (Speaker::Agent(source), Claim::Working) if self.just_started(word.at) => {
                Some((word.at + LAG, next(StatusKind::Processing, Why::Said(source, &word.claim))))
            }
            (Speaker::Agent(source), Claim::Working) if shows != Says::Working && self.is_stirring(source) => {
                Some((word.at + weigh::STIR, next(StatusKind::Processing, Why::Said(source, &word.claim))))
            }
            // Claimed while a question was on the screen, and the question is gone.
            (Speaker::Agent(source), Claim::Asking(kind)) if self.presumed.dialog.is_some() => {
                let why = Why::Said(source, &word.claim);
                Some((word.at, Next { waiting_kind: *kind, ..next(StatusKind::WaitingUserAnswer, why) }))
            }
            (Speaker::Agent(source), Claim::Failed(_)) => {
                Some((word.at, next(StatusKind::Error, Why::Said(source, &word.claim))))
            }
            (Speaker::Agent(source), Claim::Ready | Claim::TurnOver) => {
                let ready = next(self.ready_kind(), Why::Said(source, &word.claim));
                let announced = self.seen.as_ref().is_some_and(|seen| word.announced(seen));
                match (shows, self.phase) {
                    // The claim waited for a screen that shows the result of the turn, in vain.
                    (Says::Nothing | Says::Busy, Phase::Going)
                        if (weigh::is_vague(source, &word.claim) || weigh::needs_second(source))
                            && !is_over(self.presumed.kind) =>
                    {
                        let news = self.seen.as_ref().map_or(word.at, |seen| seen.since.max(seen.moved));
                        let goes_on = shows == Says::Busy && news > word.at + LAG;
                        // Progress and the session file end with the title; they do not strengthen the hook's claim.
                        let claims = source == Source::Hook || (self.hook_claims_end() && self.standing() == 0);
                        if let Some(rests) = self.title_rests().filter(|_| claims) {
                            return (!goes_on).then(|| (word.at.max(rests) + weigh::REST, ready));
                        }
                        // Another source contradicts the claim. One source may be lost or late, but not two.
                        let patience = match self.standing() {
                            _ if self.title_blinked() || self.ends_start() => Some(SETTLE),
                            _ if matches!(source, Source::Title | Source::Osc) => Some(weigh::FRAME),
                            0 => Some(LAG),
                            _ if weigh::is_vague(source, &word.claim) => Some(LAG),
                            1 => Some(DOUBT),
                            _ => None,
                        };
                        patience.filter(|_| !goes_on).map(|patience| (word.at + patience, ready))
                    }
                    // During the start the agent may be ready before its screen is; the claim then suffices.
                    (Says::Nothing | Says::Empty | Says::Busy, Phase::Starting) => Some((word.at + SETTLE, ready)),
                    (Says::Nothing | Says::Busy, Phase::Going) if announced && self.is_waiting() => {
                        Some((word.at, ready))
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }

    fn differs(&self, next: &Next<'_>) -> bool {
        let Status { kind, waiting_kind, dialog, .. } = &self.presumed;
        let shown = dialog.as_ref().map(|dialog| &dialog.id);
        // Any observation after an input is a change, even of the presumed status.
        let observed = self.presumed.awaiting_reaction && !matches!(next.why, Why::Fact(_));
        let another = *kind != next.kind || *waiting_kind != next.waiting_kind;
        observed || another || shown != next.dialog.map(|dialog| &dialog.id)
    }

    /// Returns the status with its reason, or `None` if only the reason would change.
    pub(super) fn after(&self, next: Next<'_>, wall: Wall) -> Option<Status> {
        if !self.differs(&next) {
            return None;
        }
        let Next { kind, waiting_kind, dialog, why } = next;
        // A question drawn after its announcement is the same one; another question starts anew.
        let another = self.presumed.dialog.as_ref().zip(dialog).is_some_and(|(shown, next)| shown.id != next.id);
        let same = kind == self.presumed.kind && !another && !self.presumed.awaiting_reaction;
        let since = if same { self.presumed.since } else { wall };
        let epoch = self.presumed.epoch + 1;
        let unproven = !self.at_it && (kind == StatusKind::Processing || is_ready(kind));
        let awaiting_reaction = matches!(why, Why::Fact(fact) if fact != ANSWERED);
        let dialog = dialog.cloned();
        Some(Status { kind, reason: why.reason(), waiting_kind, dialog, since, epoch, awaiting_reaction, unproven })
    }

    /// Returns the number of sources that report work and would also report its end. Hooks do not report every end.
    pub(super) fn standing(&self) -> usize {
        let tells_ends = Source::ALL.iter().filter(|source| **source != Source::Hook);
        tells_ends.filter(|source| self.said[**source as usize] == Some(Claim::Working)).count()
    }
}

/// Returns the time at which a busy title is believed. A title is not repainted, so it stays busy if its end is lost.
/// It is not believed against an end reported by another source, unless the conversation continues.
fn busy_due(seen: &Seen, word: Option<&Word>) -> Option<Mono> {
    match word {
        Some(word) if word.is_end() => {
            let news = seen.since.max(seen.moved);
            (news > word.at + LAG).then_some(news)
        }
        Some(Word { claim: Claim::Asking(_), at, .. }) => Some(seen.since.max(*at + DOUBT)),
        _ => Some(seen.since),
    }
}

fn next(kind: StatusKind, why: Why<'_>) -> Next<'_> {
    Next { kind, waiting_kind: None, dialog: None, why }
}

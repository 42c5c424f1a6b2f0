//! The truth: intervals of time with the statuses that are right in each. It uses no rule of posse. Its facts are the
//! model server's log, the keys sent, texts on the screen, and processes.

use posse_core::status::{StatusKind, WaitingKind};

use posse_sim::model::{ModelEvent, ModelLog, RequestRole};

pub type Millis = i64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TruthFact {
    pub at: Millis,
    pub what: TruthEvent,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TruthEvent {
    Ready,
    /// The test began to send a prompt. Enter is pressed some time later.
    Sending,
    Asked,
    /// The model requests a tool, with or without a permission prompt.
    WantsTool {
        asks: bool,
    },
    /// The text of a dialog appeared on the screen, or disappeared from it (`Gone`).
    Drawn(WaitingKind),
    Gone,
    Accepting,
    Denying,
    /// The model's answer was sent completely, without a tool call.
    Over,
    /// The user's Stop hook has ended; `blocks`: it sends the agent back to work.
    HookEnded {
        blocks: bool,
    },
    /// The model returned an error, or cut the connection.
    Failed,
    Interrupting,
    /// The agent stopped reading the answer.
    Cut,
    Leaving,
    Ended,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interval {
    pub from: Millis,
    pub to: Millis,
    pub allowed: Vec<StatusKind>,
    pub dialog: Option<WaitingKind>,
    pub what: &'static str,
}

use StatusKind::{Completed, Error, Idle, Processing, WaitingUserAnswer as Waiting};

/// Converts the model server's log into facts. `zero` is the start of its clock. The first `free` tool calls need no
/// permission, later ones do.
pub fn of_log(log: &ModelLog, zero: Millis, free: usize) -> Vec<TruthFact> {
    let mut facts = Vec::new();
    let mut tools = 0;
    // The requests of a turn, with whether they asked for a tool.
    let mut requests: Vec<(u64, bool)> = Vec::new();
    for entry in &log.entries {
        let Some(request) = entry.request else { continue };
        if let ModelEvent::Opened(opened) = &entry.event
            && matches!(opened.role, RequestRole::Turn { .. })
        {
            requests.push((request, false));
        }
        let Some((_, wants_tool)) = requests.iter_mut().find(|(number, _)| *number == request) else { continue };
        let what = match &entry.event {
            ModelEvent::Opened(_) => TruthEvent::Asked,
            ModelEvent::ToolAsked { .. } => {
                *wants_tool = true;
                tools += 1;
                TruthEvent::WantsTool { asks: tools > free }
            }
            ModelEvent::Ended { .. } if !*wants_tool => TruthEvent::Over,
            ModelEvent::Failed { .. } | ModelEvent::Dropped => TruthEvent::Failed,
            ModelEvent::ConnectionLost => TruthEvent::Cut,
            _ => continue,
        };
        facts.push(TruthFact { at: zero + entry.at.as_millis() as Millis, what });
    }
    facts
}

pub fn intervals(mut facts: Vec<TruthFact>, end: Millis) -> Vec<Interval> {
    facts.sort_by_key(|fact| fact.at);
    let mut told = Story::default();
    let mut intervals: Vec<Interval> = Vec::new();
    for (number, fact) in facts.iter().enumerate() {
        let Some((what, allowed, dialog)) = told.next(fact.what, &facts[number + 1..]) else { continue };
        match intervals.last_mut() {
            Some(last) if last.allowed == allowed && last.dialog == dialog => continue,
            Some(last) => last.to = fact.at,
            None => {}
        }
        intervals.push(Interval { from: fact.at, to: end, allowed, dialog, what });
    }
    intervals.retain(|interval| interval.from < interval.to);
    intervals
}

/// The state that determines the next interval.
#[derive(Default)]
struct Story {
    /// Tool calls that need a permission, and dialogs that were drawn.
    to_ask: usize,
    drawn: usize,
    /// A dialog is on the screen, and the model has no result of it yet.
    open: bool,
    denied: bool,
    interrupting: bool,
    leaving: bool,
    ended: bool,
    allowed: Vec<StatusKind>,
}

type Stretch = (&'static str, Vec<StatusKind>, Option<WaitingKind>);

impl Story {
    fn next(&mut self, what: TruthEvent, later: &[TruthFact]) -> Option<Stretch> {
        if self.ended {
            return None;
        }
        let (name, allowed, dialog) = self.after(what, later)?;
        self.allowed.clone_from(&allowed);
        Some((name, allowed, dialog))
    }

    fn after(&mut self, what: TruthEvent, later: &[TruthFact]) -> Option<Stretch> {
        let stretch = |name, allowed: &[StatusKind]| Some((name, allowed.to_vec(), None));
        match what {
            TruthEvent::Ready => stretch("ready", &[Idle]),
            TruthEvent::Sending => {
                (self.denied, self.interrupting) = (false, false);
                let mut allowed = self.allowed.clone();
                if !allowed.contains(&Processing) {
                    allowed.push(Processing);
                }
                Some(("a prompt is sent", allowed, None))
            }
            TruthEvent::Asked => {
                // All permissions are answered: the tool results have arrived.
                (self.to_ask, self.open) = (self.drawn, false);
                stretch("the model works", &[Processing])
            }
            TruthEvent::WantsTool { asks } => {
                self.to_ask += usize::from(asks);
                if asks { stretch("it is about to ask", &[Processing, Waiting]) } else { None }
            }
            TruthEvent::Drawn(kind) => {
                (self.drawn, self.open) = (self.drawn + 1, true);
                Some(("a dialog", vec![Waiting], Some(kind)))
            }
            TruthEvent::Accepting => stretch("the dialog is accepted", &[Waiting, Processing]),
            TruthEvent::Denying => {
                self.denied = true;
                stretch("the dialog is denied", &[Waiting, Processing, Completed, Idle])
            }
            // The model may get the result before the screen is redrawn.
            TruthEvent::Gone if !std::mem::take(&mut self.open) => None,
            TruthEvent::Gone if self.denied => stretch("denied", &[Completed, Idle]),
            TruthEvent::Gone if self.to_ask > self.drawn => stretch("another dialog is due", &[Processing, Waiting]),
            TruthEvent::Gone => stretch("the tool runs", &[Processing]),
            // The turn continues while the user's Stop hook runs.
            TruthEvent::Over if is_hooked(later) => stretch("a Stop hook runs", &[Processing]),
            TruthEvent::Over | TruthEvent::HookEnded { blocks: false } => stretch("the turn is over", &[Completed]),
            TruthEvent::HookEnded { blocks: true } => stretch("a Stop hook keeps the turn going", &[Processing]),
            TruthEvent::Failed if is_retried(later) => stretch("it tries again", &[Processing]),
            TruthEvent::Failed => stretch("the turn has failed", &[Error]),
            TruthEvent::Interrupting => {
                self.interrupting = true;
                stretch("it is interrupted", &[Processing, Completed, Idle])
            }
            TruthEvent::Cut if self.interrupting => stretch("interrupted", &[Completed, Idle]),
            TruthEvent::Cut => None,
            TruthEvent::Leaving => {
                self.leaving = true;
                stretch("it leaves", &[Processing, Completed, Idle, Error])
            }
            TruthEvent::Ended => {
                self.ended = true;
                // An agent that was asked to exit may report success.
                stretch("it is gone", if self.leaving { &[Completed, Error] } else { &[Error] })
            }
        }
    }
}

/// Returns whether the agent repeats the request by itself, before another prompt.
fn is_retried(later: &[TruthFact]) -> bool {
    let next = later.iter().find(|fact| matches!(fact.what, TruthEvent::Asked | TruthEvent::Sending));
    next.is_some_and(|fact| fact.what == TruthEvent::Asked)
}

/// Returns whether a user's Stop hook must still end before the next request or prompt.
fn is_hooked(later: &[TruthFact]) -> bool {
    let next =
        |fact: &&TruthFact| matches!(fact.what, TruthEvent::Asked | TruthEvent::Sending | TruthEvent::HookEnded { .. });
    later.iter().find(next).is_some_and(|fact| matches!(fact.what, TruthEvent::HookEnded { .. }))
}

#[cfg(test)]
mod tests {
    use super::TruthEvent::{
        Accepting, Asked, Cut, Drawn, Ended, Failed, Gone, HookEnded, Over, Ready, Sending, WantsTool,
    };
    use super::*;

    fn told(facts: &[(Millis, TruthEvent)], end: Millis) -> Vec<(Millis, Millis, Vec<StatusKind>)> {
        let facts = facts.iter().map(|(at, what)| TruthFact { at: *at, what: *what }).collect();
        intervals(facts, end).into_iter().map(|i| (i.from, i.to, i.allowed)).collect()
    }

    #[test]
    fn a_turn() {
        let facts = [(0, Ready), (1_000, Sending), (1_300, Asked), (4_000, Over)];
        let expected = [
            (0, 1_000, vec![Idle]),
            (1_000, 1_300, vec![Idle, Processing]),
            (1_300, 4_000, vec![Processing]),
            (4_000, 6_000, vec![Completed]),
        ];
        assert_eq!(told(&facts, 6_000), expected);
    }

    #[test]
    fn a_turn_ends_with_the_stop_hook_that_lets_it_end() {
        let ended = |blocks| HookEnded { blocks };
        let facts = [
            (0, Asked),
            (1_000, Over),
            (3_000, ended(true)),
            (3_100, Asked),
            (4_000, Over),
            (6_000, ended(false)),
            (8_000, Sending),
            (8_100, Asked),
            (9_000, Over),
        ];
        let expected = [
            (0, 6_000, vec![Processing]),
            (6_000, 8_000, vec![Completed]),
            (8_000, 8_100, vec![Completed, Processing]),
            (8_100, 9_000, vec![Processing]),
            (9_000, 9_500, vec![Completed]),
        ];
        assert_eq!(told(&facts, 9_500), expected);
    }

    #[test]
    fn two_dialogs_and_a_gap_before_each() {
        let asks = WantsTool { asks: true };
        let drawn = Drawn(WaitingKind::Permission);
        let facts = [
            (0, Asked),
            (100, asks),
            (110, asks),
            (1_000, drawn),
            (2_000, Accepting),
            (2_100, Gone),
            (2_300, drawn),
            (3_000, Accepting),
            (3_100, Gone),
            (3_400, Asked),
            (4_000, Over),
        ];
        let both = vec![Processing, Waiting];
        let expected = [
            (0, 100, vec![Processing]),
            (100, 1_000, both.clone()),
            (1_000, 2_000, vec![Waiting]),
            (2_000, 2_100, vec![Waiting, Processing]),
            (2_100, 2_300, both),
            (2_300, 3_000, vec![Waiting]),
            (3_000, 3_100, vec![Waiting, Processing]),
            (3_100, 4_000, vec![Processing]),
            (4_000, 5_000, vec![Completed]),
        ];
        assert_eq!(told(&facts, 5_000), expected);
    }

    #[test]
    fn a_dialog_that_is_painted_over_late_is_answered_all_the_same() {
        let drawn = Drawn(WaitingKind::Plan);
        let facts = [(0, drawn), (500, Accepting), (600, Asked), (610, Over), (620, Gone)];
        let expected = [
            (0, 500, vec![Waiting]),
            (500, 600, vec![Waiting, Processing]),
            (600, 610, vec![Processing]),
            (610, 900, vec![Completed]),
        ];
        assert_eq!(told(&facts, 900), expected);
    }

    #[test]
    fn a_failure_that_is_tried_again_is_none() {
        let facts = [(0, Asked), (10, Failed), (500, Asked), (510, Failed)];
        assert_eq!(told(&facts, 900), [(0, 510, vec![Processing]), (510, 900, vec![Error])]);
        // A later prompt of the test is no retry.
        let facts = [(0, Asked), (10, Failed), (500, Sending), (600, Asked)];
        let expected = [
            (0, 10, vec![Processing]),
            (10, 500, vec![Error]),
            (500, 600, vec![Error, Processing]),
            (600, 900, vec![Processing]),
        ];
        assert_eq!(told(&facts, 900), expected);
    }

    #[test]
    fn the_end_of_the_process_is_the_end() {
        let facts = [(0, Asked), (500, Ended), (501, Cut), (600, Over)];
        assert_eq!(told(&facts, 900), [(0, 500, vec![Processing]), (500, 900, vec![Error])]);
    }
}

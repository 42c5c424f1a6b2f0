//! Simulates one day of an agent and the signals that reach posse.

use std::ops::Range;

use super::super::tables::{question, reading};
use super::super::*;
use crate::testing::Dice;

/// The real state of the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Truth {
    Idle,
    Working,
    Streaming,
    Asking,
    Over,
    Failed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Channel {
    Screen,
    Of(Source),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    None,
    Deaf,
    Lossy,
    Late,
    Twice,
}

/// The agents that differ in their reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Agent {
    /// OSC, title and hooks. Announces questions a second ahead. Shows no work while an answer streams in.
    Codex,
    /// Only its title, and no row that closes a turn.
    OldCodex,
    /// OSC, hooks and a session file, no title. The footer usually offers to interrupt during work.
    Claude,
    /// Title, progress, hooks and a session file. Progress stays busy during questions.
    OldClaude,
}

impl Agent {
    pub(super) fn has(self, source: Source) -> bool {
        match self {
            Agent::Codex => matches!(source, Source::Osc | Source::Title | Source::Hook),
            Agent::OldCodex => source == Source::Title,
            Agent::Claude => matches!(source, Source::Osc | Source::SessionFile | Source::Hook),
            Agent::OldClaude => source != Source::Osc,
        }
    }
}

#[derive(Clone, Debug)]
pub(super) enum Heard {
    /// A screen as drawn. The title is added when a look is taken.
    Drawn(Reading),
    /// Another look at the current screen.
    Again,
    Said(Source, Claim),
    /// An action of posse, known at once.
    Did(Event),
}

/// Events with their times.
type Timeline<T> = Vec<(u64, T)>;

pub(super) struct Day {
    agent: Agent,
    dice: Dice,
    /// The real statuses, with their start times.
    truth: Timeline<StatusKind>,
    heard: Timeline<Heard>,
    now: u64,
    state: Truth,
    content: u64,
    last: [u64; Source::ALL.len()],
}

impl Day {
    pub(super) fn new(agent: Agent, seed: u64) -> Self {
        let (truth, heard) = (vec![(0, StatusKind::Processing)], Vec::new());
        let mut day =
            Day { agent, dice: Dice(seed), truth, heard, now: 0, state: Truth::Idle, content: 0, last: [0; 5] };
        day.now = day.dice.within(100..1_500);
        if agent == Agent::Codex {
            for (before, claim) in [(40, Claim::Ready), (30, Claim::Working)] {
                day.heard.push((day.now - before, Heard::Said(Source::Osc, claim)));
            }
        }
        day.enter(Truth::Idle, &Claim::Ready, None);
        while day.now < 40_000 {
            day.go();
        }
        day.heard.push((day.now, Heard::Did(Event::Exited(Exit::Code(1)))));
        day.truth.push((day.now, StatusKind::Error));
        day
    }

    /// Stays in the current state for a while, drawing, and then changes it.
    fn go(&mut self) {
        self.stay();
        match self.state {
            Truth::Idle | Truth::Over | Truth::Failed => {
                if self.dice.percent(50) {
                    self.heard.push((self.now, Heard::Did(Event::Prompted)));
                }
                self.enter(Truth::Working, &Claim::Working, Some(Claim::Working));
            }
            Truth::Working | Truth::Streaming => match self.dice.within(0..10) {
                0..3 => self.enter(Truth::Streaming, &Claim::Working, None),
                3..5 => self.enter(Truth::Working, &Claim::Working, Some(Claim::Working)),
                5..7 => {
                    let kind = Claim::Asking(Some(WaitingKind::Permission));
                    self.enter(Truth::Asking, &kind.clone(), Some(kind));
                }
                7 => self.enter(Truth::Over, &Claim::Ready, None),
                8 if self.dice.percent(50) => {
                    let class = || Claim::Failed("overloaded".into());
                    self.enter(Truth::Failed, &class(), (self.agent != Agent::Codex).then(class));
                }
                _ => self.enter(Truth::Over, &Claim::TurnOver, Some(Claim::TurnOver)),
            },
            Truth::Asking => {
                if self.dice.percent(50) {
                    self.heard.push((self.now, Heard::Did(Event::Answered)));
                }
                if self.dice.percent(70) {
                    self.enter(Truth::Working, &Claim::Working, None);
                } else {
                    self.enter(Truth::Over, &Claim::Ready, None);
                }
            }
        }
    }

    fn say(&mut self, source: Source, lag: Range<u64>, claim: Claim) {
        if self.agent.has(source) {
            // Each source reports in order.
            let when = (self.now + self.dice.within(lag)).max(self.last[source as usize]);
            self.last[source as usize] = when;
            self.heard.push((when, Heard::Said(source, claim)));
        }
    }

    fn enter(&mut self, state: Truth, claim: &Claim, hook: Option<Claim>) {
        let kind = match state {
            Truth::Idle => StatusKind::Idle,
            Truth::Working | Truth::Streaming => StatusKind::Processing,
            Truth::Asking => StatusKind::WaitingUserAnswer,
            Truth::Over => StatusKind::Completed,
            Truth::Failed => StatusKind::Error,
        };
        self.truth.push((self.now, kind));
        let went_on =
            matches!((self.state, state), (Truth::Working | Truth::Streaming, Truth::Working | Truth::Streaming));
        self.state = state;
        if !went_on {
            let works = matches!(state, Truth::Working | Truth::Streaming);
            let codex = matches!(self.agent, Agent::Codex | Agent::OldCodex);
            let title = match state {
                _ if works => Claim::Working,
                Truth::Asking if codex => Claim::Asking(None),
                _ if codex => Claim::Ready,
                _ => Claim::Nothing,
            };
            let file = match state {
                _ if works => Claim::Working,
                Truth::Asking => Claim::Asking(Some(WaitingKind::Permission)),
                _ => Claim::Ready,
            };
            let progress = if works || state == Truth::Asking { Claim::Working } else { Claim::Ready };
            self.say(Source::Osc, 0..132, claim.clone());
            self.say(Source::Title, 0..100, title);
            self.say(Source::Progress, 0..100, progress);
            self.say(Source::SessionFile, 20..250, file);
        }
        if let Some(hook) = hook {
            self.say(Source::Hook, 14..121, hook);
        }
    }

    fn stay(&mut self) {
        let stays = match self.state {
            Truth::Working if self.dice.percent(10) => self.dice.within(20_000..30_000),
            _ => self.dice.within(100..6_000),
        };
        let lag = match (self.state, self.agent) {
            (Truth::Asking, Agent::Codex) => self.dice.within(850..1_000),
            _ => self.dice.within(28..180),
        };
        let until = self.now + stays;
        let closes = self.agent != Agent::OldCodex && (self.agent == Agent::Codex || self.dice.percent(50));
        let id = self.dice.next().to_string();
        let footer = self.agent == Agent::Claude && self.dice.percent(80);
        // Silence: the agent works and draws nothing for a long time.
        let silent = self.dice.percent(10);
        let mut when = self.now + lag;
        while when < until + 180 {
            let drawn = match self.state {
                Truth::Idle => reading("idle", Some(StatusKind::Idle), self.content),
                Truth::Working => reading("spinner", Some(StatusKind::Processing), self.content),
                Truth::Streaming => {
                    self.content += 1;
                    let kind = if footer { StatusKind::Processing } else { StatusKind::Completed };
                    reading("streaming", Some(kind), self.content)
                }
                Truth::Asking => question(&id, WaitingKind::Permission),
                Truth::Over => {
                    Reading { ends_turn: closes, ..reading("over", Some(StatusKind::Completed), self.content) }
                }
                Truth::Failed => reading("api_error", Some(StatusKind::Error), self.content),
            };
            if when < until {
                self.heard.push((when, Heard::Drawn(drawn)));
            }
            when += match self.state {
                Truth::Working if silent => break,
                Truth::Working => self.dice.within(80..250),
                Truth::Streaming => self.dice.within(30..800),
                _ => break,
            };
        }
        self.content += 1;
        self.now = until;
    }

    /// Returns the signals that arrive if this channel has this fault.
    pub(super) fn with(mut self, channel: Channel, fault: Fault) -> (Timeline<StatusKind>, Timeline<Heard>) {
        self.heard.sort_by_key(|(when, _)| *when);
        let dice = &mut self.dice;
        let mut heard = Vec::new();
        let mut last = 0;
        // Lost output is noticed, and the program repaints: the next look sees the current screen.
        let mut repaint: Option<(u64, Heard)> = None;
        for (when, what) in self.heard {
            if let Some(lost) = repaint.take_if(|(due, _)| *due <= when) {
                heard.push(lost);
            }
            let of = match &what {
                Heard::Drawn(_) => Some(Channel::Screen),
                Heard::Said(source, _) => Some(Channel::Of(*source)),
                Heard::Did(_) | Heard::Again => None,
            };
            if of != Some(channel) {
                heard.push((when, what));
                continue;
            }
            match fault {
                Fault::None => heard.push((when, what)),
                Fault::Deaf => {}
                Fault::Lossy if !dice.percent(30) => {
                    repaint = None;
                    heard.push((when, what));
                }
                Fault::Lossy if channel == Channel::Screen => {
                    let due = repaint.map_or(when + 400, |(due, _)| due);
                    repaint = Some((due, what));
                }
                Fault::Lossy => {}
                Fault::Late => {
                    last = last.max(when + dice.within(0..1_500));
                    heard.push((last, what));
                }
                Fault::Twice => {
                    // A screen and a title are states; only looks at them can repeat.
                    let again = if channel == Channel::Screen { Heard::Again } else { what.clone() };
                    let later = if channel == Channel::Of(Source::Title) { 0 } else { dice.within(0..300) };
                    heard.push((when, what));
                    heard.push((when + later, again));
                }
            }
        }
        heard.sort_by_key(|(when, _)| *when);
        (self.truth, heard)
    }
}

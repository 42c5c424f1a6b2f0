//! An agent that goes through its days, and everything that can go wrong with what we hear of it. Whatever happens to
//! one source, no wrong status may stand for long.

mod day;

use std::collections::VecDeque;

use day::{Agent, Channel, Day, Fault, Heard};

use super::tables::title_busy;
use super::*;
use crate::testing::at;

/// The longest that a status may be wrong, in milliseconds.
const LIMIT: u64 = 2_000;
/// How many days of each agent are played with each fault of each source.
const DAYS: u64 = 60;

/// A look at what is drawn, with the title as it is known: it turns while the agent works.
fn look(reading: &Reading, busy: bool) -> Event {
    if busy && reading.status != Some(StatusKind::WaitingUserAnswer) && reading.status != Some(StatusKind::Processing) {
        return Event::Read(title_busy(reading.content));
    }
    Event::Read(reading.clone())
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Outcome {
    /// The longest time for which one status stood and was wrong.
    wrong: u64,
    /// How often a turn was called over in the middle of it.
    false_ends: u64,
}

fn is_ready(kind: StatusKind) -> bool {
    matches!(kind, StatusKind::Idle | StatusKind::Completed)
}

fn is_turn(kind: StatusKind) -> bool {
    matches!(kind, StatusKind::Processing | StatusKind::WaitingUserAnswer)
}

/// Plays one day. What happens is logged, where someone wants to know.
fn play(
    agent: Agent,
    seed: u64,
    channel: Channel,
    fault: Fault,
    log: &mut impl FnMut(u64, &Event, &Status),
) -> Outcome {
    let (truth, heard) = Day::new(agent, seed).with(channel, fault);
    let (mut truth, mut heard) = (VecDeque::from(truth), VecDeque::from(heard));
    let mut life = Life::starting(Wall(0));
    let (mut real, mut drawn, mut busy) = (StatusKind::Processing, None, false);
    let (mut outcome, mut wrong, mut rested) = (Outcome::default(), None::<u64>, 0);
    loop {
        let deadline = life.deadline().map(|deadline| deadline.0.as_millis() as u64);
        let times = [truth.front().map(|(when, _)| *when), heard.front().map(|(when, _)| *when), deadline];
        let Some(now) = times.into_iter().flatten().min() else { return outcome };
        outcome.wrong = outcome.wrong.max(wrong.map_or(0, |since| now - since));
        let mut events = Vec::new();
        if let Some((_, next)) = truth.pop_front_if(|(when, _)| *when == now) {
            real = next;
        } else if let Some((_, what)) = heard.pop_front_if(|(when, _)| *when == now) {
            match what {
                Heard::Did(event) => events.push(event),
                Heard::Again => {}
                Heard::Drawn(screen) => drawn = Some(screen),
                Heard::Said(source, claim) => {
                    busy = if source == Source::Title { claim == Claim::Working } else { busy };
                    events.push(Event::Said(source, claim));
                }
            }
            // A look is taken at whatever there is.
            events.extend(drawn.as_ref().map(|drawn| look(drawn, busy)));
        } else {
            events.push(Event::Time);
        }
        let before = life.status().kind;
        for event in events {
            life.handle(&event, at(now), Wall(0));
            log(now, &event, life.status());
            assert!(life.deadline().is_none_or(|deadline| deadline > at(now)), "nothing is due twice");
        }
        let kind = life.status().kind;
        if !is_turn(real) {
            rested = now;
        }
        // What was over a moment ago may still be told.
        let rested_lately = now <= rested + 400;
        outcome.false_ends += u64::from(is_turn(real) && is_turn(before) && is_ready(kind) && !rested_lately);
        wrong = if kind == real { None } else { wrong.filter(|_| kind == before).or(Some(now)) };
    }
}

/// Every fault of every source of every agent.
#[test]
fn no_single_source_leaves_a_wrong_status_standing() {
    let channels = || [Channel::Screen].into_iter().chain(Source::ALL.map(Channel::Of));
    for agent in [Agent::Codex, Agent::OldCodex, Agent::Claude, Agent::OldClaude] {
        for channel in channels().filter(|channel| !matches!(channel, Channel::Of(source) if !agent.has(*source))) {
            for fault in [Fault::None, Fault::Deaf, Fault::Lossy, Fault::Late, Fault::Twice] {
                // Who has nothing but a screen and a title is lost without either.
                if agent != Agent::OldCodex || matches!(fault, Fault::None | Fault::Twice) {
                    check(agent, channel, fault);
                }
            }
        }
    }
}

fn check(agent: Agent, channel: Channel, fault: Fault) {
    let limit = match (channel, fault) {
        // A title that turns late and stops late leaves a quiet screen, which has to settle once more.
        (Channel::Of(Source::Title), Fault::Late) => LIMIT + 1_000,
        _ => LIMIT,
    };
    // While nothing comes late, only a screen that nobody sees lets a turn end too early.
    let punctual = fault == Fault::None || (fault == Fault::Deaf && channel != Channel::Screen);
    for seed in 0..DAYS {
        let outcome = play(agent, seed, channel, fault, &mut |_, _, _| ());
        if outcome.wrong > limit || (punctual && outcome.false_ends > 0) {
            play(agent, seed, channel, fault, &mut |now, event, status| {
                println!("{now:6} {} for {}, after {event:?}", status.kind, status.reason);
            });
            panic!("{agent:?}, {channel:?} {fault:?}, seed {seed}: {outcome:?}");
        }
    }
}

//! Simulates days of an agent with every fault of every source. No single fault may leave a wrong status for long.

mod day;

use std::collections::VecDeque;

use day::{Agent, Channel, Day, Fault, Heard};

use super::tables::title_busy;
use super::*;
use crate::testing::at;

/// The maximum time for which a status may be wrong, in milliseconds.
const LIMIT: u64 = 2_000;
/// The number of simulated days for each agent, source and fault.
const DAYS: u64 = 60;

/// Returns a look at the screen, with the current title: it turns while the agent works.
fn look(reading: &Reading, busy: bool) -> Event {
    if busy && reading.status != Some(StatusKind::WaitingUserAnswer) && reading.status != Some(StatusKind::Processing) {
        return Event::Read(title_busy(reading.content));
    }
    Event::Read(reading.clone())
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Outcome {
    wrong: u64,
    /// The number of turns that were reported as over while they continued.
    false_ends: u64,
}

fn is_ready(kind: StatusKind) -> bool {
    matches!(kind, StatusKind::Idle | StatusKind::Completed)
}

fn is_turn(kind: StatusKind) -> bool {
    matches!(kind, StatusKind::Processing | StatusKind::WaitingUserAnswer)
}

/// Plays one day and passes its events to `log`.
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
            // A look is always possible.
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
        // A recent end may still be reported.
        let rested_lately = now <= rested + 400;
        outcome.false_ends += u64::from(is_turn(real) && is_turn(before) && is_ready(kind) && !rested_lately);
        wrong = if kind == real { None } else { wrong.filter(|_| kind == before).or(Some(now)) };
    }
}

/// Simulates every fault of every source of every agent.
#[test]
fn no_single_faulty_source_leaves_a_wrong_status() {
    let channels = || [Channel::Screen].into_iter().chain(Source::ALL.map(Channel::Of));
    for agent in [Agent::Codex, Agent::OldCodex, Agent::Claude, Agent::OldClaude] {
        for channel in channels().filter(|channel| !matches!(channel, Channel::Of(source) if !agent.has(*source))) {
            for fault in [Fault::None, Fault::Deaf, Fault::Lossy, Fault::Late, Fault::Twice] {
                // An agent with only a screen and a title needs both.
                if agent != Agent::OldCodex || matches!(fault, Fault::None | Fault::Twice) {
                    check(agent, channel, fault);
                }
            }
        }
    }
}

fn check(agent: Agent, channel: Channel, fault: Fault) {
    let limit = match (channel, fault) {
        // A title that turns late and stops late leaves a quiet screen, which must settle again.
        (Channel::Of(Source::Title), Fault::Late) => LIMIT + 1_000,
        _ => LIMIT,
    };
    // If nothing is late, a turn ends too early only if the screen is missing.
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

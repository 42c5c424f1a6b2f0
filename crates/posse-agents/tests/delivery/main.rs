//! A hundred thousand and more deliveries in simulated time, each around dialogs that open at the worst moment. Nothing may
//! be accepted that was not asked for, no message may be lost or sent twice, and what is reported must be true.
#![allow(clippy::unwrap_used, clippy::too_many_lines)]

mod program;
mod rows;
mod world;

use std::time::Duration;

use posse_agents::Provider;
use posse_core::audit::By;
use posse_core::delivery::{Answer, Decision, DialogKeys, Left, Order, Prompt, Showing, Submit, Wish, clean};
use posse_core::detect::Dialog;
use posse_core::time::Mono;

use program::{Fact, Plan};
use rows::{Eye, Kind};
use world::{Dice, HUMAN, Machine, Over, Weather, World};

const TRIALS: u64 = 40_000;

fn provider(kind: Kind) -> Provider {
    match kind {
        Kind::Codex => Provider::parse(include_str!("codex.toml")).unwrap(),
        _ => posse_agents::manifest::built_in("claude_code").unwrap().unwrap(),
    }
}

fn text(dice: &mut Dice) -> String {
    match dice.below(9) {
        0 => "y".into(),
        1 => "1. do this\n2. do that".into(),
        2 => "Please read docs/architecture.md,\nthen tell me what it says.\n\nBe short.".into(),
        3 => "line of a long paste\n".repeat(60),
        4 => "evil \x1b[201~\r1\r text".into(),
        5 => "❯ 1. Yes\n  2. No\n\nDo you want to proceed?".into(),
        6 => "This one ends in a dot.".into(),
        _ => "continue".into(),
    }
}

/// Questions in a row; now and then the same one twice.
fn asks(dice: &mut Dice, kind: Kind, twins: bool) -> Vec<usize> {
    let count = kind.asks().len() as u64;
    let first = dice.below(count) as usize;
    let mut asks = vec![first];
    while dice.chance(40) && asks.len() < 4 {
        let next = if twins && dice.chance(30) { asks[asks.len() - 1] } else { dice.below(count) as usize };
        asks.push(next);
    }
    if !twins {
        asks.dedup();
    }
    asks
}

fn trial(kind: Kind, seed: u64, trace: bool, how: &(Submit, DialogKeys), eye: &mut Eye) -> Result<(), String> {
    let mut dice = Dice::new(seed);
    let calm = dice.chance(20);
    let starved = dice.chance(20);
    // A stall of more than a second hides from us that a question was answered, and the same words may be asked again.
    let long_stall = !calm && kind != Kind::Codex && dice.chance(10);
    let longest_stall = if long_stall { 3000 } else { 500 };
    let weather = Weather {
        transit: if starved { 100 } else { 12 },
        travel: if starved { 60 } else { 25 },
        frame: if dice.chance(20) { 250 } else { 30 },
        lost: if dice.chance(50) { 30 } else { 0 },
        cut: if dice.chance(50) { 50 } else { 0 },
        hiccup: if !calm && dice.chance(20) { 50 } else { 0 },
        longest_stall,
        claims: dice.chance(60),
    };
    let spontaneous = !calm && kind != Kind::Claude197 && dice.chance(60);
    let human = spontaneous && dice.chance(50);
    let lossy = if !calm && dice.chance(20) { 30 } else { 0 };
    let turn_asks = dice.chance(60).then(|| asks(&mut dice, kind, !long_stall));
    let longest = if dice.chance(50) { 100 } else { 1500 };
    let think = dice.between(20, longest);

    let mut world = World::new(kind, eye, dice, weather, 1000);
    world.trace = trace;
    world.program.lossy = lossy;
    world.program.turn = match turn_asks {
        Some(asks) => vec![(think, Plan::Ask(asks)), (think + 3000, Plan::EndTurn)],
        None => vec![(think, Plan::EndTurn)],
    };
    if world.dice.chance(30) {
        let draft = ["old", "two\nlines", "[Pasted text #1 +60 lines]", "continue"][world.dice.below(4) as usize];
        world.program.leave_draft(draft);
    }
    if !calm && world.dice.chance(30) {
        let asks = asks(&mut world.dice, kind, !long_stall);
        world.program.open(asks, 1000);
    } else if !calm && world.dice.chance(15) {
        world.program.busy = true;
        let (asks, after) = (asks(&mut world.dice, kind, !long_stall), world.dice.between(0, 1500));
        world.plan(after, Plan::Ask(asks));
        world.plan(4000, Plan::EndTurn);
    }
    if spontaneous {
        for _ in 0..world.dice.between(1, 3) {
            let (asks, after) = (asks(&mut world.dice, kind, !long_stall), world.dice.between(0, 3000));
            world.plan(after, Plan::Ask(asks));
        }
    }
    if human {
        for _ in 0..4 {
            let after = world.dice.between(0, 4000);
            world.human(after);
        }
    }
    if !calm && world.dice.chance(30) {
        let after = world.dice.between(0, 1500);
        let length = world.dice.between(50, longest_stall);
        world.stall(after, length);
    }
    world.drawn();
    let until = 1001 + world.dice.below(400);
    world.run(Some(until))?;
    for order in 0..world.dice.between(1, 3) as usize {
        let before = world.program.facts.len();
        let (read, _, _, dialog) = world.look();
        let question = posse_core::delivery::question(&read.0);
        let now = Mono(Duration::from_millis(world.now));
        match (question, dialog) {
            (Some(question), Some(dialog)) if world.dice.chance(85) => {
                let options = read.0.dialog.as_ref().map_or(1, |dialog| dialog.options.len() as u64);
                let wish = match world.dice.below(20) {
                    0..12 => Wish::Accept,
                    12..15 => Wish::Deny,
                    _ => Wish::Option(world.dice.below(options) as usize),
                };
                let by = if world.dice.chance(50) { By::Person } else { By::Run };
                let wanted = match wish {
                    Wish::Accept => read.0.dialog.as_ref().and_then(Dialog::accepting),
                    Wish::Option(at) => Some(at),
                    Wish::Deny => None,
                };
                if world.dice.chance(30) {
                    // Who decides takes a moment, and the world goes on.
                    let until = world.now + world.dice.below(600);
                    world.run(Some(until))?;
                }
                let now = Mono(Duration::from_millis(world.now));
                let mut decision = Decision::new(question, wish, by);
                Showing::complete(world.asked.as_ref(), &mut decision);
                world.start(order, Machine::Answer(Answer::new(decision.clone(), how.1.clone(), now)));
                let Some(Over::Answer(outcome)) = world.run(None)? else { return Err("no outcome".into()) };
                let presses = outcome.as_ref().map_or_else(|failed| failed.presses, |done| done.presses);
                Showing::answered(&mut world.asked, &decision, presses);
                world.drain()?;
                check_answer(&world, order, before, dialog, wish, wanted, &outcome)?;
            }
            _ => {
                let text = text(&mut world.dice);
                let wanted = clean(&text);
                let prompt = Prompt::new(Order { text, ..Order::default() }, how.0.clone(), true, now);
                world.start(order, Machine::Prompt(prompt));
                let Some(Over::Prompt(outcome)) = world.run(None)? else { return Err("no outcome".into()) };
                world.drain()?;
                // Where the input field has no frame, such a draft looks like a menu. It fails, and that is all.
                let like_a_menu = kind == Kind::Codex && wanted.starts_with("1. ");
                if calm && order == 0 && outcome.is_err() && !like_a_menu {
                    return Err(format!("failed for no reason: {outcome:?}"));
                }
                check_prompt(&world, order, before, &wanted, &outcome)?;
            }
        }
        let until = world.now + world.dice.below(1500);
        world.run(Some(until))?;
    }
    Ok(())
}

fn check_prompt(
    world: &World<'_>,
    order: usize,
    before: usize,
    wanted: &str,
    outcome: &world::Outcome,
) -> Result<(), String> {
    let mut submitted = Vec::new();
    for fact in &world.program.facts[before..] {
        match fact {
            Fact::Chosen { order: by, .. } if *by != HUMAN => return Err(format!("a prompt answered: {fact:?}")),
            Fact::Chosen { .. } => {}
            Fact::Submitted { order: by, text } if *by == order => submitted.push(text),
            Fact::Submitted { .. } => return Err(format!("submitted by another order: {fact:?}")),
        }
    }
    if submitted.iter().any(|text| text.trim_end() != wanted.trim_end()) {
        return Err(format!("submitted {submitted:?} instead of {wanted:?}"));
    }
    match (outcome, submitted.len()) {
        (Ok(_), 1) | (Err(_), 0) => Ok(()),
        (Err(failed), 1) if failed.left == Left::Unknown => Ok(()),
        (outcome, times) => Err(format!("{outcome:?}, but submitted {times} times")),
    }
}

fn check_answer(
    world: &World<'_>,
    order: usize,
    before: usize,
    dialog: usize,
    wish: Wish,
    wanted: Option<usize>,
    outcome: &world::AnswerOutcome,
) -> Result<(), String> {
    let mut chosen = 0;
    let by_human = |fact: &Fact| matches!(fact, Fact::Chosen { order: HUMAN, dialog: which, .. } if *which == dialog);
    let beaten = world.program.facts.iter().any(by_human);
    for fact in &world.program.facts[before..] {
        match fact {
            // Somebody else answered while our Enter was on its way, and an old draft was below the dialog.
            Fact::Submitted { .. } if beaten => {}
            Fact::Submitted { .. } => return Err(format!("an answer submitted: {fact:?}")),
            Fact::Chosen { order: by, .. } if *by == HUMAN => {}
            Fact::Chosen { dialog: which, option, .. } => {
                chosen += 1;
                let right = match wish {
                    Wish::Deny => option.is_none() || wanted.is_none(),
                    _ => *option == wanted,
                };
                // The first was answered, by somebody else or before a stall of seconds, and the same words stand there
                // again: nobody can tell.
                let asked = |number: usize| world.program.asked[number - 1];
                let twin = asked(*which) == asked(dialog) && (beaten || world.longest_stall() > 1000);
                if (*which != dialog && !twin) || !right {
                    return Err(format!("decided {wish:?} ({wanted:?}) on {dialog}, but {fact:?} by {order}"));
                }
            }
        }
    }
    match outcome {
        Err(failed) if failed.presses == 0 && chosen > 0 => Err(format!("{failed:?}, but it was answered")),
        Ok(_) if world.program.open_dialog().is_some_and(|(number, _)| number == dialog) => {
            Err(format!("{outcome:?}, but the dialog is open"))
        }
        _ if chosen > 1 && world.longest_stall() <= 1000 => Err("answered twice".into()),
        _ => Ok(()),
    }
}

fn simulate(kind: Kind) {
    let provider = provider(kind);
    let how = (provider.manifest.submit.clone(), provider.manifest.answer.clone());
    let mut eye = Eye::new(kind, provider);
    let trials = std::env::var("TRIALS").map_or(TRIALS, |trials| trials.parse().unwrap());
    for seed in 0..trials {
        if let Err(error) = trial(kind, seed, false, &how, &mut eye) {
            let _ = trial(kind, seed, true, &how, &mut eye);
            panic!("{kind:?}, trial {seed}: {error}");
        }
    }
}

#[test]
fn claude_code_2_1_197() {
    simulate(Kind::Claude197);
}

#[test]
fn claude_code_2_1_325() {
    simulate(Kind::Claude325);
}

#[test]
fn codex_0_166() {
    simulate(Kind::Codex);
}

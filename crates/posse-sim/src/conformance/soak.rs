//! Long conversations: many turns of different kinds in one terminal.

use std::num::NonZeroU32;
use std::time::Duration;

use super::{ConformanceCase, DialogTopic, UserAction, UserPrompt};
use crate::scenario::{CommandUse, ScriptStep, ScriptTurn, Spoken, Thought};

/// The number of turns in one terminal. Each terminal has another size.
const TURNS: usize = 50;
const SIZES: [(u16, u16); 3] = [(120, 40), (80, 24), (160, 48)];
/// Text that quotes what agents draw while they work, ask and wait, but none of the markers of dialogs.
const QUOTES: &str = "It draws `esc to interrupt` and • Exploring while it works.\n\n❯ 1. Yes\n  2. No, and tell it what to do\n\n\
                      Would you like to run it outside of the sandbox? Allow it to run.\n";

/// Returns cases with at least this many turns altogether.
pub fn soak(turns: usize) -> Vec<ConformanceCase> {
    let case = |terminal: usize| conversation(format!("soak_{}", terminal + 1), SIZES[terminal % SIZES.len()]);
    (0..turns.div_ceil(TURNS)).map(case).collect()
}

fn conversation(name: String, size: (u16, u16)) -> ConformanceCase {
    let dwell = |ms| UserAction::Dwell(Duration::from_millis(ms));
    let pause = |ms| ScriptStep::Pause(Duration::from_millis(ms));
    let mut turns: Vec<ScriptTurn> = Vec::new();
    let mut actions = Vec::new();
    for n in 0..TURNS {
        actions.push(UserAction::Prompt(UserPrompt { text: format!("task {n}"), times: 1 }));
        let answer = ScriptStep::say(&format!("Answer {n}."));
        let steps = match n % 5 {
            0 => vec![answer],
            1 => {
                let thought = Thought { text: "Let me see.".to_owned(), ..Thought::default() };
                vec![ScriptStep::Think(thought), pause(500), answer]
            }
            2 => vec![
                ScriptStep::Say(Spoken { text: QUOTES.to_owned(), rate: NonZeroU32::new(1200) }),
                pause(900),
                answer,
            ],
            3 => {
                let command = format!("echo {n} > {n}.txt");
                turns.push(ScriptTurn::of([ScriptStep::Run(CommandUse {
                    command,
                    escalated: true,
                    ..CommandUse::default()
                })]));
                actions.extend([UserAction::Dialog(DialogTopic::Command), dwell(400), UserAction::Approve]);
                vec![pause(400), answer]
            }
            _ => {
                let time = Duration::from_millis(1200);
                vec![ScriptStep::Think(Thought { time, ..Thought::default() }), answer]
            }
        };
        actions.extend([UserAction::TurnOver(turns.len()), dwell(600)]);
        turns.push(ScriptTurn::of(steps));
    }
    ConformanceCase {
        name,
        smoke: false,
        sizes: false,
        size,
        retries: None,
        free_tools: 0,
        arguments: Vec::new(),
        tool_server: false,
        stop_hook: None,
        actions,
        turns,
    }
}

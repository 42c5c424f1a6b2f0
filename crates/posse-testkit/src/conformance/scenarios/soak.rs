//! Long conversations: many turns of different kinds in one terminal, as a night of work has them.

use super::{Act, Scenario, prompt, scenario, turn};
use crate::conformance::subject::{Ask, Maker};

/// Turns in one terminal. A new terminal has the next size.
const TURNS: usize = 50;
const SIZES: [(u16, u16); 3] = [(120, 40), (80, 24), (160, 48)];
/// Text that quotes what agents draw while they work, ask and wait; but not the texts by which the witness knows dialogs.
const QUOTES: &str = "It draws `esc to interrupt` and • Exploring while it works.\\n\\n❯ 1. Yes\\n  2. No, and tell it what to do\\n\\n\
                      Would you like to run it outside of the sandbox? Allow it to run.\\n";

/// Returns scenarios with at least this many turns altogether, for `--soak`.
pub fn soak(maker: Maker, turns: usize) -> Vec<Scenario> {
    let asks = Ask::Command.marker(maker).is_some();
    (0..turns.div_ceil(TURNS))
        .map(|terminal| Scenario {
            size: SIZES[terminal % SIZES.len()],
            ..conversation(&format!("soak_{}", terminal + 1), asks)
        })
        .collect()
}

fn conversation(name: &str, asks: bool) -> Scenario {
    let mut script = String::new();
    let mut acts = Vec::new();
    let mut answers = 0;
    for n in 0..TURNS {
        acts.push(prompt(&format!("task {n}")));
        let steps = match n % 5 {
            0 => format!(r#"{{ say = "Answer {n}." }}"#),
            1 => {
                format!(r#"{{ think = {{ text = "Let me see." }} }}, {{ pause = "500ms" }}, {{ say = "Answer {n}." }}"#)
            }
            2 => format!(
                r#"{{ say = {{ text = "{QUOTES}", rate = 1200 }} }}, {{ pause = "900ms" }}, {{ say = "{n}." }}"#
            ),
            3 if asks => {
                script += &turn(&format!(r#"{{ run = {{ command = "echo {n} > {n}.txt", escalated = true }} }}"#));
                answers += 1;
                acts.extend([Act::Dialog(Ask::Command), Act::Dwell(400), Act::Approve(None)]);
                format!(r#"{{ pause = "400ms" }}, {{ say = "It ran {n}." }}"#)
            }
            _ => format!(r#"{{ think = "1200ms" }}, {{ say = "Answer {n}." }}"#),
        };
        script += &turn(&steps);
        acts.extend([Act::TurnOver(answers), Act::Dwell(600)]);
        answers += 1;
    }
    scenario(name, script, acts)
}

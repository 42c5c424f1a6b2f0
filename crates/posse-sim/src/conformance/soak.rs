//! Long conversations: many turns of different kinds in one terminal.

use super::{ConformanceCase, UserAction, read};

/// The number of rounds in one terminal, and of the turns in each. Each terminal has another size.
const ROUNDS: usize = 10;
const TURNS: usize = 5;
const SIZES: [(u16, u16); 3] = [(120, 40), (80, 24), (160, 48)];

/// Returns cases with at least this many turns altogether.
pub fn soak(turns: usize) -> Vec<ConformanceCase> {
    (0..turns.div_ceil(ROUNDS * TURNS)).map(conversation).collect()
}

fn conversation(terminal: usize) -> ConformanceCase {
    let round =
        |n: usize| read(&include_str!("../../conformance/soak.toml").replace("{n}", &n.to_string())).scenario.remove(0);
    let mut all = round(0);
    for n in 1..ROUNDS {
        let (first, next) = (all.turns.len(), round(n));
        all.turns.extend(next.turns);
        all.actions.extend(next.actions.into_iter().map(|action| match action {
            UserAction::TurnOver(turn) => UserAction::TurnOver(first + turn),
            other => other,
        }));
    }
    ConformanceCase { name: format!("soak_{}", terminal + 1), size: SIZES[terminal % SIZES.len()], ..all }
}

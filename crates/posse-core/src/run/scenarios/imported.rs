//! A run known only by its state file, in which the analyst had its prompt.

use super::*;
use crate::review_loop::{Rounds, Rules};

fn imported() -> Bench {
    let mut spec = spec_of("{}");
    let rules = Rules::new(&spec.config, false, Default::default());
    let rounds = Rounds::begin(rules, spec.prompt.clone(), Role::Analyst);
    let terminals = Role::ALL.into_iter().zip((0..5).map(terminal)).collect();
    spec.imported = Some(Imported { rounds, terminals, in_flight: Some((Key::Analyst, terminal(0))) });
    Bench::of(spec)
}

/// LOOP-53: a working agent is awaited, not prompted again.
#[test]
fn s_199_an_agent_that_is_still_busy_is_waited_for() {
    // Nothing is typed, and no file is archived.
    imported().play("go -> resumed, watch\nbusy ->\ncompleted -> look at file\nfile done -> answered, archive");
}

/// Its terminal may be another program's, or gone.
#[test]
fn s_200_an_answer_that_is_there_is_used() {
    imported().play("go none -> ..., look at file\nfile done\\n -> said, answered, archive\nwas done");
}

#[test]
fn without_agent_and_answer_another_one_is_asked() {
    imported().play("go none\nnothing -> ..., start analyst analyst-feed, ...");
}

//! A run that is known by its state file only, in which the analyst had its prompt.

use super::*;
use crate::review_loop::{Rounds, Rules};

fn imported() -> Bench {
    let mut spec = spec_of("{}");
    let rules = Rules::new(&spec.config, false, Default::default());
    let rounds = Rounds::begin(rules, spec.prompt.clone(), Role::Analyst);
    let terminals = Role::ALL.into_iter().zip(all()).collect();
    spec.imported = Some(Imported { rounds, terminals, in_flight: Some((Key::Analyst, terminal(0))) });
    Bench::of(spec)
}

/// LOOP-53: who is at it is waited for, not asked again.
#[test]
fn s_199_an_agent_that_is_still_busy_is_waited_for() {
    let mut bench = imported();
    assert_eq!(bench.go(&all()), ["resumed", "watch"], "nothing is typed, and no file put away");
    assert!(bench.status(Processing).is_empty());
    assert_eq!(bench.status(Completed), ["look at file"]);
    assert_eq!(bench.turn(Event::File(Look::Ready("done".into()))), ["answered", "archive"]);
}

/// Its terminal may be another program's, or gone.
#[test]
fn s_200_an_answer_that_is_there_is_used() {
    let mut bench = imported();
    assert_eq!(bench.go(&[]).last().map(String::as_str), Some("look at file"));
    assert_eq!(bench.turn(Event::File(Look::Ready("done\n".into()))), ["said", "answered", "archive"]);
    assert!(matches!(bench.told.last(), Some(Entry::Answered { text, .. }) if text == "done"), "as any other");
}

#[test]
fn without_agent_and_answer_another_one_is_asked() {
    let mut bench = imported();
    bench.go(&[]);
    let next = bench.turn(Event::File(Look::Absent));
    assert!(next.contains(&"start analyst analyst-feed".into()), "{next:?}");
}

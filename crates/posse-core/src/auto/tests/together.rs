//! Several items at once.

use super::*;
use crate::plan::budget::Level;

fn two_of(items: &[&str]) -> Bench {
    let backlog = items.iter().map(|item| candidate(item, Kind::Feature)).collect();
    Bench::new(parallel(2, Mode::Drain), backlog)
}

impl Bench {
    fn under_way(&self) -> Vec<String> {
        self.pipeline.jobs().values().map(|job| format!("{} {}", job.item, job.step.word())).collect()
    }
}

#[test]
fn each_goes_its_own_way_and_no_more_than_were_asked_for() {
    let mut bench = two_of(&["1-a", "2-b", "3-c"]);
    assert_eq!(bench.under_way(), ["1-a intake", "2-b intake"]);
    bench.turn_to("2-b").planned();
    assert_eq!(bench.under_way(), ["1-a intake", "2-b executing"]);
    bench.why("3-c", Standing::Waiting, "it is next");
    bench.done();
    assert_eq!(bench.under_way(), ["1-a intake", "3-c intake"], "there is room again");
    bench.turn_to("3-c").planned().done().turn_to("1-a");
    assert_eq!(bench.pipeline.outcome(), None, "one is still worked on");
    bench.planned().done().ended(RunOutcome::Verified, "3 done");
}

#[test]
fn a_look_from_before_an_item_went_brings_it_back_for_nobody() {
    let mut bench = two_of(&["1-a", "2-b"]);
    let before = bench.backlog.clone();
    bench.turn_to("1-a").planned().carried_out().gathered(good());
    // A user removes the item before the result of the scan arrives.
    let (id, _) = bench.step();
    bench.pipeline.handle(
        Event::Answered { id, answer: StepAnswer::Retired { place: "there".into(), message: String::new() } },
        Wall(bench.clock),
    );
    assert!(bench.pipeline.outstanding().contains(&Effect::Scan));
    bench.turn_to("2-b");
    let (id, _) = bench.step();
    let effects =
        bench.pipeline.handle(Event::Answered { id, answer: StepAnswer::Intake(Intake::Gone) }, Wall(bench.clock));
    assert!(!effects.contains(&Effect::Scan), "the look that was asked for is still awaited: {effects:?}");
    let late = bench.pipeline.difference(before, None);
    let effects = bench.pipeline.handle(late, Wall(bench.clock));
    assert_eq!(effects, [Effect::Scan], "something has gone since: nothing is begun before it was looked at again");
}

#[test]
fn a_limit_holds_all_and_a_stop_stops_all() {
    let mut bench = two_of(&["1-a", "2-b"]);
    let hold = Hold { until: Wall(9 * MINUTE), reason: "limit".into(), known: true };
    bench.turn_to("2-b").begun().planner(Outcome::Limited(hold)).turn_to("1-a").begun();
    bench.why("1-a", Standing::InProgress, "planning waits for the quota");
    bench.clock = 9 * MINUTE;
    bench.tell(Event::Time);
    assert_eq!(bench.under_way(), ["1-a planning", "2-b planning"]);
    bench.plans().tell(Event::Stop(StopHow::Now));
    let asked = |effect: &Effect| match effect {
        Effect::StopPlan { id, .. } => format!("stop {}", id.item),
        Effect::EndSession { id } => format!("end {}", id.item),
        other => panic!("{other:?}"),
    };
    assert_eq!(bench.effects.iter().map(asked).collect::<Vec<_>>(), ["stop 1-a", "end 2-b"]);
    bench.executed(RunOutcome::Stopped);
    assert_eq!(bench.pipeline.outcome(), None);
    bench.turn_to("2-b").planner(Outcome::Interrupted).ended(RunOutcome::Stopped, "on request");
}

#[test]
fn it_ends_when_all_have_come_to_their_end() {
    // Money.
    let level = Level { name: "day".into(), limit_usd: Some(1.0), ..Level::default() };
    let mut bench = two_of(&["1-a", "2-b"]);
    bench = Bench::new(Settings { levels: vec![level], ..bench.pipeline.settings().clone() }, bench.backlog);
    for item in ["1-a", "2-b"] {
        bench.turn_to(item).begun();
    }
    bench.turn_to("1-a").plans();
    assert_eq!(bench.under_way(), ["1-a executing", "2-b planning"]);
    bench.turn_to("2-b").plans();
    assert_eq!(bench.under_way(), ["1-a executing"]);
    let stops = |effect: &Effect| matches!(effect, Effect::StopPlan { how: StopHow::AfterTask, .. });
    assert!(bench.effects.iter().any(stops), "{:?}", bench.effects);
    bench.turn_to("1-a").executed(RunOutcome::Stopped);
    bench.ended(RunOutcome::BudgetExhausted, "day: 1.00 USD of 1.00 USD");
    let begun = |memory: &crate::auto::Memory| memory.planned.is_some() && memory.attempts == 0;
    assert!(bench.pipeline.carried().items.values().all(begun), "both go on from here");
}

#[test]
fn when_nothing_works_nothing_more_is_begun_for_those_that_are_under_way() {
    let mut bench = two_of(&["1-a", "2-b", "3-c", "4-d", "5-e"]);
    bench.turn_to("2-b").intake();
    for item in ["1-a", "3-c", "4-d"] {
        bench.turn_to(item).begun().at_once(failed("boom"));
    }
    assert_eq!(bench.under_way(), ["2-b checking the plan"]);
    bench.turn_to("2-b").checked(PlanFound::Missing);
    bench.ended(RunOutcome::CircuitOpen, "3 items in a row failed at once or for nothing: 1-a, 3-c, 4-d");
    assert!(bench.pipeline.carried().items.values().all(|memory| memory.attempts == 0));
    assert!(bench.history("2-b").last().unwrap().starts_with("stays as it is before planning: 3 items"));
}

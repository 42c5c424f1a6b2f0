//! The limits on an item: failures, restarts, the quota, money.

use super::*;
use crate::plan::budget::Level;

#[test]
fn t98_when_nothing_works_it_stops_and_nothing_is_lost() {
    let backlog: Vec<Candidate> = (0..50).map(|n| candidate(&format!("{n}-x"), Kind::Feature)).collect();
    let mut bench = Bench::new(drain(), backlog);
    for _ in 0..3 {
        bench.begun();
        // Three tries each: an empty answer does not count as an answer.
        for _ in 0..3 {
            bench.at_once(infra("ended without a word")).wait();
        }
    }
    bench.ended(RunOutcome::CircuitOpen, "3 items in a row failed at once or for nothing: 0-x, 1-x, 2-x");
    assert_eq!(bench.backlog.len(), 50);
    assert!(bench.pipeline.carried().items.values().all(|memory| memory.attempts == 0), "it was not their fault");
}

#[test]
fn t100_an_item_that_comes_back_again_and_again_stops_everything() {
    let (mut carried, mut clock) = (Carried::default(), 0);
    for start in 1..=7 {
        let mut bench = Bench::carried(drain(), feature("1-a"), carried, clock);
        if start == 7 {
            bench.ended(RunOutcome::InternalError, "loop guard: 1-a was begun 6 times");
            return;
        }
        bench.tell(Event::Stop(StopHow::Now)).intake().ended(RunOutcome::Stopped, "stopped on request");
        (carried, clock) = (bench.pipeline.carried().for_the_next(), bench.clock);
    }
}

#[test]
fn t71_a_limit_holds_everything_and_costs_nothing() {
    let hold = Hold { until: Wall(2 * 3_600_000), reason: "You've hit your limit".into(), known: true };
    let mut bench = Bench::new(drain(), feature("1-a"));
    bench.begun().planner(Outcome::Limited(hold.clone()));
    assert_eq!(bench.pipeline.deadline(), Some(hold.until));
    bench.why("1-a", Standing::InProgress, "planning waits for the quota");
    assert_eq!(bench.memory("1-a").attempts, 0);
    // The next run keeps the hold.
    let carried = bench.pipeline.carried().for_the_next();
    let mut other = Bench::carried(drain(), feature("1-a"), carried.clone(), bench.clock);
    assert_eq!((other.pipeline.jobs().len(), other.pipeline.deadline()), (0, Some(hold.until)));
    other.clock = hold.until.0;
    other.tell(Event::Time).intake();
    let no_wait = Settings { no_wait: true, ..drain() };
    Bench::carried(no_wait, feature("1-a"), carried, bench.clock).ended(RunOutcome::RateLimited, "hit your limit");
    // This run resumes where it stopped.
    bench.clock = hold.until.0;
    bench.tell(Event::Time).plans().done().ended(RunOutcome::Verified, "1 done");
}

fn level(name: &str, limit_usd: f64) -> Level {
    Level { name: name.into(), limit_usd: Some(limit_usd), ..Level::default() }
}

#[test]
fn money_is_counted_over_all_items_and_on_every_level() {
    let mut backlog = feature("1-a");
    backlog.extend(feature("2-b"));
    // The tightest window is not always exhausted first.
    let windows = || vec![level("week", 20.0), level("day", 2.0)];
    let mut bench = Bench::new(Settings { levels: windows(), ..drain() }, backlog.clone());
    bench.planned();
    // The ledger has the spending of plans. The sums arrive before the end of the plan does.
    bench.tell(Event::Spent { levels: vec![("week".into(), used(1.5)), ("day".into(), used(1.5))] }).done();
    bench.planned().ended(RunOutcome::BudgetExhausted, "day: 2.00 USD of 2.00 USD are spent");
    // Another run spends on the other level.
    let mut bench = Bench::new(Settings { levels: windows(), ..drain() }, backlog.clone());
    bench.begun();
    assert!(!bench.pipeline.knows(&[("week".into(), used(20.0))]));
    bench.tell(Event::Spent { levels: vec![("week".into(), used(20.0))] });
    assert!(bench.pipeline.knows(&[("week".into(), used(20.0))]));
    bench.plans().ended(RunOutcome::BudgetExhausted, "week: 20.50 USD of 20.00 USD are spent");
    // Spent before the run began.
    let spent = Level { spent: used(2.0), ..level("day", 2.0) };
    Bench::new(Settings { levels: vec![spent], ..drain() }, backlog.clone()).ended(RunOutcome::BudgetExhausted, "day");
    // A budget of one item: the others continue.
    backlog[0].limit_usd = Some(0.5);
    let mut bench = Bench::new(drain(), backlog.clone());
    bench.planned().why("1-a", Standing::Parked, "budget_exhausted: this item: 0.50 USD of 0.50 USD");
    assert_eq!(bench.step().0.item, slug("2-b"));
    assert_eq!(bench.pipeline.carried().for_the_next().items[&slug("1-a")].parked, None, "the next run looks again");
    // A restart does not refund the money.
    let mut bench =
        Bench::carried(Settings::default(), vec![backlog[0].clone()], bench.pipeline.carried().for_the_next(), 0);
    bench.tell(Event::Retry { item: slug("1-a") }).begun().why("1-a", Standing::Parked, "budget_exhausted");
}

#[test]
fn a_plan_that_ran_out_of_money_is_the_items_matter_or_everyones() {
    let mut bench = Bench::new(Settings { levels: vec![level("day", 2.0)], ..drain() }, feature("1-a"));
    bench.planned().tell(Event::Spent { levels: vec![("day".into(), used(2.0))] });
    bench.executed(RunOutcome::BudgetExhausted).ended(RunOutcome::BudgetExhausted, "day: 2.00 USD");
    let memory = bench.memory("1-a");
    assert_eq!((memory.attempts, &memory.parked), (0, &None), "it goes on from here");
    let mut bench = Bench::new(drain(), feature("1-a"));
    bench.planned().executed(RunOutcome::BudgetExhausted).ended(RunOutcome::Suspended, "1-a");
    bench.why("1-a", Standing::Parked, "budget_exhausted: so it ended");
    // If another level than the item's own was exhausted, the item does not start again and again either.
    let mut backlog = feature("1-a");
    backlog[0].limit_usd = Some(40.0);
    let mut bench = Bench::new(Settings::default(), backlog);
    bench.planned().executed(RunOutcome::BudgetExhausted);
    assert!(bench.pipeline.is_idle());
    bench.backlog[0].limit_usd = Some(50.0);
    bench.rescan().intake();
}

#[test]
fn a_session_that_had_spent_what_was_left_costs_no_attempt() {
    let mut bench = Bench::new(Settings { levels: vec![level("day", 0.5)], ..drain() }, feature("1-a"));
    bench.begun();
    assert_eq!(bench.pipeline.left(&slug("1-a")), Some(0.5));
    bench.planner(Outcome::Interrupted).ended(RunOutcome::BudgetExhausted, "day: 0.50 USD");
    assert_eq!(bench.memory("1-a").attempts, 0);
    // If the tool is wrong about the limit, retries are still bounded.
    let mut bench = Bench::new(Settings { levels: vec![level("day", 50.0)], ..drain() }, feature("1-a"));
    bench.backlog[0].limit_usd = Some(40.0);
    bench.rescan();
    assert_eq!(bench.pipeline.left(&slug("1-a")), Some(40.0), "the tightest");
    bench.begun();
    while bench.pipeline.outcome().is_none() {
        bench.planner(Outcome::Interrupted).wait();
    }
    bench.why("1-a", Standing::Parked, "needs_attention: its sessions are ended by somebody, or what is left");
}

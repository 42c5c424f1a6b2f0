//! Another branch is checked out while items are in progress: nothing is written there, and nothing is lost.

use super::*;
use crate::engine::notice::NoticeKind;

const AWAY: &str = "feature is checked out, and the backlog is that of main";

impl Bench {
    fn checks_out(&mut self, away: Option<&str>) -> &mut Self {
        let scanned = self.pipeline.difference(self.backlog.clone(), away.map(str::to_owned));
        self.tell(scanned)
    }

    fn told(&self, what: NoticeKind) -> usize {
        self.effects.iter().filter(|effect| matches!(effect, Effect::Tell(notice) if notice.what == what)).count()
    }
}

#[test]
fn everything_waits_until_the_user_is_back() {
    let mut backlog = feature("1-a");
    backlog.extend(feature("2-b"));
    let mut bench = Bench::new(drain(), backlog);
    bench.planned().checks_out(Some(AWAY));
    assert_eq!(bench.told(NoticeKind::CheckoutAway), 1);
    // The run continues in its work tree. The steps after it would read and write the checkout.
    bench.executed(RunOutcome::Verified);
    assert_eq!(bench.pipeline.outstanding(), []);
    bench.why("1-a", Standing::InProgress, "checking the plan waits: feature is checked out");
    bench.checks_out(Some(AWAY));
    assert_eq!((bench.told(NoticeKind::CheckoutAway), bench.pipeline.deadline()), (0, None), "it is told once");
    bench.checks_out(None).checked(valid()).gathered(good()).retired(ItemOutcome::Completed);
    assert_eq!(bench.step().0.item, slug("2-b"));
    assert!(bench.history("1-a").contains(&AWAY));
}

#[test]
fn who_finds_out_in_the_middle_of_it_does_it_later() {
    let mut bench = Bench::new(drain(), feature("1-a"));
    bench.planned().carried_out().gathered(good());
    let (id, first) = bench.step();
    let effects = bench
        .pipeline
        .handle(Event::Answered { id, answer: StepAnswer::NotNow { why: AWAY.into() } }, Wall(bench.clock));
    assert!(effects.contains(&Effect::Scan), "they may be back already: {effects:?}");
    let memory = bench.memory("1-a");
    assert_eq!((memory.attempts, &memory.parked), (0, &None));
    bench.checks_out(None);
    assert_eq!(bench.step().1, first, "what it has done of it, it knows again");
    bench.retired(ItemOutcome::Completed).ended(RunOutcome::Verified, "1 done");
}

#[test]
fn nothing_is_begun_and_nothing_is_over_meanwhile() {
    let mut bench = Bench::new(drain(), feature("1-a"));
    bench.tell(Event::Stop(StopHow::AfterTask)).intake();
    let carried = bench.pipeline.carried().for_the_next();
    let mut bench = Bench::carried(Settings::default(), Vec::new(), carried, bench.clock);
    assert!(bench.pipeline.is_idle());
    bench.backlog = feature("1-a");
    bench.checks_out(Some(AWAY));
    assert_eq!((bench.pipeline.jobs().len(), bench.pipeline.outcome()), (0, None));
    bench.checks_out(None).intake();
    // A stop does not wait for the checkout.
    bench.checks_out(Some(AWAY)).checked(PlanFound::Missing);
    assert_eq!(bench.pipeline.outcome(), None);
    bench.tell(Event::Stop(StopHow::AfterTask)).ended(RunOutcome::Stopped, "");
}

#[test]
fn what_was_done_for_another_branch_is_not_mixed_with_this_one() {
    let on = |branch: &str| Settings { branch: Some(branch.into()), ..drain() };
    let mut bench = Bench::new(on("main"), feature("1-a"));
    bench.planned().tell(Event::Stop(StopHow::Now)).executed(RunOutcome::Stopped);
    let (carried, clock) = (bench.pipeline.carried().for_the_next(), bench.clock);
    let other = Bench::carried(on("feature"), feature("1-a"), carried.clone(), clock);
    other.ended(RunOutcome::Verified, "nothing to do");
    other.why("1-a", Standing::Held, "what was done for it is on main");
    let mut other = Bench::carried(
        Settings { mode: Mode::Watch, ..on("feature") },
        feature("1-a"),
        other.pipeline.carried().for_the_next(),
        clock,
    );
    other.tell(Event::Retry { item: slug("1-a") }).intake();
    Bench::carried(on("main"), feature("1-a"), carried, clock).intake();
}

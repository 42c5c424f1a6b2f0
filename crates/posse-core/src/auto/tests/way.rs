//! The steps of an item, from its plan to the archive.

use super::*;

#[test]
fn a_feature_is_planned_carried_out_and_archived() {
    let mut bench = Bench::new(drain(), feature("1-a"));
    bench.planned().done().ended(RunOutcome::Verified, "1 done");
    bench.why("1-a", Standing::Ended, "completed");
    assert_eq!(
        bench.history("1-a"),
        [
            "begun, attempt 1 of 2",
            "planned",
            "its plan is carried out: so it ended",
            "all evidence is there",
            "completed: every task is done, and its work is in the branch; now in there",
        ]
    );
}

#[test]
fn a_defect_is_verified_before_it_is_archived() {
    for (verdict, outcome, end) in [
        (Verdict::Pass, ItemOutcome::Completed, RunOutcome::Verified),
        (Verdict::Warn, ItemOutcome::CompletedWithWarnings, RunOutcome::CompletedWithWarnings),
    ] {
        let mut bench = Bench::new(drain(), defect("1-a"));
        bench.planned().carried_out().verifier(over(), verdict).logged(1).gathered(good()).retired(outcome);
        bench.ended(end, "1 done");
    }
}

#[test]
fn t95_a_planner_that_writes_no_plan_has_failed() {
    let mut bench = Bench::new(drain(), feature("1-a"));
    for _ in 1..=2 {
        bench.begun().planner(over()).checked(PlanFound::Missing);
    }
    bench.retired(ItemOutcome::Failed).ended(RunOutcome::Failed, "failed: 1-a");
}

#[test]
fn a_broken_plan_may_be_repaired_once() {
    let invalid = || PlanFound::Invalid { problems: "no tasks".into() };
    let mut bench = Bench::new(drain(), feature("1-a"));
    bench.begun().planner(over()).checked(invalid());
    assert!(matches!(bench.step().1, Step::Plan { repair: Some(repair) } if repair.problems == "no tasks"));
    bench.plans().done();

    let mut bench = Bench::new(drain(), feature("1-a"));
    for _ in 0..2 {
        bench.intake();
        // The leftovers of the previous attempt are set aside, and its failure is passed to the next planner.
        let plan = if bench.memory("1-a").attempts == 0 { PlanFound::Missing } else { invalid() };
        let left = plan != PlanFound::Missing;
        bench.checked(plan);
        if left {
            assert_eq!(bench.step().1, Step::SetAside);
            bench.answer(StepAnswer::SetAside);
            assert_eq!(bench.step().1, Step::Plan { repair: None });
            assert!(bench.memory("1-a").before.is_some());
        }
        bench.planner(over()).checked(invalid()).planner(over()).checked(invalid());
    }
    bench.retired(ItemOutcome::Failed);
}

#[test]
fn t96_three_verifications_and_no_more() {
    let mut bench = Bench::new(drain(), defect("1-a"));
    bench.planned();
    for number in 1..=3 {
        bench.carried_out().verifier(over(), Verdict::Fail);
        // One event in the middle goes to a restarted daemon: the same events, in another machine.
        bench.logged(number);
        if number < 3 {
            assert_eq!(bench.step().1, Step::SetAside);
            bench.answer(StepAnswer::SetAside).plans();
        }
    }
    bench.retired(ItemOutcome::Exhausted).ended(RunOutcome::Failed, "failed: 1-a");
}

#[test]
fn verifications_in_the_log_count_whoever_wrote_them() {
    let mut bench = Bench::new(drain(), defect("1-a"));
    let intake = Intake::Ready { hash: "h1".into(), failed: 2, next: 3 };
    bench.answer(StepAnswer::Intake(intake)).checked(PlanFound::Missing).plans().carried_out();
    bench.verifier(over(), Verdict::Fail).logged(3).retired(ItemOutcome::Exhausted);
}

#[test]
fn t61_a_plan_whose_breaker_tripped_archives_nothing() {
    for outcome in [RunOutcome::CircuitOpen, RunOutcome::Failed, RunOutcome::InvalidPlan, RunOutcome::InternalError] {
        let mut bench = Bench::new(drain(), feature("1-a"));
        for _ in 0..2 {
            bench.planned().executed(outcome);
        }
        bench.retired(ItemOutcome::Failed).ended(RunOutcome::Failed, "1-a");
    }
    let mut bench = Bench::new(drain(), feature("1-a"));
    bench.planned().executed(RunOutcome::Deadlocked).retired(ItemOutcome::Deadlocked);
}

#[test]
fn what_is_not_shown_is_not_archived() {
    let lie = Evidence { commits: Vec::new(), ..good() };
    let mut bench = Bench::new(drain(), feature("1-a"));
    for _ in 0..2 {
        bench.planned().carried_out().gathered(lie.clone());
    }
    let (_, step) = bench.step();
    assert!(matches!(step, Step::Retire { reason, .. } if reason.contains("no session left a commit")));
    bench.retired(ItemOutcome::Failed);
}

/// A user took the item out of the archive, or the project is a different one: the memory is no evidence.
#[test]
fn what_is_back_and_not_in_the_archive_is_done_again() {
    let mut bench = Bench::new(drain(), feature("1-a"));
    bench.planned().carried_out().gathered(good());
    let back = bench.backlog.clone();
    bench.retired(ItemOutcome::Completed);
    let mut bench = Bench::carried(drain(), back, bench.pipeline.carried().for_the_next(), bench.clock);
    bench.planned().executed(RunOutcome::Verified);
}

#[test]
fn t93_what_is_done_is_not_done_again() {
    let mut bench = Bench::new(drain(), feature("1-a"));
    bench.planned().carried_out().gathered(good());
    // The source still exists after the move.
    let mut back = bench.backlog.clone();
    back.iter_mut().for_each(|candidate| candidate.archived = true);
    bench.retired(ItemOutcome::Completed);
    let mut bench = Bench::carried(drain(), back, bench.pipeline.carried().for_the_next(), bench.clock);
    bench.intake().retired(ItemOutcome::Completed).ended(RunOutcome::Verified, "1 done");
    // An item that could not be moved is excluded, and never processed again.
    let mut bench = Bench::new(drain(), feature("1-a"));
    bench.planned().carried_out().gathered(good()).answer(StepAnswer::Failed { why: "read-only".into() });
    bench.ended(RunOutcome::Suspended, "1-a");
    bench.why("1-a", Standing::Parked, "archive_failed: completed, but still in the backlog: read-only");
    let mut bench = bench.next_run(Settings::default());
    assert!(bench.pipeline.is_idle());
    bench.tell(Event::Retry { item: slug("1-a") }).intake().retired(ItemOutcome::Completed);
}

#[test]
fn answers_of_another_time_are_none() {
    let mut bench = Bench::new(drain(), feature("1-a"));
    let (id, _) = bench.step();
    bench.intake();
    let before = bench.pipeline.jobs().clone();
    bench.tell(Event::Answered { id: id.clone(), answer: StepAnswer::Intake(Intake::Gone) });
    bench.tell(Event::Answered { id, answer: StepAnswer::Retired { place: "nowhere".into(), message: String::new() } });
    assert_eq!(*bench.pipeline.jobs(), before);
    // Answers to another step are ignored, too.
    bench.answer(StepAnswer::Retired { place: "nowhere".into(), message: String::new() });
    assert_eq!(bench.memory("1-a").ended, None);
}

#[test]
fn what_its_author_changes_is_planned_anew() {
    let mut bench = Bench::new(drain(), feature("1-a"));
    bench.planned().tell(Event::Stop(StopHow::Now)).executed(RunOutcome::Stopped);
    bench.backlog[0].hash = "h2".into();
    let mut bench = bench.next_run(drain());
    let intake = Intake::Ready { hash: "h2".into(), failed: 0, next: 1 };
    bench.answer(StepAnswer::Intake(intake)).checked(valid());
    assert_eq!(bench.step().1, Step::SetAside);
}

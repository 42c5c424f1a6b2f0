//! Waiting for people, and their requests.

use super::*;

#[test]
fn t97_no_verdict_costs_no_verification_and_ends() {
    let mut bench = Bench::new(drain(), defect("1-a"));
    bench.planned().carried_out();
    for _ in 0..3 {
        bench.verifier(failed("the session took too long"), Verdict::Pass).wait();
    }
    bench.ended(RunOutcome::Suspended, "waiting for a person: 1-a");
    bench.why("1-a", Standing::Parked, "needs_attention: no verdict in 3 tries: the session took too long");
    assert_eq!(bench.memory("1-a").wanting, 0);
    // The item stays parked, also in the next run, until a person releases it.
    let bench = bench.next_run(drain());
    bench.ended(RunOutcome::Verified, "nothing to do");
    let mut bench = bench.next_run(Settings::default());
    assert!(bench.pipeline.is_idle());
    bench.tell(Event::Retry { item: slug("1-a") }).intake();
}

#[test]
fn t84_stop_keeps_what_was_done_and_archives_nothing() {
    // A stop during the run of a plan.
    for how in [StopHow::AfterTask, StopHow::Now] {
        for outcome in [RunOutcome::Stopped, RunOutcome::Verified] {
            let mut bench = Bench::new(drain(), feature("1-a"));
            bench.planned();
            let (id, _) = bench.step();
            bench.tell(Event::Stop(how));
            assert_eq!(bench.effects, [Effect::StopPlan { id, how }]);
            bench.executed(outcome);
            if outcome == RunOutcome::Verified {
                bench.checked(valid());
            }
            bench.ended(RunOutcome::Stopped, "on request");
            // The next run does not plan again, and does not repeat work that is done.
            let mut bench = bench.next_run(drain());
            bench.intake().checked(valid());
            match outcome {
                RunOutcome::Verified => bench.gathered(good()).retired(ItemOutcome::Completed),
                _ => bench.done(),
            };
        }
    }
    // A stop during a session: it finishes, or is ended.
    let mut bench = Bench::new(drain(), feature("1-a"));
    bench.begun().tell(Event::Stop(StopHow::AfterTask));
    assert_eq!(bench.effects, []);
    let (id, _) = bench.step();
    bench.tell(Event::Stop(StopHow::Now));
    assert_eq!(bench.effects, [Effect::EndSession { id }]);
    bench.planner(Outcome::Interrupted).ended(RunOutcome::Stopped, "");
    assert_eq!(bench.memory("1-a").attempts, 0);
    // If the planner may finish, its plan counts.
    let mut bench = Bench::new(drain(), feature("1-a"));
    bench.begun().tell(Event::Stop(StopHow::AfterTask)).plans().ended(RunOutcome::Stopped, "");
    assert!(bench.memory("1-a").planned.is_some());
}

#[test]
fn who_stops_the_run_of_a_plan_stops_the_pipeline() {
    let mut bench = Bench::new(Settings::default(), feature("1-a"));
    bench.planned().executed(RunOutcome::Stopped).ended(RunOutcome::Stopped, "");
}

#[test]
fn what_needs_a_person_waits_for_one_and_others_go_on() {
    let mut backlog = feature("1-a");
    backlog.extend(feature("2-b"));
    let mut bench = Bench::new(Settings::default(), backlog);
    // A task of the plan asks a question.
    bench.planned();
    bench.backlog[0].asks = true;
    bench.executed(RunOutcome::Suspended).why("1-a", Standing::Parked, "suspended");
    // An item that is too vague.
    assert_eq!(bench.step().0.item, slug("2-b"));
    bench.answer(StepAnswer::Intake(Intake::Vague { question: "What?".into() }));
    assert_eq!(bench.step().1, Step::Mark { question: "What?".into() });
    bench.backlog[1].held = Some("waits for an answer: What?".into());
    bench.answer(StepAnswer::Marked);
    assert!(bench.pipeline.is_idle());
    bench.why("2-b", Standing::Parked, "What?");
    assert_eq!(bench.pipeline.deadline(), None, "nobody is woken up for nothing");
    // The first is answered.
    bench.backlog[0].asks = false;
    bench.rescan().intake().checked(valid()).done();
    // And then the second.
    bench.backlog[0].held = None;
    bench.rescan().planned().done();
    assert!(bench.pipeline.is_idle());
}

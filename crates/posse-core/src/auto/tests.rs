//! Items on their way, step by step.

use super::evidence::{Evidence, Place};
use super::memory::Standing;
use super::session::SessionEnd;
use super::settings::{Mode, Settings, Window};
use super::words::{Candidate, Deed, DeedId, Effect, Event, Intake, PlanFound};
use super::{Carried, Pipeline};
use crate::backlog::{ItemOutcome, Kind, Priority, Slug};
use crate::plan::TaskStatus;
use crate::plan::budget::{Total, Usage};
use crate::plan::limits::Hold;
use crate::plan::machine::{RunOutcome, StopHow};
use crate::plan::verdict::{Judgement, Verdict};
use crate::time::Wall;

const MINUTE: i64 = 60_000;

pub(super) fn slug(name: &str) -> Slug {
    name.parse().unwrap()
}

pub(super) fn candidate(name: &str, kind: Kind) -> Candidate {
    Candidate {
        item: slug(name),
        path: format!("docs/{name}.md"),
        kind,
        priority: Priority::Medium,
        title: name.into(),
        hash: "h1".into(),
        held: None,
        archived: false,
        asks: None,
        limit_usd: None,
    }
}

pub(super) fn cost(usd: f64) -> Usage {
    Usage { cost_usd: Some(usd), ..Usage::default() }
}

pub(super) fn used(usd: f64) -> Total {
    let mut total = Total::default();
    total.add_usage(&cost(usd));
    total
}

pub(super) fn over() -> SessionEnd {
    SessionEnd::Over { denied: Vec::new() }
}

pub(super) fn judgement(verdict: Verdict) -> Judgement {
    Judgement { verdict, findings: vec![format!("[{}] S1: looked", format!("{verdict:?}").to_uppercase())] }
}

pub(super) fn good() -> Evidence {
    Evidence {
        plan: Ok(vec![("1".into(), TaskStatus::Verified)]),
        commits: vec!["c".into()],
        unreachable: Ok(Vec::new()),
        item: Place::InBacklog,
    }
}

/// A pipeline, a clock, and the backlog it looks at.
struct Bench {
    pipeline: Pipeline,
    clock: i64,
    backlog: Vec<Candidate>,
    effects: Vec<Effect>,
}

impl Bench {
    fn new(settings: Settings, backlog: Vec<Candidate>) -> Self {
        Self::carried(settings, backlog, Carried::default(), 0)
    }

    fn carried(settings: Settings, backlog: Vec<Candidate>, carried: Carried, clock: i64) -> Self {
        let mut bench = Self { pipeline: Pipeline::new(settings, carried), clock, backlog, effects: Vec::new() };
        bench.tell(Event::Started);
        bench
    }

    /// Tells it, and looks at the backlog whenever it wants to.
    fn tell(&mut self, event: Event) {
        self.effects = self.pipeline.handle(event, Wall(self.clock));
        if self.effects.contains(&Effect::Scan) {
            let scanned = self.pipeline.difference(self.backlog.clone());
            self.effects.extend(self.pipeline.handle(scanned, Wall(self.clock)));
        }
    }

    /// What it is doing.
    #[track_caller]
    fn deed(&self) -> (DeedId, Deed) {
        let mut deeds = self.pipeline.outstanding().iter().rev().filter_map(|effect| match effect {
            Effect::Do { id, deed } => Some((id.clone(), deed.clone())),
            _ => None,
        });
        deeds.next().unwrap_or_else(|| panic!("nothing is done: {:?}", self.pipeline.outcome()))
    }

    /// Answers what it is doing, a minute later.
    #[track_caller]
    fn answer(&mut self, answer: impl FnOnce(DeedId) -> Event) {
        self.clock += MINUTE;
        let (id, _) = self.deed();
        self.tell(answer(id));
    }

    #[track_caller]
    fn intake(&mut self) {
        assert_eq!(self.deed().1, Deed::Intake);
        let intake = Intake::Ready { hash: "h1".into(), failed: 0, next: 1 };
        self.answer(|id| Event::IntakeEnded { id, intake });
    }

    #[track_caller]
    fn checked(&mut self, plan: PlanFound) {
        assert!(matches!(self.deed().1, Deed::CheckPlan { .. }), "{:?}", self.deed());
        self.answer(|id| Event::PlanChecked { id, plan });
    }

    #[track_caller]
    fn planner(&mut self, end: SessionEnd) {
        assert!(matches!(self.deed().1, Deed::Plan(_)), "{:?}", self.deed());
        self.answer(|id| Event::PlannerEnded { id, end, usage: cost(0.5) });
    }

    #[track_caller]
    fn executed(&mut self, outcome: RunOutcome) {
        assert!(matches!(self.deed().1, Deed::Execute { .. }), "{:?}", self.deed());
        self.answer(|id| Event::PlanEnded { id, outcome, reason: "so it ended".into(), used: used(1.0) });
    }

    #[track_caller]
    fn verifier(&mut self, end: SessionEnd, verdict: Verdict) {
        assert!(matches!(self.deed().1, Deed::Verify { .. }), "{:?}", self.deed());
        self.answer(|id| Event::VerifierEnded { id, end, judgement: judgement(verdict), usage: cost(0.25) });
    }

    #[track_caller]
    fn logged(&mut self, number: u32) {
        assert!(matches!(self.deed().1, Deed::Log { number: n, .. } if n == number), "{:?}", self.deed());
        self.answer(|id| Event::Logged { id });
    }

    #[track_caller]
    fn gathered(&mut self, evidence: Evidence) {
        assert_eq!(self.deed().1, Deed::Gather);
        self.answer(|id| Event::EvidenceFound { id, evidence });
    }

    /// It leaves the backlog.
    #[track_caller]
    fn retired(&mut self, outcome: ItemOutcome) {
        let (id, deed) = self.deed();
        assert!(matches!(&deed, Deed::Retire(retirement) if retirement.outcome == outcome), "{deed:?}");
        self.backlog.retain(|candidate| candidate.item != id.item);
        self.answer(|id| Event::Retired { id, place: "there".into() });
    }

    /// Up to a valid plan.
    #[track_caller]
    fn planned(&mut self) {
        self.intake();
        self.checked(PlanFound::Missing);
        self.planner(over());
        self.checked(valid());
    }

    /// From its execution to the end of a feature.
    #[track_caller]
    fn done(&mut self) {
        self.executed(RunOutcome::Verified);
        self.checked(valid());
        self.gathered(good());
        self.retired(ItemOutcome::Completed);
    }

    #[track_caller]
    fn ended(&self, outcome: RunOutcome, reason: &str) {
        let (found, why) = self.pipeline.outcome().unwrap_or_else(|| panic!("it goes on: {:?}", self.pipeline.doing()));
        assert_eq!(found, outcome, "{why}");
        assert!(why.contains(reason), "{why}");
    }

    #[track_caller]
    fn why(&self, item: &str, standing: Standing, reason: &str) {
        let why = self.pipeline.why(&slug(item)).unwrap();
        assert_eq!(why.standing, standing, "{why:?}");
        assert!(why.reason.contains(reason), "{why:?}");
    }
}

fn valid() -> PlanFound {
    PlanFound::Valid { hash: "p1".into() }
}

fn drain() -> Settings {
    Settings { mode: Mode::Drain, ..Settings::default() }
}

fn feature(name: &str) -> Vec<Candidate> {
    vec![candidate(name, Kind::Feature)]
}

fn defect(name: &str) -> Vec<Candidate> {
    vec![candidate(name, Kind::Defect)]
}

#[test]
fn a_feature_is_planned_carried_out_and_archived() {
    let mut bench = Bench::new(drain(), feature("1-a"));
    bench.planned();
    bench.done();
    bench.ended(RunOutcome::Verified, "1 done");
    bench.why("1-a", Standing::Ended, "completed");
    let told: Vec<String> =
        bench.pipeline.why(&slug("1-a")).unwrap().history.into_iter().map(|line| line.text).collect();
    assert_eq!(
        told,
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
        bench.planned();
        bench.executed(RunOutcome::Verified);
        bench.checked(valid());
        bench.verifier(over(), verdict);
        bench.logged(1);
        bench.gathered(good());
        bench.retired(outcome);
        bench.ended(end, "1 done");
    }
}

#[test]
fn the_order_is_the_backlogs() {
    let with = |name: &str, kind, priority| Candidate { priority, ..candidate(name, kind) };
    let backlog = vec![
        with("2-b", Kind::Feature, Priority::High),
        with("10-c", Kind::Defect, Priority::Medium),
        with("9-d", Kind::Defect, Priority::Medium),
        with("1-e", Kind::Feature, Priority::Medium),
        Candidate { held: Some("on hold".into()), ..with("0-f", Kind::Defect, Priority::Critical) },
    ];
    let bench = Bench::new(drain(), backlog);
    let items: Vec<String> = bench.pipeline.standings().iter().map(|(item, ..)| item.to_string()).collect();
    assert_eq!(items, ["2-b", "9-d", "10-c", "1-e", "0-f"]);
    bench.why("0-f", Standing::Held, "on hold");
    bench.why("2-b", Standing::InProgress, "intake");
    bench.why("1-e", Standing::Waiting, "3 items are before it");
}

#[test]
fn t95_a_planner_that_writes_no_plan_has_failed() {
    let mut bench = Bench::new(drain(), feature("1-a"));
    for attempt in 1..=2 {
        bench.intake();
        bench.checked(PlanFound::Missing);
        bench.planner(SessionEnd::Over { denied: vec!["Write .claude/plan".into()] });
        bench.checked(PlanFound::Missing);
        if attempt == 1 {
            let why = bench.pipeline.why(&slug("1-a")).unwrap();
            assert!(why.history.iter().any(|line| line.text.contains("not allowed: Write")), "{why:?}");
        }
    }
    bench.retired(ItemOutcome::Failed);
    bench.ended(RunOutcome::Failed, "failed: 1-a");
}

#[test]
fn a_broken_plan_may_be_repaired_once() {
    let invalid = || PlanFound::Invalid { problems: "no tasks".into() };
    let mut bench = Bench::new(drain(), feature("1-a"));
    bench.intake();
    bench.checked(PlanFound::Missing);
    bench.planner(over());
    bench.checked(invalid());
    assert!(
        matches!(bench.deed().1, Deed::Plan(planning) if planning.repair.as_ref().is_some_and(|repair| repair.problems == "no tasks"))
    );
    bench.planner(over());
    bench.checked(valid());
    bench.done();

    let mut bench = Bench::new(drain(), feature("1-a"));
    for _ in 0..2 {
        bench.intake();
        // What the attempt before has left behind is set aside, and told to the next planner.
        let plan =
            if bench.pipeline.carried().items[&slug("1-a")].attempts == 0 { PlanFound::Missing } else { invalid() };
        let left = plan != PlanFound::Missing;
        bench.checked(plan);
        if left {
            assert_eq!(bench.deed().1, Deed::SetAside);
            bench.answer(|id| Event::SetAside { id });
            assert!(matches!(bench.deed().1, Deed::Plan(planning) if planning.before.is_some()));
        }
        bench.planner(over());
        bench.checked(invalid());
        bench.planner(over());
        bench.checked(invalid());
    }
    bench.retired(ItemOutcome::Failed);
}

#[test]
fn t96_three_verifications_and_no_more() {
    let mut bench = Bench::new(drain(), defect("1-a"));
    bench.planned();
    for number in 1..=3 {
        bench.executed(RunOutcome::Verified);
        bench.checked(valid());
        bench.verifier(over(), Verdict::Fail);
        // One in the middle is told by another daemon: the same events, in another machine.
        bench.logged(number);
        if number < 3 {
            assert_eq!(bench.deed().1, Deed::SetAside);
            bench.answer(|id| Event::SetAside { id });
            bench.planner(over());
            bench.checked(valid());
        }
    }
    bench.retired(ItemOutcome::Exhausted);
    bench.ended(RunOutcome::Failed, "failed: 1-a");
}

#[test]
fn verifications_in_the_log_count_whoever_wrote_them() {
    let mut bench = Bench::new(drain(), defect("1-a"));
    let intake = Intake::Ready { hash: "h1".into(), failed: 2, next: 3 };
    bench.answer(|id| Event::IntakeEnded { id, intake });
    bench.checked(PlanFound::Missing);
    bench.planner(over());
    bench.checked(valid());
    bench.executed(RunOutcome::Verified);
    bench.checked(valid());
    bench.verifier(over(), Verdict::Fail);
    bench.logged(3);
    bench.retired(ItemOutcome::Exhausted);
}

#[test]
fn t97_no_verdict_costs_no_verification_and_ends() {
    let mut bench = Bench::new(drain(), defect("1-a"));
    bench.planned();
    bench.executed(RunOutcome::Verified);
    bench.checked(valid());
    for _ in 0..3 {
        bench.verifier(SessionEnd::Failed("the session took too long".into()), Verdict::Pass);
        // The pause before it is asked again.
        if let Some(deadline) = bench.pipeline.deadline() {
            bench.clock = deadline.0;
            bench.tell(Event::Time);
        }
    }
    bench.ended(RunOutcome::Suspended, "waiting for a person: 1-a");
    bench.why("1-a", Standing::Parked, "needs_attention: no verdict in 3 tries: the session took too long");
    assert_eq!(bench.pipeline.carried().items[&slug("1-a")].wanting, 0);
    // Parked it stays, also for the next run, until a person says so.
    let carried = bench.pipeline.carried().clone();
    let mut bench = Bench::carried(drain(), bench.backlog, carried, bench.clock);
    bench.ended(RunOutcome::Verified, "nothing to do");
    let carried = bench.pipeline.carried().clone();
    bench = Bench::carried(Settings::default(), bench.backlog, carried, bench.clock);
    assert!(bench.pipeline.is_idle());
    bench.tell(Event::Retry { item: slug("1-a") });
    bench.intake();
}

#[test]
fn t98_when_nothing_works_it_stops_and_nothing_is_lost() {
    let backlog: Vec<Candidate> = (0..50).map(|n| candidate(&format!("{n}-x"), Kind::Feature)).collect();
    let mut bench = Bench::new(drain(), backlog);
    for _ in 0..3 {
        bench.intake();
        bench.checked(PlanFound::Missing);
        // Three tries each: an empty answer is no answer.
        for _ in 0..3 {
            let (id, deed) = bench.deed();
            assert!(matches!(deed, Deed::Plan(_)));
            let end = SessionEnd::Infra("ended without a word".into());
            bench.tell(Event::PlannerEnded { id, end, usage: Usage::default() });
            if let Some(deadline) = bench.pipeline.deadline() {
                bench.clock = deadline.0;
                bench.tell(Event::Time);
            }
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
        bench.tell(Event::Stop(StopHow::Now));
        bench.intake();
        bench.ended(RunOutcome::Stopped, "stopped on request");
        (carried, clock) = (bench.pipeline.carried().clone(), bench.clock);
    }
}

#[test]
fn t61_a_plan_whose_breaker_tripped_archives_nothing() {
    for outcome in [RunOutcome::CircuitOpen, RunOutcome::Failed, RunOutcome::InvalidPlan, RunOutcome::InternalError] {
        let mut bench = Bench::new(drain(), feature("1-a"));
        for _ in 0..2 {
            bench.planned();
            bench.executed(outcome);
        }
        bench.retired(ItemOutcome::Failed);
        bench.ended(RunOutcome::Failed, "1-a");
    }
    let mut bench = Bench::new(drain(), feature("1-a"));
    bench.planned();
    bench.executed(RunOutcome::Deadlocked);
    bench.retired(ItemOutcome::Deadlocked);
}

#[test]
fn what_is_not_shown_is_not_archived() {
    let lie = Evidence { commits: Vec::new(), ..good() };
    let mut bench = Bench::new(drain(), feature("1-a"));
    for _ in 0..2 {
        bench.planned();
        bench.executed(RunOutcome::Verified);
        bench.checked(valid());
        bench.gathered(lie.clone());
    }
    let (_, deed) = bench.deed();
    assert!(matches!(deed, Deed::Retire(retirement) if retirement.reason.contains("no session left a commit")));
    bench.retired(ItemOutcome::Failed);
}

#[test]
fn t71_a_limit_holds_everything_and_costs_nothing() {
    let hold = Hold { until: Wall(2 * 3_600_000), reason: "You've hit your limit".into(), known: true };
    let mut bench = Bench::new(drain(), feature("1-a"));
    bench.intake();
    bench.checked(PlanFound::Missing);
    bench.planner(SessionEnd::Limited(hold.clone()));
    assert_eq!(bench.pipeline.deadline(), Some(hold.until));
    bench.why("1-a", Standing::InProgress, "planning waits for the quota");
    assert_eq!(bench.pipeline.carried().items[&slug("1-a")].attempts, 0);
    // Another run honours it.
    let carried = bench.pipeline.carried().clone();
    let mut other = Bench::carried(drain(), feature("1-a"), carried.clone(), bench.clock);
    assert_eq!((other.pipeline.doing(), other.pipeline.deadline()), (None, Some(hold.until)));
    other.clock = hold.until.0;
    other.tell(Event::Time);
    other.intake();
    let no_wait = Settings { no_wait: true, ..drain() };
    Bench::carried(no_wait, feature("1-a"), carried, bench.clock).ended(RunOutcome::RateLimited, "hit your limit");
    // And this one goes on where it was.
    bench.clock = hold.until.0;
    bench.tell(Event::Time);
    bench.planner(over());
    bench.checked(valid());
    bench.done();
    bench.ended(RunOutcome::Verified, "1 done");
}

#[test]
fn t84_stop_keeps_what_was_done_and_archives_nothing() {
    // In the middle of a run of its plan.
    for how in [StopHow::AfterTask, StopHow::Now] {
        for outcome in [RunOutcome::Stopped, RunOutcome::Verified] {
            let mut bench = Bench::new(drain(), feature("1-a"));
            bench.planned();
            let (id, _) = bench.deed();
            bench.tell(Event::Stop(how));
            assert_eq!(bench.effects, [Effect::StopPlan { id, how }]);
            bench.executed(outcome);
            if outcome == RunOutcome::Verified {
                bench.checked(valid());
            }
            bench.ended(RunOutcome::Stopped, "on request");
            assert_eq!(RunOutcome::Stopped.exit_code(), 3);
            // The next run plans nothing again, and does not carry out what is.
            let mut bench = Bench::carried(drain(), bench.backlog, bench.pipeline.carried().clone(), bench.clock);
            bench.intake();
            bench.checked(valid());
            match outcome {
                RunOutcome::Verified => {
                    bench.gathered(good());
                    bench.retired(ItemOutcome::Completed);
                }
                _ => bench.done(),
            }
        }
    }
    // In the middle of a session: it may finish, or is ended.
    let mut bench = Bench::new(drain(), feature("1-a"));
    bench.intake();
    bench.checked(PlanFound::Missing);
    bench.tell(Event::Stop(StopHow::AfterTask));
    assert_eq!(bench.effects, []);
    let (id, _) = bench.deed();
    bench.tell(Event::Stop(StopHow::Now));
    assert_eq!(bench.effects, [Effect::EndSession { id }]);
    bench.planner(SessionEnd::Interrupted);
    bench.ended(RunOutcome::Stopped, "");
    assert_eq!(bench.pipeline.carried().items[&slug("1-a")].attempts, 0);
    // A planner that may finish has planned.
    let mut bench = Bench::new(drain(), feature("1-a"));
    bench.intake();
    bench.checked(PlanFound::Missing);
    bench.tell(Event::Stop(StopHow::AfterTask));
    bench.planner(over());
    bench.checked(valid());
    bench.ended(RunOutcome::Stopped, "");
    assert!(bench.pipeline.carried().items[&slug("1-a")].planned.is_some());
}

#[test]
fn who_stops_the_run_of_a_plan_stops_the_pipeline() {
    let mut bench = Bench::new(Settings::default(), feature("1-a"));
    bench.planned();
    bench.executed(RunOutcome::Stopped);
    bench.ended(RunOutcome::Stopped, "");
}

#[test]
fn what_needs_a_person_waits_for_one_and_others_go_on() {
    let mut backlog = feature("1-a");
    backlog.extend(feature("2-b"));
    let mut bench = Bench::new(Settings::default(), backlog);
    // A task of its plan asks.
    bench.planned();
    bench.backlog[0].asks = Some("Which colour?".into());
    bench.executed(RunOutcome::Suspended);
    bench.why("1-a", Standing::Parked, "suspended");
    // Too little to begin with.
    assert_eq!(bench.deed().0.item, slug("2-b"));
    bench.answer(|id| Event::IntakeEnded { id, intake: Intake::Vague { question: "What?".into() } });
    assert_eq!(bench.deed().1, Deed::Mark { question: "What?".into() });
    bench.backlog[1].held = Some("waits for an answer: What?".into());
    bench.answer(|id| Event::Marked { id });
    assert!(bench.pipeline.is_idle());
    bench.why("2-b", Standing::Parked, "What?");
    assert_eq!(bench.pipeline.deadline(), None, "nobody is woken up for nothing");
    // The first is answered.
    bench.backlog[0].asks = None;
    let scanned = bench.pipeline.difference(bench.backlog.clone());
    bench.tell(scanned);
    bench.intake();
    bench.checked(valid());
    bench.done();
    // And then the second.
    bench.backlog[0].held = None;
    let scanned = bench.pipeline.difference(bench.backlog.clone());
    bench.tell(scanned);
    bench.planned();
    bench.done();
    assert!(bench.pipeline.is_idle());
}

/// Somebody has taken it out of the archive, or the project is another one than before: what is remembered is no evidence.
#[test]
fn what_is_back_and_not_in_the_archive_is_done_again() {
    let mut bench = Bench::new(drain(), feature("1-a"));
    bench.planned();
    bench.executed(RunOutcome::Verified);
    bench.checked(valid());
    bench.gathered(good());
    let back = bench.backlog.clone();
    bench.retired(ItemOutcome::Completed);
    let mut bench = Bench::carried(drain(), back, bench.pipeline.carried().clone(), bench.clock);
    bench.planned();
    bench.executed(RunOutcome::Verified);
}

#[test]
fn t93_what_is_done_is_not_done_again() {
    let mut bench = Bench::new(drain(), feature("1-a"));
    bench.planned();
    bench.executed(RunOutcome::Verified);
    bench.checked(valid());
    bench.gathered(good());
    // The source is still there though it was moved.
    let mut back = bench.backlog.clone();
    back.iter_mut().for_each(|candidate| candidate.archived = true);
    bench.retired(ItemOutcome::Completed);
    let mut bench = Bench::carried(drain(), back, bench.pipeline.carried().clone(), bench.clock);
    bench.intake();
    bench.retired(ItemOutcome::Completed);
    bench.ended(RunOutcome::Verified, "1 done");
    // It could not be moved: it is excluded, and never processed again.
    let mut bench = Bench::new(drain(), feature("1-a"));
    bench.planned();
    bench.executed(RunOutcome::Verified);
    bench.checked(valid());
    bench.gathered(good());
    bench.answer(|id| Event::NotRetired { id, why: "read-only".into() });
    bench.ended(RunOutcome::Suspended, "1-a");
    bench.why("1-a", Standing::Parked, "archive_failed: completed, but still in the backlog: read-only");
    let mut bench = Bench::carried(Settings::default(), bench.backlog, bench.pipeline.carried().clone(), bench.clock);
    assert!(bench.pipeline.is_idle());
    bench.tell(Event::Retry { item: slug("1-a") });
    bench.intake();
    bench.retired(ItemOutcome::Completed);
}

#[test]
fn money_is_counted_over_all_items() {
    let mut backlog = feature("1-a");
    backlog.extend(feature("2-b"));
    let settings = Settings { cap_usd: Some(2.0), ..drain() };
    let mut bench = Bench::new(settings, backlog.clone());
    bench.planned();
    assert_eq!(bench.deed().1, Deed::Execute { cap_usd: Some(1.5), no_wait: false });
    bench.done();
    bench.intake();
    bench.checked(PlanFound::Missing);
    bench.planner(over());
    bench.checked(valid());
    bench.ended(RunOutcome::BudgetExhausted, "this run: 2.00 USD of 2.00 USD are spent");
    // Over several runs.
    let within = std::time::Duration::from_secs(7 * 86_400);
    let settings = Settings { window: Some(Window { within, limit_usd: 1.5 }), ..drain() };
    let mut bench = Bench::new(settings.clone(), backlog.clone());
    bench.planned();
    bench.done();
    bench.ended(RunOutcome::BudgetExhausted, "the last 168 h");
    let carried = bench.pipeline.carried().clone();
    Bench::carried(settings.clone(), bench.backlog.clone(), carried.clone(), bench.clock)
        .ended(RunOutcome::BudgetExhausted, "");
    let week = 7 * 86_400_000 + bench.clock;
    Bench::carried(settings, bench.backlog, carried, week).intake();
    // For one item: others go on.
    backlog[0].limit_usd = Some(0.5);
    let mut bench = Bench::new(drain(), backlog);
    bench.planned();
    bench.why("1-a", Standing::Parked, "budget_exhausted: this item: 0.50 USD of 0.50 USD");
    assert_eq!(bench.deed().0.item, slug("2-b"));
    assert_eq!(bench.pipeline.carried().for_the_next().items[&slug("1-a")].parked, None, "the next run looks again");
}

#[test]
fn as_many_items_as_were_asked_for() {
    let backlog =
        || vec![candidate("1-a", Kind::Feature), candidate("2-b", Kind::Feature), candidate("3-c", Kind::Feature)];
    for (settings, items) in [
        (Settings { mode: Mode::Once, ..Settings::default() }, vec!["1-a"]),
        (Settings { max_items: Some(2), ..Settings::default() }, vec!["1-a", "2-b"]),
        (Settings { item: Some(slug("2-b")), ..Settings::default() }, vec!["2-b"]),
        (drain(), vec!["1-a", "2-b", "3-c"]),
    ] {
        let mut bench = Bench::new(settings, backlog());
        for item in &items {
            assert_eq!(bench.deed().0.item, slug(item));
            bench.planned();
            bench.done();
        }
        bench.ended(RunOutcome::Verified, &format!("{} done", items.len()));
    }
    Bench::new(drain(), Vec::new()).ended(RunOutcome::Verified, "nothing to do");
    let settings = Settings { item: Some(slug("9-z")), ..Settings::default() };
    Bench::new(settings, backlog()).ended(RunOutcome::Failed, "no item 9-z");
    let mut held = backlog();
    held[0].held = Some("waits for 2-b".into());
    let settings = Settings { item: Some(slug("1-a")), ..Settings::default() };
    Bench::new(settings, held).ended(RunOutcome::Suspended, "waits for 2-b");
    // One that fails is tried again, and no other meanwhile.
    let mut bench = Bench::new(Settings { mode: Mode::Once, ..Settings::default() }, backlog());
    for _ in 0..2 {
        bench.intake();
        bench.checked(PlanFound::Missing);
        bench.planner(SessionEnd::Failed("boom".into()));
    }
    bench.retired(ItemOutcome::Failed);
    bench.ended(RunOutcome::Failed, "1-a");
}

#[test]
fn an_idle_pipeline_wants_nothing_and_wakes_for_what_is_new() {
    let mut bench = Bench::new(Settings::default(), Vec::new());
    assert!(bench.pipeline.is_idle());
    assert_eq!((bench.pipeline.deadline(), bench.pipeline.outstanding()), (None, &[][..]));
    bench.backlog = feature("1-a");
    let scanned = bench.pipeline.difference(bench.backlog.clone());
    bench.tell(scanned);
    bench.planned();
    bench.done();
    assert!(bench.pipeline.is_idle());
    assert_eq!(bench.pipeline.difference(Vec::new()), Event::Scanned { changed: Vec::new(), gone: Vec::new() });
}

#[test]
fn answers_of_another_time_are_none() {
    let mut bench = Bench::new(drain(), feature("1-a"));
    let (id, _) = bench.deed();
    bench.intake();
    let before = bench.pipeline.doing();
    bench.tell(Event::IntakeEnded { id: id.clone(), intake: Intake::Gone });
    bench.tell(Event::Retired { id, place: "nowhere".into() });
    assert_eq!(bench.pipeline.doing(), before);
    // Nor are answers to something else.
    bench.answer(|id| Event::Retired { id, place: "nowhere".into() });
    assert_eq!(bench.pipeline.carried().items[&slug("1-a")].ended, None);
}

#[test]
fn what_its_author_changes_is_planned_anew() {
    let mut bench = Bench::new(drain(), feature("1-a"));
    bench.planned();
    bench.tell(Event::Stop(StopHow::Now));
    bench.executed(RunOutcome::Stopped);
    bench.backlog[0].hash = "h2".into();
    let mut bench = Bench::carried(drain(), bench.backlog, bench.pipeline.carried().clone(), bench.clock);
    let intake = Intake::Ready { hash: "h2".into(), failed: 0, next: 1 };
    bench.answer(|id| Event::IntakeEnded { id, intake });
    bench.checked(valid());
    assert_eq!(bench.deed().1, Deed::SetAside);
}

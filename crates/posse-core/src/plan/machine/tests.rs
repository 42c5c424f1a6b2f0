//! Tests of runs of small plans, event by event.

use std::collections::BTreeMap;

use super::{Effect, Event, GateFailure, MergeResult, Part, Run, RunId};
use crate::engine::hold::Hold;
use crate::engine::notice::{Notice, NoticeKind};
use crate::engine::{Machine, RunOutcome, StopHow};
use crate::plan::budget::{Level, Usage};
pub(super) use crate::plan::file_tests::id;
use crate::plan::outcome::{Denial, FailedHow, Failure, Outcome};
use crate::plan::report::Report;
use crate::plan::settings::Settings;
use crate::plan::verdict::{Judgement, Verdict};
use crate::plan::{FailureKind, Plan, Record, State, TaskStatus};
use crate::time::Wall;

pub(super) fn done() -> Outcome {
    Outcome::Done(Report::completed("x", "did it"))
}

pub(super) fn failed(kind: FailedHow) -> Failure {
    Failure::new(kind, format!("it failed: {kind}"))
}

pub(super) fn limited(until: i64) -> Outcome {
    Outcome::Limited(Hold { until: Wall(until * 1000), reason: "usage limit".into(), known: true })
}

/// A run and its outstanding effects, driven by hand.
pub(super) struct Table {
    pub(super) run: Run,
    /// The time in seconds.
    pub(super) now: i64,
    pub(super) wants: Vec<Effect>,
    pub(super) told: Vec<Notice>,
    pub(super) finished: Option<(RunOutcome, String)>,
}

impl Table {
    pub(super) fn new(meta: &str, tasks: &str, change: impl FnOnce(&mut Settings)) -> Self {
        let text = format!("meta: {{name: p{meta}}}\nsections:\n  - {{id: s, tasks: [\n{tasks}\n]}}\n");
        let (plan, _) = Plan::read("p", &text).unwrap_or_else(|problems| panic!("{problems}"));
        let mut settings = Settings::of(&plan);
        change(&mut settings);
        Self::of(Run::new("p", &text, State::recorded(&plan), settings, &BTreeMap::new()).unwrap())
    }

    /// Starts this run.
    pub(super) fn of(run: Run) -> Self {
        let mut table = Self { run, now: 0, wants: Vec::new(), told: Vec::new(), finished: None };
        table.tell(Event::Started);
        table
    }

    pub(super) fn tell(&mut self, event: Event) -> &mut Self {
        for effect in self.run.handle(event, Wall(self.now * 1000)) {
            assert!(self.finished.is_none(), "{effect:?} after the end");
            match effect {
                Effect::Notify(notice) => self.told.push(notice),
                Effect::Finish => {
                    self.finished = self.run.outcome().map(|(outcome, reason)| (outcome, reason.to_owned()));
                }
                Effect::WritePlan => {
                    let text = self.run.mirror().unwrap();
                    let (plan, _) = Plan::read("p", &text).unwrap();
                    assert!(
                        State::recorded(&plan).statuses().eq(self.run.state().statuses()),
                        "the file says the same"
                    );
                }
                // Work trees never fail here; only the next effect matters.
                Effect::MakeArea { run } => {
                    self.tell(Event::AreaReady { run });
                }
                effect => self.wants.push(effect),
            }
        }
        self
    }

    /// Returns the requested sessions, as `task.start:model` or `task.start/validator`.
    pub(super) fn sessions(&self) -> Vec<String> {
        let shown = self.wants.iter().filter_map(|effect| match effect {
            Effect::StartSession { run, launch } => Some(match run.part {
                Part::Work => format!("{}.{}:{}", run.task, run.start, launch.model.as_deref().unwrap_or("-")),
                Part::Validation { .. } => format!("{}.{}/{}", run.task, run.start, launch.agent),
            }),
            _ => None,
        });
        shown.collect()
    }

    /// Answers the gates of the task that requested them.
    pub(super) fn gates(&mut self, answer: impl FnOnce(RunId) -> Event) -> &mut Self {
        let Some(Effect::RunGates { run }) = self.wants.pop() else { panic!("no gates") };
        self.tell(answer(run))
    }

    fn take(&mut self, task: &str, wanted: impl Fn(&Effect) -> Option<&RunId>) -> RunId {
        let at = self.wants.iter().position(|effect| wanted(effect).is_some_and(|run| run.task == id(task)));
        let effect = self.wants.remove(at.unwrap_or_else(|| panic!("nothing for {task} in {:?}", self.wants)));
        wanted(&effect).unwrap().clone()
    }

    pub(super) fn session(&mut self, task: &str, outcome: Outcome) -> &mut Self {
        let run = self.take(task, |effect| match effect {
            Effect::StartSession { run, .. } => Some(run),
            _ => None,
        });
        self.now += 10;
        let usage = Usage { cost_usd: Some(1.0), ..Usage::default() };
        self.tell(match run.part {
            Part::Work => Event::SessionEnded { run, outcome, usage },
            Part::Validation { .. } => {
                let judgement = Judgement { verdict: Verdict::Pass, findings: vec!["[PASS] x".into()] };
                Event::ValidatorEnded { run, judgement, outcome, usage }
            }
        })
    }

    pub(super) fn verdict(&mut self, task: &str, verdict: Verdict) -> &mut Self {
        let run = self.take(task, |effect| match effect {
            Effect::StartSession { run, .. } if run.part != Part::Work => Some(run),
            _ => None,
        });
        let judgement = Judgement { verdict, findings: vec![format!("{verdict:?}")] };
        self.tell(Event::ValidatorEnded { run, judgement, outcome: done(), usage: Usage::default() })
    }

    pub(super) fn merge(&mut self, task: &str, result: MergeResult) -> &mut Self {
        let run = self.take(task, |effect| match effect {
            Effect::Merge { run } => Some(run),
            _ => None,
        });
        self.tell(Event::MergeEnded { run, result })
    }

    pub(super) fn merged(&mut self, task: &str) -> &mut Self {
        self.merge(task, MergeResult::Merged { commits: vec!["c".into()] })
    }

    /// Completes and merges a task.
    pub(super) fn done(&mut self, task: &str) -> &mut Self {
        self.session(task, done()).merged(task)
    }

    /// Waits for the next timer. Returns the number of seconds.
    pub(super) fn wait(&mut self) -> i64 {
        let deadline = self.run.deadline().expect("something to wait for").0 / 1000;
        let passed = deadline - self.now;
        self.now = deadline;
        self.tell(Event::Time);
        passed
    }

    pub(super) fn record(&self, task: &str) -> Record {
        self.run.state().get(&id(task)).unwrap().clone()
    }

    #[track_caller]
    pub(super) fn ended(&self, outcome: RunOutcome) {
        assert_eq!(self.finished.as_ref().map(|(outcome, _)| *outcome), Some(outcome), "{:?}", self.finished);
        assert_eq!(self.run.deadline(), None);
    }
}

const GROUP: &str =
    "{id: a, name: A, parallel_group: g},\n{id: b, name: B, parallel_group: g},\n{id: c, name: C, parallel_group: g}";

#[test]
fn one_task_after_the_other_to_the_end() {
    let mut run = Table::new("", "{id: a, name: A},\n{id: b, name: B, depends_on: [a]}", |_| {});
    assert_eq!(run.sessions(), ["a.1:-"]);
    run.session("a", done());
    assert_eq!(run.sessions(), [""; 0], "b waits for the merge");
    run.merged("a");
    assert_eq!(run.sessions(), ["b.1:-"]);
    run.done("b").ended(RunOutcome::Verified);
    assert_eq!(run.record("a").commits, ["c"]);
    assert_eq!(run.record("a").cost_usd, Some(1.0));
    assert_eq!(run.record("b").completed_at.as_deref(), Some("1970-01-01T00:00:20Z"));
}

#[test]
fn t34_t57_a_task_fails_until_its_attempts_are_used_up() {
    let meta = ", model_escalation: {enabled: true}, circuit_breaker_threshold: 9, max_attempts_default: 5";
    let mut run = Table::new(
        meta,
        "{id: a, name: A, parallel_group: g},\n{id: b, name: B, parallel_group: g, status: skipped, skip_reason: x}",
        |s| s.workers = 4,
    );
    for (model, pause) in [("sonnet", 5), ("sonnet", 10), ("opus", 20), ("opus", 40)] {
        assert!(run.sessions()[0].ends_with(model), "{:?}", run.sessions());
        run.session("a", Outcome::Failed(failed(FailedHow::Timeout)));
        assert_eq!(run.wait(), pause);
    }
    run.session("a", Outcome::Failed(failed(FailedHow::Timeout))).ended(RunOutcome::Failed);
    assert_eq!(run.record("a").failure_kind, Some(FailureKind::AttemptsExhausted));
    assert_eq!(run.record("a").attempts, 5);
}

#[test]
fn t13_refused_twice_is_the_end() {
    let mut run = Table::new("", "{id: a, name: A}", |_| {});
    let refused = || Failure {
        denials: vec![Denial { tool: "Write".into(), target: Some("x".into()) }],
        ..failed(FailedHow::NoEvidence)
    };
    run.session("a", Outcome::Failed(refused()));
    run.wait();
    run.session("a", Outcome::Failed(refused())).ended(RunOutcome::Failed);
    let record = run.record("a");
    assert_eq!(record.failure_kind, Some(FailureKind::Denied));
    let advice = record.last_error.unwrap();
    assert!(advice.contains("Write x twice") && advice.contains("posse run retry"), "{advice}");
}

#[test]
fn t26_t28_what_needs_a_failed_task_does_not_run() {
    let tasks =
        "{id: a, name: A, max_attempts: 1},\n{id: b, name: B, depends_on: [a]},\n{id: c, name: C, depends_on: [b]}";
    let mut run = Table::new("", tasks, |_| {});
    run.session("a", Outcome::Failed(failed(FailedHow::Reported))).ended(RunOutcome::Deadlocked);
    let (_, reason) = run.finished.clone().unwrap();
    assert!(reason.contains("c: it waits for b (pending), which waits for a (failed)"), "{reason}");
}

#[test]
fn t35_t56_validation() {
    let meta = ", validation: {enabled: true, validators: [v, w]}";
    let mut run = Table::new(meta, "{id: a, name: A},\n{id: b, name: B}", |_| {});
    run.session("a", done());
    assert_eq!(run.sessions(), ["a.1/v"], "before b");
    assert_eq!(run.record("a").status, TaskStatus::Completed);
    run.verdict("a", Verdict::Pass);
    assert_eq!(run.sessions(), ["a.1/w"]);
    run.verdict("a", Verdict::Fail);
    // Back to the agent, after a pause; b continues meanwhile.
    assert_eq!((run.record("a").status, run.record("a").validation_attempts), (TaskStatus::Pending, 1));
    assert_eq!(run.sessions(), ["b.1:-"]);
    run.session("b", Outcome::Suspended { question: "Which?".into(), context: None });
    assert_eq!(run.sessions(), ["a.2:-"]);
    run.session("a", done()).verdict("a", Verdict::Fail);
    assert_eq!(run.record("a").failure_kind, Some(FailureKind::ValidationExhausted));
    run.ended(RunOutcome::Suspended);
    assert!(!run.wants.iter().any(|effect| matches!(effect, Effect::Merge { .. })), "nothing was merged");
}

#[test]
fn t55_a_validator_that_gives_no_verdict() {
    let mut run = Table::new(", validation: {enabled: true}", "{id: a, name: A}", |_| {});
    run.session("a", done());
    for _ in 0..3 {
        assert_eq!(run.record("a").status, TaskStatus::Completed);
        run.session("a", Outcome::Failed(failed(FailedHow::Tool)));
    }
    assert_eq!((run.record("a").status, run.record("a").attempts), (TaskStatus::Suspended, 1));
    run.ended(RunOutcome::Suspended);

    // A validator's question is passed on.
    let mut run = Table::new(", validation: {enabled: true}", "{id: a, name: A}", |_| {});
    run.session("a", done());
    for _ in 0..3 {
        run.session("a", Outcome::Suspended { question: "which a?".into(), context: None });
    }
    let question = run.record("a").question.unwrap();
    let asked = "the validator gave no verdict in 3 tries: it asks: which a?; answer, and it is asked again";
    assert_eq!(question, asked);
}

/// The policy for warnings, the verdicts, and the task's status and number of failed validations.
#[test]
fn what_follows_from_a_verdict() {
    use Verdict::{Error, Fail, Pass, Warn};
    for (policy, verdicts, status, failed) in [
        ("accept", &[Pass][..], TaskStatus::Verified, 0),
        ("accept", &[Fail, Pass], TaskStatus::Verified, 1),
        // T56.
        ("accept", &[Fail, Fail], TaskStatus::Failed, 2),
        ("accept", &[Warn], TaskStatus::Verified, 0),
        ("retry", &[Warn, Warn], TaskStatus::Verified, 1),
        ("fail", &[Warn, Pass], TaskStatus::Verified, 1),
        ("fail", &[Warn, Warn], TaskStatus::Failed, 2),
        ("accept", &[Error, Error, Pass], TaskStatus::Verified, 0),
        // T55.
        ("accept", &[Error, Error, Error], TaskStatus::Suspended, 0),
    ] {
        let meta = format!(", validation: {{enabled: true, warn_policy: {policy}}}");
        let mut run = Table::new(&meta, "{id: a, name: A}", |_| {});
        run.session("a", done());
        for verdict in verdicts {
            if run.record("a").status == TaskStatus::Pending {
                run.wait();
                run.session("a", done());
            }
            run.verdict("a", *verdict);
        }
        if status == TaskStatus::Verified {
            run.merged("a");
        }
        let record = run.record("a");
        assert_eq!((record.status, record.validation_attempts), (status, failed), "{policy} {verdicts:?}");
    }
}

#[test]
fn warnings_are_accepted_and_told() {
    let mut run = Table::new(", validation: {enabled: true}", "{id: a, name: A}", |_| {});
    run.session("a", done()).verdict("a", Verdict::Warn).merged("a").ended(RunOutcome::CompletedWithWarnings);
}

#[test]
fn t49_a_red_gate_is_a_failed_attempt_and_costs_no_validator() {
    let mut run = Table::new(", validation: {enabled: true}", "{id: a, name: A}", |s| s.has_gates = true);
    run.session("a", done());
    let red = GateFailure { gate: "tests".into(), message: "exited with 1".into(), output: "1 failed".into() };
    run.gates(|run| Event::GatesEnded { run, failed: Some(red) });
    assert_eq!(run.sessions(), [""; 0]);
    run.wait();
    let Some(Effect::StartSession { launch, .. }) = run.wants.last() else { panic!("no session") };
    assert_eq!(launch.before.as_ref().and_then(|before| before.output.as_deref()), Some("1 failed"));
    assert_eq!(launch.attempt, 2);
}

#[test]
fn t60_the_breaker() {
    let mut run = Table::new("", "{id: a, name: A, max_attempts: 9},\n{id: b, name: B}", |_| {});
    let fail = || Outcome::Failed(failed(FailedHow::Tool));
    run.session("a", fail()).session("b", fail());
    run.wait();
    run.session("a", fail());
    assert_eq!(run.sessions(), [""; 0]);
    let open = run.now + 300;
    while run.sessions().is_empty() {
        run.wait();
    }
    assert_eq!((run.now, run.sessions().len()), (open, 1), "one probe");
    run.session("a", fail()).ended(RunOutcome::CircuitOpen);
    assert!(!run.finished.as_ref().unwrap().0.is_success());
}

#[test]
fn t63_t70_a_limit_costs_no_attempt_and_no_work_of_others() {
    let mut run = Table::new("", GROUP, |s| s.workers = 3);
    assert_eq!(run.sessions(), ["a.1:-", "b.1:-", "c.1:-"]);
    run.session("a", done()).session("b", limited(120)).session("c", done()).merged("a").merged("c");
    assert_eq!(run.sessions(), [""; 0]);
    assert_eq!((run.record("b").status, run.record("b").attempts), (TaskStatus::Pending, 0));
    assert_eq!(run.wait(), 90);
    assert_eq!(run.sessions(), ["b.2:-"], "another start, the same attempt");
    run.done("b").ended(RunOutcome::Verified);
}

#[test]
fn a_limit_ends_the_run_if_nobody_wants_to_wait() {
    let mut run = Table::new("", "{id: a, name: A}", |s| s.no_wait = true);
    run.session("a", limited(1000)).ended(RunOutcome::RateLimited);
}

#[test]
fn t73_the_money_is_spent() {
    let level = Level { name: "plan".into(), limit_usd: Some(2.0), ..Level::default() };
    let mut run =
        Table::new("", "{id: a, name: A},\n{id: b, name: B},\n{id: c, name: C}", |s| s.levels = vec![level.clone()]);
    run.done("a").done("b").ended(RunOutcome::BudgetExhausted);
    assert_eq!(run.finished.as_ref().unwrap().1, "plan: 2.00 USD of 2.00 USD are spent");
    // A budget that exactly suffices is enough.
    let mut run = Table::new("", "{id: a, name: A},\n{id: b, name: B}", |s| s.levels = vec![level]);
    run.done("a").done("b").ended(RunOutcome::Verified);
}

#[test]
fn a_part_of_a_plan() {
    let tasks = "{id: a, name: A, status: failed, attempts: 3},\n{id: b, name: B},\n{id: c, name: C, depends_on: [b]}";
    let mut run = Table::new("", tasks, |s| s.from = Some(id("b")));
    for task in ["b", "c"] {
        run.done(task);
    }
    // The run reports that the plan is not complete.
    run.ended(RunOutcome::Failed);
    let mut run = Table::new("", tasks, |s| s.only = Some(id("b")));
    run.done("b").ended(RunOutcome::Verified);
    assert!(!run.run.has_completed_plan(), "a part is not the whole");
    let run = Table::new("", tasks, |s| s.only = Some(id("c")));
    run.ended(RunOutcome::Deadlocked);
}

#[test]
fn t80_a_conflict_is_tried_once_more_and_then_kept() {
    let mut run = Table::new("", "{id: a, name: A}", |_| {});
    run.session("a", done()).merge("a", MergeResult::Conflict { paths: vec!["x".into()] });
    assert_eq!(run.sessions(), ["a.2:-"]);
    assert_eq!(run.record("a").attempts, 1, "the first did not count");
    run.session("a", done()).merge("a", MergeResult::Conflict { paths: vec!["x".into()] });
    run.ended(RunOutcome::Failed);
    assert_eq!(run.record("a").failure_kind, Some(FailureKind::MergeConflict));
}

#[test]
fn what_cannot_be_merged_now_is_merged_when_a_person_says_so() {
    let mut run = Table::new("", "{id: a, name: A},\n{id: b, name: B}", |s| s.workers = 1);
    run.session("a", done()).merge("a", MergeResult::NotNow { why: "commit x".into() });
    assert_eq!(run.record("a").status, TaskStatus::Suspended);
    assert!(run.record("a").question.as_ref().is_some_and(|question| question.contains("commit x")));
    assert_eq!(run.sessions(), ["b.1:-"], "the rest goes on");
    let mut again = Table { run: run.run.clone(), ..Table::new("", "{id: z, name: Z}", |_| {}) };
    run.tell(Event::Answered { task: id("a"), answer: "done".into() }).merged("a");
    assert_eq!((run.record("a").status, run.record("a").attempts), (TaskStatus::Verified, 1));
    assert_eq!(run.sessions(), ["b.1:-"], "the work is not done again");
    // Unless the person requests it.
    again.tell(Event::Retry { task: id("a") });
    assert_eq!((again.record("a").status, again.run.left().len()), (TaskStatus::Pending, 0));
}

#[test]
fn t83_green_alone_and_red_together() {
    let mut run = Table::new("", GROUP, |s| s.workers = 3);
    for task in ["a", "b", "c"] {
        run.session(task, done());
    }
    run.merged("a");
    let red = GateFailure { gate: "tests".into(), message: "red".into(), output: String::new() };
    run.merge("b", MergeResult::RedTogether(red)).merged("c");
    run.wait();
    assert_eq!(run.sessions(), ["b.2:-"]);
}

#[test]
fn t84_stop_after_the_task_keeps_its_result() {
    let mut run = Table::new("", "{id: a, name: A},\n{id: b, name: B}", |_| {});
    run.tell(Event::Stop(StopHow::AfterTask));
    assert_eq!(run.finished, None);
    run.done("a").ended(RunOutcome::Stopped);
    assert_eq!(run.record("a").status, TaskStatus::Verified);
}

#[test]
fn t85_stop_now_costs_nothing() {
    let mut run = Table::new("", "{id: a, name: A}", |_| {});
    run.tell(Event::Stop(StopHow::Now));
    assert!(matches!(run.wants.last(), Some(Effect::EndSession { .. })));
    run.session("a", Outcome::Interrupted).ended(RunOutcome::Stopped);
    assert_eq!((run.record("a").status, run.record("a").attempts), (TaskStatus::Pending, 0));
}

/// Lost sessions and checks that cannot run cost no attempt, and the retries are bounded.
#[test]
fn t86_a_session_that_is_lost_again_and_again() {
    for has_gates in [false, true] {
        let mut run = Table::new(", circuit_breaker_threshold: 9", "{id: a, name: A}", |s| s.has_gates = has_gates);
        for time in 1..=3 {
            if has_gates {
                run.session("a", done());
                run.gates(|run| Event::GatesNotRun { run, why: "index.lock is there".into() });
            } else {
                run.session("a", Outcome::Infra(failed(FailedHow::Lost)));
            }
            assert_eq!(run.record("a").attempts, 0);
            if time < 3 {
                run.wait();
            }
        }
        run.ended(RunOutcome::Failed);
        assert_eq!(run.record("a").failure_kind, Some(FailureKind::Config));
        assert!(run.record("a").last_error.unwrap().starts_with("3 times in a row: "));
    }
}

#[test]
fn t90_an_answer_reaches_the_task() {
    let mut run = Table::new("", "{id: a, name: A},\n{id: b, name: B}", |_| {});
    run.session("a", Outcome::Suspended { question: "Which?".into(), context: Some("x or y".into()) });
    let asked = "task a asks: Which?\n\nx or y\n`posse run answer p a TEXT` answers";
    assert!(run.told.contains(&Notice::new(NoticeKind::Question, asked.into())));
    run.tell(Event::Answered { task: id("a"), answer: "x".into() }).done("b");
    assert_eq!(run.sessions(), ["a.2:-"]);
    let record = run.record("a");
    assert_eq!((record.question.as_deref(), record.answer.as_deref()), (Some("Which?\n\nx or y"), Some("x")));
    run.done("a").ended(RunOutcome::Verified);
}

#[test]
fn t23_a_task_that_a_session_added_is_run() {
    let mut run = Table::new("", "{id: a, name: A}", |_| {});
    let ours = run.run.mirror().unwrap().to_string();
    let theirs =
        ours.replace("\n]}", ",\n{id: new, name: New, depends_on: [a]}\n]}").replace("name: p", "name: p, parallel: 9");
    run.tell(Event::PlanEdited { ours, theirs });
    let rejected = "not taken over: meta: parallel cannot be changed while the plan runs";
    assert_eq!(run.told, [Notice::new(NoticeKind::EditRejected, rejected.into())]);
    run.done("a");
    assert_eq!(run.sessions(), ["new.1:-"]);
}

#[test]
fn what_nobody_waits_for_changes_nothing() {
    let mut run = Table::new("", "{id: a, name: A}", |_| {});
    let before = run.run.state().clone();
    let other = |start| RunId { task: id("a"), start, part: Part::Work };
    run.tell(Event::SessionEnded { run: other(7), outcome: done(), usage: Usage::default() });
    run.tell(Event::GatesEnded { run: other(1), failed: None });
    run.tell(Event::MergeEnded { run: other(1), result: MergeResult::Merged { commits: Vec::new() } });
    run.tell(Event::Answered { task: id("nobody"), answer: "x".into() }).tell(Event::Retry { task: id("a") });
    assert_eq!(*run.run.state(), before);
}

#[test]
fn what_an_earlier_run_left_behind() {
    let text = "meta: {name: p, validation: {enabled: true, run_after: [tester]}}\nsections:\n  - {id: s, tasks: [\n{id: a, name: A, status: in_progress, attempts: 2},\n{id: b, name: B, agent: tester, status: completed, attempts: 1}]}\n";
    let (plan, _) = Plan::read("p", text).unwrap();
    let starts = BTreeMap::from([(id("a"), 4)]);
    let mut run = Table::of(Run::new("p", text, State::recorded(&plan), Settings::of(&plan), &starts).unwrap());
    assert_eq!((run.record("a").status, run.record("a").attempts), (TaskStatus::Pending, 1));
    assert_eq!(run.sessions(), ["b.0/validator"]);
    run.verdict("b", Verdict::Pass).merged("b");
    assert_eq!(run.sessions(), ["a.5:-"]);
}

/// Refunded attempts are not failures: after two exhausted quotas the model stays the same.
#[test]
fn t59_limits_do_not_escalate() {
    let meta = ", model_escalation: {enabled: true, escalate_after: 1}";
    let mut run = Table::new(meta, "{id: a, name: A}", |_| {});
    for start in 1..=2 {
        assert_eq!(run.sessions(), [format!("a.{start}:sonnet")]);
        let reset = run.now + 600;
        run.session("a", limited(reset));
        run.wait();
    }
    assert_eq!(run.sessions(), ["a.3:sonnet"]);
    // A failure raises the model.
    run.session("a", Outcome::Failed(failed(FailedHow::Timeout)));
    run.wait();
    assert_eq!(run.sessions(), ["a.4:opus"]);
}

#[test]
fn judge_model_replaces_the_model_of_planners_only() {
    for (agent, model) in [("planner", "opus"), ("design-judge", "opus"), ("coder", "haiku")] {
        let task = format!("{{id: a, name: A, agent: {agent}, model: haiku}}");
        let run = Table::new(", judge_model: opus", &task, |_| {});
        assert_eq!(run.sessions(), [format!("a.1:{model}")], "{agent}");
    }
}

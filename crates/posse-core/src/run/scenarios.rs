//! Scenarios of the spec that are about a whole run: how it starts, stops, goes on and ends. What happens is told step by
//! step; what the run wants is compared in a few words.

mod alone;
mod cooldown;
mod going_on;
mod imported;
mod settling;

use std::collections::BTreeMap;
use std::time::Duration;

use super::simulation::world::spec_of;
use super::*;
use crate::engine::Machine;
use crate::review_loop::Key;
use crate::review_loop::state::StateFile;
use crate::status::StatusKind::{self, Completed, Idle, Processing};
use crate::time::{Mono, Wall};
use crate::turn::{self, Event, Look, Seen};

const HOUR: i64 = 3_600_000;
const APPROVED: &str = "REVIEW_RESULT: APPROVED\nREVIEW_NOTES:\n\
    - proposal verified, P1 traceability coverage complete, downstream module src/a.rs, handoff lists 3 steps\n\
    - implementation and diff read, test command run, regression risk low, no defect left to fix";

const PASSED: &str = "RESULT: PASS\nEVIDENCE:\n- hello";

/// A run and whoever drives it, both clocks in one hand.
struct Bench {
    spec: Spec,
    run: Run,
    now: Duration,
    /// How far the wall clock was moved.
    moved: i64,
    journal: Vec<(Wall, Input)>,
    told: Vec<Entry>,
}

impl Bench {
    fn new(config: &str) -> Self {
        Self::of(spec_of(config))
    }

    fn of(spec: Spec) -> Self {
        let run = Run::new(spec.clone(), Wall(0));
        Self { spec, run, now: Duration::from_secs(1), moved: 0, journal: Vec::new(), told: Vec::new() }
    }

    /// With five terminals, and the analyst's first turn about to begin.
    fn started(config: &str) -> Self {
        let mut bench = Self::new(config);
        bench.go(&[]);
        for (nth, role) in Role::ALL.into_iter().enumerate() {
            bench.happens(RunEvent::TerminalStarted { role, terminal: Ok(terminal(nth)) });
        }
        bench
    }

    /// The analyst has its prompt.
    fn asked(config: &str) -> Self {
        let mut bench = Self::started(config);
        bench.ask();
        bench
    }

    /// The terminal of the turn that has begun is quiet and takes its prompt.
    fn ask(&mut self) {
        let turn = self.run.turns;
        assert_eq!(self.status(Idle), ["clear stale"]);
        let sends = self.happens(RunEvent::StaleCleared { turn, stale: Ok(None), printed: None });
        assert_eq!(sends, ["dispatching", "send"]);
        self.happens(RunEvent::Sent { turn, sent: Sent::Taken });
    }

    /// One whole turn.
    fn answer(&mut self, text: &str) -> Vec<String> {
        self.ask();
        let turn = self.run.turns;
        self.status(Processing);
        self.status(Completed);
        let answered = self.turn(Event::File(Look::Ready(text.into())));
        assert!(answered.contains(&"archive".into()), "{answered:?}");
        self.happens(RunEvent::Archived { turn, name: Some("a.md".into()) })
    }

    /// From the beginning to the tester's turn.
    fn to_the_test(config: &str) -> Self {
        let mut bench = Self::new(config);
        if bench.go(&[]) == ["take snapshot"] {
            bench.happens(RunEvent::Snapshot(None));
        }
        for (nth, role) in Role::ALL.into_iter().enumerate() {
            bench.happens(RunEvent::TerminalStarted { role, terminal: Ok(terminal(nth)) });
        }
        for text in ["ANALYST_SUMMARY", APPROVED, "PROGRAMMER_SUMMARY", APPROVED] {
            bench.answer(text);
        }
        assert_eq!(bench.run.turn().unwrap().key, Key::Tester);
        bench
    }

    fn go(&mut self, alive: &[TerminalId]) -> Vec<String> {
        self.go_with(alive, HURRIED)
    }

    fn go_with(&mut self, alive: &[TerminalId], caller: Option<Caller>) -> Vec<String> {
        let alive = alive.iter().copied().collect();
        self.happens(RunEvent::Go { alive, adopted: BTreeMap::new(), caller })
    }

    fn turn(&mut self, event: Event) -> Vec<String> {
        let turn = self.run.turns;
        self.happens(RunEvent::Turn { turn, event })
    }

    fn status(&mut self, kind: StatusKind) -> Vec<String> {
        let terminal = self.run.turn().unwrap().terminal;
        self.happens(RunEvent::Status { terminal, seen: Seen { kind: Some(kind), ..Seen::default() } })
    }

    fn happens(&mut self, happened: RunEvent) -> Vec<String> {
        let wall = Wall(self.now.as_millis() as i64 + self.moved);
        let input = Input { mono: Mono(self.now), event: happened };
        self.journal.push((wall, input.clone()));
        let effects = self.run.handle(input, wall);
        let told: Vec<Entry> = self.run.told().map(|(_, entry)| entry.clone()).collect();
        let mut all: Vec<String> = told.iter().map(name).chain(effects.iter().flat_map(words)).collect();
        self.told.extend(told);
        if effects.iter().any(|effect| matches!(effect, Effect::Close { .. })) {
            all.extend(self.happens(RunEvent::Closed));
        }
        all
    }

    /// posse dies, and the run is read back from its journal.
    fn dies(&mut self) {
        let mut run = Run::new(self.spec.clone(), Wall(0));
        for (at, input) in self.journal.clone() {
            run.handle(input, at);
        }
        assert_eq!(format!("{run:#?}"), format!("{:#?}", self.run));
        self.run = run;
    }

    fn last_words(&self) -> String {
        let (_, why) = self.run.stopped.clone().expect("it has stopped");
        why
    }
}

fn terminal(nth: usize) -> TerminalId {
    TerminalId::from_random(0xa000_0000 + nth as u32)
}

fn all() -> Vec<TerminalId> {
    (0..5).map(terminal).collect()
}

/// An agent that asks for a permission.
fn permission(name: &str) -> Seen {
    Seen {
        kind: Some(StatusKind::WaitingUserAnswer),
        waiting: Some(crate::status::WaitingKind::Permission),
        question: Some(name.into()),
        plain_yes: true,
        ..Seen::default()
    }
}

/// What is told, in a few words.
fn name(entry: &Entry) -> String {
    let value = serde_json::to_value(entry).unwrap();
    value["entry"].as_str().unwrap().replace('_', " ")
}

fn says(state: &StateFile) -> String {
    format!("mirror {}", format!("{:?}", state.final_status).to_uppercase())
}

/// An effect in a few words.
fn words(effect: &Effect) -> Vec<String> {
    let words = match effect {
        Effect::StartTerminal { role, name, .. } => format!("start {role} {name}"),
        Effect::Watch(_) => "watch".into(),
        Effect::ClearStale { .. } => "clear stale".into(),
        Effect::Send(_) => "send".into(),
        Effect::Remind { n, .. } => format!("remind {n}"),
        Effect::LookAtFile { lived_until: None, .. } => "look at file".into(),
        Effect::LookAtFile { lived_until: Some(_), .. } => "look for a whole file".into(),
        Effect::Accept { n, .. } => format!("accept {n}"),
        Effect::AskLastOutput { .. } => "ask last output".into(),
        Effect::Archive { suffix: None, .. } => "archive".into(),
        Effect::Archive { .. } => "keep late".into(),
        Effect::Notify { event, .. } => format!("notify {event}"),
        Effect::TakeSnapshot => "take snapshot".into(),
        Effect::WriteState(state) => says(state),
        Effect::Step { step, .. } => format!("{step:?}"),
        Effect::Close { terminals, state, over } => {
            let end = (!terminals.is_empty()).then(|| format!("end {} terminals", terminals.len()));
            let archive = over.then(|| "archive state".to_owned());
            return end.into_iter().chain(state.iter().map(|state| says(state))).chain(archive).collect();
        }
    };
    vec![words]
}

/// The error names the agent that failed to start, and the other agents are ended.
#[test]
fn s_169_the_third_terminal_fails_and_nothing_is_left_behind() {
    for lost in [&[Role::Programmer][..], &[Role::Analyst, Role::Tester], &[Role::Tester]] {
        let mut bench = Bench::new("{}");
        let started = bench.go(&[]);
        assert_eq!(started.iter().filter(|words| words.starts_with("start ")).count(), 5, "{started:?}");
        let mut all = Vec::new();
        for (nth, role) in Role::ALL.into_iter().enumerate() {
            all.extend(bench.happens(match lost.contains(&role) {
                true => RunEvent::TerminalStarted { role, terminal: Err(format!("no {role} here")) },
                false => RunEvent::TerminalStarted { role, terminal: Ok(terminal(nth)) },
            }));
        }
        let (started, stopped) = all.split_at(5);
        assert_eq!(started.iter().filter(|words| *words == "terminal lost").count(), lost.len(), "{started:?}");
        let end = format!("end {} terminals", 5 - lost.len());
        assert_eq!(stopped, [&end, "stopped", "notify stopped"], "no state file was written");
        assert_eq!(bench.run.status(), RunStatus::Failed);
        assert_eq!(bench.last_words(), format!("the {0} could not be started: no {0} here", lost[0]));
    }
}

#[test]
fn s_170_a_terminal_that_came_up_while_nobody_looked_is_found_again() {
    let mut bench = Bench::new("{}");
    bench.go(&[]);
    for (nth, role) in Role::ALL.into_iter().enumerate().skip(1) {
        bench.happens(RunEvent::TerminalStarted { role, terminal: Ok(terminal(nth)) });
    }
    bench.dies();
    assert_eq!(bench.run.starting, BTreeMap::from([(Role::Analyst, "analyst-feed".to_owned())]));
    let alive = all().into_iter().collect();
    let adopted = BTreeMap::from([(Role::Analyst, terminal(0))]);
    let went_on = bench.happens(RunEvent::Go { alive, adopted, caller: HURRIED });
    let expected = ["resumed", "terminal ready", "turn begun", "mirror RUNNING", "watch"];
    assert_eq!(went_on, expected, "it is not started a second time");
}

#[test]
fn s_191_a_stop_in_a_turn_saves_the_state_and_nothing_follows() {
    let mut bench = Bench::asked("{}");
    bench.status(Processing);
    let stopped = bench.happens(RunEvent::Stop { why: "Ctrl-C".into() });
    // The state first: who waits for the stop finds it.
    assert_eq!(stopped, ["mirror RUNNING", "stopped"]);
    assert_eq!(bench.run.status(), RunStatus::Stopped);
    // What was under way comes back to nobody.
    assert!(bench.turn(Event::File(Look::Ready("late".into()))).is_empty());
    assert!(bench.status(Completed).is_empty());
    assert!(bench.happens(RunEvent::Time).is_empty());
    assert!(bench.happens(RunEvent::Stop { why: "again".into() }).is_empty());
    let mut bench = Bench::asked(r#"{"cleanup_on_exit": true}"#);
    let stopped = bench.happens(RunEvent::Stop { why: "Ctrl-C".into() });
    assert_eq!(stopped, ["end 5 terminals", "mirror RUNNING", "stopped"]);
}

#[test]
fn s_192_a_stop_before_a_run_goes_on_changes_nothing() {
    let mut bench = Bench::new("{}");
    assert!(bench.happens(RunEvent::Stop { why: "SIGTERM".into() }).is_empty());
    assert_eq!(bench.run.status(), RunStatus::Running);
    let mut bench = Bench::asked("{}");
    bench.happens(RunEvent::Stop { why: "Ctrl-C".into() });
    bench.dies();
    assert!(bench.happens(RunEvent::Stop { why: "SIGTERM".into() }).is_empty());
    assert_eq!(bench.last_words(), "Ctrl-C");
}

#[test]
fn s_158_a_terminal_that_is_gone_stops_the_run_and_is_replaced_when_it_goes_on() {
    let gone = || Event::Gone("its program exited with 9".into());
    // In its turn, and between two of its turns.
    for asked in [true, false] {
        let mut bench = if asked { Bench::asked("{}") } else { Bench::started("{}") };
        let failed = bench.turn(gone());
        let expected = ["turn failed", "terminal lost", "mirror RUNNING", "stopped", "notify stopped"];
        assert_eq!(failed, expected, "asked: {asked}");
        assert!(bench.last_words().contains("is gone"), "{}", bench.last_words());
        assert_eq!(bench.run.status(), RunStatus::Stopped);
        let mut again = bench.go(&all()[1..]);
        // It may have written its answer before it went.
        if asked {
            assert_eq!(again, ["resumed", "look for a whole file"]);
            again = [vec!["resumed".into()], bench.turn(Event::File(Look::Absent))].concat();
        }
        assert_eq!(again, ["resumed", "terminal wanted", "start analyst analyst-feed-2"], "asked: {asked}");
        let new = bench.happens(RunEvent::TerminalStarted { role: Role::Analyst, terminal: Ok(terminal(9)) });
        assert_eq!(new, ["terminal ready", "turn begun", "mirror RUNNING", "watch"]);
        let turn = bench.run.turn().unwrap();
        assert!(turn.terminal == terminal(9) && turn.text.contains("Say hello."), "it is told everything: {turn:?}");
    }
}

#[test]
fn s_199_an_agent_that_is_still_at_it_is_waited_for_and_not_asked_again() {
    let mut bench = Bench::asked("{}");
    bench.dies();
    assert_eq!(bench.go(&all()), ["resumed", "watch"]);
    assert!(bench.status(Processing).is_empty());
    assert_eq!(bench.status(Completed), ["look at file"]);
    let answered = bench.turn(Event::File(Look::Ready("ANALYST_SUMMARY".into())));
    assert_eq!(answered, ["answered", "archive"]);
}

#[test]
fn s_200_an_answer_that_came_meanwhile_is_used() {
    let mut bench = Bench::asked("{}");
    bench.dies();
    bench.go(&all());
    assert_eq!(bench.status(Idle), ["look at file"]);
    let answered = bench.turn(Event::File(Look::Ready("ANALYST_SUMMARY".into())));
    assert_eq!(answered, ["answered", "archive"]);
    // Its terminal is gone, its answer is not.
    let mut bench = Bench::asked("{}");
    bench.dies();
    assert_eq!(bench.go(&all()[1..]), ["resumed", "terminal lost", "turn failed", "look for a whole file"]);
    let answered = bench.turn(Event::File(Look::Ready("\nANALYST_SUMMARY\n".into())));
    assert_eq!(answered, ["said", "answered", "archive"]);
    assert!(
        matches!(bench.told.last(), Some(Entry::Answered { text, .. }) if text == "ANALYST_SUMMARY"),
        "as any other"
    );
}

#[test]
fn s_116_what_came_too_late_is_kept_and_named() {
    let mut bench = Bench::asked("{}");
    bench.status(Processing);
    bench.now += Duration::from_secs(1_801);
    assert_eq!(bench.happens(RunEvent::Time), ["keep late"], "the message waits for the name");
    assert!(bench.happens(RunEvent::Time).is_empty());
    let kept = bench.happens(RunEvent::Archived { turn: 1, name: Some("001-analyst-late.md".into()) });
    assert_eq!(kept, ["kept late", "turn failed", "mirror RUNNING", "stopped", "notify stopped"]);
    assert!(bench.last_words().contains("001-analyst-late.md"), "{}", bench.last_words());
    // There was none.
    let mut bench = Bench::asked("{}");
    bench.status(Processing);
    bench.now += Duration::from_secs(1_801);
    bench.happens(RunEvent::Time);
    let failed = bench.happens(RunEvent::Archived { turn: 1, name: None });
    assert_eq!(failed[0], "turn failed");
    assert!(!bench.last_words().contains("kept as"), "{}", bench.last_words());
}

#[test]
fn an_older_answer_that_cannot_be_moved_is_never_taken_for_the_new_one() {
    let mut bench = Bench::started("{}");
    bench.status(Idle);
    let failed = bench.happens(RunEvent::StaleCleared { turn: 1, stale: Err("no space left".into()), printed: None });
    assert_eq!(failed, ["turn failed", "mirror RUNNING", "stopped", "notify stopped"], "nothing is sent");
    assert!(bench.last_words().contains("no space left"), "{}", bench.last_words());
    let again = bench.go(&all());
    assert_eq!(again[..3], ["resumed", "turn begun", "mirror RUNNING"]);
}

#[test]
fn s_123_a_wall_clock_that_is_set_back_changes_nothing() {
    let mut bench = Bench::asked("{}");
    bench.status(Processing);
    let deadline = bench.run.due();
    bench.moved = -HOUR;
    assert!(bench.happens(RunEvent::Time).is_empty());
    assert!(bench.status(Processing).is_empty());
    assert_eq!(bench.run.due(), deadline);
    bench.status(Completed);
    let grace = bench.run.due();
    bench.moved = HOUR;
    assert!(bench.happens(RunEvent::Time).is_empty());
    assert_eq!(bench.run.due(), grace);
    // Read back with a clock that was set back: no more time than a new turn, and no less than none.
    bench.moved = -HOUR;
    bench.dies();
    bench.go(&all());
    bench.status(Processing);
    let left = bench.run.due().unwrap().0 - bench.now;
    assert_eq!(left.as_secs(), 1_800);
}

#[test]
fn s_188_after_the_last_round_it_has_failed_and_its_state_is_archived() {
    let mut bench = Bench::to_the_test(r#"{"limits": {"min_review_cycles_before_approval": 1, "max_rounds": 1}}"#);
    let ended = bench.answer("RESULT: FAIL\nEVIDENCE:\n- no hello");
    let end = ["mirror FAIL", "archive state", "finished", "notify fail"];
    assert_eq!(ended[ended.len() - end.len()..], end, "{ended:?}");
    assert_eq!(bench.run.status(), RunStatus::Failed);
    assert!(bench.go(&all()).is_empty(), "what is over is over");
}

#[test]
fn s_189_what_could_not_be_archived_is_not_committed_and_it_has_passed_all_the_same() {
    let config = r#"{"limits": {"min_review_cycles_before_approval": 1},
        "post_processing": {"openspec_archive": true, "git_commit": true}}"#;
    let play = |outcome| {
        let mut bench = Bench::to_the_test(config);
        let passed = bench.answer(PASSED);
        assert_eq!(passed.last().map(String::as_str), Some("OpenspecArchive"), "{passed:?}");
        let next = bench.happens(RunEvent::StepDone { step: Step::OpenspecArchive, outcome });
        (next, bench.run.status())
    };
    let (next, status) = play(StepOutcome::Failed("it timed out".into()));
    assert_eq!(next, ["step done", "mirror PASS", "archive state", "finished", "notify pass"]);
    assert_eq!(status, RunStatus::Passed);
    let (next, status) = play(StepOutcome::Skipped("no change".into()));
    assert_eq!((&next[1..], status), (&["GitCommit".to_owned()][..], RunStatus::Running));
}

#[test]
fn s_10_a_new_turn_counts_its_accepts_from_the_beginning() {
    let mut bench = Bench::asked(r#"{"handoff": {"auto_accept_permissions": true}}"#);
    let seen = |seen| RunEvent::Status { terminal: terminal(0), seen };
    assert_eq!(bench.happens(seen(permission("a"))), ["accepting", "accept 1"]);
    assert_eq!(bench.turn(Event::Accepted(Ok(()))), ["accepted"]);
    bench.now += Duration::from_secs(6);
    assert_eq!(bench.happens(seen(permission("b"))), ["accepting", "accept 2"]);
    bench.turn(Event::Accepted(Ok(())));
    // As many as before, when the run is read back.
    bench.dies();
    bench.go(&all());
    assert_eq!(bench.run.turn().unwrap().accepts, 2);
    bench.now += Duration::from_secs(6);
    assert_eq!(bench.happens(seen(permission("c"))), ["accepting", "accept 3"]);
    bench.turn(Event::Accepted(Err(turn::AcceptFailure::Refused("409".into()))));
    assert_eq!(bench.run.turn().unwrap().accepts, 2, "what was refused does not count");
    bench.status(Completed);
    bench.turn(Event::File(Look::Ready("ANALYST_SUMMARY".into())));
    bench.happens(RunEvent::Archived { turn: 1, name: None });
    assert_eq!(bench.run.turn().unwrap().accepts, 0);
}

#[test]
fn s_8_s_10_a_turn_that_a_person_goes_on_with_counts_from_the_beginning() {
    let mut bench = Bench::asked(r#"{"handoff": {"auto_accept_permissions": true}}"#);
    let asks = |n: u32| RunEvent::Status { terminal: terminal(0), seen: permission(&format!("q{n}")) };
    for n in 1..=20 {
        assert_eq!(bench.happens(asks(n)), ["accepting", &format!("accept {n}")]);
        bench.turn(Event::Accepted(Ok(())));
        bench.now += Duration::from_secs(6);
    }
    let failed = bench.happens(asks(21));
    assert_eq!(failed[0], "turn failed", "{failed:?}");
    assert!(bench.last_words().contains("20"), "{}", bench.last_words());
    // A crash is nobody's decision; whoever resumes it has looked.
    bench.dies();
    assert_eq!(bench.go(&all()), ["resumed", "watch"]);
    assert_eq!(bench.happens(asks(21)), ["said", "watch"]);
    assert_eq!(bench.run.turn().unwrap().accepts, 0);
    assert_eq!(bench.happens(asks(21)), ["accepting", "accept 1"], "no prompt was sent, and the turn goes on");
    bench.turn(Event::Accepted(Ok(())));
    // Killed and taken up by the next posse, it counts on.
    bench.dies();
    bench.go_with(&all(), None);
    bench.now += Duration::from_secs(6);
    assert_eq!(bench.happens(asks(22)), ["accepting", "accept 2"]);
}

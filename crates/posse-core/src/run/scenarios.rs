//! Scenarios of the spec about a whole run: start, stop, resume and end. Each scenario is a table of steps, with the
//! entries and effects that follow in a few words.

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
use crate::status::{StatusKind, WaitingKind};
use crate::time::{Mono, Wall};
use crate::turn::{AcceptFailure, Event, Look, Seen};

const HOUR: i64 = 3_600_000;
const ACCEPTS: &str = r#"{"handoff": {"auto_accept_permissions": true}}"#;
const APPROVED: &str = "REVIEW_RESULT: APPROVED\nREVIEW_NOTES:\n\
    - proposal verified, P1 traceability coverage complete, downstream module src/a.rs, handoff lists 3 steps\n\
    - implementation and diff read, test command run, regression risk low, no defect left to fix";

/// A run and its driver, with control over both clocks.
struct Bench {
    spec: Spec,
    run: Run,
    now: Duration,
    /// Offset of the wall clock.
    moved: i64,
    journal: Vec<(Wall, Input)>,
    told: Vec<Entry>,
}

/// Plays a scenario with this configuration.
#[track_caller]
fn play(config: &str, script: &str) -> Bench {
    let mut bench = Bench::of(spec_of(config));
    bench.play(script);
    bench
}

impl Bench {
    fn of(spec: Spec) -> Self {
        let run = Run::new(spec.clone(), Wall(0));
        Self { spec, run, now: Duration::from_secs(1), moved: 0, journal: Vec::new(), told: Vec::new() }
    }

    /// Plays the lines `step -> entries, effects`. `...` stands for anything.
    #[track_caller]
    fn play(&mut self, script: &str) {
        for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let (step, expected) = line.split_once("->").map_or((line, None), |(step, follows)| (step, Some(follows)));
            let follows = self.step(step.trim()).join(", ");
            let Some(expected) = expected.map(str::trim) else { continue };
            let fits = match (expected.strip_prefix("..., "), expected.strip_suffix(", ...")) {
                (Some(_), Some(_)) => follows.contains(expected.trim_matches([',', ' ', '.'])),
                (Some(end), None) => follows.ends_with(end),
                (None, Some(start)) => follows.starts_with(start),
                (None, None) => follows == expected,
            };
            assert!(fits, "{line}\nbut it was: {follows}\n{script}");
        }
    }

    #[track_caller]
    fn step(&mut self, step: &str) -> Vec<String> {
        let (word, rest) = step.split_once(' ').unwrap_or((step, ""));
        let text = || rest.to_owned();
        let says = |kind| Seen { kind: Some(kind), ..Seen::default() };
        match word {
            // posse and its agents.
            "go" => return self.go(rest),
            "dies" => self.dies(),
            "came" => return self.happens(RunEvent::Came(Caller { hurry: rest != "back", auto_accept: None })),
            "stop" => return self.happens(RunEvent::Stop { why: text() }),
            "time" => return self.happens(RunEvent::Time),
            "wait" => self.now += Duration::from_secs(rest.parse().unwrap()),
            "ready" => {
                let role = *self.run.starting.keys().next().unwrap();
                return self.happens(RunEvent::TerminalStarted { role, terminal: Ok(terminal(rest.parse().unwrap())) });
            }
            // Events of the turn's terminal.
            "idle" => return self.sees(says(StatusKind::Idle)),
            "busy" => return self.sees(says(StatusKind::Processing)),
            "completed" => return self.sees(says(StatusKind::Completed)),
            "error" => {
                let words = Some(text()).filter(|words| !words.is_empty());
                return self.sees(Seen { words, ..says(StatusKind::Error) });
            }
            "asks" => return self.sees(permission(rest)),
            "gone" => return self.turn(Event::Gone("its program exited with 9".into())),
            // Results of the prompt, questions and answer.
            "cleared" => return self.of_turn(TurnEvent::StaleCleared { stale: Ok(None), printed: None }),
            "stuck" => return self.of_turn(TurnEvent::StaleCleared { stale: Err(text()), printed: None }),
            "sent" => return self.of_turn(TurnEvent::Sent(Sent::Taken)),
            "unsent" => return self.of_turn(TurnEvent::Sent(Sent::Not(text()))),
            "uncertain" => return self.of_turn(TurnEvent::Sent(Sent::Uncertain(text()))),
            "accepted" => return self.turn(Event::Accepted(Ok(()))),
            "refused" => return self.turn(Event::Accepted(Err(AcceptFailure::Refused("409".into())))),
            "file" => return self.turn(Event::File(Look::Ready(rest.replace("\\n", "\n")))),
            "nothing" => return self.turn(Event::File(Look::Absent)),
            "archived" => return self.of_turn(TurnEvent::Archived(Some(text()).filter(|name| !name.is_empty()))),
            // Several events at once.
            "started" => {
                if self.go("none") == ["take snapshot"] {
                    self.happens(RunEvent::Snapshot(None));
                }
                (0..5).for_each(|nth| self.play(&format!("ready {nth}")));
            }
            "asked" => self.play("started\nask"),
            "ask" => self.play("idle -> clear stale\ncleared -> dispatching, send\nsent"),
            "parked" => self.play(
                "asked
                 error API Error: 529 Overloaded -> turn failed, said, mirror RUNNING, notify parked",
            ),
            "answer" => return self.answer(rest),
            "testing" => {
                self.play("started");
                for text in ["ANALYST_SUMMARY", APPROVED, "PROGRAMMER_SUMMARY", APPROVED] {
                    self.answer(text);
                }
                assert_eq!(self.run.turn().unwrap().key, Key::Tester);
            }
            // Assertions.
            "is" => assert_eq!(self.run.status().as_str(), rest),
            "says" => assert!(self.last_words().contains(rest), "{rest}: {}", self.last_words()),
            "accepts" => assert_eq!(self.run.turn().unwrap().accepts.to_string(), rest),
            "was" => {
                assert!(matches!(self.told.last(), Some(Entry::Answered { text, .. }) if text == rest), "as any other");
            }
            _ => panic!("{step:?} is no step"),
        }
        Vec::new()
    }

    /// Resumes with these terminals alive: `none`, `others` than the first, or all. The caller is a person, unless it
    /// is a `patient` client or absent (`alone`).
    fn go(&mut self, how: &str) -> Vec<String> {
        let has = |word| how.split(' ').any(|other| other == word);
        let dead = if has("none") { 5 } else { usize::from(has("others")) };
        let alive = (dead..5).map(terminal).collect();
        let adopted = self.run.starting.keys().map(|role| (*role, terminal(*role as usize)));
        let adopted = adopted.filter(|_| has("adopting")).collect();
        let caller = Some(Caller { hurry: !has("patient"), auto_accept: None }).filter(|_| !has("alone"));
        self.happens(RunEvent::Go { alive, adopted, caller })
    }

    /// Plays one whole turn.
    fn answer(&mut self, text: &str) -> Vec<String> {
        self.play("ask\nbusy\ncompleted");
        let answered = self.turn(Event::File(Look::Ready(text.into())));
        assert!(answered.contains(&"archive".into()), "{answered:?}");
        self.step("archived a.md")
    }

    fn of_turn(&mut self, event: TurnEvent) -> Vec<String> {
        let turn = self.run.turns;
        self.happens(RunEvent::Turn { turn, event })
    }

    fn turn(&mut self, event: Event) -> Vec<String> {
        self.of_turn(TurnEvent::Waiting(event))
    }

    fn sees(&mut self, seen: Seen) -> Vec<String> {
        let terminal = self.run.turn().map_or(terminal(0), |turn| turn.terminal);
        self.happens(RunEvent::Status { terminal, seen })
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

    /// Kills posse and replays the run from its journal.
    fn dies(&mut self) {
        let mut run = Run::new(self.spec.clone(), Wall(0));
        for (at, input) in self.journal.clone() {
            run.handle(input, at);
        }
        assert_eq!(format!("{run:#?}"), format!("{:#?}", self.run));
        self.run = run;
    }

    fn last_words(&self) -> &str {
        self.run.stopped.expect("it has stopped");
        self.run.outcome().map_or("", |(_, why)| why)
    }
}

fn terminal(nth: usize) -> TerminalId {
    TerminalId::from_random(0xa000_0000 + nth as u32)
}

/// Returns a status that asks for a permission.
fn permission(name: &str) -> Seen {
    Seen {
        kind: Some(StatusKind::WaitingUserAnswer),
        waiting: Some(WaitingKind::Permission),
        question: Some(name.into()),
        plain_yes: true,
        ..Seen::default()
    }
}

/// Renders an entry in a few words.
fn name(entry: &Entry) -> String {
    let value = serde_json::to_value(entry).unwrap();
    value["entry"].as_str().unwrap().replace('_', " ")
}

fn says(state: &StateFile) -> String {
    format!("mirror {}", format!("{:?}", state.final_status).to_uppercase())
}

/// Renders an effect in a few words.
fn words(effect: &Effect) -> Vec<String> {
    let words = match effect {
        Effect::StartTerminal { role, name, .. } => format!("start {role} {name}"),
        Effect::Watch(_) => "watch".into(),
        Effect::Turn(_, effect) => match effect {
            TurnEffect::ClearStale { .. } => "clear stale".into(),
            TurnEffect::Send => "send".into(),
            TurnEffect::Remind { n, .. } => format!("remind {n}"),
            TurnEffect::LookAtFile { lived_until: None } => "look at file".into(),
            TurnEffect::LookAtFile { lived_until: Some(_) } => "look for a whole file".into(),
            TurnEffect::Accept { n, .. } => format!("accept {n}"),
            TurnEffect::AskLastOutput => "ask last output".into(),
            TurnEffect::Archive { suffix: None, .. } => "archive".into(),
            TurnEffect::Archive { .. } => "keep late".into(),
        },
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
        let mut bench = play("{}", "");
        let started = bench.step("go none");
        assert_eq!(started.iter().filter(|words| words.starts_with("start ")).count(), 5, "{started:?}");
        let started = Role::ALL.into_iter().enumerate().flat_map(|(nth, role)| {
            let failed = lost.contains(&role).then(|| format!("no {role} here"));
            bench.happens(RunEvent::TerminalStarted { role, terminal: failed.map_or(Ok(terminal(nth)), Err) })
        });
        let all: Vec<String> = started.collect();
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
    let mut bench = play("{}", "go none");
    for (nth, role) in Role::ALL.into_iter().enumerate().skip(1) {
        bench.happens(RunEvent::TerminalStarted { role, terminal: Ok(terminal(nth)) });
    }
    bench.dies();
    assert_eq!(bench.run.starting, BTreeMap::from([(Role::Analyst, "analyst-feed".to_owned())]));
    // The terminal is not started a second time.
    bench.play("go adopting -> resumed, terminal ready, turn begun, mirror RUNNING, watch");
}

#[test]
fn s_191_a_stop_in_a_turn_saves_the_state_and_nothing_follows() {
    // The state is published first, for clients that wait for the stop. Results of pending effects have no receiver.
    play(
        "{}",
        "asked
         busy
         stop Ctrl-C    -> mirror RUNNING, stopped
         is stopped
         file late      ->
         completed      ->
         time           ->
         stop again     ->",
    );
    play(r#"{"cleanup_on_exit": true}"#, "asked\nstop Ctrl-C -> end 5 terminals, mirror RUNNING, stopped");
}

#[test]
fn s_192_a_stop_before_a_run_goes_on_changes_nothing() {
    play("{}", "stop SIGTERM ->\nis running");
    play("{}", "asked\nstop Ctrl-C\ndies\nstop SIGTERM ->\nsays Ctrl-C");
}

#[test]
fn s_158_a_terminal_that_is_gone_stops_the_run_and_is_replaced_when_it_goes_on() {
    // During its turn, when it may have written its answer before it exited, and between two turns.
    for (begun, looks) in [("asked", "resumed, look for a whole file\nnothing -> "), ("started", "resumed, ")] {
        let script = format!(
            "{begun}
             gone       -> turn failed, terminal lost, mirror RUNNING, stopped, notify stopped
             says is gone
             is stopped
             go others  -> {looks}terminal wanted, start analyst analyst-feed-2
             ready 9    -> terminal ready, turn begun, mirror RUNNING, watch"
        );
        let bench = play("{}", &script);
        let turn = bench.run.turn().unwrap();
        assert!(turn.terminal == terminal(9) && turn.text.contains("Say hello."), "it is told everything: {turn:?}");
    }
}

#[test]
fn s_199_an_agent_that_is_still_at_it_is_waited_for_and_not_asked_again() {
    play(
        "{}",
        "asked
         dies
         go         -> resumed, watch
         busy       ->
         completed  -> look at file
         file A     -> answered, archive",
    );
}

#[test]
fn s_200_an_answer_that_came_meanwhile_is_used() {
    play("{}", "asked\ndies\ngo\nidle -> look at file\nfile ANALYST_SUMMARY -> answered, archive");
    // Its terminal is gone, but its answer exists.
    play(
        "{}",
        "asked
         dies
         go others                  -> resumed, terminal lost, turn failed, look for a whole file
         file \\nANALYST_SUMMARY\\n -> said, answered, archive
         was ANALYST_SUMMARY",
    );
}

#[test]
fn s_116_what_came_too_late_is_kept_and_named() {
    // The message waits for the name.
    let late = "asked\nbusy\nwait 1801\ntime -> keep late\ntime ->\n";
    let mut bench = play("{}", late);
    bench.play(
        "archived 001-analyst-late.md -> kept late, turn failed, mirror RUNNING, stopped, notify stopped
         says 001-analyst-late.md",
    );
    // There was none.
    let mut bench = play("{}", late);
    bench.play("archived -> turn failed, ...");
    assert!(!bench.last_words().contains("kept as"), "{}", bench.last_words());
}

#[test]
fn an_older_answer_that_cannot_be_moved_is_never_taken_for_the_new_one() {
    // Nothing is sent.
    play(
        "{}",
        "started
         idle
         stuck no space left -> turn failed, mirror RUNNING, stopped, notify stopped
         says no space left
         go -> resumed, turn begun, mirror RUNNING, ...",
    );
}

#[test]
fn s_123_a_wall_clock_that_is_set_back_changes_nothing() {
    let mut bench = play("{}", "asked\nbusy");
    let deadline = bench.run.due();
    bench.moved = -HOUR;
    bench.play("time ->\nbusy ->");
    assert_eq!(bench.run.due(), deadline);
    bench.play("completed");
    let grace = bench.run.due();
    bench.moved = HOUR;
    bench.play("time ->");
    assert_eq!(bench.run.due(), grace);
    // Replayed with a clock that was set back: the turn gets no more time than a new turn, and no less than none.
    bench.moved = -HOUR;
    bench.play("dies\ngo\nbusy");
    let left = bench.run.due().unwrap().0 - bench.now;
    assert_eq!(left.as_secs(), 1_800);
}

#[test]
fn s_188_after_the_last_round_it_has_failed_and_its_state_is_archived() {
    play(
        r#"{"limits": {"min_review_cycles_before_approval": 1, "max_rounds": 1}}"#,
        "testing
         answer RESULT: FAIL    -> ..., mirror FAIL, archive state, finished, notify fail
         is failed
         go                     ->",
    );
}

#[test]
fn s_189_what_could_not_be_archived_is_not_committed_and_it_has_passed_all_the_same() {
    let config = r#"{"limits": {"min_review_cycles_before_approval": 1},
        "post_processing": {"openspec_archive": true, "git_commit": true}}"#;
    let play = |outcome| {
        let mut bench = play(config, "testing\nanswer RESULT: PASS -> ..., OpenspecArchive");
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
    // The replayed run counts the same number. Refused accepts do not count.
    play(
        ACCEPTS,
        "asked
         asks a     -> accepting, accept 1
         accepted   -> accepted
         wait 6
         asks b     -> accepting, accept 2
         accepted
         dies
         go
         accepts 2
         wait 6
         asks c     -> accepting, accept 3
         refused
         accepts 2
         completed
         file A
         archived
         accepts 0",
    );
}

#[test]
fn s_8_s_10_a_turn_that_a_person_goes_on_with_counts_from_the_beginning() {
    let mut bench = play(ACCEPTS, "asked");
    for n in 1..=20 {
        bench.play(&format!("asks q{n} -> accepting, accept {n}\naccepted\nwait 6"));
    }
    // A crash is not a decision to stop; the person who resumes the run has reviewed it. No prompt was sent, and the
    // turn continues.
    bench.play(
        "asks q21   -> turn failed, ...
         says 20
         dies
         go         -> resumed, watch
         asks q21   -> said, watch
         accepts 0
         asks q21   -> accepting, accept 1
         accepted",
    );
    // After a crash the next daemon continues the count.
    bench.play("dies\ngo alone\nwait 6\nasks q22 -> accepting, accept 2");
}

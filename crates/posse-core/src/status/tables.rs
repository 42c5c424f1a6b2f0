//! Scripts of events and expected reports: `MILLISECOND EVENT; ...` and `MILLISECOND STATUS: REASON; ...`.

mod prompts;
mod questions;
mod titles;

use super::*;
use crate::detect::{Evidence, Strength};
use crate::testing::at;
use Claim::{Asking, Failed, Ready, TurnOver, Working};
use Event::Said;
use Source::{Hook, Osc, Progress, SessionFile, Title};
use StatusKind::{Completed, Error, Idle, Processing, WaitingUserAnswer};
use WaitingKind::{Permission, Question};

fn wall(ms: u64) -> Wall {
    Wall(ms.cast_signed())
}

pub(super) fn reading(rule: &str, status: Option<StatusKind>, content: u64) -> Reading {
    Reading { status, rule: rule.into(), strength: Strength::Layout, content, ..Reading::default() }
}

pub(super) fn title_busy(content: u64) -> Reading {
    let evidence = Some(Evidence { row: None, text: "⠋ project".into() });
    Reading { evidence, ..reading("title.busy", Some(Processing), content) }
}

pub(super) fn question(id: &str, kind: WaitingKind) -> Reading {
    let dialog = Dialog { id: id.into(), kind, ..Dialog::default() };
    Reading { waiting_kind: Some(kind), dialog: Some(dialog), ..reading("dialog", Some(WaitingUserAnswer), 0) }
}

fn screen(name: &str) -> Option<Reading> {
    let (first, rest) = name.split_once(' ').unwrap_or((name, ""));
    let content = rest.parse().unwrap_or(0);
    let weak = |rule, status, strength| Reading { strength, ..reading(rule, Some(status), 0) };
    Some(match first {
        "idle" => reading(name, Some(Idle), 0),
        "typed" => Reading { draft: Some(rest.into()), ..reading("idle", Some(Idle), 0) },
        "spinner" => reading(name, Some(Processing), 0),
        "turning" => title_busy(content),
        // No spinner, and the input field is visible: between two parts of an answer, or after it.
        "quiet" => reading(first, Some(Completed), content),
        "closed" => Reading { ends_turn: true, ..reading(name, Some(Completed), 0) },
        "api_error" | "process.shell" => reading(name, Some(Error), 0),
        "closed_error" => Reading { ends_turn: true, ..reading(name, Some(Error), 0) },
        "nothing" => reading("transcript", None, 0),
        "otherwise" => weak("otherwise", Processing, Strength::Fallback),
        "empty" => weak("empty", Error, Strength::Fallback),
        "seed.idle" => weak("seed.idle", Idle, Strength::Text),
        "seed.permission" => weak("seed.permission", WaitingUserAnswer, Strength::Text),
        "asks" => question(rest, rest.parse().unwrap_or(Permission)),
        _ => return None,
    })
}

/// Parses the name of an event: a screen, `SOURCE CLAIM`, or an action.
fn event(name: &str) -> Event {
    let (first, rest) = name.split_once(' ').unwrap_or((name, ""));
    let source = match first {
        "osc" => Some(Osc),
        "hook" => Some(Hook),
        "file" => Some(SessionFile),
        "title" => Some(Title),
        "progress" => Some(Progress),
        _ => None,
    };
    let claim = |word: &str| match word {
        "working" => Working,
        "ready" => Ready,
        "over" => TurnOver,
        "failed" => Failed("overloaded".into()),
        "asks" => Asking(None),
        "asks permission" => Asking(Some(Permission)),
        "asks question" => Asking(Some(Question)),
        "nothing" => Claim::Nothing,
        _ => panic!("there is no claim {word:?}"),
    };
    match (source, first, rest) {
        (Some(source), ..) => Said(source, claim(rest)),
        (_, "recalled", of) => Event::Recalled(Osc, claim(of)),
        (_, "exited", code) => Event::Exited(Exit::Code(code.parse().unwrap())),
        (_, "running", _) => Event::Running,
        (_, "prompted", _) => Event::Prompted,
        (_, "commanded", _) => Event::Commanded,
        (_, "answered", _) => Event::Answered,
        (_, "denied", _) => Event::Denied,
        (_, "asked", "again") => Event::AskedAgain,
        (_, "missed", _) => Event::Missed,
        _ => Event::Read(screen(name).unwrap_or_else(|| panic!("there is no event {name:?}"))),
    }
}

fn events(script: &str) -> Vec<(u64, Event)> {
    let steps = script.split(';').map(str::trim).filter(|step| !step.is_empty());
    let steps = steps.map(|step| step.split_once(' ').unwrap());
    steps.map(|(ms, name)| (ms.parse().unwrap(), event(name))).collect()
}

/// Feeds events at their times, and `Time` at every deadline, until long after the last event.
fn run(life: &mut Life, events: &[(u64, Event)]) -> Vec<(u64, Status)> {
    let mut told = Vec::new();
    let end = events.last().map_or(0, |(ms, _)| ms + 60_000);
    let mut feed = |life: &mut Life, event: &Event, ms: u64| {
        told.extend(life.handle(event, at(ms), wall(ms)).map(|status| (ms, status.clone())));
        assert!(life.deadline().is_none_or(|deadline| deadline > at(ms)), "{event:?} at {ms}: a deadline in the past");
    };
    let mut events = events.iter().peekable();
    loop {
        let deadline = life.deadline().map_or(u64::MAX, |deadline| deadline.0.as_millis() as u64);
        match events.next_if(|(ms, _)| *ms <= deadline) {
            Some((ms, event)) => feed(life, event, *ms),
            None if deadline > end => return told,
            None => feed(life, &Event::Time, deadline),
        }
    }
}

/// Returns the reports of a terminal that started at 0. While a reaction to an input is awaited, the reason is `sent`.
fn told(events: &[(u64, Event)]) -> Vec<(u64, String)> {
    let told = run(&mut Life::starting(wall(0)), events).into_iter();
    let reason = |status: &Status| {
        if status.awaiting_reaction { "sent".to_owned() } else { status.reason.replace("the agent said ", "") }
    };
    told.map(|(ms, status)| (ms, format!("{}: {}", status.kind, reason(&status)))).collect()
}

#[track_caller]
fn expect(told: impl Iterator<Item = (u64, String)>, expected: &str, script: &str) {
    let told: Vec<String> = told.map(|(ms, status)| format!("{ms} {status}")).collect();
    let expected: Vec<&str> = expected.split(';').map(str::trim).filter(|status| !status.is_empty()).collect();
    assert_eq!(told, expected, "{script}");
}

#[track_caller]
fn check(script: &str, expected: &str) {
    expect(told(&events(script)).into_iter(), expected, script);
}

/// Checks an agent that has been idle for a long time at 0.
#[track_caller]
fn check_idle(script: &str, expected: &str) {
    const LONG: u64 = 10_000;
    let mut all = events("100 idle");
    all.extend(events(script).into_iter().map(|(ms, event)| (LONG + ms, event)));
    let mut told = told(&all).into_iter();
    assert_eq!(told.next(), Some((100, "idle: rule idle".to_owned())));
    expect(told.map(|(ms, status)| (ms - LONG, status)), expected, script);
}

/// Checks an agent that starts to work at 200.
#[track_caller]
fn check_working(script: &str, expected: &str) {
    check_idle(&format!("200 spinner; {script}"), &format!("200 processing: rule spinner; {expected}"));
}

#[test]
fn process_decides_the_status_without_other_evidence() {
    check("5 running; 6 running", "5 processing: running");
    check("5 running; 9 exited 0", "5 processing: running; 9 completed: exited with 0");
    check("5 running; 9 exited 3", "5 processing: running; 9 error: exited with 3");
    check_idle("9 exited 0", "9 completed: exited with 0");
    // An exit during a turn, or before the agent was ready, is an error.
    check_working("900 exited 0", "900 error: exited with 0");
    check_idle("200 prompted; 900 exited 0", "200 idle: sent; 900 error: exited with 0");
    check("9 exited 0", "9 error: exited with 0");
    let lost = run(&mut Life::starting(wall(0)), &[(9, Event::Exited(Exit::Lost))]);
    assert_eq!((lost[0].1.kind, lost[0].1.reason.as_str()), (Error, "lost: its keeper is gone"));
}

#[test]
fn exited_terminal_ignores_later_events() {
    let late = "301 idle; 302 closed; 303 spinner; 304 asks a; 305 api_error; 306 prompted; 307 answered; 308 denied;
        309 running; 310 missed; 311 osc working; 312 osc ready; 313 osc over; 314 osc asks; 315 osc failed; 316 exited 0";
    check_working(&format!("300 exited 9; {late}"), "300 error: exited with 9");
    // Pending changes are not reported either.
    check_idle("200 api_error; 300 exited 1", "300 error: exited with 1");
    let status = Status::new(Error, "exited with 0", Wall(1));
    assert_eq!(run(&mut Life::resumed(status, true), &events("0 idle; 1 osc ready")), []);
    assert_eq!(Exit::Signal(9).to_string(), "ended by SIGKILL");
}

#[test]
fn agent_is_starting_until_it_is_ready() {
    check("5 otherwise; 300 idle", "300 idle: rule idle");
    check("300 quiet", "300 completed: rule quiet"); // an old conversation continues
    // Every program starts with an empty screen.
    check("5 empty; 9000 idle", "9000 idle: rule idle");
    // Text that only looks like a prompt must stand.
    check("5 seed.idle", "1005 idle: rule seed.idle");
    check(
        "50 asks startup; 800 answered; 850 otherwise; 900 idle",
        "50 waiting_user_answer: rule dialog; 850 processing: the question was answered; 900 idle: rule idle",
    );
    check(
        "50 asks startup; 900 spinner; 1500 idle",
        "50 waiting_user_answer: rule dialog; 900 processing: rule spinner; 2500 idle: rule idle",
    );
}

#[test]
fn claims_during_the_start_are_no_turn() {
    // Codex 0.166: idle, working, idle before its screen appears, which is not a turn.
    let blip = "50 osc ready; 60 osc working; 90 osc ready";
    check(&format!("{blip}; 400 idle"), "400 idle: rule idle");
    check(&format!("40 idle; {blip}"), "40 idle: rule idle");
    // The same by its title, which is also read with the screen.
    check("40 idle; 50 title working; 60 turning; 90 title nothing; 100 idle", "40 idle: rule idle");
    // A user was quick; posse was quick.
    check("40 idle; 60 osc working; 700 spinner", "40 idle: rule idle; 360 processing: working (OSC 7501)");
    check(
        "40 idle; 60 osc working; 65 prompted; 700 spinner",
        "40 idle: rule idle; 65 idle: sent; 700 processing: rule spinner",
    );
    // Without a readable screen its claim suffices.
    check(blip, "1090 idle: ready (OSC 7501)");
    // The row of a turn is visible while Codex connects to servers, which is not a turn.
    check("50 spinner; 900 idle", "1900 idle: rule idle");
    // A prompt on the command line.
    check("50 hook working; 90 spinner; 800 quiet 1; 1700 quiet 2; 2000 closed", "2000 completed: rule closed");
}

#[test]
fn quiet_screen_without_other_evidence_must_settle() {
    check_working("5000 quiet", "6000 completed: rule quiet");
    // Text streams in: no sign of work, but the conversation changes (S-77).
    let streaming: String = (1..9).map(|n| format!("{} quiet {n};", 5_000 + n * 900)).collect();
    check_working(&streaming, "13200 completed: rule quiet");
    // Equal looks do not restart the delay.
    check_working("5000 quiet; 5500 quiet; 5990 quiet", "6000 completed: rule quiet");
    check_working("5000 quiet; 5900 spinner", "");
    // Silence is not quiet.
    check_working("900000 spinner", "");
}

#[test]
fn reported_or_shown_end_ends_a_turn_at_once() {
    check_working("5000 closed", "5000 completed: rule closed");
    let over = "5000 completed: turn over (OSC 7501)";
    check_working("5000 osc over", &format!("{over}; 5300 processing: rule spinner"));
    // The last frames of the spinner arrive after the claim.
    check_working("5000 osc over; 5150 spinner; 5180 quiet 1", over);
    check_working("4990 quiet 1; 5000 osc over", over);
    // The session file does not report the kind of end, so the screen is awaited.
    check_working("5000 file ready", "");
    check_working("5000 file ready; 5180 quiet 1", "5180 completed: rule quiet");
    check_working("4990 quiet 1; 5000 file ready", "5000 completed: ready (session file)");
    // A title that becomes plain does not either, and one that was always plain is no evidence. The row of an error
    // comes with the frame after the one that ends the turn (Codex 0.160.1).
    for (then, expected) in [
        ("", ""),
        ("; 5030 quiet 1", "; 5070 completed: rule quiet"),
        ("; 5030 api_error", "; 5030 error: rule api_error"),
        ("; 5000 quiet 1; 5006 api_error", "; 5006 error: rule api_error"),
    ] {
        let script = format!("190 title working; 200 spinner; 5000 title ready{then}");
        check_idle(&script, &format!("200 processing: rule spinner{expected}"));
    }
    check_working("4990 quiet 1; 5000 title ready", "5990 completed: rule quiet");
    // The agent reported the end, and the screen followed and continued for a while: then the screen need not settle.
    let late = format!("{over}; 5300 processing: rule spinner; 6400 completed: rule quiet");
    check_working("5000 osc over; 6400 quiet 1", &late);
}

/// Claude Code runs all Stop hooks in parallel. A hook of the user may be slow, or make the agent continue.
#[test]
fn stop_hook_ends_a_turn_only_when_the_screen_or_another_source_agrees() {
    let spinning = |to: u64| (5_050..to).step_by(100).map(|ms| format!("{ms} spinner;")).collect::<String>();
    // The screen shows work while the user's hook runs, and longer if the hook blocks.
    check_working(&format!("5000 hook over; {}", spinning(60_000)), "");
    check_working(&format!("5000 hook over; {} 9000 closed", spinning(9_000)), "9000 completed: rule closed");
    // The hook blocks, and the answer continues without a spinner and pauses: that is not the claimed end.
    check_working(&format!("5000 hook over; {} 8000 quiet 1; 8900 spinner", spinning(8_000)), "");
    // Without a hook of the user the screen agrees a moment later, and there is no further delay.
    check_working("5000 hook over; 5120 quiet 1", "5120 completed: rule quiet");
    check_working("4990 quiet 1; 5000 hook over", "5000 completed: turn over (hook)");
    // Another source agrees, with any screen.
    check_working("5000 hook over; 5040 osc over; 5100 quiet 1", "5040 completed: turn over (OSC 7501)");
    // The screen looks quiet, as with a status line of the user; another source reports that the turn continues, or
    // does not report this end.
    for source in ["osc", "progress", "file"] {
        for (then, expected) in [
            ("; 6000 quiet 2; 7000 quiet 3; 8000 spinner", ""),
            ("; 5300 closed", "; 5300 completed: rule closed"),
            ("", "; 6500 completed: rule quiet"),
        ] {
            let script = format!("100 {source} working; 200 spinner; 4000 quiet 1; 5000 hook over{then}");
            check_idle(&script, &format!("200 processing: rule spinner{expected}"));
        }
    }
    let working = "200 processing: rule spinner";
    check_idle("90 file working; 100 osc working; 200 spinner; 4000 quiet 1; 5000 hook over", working);
    // A menu of the user hides the screen.
    check_working("3000 nothing; 5000 hook over", "5300 completed: turn over (hook)");
    check_idle("100 osc working; 200 spinner; 3000 nothing; 5000 hook over; 6000 osc working", working);
}

#[test]
fn late_claims_do_not_last() {
    // A hook of the turn that has just ended.
    check_working("900 osc over; 910 closed; 980 hook working", "900 completed: turn over (OSC 7501)");
    // A queued prompt starts its turn at once: progress reports both the end and the start, without time for a prompt.
    check_idle(
        "200 progress working; 210 spinner; 900 hook over; 918 progress ready; 936 progress working; 939 spinner",
        "210 processing: rule spinner",
    );
    // A claim without cause that the screen does not confirm.
    check_idle("500 osc working", "650 processing: working (OSC 7501); 2000 idle: rule idle");
    check_idle("500 hook working", "500 processing: working (hook); 1500 completed: rule idle");
    check_idle(
        "500 osc asks",
        "500 waiting_user_answer: asking (OSC 7501); 2000 processing: the question is gone (rule idle);
         3000 completed: rule idle",
    );
    // The file of the turn before, when the next prompt is already on its way; and the hook of this turn.
    check_idle("500 prompted; 600 file ready; 650 spinner", "500 idle: sent; 650 processing: rule spinner");
    check_idle(
        "500 prompted; 560 hook working; 650 hook over; 700 closed",
        "500 idle: sent; 560 processing: working (hook); 650 completed: turn over (hook)",
    );
    // Two sources that both report ends are not both wrong, unless output was lost.
    let working = "650 processing: working (title)";
    let both = "500 osc working; 510 title working";
    check_idle(&format!("{both}; 9000 title nothing"), &format!("{working}; 9000 idle: rule idle"));
    check_idle(&format!("{both}; 900 missed; 950 closed"), &format!("{working}; 950 completed: rule closed"));
}

#[test]
fn fallback_readings_are_no_evidence() {
    check_idle("200 otherwise; 9000 otherwise", "");
    check_idle("200 asks a; 300 otherwise", "200 waiting_user_answer: rule dialog");
    check_idle("200 api_error; 900 otherwise", "700 error: rule api_error");
    check_idle(
        "200 otherwise; 300 osc working; 400 otherwise; 900 osc over",
        "450 processing: working (OSC 7501); 900 completed: turn over (OSC 7501)",
    );
}

/// Codex 0.163 reports `idle` after every turn. The frame that shows how the turn ended follows up to 67 ms later.
#[test]
fn ready_agent_waits_for_the_frame_that_shows_how_the_turn_ended() {
    check_working("5000 osc ready; 5067 api_error", "5067 error: rule api_error");
    check_working("4990 quiet 1; 5000 osc ready; 5030 api_error", "5030 error: rule api_error");
    check_working("5000 osc ready; 5010 closed", "5010 completed: rule closed");
    check_working("5000 osc ready; 5180 quiet 1", "5220 completed: rule quiet");
    check_working("4990 quiet 1; 5000 osc ready", "5040 completed: rule quiet");
    // Only the title shows work, or a view of the user hides the end.
    let turning = "200 turning; 4000 turning 1; 5000 osc ready";
    let by_title = "350 processing: rule title.busy";
    check_idle(&format!("{turning}; 5067 api_error"), &format!("{by_title}; 5067 error: rule api_error"));
    check_idle(turning, &format!("{by_title}; 5150 idle: ready (OSC 7501)"));
    check_working("4000 nothing; 5000 osc ready", "5150 completed: ready (OSC 7501)");
    // Without such a frame the agent still works.
    check_working("5000 osc ready", "");
}

/// Codex 0.163 turns its title, stops it and turns it again before it reports work.
#[test]
fn title_that_stops_before_the_agent_says_that_it_works_ends_no_turn() {
    let sent = "50 osc ready; 200 prompted; 210 title working; 212 title ready";
    let told = "200 idle: sent; 210 processing: working (title)";
    let begun = "390 title working; 391 osc working; 392 spinner; 5000 closed";
    check_idle(&format!("{sent}; {begun}"), &format!("{told}; 5000 completed: rule closed"));
    // If it never reports work, the screen must settle.
    check_idle(sent, &format!("{told}; 1212 completed: rule idle"));
}

#[test]
fn completed_instead_of_idle_needs_a_turn() {
    // The screen of a finished turn, scrolled away: still completed.
    check_working("900 closed; 950 idle", "900 completed: rule closed");
    check_working("900 idle", "1900 completed: rule idle");
    // Interrupted: Codex reports idle.
    check_idle(
        "200 prompted; 250 osc working; 300 spinner; 900 osc ready; 920 idle",
        "200 idle: sent; 250 processing: working (OSC 7501); 960 completed: rule idle",
    );
    // Only the screen shows completed, and nothing else is known.
    check_idle("200 quiet", "200 completed: rule quiet");
}

#[test]
fn unchanged_status_is_not_reported_again() {
    let mut life = Life::starting(wall(0));
    run(&mut life, &events("100 idle; 200 spinner"));
    for ms in 300..400 {
        for event in
            ["spinner", "title working", "osc working", "hook working"].map(event).into_iter().chain([Event::Time])
        {
            assert_eq!(life.handle(&event, at(ms), wall(ms)), None, "{event:?}");
        }
        assert_eq!(life.deadline(), None, "nothing is due while it works");
    }
    let other = Event::Read(reading("title.busy", Some(Processing), 1));
    assert_eq!(life.handle(&other, at(400), wall(400)), None, "another rule, the same status");
    assert_eq!(life.status().reason, "rule spinner");
}

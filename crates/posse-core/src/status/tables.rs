//! What happens, and what is told of it: tables of (millisecond, event) and (millisecond, status).

mod questions;

use std::time::Duration;

use super::*;
use crate::detect::{Evidence, Strength};
use crate::time::Mono;
use Claim::{Asking, Failed, Ready, TurnOver, Working};
use Event::{Answered, Commanded, Denied, Exited, Prompted, Running, Said};
use Source::{Hook, Osc, Progress, SessionFile, Title};
use StatusKind::{Completed, Error, Idle, Processing, WaitingUserAnswer};
use WaitingKind::{Permission, Question, Startup};

pub(super) fn at(ms: u64) -> Mono {
    Mono(Duration::from_millis(ms))
}

fn wall(ms: u64) -> Wall {
    Wall(ms.cast_signed())
}

/// Feeds events at their times, and `Time` whenever it is asked for, until long after the last one.
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

/// Stands for the reason of a status while a reaction to an input is awaited.
const SENT: &str = "an input was sent";

/// Kind and reason of what is told, on a terminal that was started at 0.
#[track_caller]
fn check(events: &[(u64, Event)], expected: &[(u64, StatusKind, &str)]) {
    let told = run(&mut Life::starting(wall(0)), events);
    let reason = |status: &Status| if status.awaiting_reaction { SENT.to_owned() } else { status.reason.clone() };
    let told: Vec<_> = told.iter().map(|(ms, status)| (*ms, status.kind, reason(status))).collect();
    let expected: Vec<_> = expected.iter().map(|(ms, kind, reason)| (*ms, *kind, (*reason).to_owned())).collect();
    assert_eq!(told, expected);
}

/// The same, on an agent that has been idle for long at 0.
#[track_caller]
fn check_idle(events: &[(u64, Event)], expected: &[(u64, StatusKind, &str)]) {
    const LONG: u64 = 10_000;
    let later = events.iter().map(|(ms, event)| (LONG + ms, event.clone()));
    let events: Vec<_> = [(100, idle())].into_iter().chain(later).collect();
    let later = expected.iter().map(|(ms, kind, reason)| (LONG + ms, *kind, *reason));
    let expected: Vec<_> = [(100, Idle, "rule idle")].into_iter().chain(later).collect();
    check(&events, &expected);
}

pub(super) fn reading(rule: &str, status: Option<StatusKind>, content: u64) -> Reading {
    Reading {
        status,
        waiting_kind: None,
        rule: rule.into(),
        strength: Strength::Layout,
        evidence: None,
        dialog: None,
        draft: None,
        ends_turn: false,
        content,
    }
}

pub(super) fn title_busy(content: u64) -> Reading {
    let evidence = Some(Evidence { row: None, text: "⠋ project".into() });
    Reading { evidence, ..reading("title.busy", Some(Processing), content) }
}

fn idle() -> Event {
    Event::Read(reading("idle", Some(Idle), 0))
}

fn spinner() -> Event {
    Event::Read(reading("spinner", Some(Processing), 0))
}

/// No spinner, and the input field is there: between two pieces of an answer, or after it.
fn quiet(content: u64) -> Event {
    Event::Read(reading("quiet", Some(Completed), content))
}

fn closed() -> Event {
    Event::Read(Reading { ends_turn: true, ..reading("closed", Some(Completed), 0) })
}

fn api_error() -> Event {
    Event::Read(reading("api_error", Some(Error), 0))
}

fn nothing() -> Event {
    Event::Read(reading("transcript", None, 0))
}

fn weak(rule: &str, status: StatusKind, strength: Strength) -> Event {
    Event::Read(Reading { strength, ..reading(rule, Some(status), 0) })
}

pub(super) fn question(id: &str, kind: WaitingKind) -> Reading {
    let dialog = Dialog { id: id.into(), kind, ..Dialog::default() };
    Reading { waiting_kind: Some(kind), dialog: Some(dialog), ..reading("dialog", Some(WaitingUserAnswer), 0) }
}

fn asks(id: &str) -> Event {
    Event::Read(question(id, Permission))
}

#[test]
fn the_process_decides_where_nothing_else_is_known() {
    check(&[(5, Running), (6, Running)], &[(5, Processing, "running")]);
    check(&[(5, Running), (9, Exited(Exit::Code(0)))], &[(5, Processing, "running"), (9, Completed, "exited with 0")]);
    check(&[(5, Running), (9, Exited(Exit::Code(3)))], &[(5, Processing, "running"), (9, Error, "exited with 3")]);
    check_idle(&[(9, Exited(Exit::Code(0)))], &[(9, Completed, "exited with 0")]);
    // In the middle of a turn, or before it was ready, an agent does not end well.
    let spin = (200, Processing, "rule spinner");
    check_idle(&[(200, spinner()), (900, Exited(Exit::Code(0)))], &[spin, (900, Error, "exited with 0")]);
    check_idle(&[(200, Prompted), (900, Exited(Exit::Code(0)))], &[(200, Idle, SENT), (900, Error, "exited with 0")]);
    check(&[(9, Exited(Exit::Code(0)))], &[(9, Error, "exited with 0")]);
    check(&[(9, Exited(Exit::Lost))], &[(9, Error, "lost: its keeper is gone")]);
}

#[test]
fn an_end_is_for_ever() {
    let late =
        [idle(), closed(), spinner(), asks("a"), api_error(), Prompted, Answered, Denied, Running, Event::Missed];
    let said = [Working, Ready, TurnOver, Asking(None), Failed("x".into())].map(|claim| Said(Osc, claim));
    let late = late.into_iter().chain(said).chain([Exited(Exit::Code(0))]);
    let mut events = vec![(200, spinner()), (300, Exited(Exit::Signal(9)))];
    events.extend((301..).zip(late));
    check_idle(&events, &[(200, Processing, "rule spinner"), (300, Error, "ended by SIGKILL")]);
    // Nothing that was on its way is told either.
    check_idle(&[(200, api_error()), (300, Exited(Exit::Code(1)))], &[(300, Error, "exited with 1")]);
    let status = Status {
        kind: Error,
        reason: "exited with 0".into(),
        waiting_kind: None,
        dialog: None,
        since: Wall(1),
        epoch: 4,
        awaiting_reaction: false,
        unproven: false,
    };
    assert_eq!(run(&mut Life::resumed(status, true), &[(0, idle()), (1, Said(Osc, Ready))]), []);
}

#[test]
fn an_agent_starts_until_it_is_ready() {
    let otherwise = || weak("otherwise", Processing, Strength::Fallback);
    check(&[(5, otherwise()), (300, idle())], &[(300, Idle, "rule idle")]);
    check(&[(300, quiet(0))], &[(300, Completed, "rule quiet")]); // an old conversation goes on
    // An empty screen is how everything starts.
    check(&[(5, weak("empty", Error, Strength::Fallback)), (9_000, idle())], &[(9_000, Idle, "rule idle")]);
    // Text that only looks like a prompt must stand.
    check(&[(5, weak("seed.idle", Idle, Strength::Text))], &[(1_005, Idle, "rule seed.idle")]);
    let trust = || Event::Read(question("trust", Startup));
    check(
        &[(50, trust()), (800, Answered), (850, otherwise()), (900, idle())],
        &[
            (50, WaitingUserAnswer, "rule dialog"),
            (850, Processing, "the question was answered"),
            (900, Idle, "rule idle"),
        ],
    );
    check(
        &[(50, trust()), (900, spinner()), (1_500, idle())],
        &[(50, WaitingUserAnswer, "rule dialog"), (900, Processing, "rule spinner"), (2_500, Idle, "rule idle")],
    );
}

#[test]
fn a_start_with_self_reports() {
    // Codex 0.166: idle, working, idle before its screen is there, and it is not a turn.
    let blip = [(50, Said(Osc, Ready)), (60, Said(Osc, Working)), (90, Said(Osc, Ready))];
    check(&[&blip[..], &[(400, idle())]].concat(), &[(400, Idle, "rule idle")]);
    let after_idle = |events: &[(u64, Event)]| [&[(40, idle())], events].concat();
    check(&after_idle(&blip), &[(40, Idle, "rule idle")]);
    // The same by its title, which is read with the screen as well.
    let title = [
        (50, Said(Title, Working)),
        (60, Event::Read(title_busy(0))),
        (90, Said(Title, Claim::Nothing)),
        (100, idle()),
    ];
    check(&after_idle(&title), &[(40, Idle, "rule idle")]);
    // Somebody was quick; and we were.
    let working = (360, Processing, "the agent said working (OSC 7501)");
    check(&after_idle(&[(60, Said(Osc, Working)), (700, spinner())]), &[(40, Idle, "rule idle"), working]);
    check(
        &after_idle(&[(60, Said(Osc, Working)), (65, Prompted), (700, spinner())]),
        &[(40, Idle, "rule idle"), (65, Idle, SENT), (700, Processing, "rule spinner")],
    );
    // Without a screen to read, its word must do.
    check(&blip, &[(1_090, Idle, "the agent said ready (OSC 7501)")]);
    // The row of a turn while servers are connected to, and no turn.
    check(&[(50, spinner()), (900, idle())], &[(1_900, Idle, "rule idle")]);
    // A prompt on the command line.
    check(
        &[(50, Said(Hook, Working)), (90, spinner()), (800, quiet(1)), (1_700, quiet(2)), (2_000, closed())],
        &[(2_000, Completed, "rule closed")],
    );
}

#[test]
fn quiet_by_the_screen_alone_must_settle() {
    check_idle(
        &[(200, spinner()), (5_000, quiet(0))],
        &[(200, Processing, "rule spinner"), (6_000, Completed, "rule quiet")],
    );
    // Text streams in: no sign of work, but the conversation changes (S-77).
    let streaming = (1..9).map(|n| (5_000 + n * 900, quiet(n)));
    let events: Vec<_> = [(200, spinner())].into_iter().chain(streaming).collect();
    check_idle(&events, &[(200, Processing, "rule spinner"), (13_200, Completed, "rule quiet")]);
    // Equal looks do not begin anew.
    check_idle(
        &[(200, spinner()), (5_000, quiet(0)), (5_500, quiet(0)), (5_990, quiet(0))],
        &[(200, Processing, "rule spinner"), (6_000, Completed, "rule quiet")],
    );
    check_idle(&[(200, spinner()), (5_000, quiet(0)), (5_900, spinner())], &[(200, Processing, "rule spinner")]);
    // Silence is not quiet.
    check_idle(&[(200, spinner()), (900_000, spinner())], &[(200, Processing, "rule spinner")]);
}

#[test]
fn positive_evidence_ends_a_turn_at_once() {
    let working = (200, Processing, "rule spinner");
    check_idle(&[(200, spinner()), (5_000, closed())], &[working, (5_000, Completed, "rule closed")]);
    let over = || Said(Osc, TurnOver);
    let reason = "the agent said turn over (OSC 7501)";
    check_idle(
        &[(200, spinner()), (5_000, over())],
        &[working, (5_000, Completed, reason), (5_300, Processing, "rule spinner")],
    );
    // The last frames of the spinner come after it.
    check_idle(
        &[(200, spinner()), (5_000, over()), (5_150, spinner()), (5_180, quiet(1))],
        &[working, (5_000, Completed, reason)],
    );
    check_idle(&[(200, spinner()), (4_990, quiet(1)), (5_000, over())], &[working, (5_000, Completed, reason)]);
    // The session file does not say what end it is, so the screen is waited for.
    let over = || Said(SessionFile, Ready);
    check_idle(&[(200, spinner()), (5_000, over())], &[working]);
    check_idle(&[(200, spinner()), (5_000, over()), (5_180, quiet(1))], &[working, (5_180, Completed, "rule quiet")]);
    check_idle(
        &[(200, spinner()), (4_990, quiet(1)), (5_000, over())],
        &[working, (5_000, Completed, "the agent said ready (session file)")],
    );
    // Neither does a title that is plain again, and one that was plain all the time says nothing.
    let (turns, plain) = (|| (190, Said(Title, Working)), || Said(Title, Ready));
    let turned = (200, Processing, "rule spinner");
    check_idle(&[turns(), (200, spinner()), (5_000, plain())], &[turned]);
    check_idle(
        &[turns(), (200, spinner()), (5_000, plain()), (5_030, quiet(1))],
        &[turned, (5_070, Completed, "rule quiet")],
    );
    check_idle(
        &[turns(), (200, spinner()), (5_000, plain()), (5_030, api_error())],
        &[turned, (5_030, Error, "rule api_error")],
    );
    // The row of an error comes with the frame after the one that ends the turn (Codex 0.160.1).
    check_idle(
        &[turns(), (200, spinner()), (5_000, plain()), (5_000, quiet(1)), (5_006, api_error())],
        &[turned, (5_006, Error, "rule api_error")],
    );
    check_idle(&[(200, spinner()), (4_990, quiet(1)), (5_000, plain())], &[working, (5_990, Completed, "rule quiet")]);
    // It said so, the screen came after it and went on for a while: then the screen need not settle either.
    check_idle(
        &[(200, spinner()), (5_000, Said(Osc, TurnOver)), (6_400, quiet(1))],
        &[
            working,
            (5_000, Completed, "the agent said turn over (OSC 7501)"),
            (5_300, Processing, "rule spinner"),
            (6_400, Completed, "rule quiet"),
        ],
    );
}

/// Claude Code runs all Stop hooks side by side. One of the user's may be slow, or send the agent back to work.
#[test]
fn a_stop_hook_ends_a_turn_only_when_the_screen_or_another_source_agrees() {
    let working = (200, Processing, "rule spinner");
    let over = || (5_000, Said(Hook, TurnOver));
    let spinning = |from: u64, to: u64| (from..to).step_by(100).map(|ms| (ms, spinner())).collect::<Vec<_>>();
    // The screen shows work for as long as the user's hook runs, and longer if it blocks.
    check_idle(&[&[(200, spinner()), over()][..], &spinning(5_050, 60_000)].concat(), &[working]);
    check_idle(
        &[&[(200, spinner()), over()][..], &spinning(5_050, 9_000), &[(9_000, closed())]].concat(),
        &[working, (9_000, Completed, "rule closed")],
    );
    // It blocks, the answer goes on without a spinner, and stops for a moment: that is not the end that was claimed.
    check_idle(
        &[&[(200, spinner()), over()][..], &spinning(5_050, 8_000), &[(8_000, quiet(1)), (8_900, spinner())]].concat(),
        &[working],
    );
    // No hook of the user: the screen agrees a moment later, and nobody waits for more.
    check_idle(&[(200, spinner()), over(), (5_120, quiet(1))], &[working, (5_120, Completed, "rule quiet")]);
    check_idle(
        &[(200, spinner()), (4_990, quiet(1)), over()],
        &[working, (5_000, Completed, "the agent said turn over (hook)")],
    );
    // Another source agrees, whatever the screen shows.
    check_idle(
        &[(200, spinner()), over(), (5_040, Said(Osc, TurnOver)), (5_100, quiet(1))],
        &[working, (5_040, Completed, "the agent said turn over (OSC 7501)")],
    );
    // The screen looks quiet, as with a status line of the user's own; OSC or the title says that the turn goes on.
    let streaming = |source| [(100, Said(source, Working)), (200, spinner()), (4_000, quiet(1)), over()];
    for source in [Osc, Progress, SessionFile] {
        check_idle(
            &[&streaming(source)[..], &[(6_000, quiet(2)), (7_000, quiet(3)), (8_000, spinner())]].concat(),
            &[working],
        );
        check_idle(
            &[&streaming(source)[..], &[(5_300, closed())]].concat(),
            &[working, (5_300, Completed, "rule closed")],
        );
        // The end that this source did not tell.
        check_idle(&streaming(source), &[working, (6_500, Completed, "rule quiet")]);
    }
    let two =
        [(90, Said(SessionFile, Working)), (100, Said(Osc, Working)), (200, spinner()), (4_000, quiet(1)), over()];
    check_idle(&two, &[working]);
    // A menu of the user's hides the screen.
    check_idle(
        &[(200, spinner()), (3_000, nothing()), over()],
        &[working, (5_300, Completed, "the agent said turn over (hook)")],
    );
    check_idle(
        &[(100, Said(Osc, Working)), (200, spinner()), (3_000, nothing()), over(), (6_000, Said(Osc, Working))],
        &[working],
    );
}

/// Claude Code says that it works for a moment when the user opens one of its menus.
#[test]
fn work_that_nobody_asked_for_must_last() {
    for source in [Osc, Title, SessionFile] {
        check_idle(&[(200, Said(source, Working)), (210, nothing()), (349, Said(source, Ready))], &[]);
        let told =
            run(&mut Life::starting(wall(0)), &[(100, idle()), (900, Said(source, Working)), (1_100, spinner())]);
        let told: Vec<_> = told.iter().map(|(ms, status)| (*ms, status.kind)).collect();
        assert_eq!(told, [(100, Idle), (1_050, Processing)], "{source}");
    }
    check_idle(&[(200, Event::Read(title_busy(0))), (340, nothing())], &[]);
    // Progress says so for as long as a menu is open; when the menu closes, the screen shows work for a moment.
    let menu = [(200, Said(Progress, Working)), (210, nothing())];
    check_idle(&[&menu[..], &[(2_000, spinner()), (2_020, idle()), (2_030, Said(Progress, Ready))]].concat(), &[]);
    check_idle(&[&menu[..], &[(2_000, spinner())]].concat(), &[(2_500, Processing, "rule spinner")]);
    // So it does when a menu opens, in older versions.
    let typed = || Event::Read(Reading { draft: Some("/memory".into()), ..reading("idle", Some(Idle), 0) });
    check_idle(&[(200, typed()), (300, spinner()), (640, nothing()), (2_000, idle())], &[]);
    check_idle(
        &[&[(100, Prompted), (110, Said(Progress, Working)), (210, spinner()), (900, closed())], &menu_later()[..]]
            .concat(),
        &[
            (100, Idle, "an input was sent"),
            (110, Processing, "the agent said working (progress)"),
            (900, Completed, "rule closed"),
        ],
    );
    // A prompt of ours, a hook and the screen are heard at once.
    let hook = (200, Processing, "the agent said working (hook)");
    check_idle(&[(200, Said(Hook, Working)), (900, spinner())], &[hook]);
    check_idle(&[(200, Said(Osc, Working)), (220, spinner())], &[(220, Processing, "rule spinner")]);
}

/// A menu that the user opens and closes after a turn.
fn menu_later() -> [(u64, Event); 5] {
    [
        (1_000, Said(Progress, Ready)),
        (5_000, Said(Progress, Working)),
        (5_010, nothing()),
        (8_000, quiet(7)),
        (8_100, Said(Progress, Ready)),
    ]
}

/// Codex 0.130.0 drew a turn of 47 ms in one piece: the title turned, the prompt was taken, and the turn was over.
#[test]
fn a_title_that_turns_when_the_prompt_is_taken_proves_the_turn() {
    let mut life = Life::starting(wall(0));
    let events = [
        (100, idle()),
        (10_000, Said(Title, Working)),
        (10_000, Prompted),
        (10_000, Said(Title, Ready)),
        (10_000, quiet(1)),
    ];
    let told = run(&mut life, &events);
    let (_, last) = told.last().unwrap();
    assert_eq!((last.kind, last.unproven, last.awaiting_reaction), (Completed, false, false), "{told:?}");
}

#[test]
fn a_title_that_turned_for_the_prompt_tells_its_end() {
    let turned = (2_150, Processing, "the agent said working (title)");
    let busy = |ms| (ms, Event::Read(title_busy(1)));
    // A turn of 30 ms is over before it is known that the prompt was taken.
    check_idle(
        &[
            (2_000, Said(Title, Working)),
            busy(2_005),
            (2_010, Prompted),
            (2_030, Said(Title, Ready)),
            (2_040, quiet(1)),
        ],
        &[(2_010, Processing, "rule title.busy"), (2_080, Completed, "rule quiet")],
    );
    // A view of the user's hides how it ended.
    check_idle(
        &[
            (2_000, Said(Title, Working)),
            busy(2_005),
            (2_010, Prompted),
            (5_000, Said(Title, Ready)),
            (5_030, nothing()),
        ],
        &[(2_010, Processing, "rule title.busy"), (5_150, Completed, "the agent said ready (title)")],
    );
    // A question after the turn, as about a plan: when it is gone the title still says that nothing goes on.
    let ended = [(2_000, Said(Title, Working)), busy(2_005), (2_010, Prompted), (5_000, Said(Title, Ready))];
    let asked = (5_030, Event::Read(question("plan", WaitingKind::Plan)));
    check_idle(
        &[&ended[..], &[asked, (9_000, Denied), (9_020, quiet(2))]].concat(),
        &[
            (2_010, Processing, "rule title.busy"),
            (5_030, WaitingUserAnswer, "rule dialog"),
            (9_020, Completed, "rule quiet"),
        ],
    );
    // The end of the turn before is not the end of this one.
    check_idle(
        &[
            (2_000, Said(Title, Working)),
            busy(2_005),
            (9_000, Prompted),
            (9_030, Said(Title, Ready)),
            (9_040, quiet(1)),
        ],
        &[turned, (10_540, Completed, "rule quiet")],
    );
}

#[test]
fn what_was_over_before_the_turn_does_not_end_it() {
    let prompted = (2_000, Idle, SENT);
    // An end that was said before, the row that closed the last turn, and both.
    check_idle(
        &[(1_000, Said(Osc, Ready)), (2_000, Prompted), (2_010, quiet(1)), (2_400, quiet(2)), (2_500, spinner())],
        &[prompted, (2_500, Processing, "rule spinner")],
    );
    check_idle(
        &[(900, closed()), (2_000, Prompted), (2_300, closed()), (2_400, spinner())],
        &[(900, Completed, "rule closed"), (2_000, Completed, SENT), (2_400, Processing, "rule spinner")],
    );
    check_idle(
        &[(2_000, Prompted), (2_100, Said(Hook, Working)), (2_150, closed())],
        &[prompted, (2_100, Processing, "the agent said working (hook)"), (2_150, Completed, "rule closed")],
    );
    check_idle(
        &[(2_000, Prompted), (2_100, spinner()), (5_000, quiet(1))],
        &[prompted, (2_100, Processing, "rule spinner"), (6_000, Completed, "rule quiet")],
    );
    // A prompt that was not taken.
    check_idle(&[(2_000, Prompted)], &[prompted, (3_500, Completed, "rule idle")]);
    // An agent that would have told that it has begun: it is only slow. But not for ever.
    let alive = (500, Said(SessionFile, Claim::Nothing));
    check_idle(
        &[alive.clone(), (2_000, Prompted), (2_100, quiet(1)), (9_000, spinner())],
        &[prompted, (9_000, Processing, "rule spinner")],
    );
    check_idle(&[alive.clone(), (2_000, Prompted)], &[prompted, (12_000, Completed, "rule idle")]);
    // Of its own commands it tells nothing.
    check_idle(&[alive, (2_000, Commanded)], &[prompted, (3_500, Completed, "rule idle")]);
}

#[test]
fn late_words_do_not_last() {
    // A hook of the turn that has just ended.
    check_idle(
        &[(200, spinner()), (900, Said(Osc, TurnOver)), (910, closed()), (980, Said(Hook, Working))],
        &[(200, Processing, "rule spinner"), (900, Completed, "the agent said turn over (OSC 7501)")],
    );
    // A prompt was queued, and its turn begins at once: progress tells both, the end and the beginning. Between the two
    // nobody could have sent anything.
    check_idle(
        &[
            (200, Said(Progress, Working)),
            (210, spinner()),
            (900, Said(Hook, TurnOver)),
            (918, Said(Progress, Ready)),
            (936, Said(Progress, Working)),
            (939, spinner()),
        ],
        &[(210, Processing, "rule spinner")],
    );
    // A self-report out of nowhere, and nothing on the screen bears it out.
    check_idle(
        &[(500, Said(Osc, Working))],
        &[(650, Processing, "the agent said working (OSC 7501)"), (2_000, Idle, "rule idle")],
    );
    check_idle(
        &[(500, Said(Hook, Working))],
        &[(500, Processing, "the agent said working (hook)"), (1_500, Completed, "rule idle")],
    );
    check_idle(
        &[(500, Said(Osc, Asking(None)))],
        &[
            (500, WaitingUserAnswer, "the agent said asking (OSC 7501)"),
            (2_000, Processing, "the question is gone (rule idle)"),
            (3_000, Completed, "rule idle"),
        ],
    );
    // The file of the turn before, when the next prompt is already on its way; and of this one.
    check_idle(
        &[(500, Prompted), (600, Said(SessionFile, Ready)), (650, spinner())],
        &[(500, Idle, SENT), (650, Processing, "rule spinner")],
    );
    check_idle(
        &[(500, Prompted), (560, Said(Hook, Working)), (650, Said(Hook, TurnOver)), (700, closed())],
        &[
            (500, Idle, SENT),
            (560, Processing, "the agent said working (hook)"),
            (650, Completed, "the agent said turn over (hook)"),
        ],
    );
    // Two sources that both would have told the end are not both wrong.
    check_idle(
        &[(500, Said(Osc, Working)), (510, Said(Title, Working)), (9_000, Said(Title, Claim::Nothing))],
        &[(650, Processing, "the agent said working (title)"), (9_000, Idle, "rule idle")],
    );
    // Unless output was lost.
    let missed = [(500, Said(Osc, Working)), (510, Said(Title, Working)), (900, Event::Missed), (950, closed())];
    check_idle(&missed, &[(650, Processing, "the agent said working (title)"), (950, Completed, "rule closed")]);
}

#[test]
fn a_title_may_be_stuck() {
    let busy = |content| Event::Read(title_busy(content));
    let begun = [(200, Said(Title, Working)), (210, busy(1)), (900, busy(2)), (1_000, Said(Hook, TurnOver))];
    let working = (350, Processing, "the agent said working (title)");
    // Its end was lost. The last frame of the turn comes after the hook.
    check_idle(
        &[&begun[..], &[(1_100, busy(3)), (90_000, busy(3))]].concat(),
        &[working, (2_500, Completed, "the agent said turn over (hook)")],
    );
    // It was the hook that was wrong: the answer goes on.
    check_idle(&[&begun[..], &[(1_100, busy(3)), (1_400, busy(4)), (1_900, busy(5))]].concat(), &[working]);
    // The same where the rules do not look at titles.
    let wrong = [&begun[..2], &[(900, quiet(2)), (1_000, Said(Hook, TurnOver)), (1_400, quiet(4)), (1_900, quiet(5))]];
    check_idle(&wrong.concat(), &[working, (3_400, Completed, "rule quiet")]);
}

/// Claude Code 2.1.197 draws its title and progress once more when a turn ends behind a menu, and leaves progress busy.
#[test]
fn turn_that_ends_behind_a_menu_ends_when_two_sources_agree() {
    let turning = || Event::Read(title_busy(1));
    let begun = [(100, Said(Progress, Working)), (200, spinner()), (210, Said(Title, Working)), (3_000, turning())];
    let working = (200, Processing, "rule spinner");
    let over = (4_800, Said(Hook, TurnOver));
    let agreed = [(4_890, Said(Title, Claim::Nothing)), (4_892, Said(Progress, Ready))];
    let again = [
        (4_895, nothing()),
        (4_909, Said(Title, Working)),
        (4_910, Said(Progress, Working)),
        (4_911, turning()),
        (4_963, Said(Title, Claim::Nothing)),
        (4_964, nothing()),
        (9_000, nothing()),
    ];
    let completed = (4_892, Completed, "the agent said ready (progress)");
    check_idle(&[&begun[..], std::slice::from_ref(&over), &agreed, &again].concat(), &[working, completed]);
    // 2.1.275 says by its title that it is ready.
    let ready = [(4_890, Said(Title, Ready)), (4_892, Said(Progress, Ready)), (4_893, nothing()), (9_000, nothing())];
    let rested = (4_967, Completed, "the agent said ready (progress)");
    check_idle(&[&begun[..], std::slice::from_ref(&over), &ready].concat(), &[working, rested]);
    // The hook runs in the middle of that: title, progress and the session file have spoken after it.
    let files = [(100, Said(SessionFile, Working)), (4_900, Said(SessionFile, Ready))];
    let later = [
        (4_909, Said(Title, Working)),
        (4_910, Said(Progress, Working)),
        (4_940, Said(Hook, TurnOver)),
        (4_950, Said(SessionFile, Working)),
        (4_963, Said(Title, Claim::Nothing)),
        (4_964, nothing()),
        (5_000, Said(SessionFile, Claim::Nothing)),
        (9_000, nothing()),
    ];
    let completed = (5_075, Completed, "the agent said turn over (hook)");
    check_idle(&[&files[..1], &begun[..], &agreed, &files[1..], &later].concat(), &[working, completed]);
    // The hook runs a little earlier, and progress speaks after it.
    let earlier = [
        (4_905, Said(Hook, TurnOver)),
        (4_909, Said(Title, Working)),
        (4_910, Said(Progress, Working)),
        (4_963, Said(Title, Claim::Nothing)),
        (9_000, nothing()),
    ];
    let completed = (5_038, Completed, "the agent said turn over (hook)");
    check_idle(&[&begun[..], &agreed, &earlier].concat(), &[working, completed]);
    // The user's own Stop hook still runs: title and progress say so, and nobody else has told the end.
    check_idle(&[&begun[..], &[over], &[(9_000, turning())]].concat(), &[working]);
}

/// Claude Code 2.1.120 calls itself busy in its session file while some menus of the user's are open.
#[test]
fn session_file_begins_no_turn_while_the_title_is_plain() {
    let turn = [(200, Said(Title, Working)), (210, spinner()), (900, Said(Title, Claim::Nothing)), (910, closed())];
    let known = [(210, Processing, "rule spinner"), (910, Completed, "rule closed")];
    let menu = [(2_000, nothing()), (2_100, Said(SessionFile, Working)), (4_000, Said(SessionFile, Ready))];
    check_idle(&[&turn[..], &menu].concat(), &known);
    let works = [(2_000, nothing()), (2_100, Said(SessionFile, Working)), (2_110, Said(Title, Working))];
    let next = (2_260, Processing, "the agent said working (title)");
    check_idle(&[&turn[..], &works].concat(), &[&known[..], &[next]].concat());
}

#[test]
fn guesses_are_no_evidence() {
    let otherwise = || weak("otherwise", Processing, Strength::Fallback);
    check_idle(&[(200, otherwise()), (9_000, otherwise())], &[]);
    check_idle(&[(200, asks("a")), (300, otherwise())], &[(200, WaitingUserAnswer, "rule dialog")]);
    check_idle(&[(200, api_error()), (900, otherwise())], &[(700, Error, "rule api_error")]);
    check_idle(
        &[(200, otherwise()), (300, Said(Osc, Working)), (400, otherwise()), (900, Said(Osc, TurnOver))],
        &[
            (450, Processing, "the agent said working (OSC 7501)"),
            (900, Completed, "the agent said turn over (OSC 7501)"),
        ],
    );
}

/// Codex 0.163 says `idle` after every turn. The frame that shows how the turn ended follows, up to 67 ms later.
#[test]
fn ready_agent_waits_for_the_frame_that_shows_how_the_turn_ended() {
    let working = (200, Processing, "rule spinner");
    let ready = || Said(Osc, Ready);
    check_idle(
        &[(200, spinner()), (5_000, ready()), (5_067, api_error())],
        &[working, (5_067, Error, "rule api_error")],
    );
    check_idle(
        &[(200, spinner()), (4_990, quiet(1)), (5_000, ready()), (5_030, api_error())],
        &[working, (5_030, Error, "rule api_error")],
    );
    check_idle(&[(200, spinner()), (5_000, ready()), (5_010, closed())], &[working, (5_010, Completed, "rule closed")]);
    check_idle(&[(200, spinner()), (5_000, ready()), (5_180, quiet(1))], &[working, (5_220, Completed, "rule quiet")]);
    check_idle(&[(200, spinner()), (4_990, quiet(1)), (5_000, ready())], &[working, (5_040, Completed, "rule quiet")]);
    // While only the title shows that the agent works, and behind a view of the user's that hides the end.
    let turning = || [(200, Event::Read(title_busy(0))), (4_000, Event::Read(title_busy(1)))];
    let by_title = (350, Processing, "rule title.busy");
    check_idle(
        &[&turning()[..], &[(5_000, ready()), (5_067, api_error())]].concat(),
        &[by_title, (5_067, Error, "rule api_error")],
    );
    let over = (5_150, Completed, "the agent said ready (OSC 7501)");
    let idle_again = (5_150, Idle, over.2);
    check_idle(&[&turning()[..], &[(5_000, ready())]].concat(), &[by_title, idle_again]);
    check_idle(&[(200, spinner()), (4_000, nothing()), (5_000, ready())], &[working, over]);
    // Without such a frame the agent still works.
    check_idle(&[(200, spinner()), (5_000, ready())], &[working]);
}

/// Codex 0.163 turns its title, stops it and turns it again before it says that it works.
#[test]
fn title_that_stops_before_the_agent_says_that_it_works_ends_no_turn() {
    let sent = [(50, Said(Osc, Ready)), (200, Prompted), (210, Said(Title, Working)), (212, Said(Title, Ready))];
    let begun = [(390, Said(Title, Working)), (391, Said(Osc, Working)), (392, spinner()), (5_000, closed())];
    let told =
        [(200, Idle, SENT), (210, Processing, "the agent said working (title)"), (5_000, Completed, "rule closed")];
    check_idle(&[&sent[..], &begun].concat(), &told);
    // If it never says so, the screen must settle.
    let settled = [told[0], told[1], (1_212, Completed, "rule idle")];
    check_idle(&sent, &settled);
}

#[test]
fn idle_or_completed_depends_on_what_happened() {
    // The screen of a finished turn, scrolled away: still completed.
    check_idle(
        &[(200, spinner()), (900, closed()), (950, idle())],
        &[(200, Processing, "rule spinner"), (900, Completed, "rule closed")],
    );
    check_idle(
        &[(200, spinner()), (900, idle())],
        &[(200, Processing, "rule spinner"), (1_900, Completed, "rule idle")],
    );
    // Interrupted: Codex says idle.
    check_idle(
        &[(200, Prompted), (250, Said(Osc, Working)), (300, spinner()), (900, Said(Osc, Ready)), (920, idle())],
        &[(200, Idle, SENT), (250, Processing, "the agent said working (OSC 7501)"), (960, Completed, "rule idle")],
    );
    // The screen alone says completed, and nothing else is known.
    check_idle(&[(200, quiet(0))], &[(200, Completed, "rule quiet")]);
}

/// After a crash of the daemon the output of several turns is replayed. Only what the screen shows then is news.
#[test]
fn recalled_claims_change_no_status_and_still_hold_back_an_end() {
    let turns = [Working, TurnOver, Working, Failed("x".into()), Asking(None), Working];
    let recalled: Vec<_> = (10..).zip(turns.map(|claim| Event::Recalled(Osc, claim))).collect();
    check_idle(&recalled, &[]);
    // It still says working, so a quiet screen is believed later.
    check_idle(
        &[(200, spinner()), (300, Event::Recalled(Osc, Working)), (400, quiet(1))],
        &[(200, Processing, "rule spinner"), (1_900, Completed, "rule quiet")],
    );
}

#[test]
fn what_was_known_holds_until_there_is_evidence() {
    let known = |kind, reason: &str| {
        let reason = reason.to_owned();
        Life::resumed(
            Status {
                kind,
                reason,
                waiting_kind: None,
                dialog: None,
                since: Wall(0),
                epoch: 7,
                awaiting_reaction: false,
                unproven: false,
            },
            false,
        )
    };
    let check = |kind, events: &[(u64, Event)], expected: &[(u64, StatusKind)]| {
        let told = run(&mut known(kind, "rule x"), events);
        let told: Vec<_> = told.iter().map(|(ms, status)| (*ms, status.kind)).collect();
        assert_eq!(told, expected, "{kind} then {events:?}");
    };
    check(Processing, &[(100, nothing())], &[]);
    check(Processing, &[(100, quiet(0))], &[(1_100, Completed)]);
    check(Processing, &[(100, closed())], &[(100, Completed)]);
    check(Idle, &[(100, spinner())], &[(100, Processing)]);
    check(Completed, &[(100, idle())], &[]);
    check(Idle, &[(100, asks("a"))], &[(100, WaitingUserAnswer)]);
    check(WaitingUserAnswer, &[(100, spinner())], &[(100, Processing)]);
    check(Error, &[(100, idle())], &[(1_100, Completed)]);
    let mut starting = known(Processing, "starting");
    assert_eq!(run(&mut starting, &[(100, idle())])[0].1.kind, Idle, "it is still starting");
}

#[test]
fn nothing_is_told_twice() {
    let mut life = Life::starting(wall(0));
    run(&mut life, &[(100, idle()), (200, spinner())]);
    for ms in 300..400 {
        for event in [spinner(), Said(Title, Working), Said(Osc, Working), Said(Hook, Working), Event::Time] {
            assert_eq!(life.handle(&event, at(ms), wall(ms)), None, "{event:?}");
        }
        assert_eq!(life.deadline(), None, "nothing is due while it works");
    }
    let other = Event::Read(reading("title.busy", Some(Processing), 1));
    assert_eq!(life.handle(&other, at(400), wall(400)), None, "another rule, the same status");
    assert_eq!(life.status().reason, "rule spinner");
}

/// That a prompt was submitted is our own word. No client may take it for the agent being at work (seed 002).
#[test]
fn status_after_a_prompt_is_the_last_observed_one_until_the_agent_reacts() {
    let told = |events: &[(u64, Event)]| {
        let events: Vec<_> = [(100, idle())].into_iter().chain(events.iter().cloned()).collect();
        let told = run(&mut Life::starting(wall(0)), &events);
        let of = |(_, status): &(u64, Status)| (status.kind, status.awaiting_reaction, status.unproven);
        told.iter().map(of).collect::<Vec<_>>()
    };
    let idle = (Idle, false, false);
    let sent = (Idle, true, true);
    let prompt = (2_000, Prompted);
    assert_eq!(told(std::slice::from_ref(&prompt)), [idle, sent, (Completed, false, true)]);
    for event in [spinner(), Said(Hook, Working)] {
        let told = told(&[prompt.clone(), (2_600, event.clone()), (9_000, closed())]);
        assert_eq!(told, [idle, sent, (Processing, false, false), (Completed, false, false)], "{event:?}");
    }
    // A turn of which only the end is observed.
    let over = told(&[prompt.clone(), (2_600, Said(Osc, TurnOver)), (9_000, closed())]);
    assert_eq!(over, [idle, sent, (Completed, false, false)]);
    let asked = told(&[prompt.clone(), (2_100, asks("a"))]);
    assert_eq!(asked, [idle, sent, (WaitingUserAnswer, false, false)]);
    // And each prompt anew.
    let again = told(&[prompt.clone(), (2_100, spinner()), (5_000, closed()), (9_000, Prompted)]);
    assert_eq!(again[3..], [(Completed, false, false), (Completed, true, true), (Completed, false, true)]);
    // An error of the turn before is not one of the turn that begins.
    let failure = [(5_000, Said(Hook, Failed("x".into()))), (5_050, quiet(1)), (9_000, Prompted)];
    let failed = told(&[&[prompt, (2_100, spinner())], &failure[..]].concat());
    assert_eq!(failed[3..], [(Error, false, false), (Completed, true, true), (Completed, false, true)]);
}

#[test]
fn awaited_reaction_survives_a_restart() {
    let mut life = Life::starting(wall(0));
    run(&mut life, &[(100, idle())]);
    let sent = life.handle(&Prompted, at(200), wall(200)).cloned().unwrap();
    let stored: Status = serde_json::from_str(&serde_json::to_string(&sent).unwrap()).unwrap();
    assert!(stored.awaiting_reaction && stored.is_busy() && stored.kind == Idle);
    let mut resumed = Life::resumed(stored.clone(), false);
    assert_eq!(*resumed.status(), stored);
    let kinds: Vec<_> = run(&mut resumed, &[(300, idle()), (400, spinner()), (9_000, closed())])
        .iter()
        .map(|(ms, status)| (*ms, status.kind, status.awaiting_reaction))
        .collect();
    assert_eq!(kinds, [(400, Processing, false), (9_000, Completed, false)]);
    let told = run(&mut Life::resumed(stored, false), &[(300, idle())]);
    assert_eq!(told.iter().map(|(ms, status)| (*ms, status.kind)).collect::<Vec<_>>(), [(1_300, Completed)]);
}

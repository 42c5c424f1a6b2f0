//! What happens, and what is told of it: tables of (millisecond, event) and (millisecond, status).

mod prompts;
mod questions;
mod titles;

use super::*;
use crate::detect::{Evidence, Strength};
use crate::testing::at;
use Claim::{Asking, Failed, Ready, TurnOver, Working};
use Event::{Answered, Commanded, Denied, Exited, Prompted, Running, Said};
use Source::{Hook, Osc, Progress, SessionFile, Title};
use StatusKind::{Completed, Error, Idle, Processing, WaitingUserAnswer};
use WaitingKind::{Permission, Question, Startup};

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

/// The same, on an agent that begins to work at 200.
#[track_caller]
fn check_working(events: &[(u64, Event)], expected: &[(u64, StatusKind, &str)]) {
    let spinner = [(200, spinner())];
    check_idle(&[&spinner, events].concat(), &[&[(200, Processing, "rule spinner")], expected].concat());
}

pub(super) fn reading(rule: &str, status: Option<StatusKind>, content: u64) -> Reading {
    Reading { status, rule: rule.into(), strength: Strength::Layout, content, ..Reading::default() }
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
    check_working(&[(900, Exited(Exit::Code(0)))], &[(900, Error, "exited with 0")]);
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
    let status = Status::new(Error, "exited with 0", Wall(1));
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
    check_working(&[(5_000, quiet(0))], &[(6_000, Completed, "rule quiet")]);
    // Text streams in: no sign of work, but the conversation changes (S-77).
    let streaming = (1..9).map(|n| (5_000 + n * 900, quiet(n)));
    let events: Vec<_> = [(200, spinner())].into_iter().chain(streaming).collect();
    check_idle(&events, &[(200, Processing, "rule spinner"), (13_200, Completed, "rule quiet")]);
    // Equal looks do not begin anew.
    check_working(&[(5_000, quiet(0)), (5_500, quiet(0)), (5_990, quiet(0))], &[(6_000, Completed, "rule quiet")]);
    check_working(&[(5_000, quiet(0)), (5_900, spinner())], &[]);
    // Silence is not quiet.
    check_working(&[(900_000, spinner())], &[]);
}

#[test]
fn positive_evidence_ends_a_turn_at_once() {
    check_working(&[(5_000, closed())], &[(5_000, Completed, "rule closed")]);
    let over = || Said(Osc, TurnOver);
    let reason = "the agent said turn over (OSC 7501)";
    check_working(&[(5_000, over())], &[(5_000, Completed, reason), (5_300, Processing, "rule spinner")]);
    // The last frames of the spinner come after it.
    check_working(&[(5_000, over()), (5_150, spinner()), (5_180, quiet(1))], &[(5_000, Completed, reason)]);
    check_working(&[(4_990, quiet(1)), (5_000, over())], &[(5_000, Completed, reason)]);
    // The session file does not say what end it is, so the screen is waited for.
    let over = || Said(SessionFile, Ready);
    check_working(&[(5_000, over())], &[]);
    check_working(&[(5_000, over()), (5_180, quiet(1))], &[(5_180, Completed, "rule quiet")]);
    check_working(&[(4_990, quiet(1)), (5_000, over())], &[(5_000, Completed, "the agent said ready (session file)")]);
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
    check_working(&[(4_990, quiet(1)), (5_000, plain())], &[(5_990, Completed, "rule quiet")]);
    // It said so, the screen came after it and went on for a while: then the screen need not settle either.
    check_working(
        &[(5_000, Said(Osc, TurnOver)), (6_400, quiet(1))],
        &[
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
    check_working(&[over(), (5_120, quiet(1))], &[(5_120, Completed, "rule quiet")]);
    check_working(&[(4_990, quiet(1)), over()], &[(5_000, Completed, "the agent said turn over (hook)")]);
    // Another source agrees, whatever the screen shows.
    check_working(
        &[over(), (5_040, Said(Osc, TurnOver)), (5_100, quiet(1))],
        &[(5_040, Completed, "the agent said turn over (OSC 7501)")],
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
    check_working(&[(3_000, nothing()), over()], &[(5_300, Completed, "the agent said turn over (hook)")]);
    check_idle(
        &[(100, Said(Osc, Working)), (200, spinner()), (3_000, nothing()), over(), (6_000, Said(Osc, Working))],
        &[working],
    );
}

#[test]
fn late_words_do_not_last() {
    // A hook of the turn that has just ended.
    check_working(
        &[(900, Said(Osc, TurnOver)), (910, closed()), (980, Said(Hook, Working))],
        &[(900, Completed, "the agent said turn over (OSC 7501)")],
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
    let ready = || Said(Osc, Ready);
    check_working(&[(5_000, ready()), (5_067, api_error())], &[(5_067, Error, "rule api_error")]);
    check_working(&[(4_990, quiet(1)), (5_000, ready()), (5_030, api_error())], &[(5_030, Error, "rule api_error")]);
    check_working(&[(5_000, ready()), (5_010, closed())], &[(5_010, Completed, "rule closed")]);
    check_working(&[(5_000, ready()), (5_180, quiet(1))], &[(5_220, Completed, "rule quiet")]);
    check_working(&[(4_990, quiet(1)), (5_000, ready())], &[(5_040, Completed, "rule quiet")]);
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
    check_working(&[(4_000, nothing()), (5_000, ready())], &[over]);
    // Without such a frame the agent still works.
    check_working(&[(5_000, ready())], &[]);
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
    check_working(&[(900, closed()), (950, idle())], &[(900, Completed, "rule closed")]);
    check_working(&[(900, idle())], &[(1_900, Completed, "rule idle")]);
    // Interrupted: Codex says idle.
    check_idle(
        &[(200, Prompted), (250, Said(Osc, Working)), (300, spinner()), (900, Said(Osc, Ready)), (920, idle())],
        &[(200, Idle, SENT), (250, Processing, "the agent said working (OSC 7501)"), (960, Completed, "rule idle")],
    );
    // The screen alone says completed, and nothing else is known.
    check_idle(&[(200, quiet(0))], &[(200, Completed, "rule quiet")]);
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

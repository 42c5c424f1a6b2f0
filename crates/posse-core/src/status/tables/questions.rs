//! Questions and errors.

use super::*;
use crate::detect::dialog::Choosable;

#[test]
fn a_visible_question_beats_every_word() {
    let waiting = (500, WaitingUserAnswer, "rule dialog");
    for claim in [Working, Ready, TurnOver, Failed("x".into()), Asking(Some(Question))] {
        for source in Source::ALL {
            check_working(&[(500, asks("a")), (510, Said(source, claim.clone()))], &[waiting]);
        }
    }
    check_idle(
        &[(200, Said(Osc, Working)), (500, asks("a"))],
        &[(350, Processing, "the agent said working (OSC 7501)"), waiting],
    );
    // Nothing is said when it is accepted, and when it is refused.
    check_working(
        &[(500, asks("a")), (900, Answered), (950, spinner())],
        &[waiting, (950, Processing, "rule spinner")],
    );
    check_working(&[(500, asks("a")), (950, closed())], &[waiting, (950, Completed, "rule closed")]);
    check_working(
        &[(500, asks("a")), (950, quiet(1))],
        &[waiting, (950, Processing, "the question is gone (rule quiet)"), (1_950, Completed, "rule quiet")],
    );
    // We refuse it, and hear of that from the screen that shows the end (Claude Code, Codex).
    check_working(&[(500, asks("a")), (950, closed()), (951, Denied)], &[waiting, (950, Completed, "rule closed")]);
    // Accepted, and already over; accepted, and the screen does not show work yet.
    check_working(&[(500, asks("a")), (950, closed()), (951, Answered)], &[waiting, (950, Completed, "rule closed")]);
    check_working(
        &[(500, asks("a")), (950, quiet(1)), (951, Answered), (2_300, spinner())],
        &[waiting, (950, Processing, "the question is gone (rule quiet)")],
    );
    // A view that says nothing hides it.
    check_working(&[(500, asks("a")), (900, nothing())], &[waiting]);
    // Text that only looks like a question (S-55).
    let prose = || weak("seed.permission", WaitingUserAnswer, Strength::Text);
    check_working(&[(500, prose()), (600, spinner())], &[]);
    check_working(&[(500, prose())], &[(1_000, WaitingUserAnswer, "rule seed.permission")]);
}

#[test]
fn a_question_may_be_announced() {
    let spin = (200, Processing, "rule spinner");
    let said = (500, WaitingUserAnswer, "the agent said asking (OSC 7501)");
    let announced = [(200, spinner()), (500, Said(Osc, Asking(Some(Permission))))];
    // Codex goes on to draw its spinner for a second.
    let events = [&announced[..], &[(800, spinner()), (1_420, asks("a")), (9_000, asks("a"))]].concat();
    check_idle(&events, &[spin, said, (1_420, WaitingUserAnswer, "rule dialog")]);
    // Longer than that is not believed, until the question is there.
    let events = [&announced[..], &[(800, spinner()), (2_650, asks("a"))]].concat();
    let back = (2_000, Processing, "rule spinner");
    check_idle(&events, &[spin, said, back, (2_650, WaitingUserAnswer, "rule dialog")]);
    // Answered before we saw it.
    let events = [&announced[..], &[(800, Answered), (850, spinner())]].concat();
    check_idle(&events, &[spin, said, (800, Processing, "the question was answered")]);
    let events = [&announced[..], &[(800, Said(Osc, Working)), (850, spinner())]].concat();
    check_idle(&events, &[spin, said, (800, Processing, "the agent said working (OSC 7501)")]);
    // Refused before we saw it.
    let events = [&announced[..], &[(900, closed())]].concat();
    check_idle(&events, &[spin, said, (900, Completed, "rule closed")]);
}

#[test]
fn nothing_is_typed_before_an_announced_question() {
    let mut life = Life::starting(wall(0));
    let about = |life: &Life, ms| life.about_to_ask(at(ms));
    run(&mut life, &[(100, idle()), (200, spinner()), (500, Said(Hook, Asking(Some(Permission))))]);
    assert!(about(&life, 500) && about(&life, 2_999), "also while it is processing again");
    assert!(!about(&life, 3_000));
    life.handle(&Said(Hook, Working), at(600), wall(600));
    assert!(about(&life, 600), "another tool");
    life.handle(&asks("a"), at(700), wall(700));
    assert!(!about(&life, 700), "there it is");
}

#[test]
fn each_question_is_told_once() {
    let told = run(
        &mut Life::starting(wall(0)),
        &[
            (100, idle()),
            (200, Said(Osc, Asking(Some(Permission)))),
            (300, asks("a")),
            (400, asks("a")),
            (500, asks("b")),
            (600, Event::Read(question("b", Question))),
        ],
    );
    let told: Vec<_> = told
        .iter()
        .map(|(ms, s)| (*ms, s.epoch, s.since.0, s.waiting_kind, s.dialog.as_ref().map(|d| d.id.as_str())))
        .collect();
    assert_eq!(
        told,
        [
            (100, 1, 100, None, None),
            (200, 2, 200, Some(Permission), None),
            (300, 3, 200, Some(Permission), Some("a")),
            (500, 4, 500, Some(Permission), Some("b")),
            (600, 5, 500, Some(Question), Some("b")),
        ]
    );
}

#[test]
fn the_same_words_again_are_another_question() {
    let events = [(100, idle()), (300, asks("a")), (900, Event::AskedAgain), (1_000, asks("a")), (1_500, closed())];
    let told = run(&mut Life::starting(wall(0)), &events);
    let told: Vec<_> = told.iter().map(|(ms, status)| (*ms, status.kind, status.epoch, status.since.0)).collect();
    let expected = [(100, Idle, 1, 100), (300, WaitingUserAnswer, 2, 300), (900, WaitingUserAnswer, 3, 900)];
    assert_eq!(told, [&expected[..], &[(1_500, Completed, 4, 1_500)]].concat());
    // It was answered and is gone.
    check_working(
        &[(300, asks("a")), (900, closed()), (901, Event::AskedAgain)],
        &[(300, WaitingUserAnswer, "rule dialog"), (900, Completed, "rule closed")],
    );
}

#[test]
fn the_cursor_of_a_question_is_no_news() {
    let with_cursor = |selected| {
        let mut reading = question("a", Permission);
        reading.dialog.as_mut().unwrap().options = vec![Choosable { selected, ..Choosable::default() }];
        Event::Read(reading)
    };
    let mut life = Life::starting(wall(0));
    run(&mut life, &[(100, with_cursor(false)), (200, with_cursor(true))]);
    let status = life.status();
    assert_eq!((status.epoch, status.dialog.as_ref().unwrap().selected()), (1, Some(0)));
}

#[test]
fn one_odd_frame_is_no_error() {
    let spin = (200, Processing, "rule spinner");
    check_working(&[(500, api_error()), (900, spinner())], &[]); // S-126
    check_working(&[(500, api_error())], &[(1_000, Error, "rule api_error")]);
    check_working(
        &[(500, api_error()), (600, Said(Hook, Failed("overloaded".into())))],
        &[(600, Error, "the agent said failed: overloaded (hook)")],
    );
    check_working(&[(500, api_error()), (600, Said(SessionFile, Ready))], &[(600, Error, "rule api_error")]);
    // Progress ends a moment before the hook and the screen tell how (Claude Code 2.1.197); or nothing else does.
    // The session file does the same.
    for (vague, said) in
        [(Progress, "the agent said ready (progress)"), (SessionFile, "the agent said ready (session file)")]
    {
        check_idle(
            &[
                (200, spinner()),
                (500, Said(vague, Ready)),
                (510, Said(Hook, Failed("overloaded".into()))),
                (540, closed()),
            ],
            &[spin, (510, Error, "the agent said failed: overloaded (hook)")],
        );
        check_working(&[(500, Said(vague, Ready)), (560, closed())], &[(560, Completed, "rule closed")]);
        check_working(&[(300, nothing()), (500, Said(vague, Ready))], &[(800, Completed, said)]);
    }
    // With the row that closes the turn below it. Claude Code 2.1.197 tells nothing of a limit.
    let closed_error = || Event::Read(Reading { ends_turn: true, ..reading("closed_error", Some(Error), 0) });
    check_working(&[(500, closed_error())], &[(500, Error, "rule closed_error")]);
    // An empty screen (S-52).
    let empty = || weak("empty", Error, Strength::Fallback);
    check_idle(&[(200, empty()), (700, idle())], &[]);
    check_idle(&[(200, empty()), (2_190, spinner())], &[(2_190, Processing, "rule spinner")]);
    check_idle(&[(200, empty())], &[(2_200, Error, "rule empty")]);
    check_idle(&[(200, Said(Osc, Working)), (300, empty())], &[(350, Processing, "the agent said working (OSC 7501)")]);
    // The agent is gone and a shell is there (S-162).
    let shell = Event::Read(reading("process.shell", Some(Error), 0));
    check_idle(&[(200, shell)], &[(700, Error, "rule process.shell")]);
}

#[test]
fn an_error_that_was_told_stands_until_work_begins() {
    let failed = (500, Error, "the agent said failed: overloaded (hook)");
    let events = [(200, spinner()), (500, Said(Hook, Failed("overloaded".into())))];
    let spin = (200, Processing, "rule spinner");
    // The text of the error is unknown to the rules; the file says idle.
    let over = [&events[..], &[(600, closed()), (700, Said(SessionFile, Ready)), (800, Said(Osc, TurnOver))]].concat();
    check_idle(&over, &[spin, failed]);
    let again = [&events[..], &[(600, closed()), (5_000, Prompted), (5_100, spinner()), (6_000, closed())]].concat();
    check_idle(
        &again,
        &[
            spin,
            failed,
            (5_000, Completed, SENT),
            (5_100, Processing, "rule spinner"),
            (6_000, Completed, "rule closed"),
        ],
    );
    let retried = [&events[..], &[(1_000, spinner()), (2_000, quiet(7)), (2_001, closed())]].concat();
    check_idle(&retried, &[spin, failed, (800, Processing, "rule spinner"), (2_001, Completed, "rule closed")]);
    // One that was read goes when the screen shows something else.
    check_idle(&[(200, api_error()), (5_000, idle())], &[(700, Error, "rule api_error"), (6_000, Idle, "rule idle")]);
}

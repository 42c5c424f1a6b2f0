//! Titles, progress and session files, and the menus of the user that disturb them.

use super::*;

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
    let rested = (4_952, Completed, "the agent said ready (progress)");
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
    let completed = (5_023, Completed, "the agent said turn over (hook)");
    check_idle(&[&files[..1], &begun[..], &agreed, &files[1..], &later].concat(), &[working, completed]);
    // The hook runs a little earlier, and progress speaks after it.
    let earlier = [
        (4_905, Said(Hook, TurnOver)),
        (4_909, Said(Title, Working)),
        (4_910, Said(Progress, Working)),
        (4_963, Said(Title, Claim::Nothing)),
        (9_000, nothing()),
    ];
    let completed = (5_023, Completed, "the agent said turn over (hook)");
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

//! Titles, progress and session files, and menus of the user that affect them.

use super::*;

/// Claude Code briefly reports work when the user opens one of its menus.
#[test]
fn work_without_a_prompt_must_last() {
    for (source, name) in [("osc", "OSC 7501"), ("title", "title"), ("file", "session file")] {
        check_idle(&format!("200 {source} working; 210 nothing; 349 {source} ready"), "");
        let told = format!("1050 processing: working ({name})");
        check_idle(&format!("900 {source} working; 1100 spinner"), &told);
    }
    check_idle("200 turning; 340 nothing", "");
    // Progress stays busy while a menu is open; when the menu closes, the screen briefly shows work.
    let menu = "200 progress working; 210 nothing; 2000 spinner";
    check_idle(&format!("{menu}; 2020 idle; 2030 progress ready"), "");
    check_idle(menu, "2500 processing: rule spinner");
    // In older versions also when a menu opens.
    check_idle("200 typed /memory; 300 spinner; 640 nothing; 2000 idle", "");
    // A menu that the user opens and closes after a turn.
    check_idle(
        "100 prompted; 110 progress working; 210 spinner; 900 closed; 1000 progress ready; 5000 progress working;
         5010 nothing; 8000 quiet 7; 8100 progress ready",
        "100 idle: sent; 110 processing: working (progress); 900 completed: rule closed",
    );
    // A prompt of posse, a hook and the screen count at once.
    check_idle("200 hook working; 900 spinner", "200 processing: working (hook)");
    check_idle("200 osc working; 220 spinner", "220 processing: rule spinner");
}

/// Codex 0.130.0 drew a turn of 47 ms at once: the title turned, the prompt was taken, and the turn was over.
#[test]
fn title_that_turns_when_the_prompt_is_taken_proves_the_turn() {
    let script = "100 idle; 10000 title working; 10000 prompted; 10000 title ready; 10000 quiet 1";
    let told = run(&mut Life::starting(wall(0)), &events(script));
    let (_, last) = told.last().unwrap();
    assert_eq!((last.kind, last.unproven, last.awaiting_reaction), (Completed, false, false), "{told:?}");
}

#[test]
fn title_that_turned_for_the_prompt_reports_its_end() {
    let prompted = "2000 title working; 2005 turning 1; 2010 prompted";
    let begun = "2010 processing: rule title.busy";
    for (then, expected) in [
        // A turn of 30 ms is over before the prompt is known to be taken.
        ("2030 title ready; 2040 quiet 1", "2080 completed: rule quiet"),
        // A view of the user hides the end.
        ("5000 title ready; 5030 nothing", "5150 completed: ready (title)"),
        // A question after the turn, such as about a plan: when it is gone, the title still shows no work.
        (
            "5000 title ready; 5030 asks plan; 9000 denied; 9020 quiet 2",
            "5030 waiting_user_answer: rule dialog; 9020 completed: rule quiet",
        ),
    ] {
        check_idle(&format!("{prompted}; {then}"), &format!("{begun}; {expected}"));
    }
    // The end of the turn before is not the end of this one.
    check_idle(
        "2000 title working; 2005 turning 1; 9000 prompted; 9030 title ready; 9040 quiet 1",
        "2150 processing: working (title); 10540 completed: rule quiet",
    );
}

#[test]
fn stuck_title_does_not_hold_up_a_reported_end() {
    let begun = "200 title working; 210 turning 1; 900 turning 2; 1000 hook over";
    let working = "350 processing: working (title)";
    // Its end was lost. The last frame of the turn follows the hook.
    let over = format!("{working}; 2500 completed: turn over (hook)");
    check_idle(&format!("{begun}; 1100 turning 3; 90000 turning 3"), &over);
    // The hook was wrong: the answer continues.
    check_idle(&format!("{begun}; 1100 turning 3; 1400 turning 4; 1900 turning 5"), working);
    // The same if the rules do not read titles.
    check_idle(
        "200 title working; 210 turning 1; 900 quiet 2; 1000 hook over; 1400 quiet 4; 1900 quiet 5",
        &format!("{working}; 3400 completed: rule quiet"),
    );
}

/// Claude Code 2.1.197 draws its title and progress once more when a turn ends behind a menu, and leaves progress busy.
#[test]
fn turn_that_ends_behind_a_menu_ends_when_two_sources_agree() {
    let begun = "100 progress working; 200 spinner; 210 title working; 3000 turning 1";
    let agreed = "4890 title nothing; 4892 progress ready";
    let again = "4909 title working; 4910 progress working";
    for (then, over) in [
        (
            format!(
                "4800 hook over; {agreed}; 4895 nothing; {again}; 4911 turning 1; 4963 title nothing; 4964 nothing;
                 9000 nothing"
            ),
            "; 4892 completed: ready (progress)",
        ),
        // 2.1.275 reports by its title that it is ready.
        (
            "4800 hook over; 4890 title ready; 4892 progress ready; 4893 nothing; 9000 nothing".to_owned(),
            "; 4952 completed: ready (progress)",
        ),
        // The hook runs a little earlier, and progress reports after it.
        (
            format!("{agreed}; 4905 hook over; {again}; 4963 title nothing; 9000 nothing"),
            "; 5023 completed: turn over (hook)",
        ),
        // The user's own Stop hook still runs: title and progress show it, and no other source has reported the end.
        ("4800 hook over; 9000 turning 1".to_owned(), ""),
    ] {
        check_idle(&format!("{begun}; {then}"), &format!("200 processing: rule spinner{over}"));
    }
    // The hook runs in between: title, progress and the session file have reported after it.
    check_idle(
        &format!(
            "100 file working; {begun}; {agreed}; 4900 file ready; {again}; 4940 hook over; 4950 file working;
             4963 title nothing; 4964 nothing; 5000 file nothing; 9000 nothing"
        ),
        "200 processing: rule spinner; 5023 completed: turn over (hook)",
    );
}

/// Claude Code 2.1.120 is busy in its session file while some menus of the user are open.
#[test]
fn session_file_begins_no_turn_while_the_title_is_plain() {
    let turn = "200 title working; 210 spinner; 900 title nothing; 910 closed; 2000 nothing; 2100 file working";
    let known = "210 processing: rule spinner; 910 completed: rule closed";
    check_idle(&format!("{turn}; 4000 file ready"), known);
    check_idle(&format!("{turn}; 2110 title working"), &format!("{known}; 2260 processing: working (title)"));
}

/// Codex 0.166 reports work when it starts and withdraws it. The turn of a prompt taken in between starts after that.
#[test]
fn end_of_the_start_does_not_end_the_turn_of_an_early_prompt() {
    let start = "100 idle; 130 title working; 140 osc working; 180 prompted";
    let turn = "560 osc working; 570 title working; 2000 closed; 2010 osc over";
    for (ends, working) in [
        // The conversation shows the prompt, whose turn has not started.
        ("190 nothing; 240 title ready; 246 osc ready", 560),
        ("190 nothing; 240 title ready; 433 osc ready", 560),
        ("190 nothing; 240 osc ready; 250 title ready", 560),
        // The screen is still the one from before the prompt.
        ("240 title ready; 246 osc ready; 300 nothing", 560),
    ] {
        let expected = format!(
            "100 idle: rule idle; 180 idle: sent; {working} processing: working (OSC 7501); 2000 completed: rule closed"
        );
        check(&format!("{start}; {ends}; {turn}"), &expected);
    }
    // The prompt came first.
    let start =
        "100 idle; 110 prompted; 120 nothing; 130 title working; 140 osc working; 240 title ready; 250 osc ready";
    let working = "100 idle: rule idle; 110 idle: sent; 130 processing: working (title)";
    check(&format!("{start}; {turn}"), &format!("{working}; 2000 completed: rule closed"));
    // If the agent does not continue, the turn is over.
    check(start, &format!("{working}; 1250 completed: ready (OSC 7501)"));
}

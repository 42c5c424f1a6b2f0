//! Scenarios about the response file.

use super::super::testing::{Do, asks, begun, busy, check, completed, file, idle, message, on, play, rules, said};
use super::super::{Cause, Event, Look, TurnError};
use crate::review_loop::config::Handoff;
use Do::{File, Hang, Happens, Secretly};

const NO_FILE: &str = "Runtime NoFile";

fn stirred() -> Do {
    Happens(Event::FileStirred)
}

fn look(look: Look) -> Do {
    Happens(Event::File(look))
}

fn ready(text: &str) -> Look {
    Look::Ready(text.into())
}

#[test]
fn files_are_read_when_they_are_answers() {
    let read_at_quiet = [(0, busy()), (1_000, file("a")), (5_000, idle())];
    check("S-100, there while busy", rules(), &read_at_quiet, &[(5_000, "File a")]);
    let filled = [(0, busy()), (1_000, File(Look::Blank)), (2_000, idle()), (4_000, file("a"))];
    check("S-101, blank, later filled", rules(), &filled, &[(4_000, "File a")]);
    let blank = [(0, busy()), (1_000, File(ready(" \n"))), (2_000, idle())];
    check("S-102, blank for ever", rules(), &blank, &[(12_000, NO_FILE)]);
    let truncated = [(0, busy()), (1_000, idle()), (2_000, File(Look::Blank)), (2_300, file("whole"))];
    check("S-103, truncated, then written", rules(), &truncated, &[(2_300, "File whole")]);
    let grows = [(0, busy()), (1_000, idle()), (2_000, File(Look::Unsettled)), (2_070, Secretly(ready("all")))];
    check("S-104, still growing", rules(), &grows, &[(2_100, "File all")]);
    let longer = [(0, busy()), (1_000, file("short")), (2_000, file("much longer")), (3_000, idle())];
    check("S-105, rewritten while busy", rules(), &longer, &[(3_000, "File much longer")]);
    let asked = [(0, asks(Some("d"))), (10, file("a")), (4_000, busy()), (5_000, idle())];
    check("S-106, while waiting", on(), &asked, &[(0, "accept 1/20 d"), (5_000, "File a")]);
    let directory = [(0, busy()), (1_000, File(Look::NotRegular)), (2_000, idle()), (3_000, stirred())];
    check("S-109, a directory", rules(), &directory, &[(2_000, "warning: not a regular file"), (12_000, NO_FILE)]);
    let locked = [(0, idle()), (1_000, File(Look::Unreadable("permission denied".into()))), (2_000, file("a"))];
    check("D5, unreadable", rules(), &locked, &[(1_000, "warning: cannot be read"), (2_000, "File a")]);
    check("S-115, there at the beginning", rules(), &[(0, Secretly(ready("old"))), (0, idle())], &[(0, "File old")]);
    let late = [(0, busy()), (1_000, file("a"))];
    check("S-116, busy to the end", rules(), &late, &[(1_800_000, "Timeout TimedOut")]);
}

#[test]
fn what_is_kept_and_what_cannot_be_read_is_named() {
    let error = message(rules(), &[(0, busy()), (1_000, idle())]);
    assert!(error.contains("/w/.tmp/agent-responses/programmer_review.md"), "{error}");
    let said = said(rules(), &[(0, idle()), (0, File(Look::Unreadable("permission denied".into())))]);
    assert!(said[0].contains("programmer_review.md") && said[0].contains("permission denied"), "{said:?}");
    let late = TurnError::new(Cause::NoFile, "too late".into()).keeping("007-tester-late.md");
    assert_eq!(late.message, "too late; what the agent had written is kept as 007-tester-late.md");
}

#[test]
fn a_watcher_that_sees_nothing_costs_time_but_no_answer() {
    let missed = [(0, busy()), (1_000, idle()), (2_000, Secretly(ready("a")))];
    check("looked at before it fails", rules(), &missed, &[(11_000, "File a")]);
    let short = Handoff { response_timeout: 5, ..rules() };
    check("looked at before time is up", short, &missed, &[(5_000, "File a")]);
    let never = [(0, idle()), (2_000, Secretly(ready("a")))];
    check("looked at before the guard is released", rules(), &never, &[(10_000, "File a")]);
}

/// A look may take as long as it likes; what it shows must be from after the agent became quiet.
#[test]
fn answers_of_looks_that_come_late() {
    let busy_again = [(0, busy()), (0, Hang), (1_000, idle()), (1_010, busy()), (1_020, look(ready("half")))];
    check("busy meanwhile", rules(), &busy_again, &[(1_800_000, "Timeout TimedOut")]);
    let quiet_again = [
        (0, busy()),
        (0, Hang),
        (1_000, idle()),
        (1_010, busy()),
        (1_020, idle()),
        (1_030, look(ready("half"))),
        (1_040, look(ready("whole"))),
    ];
    check("asked in the quiet before", rules(), &quiet_again, &[(1_040, "File whole")]);
    let written = [
        (0, busy()),
        (0, Hang),
        (1_000, idle()),
        (1_010, stirred()),
        (1_020, look(Look::Absent)),
        (1_030, look(ready("a"))),
    ];
    check("written while it was looked for", rules(), &written, &[(1_030, "File a")]);
    let nobody_asked =
        [(0, busy()), (0, Hang), (1_000, look(ready("old"))), (2_000, idle()), (2_010, look(ready("new")))];
    check("not asked for", rules(), &nobody_asked, &[(2_010, "File new")]);
    // The disk hangs: five seconds of patience, then the turn fails as if there were nothing.
    check("never", rules(), &[(0, busy()), (0, Hang), (1_000, idle())], &[(16_000, NO_FILE)]);
    let at_last = [(0, busy()), (0, Hang), (1_000, idle()), (15_000, look(ready("a")))];
    check("at the last moment", rules(), &at_last, &[(15_000, "File a")]);
}

#[test]
fn a_file_that_is_being_written_when_time_is_up_gets_a_second() {
    let slow = [(0, busy()), (1_000, idle()), (10_990, File(Look::Unsettled)), (11_500, Secretly(ready("just")))];
    let (told, _) = play(begun(rules()), &slow);
    assert_eq!(told.len(), 1);
    assert!(told[0].0 >= 11_500 && told[0].0 <= 11_550 && told[0].1 == "File just", "{told:?}");
    let endless = [(0, busy()), (1_000, idle()), (10_990, File(Look::Unsettled))];
    check("never complete", rules(), &endless, &[(12_000, NO_FILE)]);
    let busy_again = [
        (0, busy()),
        (1_000, completed()),
        (10_990, File(Look::Unsettled)),
        (11_300, busy()),
        (12_000, file("a")),
        (13_000, idle()),
    ];
    check("at work again", rules(), &busy_again, &[(13_000, "File a")]);
}

//! Scenarios about the response file.

use super::super::testing::{check, message, play, said};
use super::super::{Cause, TurnError};

#[test]
fn files_are_read_when_they_are_answers() {
    check(
        "S-100, there while busy        | | 0 busy, 1 file a, 5 idle | 5 File a
         S-101, blank, later filled     | | 0 busy, 1 blank, 2 idle, 4 file a | 4 File a
         S-102, blank for ever          | | 0 busy, 1 file \\n, 2 idle | 12 Runtime NoFile
         S-103, truncated, then written | | 0 busy, 1 idle, 2 blank, 2.3 file whole | 2.3 File whole
         S-104, still growing           | | 0 busy, 1 idle, 2 growing, 2.07 unseen all | 2.1 File all
         S-105, rewritten while busy    | | 0 busy, 1 file short, 2 file much longer, 3 idle | 3 File much longer
         S-106, while waiting           | accept | 0 asks d, 0.01 file a, 4 busy, 5 idle | 0 accept 1/20 d, 5 File a
         S-109, a directory             | | 0 busy, 1 directory, 2 idle, 3 stirred
                                        | 2 warning: not a regular file, 12 Runtime NoFile
         D5, unreadable                 | | 0 idle, 1 unreadable, 2 file a | 1 warning: cannot be read, 2 File a
         S-115, there at the beginning  | | 0 unseen old, 0 idle | 0 File old
         S-116, busy to the end         | | 0 busy, 1 file a | 1800 Timeout TimedOut",
    );
}

#[test]
fn what_is_kept_and_what_cannot_be_read_is_named() {
    let error = message("", "0 busy, 1 idle");
    assert!(error.contains("/w/.tmp/agent-responses/programmer_review.md"), "{error}");
    let said = said("", "0 idle, 0 unreadable");
    assert!(said[0].contains("programmer_review.md") && said[0].contains("permission denied"), "{said:?}");
    let late = TurnError::new(Cause::NoFile, "too late".into()).keeping("007-tester-late.md");
    assert_eq!(late.message, "too late; what the agent had written is kept as 007-tester-late.md");
}

#[test]
fn a_watcher_that_sees_nothing_costs_time_but_no_answer() {
    check(
        "looked at before it fails              |     | 0 busy, 1 idle, 2 unseen a | 11 File a
         looked at before time is up            | T=5 | 0 busy, 1 idle, 2 unseen a | 5 File a
         looked at before the guard is released |     | 0 idle, 2 unseen a | 10 File a",
    );
}

/// A read may take any time, but its result must be from after the agent became quiet.
#[test]
fn answers_of_looks_that_come_late() {
    check(
        "busy meanwhile | | 0 busy, 0 hang, 1 idle, 1.01 busy, 1.02 look half | 1800 Timeout TimedOut
         asked in the quiet before
            | | 0 busy, 0 hang, 1 idle, 1.01 busy, 1.02 idle, 1.03 look half, 1.04 look whole | 1.04 File whole
         written while it was looked for | | 0 busy, 0 hang, 1 idle, 1.01 stirred, 1.02 look, 1.03 look a | 1.03 File a
         not asked for | | 0 busy, 0 hang, 1 look old, 2 idle, 2.01 look new | 2.01 File new
         never: the disk hangs, five seconds of patience | | 0 busy, 0 hang, 1 idle | 16 Runtime NoFile
         at the last moment | | 0 busy, 0 hang, 1 idle, 15 look a | 15 File a",
    );
}

#[test]
fn a_file_that_is_being_written_when_time_is_up_gets_a_second() {
    let (told, _) = play("", "0 busy, 1 idle, 10.99 growing, 11.5 unseen just");
    let [told] = &told[..] else { panic!("{told:?}") };
    let (second, words) = told.split_once(' ').unwrap();
    assert!((11.5..=11.55).contains(&second.parse::<f64>().unwrap()) && words == "File just", "{told}");
    check(
        "never complete | | 0 busy, 1 idle, 10.99 growing | 12 Runtime NoFile
         at work again  | | 0 busy, 1 completed, 10.99 growing, 11.3 busy, 12 file a, 13 idle | 13 File a",
    );
}

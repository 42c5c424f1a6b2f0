//! What holds for every text and every record.

use proptest::prelude::*;

use super::edit::{Mark, Original, write};
use super::file_tests::OLD;
use super::{FailureKind, Plan, Record, State, TaskStatus, yaml};

fn words() -> impl Strategy<Value = Option<String>> {
    proptest::option::of(prop_oneof![
        "\\PC{1,40}",
        "[ -~\n\t]{1,60}",
        any::<String>(),
        Just("null".to_owned()),
        Just("1.10".to_owned())
    ])
}

fn record() -> impl Strategy<Value = Record> {
    let status = proptest::sample::select(&TaskStatus::ALL[..]);
    let kind = proptest::option::of(proptest::sample::select(&FailureKind::ALL[..]));
    let all = || proptest::collection::vec("[ -~\n]{1,20}", 0..3);
    (status, 1..9_u32, words(), words(), kind, all(), words(), proptest::option::of(0.0..1e6), all()).prop_map(
        |(
            status,
            attempts,
            result_message,
            last_error,
            failure_kind,
            validation_findings,
            question,
            cost_usd,
            commits,
        )| Record {
            status,
            attempts,
            result_message,
            last_error,
            failure_kind,
            validation_findings,
            question,
            // A skipped task must say why.
            skip_reason: Some("because".into()),
            cost_usd,
            commits,
            ..Record::default()
        },
    )
}

proptest! {
    /// Whatever has become of a task, it can be written, and read again; and everything else stands where it stood.
    #[test]
    fn every_record_can_be_written_over_every_other(first in record(), second in record()) {
        let (plan, _) = Plan::read("p", OLD).unwrap();
        let mut text = OLD.to_owned();
        for record in [first, second] {
            let mut state = State::recorded(&plan);
            for id in ["1.1", "1.2", "2.1", "3"] {
                *state.of(&id.parse().unwrap()) = record.clone();
            }
            text = write(&text, &state, &Mark::default()).unwrap();
            let (read, _) = Plan::read("p", &text).unwrap();
            for task in read.tasks() {
                prop_assert_eq!(task.record.status, record.status);
                prop_assert_eq!(task.record.cost_usd, record.cost_usd);
            }
        }
        prop_assert!(text.contains("name: Sandbox fix   # shown in reports\n"));
        prop_assert!(text.contains("      # reviewed by hand\n"));
    }

    /// A text that is written over again and again is always what it would be had it been written once.
    #[test]
    fn what_was_written_before_does_not_matter(records in proptest::collection::vec((0..4_usize, record()), 1..12)) {
        let original = Original::read(OLD).unwrap();
        let (plan, _) = Plan::read("p", OLD).unwrap();
        let mut state = State::recorded(&plan);
        for (n, record) in records {
            *state.of(&["1.1", "1.2", "2.1", "3"][n].parse().unwrap()) = record;
            let mark = Mark { pause_reason: (n == 3).then(|| "a pause".into()), ..Mark::default() };
            prop_assert_eq!(original.write(&state, &mark), write(OLD, &state, &mark));
        }
    }

    /// Rubbish is refused, not crashed on; and every place that is named is in the text.
    #[test]
    fn no_text_crashes_the_reader(at in 0..OLD.len(), gone in 0..40_usize, put in "[ -~\n\té]{0,12}") {
        let mut text = OLD.to_owned();
        let from = (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        let to = (from + gone).min(text.len());
        text.replace_range(from..to, &put);
        if let Err(found) = Plan::read("p", &text) {
            prop_assert!(!found.problems.is_empty());
            for problem in &found.problems {
                prop_assert!(text.get(problem.at.start..problem.at.end).is_some(), "{problem}");
                prop_assert!(problem.at.line >= 1 && problem.at.column >= 1, "{problem}");
            }
        }
    }

    #[test]
    fn no_text_crashes_the_parser(text in any::<String>()) {
        drop(yaml::parse(&text));
    }
}

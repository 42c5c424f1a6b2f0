//! Properties that hold for every text and every status.

use proptest::prelude::*;

use super::edit::PlanText;
use super::file_tests::OLD;
use super::{Plan, State, TaskStatus, yaml};

proptest! {
    /// Any statuses can replace any others, and everything else stays in place.
    #[test]
    fn every_status_can_be_written_over_every_other(
        rounds in proptest::collection::vec(proptest::array::uniform4(proptest::sample::select(&TaskStatus::ALL[..])), 1..4),
    ) {
        let (plan, _) = Plan::read("p", OLD).unwrap();
        let original = PlanText::parse(OLD).unwrap();
        let mut text = OLD.to_owned();
        for statuses in rounds {
            let mut state = State::recorded(&plan);
            for (task, status) in plan.tasks().zip(statuses) {
                state.of(&task.id).status = status;
            }
            text = PlanText::parse(&text).unwrap().with_statuses(&state).unwrap();
            prop_assert!(original.is_same_plan(&text));
            prop_assert_eq!(PlanText::parse(&text).unwrap().with_statuses(&state).unwrap(), text.clone());
        }
        prop_assert!(text.contains("name: Sandbox fix   # shown in reports\n"));
        prop_assert!(text.contains("      # reviewed by hand\n"));
    }

    /// Garbage is refused without a crash, and every reported position is in the text.
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

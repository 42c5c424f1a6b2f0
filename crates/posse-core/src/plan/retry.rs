//! Whether a task that failed is tried again, and after which pause.

use std::time::Duration;

use super::FailureKind;
use super::outcome::{Denial, FailedHow, Failure, denial_advice, denied_again};
use crate::engine::retry::Backoff;

/// What becomes of a task after a failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum After {
    /// Again, after a pause.
    Again(Duration),
    /// Failed for good.
    GiveUp { kind: FailureKind, message: String },
}

/// What is known of a task's failures, the newest included.
#[derive(Clone, Copy, Debug)]
pub struct Tries<'a> {
    /// Attempts that count.
    pub attempts: u32,
    pub max_attempts: u32,
    /// Failures in a row that do not count.
    pub infra: u32,
    /// What was refused in the failure before.
    pub denied_before: &'a [Denial],
}

/// After an attempt that counts.
pub fn after_failure(failure: &Failure, tries: &Tries<'_>, backoff: &Backoff) -> After {
    if let Some(denial) = denied_again(tries.denied_before, &failure.denials) {
        return After::GiveUp { kind: FailureKind::Denied, message: denial_advice(denial) };
    }
    // Another attempt would build on it, and only a person can put it right.
    if failure.kind == FailedHow::UsersWork {
        return After::GiveUp { kind: FailureKind::Config, message: failure.message.clone() };
    }
    if tries.attempts >= tries.max_attempts {
        return After::GiveUp { kind: FailureKind::AttemptsExhausted, message: failure.message.clone() };
    }
    After::Again(backoff.pause(tries.attempts))
}

/// After one that does not.
pub fn after_infra(failure: &Failure, tries: &Tries<'_>, backoff: &Backoff) -> After {
    match backoff.infra_pause(tries.infra) {
        Some(pause) => After::Again(pause),
        None => {
            let message = format!("{} times in a row: {}", tries.infra, failure.message);
            After::GiveUp { kind: FailureKind::Config, message }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::outcome::FailedHow;
    use super::*;

    fn failure(denied: &[&str]) -> Failure {
        let denials =
            denied.iter().map(|target| Denial { tool: "Write".into(), target: Some((*target).into()) }).collect();
        Failure { kind: FailedHow::Gate, message: "red".into(), denials, output: None }
    }

    #[test]
    fn every_kind_of_failure_has_an_end() {
        let backoff = Backoff::default();
        let tries = |attempts, infra| Tries { attempts, max_attempts: 3, infra, denied_before: &[] };
        assert_eq!(after_failure(&failure(&[]), &tries(2, 0), &backoff), After::Again(Duration::from_secs(10)));
        let exhausted = After::GiveUp { kind: FailureKind::AttemptsExhausted, message: "red".into() };
        assert_eq!(after_failure(&failure(&[]), &tries(3, 0), &backoff), exhausted);
        assert_eq!(after_infra(&failure(&[]), &tries(0, 2), &backoff), After::Again(Duration::from_secs(10)));
        let config = After::GiveUp { kind: FailureKind::Config, message: "3 times in a row: red".into() };
        assert_eq!(after_infra(&failure(&[]), &tries(0, 3), &backoff), config);
    }

    #[test]
    fn t13_the_third_attempt_is_not_spent_on_a_wall() {
        let before = failure(&["out/report.md"]).denials;
        let tries = Tries { attempts: 2, max_attempts: 5, infra: 0, denied_before: &before };
        let After::GiveUp { kind, message } = after_failure(&failure(&["out/report.md"]), &tries, &Backoff::default())
        else {
            panic!("tried again");
        };
        assert_eq!(kind, FailureKind::Denied);
        assert!(message.contains("Write out/report.md") && message.contains("posse run retry"), "{message}");
    }
}

//! Whether a task that failed is tried again, and after which pause.

use std::time::Duration;

use super::FailureKind;
use super::outcome::{Denial, FailedHow, Failure, denial_advice, denied_again};
use crate::engine::retry::Backoff;

/// The pause before the next attempt at a task, or why the task has failed for good.
type Retry = Result<Duration, (FailureKind, String)>;

/// Decides about a failure that counts as an attempt. `denied_before` is what was refused in the failure before.
pub fn after_failure(
    failure: &Failure,
    (attempts, max_attempts): (u32, u32),
    denied_before: &[Denial],
    backoff: &Backoff,
) -> Retry {
    if let Some(denial) = denied_again(denied_before, &failure.denials) {
        return Err((FailureKind::Denied, denial_advice(denial)));
    }
    // Another attempt would build on it, and only a person can put it right.
    if failure.kind == FailedHow::UsersWork {
        return Err((FailureKind::Config, failure.message.clone()));
    }
    if attempts >= max_attempts {
        return Err((FailureKind::AttemptsExhausted, failure.message.clone()));
    }
    Ok(backoff.pause(attempts))
}

/// Decides about a failure that does not count. `infra` is the number of such failures in a row.
pub fn after_infra(failure: &Failure, infra: u32, backoff: &Backoff) -> Retry {
    let gives_up = || (FailureKind::Config, format!("{infra} times in a row: {}", failure.message));
    backoff.infra_pause(infra).ok_or_else(gives_up)
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
        let after = |attempts| after_failure(&failure(&[]), (attempts, 3), &[], &backoff);
        assert_eq!(after(2), Ok(Duration::from_secs(10)));
        assert_eq!(after(3), Err((FailureKind::AttemptsExhausted, "red".into())));
        assert_eq!(after_infra(&failure(&[]), 2, &backoff), Ok(Duration::from_secs(10)));
        let config = Err((FailureKind::Config, "3 times in a row: red".into()));
        assert_eq!(after_infra(&failure(&[]), 3, &backoff), config);
    }

    #[test]
    fn t13_the_third_attempt_is_not_spent_on_a_wall() {
        let before = failure(&["out/report.md"]).denials;
        let after = after_failure(&failure(&["out/report.md"]), (2, 5), &before, &Backoff::default());
        let (kind, message) = after.unwrap_err();
        assert_eq!(kind, FailureKind::Denied);
        assert!(message.contains("Write out/report.md") && message.contains("posse run retry"), "{message}");
    }
}

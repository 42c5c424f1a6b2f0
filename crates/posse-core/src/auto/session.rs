//! Classifies the end of a planner's or verifier's session. The plan or verdict that it delivered is checked elsewhere.

use serde::{Deserialize, Serialize};

use crate::engine::hold::Hold;
use crate::plan::outcome::{Ended, FailedHow, ToolResult, bad_end};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionEnd {
    /// Stopped on request. Costs nothing.
    Interrupted,
    /// Out of quota. Costs nothing.
    Limited(Hold),
    /// It has spent its budget. Costs no attempt.
    OutOfMoney,
    /// It failed through no fault of the item.
    Infra(String),
    Failed(String),
    /// It asks the author of the item a question.
    Asks(String),
    /// It ended by itself.
    Over {
        denied: Vec<String>,
    },
}

/// The first that holds decides.
pub fn session_end(ended: &Ended, limit: Option<Hold>, result: Option<&ToolResult>) -> SessionEnd {
    if *ended == Ended::Stopped {
        return SessionEnd::Interrupted;
    }
    if let Some(hold) = limit {
        return SessionEnd::Limited(hold);
    }
    if *ended == Ended::Lost {
        return SessionEnd::Infra("the session was lost".into());
    }
    match (bad_end(ended, result), result) {
        (Some((FailedHow::NotStarted, why)), _) => SessionEnd::Infra(why),
        (Some((_, why)), _) => SessionEnd::Failed(why),
        (None, None) => SessionEnd::Infra("the session ended without a word".into()),
        (None, Some(result)) if result.turns == Some(0) => SessionEnd::Failed("the agent took no turn".into()),
        (None, Some(result)) => SessionEnd::Over { denied: result.denials.iter().map(ToString::to_string).collect() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Wall;

    #[test]
    fn only_a_session_that_came_to_its_end_is_over() {
        let result = |is_error, turns| ToolResult { is_error, turns, text: "boom".into(), denials: Vec::new() };
        let hold = Hold { until: Wall(9), reason: "limit".into(), known: true };
        let over = SessionEnd::Over { denied: Vec::new() };
        let failed = |text: &str| SessionEnd::Failed(text.into());
        let infra = |text: &str| SessionEnd::Infra(text.into());
        for (ended, limit, result, end) in [
            (Ended::Exited(0), None, Some(result(false, Some(1))), over.clone()),
            (Ended::Exited(0), None, Some(result(false, None)), over),
            (Ended::Exited(0), None, Some(result(false, Some(0))), failed("the agent took no turn")),
            (Ended::Exited(0), None, Some(result(true, None)), failed("the session ended in an error: boom")),
            (Ended::Exited(0), None, None, infra("the session ended without a word")),
            (Ended::Exited(3), None, Some(result(true, None)), failed("the session exited with 3: boom")),
            (Ended::Killed(9), None, None, failed("the session was ended by signal 9")),
            (Ended::TimedOut, None, None, failed("the session took too long and was ended")),
            (Ended::Lost, None, None, infra("the session was lost")),
            (Ended::Exited(1), Some(hold.clone()), None, SessionEnd::Limited(hold.clone())),
            (Ended::Stopped, Some(hold), None, SessionEnd::Interrupted),
        ] {
            assert_eq!(session_end(&ended, limit, result.as_ref()), end, "{ended:?}");
        }
    }
}

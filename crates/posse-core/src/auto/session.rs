//! What came of a planner's or verifier's session. What they delivered is looked at elsewhere: a planner's plan is checked, a
//! verifier's verdict is read. Here is only whether there can be one.

use serde::{Deserialize, Serialize};

use crate::plan::limits::Hold;
use crate::plan::outcome::{Ended, ToolResult};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionEnd {
    /// Stopped on request. Costs nothing.
    Interrupted,
    /// Out of quota. Costs nothing.
    Limited(Hold),
    /// It had spent all that it was given, which is all that was left. Costs no attempt.
    OutOfMoney,
    /// It could not be tried properly.
    Infra(String),
    Failed(String),
    /// It asks the author of the item.
    Asks(String),
    /// It came to its end by itself. What it was refused, if anything.
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
    let error = result.filter(|result| result.is_error).map(|result| result.text.trim().to_owned());
    let with_error = |what: String| match error.as_deref() {
        Some(error) if !error.is_empty() => format!("{what}: {error}"),
        _ => what,
    };
    match ended {
        Ended::Stopped => SessionEnd::Interrupted,
        Ended::NotStarted(why) => SessionEnd::Infra(format!("the session could not be started: {why}")),
        Ended::Lost => SessionEnd::Infra("the session was lost".into()),
        Ended::TimedOut => SessionEnd::Failed("the session took too long and was ended".into()),
        Ended::Stalled => SessionEnd::Failed("the session said nothing for too long and was ended".into()),
        Ended::Exited(0) if error.is_some() => SessionEnd::Failed(with_error("the session ended in an error".into())),
        Ended::Exited(0) => match result {
            None => SessionEnd::Infra("the session ended without a word".into()),
            Some(result) if result.turns == Some(0) => SessionEnd::Failed("the agent took no turn".into()),
            Some(result) => SessionEnd::Over { denied: result.denials.iter().map(ToString::to_string).collect() },
        },
        Ended::Exited(code) => SessionEnd::Failed(with_error(format!("the session exited with {code}"))),
        Ended::Killed(signal) => SessionEnd::Failed(with_error(format!("the session was ended by signal {signal}"))),
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

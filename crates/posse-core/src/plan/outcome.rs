//! Decides the outcome of an attempt from the evidence. A session's report of success needs proof.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::TaskId;
use super::report::{NoReport, Report, Said, find};
use crate::engine::hold::Hold;
use crate::words;

/// The evidence at the end of a session.
#[derive(Clone, Debug)]
pub struct Evidence<'a> {
    pub task: &'a TaskId,
    /// The run's nonce, known only to its session.
    pub nonce: &'a str,
    pub ended: Ended,
    /// A usage limit was detected (`limits`).
    pub limit: Option<Hold>,
    /// The tool's own final result, if there is one.
    pub result: Option<ToolResult>,
    /// The content of the report file.
    pub report: Option<&'a str>,
    /// The agent's last message.
    pub last_message: Option<&'a str>,
    /// The session's profile permits writing.
    pub may_write: bool,
    /// The session left commits or changed files.
    pub left_work: bool,
    /// The paths that it had to write: its report, a requested document.
    pub deliverables: &'a [String],
}

/// The end of the process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// Posse ended it because a stop was requested.
    Stopped,
    NotStarted(String),
    /// It exceeded its timeout.
    TimedOut,
    /// It printed nothing for too long.
    Stalled,
    Exited(i32),
    /// By a signal that posse did not send.
    Killed(i32),
    /// The end was not observed: the machine or the process's keeper went down.
    Lost,
}

/// The last event of a headless session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolResult {
    pub is_error: bool,
    /// Absent is unknown.
    pub turns: Option<u32>,
    /// The tool's text about it.
    pub text: String,
    pub denials: Vec<Denial>,
}

/// A request of the agent that was denied.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Denial {
    pub tool: String,
    /// The file or the command, if the tool reports it.
    pub target: Option<String>,
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.target {
            Some(target) => write!(f, "{} {target}", self.tool),
            None => f.write_str(&self.tool),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Stopped on request. Costs no attempt.
    Interrupted,
    /// Out of quota. Costs no attempt.
    Limited(Hold),
    /// The task could not be tried properly. This costs no attempt, and `machine` bounds the retries.
    Infra(Failure),
    Failed(Failure),
    /// The session asks a question.
    Suspended {
        question: String,
        context: Option<String>,
    },
    /// The session reports success, with evidence. Gates and validators come next.
    Done(Report),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    pub kind: FailedHow,
    /// For people, and for the next attempt.
    pub message: String,
    pub denials: Vec<Denial>,
    /// The end of a check's output.
    pub output: Option<String>,
}

impl Outcome {
    /// Returns the outcome of a session that need not write a report: its last message or its work counts.
    pub fn without_report(self, task: &str, message: &str) -> Self {
        match self {
            Self::Failed(failure) if failure.kind == FailedHow::NoReport => {
                Self::Done(Report::completed(task, message))
            }
            outcome => outcome,
        }
    }

    /// Returns the outcome in one word, for the usage table. `done`: the word for work that is done.
    pub fn word(&self, done: &'static str) -> &'static str {
        match self {
            Self::Done(_) => done,
            Self::Failed(_) => "failed",
            Self::Infra(_) => "not_run",
            Self::Suspended { .. } => "asked",
            Self::Interrupted => "interrupted",
            Self::Limited(_) => "limited",
        }
    }

    /// Returns the usage limit that the session hit.
    pub fn hold(&self) -> Option<&Hold> {
        if let Self::Limited(hold) = self { Some(hold) } else { None }
    }
}

impl Failure {
    pub fn new(kind: FailedHow, message: String) -> Self {
        Self { kind, message, denials: Vec::new(), output: None }
    }
}

words! {
    /// The cause of an attempt's failure.
    #[derive(Hash)]
    pub enum FailedHow ("failure") {
        NotStarted = "not_started",
        Timeout = "timeout",
        Stalled = "stalled",
        /// The tool ended in an error.
        Tool = "tool_error",
        NoReport = "no_report",
        BadReport = "bad_report",
        /// The session reported a failure.
        Reported = "reported",
        /// The session reported success without any change.
        NoEvidence = "no_evidence",
        /// A check that posse ran failed.
        Gate = "gate",
        /// A validator rejected the work.
        Validation = "validation",
        /// Its work could not be merged.
        Merge = "merge",
        /// The run was interrupted before there was an outcome.
        Lost = "lost",
        /// It committed the user's uncommitted changes, or rewrote earlier history.
        UsersWork = "users_work",
    }
}

/// Returns the outcome. The first rule that matches decides, so the order matters.
pub fn decide(evidence: &Evidence<'_>) -> Outcome {
    let denials = evidence.result.as_ref().map_or(&[][..], |result| &result.denials);
    let failure = |kind, message: String| Failure {
        kind,
        message: with_denials(message, denials),
        denials: denials.to_vec(),
        output: None,
    };

    if evidence.ended == Ended::Stopped {
        return Outcome::Interrupted;
    }
    if let Some(hold) = &evidence.limit {
        return Outcome::Limited(hold.clone());
    }
    let report = find(evidence.report, evidence.last_message, evidence.task, evidence.nonce);
    // The earlier report still exists, and finished work is not repeated.
    if evidence.ended == Ended::Lost && report.is_err() {
        return Outcome::Infra(failure(FailedHow::Lost, "the session was lost before it reported".into()));
    }
    match (bad_end(&evidence.ended, evidence.result.as_ref()), &report) {
        (Some((kind @ FailedHow::NotStarted, message)), _) => return Outcome::Infra(failure(kind, message)),
        (Some((kind @ FailedHow::Tool, message)), Ok(report)) => {
            let message = format!("{message}; it had reported: {}", report.message);
            return Outcome::Failed(failure(kind, message));
        }
        (Some((kind, message)), _) => return Outcome::Failed(failure(kind, message)),
        (None, _) => {}
    }
    let report = match report {
        Ok(report) => report,
        Err(error @ NoReport::Missing) if evidence.result.is_none() => {
            return Outcome::Infra(failure(FailedHow::NoReport, format!("{error}, and ended without a word")));
        }
        Err(error @ NoReport::Missing) => return Outcome::Failed(failure(FailedHow::NoReport, error.to_string())),
        Err(error @ NoReport::Bad(_)) => return Outcome::Failed(failure(FailedHow::BadReport, error.to_string())),
    };
    match report.status {
        Said::Suspended => {
            let question = report.question.unwrap_or_default();
            Outcome::Suspended { question, context: report.question_context }
        }
        // A read-only session reports its findings in a verdict.
        Said::Failed if evidence.may_write || report.verdict.is_none() => {
            Outcome::Failed(failure(FailedHow::Reported, report.message))
        }
        Said::Completed | Said::NoChangeNeeded | Said::Failed => match without_evidence(evidence, &report, denials) {
            Some(why) => Outcome::Failed(failure(FailedHow::NoEvidence, format!("it says it is done, but {why}"))),
            None => Outcome::Done(report),
        },
    }
}

/// Returns why a session with this end delivered nothing, if so. A lost session is not covered.
pub fn bad_end(ended: &Ended, result: Option<&ToolResult>) -> Option<(FailedHow, String)> {
    let error = result.filter(|result| result.is_error).map(|result| result.text.trim());
    let (kind, what) = match ended {
        Ended::NotStarted(why) => (FailedHow::NotStarted, format!("could not be started: {why}")),
        Ended::TimedOut => (FailedHow::Timeout, "took too long and was ended".into()),
        Ended::Stalled => (FailedHow::Stalled, "said nothing for too long and was ended".into()),
        Ended::Exited(0) | Ended::Lost | Ended::Stopped => {
            error?;
            (FailedHow::Tool, "ended in an error".into())
        }
        Ended::Exited(code) => (FailedHow::Tool, format!("exited with {code}")),
        Ended::Killed(signal) => (FailedHow::Tool, format!("was ended by signal {signal}")),
    };
    let text = error.filter(|text| kind == FailedHow::Tool && !text.is_empty());
    Some((kind, text.map_or(format!("the session {what}"), |text| format!("the session {what}: {text}"))))
}

/// Returns why the evidence is missing, if so.
fn without_evidence(evidence: &Evidence<'_>, report: &Report, denials: &[Denial]) -> Option<String> {
    if evidence.result.as_ref().is_some_and(|result| result.turns == Some(0)) {
        return Some("the agent took no turn".into());
    }
    let denied = denials.iter().find(|denial| {
        denial.target.as_deref().is_some_and(|target| evidence.deliverables.iter().any(|path| same_path(path, target)))
    });
    if let Some(denied) = denied {
        return Some(format!("it was not allowed to write what it had to: {denied}"));
    }
    let unchanged = report.status == Said::NoChangeNeeded && !report.message.trim().is_empty();
    (evidence.may_write && !evidence.left_work && !unchanged).then(|| "there is no commit and no changed file".into())
}

fn same_path(deliverable: &str, denied: &str) -> bool {
    let plain = |path: &str| path.trim_start_matches("./").trim_end_matches('/').to_owned();
    let (deliverable, denied) = (plain(deliverable), plain(denied));
    denied == deliverable || denied.ends_with(&format!("/{deliverable}"))
}

fn with_denials(message: String, denials: &[Denial]) -> String {
    if denials.is_empty() {
        return message;
    }
    let denials: Vec<String> = denials.iter().map(ToString::to_string).collect();
    format!("{message} (not allowed: {})", denials.join(", "))
}

/// Returns a request that was denied in this attempt and the previous one: a third attempt would be denied, too.
pub fn denied_again<'a>(before: &[Denial], now: &'a [Denial]) -> Option<&'a Denial> {
    now.iter().find(|denial| {
        before.iter().any(|other| match (&denial.target, &other.target) {
            (Some(a), Some(b)) => a == b || (denial.tool == other.tool && denial.tool != "Bash"),
            _ => denial.tool == other.tool,
        })
    })
}

/// Returns the advice for a task that lacks permissions.
pub fn denial_advice(denial: &Denial) -> String {
    format!(
        "the agent was refused {denial} twice; give the task an agent whose profile allows it, or name the directory in the \
         task's scope, then `posse run retry`"
    )
}

//! What came of one attempt, from the evidence. A session that says it is done is believed only as far as something was
//! done.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::TaskId;
use super::report::{NoReport, Report, Said, find};
use crate::engine::hold::Hold;
use crate::words;

/// Everything that is known when a session is over.
#[derive(Clone, Debug)]
pub struct Evidence<'a> {
    pub task: &'a TaskId,
    /// The run's own word, which only its session was told.
    pub nonce: &'a str,
    pub ended: Ended,
    /// A usage limit was seen (`limits`).
    pub limit: Option<Hold>,
    /// What the tool itself said at the end, if it got that far.
    pub result: Option<ToolResult>,
    /// The file at the path that it was given.
    pub report: Option<&'a str>,
    /// The agent's last message.
    pub last_message: Option<&'a str>,
    /// Its profile lets it write.
    pub may_write: bool,
    /// It left commits or changed files.
    pub left_work: bool,
    /// The paths it had to write: its report, a document it was asked for.
    pub deliverables: &'a [String],
}

/// How the process came to its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// We ended it because somebody asked us to stop.
    Stopped,
    NotStarted(String),
    /// It took longer than it may.
    TimedOut,
    /// It said nothing for too long.
    Stalled,
    Exited(i32),
    /// By a signal that was not ours.
    Killed(i32),
    /// Nobody saw the end: the machine or whoever held the process went down.
    Lost,
}

/// The last event of a headless session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolResult {
    pub is_error: bool,
    /// Absent is unknown.
    pub turns: Option<u32>,
    /// What the tool says about it.
    pub text: String,
    pub denials: Vec<Denial>,
}

/// Something the agent wanted to do and was not allowed to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Denial {
    pub tool: String,
    /// The file or the command, if the tool says which.
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
    /// The task could not be tried properly. This costs no attempt, and `machine` bounds the number of repetitions.
    Infra(Failure),
    Failed(Failure),
    /// It asks.
    Suspended {
        question: String,
        context: Option<String>,
    },
    /// It says it is done, and there is evidence. Gates and validators come next.
    Done(Report),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    pub kind: FailedHow,
    /// For people, and for the next attempt.
    pub message: String,
    pub denials: Vec<Denial>,
    /// The end of what a check printed.
    pub output: Option<String>,
}

impl Outcome {
    /// The outcome of a session that need not write a report: its last words count, or what it left.
    pub fn without_report(self, task: &str, message: &str) -> Self {
        match self {
            Self::Failed(failure) if failure.kind == FailedHow::NoReport => {
                Self::Done(Report::completed(task, message))
            }
            outcome => outcome,
        }
    }

    /// The outcome in one word, for the usage table. `done`: the word for work that is done.
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

    /// The usage limit that the session ran into.
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
    /// What an attempt failed of.
    #[derive(Hash)]
    pub enum FailedHow ("failure") {
        NotStarted = "not_started",
        Timeout = "timeout",
        Stalled = "stalled",
        /// The tool ended in an error.
        Tool = "tool_error",
        NoReport = "no_report",
        BadReport = "bad_report",
        /// It says itself that it failed.
        Reported = "reported",
        /// It says that it is done, and nothing was.
        NoEvidence = "no_evidence",
        /// A command that we ran to check the work failed.
        Gate = "gate",
        /// A validator found fault.
        Validation = "validation",
        /// Its work could not be merged.
        Merge = "merge",
        /// The run broke off before there was an outcome.
        Lost = "lost",
        /// It committed what the user had not committed yet, or rewrote what was there before it.
        UsersWork = "users_work",
    }
}

/// The first that holds decides; the order is the meaning.
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
    // What it reported before is still there, and work that is done is not done again.
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
        // Who only looks says in a verdict what was found.
        Said::Failed if evidence.may_write || report.verdict.is_none() => {
            Outcome::Failed(failure(FailedHow::Reported, report.message))
        }
        Said::Completed | Said::NoChangeNeeded | Said::Failed => match without_evidence(evidence, &report, denials) {
            Some(why) => Outcome::Failed(failure(FailedHow::NoEvidence, format!("it says it is done, but {why}"))),
            None => Outcome::Done(report),
        },
    }
}

/// Why a session that ended like this delivered nothing, if so. Says nothing of one that was lost.
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

/// Why nothing shows that something was done, if so.
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

/// What was refused in this failure and in the one before: a third attempt would meet the same wall.
pub fn denied_again<'a>(before: &[Denial], now: &'a [Denial]) -> Option<&'a Denial> {
    now.iter().find(|denial| {
        before.iter().any(|other| match (&denial.target, &other.target) {
            (Some(a), Some(b)) => a == b || (denial.tool == other.tool && denial.tool != "Bash"),
            _ => denial.tool == other.tool,
        })
    })
}

/// What to do about a task that is not allowed to do its work.
pub fn denial_advice(denial: &Denial) -> String {
    format!(
        "the agent was refused {denial} twice; give the task an agent whose profile allows it, or name the directory in the \
         task's scope, then `posse run retry`"
    )
}

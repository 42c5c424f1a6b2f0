//! Reasons for refusing a request about a run.

use posse_api::ProblemKind;
use posse_core::file_problem::FileProblems;
use posse_core::ids::RunId;
use posse_core::plan::isolation::IsolationError;

use super::journal::Failed;
use crate::api::{ApiProblem, hint};
use crate::loops::ClaimError;
use crate::plans::worktrees::WorktreeError;

#[derive(Debug, thiserror::Error)]
pub(crate) enum SupervisorError {
    #[error("there is no {kind} {id}")]
    NoRun { kind: &'static str, id: RunId },
    #[error("no pipeline has ever run in {0}")]
    Never(String),
    #[error("{0} has never been run here, so none of its tasks has asked or failed")]
    NeverRan(String),
    #[error("cannot read {path}: {error}")]
    Unreadable { path: String, error: std::io::Error },
    #[error(transparent)]
    Invalid(#[from] FileProblems),
    #[error("a process in a terminal may not begin a plan with commands that you have not confirmed: gate {0}")]
    Unconfirmed(String),
    #[error("there is no task {0:?} in this plan")]
    NoTask(String),
    #[error("task {0} does not ask anything")]
    NotAsking(String),
    #[error("a session works on task {0}; stop the plan first, or wait")]
    Busy(String),
    #[error("pipeline {run} works in {directory} since {since}; one at a time")]
    InUse { run: RunId, directory: String, since: jiff::Timestamp },
    #[error("{by} works through the backlog of {directory}; one at a time")]
    Locked { by: String, directory: String },
    #[error("nothing is known of an item {0:?}")]
    NoItem(String),
    #[error("no pipeline works in {directory}")]
    Idle { directory: String, hint: String },
    #[error("pipeline {0} is still looking at its backlog; ask again in a moment")]
    Looking(RunId),
    #[error("{0}")]
    Wrong(String),
    #[error(transparent)]
    Isolation(#[from] IsolationError),
    #[error("{program} is not installed, or not in the PATH of this shell")]
    NoProgram { program: String, install: String },
    #[error(transparent)]
    Worktree(#[from] WorktreeError),
    #[error("run {id} is not over, and what it did cannot be read: {why}")]
    NoJournal { id: RunId, why: String },
    #[error("run {0} is over")]
    Over(RunId),
    #[error("run {0} is active")]
    Active(RunId),
    #[error("work of run {run} is not merged; its records are in {directory}")]
    HoldsWork { run: RunId, directory: String },
    #[error("run {0} does not go on; there is nothing to stop")]
    Rests(RunId),
    #[error(
        "run {run} uses the state file {state_file}; follow it with `posse loop --resume {run}`, or stop it with `posse run stop {run}`"
    )]
    StateInUse { run: RunId, state_file: String },
    #[error(
        "run {run} goes on in {directory}, and two at once would take each other's answers; follow it with `posse loop --resume {run}`, or stop it with `posse run stop {run}`"
    )]
    DirectoryInUse { run: RunId, directory: String },
    #[error(transparent)]
    Claimed(#[from] ClaimError),
    #[error(transparent)]
    Journal(#[from] Failed),
}

impl SupervisorError {
    pub(crate) fn wrong(error: impl std::fmt::Display) -> Self {
        Self::Wrong(error.to_string())
    }
}

impl ApiProblem for SupervisorError {
    fn problem(&self) -> (ProblemKind, Option<&str>) {
        use ProblemKind as Kind;
        match self {
            Self::NoRun { .. } => (Kind::NoRun, Some("`posse run ls` shows those there are")),
            Self::NeverRan(_) => (Kind::NoRun, Some("`posse plan run --reset TASK` begins a task anew")),
            Self::Never(_) => (Kind::NoRun, None),
            Self::Idle { hint, .. } => (Kind::Rests, Some(hint)),
            Self::Unreadable { .. } => (Kind::NoFile, Some("`posse plan init` makes a sample plan")),
            Self::Invalid(_) => (Kind::InvalidPlan, Some("`posse plan check` shows every mistake with its place")),
            Self::Unconfirmed(_) => (Kind::FromTerminal, Some(hint::OUTSIDE)),
            Self::NoTask(_) => (Kind::NoTask, Some("`posse plan status` shows those there are")),
            Self::NotAsking(_) => (Kind::NotAsking, Some("`posse plan status` shows who asks")),
            Self::Busy(_) => (Kind::Busy, None),
            Self::InUse { .. } => (Kind::InUse, Some("`posse run show` shows what it does, `posse run stop` stops it")),
            Self::Locked { .. } => (Kind::InUse, None),
            Self::NoItem(_) => (Kind::NoItem, Some("`posse auto items` shows those there are")),
            Self::Looking(_) => (Kind::Looking, None),
            Self::Wrong(_) | Self::Isolation(_) => (Kind::Invalid, None),
            Self::NoProgram { install, .. } => (Kind::NoProgram, Some(install)),
            Self::Worktree(_) => (Kind::NoArea, None),
            Self::NoJournal { .. } => (
                Kind::NoJournal,
                Some(
                    "the posse that wrote it may go on with it; or copy the plan to a file of another name, and run that",
                ),
            ),
            Self::Active(_) => (Kind::InUse, Some("`posse run stop` stops it; then drop it")),
            Self::HoldsWork { .. } => {
                (Kind::InUse, Some("merge or delete its branches; `posse plan clean` shows what keeps it"))
            }
            Self::Over(_) => (Kind::Over, Some("`posse run show` says how it ended")),
            Self::Rests(_) => (Kind::Rests, Some("`posse loop --resume` goes on with it")),
            Self::StateInUse { .. } | Self::DirectoryInUse { .. } => (Kind::InUse, None),
            Self::Claimed(ClaimError::Held { .. }) => (Kind::Locked, None),
            Self::Claimed(ClaimError::Io { .. }) => (Kind::Disk, Some("put that right and try again")),
            Self::Journal(error) => error.problem(),
        }
    }
}

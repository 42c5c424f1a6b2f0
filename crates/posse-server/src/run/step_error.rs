//! Why a step of a plan or of a pipeline could not be carried out.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use posse_agents::front_matter::BadFrontMatter;
use posse_agents::headless::FlagError;
use posse_agents::headless::check::FailedCheck;
use posse_core::backlog::Slug;
use posse_core::file_problem::FileProblems;
use posse_core::ids::BadName;
use posse_core::plan::BadTaskId;
use posse_files::backlog::EditError;
use posse_files::providers::UserFileError;

use super::SupervisorError;
use crate::api::ApiError;
use crate::finalize::GitError;
use crate::hub::CreateError;
use crate::plans::worktrees::WorktreeError;

#[derive(Debug, thiserror::Error)]
pub(crate) enum StepError {
    #[error("the item is not in the backlog any more")]
    ItemGone,
    #[error("task {0} is not in the plan any more")]
    TaskGone(String),
    #[error("no client that knows the environment is there")]
    NoEnvironment,
    #[error("the session is not prepared")]
    NotPrepared,
    #[error("this provider cannot be used without a terminal")]
    NeedsTerminal,
    #[error("there is no agent {0}; write .claude/agents/{0}.md, then run the plan again")]
    NoAgent(String),
    #[error("agent {name}: {error}")]
    BadAgent {
        name: String,
        #[source]
        error: BadFrontMatter,
    },
    #[error("task {task}: `permissions` leaves nothing of what agent {agent} may do")]
    NoTools { task: String, agent: String },
    #[error("{} is not valid UTF-8", .0.display())]
    NotUtf8(PathBuf),
    #[error("{}: {error}", path.display())]
    File {
        path: PathBuf,
        #[source]
        error: io::Error,
    },
    #[error("the design does not merge: {0}")]
    DesignConflict(String),
    #[error("the design cannot be committed: {0}")]
    DesignRejected(String),
    #[error("the design cannot be merged: {0}")]
    DesignHeldUp(String),
    #[error("the design was not merged, because its checks were stopped")]
    DesignStopped,
    #[error("there are too many old plans of {item} in {}", directory.display())]
    TooManyOldPlans { item: Slug, directory: PathBuf },
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Worktree(#[from] WorktreeError),
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Supervisor(#[from] SupervisorError),
    #[error(transparent)]
    Problems(#[from] FileProblems),
    #[error(transparent)]
    Edit(#[from] EditError),
    #[error(transparent)]
    Provider(#[from] UserFileError),
    #[error(transparent)]
    Flag(#[from] FlagError),
    #[error(transparent)]
    Check(#[from] FailedCheck),
    #[error(transparent)]
    Name(#[from] BadName),
    #[error(transparent)]
    TaskId(#[from] BadTaskId),
    #[error(transparent)]
    Create(#[from] CreateError),
    #[error(transparent)]
    Api(#[from] ApiError),
    /// An error that several steps of a run share.
    #[error(transparent)]
    Shared(#[from] Arc<StepError>),
}

impl StepError {
    pub(crate) fn file(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |error| Self::File { path, error }
    }
}

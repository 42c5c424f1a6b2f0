//! What a run of a plan is told, and what it wants done.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Others;
use crate::plan::budget::Usage;
use crate::plan::gates::GateVerdict;
use crate::plan::outcome::{Failure, Outcome};
use crate::plan::verdict::Judgement;
use crate::plan::{TaskId, TaskStatus};

/// One session, for ever: the task, the number of the start (which counts starts that cost no attempt too), and for
/// validators which one, and how often one was asked about this task. Names the directory of its files and its branch.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RunId {
    pub task: TaskId,
    pub start: u32,
    pub part: Part,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    Work,
    Validation { validator: usize, time: u32 },
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.task.slug(), self.start)?;
        match self.part {
            Part::Work => Ok(()),
            Part::Validation { validator, time } => write!(f, "-v{validator}-{time}"),
        }
    }
}

/// What happens. Written to the journal before it is acted on; a run is nothing but what follows from its events.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// Begin, or go on.
    Started,
    /// The work area is there.
    AreaReady {
        run: RunId,
    },
    AreaFailed {
        run: RunId,
        why: String,
    },
    /// A session that worked on a task is over.
    SessionEnded {
        run: RunId,
        outcome: Outcome,
        usage: Usage,
    },
    /// A validator is over. What it thinks if it got that far; otherwise `outcome` says why not.
    ValidatorEnded {
        run: RunId,
        judgement: Judgement,
        outcome: Outcome,
        usage: Usage,
    },
    /// The commands that check the work are through. Failures that were there before do not count.
    GatesEnded {
        run: RunId,
        failed: Option<GateFailure>,
    },
    /// They were ended before they were through, because the run is to stop.
    GatesStopped {
        run: RunId,
    },
    /// They could not be run, and that says nothing about the work: another git is in the way, or the disk is full.
    GatesNotRun {
        run: RunId,
        why: String,
    },
    MergeEnded {
        run: RunId,
        result: MergeResult,
    },
    /// The commands that look at the plan as a whole are through.
    PlanChecked {
        checks: Vec<PlanCheck>,
    },
    /// They were ended before they were through, because the run is to stop.
    PlanCheckStopped,
    /// A person or a session has edited the plan file or a copy of it. `ours` is the text before the edit.
    PlanEdited {
        ours: String,
        theirs: String,
    },
    /// The plan file could not be written when the run ended. These are the statuses in it, as far as they are known.
    FileBehind {
        shown: BTreeMap<TaskId, TaskStatus>,
    },
    Stop(StopHow),
    /// A person answers a task that asked.
    Answered {
        task: TaskId,
        answer: String,
    },
    /// A person wants a task to be tried again from the beginning.
    Retry {
        task: TaskId,
    },
    /// What other runs have, have used, and wait for has changed.
    Others(Others),
    /// A person wants it to be tried at once, though the quota was used up.
    TryNow,
    /// Somebody else was quicker to get what only one may have. The task is not begun.
    Taken {
        run: RunId,
        name: String,
        held_by: String,
    },
    /// The deadline has come, or may have.
    Time,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateFailure {
    pub gate: String,
    pub message: String,
    /// The last lines it printed.
    pub output: String,
}

/// What a command says about the plan as a whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanCheck {
    pub gate: String,
    pub verdict: GateVerdict,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MergeResult {
    Merged {
        commits: Vec<String>,
    },
    /// Both sides changed the same lines. Nothing was merged.
    Conflict {
        paths: Vec<String>,
    },
    /// It merges, but the checks fail on the result. Nothing was merged.
    RedTogether(GateFailure),
    /// It merges, but not into what is there now: the user has uncommitted changes where it would write, or is in the
    /// middle of something. Nothing was merged. `why` says what to do about it.
    NotNow {
        why: String,
    },
    /// The checks were ended before they were through, because the run is to stop. Nothing was merged.
    Stopped,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopHow {
    /// What runs may finish.
    AfterTask,
    Now,
}

/// What is to be done. To do it twice must be the same as once: after a crash everything that was not answered is asked for
/// again, under the same name.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Answered by `AreaReady` or `AreaFailed`.
    MakeArea {
        run: RunId,
    },
    /// Answered by `SessionEnded` or `ValidatorEnded`.
    StartSession {
        run: RunId,
        launch: Launch,
    },
    /// Answered like its start.
    EndSession {
        run: RunId,
    },
    /// Answered by `GatesEnded`, `GatesStopped` or `GatesNotRun`.
    RunGates {
        run: RunId,
    },
    /// Commit what was left in the area, and merge it. Answered by `MergeEnded`.
    Merge {
        run: RunId,
    },
    /// Run the commands that look at the plan as a whole. Answered by `PlanChecked`, or
    /// `PlanCheckStopped`.
    CheckPlan,
    /// End the commands that check something, and begin no more. Whoever waits for them is answered; this is not.
    EndChecks,
    /// The plan file is behind: write `Run::mirror` into it. Not answered; several may be done at once.
    WritePlan,
    Notify(Notice),
    /// It is over; nothing follows.
    Finish {
        outcome: RunOutcome,
        reason: String,
    },
}

/// What a session is started with, as far as it is decided here.
#[derive(Clone, Debug, PartialEq)]
pub struct Launch {
    pub agent: String,
    pub model: Option<String>,
    pub timeout: Duration,
    /// From 1.
    pub attempt: u32,
    /// What became of the attempt before.
    pub before: Option<Failure>,
    /// Others of its group that run now.
    pub siblings: Vec<TaskId>,
    /// What sessions changed in the plan and may not.
    pub rejected: Vec<String>,
}

/// Worth telling people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    TaskVerified(TaskId),
    TaskFailed(TaskId, String),
    ValidationFailed(TaskId, Vec<String>),
    Question(TaskId, String),
    HoldBegins(String),
    HoldEnds,
    BreakerOpen(String),
    EditRejected(String),
}

/// How a run ends. Only the first two are success.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunOutcome {
    Verified,
    CompletedWithWarnings,
    Failed,
    Deadlocked,
    Suspended,
    Stopped,
    BudgetExhausted,
    CircuitOpen,
    RateLimited,
    InvalidPlan,
    InternalError,
}

impl RunOutcome {
    /// The outcome as people read it.
    pub fn words(self) -> &'static str {
        match self {
            Self::Verified => "verified",
            Self::CompletedWithWarnings => "completed with warnings",
            Self::Failed => "failed",
            Self::Deadlocked => "deadlocked",
            Self::Suspended => "waits for an answer",
            Self::Stopped => "stopped",
            Self::BudgetExhausted => "out of money",
            Self::CircuitOpen => "stopped: sessions fail one after the other",
            Self::RateLimited => "out of quota",
            Self::InvalidPlan => "the plan is not valid",
            Self::InternalError => "failed for a reason of our own",
        }
    }

    pub fn is_success(self) -> bool {
        matches!(self, Self::Verified | Self::CompletedWithWarnings)
    }
}

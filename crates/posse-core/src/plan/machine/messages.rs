//! Events and effects of a run of a plan.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Others;
use crate::engine::StopHow;
use crate::engine::notice::Notice;
use crate::plan::budget::Usage;
use crate::plan::gates::GateVerdict;
use crate::plan::outcome::{Failure, Outcome};
use crate::plan::verdict::Judgement;
use crate::plan::{TaskId, TaskStatus};

/// Identifies one session of a run: the task, the number of its start, and for a validator its index and the number of the
/// validation. Names the session's directory and branch.
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

/// An input of a run, journaled before the run acts on it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    Started,
    /// The work tree exists.
    AreaReady {
        run: RunId,
    },
    AreaFailed {
        run: RunId,
        why: String,
    },
    SessionEnded {
        run: RunId,
        outcome: Outcome,
        usage: Usage,
    },
    /// A validator has ended. Its judgement counts if `outcome` is `Done`.
    ValidatorEnded {
        run: RunId,
        judgement: Judgement,
        outcome: Outcome,
        usage: Usage,
    },
    /// The gates have run. Failures that existed before the task do not count.
    GatesEnded {
        run: RunId,
        failed: Option<GateFailure>,
    },
    /// The gates were ended because the run stops.
    GatesStopped {
        run: RunId,
    },
    /// The gates could not run, for a reason unrelated to the work: a locked index, a full disk.
    GatesNotRun {
        run: RunId,
        why: String,
    },
    MergeEnded {
        run: RunId,
        result: MergeResult,
    },
    /// The checks of the whole plan have run.
    PlanChecked {
        checks: Vec<PlanCheck>,
    },
    /// The checks of the whole plan were ended because the run stops.
    PlanCheckStopped,
    /// A person or a session has edited the plan file or a copy of it. `ours` is the text before the edit.
    PlanEdited {
        ours: String,
        theirs: String,
    },
    /// The plan file could not be written when the run ended. These are its statuses, as far as known.
    FileBehind {
        shown: BTreeMap<TaskId, TaskStatus>,
    },
    Stop(StopHow),
    /// A person answers a task's question.
    Answered {
        task: TaskId,
        answer: String,
    },
    /// A person resets a task.
    Retry {
        task: TaskId,
    },
    /// The limits shared with other runs have changed.
    Others(Others),
    /// A person lifts the hold.
    TryNow,
    /// Another run took an exclusive resource first. The task does not start.
    Taken {
        run: RunId,
        name: String,
        held_by: String,
    },
    /// The deadline may have passed.
    Time,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateFailure {
    pub gate: String,
    pub message: String,
    /// The last lines of its output.
    pub output: String,
}

/// The result of a check of the whole plan.
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
    /// The checks fail on the merged result. Nothing was merged.
    RedTogether(GateFailure),
    /// The user's checkout does not allow the merge now: uncommitted changes, an unfinished rebase. Nothing was merged.
    /// `why` names the remedy.
    NotNow {
        why: String,
    },
    /// The checks were ended because the run stops. Nothing was merged.
    Stopped,
}

/// A request of a run. Effects are idempotent: after a crash every unanswered one is requested again, under the same name.
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
    /// Commit what the session left, and merge it. Answered by `MergeEnded`.
    Merge {
        run: RunId,
    },
    /// Run the checks of the whole plan. Answered by `PlanChecked` or `PlanCheckStopped`.
    CheckPlan,
    /// End all checks, and start no more. The effects that requested them are answered; this one is not.
    EndChecks,
    /// Write `Run::mirror` to the plan file. Not answered.
    WritePlan,
    Notify(Notice),
    /// The run has ended.
    Finish,
}

impl Effect {
    /// Returns the attempt that the effect is for.
    pub fn run(&self) -> Option<&RunId> {
        match self {
            Self::MakeArea { run }
            | Self::StartSession { run, .. }
            | Self::EndSession { run }
            | Self::RunGates { run }
            | Self::Merge { run } => Some(run),
            Self::CheckPlan | Self::EndChecks | Self::WritePlan | Self::Notify(_) | Self::Finish => None,
        }
    }
}

/// The parameters of a session that the run decides.
#[derive(Clone, Debug, PartialEq)]
pub struct Launch {
    pub agent: String,
    pub model: Option<String>,
    pub timeout: Duration,
    /// The attempt number, starting at 1.
    pub attempt: u32,
    /// The failure of the previous attempt.
    pub before: Option<Failure>,
    /// Other running tasks of its group.
    pub siblings: Vec<TaskId>,
    /// Changes of sessions to the plan that were rejected.
    pub rejected: Vec<String>,
}

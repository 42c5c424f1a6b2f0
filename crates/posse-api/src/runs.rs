//! Runs of all kinds: of the loop, of a plan, of a backlog.

use std::collections::BTreeMap;
use std::ops::Deref;

use jiff::Timestamp;
use posse_agents::headless::{DEFAULT_PROVIDER, Policy, Sandbox};
use posse_core::backlog::Slug;
use posse_core::engine::{RunOutcome, StopHow};
use posse_core::ids::RunId;
use posse_core::plan::budget::Total;
use posse_core::plan::config::PlanConfig;
use posse_core::plan::outcome::Denial;
use posse_core::review_loop::config::Notifications;
use posse_core::run::{Entry, RunStatus};
use posse_core::turn::Level;
use posse_core::words;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::{AutoEntry, AutoSpec, BacklogIn, BacklogView, LoopIn, LoopView, PlanEntry, PlanIn, PlanSpec, PlanView};

words! {
    #[derive(ToSchema)]
    pub enum RunKind ("kind of run") {
        Loop = "loop",
        Plan = "plan",
        Backlog = "backlog",
    }
}

/// A request to start a run. The client resolves the configuration and the environment.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunIn {
    Loop(Box<LoopIn>),
    /// Continues the run that uses the plan's file, if there is one.
    Plan(Box<PlanIn>),
    /// Continues the run of the project's backlog if it waits for the environment of its sessions.
    Backlog(Box<BacklogIn>),
}

#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum RunView {
    Loop(LoopView),
    Plan(PlanView),
    Backlog(BacklogView),
}

/// The fields that runs of all kinds have.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct RunSummary {
    pub id: RunId,
    pub status: RunStatus,
    pub directory: String,
    /// The outcome of a run of a plan or a backlog: `verified`, `completed_with_warnings`, `failed`, `deadlocked`, `suspended`,
    /// `stopped`, `budget_exhausted`, `circuit_open`, `rate_limited`, `invalid_plan` or `internal_error`.
    pub outcome: Option<RunOutcome>,
    /// The reason why it stopped or ended.
    pub reason: Option<String>,
    /// Nothing is started before then.
    pub hold: Option<HoldView>,
    /// The daemon was restarted and does not know the environment that the run needs next. A client that resumes the run
    /// provides it.
    pub waits: bool,
    /// The usage of its headless sessions.
    pub used: Total,
    /// Limits on money, and what is spent of them, by this run and by all others that count.
    pub limits: Vec<LimitView>,
    pub provider: Option<String>,
    pub created: Timestamp,
    pub changed: Timestamp,
    /// The directory of its files: answers, or prompts, streams and work areas.
    pub files: String,
}

impl RunSummary {
    /// Returns whether the run continues, now or later, by itself.
    pub fn is_active(&self) -> bool {
        matches!(self.status, RunStatus::Running | RunStatus::Parked)
    }
}

impl RunView {
    pub fn kind(&self) -> RunKind {
        match self {
            Self::Loop(_) => RunKind::Loop,
            Self::Plan(_) => RunKind::Plan,
            Self::Backlog(_) => RunKind::Backlog,
        }
    }
}

/// Lets fields of a part be read as fields of the whole.
macro_rules! deref_to {
    ($($whole:ty: $part:ident, $target:ty;)+) => {
        $(impl Deref for $whole {
            type Target = $target;

            fn deref(&self) -> &$target {
                &self.$part
            }
        })+
    };
}

deref_to! {
    LoopView: run, RunSummary;
    PlanView: run, RunSummary;
    BacklogView: run, RunSummary;
    PlanSpec: sessions, SessionRules;
    AutoSpec: sessions, SessionRules;
}

impl Deref for RunView {
    type Target = RunSummary;

    fn deref(&self) -> &RunSummary {
        match self {
            Self::Loop(view) => view,
            Self::Plan(view) => view,
            Self::Backlog(view) => view,
        }
    }
}

/// The rules for the headless sessions of a run.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct SessionRules {
    /// The agent; `claude_code` unless given.
    #[serde(default = "default_provider")]
    pub provider: String,
    /// `off`: sessions may do everything. Only if the operator said so.
    #[serde(default)]
    pub sandbox: Sandbox,
    /// The branch that gathers the results; the one that is checked out unless given.
    pub branch: Option<String>,
    /// The configuration of the user and the project, as `posse plan config --json` shows it.
    #[serde(default, deserialize_with = "crate::over_defaults")]
    #[schema(value_type = Object)]
    pub config: PlanConfig,
    /// The project's file of it. If it is not as in the last run of a plan, the run says so.
    pub config_file: Option<ConfigFile>,
    #[serde(default, deserialize_with = "crate::over_defaults")]
    pub notifications: Notifications,
    /// The time of the request; now unless given. A stop file from before is not meant for this run.
    #[serde(default = "Timestamp::now")]
    pub asked: Timestamp,
}

fn default_provider() -> String {
    DEFAULT_PROVIDER.to_owned()
}

impl Default for SessionRules {
    fn default() -> Self {
        Self {
            provider: default_provider(),
            sandbox: Sandbox::On,
            branch: None,
            config: PlanConfig::default(),
            config_file: None,
            notifications: Notifications::default(),
            asked: Timestamp::now(),
        }
    }
}

impl SessionRules {
    /// Returns the most that sessions may do.
    pub fn policy(&self) -> Policy {
        Policy::configured(&self.config.sandbox)
    }
}

/// A file as it was when a run began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ConfigFile {
    pub path: String,
    /// In hexadecimal digits.
    pub sha256: String,
}

/// A request to resume a run. The environment is never stored.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ResumeIn {
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// A parked run stays parked: only the connection of the client was lost.
    #[serde(default)]
    pub patient: bool,
    /// Accept permissions from now on. As the run is configured unless given.
    pub auto_accept: Option<bool>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StopRun {
    /// `after_task`: what runs may finish; or `now`. A run of the loop always stops now.
    pub how: Option<StopHow>,
    pub why: Option<String>,
}

/// A task of a plan, or an item of a backlog.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct PartIn {
    /// The plan's file, or the project of the backlog. Absolute.
    pub of: String,
    /// The id of the task, or the name of the item.
    pub part: String,
}

/// An answer to a task that asked.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AnswerPartIn {
    /// The plan's file. Absolute.
    pub of: String,
    /// The id of the task.
    pub part: String,
    pub answer: String,
}

#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct RunsQuery {
    /// `loop`, `plan` or `backlog`; all of them unless given.
    #[param(inline)]
    pub kind: Option<RunKind>,
    /// Only runs of this plan's file, or in this project. Absolute, without links.
    pub of: Option<String>,
    /// Only runs whose id begins with this.
    pub id: Option<String>,
    /// At most so many; 100 unless given.
    pub limit: Option<u32>,
    /// `false`: without the tasks of plans, which may be many.
    pub tasks: Option<bool>,
}

#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct RunQuery {
    /// `false`: without the tasks of a plan, which may be many.
    pub tasks: Option<bool>,
}

#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct JournalQuery {
    /// Only what came after this entry.
    pub after: Option<i64>,
}

/// One entry of a run's journal.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct JournalView {
    /// Its place in the run's journal, from 1.
    pub seq: i64,
    pub at: Timestamp,
    /// The entry: `run_kind` is that of the run, `entry` names the kind of the entry, the rest are its facts.
    #[serde(flatten)]
    #[schema(value_type = Object)]
    pub entry: EntryView,
}

/// An entry of the journal of a run: `S` is what the run was begun with, `I` an input of its machine, `N` a session.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "entry", rename_all = "snake_case")]
pub enum RunEntry<S, I, N> {
    Created {
        spec: Box<S>,
    },
    /// An input of the machine. The run is read back from these.
    Happened {
        event: Box<I>,
    },
    /// A session was started, and what it may do.
    Launched {
        id: N,
        agent: String,
        profile: String,
        model: Option<String>,
        attempt: Option<u32>,
        /// Without the prompt.
        flags: Vec<String>,
    },
    /// A session was denied these.
    Refused {
        id: N,
        denials: Vec<Denial>,
    },
    /// A message for people.
    Said {
        level: Level,
        item: Option<Slug>,
        text: String,
    },
    /// Nothing follows.
    Closed {
        report: Option<String>,
    },
}

/// An entry of the journal of a run of any kind.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "run_kind", rename_all = "snake_case")]
pub enum EntryView {
    Loop(Entry),
    Plan(PlanEntry),
    Backlog(AutoEntry),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LimitView {
    /// On what.
    pub name: String,
    pub limit_usd: f64,
    pub spent: Total,
}

#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct HoldView {
    pub until: Timestamp,
    pub reason: String,
}

/// A selection of sessions. A field that is left out selects all.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct UsageQuery {
    /// Not before this time.
    pub since: Option<Timestamp>,
    /// Of this run of a plan.
    pub run: Option<String>,
    /// Of plans of this project. Absolute.
    pub directory: Option<String>,
    /// Of this plan. Absolute, without links.
    pub file: Option<String>,
}

/// The prompt of a session, and the files it left behind. Tokens of well-known shapes are masked.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct SessionFiles {
    /// The prompt. Null if the files of the session are gone.
    pub prompt: Option<String>,
    /// Its own report, as it wrote it.
    pub report: Option<String>,
    /// The end of its standard error.
    pub stderr: String,
    /// The directory of its files, the raw stream among them.
    pub directory: String,
}

#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct SessionLogQuery {
    /// The position to begin at: `next` of the answer before.
    pub after: Option<u64>,
    /// The lines as the agent printed them, instead of what posse made of them.
    pub raw: Option<bool>,
}

#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct SessionLines {
    /// Whole lines, in order: `{"at", "event"}`, or what the agent printed. Empty if there is no more yet.
    pub lines: Vec<String>,
    pub next: u64,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CleanIn {
    /// Only what runs of this plan left behind. Absolute.
    pub file: Option<String>,
    /// Remove it. Otherwise it is only named.
    #[serde(default)]
    pub remove: bool,
}

/// Files that runs of plans and pipelines left behind.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct CleanView {
    /// Files that may be removed, or were removed.
    pub gone: Vec<CleanItem>,
    /// Files that stay, with reasons.
    pub kept: Vec<CleanItem>,
    /// The size of the files of runs that may be removed.
    pub bytes: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct CleanItem {
    pub what: CleanWhat,
    /// A path, or a branch.
    pub name: String,
    /// The run it is of.
    pub run: RunId,
    /// The plan, or the item.
    pub file: String,
    pub why: String,
}

words! {
    /// The kind of files that were left behind.
    #[derive(ToSchema)]
    pub enum CleanWhat ("kind of files") {
        /// Prompts, streams and reports of a run.
        Run = "run",
        /// A work tree and its branch.
        WorkTree = "work_tree",
        /// Prompts and streams of those who planned and verified an item.
        Item = "item",
    }
}

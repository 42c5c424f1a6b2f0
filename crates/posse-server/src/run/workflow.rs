//! The interface between the runtime and a kind of run.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt::Display;
use std::ops::Deref;
use std::path::PathBuf;
use std::time::Duration;

use posse_api::{EventBody, RunEntry, RunKind, RunSummary};
use posse_core::engine::Machine;
use posse_core::engine::hold::Hold;
use posse_core::file_problem::FileProblems;
use posse_core::ids::RunId;
use posse_core::plan::TaskId;
use posse_core::plan::budget::{Line, Phase, Total, Usage};
use posse_core::review_loop::config::Notifications;
use posse_core::time::Wall;
use posse_core::turn::Level;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::watch;

use super::shared_limits::LimitsHandle;
use super::{Driver, Executor, RunLedger, Stopping, Supervisor, SupervisorError};
use crate::api::App;

pub(crate) type InputOf<W> = <<W as Workflow>::Machine as Machine>::Input;
/// The entries of a workflow's journals.
pub(crate) type EntryOf<W> = RunEntry<<W as Workflow>::Spec, InputOf<W>, <W as Workflow>::Session>;
pub(crate) type EffectOf<W> = <<W as Workflow>::Machine as Machine>::Effect;
/// The effects that follow from a step of the driver.
pub(crate) type Effects<W> = Result<Vec<EffectOf<W>>, Stopping>;

/// The fields that the specification of every run has.
pub(crate) struct SpecFields<'a> {
    pub(crate) id: RunId,
    /// The plan file, the project or the state file. Only one active run may use it.
    pub(crate) resource: &'a str,
    pub(crate) directory: &'a str,
    pub(crate) provider: &'a str,
    /// The directory in which a stop file stops the run, relative to the project.
    pub(crate) stop_files: Option<&'a str>,
    /// The time that a session may be silent.
    pub(crate) idle_timeout: Duration,
    /// The time of the request.
    pub(crate) asked: Wall,
    pub(crate) notifications: &'a Notifications,
    pub(crate) plan_file: Option<&'a str>,
    pub(crate) item: Option<&'a str>,
}

pub(crate) struct SessionEnded<'a, W: Workflow> {
    pub(crate) session: &'a W::Session,
    pub(crate) phase: Phase,
    /// The outcome in one word, for the usage table.
    pub(crate) outcome: &'static str,
    pub(crate) usage: &'a Usage,
    /// The usage limit that the session ran into.
    pub(crate) hold: Option<&'a Hold>,
}

/// A kind of run. A value holds what the executor needs besides the fields of [`Executor`].
#[allow(unused_variables, reason = "the names say what the methods are given")]
pub(crate) trait Workflow: Clone + Send + Sync + 'static {
    const KIND: RunKind;
    /// The name of this kind, for errors.
    const RUN: &'static str;
    /// The message of a run that waits for a client with the environment of its sessions.
    const WAITS: &'static str;
    /// The notification event of a run that ended.
    const ENDED: &'static str;

    type Spec: Clone + Serialize + DeserializeOwned + Send + Sync + 'static;
    type Machine: Machine<
            Input: Clone + PartialEq + Serialize + DeserializeOwned + Send + Sync,
            Effect: Clone + PartialEq + Send + Sync,
        > + Clone
        + Send
        + Sync
        + 'static;
    type Session: Clone + Display + Ord + Serialize + DeserializeOwned + Send + Sync + 'static;
    type View: Deref<Target = RunSummary> + Serialize + DeserializeOwned + Send + 'static;
    /// State that only drivers of this kind have.
    type Local: Send + 'static;
    /// An event that only drivers of this kind wait for.
    type Wake: Send + 'static;

    fn fields(spec: &Self::Spec) -> SpecFields<'_>;
    fn machine(spec: &Self::Spec, at: Wall) -> Result<Self::Machine, FileProblems>;
    fn title(ledger: &RunLedger<Self>) -> String;
    fn used(ledger: &RunLedger<Self>) -> &Total {
        &ledger.total
    }
    fn view(ledger: &RunLedger<Self>, files: &str) -> Self::View;

    /// The session that ended with this input, if one did.
    fn session_ended(input: &InputOf<Self>) -> Option<SessionEnded<'_, Self>> {
        None
    }
    /// Adds what is known of the session to its line in the usage table.
    fn complete_line(ledger: &RunLedger<Self>, session: &Self::Session, line: &mut Line) {}
    /// The directory of a session's files within the directory of the run.
    fn session_directory(session: &str) -> Option<PathBuf> {
        None
    }

    /// Opens what a driver of this run needs.
    fn open(
        supervisor: &Supervisor<Self>,
        ledger: &RunLedger<Self>,
    ) -> impl Future<Output = Result<(Self, Self::Local), SupervisorError>> + Send;

    fn happened(input: InputOf<Self>) -> EntryOf<Self> {
        RunEntry::Happened { event: Box::new(input) }
    }
    /// The entry for a message for people, about this session or about the run.
    fn said(level: Level, session: Option<&Self::Session>, text: String) -> EntryOf<Self>;
    fn closed(report: Option<String>) -> EntryOf<Self> {
        RunEntry::Closed { report }
    }
    /// Reports whether a person wrote the texts of this input. Such texts are not masked: a plan needs its exact text,
    /// and an answer has to arrive.
    fn is_by_a_person(input: &InputOf<Self>) -> bool;

    fn events(ledger: &RunLedger<Self>, entry: &EntryOf<Self>, seq: i64) -> Vec<EventBody>;
    fn messages<'a>(ledger: &'a RunLedger<Self>, entry: &'a EntryOf<Self>) -> Vec<(Level, Cow<'a, str>)> {
        match entry {
            RunEntry::Said { level, item: Some(item), text } => vec![(*level, format!("{item}: {text}").into())],
            RunEntry::Said { level, item: None, text } => vec![(*level, text.into())],
            _ => Vec::new(),
        }
    }
    /// Reports whether the list of runs is to show the run as it is after that entry. In between the view is in memory.
    fn lists(ledger: &RunLedger<Self>, entry: &EntryOf<Self>) -> bool {
        ledger.closed || matches!(entry, RunEntry::Created { .. })
    }

    /// Reports whether the machine has received its start.
    fn is_started(ledger: &RunLedger<Self>) -> bool {
        ledger.started
    }
    /// Called before the first effect is started.
    fn begin(driver: &mut Driver<Self>) -> impl Future<Output = Effects<Self>> + Send;
    /// Starts an effect. Returns the effects that follow at once.
    fn start(driver: &mut Driver<Self>, effect: EffectOf<Self>) -> impl Future<Output = Effects<Self>> + Send;
    fn session_of(effect: &EffectOf<Self>) -> Option<&Self::Session> {
        None
    }
    /// Reports whether the effect cannot be carried out without the environment of sessions.
    fn needs_context(
        executor: &Executor<Self>,
        ledger: &RunLedger<Self>,
        effect: &EffectOf<Self>,
    ) -> impl Future<Output = bool> + Send {
        async { false }
    }
    /// Carries an effect out. Carrying it out twice is the same as once.
    fn carry_out(
        executor: &Executor<Self>,
        effect: EffectOf<Self>,
        machine: &Self::Machine,
        stop: watch::Receiver<bool>,
    ) -> impl Future<Output = Option<InputOf<Self>>> + Send;
    /// The answer to an effect that is not carried out because the run stops.
    fn not_started(effect: EffectOf<Self>) -> Option<InputOf<Self>> {
        None
    }
    /// Reports whether a stop drops the effect if it waits for the environment of sessions.
    fn dropped_by_stop(effect: &EffectOf<Self>) -> bool {
        false
    }

    fn before_input(driver: &mut Driver<Self>) -> impl Future<Output = Effects<Self>> + Send {
        async { Ok(Vec::new()) }
    }
    /// Applies the answer of an executor.
    fn answered(driver: &mut Driver<Self>, input: InputOf<Self>) -> impl Future<Output = Effects<Self>> + Send;
    /// Called when all effects are started.
    fn settle(driver: &mut Driver<Self>) -> impl Future<Output = Effects<Self>> + Send {
        async { Ok(Vec::new()) }
    }
    /// Waits for an event that only drivers of this kind have.
    fn wait(local: &mut Self::Local, ledger: &RunLedger<Self>) -> impl Future<Output = Self::Wake> + Send;
    fn woken(driver: &mut Driver<Self>, wake: Self::Wake) -> impl Future<Output = Effects<Self>> + Send;
    /// Called when a client has provided the environment of sessions.
    fn context_provided(driver: &mut Driver<Self>) -> impl Future<Output = ()> + Send {
        async {}
    }

    /// Returns the input that updates the run's shared limits, if they changed. `spent`: sums that were read just now.
    fn limits_input(
        ledger: &RunLedger<Self>,
        limits: &LimitsHandle,
        spent: Vec<(String, Total)>,
    ) -> Option<InputOf<Self>> {
        None
    }
    /// The exclusive resources that tasks of a resumed run have.
    fn held_resources(machine: &Self::Machine) -> Vec<(&TaskId, &str)> {
        Vec::new()
    }
    /// The tasks that keep their exclusive resources.
    fn tasks_in_progress(machine: &Self::Machine) -> BTreeSet<&TaskId> {
        BTreeSet::new()
    }

    /// Completes the files of a run that has an outcome, and its journal if nothing follows.
    fn close(driver: &mut Driver<Self>) -> impl Future<Output = Result<(), Stopping>> + Send;
    /// Called when the driver of a run that has an outcome is gone.
    fn ended(app: &App, spec: &Self::Spec) -> impl Future<Output = ()> + Send {
        async {}
    }
}

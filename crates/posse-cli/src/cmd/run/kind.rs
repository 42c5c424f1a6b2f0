//! Runs of all kinds: of the loop, of a plan, of a backlog.

use posse_api::{AutoView, PlanRunStatus, PlanView, RunView, StopPlan};
use posse_core::engine::StopHow;
use posse_core::ids::RunId;
use posse_core::run::{RunStatus, Stop};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::client::{Client, Repeat};
use crate::error::{Error, Exit};
use crate::ui::Ui;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cmd) enum RunKind {
    Loop,
    Plan,
    Backlog,
}

impl RunKind {
    /// The path of all runs of this kind in the API.
    fn route(self) -> &'static str {
        match self {
            Self::Loop => "/runs",
            Self::Plan => "/plans",
            Self::Backlog => "/auto",
        }
    }

    /// The path of a run in the API.
    pub(in crate::cmd) fn path(self, id: RunId) -> String {
        format!("{}/{id}", self.route())
    }

    /// Returns the runs of this kind that fit, newest first.
    pub(in crate::cmd) async fn list<R: DeserializeOwned>(
        self,
        client: &mut Client,
        fits: impl Fn(&R) -> bool,
    ) -> Result<Vec<R>, Error> {
        let mut runs: Vec<R> = client.get(&format!("{}?limit=10000", self.route())).await?;
        runs.retain(fits);
        Ok(runs)
    }

    /// Stops a run, and says how to continue it.
    pub(in crate::cmd) async fn stop(
        self,
        id: RunId,
        request: &impl Serialize,
        how_to_continue: &str,
        (client, ui): (&mut Client, &Ui),
    ) -> Result<Exit, Error> {
        client.act(&format!("{}/stop", self.path(id)), request, Repeat::Safe, ui).await?;
        ui.say(how_to_continue);
        Ok(Exit::Ok)
    }
}

/// The options of commands that stop a run.
#[derive(Debug, clap::Args)]
pub(crate) struct StopHowArgs {
    /// `now` ends what runs; otherwise it may finish
    #[arg(value_parser = ["now"])]
    now: Option<String>,
}

impl StopHowArgs {
    pub(in crate::cmd) fn request(&self) -> StopPlan {
        StopPlan { how: Some(if self.now.is_some() { StopHow::Now } else { StopHow::AfterTask }) }
    }
}

/// Whether a run continues by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cmd) enum RunProgress {
    Continues,
    /// It needs the environment of a client to continue.
    NeedsEnvironment,
    /// It is over, or rests until a user resumes it.
    Over,
}

/// A run as the API shows it.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(in crate::cmd) enum AnyRun {
    Loop(Box<RunView>),
    Plan(Box<PlanView>),
    Backlog(Box<AutoView>),
}

impl AnyRun {
    /// `brief`: without the tasks of a plan, which may be a thousand.
    pub(super) async fn get(kind: RunKind, id: RunId, brief: bool, client: &mut Client) -> Result<Self, Error> {
        let path = kind.path(id);
        Ok(match kind {
            RunKind::Loop => Self::Loop(client.get(&path).await?),
            RunKind::Plan if brief => Self::Plan(client.get(&format!("{path}?tasks=false")).await?),
            RunKind::Plan => Self::Plan(client.get(&path).await?),
            RunKind::Backlog => Self::Backlog(client.get(&path).await?),
        })
    }

    pub(super) fn progress(&self) -> RunProgress {
        let (status, needs_environment) = match self {
            Self::Loop(run) => match (run.status, &run.stopped) {
                (RunStatus::Running | RunStatus::Parked, _) => return RunProgress::Continues,
                (RunStatus::Stopped, Some(stopped)) if stopped.stop == Stop::Alone => {
                    return RunProgress::NeedsEnvironment;
                }
                _ => return RunProgress::Over,
            },
            Self::Plan(run) => (run.status, run.waits),
            Self::Backlog(run) => (run.status, run.waits),
        };
        match status {
            PlanRunStatus::Over => RunProgress::Over,
            PlanRunStatus::Running if needs_environment => RunProgress::NeedsEnvironment,
            PlanRunStatus::Running => RunProgress::Continues,
        }
    }
}

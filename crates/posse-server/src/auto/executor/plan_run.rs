//! The plan of an item, executed by a separate run in this process. Only its typed outcome is used.

use posse_api::{PlanIn, PlanView, SessionRules};
use posse_core::auto::Pipeline;
use posse_core::auto::messages::{Event, StepAnswer, StepId};
use posse_core::engine::{RunOutcome, StopHow};
use posse_core::ids::RunId;
use posse_core::plan::budget::{BacklogCap, Of};

use super::{BacklogWork, begun};
use crate::auto::place::{clear_planners, design_path, plan_path};
use crate::auto::scan::plan_file;
use crate::disk::{self, Disk};
use crate::plans::{ItemLimits, PlanParams};
use crate::run::LaunchContext;
use crate::run::journal::entry_of;
use crate::run::{Executor, StepError, SupervisorError};

impl Executor<BacklogWork> {
    pub(super) async fn execute(&self, id: &StepId, pipeline: &Pipeline) -> Result<StepAnswer, StepError> {
        let view = match self.active_plan(pipeline, id).await? {
            Some(view) => {
                if view.is_active() {
                    self.provide_context(view.id).await;
                }
                view
            }
            None => {
                let context = self.context.clone().ok_or_else(StepError::no_environment)?;
                self.clear_planners(id, pipeline).await?;
                let limit = pipeline.candidate(&id.item).and_then(|candidate| candidate.limit_usd);
                match self.begin_plan(id, limit, context).await {
                    Ok(view) => view,
                    Err(SupervisorError::Invalid(problems)) => {
                        let (outcome, reason) = (RunOutcome::InvalidPlan, problems.to_string());
                        return Ok(StepAnswer::PlanEnded { outcome, reason, used: Default::default() });
                    }
                    Err(error) => return Err(error.into()),
                }
            }
        };
        let run = view.id;
        self.answer(Event::PlanBegun { id: id.clone(), run });
        let view = self.wait_for(run).await?;
        let outcome = view.outcome.unwrap_or(RunOutcome::InternalError);
        let reason = view.run.reason.unwrap_or_else(|| "it ended without a word".into());
        Ok(StepAnswer::PlanEnded { outcome, reason, used: view.run.used })
    }

    /// The run that was begun for this already, if one was.
    pub(in crate::auto) async fn active_plan(
        &self,
        pipeline: &Pipeline,
        id: &StepId,
    ) -> Result<Option<PlanView>, StepError> {
        let plans = &self.sessions.app.plans;
        let Some(job) = pipeline.jobs().get(&id.item).filter(|job| job.id() == *id) else { return Ok(None) };
        if let Some(run) = job.run {
            return Ok(Some(plans.show(run).await?));
        }
        // If the daemon died before it recorded the run, find the run here: no other run of this plan starts meanwhile.
        let file = plan_file(&self.spec, &id.item);
        let Ok(file) = disk::at(&file, Disk::canonicalize).await else { return Ok(None) };
        Ok(plans.newest_since(&file.to_string_lossy(), job.began).await?)
    }

    /// The plan of the item has been taken.
    async fn clear_planners(&self, id: &StepId, pipeline: &Pipeline) -> Result<(), StepError> {
        let begun = begun(&pipeline.carried().items.get(&id.item).cloned().unwrap_or_default());
        let (doing, id) = (self.clone(), id.clone());
        let clear = async move |disk: &Disk| {
            let (plan, design) = (plan_path(&doing.spec, &id.item), design_path(&doing.spec, &id.item, begun));
            clear_planners(&doing.worktrees(&id).await?, disk, [&plan, &design], id.number).await;
            Ok(())
        };
        disk::run_async(clear).await
    }

    async fn begin_plan(
        &self,
        id: &StepId,
        limit_usd: Option<f64>,
        context: LaunchContext,
    ) -> Result<PlanView, SupervisorError> {
        let cap = self.spec.settings.levels.iter().find(|level| level.of == Of::Backlog);
        let backlog = cap.and_then(|cap| Some(BacklogCap { limit_usd: cap.limit_usd?, since: cap.since? }));
        let request = PlanIn {
            file: plan_file(&self.spec, &id.item).to_string_lossy().into_owned(),
            directory: self.spec.directory.clone(),
            sessions: SessionRules { asked: crate::now().timestamp(), ..self.spec.sessions.clone() },
            no_wait: self.spec.settings.no_wait,
            environment: context.environment,
            ..PlanIn::default()
        };
        let of_item = Some(ItemLimits { item: id.item.to_string(), limit_usd, backlog });
        let app = &self.sessions.app;
        // Plans of a pipeline have no gates but the configured ones.
        app.plans.begin(app, PlanParams { request, only_commands: None, of_item }).await
    }

    /// Provides a run of a plan with the environment of sessions, if it is known.
    pub(in crate::auto) async fn provide_context(&self, run: RunId) {
        let Some(context) = self.context.clone() else { return };
        let app = &self.sessions.app;
        if let Err(error) = app.plans.provide(app, run, context).await {
            tracing::warn!("run {run} of a plan is not resumed: {error}");
        }
    }

    pub(in crate::auto) async fn stop_plan(&self, run: RunId, how: StopHow) {
        // A run that is over needs no stop, and reports its own end.
        if let Err(error) = self.sessions.app.plans.stop(run, how).await {
            tracing::debug!("run {run} of a plan was not stopped: {error}");
        }
    }

    async fn wait_for(&self, run: RunId) -> Result<PlanView, StepError> {
        let app = &self.sessions.app;
        let mut events = app.events.subscribe();
        while app.plans.active_ledger(run).is_some_and(|ledger| !ledger.closed) {
            // If the daemon is exiting, the next one learns of the end.
            if entry_of(&mut events, run).await.is_err() {
                std::future::pending::<()>().await;
            }
        }
        Ok(app.plans.show(run).await?)
    }
}

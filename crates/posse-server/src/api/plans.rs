//! Begins runs of plans.

use posse_agents::headless::{DEFAULT_PROVIDER, Sandbox};
use posse_api::{PlanIn, PlanView};
use posse_core::plan::settings::Given;
use posse_core::time::Wall;

use super::requester::{BroughtConfig, Requester};
use super::runs::launch_context;
use super::{ApiError, App, terminals};
use crate::plans::PlanParams;

/// Begins a run of a plan, or continues the one that uses the file.
pub(super) async fn begin(app: App, requester: Requester, body: PlanIn) -> Result<PlanView, ApiError> {
    if body.no_sandbox {
        requester.may(&app, "begin a plan without its sandbox").await?;
    }
    let directory = terminals::directory(&body.directory).await?;
    let brought = BroughtConfig { directory: &directory, config: &body.config, notifications: &body.notifications };
    let only_commands = requester.may_configure(&app, &brought).await?;
    let wanted = PlanParams {
        file: body.file,
        only_commands,
        directory,
        provider: body.provider.unwrap_or_else(|| DEFAULT_PROVIDER.into()),
        sandbox: if body.no_sandbox { Sandbox::Off } else { Sandbox::On },
        branch: body.branch,
        allow_dirty: body.allow_dirty,
        only: body.only,
        from: body.from,
        single: body.single,
        reset: body.reset,
        wishes: body.wishes,
        try_now: body.try_now,
        given: Given {
            workers: body.workers,
            no_wait: body.no_wait,
            skip_after_plan: body.skip_after_plan,
            cap_usd: body.cap_usd,
            budget: body.budget,
            item_limit_usd: None,
            backlog: None,
        },
        notifications: body.notifications,
        config: body.config,
        config_file: body.config_file,
        item: None,
        asked: body.asked.map_or_else(crate::now, |asked| Wall(asked.as_millisecond())),
    };
    Ok(app.plans.begin(&app, wanted, launch_context(body.means)).await?)
}

//! Begins runs of backlogs.

use posse_agents::headless::{DEFAULT_PROVIDER, Sandbox};
use posse_api::{BacklogIn, BacklogView};
use posse_core::auto::Settings;
use posse_core::backlog::Slug;
use posse_core::plan::budget::{BacklogCap, backlog_levels};
use posse_core::time::Wall;

use super::requester::{BroughtConfig, Requester};
use super::runs::launch_context;
use super::{ApiError, App, terminals};
use crate::auto::BacklogParams;

/// Begins a pipeline, or continues the one that waits for the environment of its sessions.
pub(super) async fn begin(app: App, requester: Requester, body: BacklogIn) -> Result<BacklogView, ApiError> {
    if body.no_sandbox {
        requester.may(&app, "begin a pipeline without its sandbox").await?;
    }
    let directory = terminals::directory(&body.directory).await?;
    let brought = BroughtConfig { directory: &directory, config: &body.config, notifications: &body.notifications };
    requester.may_configure(&app, &brought).await?;
    let slug = |name: &String| name.parse::<Slug>().map_err(|error| ApiError::Invalid(format!("{name:?}: {error}")));
    let config = body.config;
    let pipeline = config.pipeline;
    let settings = Settings {
        mode: body.mode,
        item: body.item.as_ref().map(slug).transpose()?,
        max_items: body.max_items,
        max_attempts: pipeline.max_item_attempts,
        max_verifications: pipeline.max_verification_cycles,
        item_starts_per_hour: config.limits.max_item_starts_per_hour,
        items_per_hour: config.limits.items_per_hour,
        plan_timeout: pipeline.plan_timeout,
        verify_timeout: config.task.timeout,
        no_wait: body.no_wait,
        parallel: pipeline.max_parallel_items,
        levels: backlog_levels(&config, body.cap_usd.map(|limit_usd| BacklogCap { limit_usd, since: crate::now() })),
        ..Settings::default()
    };
    let shelves = body.shelves.unwrap_or_else(|| config.backlog.clone());
    let wanted = BacklogParams {
        directory,
        shelves,
        config,
        config_file: body.config_file,
        asked: body.asked.map_or_else(crate::now, |asked| Wall(asked.as_millisecond())),
        settings,
        retry: body.retry.iter().map(slug).collect::<Result<_, _>>()?,
        provider: body.provider.unwrap_or_else(|| DEFAULT_PROVIDER.into()),
        sandbox: if body.no_sandbox { Sandbox::Off } else { Sandbox::On },
        branch: body.branch,
        conventions: body.conventions,
        notifications: body.notifications,
    };
    Ok(app.autos.begin(&app, wanted, launch_context(body.means)).await?)
}

//! Pipelines: begin, look at, stop, ask why.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use posse_agents::headless::{DEFAULT_PROVIDER, Sandbox};
use posse_api::{AutoView, Success, WhyView};
use posse_core::auto::Settings;
use posse_core::backlog::Slug;
use posse_core::engine::StopHow;
use posse_core::plan::budget::{BacklogCap, backlog_levels};
use posse_core::time::Wall;

use super::params::{Params, Run, RunSession};
use super::requester::{BroughtConfig, Requester};
use super::runs::launch_context;
use super::{Answer, ApiError, App, terminals};
use crate::auto::BacklogParams;

/// How many pipelines are listed unless somebody says otherwise.
const LISTED: u32 = 20;

/// List the pipelines, newest first
#[utoipa::path(get, path = "/auto", tag = "auto", operation_id = "list_auto", params(posse_api::RunsQuery),
    responses((status = 200, description = "The pipelines", body = Vec<AutoView>)))]
pub(super) async fn list(State(app): State<App>, Params(query): Params<posse_api::RunsQuery>) -> Answer<Vec<AutoView>> {
    Ok(Json(app.autos.list(query.limit.unwrap_or(LISTED) as usize).await?))
}

/// Begin a pipeline
///
/// There is one in a project at most: while one goes on there, this is refused. One that waits for somebody who knows the
/// environment of its sessions goes on instead.
#[utoipa::path(post, path = "/auto", tag = "auto", operation_id = "begin_auto", request_body = posse_api::AutoIn,
    responses((status = 201, description = "The new pipeline, or the resumed one", body = AutoView)))]
pub(super) async fn begin(
    State(app): State<App>,
    requester: Requester,
    Params(body): Params<posse_api::AutoIn>,
) -> Result<(StatusCode, Json<AutoView>), ApiError> {
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
    let view = app.autos.begin(&app, wanted, launch_context(body.means)).await?;
    Ok((StatusCode::CREATED, Json(view)))
}

/// Show a pipeline
#[utoipa::path(get, path = "/auto/{id}", tag = "auto", operation_id = "show_auto", params(("id" = String, Path)),
    responses((status = 200, description = "The pipeline", body = AutoView)))]
pub(super) async fn show(State(app): State<App>, Run(id): Run) -> Answer<AutoView> {
    Ok(Json(app.autos.show(id).await?))
}

/// Tell a pipeline the environment of its sessions
///
/// It is never stored. After a restart of the daemon whoever follows the pipeline tells it again.
#[utoipa::path(post, path = "/auto/{id}/means", tag = "auto", operation_id = "means_auto", params(("id" = String, Path)), request_body = posse_api::MeansIn,
    responses((status = 200, description = "The resumed pipeline", body = AutoView)))]
pub(super) async fn go_on(
    State(app): State<App>,
    Run(id): Run,
    Params(body): Params<posse_api::MeansIn>,
) -> Answer<AutoView> {
    Ok(Json(app.autos.go_on(&app, id, launch_context(body)).await?))
}

/// Stop a pipeline; the next one goes on where it was
#[utoipa::path(post, path = "/auto/{id}/stop", tag = "auto", operation_id = "stop_auto", params(("id" = String, Path)), request_body = Option<posse_api::StopPlan>,
    responses((status = 200, description = "The pipeline stops", body = Success)))]
pub(super) async fn stop(
    State(app): State<App>,
    Run(id): Run,
    Params(body): Params<posse_api::StopPlan>,
) -> Answer<Success> {
    app.autos.stop(id, body.how.unwrap_or(StopHow::AfterTask)).await?;
    Ok(Json(Success { success: true }))
}

/// Have an item taken up again, as if nothing had happened to it
#[utoipa::path(post, path = "/auto/{id}/retry", tag = "auto", operation_id = "retry_auto", params(("id" = String, Path)), request_body = posse_api::AutoRetryIn,
    responses((status = 200, description = "The item is queued again", body = Success)))]
pub(super) async fn retry(
    State(app): State<App>,
    Run(id): Run,
    Params(body): Params<posse_api::AutoRetryIn>,
) -> Answer<Success> {
    app.autos.retry(&app, id, &body.item).await?;
    Ok(Json(Success { success: true }))
}

/// Why an item stands as it does, and how it came to that
///
/// As the newest pipeline of the project knows it.
#[utoipa::path(get, path = "/auto/why", tag = "auto", operation_id = "why_auto", params(posse_api::WhyQuery),
    responses((status = 200, description = "The state of the item and the decisions that led to it", body = WhyView)))]
pub(super) async fn why(State(app): State<App>, Params(query): Params<posse_api::WhyQuery>) -> Answer<WhyView> {
    Ok(Json(app.autos.why(&query.directory, &query.item).await?))
}

/// What happened in a pipeline
#[utoipa::path(get, path = "/auto/{id}/journal", tag = "auto", operation_id = "journal_auto", params(("id" = String, Path), posse_api::JournalQuery),
    responses((status = 200, description = "Its entries, oldest first", body = Vec<posse_api::AutoJournalView>)))]
pub(super) async fn journal(
    State(app): State<App>,
    Run(id): Run,
    Params(query): Params<posse_api::JournalQuery>,
) -> Answer<Vec<posse_api::AutoJournalView>> {
    app.autos.show(id).await?;
    let entries = app.autos.journal(id, query.after.unwrap_or(0)).await?;
    let view = |(seq, at, entry): (i64, Wall, _)| posse_api::AutoJournalView { seq, at: at.timestamp(), entry };
    Ok(Json(entries.into_iter().map(view).collect()))
}

/// What a session of a pipeline was asked and left behind
#[utoipa::path(get, path = "/auto/{id}/sessions/{session}", tag = "auto", operation_id = "session_auto", params(("id" = String, Path), ("session" = String, Path)),
    responses((status = 200, description = "The prompt and the results of the session", body = posse_api::SessionFiles)))]
pub(super) async fn session(
    State(app): State<App>,
    RunSession(id, session): RunSession,
) -> Answer<posse_api::SessionFiles> {
    Ok(Json(app.autos.session_files(id, &session).await?))
}

/// What a session of a pipeline did and said
///
/// The event `session_said` tells that there is more.
#[utoipa::path(get, path = "/auto/{id}/sessions/{session}/log", tag = "auto", operation_id = "session_log_auto", params(("id" = String, Path), ("session" = String, Path), posse_api::SessionLogQuery),
    responses((status = 200, description = "Lines of the log of the session", body = posse_api::SessionLines)))]
pub(super) async fn session_log(
    State(app): State<App>,
    RunSession(id, session): RunSession,
    Params(query): Params<posse_api::SessionLogQuery>,
) -> Answer<posse_api::SessionLines> {
    let (after, raw) = (query.after.unwrap_or(0), query.raw.unwrap_or(false));
    Ok(Json(app.autos.session_lines(id, &session, after, raw).await?))
}

//! Pipelines: begin, look at, stop, ask why.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use posse_agents::headless::{DEFAULT_PROVIDER, Sandbox};
use posse_core::auto::Settings;
use posse_core::backlog::Slug;
use posse_core::plan::budget::{BacklogCap, backlog_levels};
use posse_core::plan::machine::StopHow;
use posse_core::time::Wall;

use super::params::{Params, Run, RunSession};
use super::requester::{BroughtConfig, Requester};
use super::runs::means;
use super::types::{self, Success};
use super::{ApiError, App, terminals};
use crate::auto::Wanted;
use crate::auto::view::{AutoView, WhyView};
use crate::backlog::Shelves;

type Answer<T> = Result<Json<T>, ApiError>;

/// How many pipelines are listed unless somebody says otherwise.
const LISTED: u32 = 20;

/// List the pipelines, newest first
#[utoipa::path(get, path = "/auto", tag = "auto", operation_id = "list_auto", params(types::RunsQuery),
    responses((status = 200, description = "Them", body = Vec<AutoView>), (status = "default", description = "Refused", body = types::Problem)))]
pub(super) async fn list(State(app): State<App>, Params(query): Params<types::RunsQuery>) -> Answer<Vec<AutoView>> {
    Ok(Json(app.autos.list(query.limit.unwrap_or(LISTED) as usize).await?))
}

/// Begin a pipeline
///
/// There is one in a project at most: while one goes on there, this is refused. One that waits for somebody who knows the
/// environment of its sessions goes on instead.
#[utoipa::path(post, path = "/auto", tag = "auto", operation_id = "begin_auto", request_body = types::AutoIn,
    responses((status = 201, description = "It is written down and begins, or goes on", body = AutoView), (status = "default", description = "Refused", body = types::Problem)))]
pub(super) async fn begin(
    State(app): State<App>,
    requester: Requester,
    Params(body): Params<types::AutoIn>,
) -> Result<(StatusCode, Json<AutoView>), ApiError> {
    if body.no_sandbox {
        requester.may(&app, "begin a pipeline without its sandbox").await?;
    }
    let directory = terminals::directory(&body.directory).await?;
    let brought = BroughtConfig { directory: &directory, config: &body.config, notifications: &body.notifications };
    requester.may_configure(&app, &brought).await?;
    let slug = |name: &String| name.parse::<Slug>().map_err(|error| ApiError::Invalid(format!("{name:?}: {error}")));
    let config = body.config;
    let (limits, pipeline) = (body.limits, config.pipeline);
    let settings = Settings {
        mode: body.mode,
        item: body.item.as_ref().map(slug).transpose()?,
        max_items: body.max_items,
        max_attempts: limits.max_attempts.unwrap_or(pipeline.max_item_attempts).max(1),
        max_verifications: limits.max_verifications.unwrap_or(pipeline.max_verification_cycles).max(1),
        item_starts_per_hour: limits.item_starts_per_hour.unwrap_or(config.limits.max_item_starts_per_hour),
        items_per_hour: limits.items_per_hour.unwrap_or(config.limits.items_per_hour),
        plan_timeout: limits.plan_timeout_seconds.map_or(pipeline.plan_timeout, Duration::from_secs),
        verify_timeout: limits.verify_timeout_seconds.map_or(config.task.timeout, Duration::from_secs),
        no_wait: body.no_wait,
        parallel: limits.max_parallel_items.unwrap_or(pipeline.max_parallel_items).max(1),
        levels: backlog_levels(&config, body.cap_usd.map(|limit_usd| BacklogCap { limit_usd, since: crate::now() })),
        ..Settings::default()
    };
    let backlog = &config.backlog;
    let shelves = body.shelves.unwrap_or_else(|| Shelves {
        defects: backlog.defects.clone(),
        features: backlog.features.clone(),
        completed: backlog.completed.clone(),
        failed: backlog.failed.clone(),
    });
    let wanted = Wanted {
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
    let view = app.autos.begin(&app, wanted, means(body.means)).await?;
    Ok((StatusCode::CREATED, Json(view)))
}

/// Show a pipeline
#[utoipa::path(get, path = "/auto/{id}", tag = "auto", operation_id = "show_auto", params(("id" = String, Path)),
    responses((status = 200, description = "It", body = AutoView), (status = "default", description = "Refused", body = types::Problem)))]
pub(super) async fn show(State(app): State<App>, Run(id): Run) -> Answer<AutoView> {
    Ok(Json(app.autos.show(id).await?))
}

/// Tell a pipeline the environment of its sessions
///
/// It is never stored. After a restart of the daemon whoever follows the pipeline tells it again.
#[utoipa::path(post, path = "/auto/{id}/means", tag = "auto", operation_id = "means_auto", params(("id" = String, Path)), request_body = types::MeansIn,
    responses((status = 200, description = "It goes on", body = AutoView), (status = "default", description = "Refused", body = types::Problem)))]
pub(super) async fn go_on(
    State(app): State<App>,
    Run(id): Run,
    Params(body): Params<types::MeansIn>,
) -> Answer<AutoView> {
    Ok(Json(app.autos.go_on(&app, id, means(body)).await?))
}

/// Stop a pipeline; the next one goes on where it was
#[utoipa::path(post, path = "/auto/{id}/stop", tag = "auto", operation_id = "stop_auto", params(("id" = String, Path)), request_body = Option<types::StopPlan>,
    responses((status = 200, description = "It was told to", body = Success), (status = "default", description = "Refused", body = types::Problem)))]
pub(super) async fn stop(
    State(app): State<App>,
    Run(id): Run,
    Params(body): Params<types::StopPlan>,
) -> Answer<Success> {
    app.autos.stop(id, body.how.unwrap_or(StopHow::AfterTask)).await?;
    Ok(Json(Success { success: true }))
}

/// Have an item taken up again, as if nothing had happened to it
#[utoipa::path(post, path = "/auto/{id}/retry", tag = "auto", operation_id = "retry_auto", params(("id" = String, Path)), request_body = types::AutoRetryIn,
    responses((status = 200, description = "It is written down", body = Success), (status = "default", description = "Refused", body = types::Problem)))]
pub(super) async fn retry(
    State(app): State<App>,
    Run(id): Run,
    Params(body): Params<types::AutoRetryIn>,
) -> Answer<Success> {
    app.autos.retry(&app, id, &body.item).await?;
    Ok(Json(Success { success: true }))
}

/// Why an item stands as it does, and how it came to that
///
/// As the newest pipeline of the project knows it.
#[utoipa::path(get, path = "/auto/why", tag = "auto", operation_id = "why_auto", params(types::WhyQuery),
    responses((status = 200, description = "It", body = WhyView), (status = "default", description = "Refused", body = types::Problem)))]
pub(super) async fn why(State(app): State<App>, Params(query): Params<types::WhyQuery>) -> Answer<WhyView> {
    Ok(Json(app.autos.why(&query.directory, &query.item).await?))
}

/// What happened in a pipeline
#[utoipa::path(get, path = "/auto/{id}/journal", tag = "auto", operation_id = "journal_auto", params(("id" = String, Path), types::JournalQuery),
    responses((status = 200, description = "Its entries, oldest first", body = Vec<types::AutoJournalView>), (status = "default", description = "Refused", body = types::Problem)))]
pub(super) async fn journal(
    State(app): State<App>,
    Run(id): Run,
    Params(query): Params<types::JournalQuery>,
) -> Answer<Vec<types::AutoJournalView>> {
    app.autos.show(id).await?;
    let entries = app.autos.journal(id, query.after.unwrap_or(0)).await?;
    let view = |(seq, at, entry)| types::AutoJournalView { seq, at: crate::timestamp(at), entry };
    Ok(Json(entries.into_iter().map(view).collect()))
}

/// What a session of a pipeline was asked and left behind
#[utoipa::path(get, path = "/auto/{id}/sessions/{session}", tag = "auto", operation_id = "session_auto", params(("id" = String, Path), ("session" = String, Path)),
    responses((status = 200, description = "It", body = types::SessionFiles), (status = "default", description = "Refused", body = types::Problem)))]
pub(super) async fn session(
    State(app): State<App>,
    RunSession(id, session): RunSession,
) -> Answer<types::SessionFiles> {
    Ok(Json(app.autos.session_files(id, &session).await?))
}

/// What a session of a pipeline did and said
///
/// The event `session_said` tells that there is more.
#[utoipa::path(get, path = "/auto/{id}/sessions/{session}/log", tag = "auto", operation_id = "session_log_auto", params(("id" = String, Path), ("session" = String, Path), types::SessionLogQuery),
    responses((status = 200, description = "Lines", body = types::SessionLines), (status = "default", description = "Refused", body = types::Problem)))]
pub(super) async fn session_log(
    State(app): State<App>,
    RunSession(id, session): RunSession,
    Params(query): Params<types::SessionLogQuery>,
) -> Answer<types::SessionLines> {
    let (after, raw) = (query.after.unwrap_or(0), query.raw.unwrap_or(false));
    Ok(Json(app.autos.session_lines(id, &session, after, raw).await?))
}

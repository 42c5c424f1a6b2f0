//! Runs of plans: begin, look at, stop, answer.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use posse_agents::headless::{DEFAULT_PROVIDER, Sandbox};
use posse_api::{PlanView, Success};
use posse_core::engine::StopHow;
use posse_core::plan::settings::Given;
use posse_core::plan::usage::Summary;
use posse_core::time::Wall;

use super::params::{Params, Run, RunSession};
use super::requester::{BroughtConfig, Requester};
use super::runs::launch_context;
use super::{Answer, ApiError, App, terminals};
use crate::plans::PlanParams;
use crate::store::UsageOf;

/// How many runs are listed unless somebody says otherwise.
const LISTED: u32 = 100;

/// List the runs of plans, newest first
#[utoipa::path(get, path = "/plans", tag = "plans", params(posse_api::RunsQuery),
    responses((status = 200, description = "The runs", body = Vec<PlanView>)))]
pub(super) async fn list(State(app): State<App>, Params(query): Params<posse_api::RunsQuery>) -> Answer<Vec<PlanView>> {
    Ok(Json(app.plans.list(query.limit.unwrap_or(LISTED) as usize).await?))
}

/// Begin a run of a plan, or go on with the one that uses this file
///
/// A run that goes on already is told that somebody is there who knows the environment of its sessions.
#[utoipa::path(post, path = "/plans", tag = "plans", request_body = posse_api::PlanIn,
    responses((status = 201, description = "The new run, or the resumed one", body = PlanView)))]
pub(super) async fn begin(
    State(app): State<App>,
    requester: Requester,
    Params(body): Params<posse_api::PlanIn>,
) -> Result<(StatusCode, Json<PlanView>), ApiError> {
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
    let view = app.plans.begin(&app, wanted, launch_context(body.means)).await?;
    Ok((StatusCode::CREATED, Json(view)))
}

/// What sessions of plans have used
///
/// Every session counts: failed ones, ended ones, validators. What a tool does not say is null, not zero.
#[utoipa::path(get, path = "/plans/usage", tag = "plans", params(posse_api::UsageQuery),
    responses((status = 200, description = "Totals, sums by plan, section, task and model, and every session", body = Object)))]
pub(super) async fn usage(State(app): State<App>, Params(query): Params<posse_api::UsageQuery>) -> Answer<Summary> {
    let since = query.since.map(|since| Wall(since.as_millisecond()));
    let of = UsageOf { since, run: query.run, project: query.directory, plan: query.file, item: None };
    Ok(Json(Summary::of(app.plans.usage(of).await?)))
}

/// Show a run of a plan
#[utoipa::path(get, path = "/plans/{id}", tag = "plans", params(("id" = String, Path), posse_api::PlanQuery),
    responses((status = 200, description = "The run", body = PlanView)))]
pub(super) async fn show(
    State(app): State<App>,
    Run(id): Run,
    Params(query): Params<posse_api::PlanQuery>,
) -> Answer<PlanView> {
    Ok(Json(match query.tasks.unwrap_or(true) {
        true => app.plans.show(id).await?,
        false => app.plans.show_without_tasks(id).await?,
    }))
}

/// Stop a run of a plan
#[utoipa::path(post, path = "/plans/{id}/stop", tag = "plans", params(("id" = String, Path)), request_body = Option<posse_api::StopPlan>,
    responses((status = 200, description = "The run stops", body = Success)))]
pub(super) async fn stop(
    State(app): State<App>,
    Run(id): Run,
    Params(body): Params<posse_api::StopPlan>,
) -> Answer<Success> {
    app.plans.stop(id, body.how.unwrap_or(StopHow::AfterTask)).await?;
    Ok(Json(Success { success: true }))
}

/// Answer a task that asked
///
/// If the plan does not run, the answer is written into its file, and the next run begins with it.
#[utoipa::path(post, path = "/plans/answer", tag = "plans", request_body = posse_api::TaskAnswerIn,
    responses((status = 200, description = "The request is journaled, or written into the plan file", body = Success)))]
pub(super) async fn answer(
    State(app): State<App>,
    requester: Requester,
    Params(body): Params<posse_api::TaskAnswerIn>,
) -> Answer<Success> {
    requester.may(&app, "answer a task that asked").await?;
    app.plans.answer(&app, &body.file, &body.task, body.answer).await?;
    Ok(Json(Success { success: true }))
}

/// Have a task tried again from the beginning
#[utoipa::path(post, path = "/plans/retry", tag = "plans", request_body = posse_api::RetryIn,
    responses((status = 200, description = "The request is journaled, or written into the plan file", body = Success)))]
pub(super) async fn retry(State(app): State<App>, Params(body): Params<posse_api::RetryIn>) -> Answer<Success> {
    app.plans.retry(&app, &body.file, &body.task).await?;
    Ok(Json(Success { success: true }))
}

/// What happened in a run of a plan
#[utoipa::path(get, path = "/plans/{id}/journal", tag = "plans", params(("id" = String, Path), posse_api::JournalQuery),
    responses((status = 200, description = "Its entries, oldest first", body = Vec<posse_api::PlanJournalView>)))]
pub(super) async fn journal(
    State(app): State<App>,
    Run(id): Run,
    Params(query): Params<posse_api::JournalQuery>,
) -> Answer<Vec<posse_api::PlanJournalView>> {
    app.plans.show(id).await?;
    let entries = app.plans.journal(id, query.after.unwrap_or(0)).await?;
    let view = |(seq, at, entry): (i64, Wall, _)| posse_api::PlanJournalView { seq, at: at.timestamp(), entry };
    Ok(Json(entries.into_iter().map(view).collect()))
}

/// What a session of a plan was asked and left behind
#[utoipa::path(get, path = "/plans/{id}/sessions/{session}", tag = "plans", params(("id" = String, Path), ("session" = String, Path)),
    responses((status = 200, description = "The prompt and the results of the session", body = posse_api::SessionFiles)))]
pub(super) async fn session(
    State(app): State<App>,
    RunSession(id, session): RunSession,
) -> Answer<posse_api::SessionFiles> {
    Ok(Json(app.plans.session_files(id, &session).await?))
}

/// What a session of a plan did and said
///
/// The event `session_said` tells that there is more.
#[utoipa::path(get, path = "/plans/{id}/sessions/{session}/log", tag = "plans", params(("id" = String, Path), ("session" = String, Path), posse_api::SessionLogQuery),
    responses((status = 200, description = "Lines of the log of the session", body = posse_api::SessionLines)))]
pub(super) async fn session_log(
    State(app): State<App>,
    RunSession(id, session): RunSession,
    Params(query): Params<posse_api::SessionLogQuery>,
) -> Answer<posse_api::SessionLines> {
    let (after, raw) = (query.after.unwrap_or(0), query.raw.unwrap_or(false));
    Ok(Json(app.plans.session_lines(id, &session, after, raw).await?))
}

/// Remove what runs of plans and pipelines left behind and nobody needs, or name it
///
/// Never work that is not merged, and nothing of a plan that is not at its end or of an item that is still in the backlog.
#[utoipa::path(post, path = "/plans/clean", tag = "plans", request_body = posse_api::CleanIn,
    responses((status = 200, description = "The files that were removed, or may be removed", body = posse_api::CleanView)))]
pub(super) async fn clean(
    State(app): State<App>,
    Params(body): Params<posse_api::CleanIn>,
) -> Answer<posse_api::CleanView> {
    Ok(Json(crate::run::retention::clean(&app, body.file.as_deref(), body.remove).await?))
}

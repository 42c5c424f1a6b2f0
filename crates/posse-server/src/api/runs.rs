//! Runs of all kinds: begin, look at, stop, resume, answer.

use posse_api::{
    AnswerPartIn, EntryView, JournalQuery, JournalView, PartIn, ResumeIn, RunIn, RunKind, RunQuery, RunView, RunsQuery,
    SessionFiles, SessionLines, StopRun, Success, WhyView,
};
use posse_core::engine::StopHow;
use posse_core::plan::usage::Summary;
use posse_core::run::Caller;
use posse_core::time::Wall;

use super::params::RunSession;
use super::*;
use crate::plans::PlanParams;
use crate::run::retention::{self, ALL};
use crate::store::UsageOf;

const LISTED: u32 = 100;

/// List the runs, newest first
#[utoipa::path(get, path = "/runs", tag = "runs", params(RunsQuery),
    responses((status = 200, description = "The runs", body = Vec<RunView>)))]
pub(super) async fn list(State(app): State<App>, Params(query): Params<RunsQuery>) -> Answer<Vec<RunView>> {
    let limit = query.limit.unwrap_or(LISTED) as usize;
    let searched = if query.of.is_some() || query.id.is_some() { ALL } else { limit };
    let wanted = |kind| query.kind.is_none_or(|only| only == kind);
    let mut runs = Vec::new();
    if wanted(RunKind::Loop) {
        runs.extend(app.loops.list(searched).await?.into_iter().map(RunView::Loop));
    }
    if wanted(RunKind::Plan) {
        runs.extend(app.plans.list(searched).await?.into_iter().map(RunView::Plan));
    }
    if wanted(RunKind::Backlog) {
        runs.extend(app.autos.list(searched).await?.into_iter().map(RunView::Backlog));
    }
    runs.retain(|run| {
        let is_of = |of: &String| *of == run.directory || matches!(run, RunView::Plan(plan) if plan.file == *of);
        let has_id = |id: &String| !id.is_empty() && run.id.as_str().starts_with(id);
        query.of.as_ref().is_none_or(is_of) && query.id.as_ref().is_none_or(has_id)
    });
    runs.sort_by_key(|run| std::cmp::Reverse(run.created));
    runs.truncate(limit);
    if query.tasks == Some(false) {
        for run in &mut runs {
            if let RunView::Plan(plan) = run {
                plan.tasks.clear();
            }
        }
    }
    Ok(Json(runs))
}

/// Begin a run
///
/// Continues the run that uses the plan's file, or the one of the backlog that waits for the environment of its sessions. There
/// is one run of the loop and one of the backlog in a project at most.
#[utoipa::path(post, path = "/runs", tag = "runs", request_body = RunIn,
    responses((status = 201, description = "The new run, or the resumed one", body = RunView)))]
pub(super) async fn create(
    State(app): State<App>,
    requester: Requester,
    Params(body): Params<RunIn>,
) -> Result<(StatusCode, Json<RunView>), ApiError> {
    let view = match body {
        RunIn::Loop(body) => RunView::Loop(loops::begin(app, requester, *body).await?),
        RunIn::Plan(mut request) => {
            let (directory, sessions) = (&request.directory, &request.sessions);
            let may = requester.may_begin(&app, "begin a plan without its sandbox", directory, sessions);
            let (directory, only_commands) = may.await?;
            request.directory = directory;
            let params = PlanParams { request: *request, only_commands, of_item: None };
            RunView::Plan(app.plans.begin(&app, params).await?)
        }
        RunIn::Backlog(mut request) => {
            let (directory, sessions) = (&request.directory, &request.sessions);
            let may = requester.may_begin(&app, "begin a pipeline without its sandbox", directory, sessions);
            request.directory = may.await?.0;
            RunView::Backlog(app.autos.begin(&app, *request).await?)
        }
    };
    Ok((StatusCode::CREATED, Json(view)))
}

pub(super) async fn kind_of(app: &App, id: RunId) -> Result<RunKind, ApiError> {
    if lock(&app.plans.active).contains_key(&id) {
        return Ok(RunKind::Plan);
    }
    if lock(&app.autos.active).contains_key(&id) {
        return Ok(RunKind::Backlog);
    }
    let kind = app.plans.read(move |disk, database| store::kind_of(disk, database, id)).await?;
    kind.ok_or_else(|| SupervisorError::NoRun { kind: "run", id }.into())
}

/// Show a run
#[utoipa::path(get, path = "/runs/{id}", tag = "runs", params(("id" = String, Path), RunQuery),
    responses((status = 200, description = "The run", body = RunView)))]
pub(super) async fn show(
    State(app): State<App>,
    Id(id): Id<RunId>,
    Params(query): Params<RunQuery>,
) -> Answer<RunView> {
    Ok(Json(match kind_of(&app, id).await? {
        RunKind::Loop => RunView::Loop(app.loops.show(id).await?),
        RunKind::Plan if query.tasks == Some(false) => RunView::Plan(app.plans.show_without_tasks(id).await?),
        RunKind::Plan => RunView::Plan(app.plans.show(id).await?),
        RunKind::Backlog => RunView::Backlog(app.autos.show(id).await?),
    }))
}

/// Stop a run
#[utoipa::path(post, path = "/runs/{id}/stop", tag = "runs", params(("id" = String, Path)), request_body = Option<StopRun>,
    responses((status = 200, description = "The run stops", body = Success)))]
pub(super) async fn stop(State(app): State<App>, Id(id): Id<RunId>, Params(body): Params<StopRun>) -> Answer<Success> {
    let how = body.how.unwrap_or(StopHow::AfterTask);
    match kind_of(&app, id).await? {
        RunKind::Loop => app.loops.stop_run(id, body.why.unwrap_or_else(|| "a client stopped it".into())).await?,
        RunKind::Plan => app.plans.stop(id, how).await?,
        RunKind::Backlog => app.autos.stop(id, how).await?,
    }
    Ok(Json(Success { success: true }))
}

/// Drop a run that is not active
///
/// Removes its journal and its files. Branches, the audit and the usage of its sessions stay. Refused while work in its work trees
/// is not merged.
#[utoipa::path(delete, path = "/runs/{id}", tag = "runs", params(("id" = String, Path)),
    responses((status = 200, description = "The run is gone", body = Success)))]
pub(super) async fn drop_run(State(app): State<App>, Id(id): Id<RunId>, requester: Requester) -> Answer<Success> {
    requester.may(&app, "drop a run").await?;
    match kind_of(&app, id).await? {
        RunKind::Loop => app.loops.drop_run(&app, id).await?,
        RunKind::Plan => app.plans.drop_run(&app, id).await?,
        RunKind::Backlog => app.autos.drop_run(&app, id).await?,
    }
    Ok(Json(Success { success: true }))
}

/// Continue a run
///
/// A run of the loop that stopped goes on; one that is parked tries at once. A run of a plan or a backlog gets the environment of
/// its sessions, which is never stored: after a restart of the daemon its followers provide it again.
#[utoipa::path(post, path = "/runs/{id}/resume", tag = "runs", params(("id" = String, Path)), request_body = Option<ResumeIn>,
    responses((status = 200, description = "The resumed run", body = RunView)))]
pub(super) async fn resume(
    State(app): State<App>,
    Id(id): Id<RunId>,
    requester: Requester,
    Params(body): Params<ResumeIn>,
) -> Answer<RunView> {
    if body.auto_accept == Some(true) {
        requester.may(&app, "have a run accept permissions").await?;
    }
    let ResumeIn { environment, patient, auto_accept } = body;
    let context = LaunchContext { environment };
    Ok(Json(match kind_of(&app, id).await? {
        RunKind::Loop => {
            let caller = Caller { hurry: !patient, auto_accept };
            let resumed = loops::surely(async move { app.loops.resume(&app, id, context, caller).await });
            RunView::Loop(resumed.await?)
        }
        RunKind::Plan => RunView::Plan(app.plans.provide(&app, id, context).await?),
        RunKind::Backlog => RunView::Backlog(app.autos.provide(&app, id, context).await?),
    }))
}

/// Answer a task that asked
///
/// If the plan does not run, its last run journals the answer, and the next run begins with it.
#[utoipa::path(post, path = "/runs/answer", tag = "runs", request_body = AnswerPartIn,
    responses((status = 200, description = "The request is journaled", body = Success)))]
pub(super) async fn answer(
    State(app): State<App>,
    requester: Requester,
    Params(body): Params<AnswerPartIn>,
) -> Answer<Success> {
    requester.may(&app, "answer a task that asked").await?;
    app.plans.answer(&app, &body.of, &body.part, body.answer).await?;
    Ok(Json(Success { success: true }))
}

/// Have a task or an item tried again from the beginning
///
/// If the plan does not run, its last run journals the request. An item is retried by the active run of its backlog.
#[utoipa::path(post, path = "/runs/retry", tag = "runs", request_body = PartIn,
    responses((status = 200, description = "The request is journaled", body = Success)))]
pub(super) async fn retry(State(app): State<App>, Params(body): Params<PartIn>) -> Answer<Success> {
    if disk::at(&body.of, Disk::is_dir).await {
        app.autos.retry(&app, &body.of, &body.part).await?;
    } else {
        app.plans.retry(&app, &body.of, &body.part).await?;
    }
    Ok(Json(Success { success: true }))
}

/// Why an item of a backlog stands as it does, and how it came to that
///
/// As the newest run of the backlog knows it.
#[utoipa::path(get, path = "/runs/why", tag = "runs", params(PartIn),
    responses((status = 200, description = "The state of the item and the decisions that led to it", body = WhyView)))]
pub(super) async fn why(State(app): State<App>, Params(query): Params<PartIn>) -> Answer<WhyView> {
    Ok(Json(app.autos.why(&query.of, &query.part).await?))
}

/// What happened in a run
#[utoipa::path(get, path = "/runs/{id}/journal", tag = "runs", params(("id" = String, Path), JournalQuery),
    responses((status = 200, description = "Its entries, oldest first", body = Vec<JournalView>)))]
pub(super) async fn journal(
    State(app): State<App>,
    Id(id): Id<RunId>,
    Params(query): Params<JournalQuery>,
) -> Answer<Vec<JournalView>> {
    let after = query.after.unwrap_or(0);
    Ok(Json(match kind_of(&app, id).await? {
        RunKind::Loop => app.loops.told(id, after).await?,
        RunKind::Plan => views(app.plans.journal(id, after).await?, EntryView::Plan),
        RunKind::Backlog => views(app.autos.journal(id, after).await?, EntryView::Backlog),
    }))
}

fn views<E>(entries: Vec<(i64, Wall, E)>, entry_view: fn(E) -> EntryView) -> Vec<JournalView> {
    let view = |(seq, at, entry): (i64, Wall, E)| JournalView { seq, at: at.timestamp(), entry: entry_view(entry) };
    entries.into_iter().map(view).collect()
}

/// What a headless session was asked and left behind
#[utoipa::path(get, path = "/runs/{id}/sessions/{session}", tag = "runs", params(("id" = String, Path), ("session" = String, Path)),
    responses((status = 200, description = "The prompt and the results of the session", body = SessionFiles)))]
pub(super) async fn session(State(app): State<App>, RunSession(id, session): RunSession) -> Answer<SessionFiles> {
    Ok(Json(match kind_of(&app, id).await? {
        RunKind::Plan => app.plans.session_files(id, &session).await?,
        RunKind::Backlog => app.autos.session_files(id, &session).await?,
        RunKind::Loop => return Err(no_sessions(id)),
    }))
}

fn no_sessions(id: RunId) -> ApiError {
    SupervisorError::NoRun { kind: "run with headless sessions", id }.into()
}

/// What a headless session did and said
///
/// The event `session_said` tells that there is more.
#[utoipa::path(get, path = "/runs/{id}/sessions/{session}/log", tag = "runs", params(("id" = String, Path), ("session" = String, Path), posse_api::SessionLogQuery),
    responses((status = 200, description = "Lines of the log of the session", body = SessionLines)))]
pub(super) async fn session_log(
    State(app): State<App>,
    RunSession(id, session): RunSession,
    Params(query): Params<posse_api::SessionLogQuery>,
) -> Answer<SessionLines> {
    let (after, raw) = (query.after.unwrap_or(0), query.raw.unwrap_or(false));
    Ok(Json(match kind_of(&app, id).await? {
        RunKind::Plan => app.plans.session_lines(id, &session, after, raw).await?,
        RunKind::Backlog => app.autos.session_lines(id, &session, after, raw).await?,
        RunKind::Loop => return Err(no_sessions(id)),
    }))
}

/// What headless sessions have used
///
/// Every session counts: failed ones, ended ones, validators. What a tool does not say is null, not zero.
#[utoipa::path(get, path = "/runs/usage", tag = "runs", params(posse_api::UsageQuery),
    responses((status = 200, description = "Totals, sums by plan, section, task and model, and every session", body = Object)))]
pub(super) async fn usage(State(app): State<App>, Params(query): Params<posse_api::UsageQuery>) -> Answer<Summary> {
    let since = query.since.map(|since| Wall(since.as_millisecond()));
    let of = UsageOf { since, run: query.run, project: query.directory, plan: query.file, item: None };
    Ok(Json(Summary::of(app.plans.usage(of).await?)))
}

/// Remove what runs of plans and backlogs left behind and nobody needs, or name it
///
/// Never work that is not merged, and nothing of a plan that is not at its end or of an item that is still in the backlog.
#[utoipa::path(post, path = "/runs/clean", tag = "runs", request_body = posse_api::CleanIn,
    responses((status = 200, description = "The files that were removed, or may be removed", body = posse_api::CleanView)))]
pub(super) async fn clean(
    State(app): State<App>,
    Params(body): Params<posse_api::CleanIn>,
) -> Answer<posse_api::CleanView> {
    Ok(Json(retention::clean(&app, body.file.as_deref(), body.remove).await?))
}

//! Runs of the loop: begin, look at, stop, resume.

use std::path::Path;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use posse_api::{RunView, Success};
use posse_core::ids::{Name, RunId};
use posse_core::rounds::state::{InFlight, StateFile};
use posse_core::rounds::{Next, Prompt, Rounds, Rules};
use posse_core::run::{Caller, Imported, Spec};
use posse_files::providers::prompt_templates;

use super::agents::{self, Asked};
use super::params::{Params, Run};
use super::requester::Requester;
use super::{Answer, ApiError, App, terminals};
use crate::disk::{self, Disk};
use crate::loops::RunFiles;
use crate::run::{LaunchContext, SupervisorError};

/// How many runs are listed unless somebody says otherwise.
const LISTED: u32 = 100;

/// List the runs, newest first
#[utoipa::path(get, path = "/runs", tag = "runs", params(posse_api::RunsQuery),
    responses((status = 200, description = "The runs", body = Vec<RunView>)))]
pub(super) async fn list(State(app): State<App>, Params(query): Params<posse_api::RunsQuery>) -> Answer<Vec<RunView>> {
    Ok(Json(app.loops.list(query.limit.unwrap_or(LISTED) as usize).await?))
}

/// Begin a run of the loop
#[utoipa::path(post, path = "/runs", tag = "runs", request_body = posse_api::RunIn,
    responses((status = 201, description = "The new run", body = RunView)))]
pub(super) async fn create(
    State(app): State<App>,
    requester: Requester,
    Params(body): Params<posse_api::RunIn>,
) -> Result<(StatusCode, Json<RunView>), ApiError> {
    if body.config.handoff.auto_accept_permissions {
        requester.may(&app, "begin a run that accepts permissions").await?;
    }
    requester.may_be_notified(&app, &body.config.notifications).await?;
    let invalid = |what: String| ApiError::Invalid(what);
    let directory = terminals::directory(&body.directory).await?;
    // Before any of them is started.
    for choice in body.config.agents.values() {
        let (provider, profile_name) = (choice.provider.clone(), Some(choice.profile.clone()));
        agents::find(&app, Asked { provider, profile_name, ..Asked::default() }).await?;
    }
    let openspec = disk::at(directory.join("openspec"), Disk::is_dir).await;
    let files = app.paths.prompts();
    let prompts = disk::run(move |_| prompt_templates(&files)).await.map_err(|error| invalid(error.to_string()))?;
    let id = RunId::from_random(crate::random() as u32);
    let imported = match &body.state {
        None => None,
        Some(text) => {
            let state = StateFile::read(text).map_err(|error| invalid(format!("the state file: {error}")))?;
            let rules = Rules::new(&body.config, openspec, prompts.clone());
            Some(import(&state, rules, &body.prompt, &directory).await?)
        }
    };
    if body.stamp.is_empty() || !body.stamp.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') {
        return Err(invalid(format!("the stamp {:?} is no name for a folder", body.stamp)));
    }
    let spec = Spec {
        id,
        config: body.config,
        prompt: body.prompt,
        directory: directory.to_string_lossy().into_owned(),
        openspec,
        prompts,
        stamp: body.stamp,
        state_file: body.state_file,
        session: Name::session(&format!("loop-{id}"))?,
        trusted: body.trusted,
        zone: body.zone,
        config_hash: body.config_hash,
        imported,
    };
    let means = launch_context(body.means);
    let view = surely(async move { app.loops.begin(&app, spec, means).await }).await?;
    Ok((StatusCode::CREATED, Json(view)))
}

/// A run that is known by its state file only. Whoever asks has told people what there is to be told of it.
async fn import(state: &StateFile, rules: Rules, prompt: &Prompt, directory: &Path) -> Result<Imported, ApiError> {
    let (mut rounds, notes) = Rounds::from_state(state, rules);
    if let Next::Over(_) = rounds.next() {
        let why = notes.into_iter().map(|note| note.text).collect::<Vec<_>>().join("; ");
        return Err(ApiError::Invalid(format!("the state file: {why}")));
    }
    let _ = rounds.replace_prompt(prompt.clone());
    let in_flight = state.in_flight.as_ref().filter(|in_flight| rounds.resume_at(in_flight.key));
    let in_flight = match in_flight {
        Some(in_flight) if is_awaited(in_flight, directory).await => Some(in_flight),
        _ => None,
    };
    let in_flight = in_flight.and_then(|in_flight| Some((in_flight.key, in_flight.terminal.parse().ok()?)));
    let mut terminals = std::collections::BTreeMap::new();
    for (role, terminal) in &state.terminals {
        let bad = |error| ApiError::Invalid(format!("the state file: the terminal of the {role}: {error}"));
        terminals.insert(*role, terminal.id.parse().map_err(bad)?);
    }
    Ok(Imported { rounds, terminals, in_flight })
}

/// Whether what is in the response file, or comes there, is the answer to this turn: it must not be older than the prompt.
async fn is_awaited(in_flight: &InFlight, directory: &Path) -> bool {
    let Ok(dispatched) = in_flight.dispatched_at.parse::<jiff::Timestamp>() else { return false };
    let written = disk::at(RunFiles::response_in(directory, in_flight.key), Disk::metadata).await;
    let written = written.and_then(|file| file.modified());
    written.map_or(true, |written| jiff::Timestamp::try_from(written).is_ok_and(|written| written >= dispatched))
}

/// Brings it to its end, also if whoever asked is gone by then: half of it would be a run that nobody drives.
async fn surely(
    doing: impl Future<Output = Result<RunView, SupervisorError>> + Send + 'static,
) -> Result<RunView, ApiError> {
    Ok(tokio::spawn(doing).await.map_err(|_| ApiError::Stopping)??)
}

pub(super) fn launch_context(body: posse_api::MeansIn) -> LaunchContext {
    LaunchContext { environment: body.environment }
}

/// Show a run
#[utoipa::path(get, path = "/runs/{id}", tag = "runs", params(("id" = String, Path)),
    responses((status = 200, description = "The run", body = RunView)))]
pub(super) async fn show(State(app): State<App>, Run(id): Run) -> Answer<RunView> {
    Ok(Json(app.loops.show(id).await?))
}

/// Stop a run; it can be resumed
#[utoipa::path(post, path = "/runs/{id}/stop", tag = "runs", params(("id" = String, Path)), request_body = Option<posse_api::StopRun>,
    responses((status = 200, description = "The run stops", body = Success)))]
pub(super) async fn stop(
    State(app): State<App>,
    Run(id): Run,
    Params(body): Params<posse_api::StopRun>,
) -> Answer<Success> {
    app.loops.stop_run(id, body.why.unwrap_or_else(|| "somebody stopped it".into())).await?;
    Ok(Json(Success { success: true }))
}

/// Go on with a run that stopped
///
/// A run that goes on already is told that somebody is there who knows the environment of its agents, and one that is parked
/// tries at once.
#[utoipa::path(post, path = "/runs/{id}/resume", tag = "runs", params(("id" = String, Path)), request_body = Option<posse_api::ResumeIn>,
    responses((status = 200, description = "The resumed run", body = RunView)))]
pub(super) async fn resume(
    State(app): State<App>,
    Run(id): Run,
    requester: Requester,
    Params(body): Params<posse_api::ResumeIn>,
) -> Answer<RunView> {
    if body.auto_accept == Some(true) {
        requester.may(&app, "have a run accept permissions").await?;
    }
    let posse_api::ResumeIn { environment, patient, auto_accept } = body;
    let means = LaunchContext { environment };
    let caller = Caller { hurry: !patient, auto_accept };
    Ok(Json(surely(async move { app.loops.resume(&app, id, means, caller).await }).await?))
}

/// What happened in a run
#[utoipa::path(get, path = "/runs/{id}/journal", tag = "runs", params(("id" = String, Path), posse_api::JournalQuery),
    responses((status = 200, description = "Its entries, oldest first", body = Vec<posse_api::LoopJournalView>)))]
pub(super) async fn journal(
    State(app): State<App>,
    Run(id): Run,
    Params(query): Params<posse_api::JournalQuery>,
) -> Answer<Vec<posse_api::LoopJournalView>> {
    Ok(Json(app.loops.told(id, query.after.unwrap_or(0)).await?))
}

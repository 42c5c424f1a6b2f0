//! Sessions: named groups of terminals. A session is there as long as it has a terminal.

use std::collections::BTreeMap;

use posse_api::{Create, SessionStatus};

use super::listen::Defaults;
use super::*;

/// Start a terminal in a session of its own
#[utoipa::path(post, path = "/sessions", tag = "sessions", params(posse_api::CreateIn), request_body = Option<posse_api::CreateIn>,
    responses((status = 201, description = "The new terminal; its program runs", body = Terminal)))]
pub(super) async fn create(
    State(app): State<App>,
    Params(body): Params<posse_api::CreateIn>,
) -> Result<(StatusCode, Json<Terminal>), ApiError> {
    let name = body.session_name.as_deref().map_or_else(|| Ok(terminals::random_session()), Name::session)?;
    start(&app, body, SessionChoice::New, name).await
}

/// List the sessions
#[utoipa::path(get, path = "/sessions", tag = "sessions",
    responses((status = 200, description = "All sessions", body = Vec<posse_api::Session>)))]
pub(super) async fn list(State(app): State<App>) -> Answer<Vec<posse_api::Session>> {
    let mut sessions: BTreeMap<Name, posse_api::Session> = BTreeMap::new();
    for view in app.ask(HubCommand::List).await? {
        let name = view.record.session.clone();
        let session = sessions.entry(name).or_insert_with_key(|name| session(name, false));
        if view.watched {
            session.status = SessionStatus::Active;
        }
    }
    Ok(Json(sessions.into_values().collect()))
}

/// Show a session and its terminals
#[utoipa::path(get, path = "/sessions/{name}", tag = "sessions", params(("name" = String, Path)),
    responses((status = 200, description = "The session and its terminals", body = posse_api::SessionDetail)))]
pub(super) async fn show(State(app): State<App>, SessionName(name): SessionName) -> Answer<posse_api::SessionDetail> {
    let views = of_session(&app, &name).await?;
    let session = session(&name, views.iter().any(|view| view.watched));
    Ok(Json(posse_api::SessionDetail { session, terminals: views.into_iter().map(Terminal::from).collect() }))
}

fn session(name: &Name, watched: bool) -> posse_api::Session {
    let status = if watched { SessionStatus::Active } else { SessionStatus::Detached };
    posse_api::Session { id: name.to_string(), name: name.to_string(), status }
}

/// End a session with all its terminals
#[utoipa::path(delete, path = "/sessions/{name}", tag = "sessions", params(("name" = String, Path)),
    responses((status = 200, description = "The session and its terminals are gone", body = Success)))]
pub(super) async fn delete(State(app): State<App>, SessionName(name): SessionName) -> Answer<Success> {
    let views = of_session(&app, &name).await?;
    // All at once: each may take its grace.
    let deletions = views.into_iter().map(|view| {
        let (app, id) = (app.clone(), view.record.id);
        tokio::spawn(async move { app.ask(|reply| HubCommand::Delete { id, grace_ms: GRACE_MS, reply }).await })
    });
    let mut success = true;
    for deletion in deletions.collect::<Vec<_>>() {
        let deleted = deletion.await.map_err(|_| ApiError::stopping())???;
        success &= deleted.is_none_or(|left| left == 0);
    }
    Ok(Json(Success { success }))
}

/// Start another terminal in a session
#[utoipa::path(post, path = "/sessions/{name}/terminals", tag = "sessions", params(("name" = String, Path), posse_api::CreateIn),
    request_body = Option<posse_api::CreateIn>,
    responses((status = 201, description = "The new terminal; its program runs", body = Terminal)))]
pub(super) async fn add_terminal(
    State(app): State<App>,
    SessionName(name): SessionName,
    Params(body): Params<posse_api::CreateIn>,
) -> Result<(StatusCode, Json<Terminal>), ApiError> {
    start(&app, body, SessionChoice::Existing, name).await
}

/// List the terminals of a session
#[utoipa::path(get, path = "/sessions/{name}/terminals", tag = "sessions", params(("name" = String, Path)),
    responses((status = 200, description = "The terminals of the session", body = Vec<Terminal>)))]
pub(super) async fn terminals_of(State(app): State<App>, SessionName(name): SessionName) -> Answer<Vec<Terminal>> {
    Ok(Json(of_session(&app, &name).await?.into_iter().map(Terminal::from).collect()))
}

async fn of_session(app: &App, name: &Name) -> Result<Vec<TerminalSnapshot>, ApiError> {
    let mut views = app.ask(HubCommand::List).await?;
    views.retain(|view| &view.record.session == name);
    if views.is_empty() { Err(ApiError::no_session(name.as_str())) } else { Ok(views) }
}

async fn start(
    app: &App,
    body: posse_api::CreateIn,
    choice: SessionChoice,
    session: Name,
) -> Result<(StatusCode, Json<Terminal>), ApiError> {
    let Defaults { environment, directory } = app.listeners.defaults();
    let shell = || vec![environment.get("SHELL").cloned().unwrap_or_else(|| "/bin/sh".into())];
    let create = Create {
        command: if body.provider == SHELL { shell() } else { Vec::new() },
        provider: Some(body.provider),
        mode: body.mode,
        model: body.model,
        agent_profile: body.agent_profile,
        trusted: body.trusted.unwrap_or(false),
        wait: body.wait,
        working_directory: body.working_directory.unwrap_or_else(|| directory.to_string_lossy().into_owned()),
        environment,
        ..Create::default()
    };
    Ok((StatusCode::CREATED, Json(agents::start(app, create, choice, session).await?)))
}

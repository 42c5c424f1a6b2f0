//! Agents: which there are, and how one is asked for.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use posse_agents::launch::{Launch, Mode};
use posse_agents::profile::Profile;
use posse_agents::start::Confirmed;

use super::types::{self, Terminal};
use super::{ApiError, App};
use crate::hub::{AgentStart, Command, Creation, What};
use crate::providers;

/// How long an agent may take to be ready when its manifest does not say.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a request says of an agent.
#[derive(Default)]
pub(crate) struct Asked {
    pub(crate) provider: String,
    pub(crate) mode: Option<Mode>,
    pub(crate) model: Option<String>,
    pub(crate) profile: Option<Profile>,
    /// Looked up, when no profile was sent along.
    pub(crate) profile_name: Option<String>,
    pub(crate) trusted: bool,
    pub(crate) more: Vec<String>,
}

/// Finds everything that is needed to start an agent.
pub(crate) fn find(app: &App, asked: Asked) -> Result<What, ApiError> {
    let provider = app.providers.load(&asked.provider).map_err(|error| ApiError::Invalid(error.to_string()))?;
    let profile = match (asked.profile, &asked.profile_name) {
        (Some(profile), _) => Some(profile),
        (None, Some(name)) if provider.manifest.launch.as_ref().is_some_and(Launch::knows_profiles) => {
            Some(Profile::named(name))
        }
        (None, Some(name)) => {
            let found = providers::profile(&app.places.profiles(), name);
            Some(found.map_err(|error| ApiError::Invalid(error.to_string()))?)
        }
        (None, None) => None,
    };
    let confirmed = Confirmed { trusted: asked.trusted, mode: asked.mode.unwrap_or_default() };
    let (model, more) = (asked.model, asked.more);
    Ok(What::Agent(Box::new(AgentStart { provider, confirmed, model, profile, more, version: None })))
}

/// Starts a terminal and answers when it can be used, or, if it takes too long, that it does.
pub(crate) async fn start(app: &App, mut creation: Creation) -> Result<Terminal, ApiError> {
    let timeout = match &mut creation.what {
        What::Agent(agent) => {
            if let Some(launch) = agent.provider.manifest.launch.as_ref().filter(|launch| !launch.since.is_empty()) {
                agent.version = app.versions.find(&launch.program, &creation.environment).await;
            }
            let start = agent.provider.manifest.start.as_ref();
            Some(start.map_or(PATIENCE, |start| start.timeout(|name| creation.environment.get(name).cloned())))
        }
        What::Command(..) => None,
    };
    let created = app.ask(|reply| Command::Create(Box::new(creation), reply));
    let created = match timeout {
        None => created.await,
        Some(timeout) => match tokio::time::timeout(timeout, created).await {
            Ok(created) => created,
            Err(_) => return Err(ApiError::StartTimeout(timeout)),
        },
    };
    Ok(created??.into())
}

/// List the agents that can be started
#[utoipa::path(get, path = "/providers", tag = "agents",
    responses((status = 200, description = "All of them", body = Vec<types::ProviderView>), (status = "default", description = "Refused", body = types::Problem)))]
pub(super) async fn list(State(app): State<App>) -> Json<Vec<types::ProviderView>> {
    Json(app.providers.list().into_iter().map(types::ProviderView::from).collect())
}

//! Begins runs of the loop.

use std::path::Path;

use posse_api::{Create, LoopIn, LoopView};
use posse_core::review_loop::state::{InFlight, StateFile};
use posse_core::review_loop::{Next, Prompt, Rounds, Rules};
use posse_core::run::{Imported, Spec};
use posse_files::providers::prompt_templates;

use super::*;
use crate::loops::RunFiles;

pub(super) async fn begin(app: App, requester: Requester, body: LoopIn) -> Result<LoopView, ApiError> {
    if body.config.handoff.auto_accept_permissions {
        requester.may(&app, "begin a run that accepts permissions").await?;
    }
    requester.may_be_notified(&app, &body.config.notifications).await?;
    let invalid = |what: String| ApiError::invalid(what);
    let directory = terminals::directory(&body.directory).await?;
    // Before any of them is started.
    for choice in body.config.agents.values() {
        let (provider, agent_profile) = (Some(choice.provider.clone()), Some(choice.profile.clone()));
        agents::find(&app, &Create { provider, agent_profile, ..Create::default() }).await?;
    }
    let openspec = disk::at(directory.join("openspec"), Disk::is_dir).await;
    let files = app.paths.prompts();
    let prompts = disk::run(move |_| prompt_templates(&files)).await?;
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
    let context = LaunchContext { environment: body.environment };
    surely(async move { app.loops.begin(&app, spec, context).await }).await
}

/// Imports a run that is known only by its state file. The caller has already notified the user.
async fn import(state: &StateFile, rules: Rules, prompt: &Prompt, directory: &Path) -> Result<Imported, ApiError> {
    let state = &StateFile { prompt: prompt.clone(), ..state.clone() };
    let (mut rounds, notes) = Rounds::from_state(state, rules);
    if let Next::Over(_) = rounds.next() {
        let why = notes.into_iter().map(|note| note.text).collect::<Vec<_>>().join("; ");
        return Err(ApiError::invalid(format!("the state file: {why}")));
    }
    let in_flight = state.in_flight.as_ref().filter(|in_flight| rounds.resume_at(in_flight.key));
    let in_flight = match in_flight {
        Some(in_flight) if is_awaited(in_flight, directory).await => Some(in_flight),
        _ => None,
    };
    let in_flight = in_flight.and_then(|in_flight| Some((in_flight.key, in_flight.terminal.parse().ok()?)));
    let mut terminals = std::collections::BTreeMap::new();
    for (role, terminal) in &state.terminals {
        let bad = |error| ApiError::invalid(format!("the state file: the terminal of the {role}: {error}"));
        terminals.insert(*role, terminal.id.parse().map_err(bad)?);
    }
    Ok(Imported { rounds, terminals, in_flight })
}

/// Reports whether a response file, present or expected, answers this turn: it must not be older than the prompt.
async fn is_awaited(in_flight: &InFlight, directory: &Path) -> bool {
    let Ok(dispatched) = in_flight.dispatched_at.parse::<jiff::Timestamp>() else { return false };
    let written = disk::at(RunFiles::response_in(directory, in_flight.key), Disk::metadata).await;
    let written = written.and_then(|file| file.modified());
    written.map_or(true, |written| jiff::Timestamp::try_from(written).is_ok_and(|written| written >= dispatched))
}

/// Runs to completion even if the requester disconnects: half of it would leave a run without a driver.
pub(super) async fn surely(
    doing: impl Future<Output = Result<LoopView, SupervisorError>> + Send + 'static,
) -> Result<LoopView, ApiError> {
    Ok(tokio::spawn(doing).await.map_err(|_| ApiError::stopping())??)
}

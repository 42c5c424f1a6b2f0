//! Starts terminals, with an agent or a plain command.

use posse_agents::launch::Launch;
use posse_agents::profile::Profile;
use posse_api::Create;
use posse_files::providers;

use super::*;
use crate::agent_files;
use crate::first_starts::AgentHome;
use crate::hub::{AgentStart, CreateError, KeeperSilent, NewTerminal};
use crate::pump::{self, TextPart};

/// The time in which an agent must be ready if its manifest does not set one.
const PATIENCE: Duration = Duration::from_secs(60);
/// The interval at which the keeper is probed while an agent starts. With the time that the keeper has to answer this
/// stays below the 10 s in which every command answers.
const PROBE: Duration = Duration::from_secs(1);
/// The valid numbers of output bytes that survive the daemon.
const RING_RANGE: std::ops::RangeInclusive<u32> = 64 << 10..=64 << 20;
/// Rows of what it said before it ended: a message and where to look, not a whole backtrace.
const LAST_WORDS: usize = 5;

/// Finds the agent that a request names; `None` for a plain command.
pub(crate) async fn find(app: &App, create: &Create) -> Result<Option<AgentStart>, ApiError> {
    let Some(provider) = create.provider.as_deref().filter(|provider| *provider != SHELL) else { return Ok(None) };
    let provider = app.provider(provider).await?;
    let profile = match (&create.profile, &create.agent_profile) {
        (Some(profile), _) => Some(profile.clone()),
        (None, Some(name)) if provider.manifest.launch.as_ref().is_some_and(Launch::knows_profiles) => {
            Some(Profile::named(name))
        }
        (None, Some(name)) => {
            let (profiles, name) = (app.paths.profiles(), name.clone());
            Some(disk::run(move |disk| providers::profile(disk, &profiles, &name)).await?)
        }
        (None, None) => None,
    };
    Ok(Some(AgentStart { provider, profile, version: None, hook_files: None }))
}

/// Starts a terminal and answers when it can be used, or, if it takes too long, that it does.
pub(crate) async fn start(app: &App, mut create: Create, session: SessionChoice) -> Result<Terminal, ApiError> {
    if create.provider.is_none() && create.command.first().is_none_or(String::is_empty) {
        return Err(ApiError::invalid("no command was given"));
    }
    if create.command.iter().any(|argument| argument.contains('\0')) {
        return Err(ApiError::invalid("the command contains a NUL character"));
    }
    if create.ring_bytes.is_some_and(|ring| !RING_RANGE.contains(&ring)) {
        let (least, most) = (RING_RANGE.start(), RING_RANGE.end());
        return Err(ApiError::invalid(format!("ring_bytes must be from {least} to {most}")));
    }
    if let Some(profile) = &create.profile {
        create.agent_profile = Some(profile.name.clone());
    }
    let agent = find(app, &create).await?;
    let name = create.name.as_deref().map(str::parse).transpose()?;
    let directory = terminals::directory(&create.working_directory).await?;
    start_checked(app, NewTerminal { create, agent, name, session, directory }).await
}

async fn start_checked(app: &App, mut new: NewTerminal) -> Result<Terminal, ApiError> {
    let NewTerminal { create, agent: Some(agent), .. } = &mut new else {
        return Ok(app.ask(|reply| HubCommand::Create(Box::new(new), reply)).await??.into());
    };
    if let Some(launch) = agent.provider.manifest.launch.as_ref().filter(|launch| !launch.since.is_empty()) {
        agent.version = app.versions.find(&launch.program, &create.environment).await;
    }
    agent.hook_files = agent_files::lay_out_hooks(&app.paths, agent.provider.clone()).await;
    let variable = |name: &str| create.environment.get(name).cloned();
    let start = agent.provider.manifest.start.as_ref();
    let timeout = start.map_or(PATIENCE, |start| start.timeout(variable));
    let home = start.filter(|start| !start.first_alone.is_empty()).map(|start| AgentHome {
        provider: agent.provider.manifest.id.clone(),
        version: agent.version.as_ref().map(ToString::to_string),
        variables: start.first_alone.iter().map(|name| variable(name)).collect(),
    });
    // Whoever does not wait for it cannot be told when others may follow.
    let home = home.filter(|_| create.wait != Some(false));
    let created = async {
        let created = app.ask(|reply| HubCommand::Create(Box::new(new), reply));
        let created = tokio::select! {
            created = tokio::time::timeout(timeout, created) => created,
            why = keeper_falls_silent(app) => return Err(start_unseen(&why)),
        };
        match created {
            Ok(Ok(Err(CreateError::Failed { terminal, reason }))) => {
                let reason = with_last_words(app, terminal, reason).await;
                Err(CreateError::Failed { terminal, reason }.into())
            }
            Ok(created) => Ok(created??.into()),
            Err(_) => {
                let detail = format!("it runs, but is not ready after {} s", timeout.as_secs());
                let hint = "`posse ls` has it; look at it with `posse attach`";
                Err(ApiError::new(ProblemKind::StartTimeout, detail).with_hint(hint))
            }
        }
    };
    match home {
        Some(home) => app.first_starts.start(home, created).await,
        None => created.await,
    }
}

fn start_unseen(why: &KeeperSilent) -> ApiError {
    ApiError::new(ProblemKind::KeeperSilent, format!("it was started, but is not ready yet: {why}"))
        .with_hint("`posse ls` has it; it goes on when the keeper does")
}

/// Waits until the keeper does not answer any more. No event says that a keeper was stopped.
async fn keeper_falls_silent(app: &App) -> KeeperSilent {
    loop {
        tokio::time::sleep(PROBE).await;
        match app.ask(HubCommand::ProbeKeeper).await {
            Ok(Err(why)) => return why,
            Ok(Ok(())) => {}
            // The daemon is stopping, and the request that waits for the agent fails with that.
            Err(_) => std::future::pending().await,
        }
    }
}

/// Adds the last rows of a failed agent to the reason of its end.
async fn with_last_words(app: &App, terminal: TerminalId, reason: String) -> String {
    let pump = app.ask(|reply| HubCommand::Find(terminal, reply)).await.ok().flatten();
    let said = match pump {
        Some(pump) => pump.ask(|reply| pump::PumpCommand::Text(TextPart::Tail(LAST_WORDS), reply)).await.flatten(),
        None => None,
    };
    match said.as_deref().map(str::trim).filter(|said| !said.is_empty()) {
        Some(said) => format!("{reason}\nIt said:\n{said}"),
        None => reason,
    }
}

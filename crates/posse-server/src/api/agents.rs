//! Starts terminals, with an agent or a plain command.

use posse_agents::Provider;
use posse_agents::launch::{Launch, LaunchError, LaunchPlan, LaunchRequest};
use posse_agents::profile::Profile;
use posse_agents::start::Confirmed;
use posse_agents::version::Version;
use posse_api::{COMMAND, Create, RING_BYTES};
use posse_core::screen::Size;
use posse_core::status::Life;
use posse_files::providers;
use posse_term::wire::ProgramSpec;

use super::*;
use crate::first_starts::AgentHome;
use crate::hub::{CreateError, KeeperSilent, NewTerminal};
use crate::pump::{self, TextPart};
use crate::record::Record;
use crate::run::journal::Failed;
use crate::{agent_files, environment};

/// The time in which an agent must be ready if its manifest does not set one.
const PATIENCE: Duration = Duration::from_secs(60);
/// The interval at which the keeper is probed while an agent starts. With the time that the keeper has to answer this
/// stays below the 10 s in which every command answers.
const PROBE: Duration = Duration::from_secs(1);
/// The valid numbers of output bytes that survive the daemon.
const RING_RANGE: std::ops::RangeInclusive<u32> = 64 << 10..=64 << 20;
/// Maximum rows of output shown for an agent that exited: a message and a pointer, not a whole backtrace.
const LAST_WORDS: usize = 5;

/// The agent of a request.
pub(crate) struct AgentStart {
    provider: Arc<Provider>,
    profile: Option<Profile>,
    /// The installed version, where the launch depends on it and it is known.
    version: Option<Version>,
    /// The directory of its hook files, if it has any and they could be written.
    hook_files: Option<String>,
}

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
    let version = match provider.manifest.launch.as_ref().filter(|launch| !launch.since.is_empty()) {
        Some(launch) => app.versions.find(&launch.program, &create.environment).await,
        None => None,
    };
    let hook_files = agent_files::lay_out_hooks(&app.paths, provider.clone()).await;
    Ok(Some(AgentStart { provider, profile, version, hook_files }))
}

/// Starts a terminal and answers when it can be used, or, if it takes too long, that it does.
pub(crate) async fn start(
    app: &App,
    create: Create,
    choice: SessionChoice,
    session: Name,
) -> Result<Terminal, ApiError> {
    if create.command.iter().any(|argument| argument.contains('\0')) {
        return Err(ApiError::invalid("the command contains a NUL character"));
    }
    if create.ring_bytes.is_some_and(|ring| !RING_RANGE.contains(&ring)) {
        let (least, most) = (RING_RANGE.start(), RING_RANGE.end());
        return Err(ApiError::invalid(format!("ring_bytes must be from {least} to {most}")));
    }
    let agent = find(app, &create).await?;
    if agent.is_none() && create.command.first().is_none_or(String::is_empty) {
        return Err(ApiError::invalid("no command was given"));
    }
    let directory = terminals::directory(&create.working_directory).await?;
    let new = plan(app, &create, agent.as_ref(), directory, choice, session)?;
    match agent {
        Some(agent) => start_agent(app, &create, &agent, new).await,
        None => Ok(app.ask(|reply| HubCommand::Create(Box::new(new), reply)).await??.into()),
    }
}

/// Lays out what is started.
fn plan(
    app: &App,
    create: &Create,
    agent: Option<&AgentStart>,
    directory: PathBuf,
    choice: SessionChoice,
    session: Name,
) -> Result<NewTerminal, ApiError> {
    let id = TerminalId::from_random(crate::random() as u32);
    let shown_directory = directory.to_string_lossy().into_owned();
    let plan = match agent {
        Some(agent) => launch(app, create, agent, &shown_directory, id)?,
        None => LaunchPlan { command: create.command.clone(), ..LaunchPlan::default() },
    };
    let agent_profile = create.profile.as_ref().map(|profile| &profile.name).or(create.agent_profile.as_ref());
    let name = match &create.name {
        Some(name) => name.parse()?,
        None => {
            let program = plan.command.first().map_or("", String::as_str).rsplit('/').next().unwrap_or("");
            Name::random_terminal(agent_profile.map_or(program, String::as_str), crate::random() as u16)
        }
    };
    let mut environment = create.environment.clone();
    environment.retain(|name, _| !plan.unset.contains(name));
    for (name, value) in plan.unless_set {
        environment.entry(name).or_insert(value);
    }
    let now = crate::now();
    let confirmed = Confirmed { trusted: create.trusted, mode: create.mode.unwrap_or_default() };
    let record = Record {
        id,
        name,
        session,
        confirmed: agent.map(|_| confirmed),
        provider: create.provider.clone().unwrap_or_else(|| COMMAND.into()),
        agent_profile: agent_profile.cloned(),
        directory: shown_directory,
        command: plan.command,
        size: create.size.unwrap_or(Size::DEFAULT),
        created: now,
        last_active: now,
        pid: None,
        exit: None,
        status: Life::starting(now).status().clone(),
    };
    let program = ProgramSpec {
        arguments: record.command.iter().cloned().map(String::into_bytes).collect(),
        environment: environment::for_program(environment, &plan.environment, id),
        directory: directory.into_os_string().into_encoded_bytes(),
        size: record.size,
        ring: create.ring_bytes.unwrap_or(RING_BYTES),
        label: serde_json::to_vec(&record).map_err(Failed::from)?,
    };
    let provider = agent.map(|agent| agent.provider.clone());
    Ok(NewTerminal {
        record,
        named: create.name.is_some(),
        choice,
        program,
        provider,
        at_once: create.wait == Some(false),
    })
}

fn launch(
    app: &App,
    create: &Create,
    agent: &AgentStart,
    directory: &str,
    id: TerminalId,
) -> Result<LaunchPlan, LaunchError> {
    let manifest = &agent.provider.manifest;
    let launch = manifest.launch.as_ref().ok_or_else(|| LaunchError::NotStartable(manifest.name.clone()))?;
    let profile = agent.profile.as_ref();
    let mcp = profile.and_then(|profile| profile.mcp_config(id.as_str()));
    let hook_command = format!("{} hook", shell_quoted(&app.plans.services.executable.to_string_lossy()));
    let events = agent.provider.writes_events().then(|| app.paths.events().join(id.as_str()));
    let events = events.map(|file| file.to_string_lossy().into_owned());
    let wish = LaunchRequest {
        mode: create.mode.unwrap_or_default(),
        version: agent.version.as_ref(),
        model: create.model.as_deref().or_else(|| profile?.model.as_deref()),
        profile: profile.map(|profile| (profile.name.as_str(), profile.text.as_str())),
        mcp: mcp.as_deref(),
        directory,
        trusted: create.trusted,
        hook_command: Some(&hook_command),
        hook_files: agent.hook_files.as_deref(),
        events: events.as_deref(),
        more: &create.command,
    };
    launch.plan(&manifest.name, &wish)
}

/// A word for a shell: agents run their hooks through one.
fn shell_quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

async fn start_agent(app: &App, create: &Create, agent: &AgentStart, new: NewTerminal) -> Result<Terminal, ApiError> {
    let variable = |name: &str| create.environment.get(name).cloned();
    let start = agent.provider.manifest.start.as_ref();
    let timeout = start.map_or(PATIENCE, |start| start.timeout(variable));
    let home = start.filter(|start| !start.first_alone.is_empty()).map(|start| AgentHome {
        provider: agent.provider.manifest.id.clone(),
        version: agent.version.as_ref().map(ToString::to_string),
        variables: start.first_alone.iter().map(|name| variable(name)).collect(),
    });
    // A client that does not wait cannot be notified when others may follow.
    let home = home.filter(|_| create.wait != Some(false));
    let created = async {
        if agent.provider.writes_events() {
            agent_files::make(&app.paths, new.record.id).await;
        }
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

/// Waits until the keeper stops answering. No event reports that a keeper was stopped.
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

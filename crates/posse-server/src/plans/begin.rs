//! How a run of a plan begins: what was asked for, made sure of before anything is written.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use posse_agents::headless::{Sandbox, agent_file};
use posse_core::ids::RunId;
use posse_core::plan::budget::{Budget, Level, Total};
use posse_core::plan::file::{BudgetMeta, Isolation, Task};
use posse_core::plan::settings::Settings;
use posse_core::plan::{Plan, PlanProblems, Record, State, TaskId};
use posse_core::rounds::config::Notifications;

use super::entry::Spec;
use super::ledger::Ledger;
use super::{PlanError, briefing, read};
use crate::api::App;
use crate::runs::Means;

/// Where a project keeps its agents.
const AGENTS: &str = ".claude/agents";

/// A run of a plan that somebody wants.
pub(crate) struct Wanted {
    pub(crate) file: String,
    /// The project. Absolute.
    pub(crate) directory: PathBuf,
    pub(crate) provider: String,
    pub(crate) sandbox: Sandbox,
    pub(crate) branch: Option<String>,
    pub(crate) only: Option<String>,
    pub(crate) from: Option<String>,
    pub(crate) reset: Vec<String>,
    pub(crate) workers: Option<usize>,
    pub(crate) no_wait: bool,
    pub(crate) cap_usd: Option<f64>,
    pub(crate) budget: BudgetMeta,
    pub(crate) notifications: Notifications,
}

/// Everything the run goes by. `last` is the run of this plan before.
pub(super) fn spec(
    app: &App,
    wanted: Wanted,
    file: String,
    last: Option<&Ledger>,
    means: &Means,
) -> Result<Spec, PlanError> {
    let text = read(&file)?;
    let (plan, _) = Plan::read(&file, &text).map_err(PlanError::Invalid)?;
    if plan.meta.isolation == Some(Isolation::InPlace) {
        let text =
            "`isolation: in_place` is not supported yet; leave it out, and every task gets a work tree of its own";
        return Err(PlanError::Wrong(text.into()));
    }
    let agents = agents(&wanted.directory)?;
    check_mentions(&file, &plan, &agents, &wanted.directory)?;
    let program = program(app, &wanted.provider, means)?;
    let state = state(&plan, last, &wanted.reset)?;
    let mut settings = settings(&plan, &wanted, last)?;
    for agent in plan.tasks().map(Task::agent).chain(plan.meta.validation.validators.iter().map(String::as_str)) {
        if let Some(model) = briefing::agent(&agents, agent).map_err(PlanError::Wrong)?.model {
            settings.agent_models.insert(agent.to_owned(), model);
        }
    }
    Ok(Spec {
        id: RunId::from_random(crate::random() as u32),
        state,
        settings,
        starts: last.map(|last| last.starts.clone()).unwrap_or_default(),
        spent: last.map(Ledger::spent).unwrap_or_default(),
        areas: last.map(|last| last.spec.areas.unwrap_or(last.spec.id)),
        directory: wanted.directory.to_string_lossy().into_owned(),
        provider: wanted.provider,
        program,
        sandbox: wanted.sandbox,
        branch: wanted.branch,
        agents,
        notifications: wanted.notifications,
        file,
        text,
    })
}

/// The project's agents, as they are now.
fn agents(project: &Path) -> Result<BTreeMap<String, String>, PlanError> {
    let mut agents = BTreeMap::new();
    let Ok(entries) = std::fs::read_dir(project.join(AGENTS)) else { return Ok(agents) };
    for path in
        entries.flatten().map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|end| end == "md"))
    {
        let Some(name) = path.file_stem().and_then(|name| name.to_str()) else { continue };
        agents.insert(name.to_owned(), read(&path.to_string_lossy())?);
    }
    Ok(agents)
}

fn check_mentions(file: &str, plan: &Plan, agents: &BTreeMap<String, String>, project: &Path) -> Result<(), PlanError> {
    let known = |name: &str| agents.contains_key(name) || agent_file::built_in(name).is_some();
    let problems = plan.missing(known, |path| project.join(path).exists());
    if problems.is_empty() {
        return Ok(());
    }
    Err(PlanError::Invalid(PlanProblems { file: file.to_owned(), problems, warnings: Vec::new() }))
}

/// The program of sessions, by its full path: found once, and by whoever asks.
fn program(app: &App, provider: &str, means: &Means) -> Result<String, PlanError> {
    let provider = app.providers.load(provider).map_err(|error| PlanError::Wrong(error.to_string()))?;
    let manifest = &provider.manifest;
    let (Some(launch), Some(_)) = (&manifest.launch, &manifest.headless) else {
        return Err(PlanError::Wrong(format!("{} cannot be used without a terminal", manifest.name)));
    };
    let program = &launch.program;
    let path = means.environment.get("PATH").map(String::as_str).unwrap_or_default();
    let is_program = |path: &PathBuf| rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok() && path.is_file();
    let found = path
        .split(':')
        .filter(|directory| directory.starts_with('/'))
        .map(|directory| Path::new(directory).join(program))
        .find(is_program);
    let found = found.and_then(|path| path.into_os_string().into_string().ok());
    found.ok_or_else(|| PlanError::NoProgram { program: program.clone(), install: launch.install.clone() })
}

/// What has become of the tasks so far. The file says it; if the last run could not write it there, that run.
fn state(plan: &Plan, last: Option<&Ledger>, reset: &[String]) -> Result<State, PlanError> {
    let mut state = match last {
        Some(last) if last.run.mirror().is_err() => last.run.state().clone(),
        _ => State::recorded(plan),
    };
    for task in reset {
        *state.of(&task_of(plan, task)?) = Record::default();
    }
    Ok(state)
}

fn task_of(plan: &Plan, task: &str) -> Result<TaskId, PlanError> {
    plan.task(task).map(|task| task.id.clone()).ok_or_else(|| PlanError::NoTask(task.to_owned()))
}

fn settings(plan: &Plan, wanted: &Wanted, last: Option<&Ledger>) -> Result<Settings, PlanError> {
    let mut settings = Settings::of(plan);
    settings.only = wanted.only.as_deref().map(|task| task_of(plan, task)).transpose()?;
    settings.from = wanted.from.as_deref().map(|task| task_of(plan, task)).transpose()?;
    settings.workers = wanted.workers.unwrap_or(settings.workers).max(1);
    settings.no_wait = wanted.no_wait;
    let level = |name: &str, limit_usd, spent| Level { name: name.to_owned(), limit_usd, spent };
    let spent = last.map(Ledger::spent).unwrap_or_default();
    settings.levels.push(level("this plan", Budget::new(plan.meta.budget, wanted.budget).limit(), spent));
    settings.levels.push(level("this run", wanted.cap_usd, Total::default()));
    Ok(settings)
}

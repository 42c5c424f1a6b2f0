//! The start of a run of a plan: the request, and checks before anything is written.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use posse_agents::headless::{Dialect, agent_file};
use posse_api::{GitRules, PlanIn, PlanSpec, SessionRules};
use posse_core::engine::Machine;
use posse_core::file_problem::FileProblems;
use posse_core::ids::RunId;
use posse_core::plan::budget::BacklogCap;
use posse_core::plan::file::{DEFAULT_VALIDATOR, Isolation, Task};
use posse_core::plan::isolation::choose;
use posse_core::plan::machine::{Part, RunId as SessionId, resume};
use posse_core::plan::select::{Limits, select};
use posse_core::plan::settings::{Given, Settings};
use posse_core::plan::{Plan, Record, State, TaskId, TaskStatus};
use posse_files::providers::prompt_templates;
use posse_files::versions;

use super::worktrees::{self, Earlier, WorktreeError, Worktrees};
use super::{PlanLedger, Plans, briefing, read};
use crate::api::App;
use crate::disk::{self, Disk};
use crate::environment::Environment;
use crate::git;
use crate::run::{LaunchContext, SupervisorError, lock};

/// A request for a run of a plan.
pub(crate) struct PlanParams {
    pub(crate) request: PlanIn,
    /// If given, the gates of the plan may have no other commands.
    pub(crate) only_commands: Option<BTreeSet<String>>,
    pub(crate) of_item: Option<ItemLimits>,
}

/// The backlog item that a plan is for, and what may be spent.
pub(crate) struct ItemLimits {
    pub(crate) item: String,
    pub(crate) limit_usd: Option<f64>,
    pub(crate) backlog: Option<BacklogCap>,
}

impl Plans {
    /// Finds the place, makes sure that it is fit, and enters into the spec what was found. `last` is the run before.
    pub(super) async fn find_place(
        &self,
        spec: &mut PlanSpec,
        plan: &Plan,
        last: Option<&PlanLedger>,
    ) -> Result<Worktrees, SupervisorError> {
        let unused = git::begin(&Environment::default(), spec.directory.as_ref()).await.map_err(WorktreeError::from)?;
        spec.remarks.extend(unused.iter().map(|what| format!("not used by posse's git: {what}")));
        let said = spec.config.isolation(plan);
        let obstacle = match said {
            Some(Isolation::InPlace) => None,
            _ => worktrees::obstacle(spec.directory.as_ref()).await?,
        };
        let chosen = choose(said, obstacle.as_ref(), spec.settings.workers)?;
        spec.git.isolation = chosen.0;
        spec.remarks.extend(chosen.1);
        let worktrees = self.worktrees(spec, plan).await?;
        worktrees.knows_who_commits().await?;
        if spec.git.isolation == Isolation::InPlace {
            self.nobody_is_there(&worktrees)?;
        }
        let done = |last: &PlanLedger| last.machine.outcome().is_some_and(|(outcome, _)| outcome.is_success());
        let unfinished = last.filter(|last| !done(last));
        let earlier = last.map(|last| Earlier { state: self.state_of(last.spec.id), unfinished: !done(last) });
        worktrees.may_begin(spec.git.allow_dirty, earlier.as_ref()).await?;
        // The branch of the run stays the same, whatever is checked out later.
        spec.sessions.branch = Some(worktrees.branch().to_owned());
        spec.git.base = match unfinished.and_then(|last| last.spec.git.base.clone()) {
            Some(base) => Some(base),
            None => Some(worktrees.tip().await?),
        };
        Ok(worktrees)
    }

    /// Refuses a second run in the same checkout: changes could not be attributed.
    fn nobody_is_there(&self, worktrees: &Worktrees) -> Result<(), SupervisorError> {
        let in_place = lock(&self.services.in_place);
        match in_place.iter().find(|(_, root)| *root == worktrees.root()) {
            None => Ok(()),
            Some((run, root)) => Err(SupervisorError::Wrong(format!(
                "run {run} of another plan works in {}; wait until it is over, or stop it",
                root.display()
            ))),
        }
    }

    /// Adopts tasks that an earlier run left done but not judged, or not merged: its work trees become this run's too.
    /// A task without its work tree is repeated as if it had not been tried. May be interrupted: the records of the
    /// earlier run stay.
    pub(super) async fn adopt(
        &self,
        worktrees: &Worktrees,
        spec: &mut PlanSpec,
        plan: Plan,
        last: Option<&PlanLedger>,
    ) -> Result<(), SupervisorError> {
        let same_branch = last.is_some_and(|last| last.spec.branch == spec.branch);
        let in_place = spec.git.isolation == Isolation::InPlace;
        let adoption =
            last.filter(|_| same_branch).map(|last| worktrees.adoption(self.state_of(last.spec.id), in_place));
        let last = last.map(|last| last.machine.clone());
        let starts = spec.starts.clone();
        let mut state = spec.state.clone();
        let resume = move |disk: &Disk| {
            let there = |task: &TaskId| match (&adoption, starts.get(task)) {
                (Some(adoption), Some(&start)) => {
                    adoption(disk, &SessionId { task: task.clone(), start, part: Part::Work })
                }
                _ => Ok(false),
            };
            let resumed = resume(&plan, &mut state, last.as_ref(), there)?;
            Ok::<_, WorktreeError>((state, resumed))
        };
        let (state, resumed) = disk::run(resume).await?;
        spec.state = state;
        spec.left = resumed.left;
        spec.remarks.extend(resumed.gone.iter().map(|task| {
            format!("task {task} was done, but its work is not there for this run any more; it is done again")
        }));
        Ok(())
    }
}

/// Everything the run goes by, and the plan. `last` is the run of this plan before.
pub(super) fn spec(
    disk: &Disk,
    app: &App,
    wanted: PlanParams,
    file: String,
    last: Option<&PlanLedger>,
    context: &LaunchContext,
) -> Result<(PlanSpec, Plan), SupervisorError> {
    let PlanParams { request, only_commands, of_item } = wanted;
    let sessions = request.sessions;
    let project = Path::new(&request.directory);
    let text = read(disk, Path::new(&file))?;
    let (plan, _) = Plan::read(&file, &text).map_err(SupervisorError::Invalid)?;
    if let Some(allowed) = &only_commands
        && let Some(gate) = plan.meta.gates.iter().find(|gate| !allowed.contains(&gate.command))
    {
        return Err(SupervisorError::Unconfirmed(gate.name.clone()));
    }
    let mut agents = agents(disk, &project.join(&sessions.config.agents_dir))?;
    check_mentions(disk, &file, &plan, &agents, project)?;
    replace_missing_validators(&plan, &mut agents);
    let (program, tells_costs) = program(disk, app, &sessions, context)?;
    let prompts = prompt_templates(&app.paths.prompts()).map_err(SupervisorError::wrong)?;
    let state = state(&plan, last, &request.reset)?;
    let given = Given {
        workers: request.workers,
        no_wait: request.no_wait,
        skip_after_plan: request.skip_after_plan,
        cap_usd: request.cap_usd,
        budget: request.budget,
        item_limit_usd: of_item.as_ref().and_then(|of_item| of_item.limit_usd),
        backlog: of_item.as_ref().and_then(|of_item| of_item.backlog),
    };
    let mut settings = Settings::merge(&given, &plan, &sessions.config);
    settings.was_complete = last.is_some_and(|last| last.machine.has_completed_plan());
    settings.only = request.only.as_deref().map(|task| task_of(&plan, task)).transpose()?;
    settings.from = request.from.as_deref().map(|task| task_of(&plan, task)).transpose()?;
    if request.single && settings.only.is_none() {
        settings.only = next_task(&plan, &state, settings.from.as_ref());
    }
    let mut remarks = remarks(&sessions, last);
    remarks.extend(vouched_for(&plan, &state));
    if !settings.levels.is_empty() && !tells_costs {
        remarks.push(format!("{} does not say what sessions cost: limits on money have no effect", sessions.provider));
    }
    let mut spec = PlanSpec {
        id: RunId::from_random(crate::random() as u32),
        state,
        settings,
        starts: last.map(|last| last.machine.starts()).unwrap_or_default(),
        left: BTreeMap::new(),
        directory: request.directory,
        sessions,
        program,
        git: GitRules { allow_dirty: request.allow_dirty, ..GitRules::default() },
        agents,
        prompts,
        item: of_item.map(|of_item| of_item.item),
        wishes: request.wishes,
        remarks,
        file,
        text,
    };
    let policy = spec.policy();
    for name in plan.tasks().map(Task::agent).chain(plan.meta.validation.validators.iter().map(String::as_str)) {
        let agent = briefing::agent(&spec.agents, name).map_err(SupervisorError::wrong)?;
        // A profile that does not exist is found now, not when its first session is due.
        policy.grant(name, Some(&agent)).map_err(|error| SupervisorError::Wrong(format!("agent {name}: {error}")))?;
        if let Some(model) = agent.model {
            spec.settings.agent_models.insert(name.to_owned(), model);
        }
    }
    Ok((spec, plan))
}

/// Returns configuration changes since the last run of this plan: an agent may have made them.
fn remarks(wanted: &SessionRules, last: Option<&PlanLedger>) -> Vec<String> {
    let Some(last) = last.map(|last| &last.spec).filter(|last| last.config_file != wanted.config_file) else {
        return Vec::new();
    };
    let path = wanted.config_file.as_ref().or(last.config_file.as_ref()).map_or("", |file| &file.path);
    let changes: Vec<String> = last
        .config
        .differences(&wanted.config)
        .into_iter()
        .map(|(name, was, is)| format!("{name} was {was}, is {is}"))
        .collect();
    let changes = if changes.is_empty() { "nothing that counts".to_owned() } else { changes.join("; ") };
    vec![format!("{path} is not as it was when this plan was last run: {changes}")]
}

/// The project's agents, as they are now.
pub(crate) fn agents(disk: &Disk, directory: &Path) -> Result<BTreeMap<String, String>, SupervisorError> {
    let mut agents = BTreeMap::new();
    let Ok(entries) = disk.read_dir(directory) else { return Ok(agents) };
    for path in
        entries.flatten().map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|end| end == "md"))
    {
        let Some(name) = path.file_stem().and_then(|name| name.to_str()) else { continue };
        agents.insert(name.to_owned(), read(disk, &path)?);
    }
    Ok(agents)
}

fn check_mentions(
    disk: &Disk,
    file: &str,
    plan: &Plan,
    agents: &BTreeMap<String, String>,
    project: &Path,
) -> Result<(), SupervisorError> {
    let known = |name: &str| agents.contains_key(name) || agent_file::built_in(name).is_some();
    let (problems, _) = plan.missing(known, |path| disk.exists(&project.join(path)));
    if problems.is_empty() {
        return Ok(());
    }
    Err(SupervisorError::Invalid(FileProblems { file: file.to_owned(), problems, warnings: Vec::new() }))
}

/// Gives validators that no file defines the role of the usual one, so that work is not merged without a validation.
fn replace_missing_validators(plan: &Plan, agents: &mut BTreeMap<String, String>) {
    let built_in = agent_file::BUILT_IN.iter().find(|(name, _)| *name == DEFAULT_VALIDATOR);
    let usual = agents.get(DEFAULT_VALIDATOR).cloned().or(built_in.map(|(_, text)| (*text).to_owned()));
    for name in &plan.meta.validation.validators {
        if !agents.contains_key(name)
            && agent_file::built_in(name).is_none()
            && let Some(usual) = &usual
        {
            agents.insert(name.clone(), usual.clone());
        }
    }
}

/// Returns the program of sessions, by its full path in the requester's environment, and whether it reports costs.
pub(crate) fn program(
    disk: &Disk,
    app: &App,
    sessions: &SessionRules,
    context: &LaunchContext,
) -> Result<(String, bool), SupervisorError> {
    let provider = app.providers.load(disk, &sessions.provider).map_err(SupervisorError::wrong)?;
    let manifest = &provider.manifest;
    let (Some(launch), Some(_)) = (&manifest.launch, &manifest.headless) else {
        return Err(SupervisorError::Wrong(format!("{} cannot be used without a terminal", manifest.name)));
    };
    let dialect = provider.manifest.headless.as_ref().map(|headless| headless.dialect);
    let binary = sessions.config.claude.binary.as_deref();
    let program = binary.filter(|_| dialect == Some(Dialect::Claude)).unwrap_or(&launch.program);
    let path = context.environment.get("PATH").map(String::as_str).unwrap_or_default();
    // Relative paths are rejected because sessions run in a different directory.
    let found = versions::locate(disk, program, path).filter(|found| found.is_absolute());
    let found = found.and_then(|path| path.into_os_string().into_string().ok());
    let found = found
        .ok_or_else(|| SupervisorError::NoProgram { program: program.to_owned(), install: launch.install.clone() })?;
    Ok((found, dialect.is_some_and(Dialect::tells_costs)))
}

/// The task that would be started next.
fn next_task(plan: &Plan, state: &State, from: Option<&TaskId>) -> Option<TaskId> {
    let (mut state, none) = (state.clone(), Default::default());
    for task in plan.tasks() {
        // The session that worked on it has ended.
        let record = state.of(&task.id);
        if record.status == TaskStatus::InProgress {
            record.status = TaskStatus::Pending;
        }
    }
    let limits = Limits { workers: 1, only: None, from, resting: &none, validating: &none, taken: &[] };
    let next = select(plan, &state, &limits);
    next.validate.into_iter().chain(next.start).next()
}

/// The state that the run begins with.
fn state(plan: &Plan, last: Option<&PlanLedger>, reset: &[String]) -> Result<State, SupervisorError> {
    let mut state = last.map_or_else(|| State::recorded(plan), |last| last.machine.state_between_runs(plan));
    for task in reset {
        *state.of(&task_of(plan, task)?) = Record::default();
    }
    Ok(state)
}

/// A remark on tasks that are done only by the word of the plan file.
fn vouched_for(plan: &Plan, state: &State) -> Option<String> {
    let vouched = |task: &&Task| {
        state.get(&task.id).is_some_and(|record| {
            matches!(record.status, TaskStatus::Verified | TaskStatus::Completed) && record.attempts == 0
        })
    };
    let tasks: Vec<&str> = plan.tasks().filter(vouched).map(|task| task.id.as_str()).collect();
    let text = "done as the plan file says; no session of theirs is recorded here";
    (!tasks.is_empty())
        .then(|| format!("{} ({}): {text}", if tasks.len() == 1 { "one task" } else { "tasks" }, tasks.join(", ")))
}

fn task_of(plan: &Plan, task: &str) -> Result<TaskId, SupervisorError> {
    plan.task(task).map(|task| task.id.clone()).ok_or_else(|| SupervisorError::NoTask(task.to_owned()))
}

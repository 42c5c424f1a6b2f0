//! `posse plan run --dry-run`: what would be done, in which order, by whom, with which permissions. Starts and writes nothing.

use std::path::Path;

use posse_agents::headless::{Abilities, Dialect, Policy, Request, Sandbox, Scope, build_permission_flags};
use posse_agents::manifest;
use posse_core::plan::config::PlanConfig;
use posse_core::plan::escalate::model;
use posse_core::plan::file::Gate;
use posse_core::plan::select::{Limits, select};
use posse_core::plan::settings::{Given, Settings};
use posse_core::plan::{Plan, Record, State, TaskId, TaskStatus};
use serde::Serialize;
use serde_json::json;

use super::flags::agent;
use super::words;
use crate::client;
use crate::error::{Error, Exit};
use crate::ui::{Ui, plain};

#[derive(Serialize)]
struct Step {
    /// Those of one number run at the same time.
    step: usize,
    task: String,
    name: String,
    agent: String,
    model: Option<String>,
    profile: String,
    flags: Vec<String>,
}

/// What is asked about, and whose sessions it would be.
pub(super) struct Project<'a> {
    pub(super) file: &'a Path,
    pub(super) directory: &'a Path,
    pub(super) provider: &'a str,
    pub(super) config: &'a PlanConfig,
}

/// What of the plan is asked for.
pub(super) struct Chosen<'a> {
    pub(super) only: Option<&'a str>,
    pub(super) from: Option<&'a str>,
    pub(super) reset: &'a [String],
    pub(super) single: bool,
    /// Warnings count as errors.
    pub(super) strict: bool,
}

pub(super) fn run(
    project: &Project<'_>,
    sandbox: Sandbox,
    workers: Option<u32>,
    chosen: &Chosen<'_>,
    ui: &Ui,
) -> Result<Exit, Error> {
    let Project { file, directory, provider, config } = project;
    if super::shows_problems(file, directory, config, chosen.strict, ui)? {
        return Ok(Exit::Invalid);
    }
    super::with_plan(file, ui, |plan, state| {
        let state = as_begun(plan, state, chosen)?;
        let dialect = dialect(provider)?;
        let steps = Walk { plan, dialect, sandbox, workers, directory, config, chosen }.steps(state)?;
        let gates = config.gates(plan);
        ui.answer(&json!({ "file": file, "steps": steps, "gates": gates }), || shown(&steps, &gates));
        Ok(Exit::Ok)
    })
}

/// The tasks as a run would begin with them.
fn as_begun(plan: &Plan, state: &State, chosen: &Chosen<'_>) -> Result<State, Error> {
    let mut state = state.clone();
    for task in chosen.reset {
        *state.of(&known(plan, task)?) = Record::default();
    }
    for task in plan.tasks() {
        let record = state.of(&task.id);
        // Whoever worked on it is gone.
        if record.status == TaskStatus::InProgress {
            record.status = TaskStatus::Pending;
        }
    }
    Ok(state)
}

fn known(plan: &Plan, task: &str) -> Result<TaskId, Error> {
    let found = plan.task(task).map(|task| task.id.clone());
    found.ok_or_else(|| Error::UsageHint {
        message: format!("there is no task {task:?} in this plan"),
        hint: "`posse plan status` shows those there are".into(),
    })
}

fn dialect(provider: &str) -> Result<Dialect, Error> {
    let manifest = manifest::built_in(provider).transpose().map_err(|error| Error::failed(error.to_string()))?;
    let headless = manifest.and_then(|provider| provider.headless);
    headless
        .map(|texts| texts.dialect)
        .ok_or_else(|| Error::Usage(format!("{provider} cannot be used without a terminal")))
}

/// A run as if everything went well at the first attempt.
struct Walk<'a> {
    plan: &'a Plan,
    dialect: Dialect,
    sandbox: Sandbox,
    workers: Option<u32>,
    directory: &'a Path,
    config: &'a PlanConfig,
    chosen: &'a Chosen<'a>,
}

impl Walk<'_> {
    fn steps(&self, mut state: State) -> Result<Vec<Step>, Error> {
        let Self { plan, dialect, sandbox, chosen, config, .. } = *self;
        let given = Given { workers: self.workers, ..Given::default() };
        let (none, settings) = (Default::default(), Settings::merge(&given, plan, config));
        let only = chosen.only.map(|task| known(plan, task)).transpose()?;
        let from = chosen.from.map(|task| known(plan, task)).transpose()?;
        let limits = Limits {
            workers: settings.workers,
            only: only.as_ref(),
            from: from.as_ref(),
            resting: &none,
            validating: &none,
            taken: &[],
        };
        let policy = Policy::configured(&config.sandbox);
        let scope = Scope { directory: client::absolute(self.directory)?, results: None };
        let mut steps = Vec::new();
        for step in 1.. {
            let next = select(plan, &state, &limits);
            let most = if chosen.single { 1 } else { usize::MAX };
            let tasks: Vec<_> = next.validate.into_iter().chain(next.start).take(most).collect();
            if tasks.is_empty() || (chosen.single && step > 1) {
                break;
            }
            for id in tasks {
                let Some(task) = plan.task(id.as_str()) else { continue };
                if state.status(&id) != TaskStatus::Completed {
                    let file = agent(self.directory, task.agent(), config)?;
                    let granted =
                        policy.grant(task.agent(), file.as_ref()).map_err(|e| Error::failed(e.to_string()))?;
                    let request = Request {
                        dialect,
                        sandbox,
                        profile: &granted.profile,
                        scope: &scope,
                        policy: &policy,
                        abilities: Abilities::default(),
                    };
                    let flags = build_permission_flags(&request).map_err(|error| Error::failed(error.to_string()))?;
                    let wanted = task.model.clone().or_else(|| file.and_then(|file| file.model));
                    steps.push(Step {
                        step,
                        task: id.to_string(),
                        name: task.name.clone(),
                        agent: task.agent().to_owned(),
                        model: model(wanted.as_deref(), 0, &plan.meta.escalation)
                            .map(|name| config.model(&name).to_owned()),
                        profile: granted.profile.name.clone(),
                        flags,
                    });
                }
                state.of(&id).status = TaskStatus::Verified;
            }
        }
        Ok(steps)
    }
}

fn shown(steps: &[Step], gates: &[Gate]) -> String {
    if steps.is_empty() {
        return "nothing is left to do\n".into();
    }
    let mut text = String::new();
    for step in steps {
        let model = step.model.as_ref().map(|model| format!(", {model}")).unwrap_or_default();
        text.push_str(&format!(
            "{:>3}  {:<8} {}  {} ({}{model})\n     {}\n",
            step.step,
            step.task,
            plain(&step.name),
            step.agent,
            step.profile,
            words::flags(&step.flags, &step.agent)
        ));
    }
    for gate in gates {
        text.push_str(&format!("check {}: {}\n", plain(&gate.name), plain(&gate.command)));
    }
    if gates.is_empty() {
        text.push_str("no checks are configured\n");
    }
    text.push_str("nothing was started, nothing was written\n");
    text
}

//! `posse plan run --dry-run`: the planned steps, their order, agents and permissions. Starts and writes nothing.

use posse_agents::headless::{Dialect, Sandbox};
use posse_agents::manifest;
use posse_core::plan::config::PlanConfig;
use posse_core::plan::escalate::model;
use posse_core::plan::file::Gate;
use posse_core::plan::select::{Limits, select};
use posse_core::plan::settings::{Given, Settings};
use posse_core::plan::{Plan, Record, State, TaskId, TaskStatus};
use serde::Serialize;
use serde_json::json;

use super::flags::AgentRights;
use super::run::Args;
use crate::cmd::run::render;
use crate::error::{Error, Exit};
use crate::ui::{Ui, plain};

#[derive(Serialize)]
struct PlannedStep {
    /// Those of one number run at the same time.
    step: usize,
    task: String,
    name: String,
    agent: String,
    model: Option<String>,
    profile: String,
    flags: Vec<String>,
}

pub(super) fn run(args: &Args, sandbox: Sandbox, config: &PlanConfig, ui: &Ui) -> Result<Exit, Error> {
    let Some(plan) = args.usable_plan(config, ui)? else { return Ok(Exit::Invalid) };
    let steps = steps(args, sandbox, &plan, as_begun(&plan, &args.reset)?, config)?;
    let gates = config.gates(&plan);
    ui.answer(&json!({ "file": args.file, "steps": steps, "gates": gates }), || shown(&steps, &gates));
    Ok(Exit::Ok)
}

/// Returns the state with which a run would begin.
fn as_begun(plan: &Plan, reset: &[String]) -> Result<State, Error> {
    let mut state = State::recorded(plan);
    for task in reset {
        *state.of(&known(plan, task)?) = Record::default();
    }
    for task in plan.tasks() {
        let record = state.of(&task.id);
        // The session that worked on it is gone.
        if record.status == TaskStatus::InProgress {
            record.status = TaskStatus::Pending;
        }
    }
    Ok(state)
}

fn known(plan: &Plan, task: &str) -> Result<TaskId, Error> {
    let found = plan.task(task).map(|task| task.id.clone());
    found.ok_or_else(|| {
        Error::usage(format!("there is no task {task:?} in this plan"))
            .with_hint("`posse plan status` shows those there are")
    })
}

fn dialect(provider: &str) -> Result<Dialect, Error> {
    let manifest = manifest::built_in(provider).transpose().map_err(|error| Error::failed(error.to_string()))?;
    let headless = manifest.and_then(|provider| provider.manifest.headless);
    headless
        .map(|texts| texts.dialect)
        .ok_or_else(|| Error::usage(format!("{provider} cannot be used without a terminal")))
}

/// Walks through the plan as if every task succeeded at its first attempt.
fn steps(
    args: &Args,
    sandbox: Sandbox,
    plan: &Plan,
    mut state: State,
    config: &PlanConfig,
) -> Result<Vec<PlannedStep>, Error> {
    let dialect = dialect(&args.sessions.provider)?;
    let given = Given { workers: args.parallel, ..Given::default() };
    let (none, settings) = (Default::default(), Settings::merge(&given, plan, config));
    let only = args.only.as_deref().map(|task| known(plan, task)).transpose()?;
    let from = args.from.as_deref().map(|task| known(plan, task)).transpose()?;
    let limits = Limits {
        workers: settings.workers,
        only: only.as_ref(),
        from: from.as_ref(),
        resting: &none,
        validating: &none,
        taken: &[],
    };
    let most = if args.single_task { 1 } else { usize::MAX };
    let mut steps = Vec::new();
    for step in 1..=most {
        let next = select(plan, &state, &limits);
        let tasks: Vec<_> = next.validate.into_iter().chain(next.start).take(most).collect();
        if tasks.is_empty() {
            break;
        }
        for id in tasks {
            let Some(task) = plan.task(id.as_str()) else { continue };
            if state.status(&id) != TaskStatus::Completed {
                let rights = AgentRights::of(task.agent(), &args.directory, config, dialect, sandbox)?;
                let wanted = task.model.clone().or(rights.model);
                let model = model(wanted.as_deref(), 0, &plan.meta.escalation);
                steps.push(PlannedStep {
                    step,
                    task: id.to_string(),
                    name: task.name.clone(),
                    agent: task.agent().to_owned(),
                    model: model.map(|name| config.model(&name).to_owned()),
                    profile: rights.profile,
                    flags: rights.flags,
                });
            }
            state.of(&id).status = TaskStatus::Verified;
        }
    }
    Ok(steps)
}

fn shown(steps: &[PlannedStep], gates: &[Gate]) -> String {
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
            render::flags(&step.flags, &step.agent)
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

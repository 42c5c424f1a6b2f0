//! `posse plan run --dry-run`: what would be done, in which order, by whom, with which permissions. Starts and writes nothing.

use std::path::Path;

use posse_agents::headless::{Abilities, Dialect, Policy, Request, Sandbox, Scope, build_permission_flags};
use posse_agents::manifest;
use posse_core::plan::config::Config;
use posse_core::plan::escalate::model;
use posse_core::plan::file::Gate;
use posse_core::plan::select::{Limits, select};
use posse_core::plan::settings::{Given, Settings};
use posse_core::plan::{Plan, State, TaskStatus};
use serde::Serialize;
use serde_json::json;

use super::flags::agent;
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

pub(super) fn run(
    file: &Path,
    provider: &str,
    sandbox: Sandbox,
    workers: Option<u32>,
    config: &Config,
    ui: &Ui,
) -> Result<Exit, Error> {
    if super::shows_problems(file, Path::new("."), config, ui)? {
        return Ok(Exit::Invalid);
    }
    super::with_plan(file, ui, |plan, state| {
        let dialect = dialect(provider)?;
        let steps = steps(plan, state, dialect, sandbox, workers, config)?;
        let gates = config.gates(plan);
        ui.answer(&json!({ "file": file, "steps": steps, "gates": gates }), || shown(&steps, &gates));
        Ok(Exit::Ok)
    })
}

fn dialect(provider: &str) -> Result<Dialect, Error> {
    let manifest = manifest::built_in(provider).transpose().map_err(|error| Error::failed(error.to_string()))?;
    let headless = manifest.and_then(|provider| provider.headless);
    headless
        .map(|texts| texts.dialect)
        .ok_or_else(|| Error::Usage(format!("{provider} cannot be used without a terminal")))
}

/// As if everything went well at the first attempt.
fn steps(
    plan: &Plan,
    state: &State,
    dialect: Dialect,
    sandbox: Sandbox,
    workers: Option<u32>,
    config: &Config,
) -> Result<Vec<Step>, Error> {
    let given = Given { workers, ..Given::default() };
    let (none, settings) = (Default::default(), Settings::merge(&given, plan, config));
    let limits =
        Limits { workers: settings.workers, only: None, from: None, resting: &none, validating: &none, taken: &[] };
    let commands = config.gates(plan).into_iter().map(|gate| gate.command).collect();
    let policy = Policy::configured(&config.sandbox, commands);
    let directory = client::absolute(Path::new("."))?;
    let scope = Scope { directory, results: None };
    let mut state = state.clone();
    let mut steps = Vec::new();
    for step in 1.. {
        let next = select(plan, &state, &limits);
        let tasks: Vec<_> = next.validate.into_iter().chain(next.start).collect();
        if tasks.is_empty() {
            break;
        }
        for id in tasks {
            let Some(task) = plan.task(id.as_str()) else { continue };
            if state.status(&id) != TaskStatus::Completed {
                let file = agent(task.agent(), config)?;
                let granted = policy.grant(task.agent(), file.as_ref()).map_err(|e| Error::failed(e.to_string()))?;
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
            step.flags.join(" ")
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

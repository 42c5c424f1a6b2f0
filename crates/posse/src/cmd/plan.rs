//! `posse plan`: plans of tasks, each for a fresh session. What can be said of a plan without running it.

mod draw;
mod flags;
mod init;

use std::path::{Path, PathBuf};

use posse_agents::headless::agent_file;
use posse_core::plan::select::{Limits, Selection, select};
use posse_core::plan::settings::Settings;
use posse_core::plan::{Plan, PlanProblems, Problem, State};
use serde_json::json;

use crate::error::{Error, Exit};
use crate::ui::Ui;

/// Where the project keeps its agents.
const AGENTS: &str = ".claude/agents";

/// Plans: tasks in YAML, each for a fresh headless session
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  posse plan init                    a sample plan and the directories for it
  posse plan check plan.yaml         every mistake, with its place and a hint
  posse plan status plan.yaml        sections and tasks, and what may start next
  posse plan why plan.yaml 2.1       why a task does not start
  posse plan flags coder             what an agent may do, flag by flag

Exit codes: 0 in order, 5 the plan is not valid.")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Find every mistake in a plan, with its place and a hint
    Check {
        /// The plan
        file: PathBuf,
    },
    /// Sections and tasks, how they stand, and what may start next
    Status {
        /// The plan
        file: PathBuf,
    },
    /// Why a task does not start, or what became of it
    Why {
        /// The plan
        file: PathBuf,
        /// The task
        task: String,
    },
    /// What sessions of an agent may do, flag by flag
    Flags(flags::Args),
    /// Make the directories and a sample plan
    Init(init::Args),
}

pub(crate) fn run(args: &Args, ui: &Ui) -> Result<Exit, Error> {
    match &args.command {
        Command::Check { file } => check(file, ui),
        Command::Status { file } => with_plan(file, ui, |plan, state| {
            let selection = selection(plan, state);
            ui.answer(&json!({ "plan": plan, "state": state, "selection": selection }), || {
                draw::tree(plan, state, &selection, ui)
            });
            Ok(Exit::Ok)
        }),
        Command::Why { file, task } => with_plan(file, ui, |plan, state| {
            let Some(task) = plan.task(task) else {
                return Err(Error::Failed {
                    message: format!("there is no task {task:?} in this plan"),
                    hint: Some(format!("`posse plan status {}` shows those there are", file.display())),
                });
            };
            let selection = selection(plan, state);
            let why = selection.blocked.iter().find(|(id, _)| *id == task.id).map(|(_, why)| why);
            ui.answer(&json!({ "task": task, "record": state.get(&task.id), "why": why }), || {
                draw::why(task, state, &selection)
            });
            Ok(Exit::Ok)
        }),
        Command::Flags(args) => flags::run(args, ui),
        Command::Init(args) => init::run(args, ui),
    }
}

fn read(file: &Path) -> Result<String, Error> {
    std::fs::read_to_string(file).map_err(|error| Error::Failed {
        message: format!("cannot read {}: {error}", file.display()),
        hint: Some("`posse plan init` makes a sample plan".into()),
    })
}

/// Everything that is wrong with a plan, also outside of its text.
fn check(file: &Path, ui: &Ui) -> Result<Exit, Error> {
    let text = read(file)?;
    let name = file.display().to_string();
    let (problems, warnings, tasks) = match Plan::read(&name, &text) {
        Err(PlanProblems { problems, warnings, .. }) => (problems, warnings, 0),
        Ok((plan, warnings)) => {
            let tasks = plan.tasks().count();
            (plan.missing(agent_exists, |path| Path::new(path).exists()), warnings, tasks)
        }
    };
    ui.answer(&json!({ "file": name, "problems": problems, "warnings": warnings, "tasks": tasks }), || {
        let mut shown: String =
            problems.iter().map(|problem| draw::problem(&name, &text, problem, "error", ui)).collect();
        shown.extend(warnings.iter().map(|warning| draw::problem(&name, &text, warning, "warning", ui)));
        if problems.is_empty() {
            shown.push_str(&format!("{name} is in order: {tasks} tasks\n"));
        }
        shown
    });
    Ok(if problems.is_empty() { Exit::Ok } else { Exit::Invalid })
}

/// A plan that can be worked with; otherwise what is wrong is shown.
fn with_plan(file: &Path, ui: &Ui, then: impl FnOnce(&Plan, &State) -> Result<Exit, Error>) -> Result<Exit, Error> {
    let text = read(file)?;
    let name = file.display().to_string();
    match Plan::read(&name, &text) {
        Ok((plan, _)) => then(&plan, &State::recorded(&plan)),
        Err(PlanProblems { problems, .. }) => {
            let invalid: &[Problem] = &problems;
            ui.answer(&json!({ "file": name, "problems": invalid }), || {
                problems.iter().map(|problem| draw::problem(&name, &text, problem, "error", ui)).collect()
            });
            Ok(Exit::Invalid)
        }
    }
}

fn selection(plan: &Plan, state: &State) -> Selection {
    let (none, settings) = (Default::default(), Settings::of(plan));
    select(
        plan,
        state,
        &Limits { workers: settings.workers, only: None, from: None, resting: &none, validating: &none, taken: &[] },
    )
}

/// Whether somebody has said what this agent is: the project, or posse.
fn agent_exists(name: &str) -> bool {
    Path::new(AGENTS).join(format!("{name}.md")).exists() || agent_file::built_in(name).is_some()
}

//! `posse plan`: plans of tasks, each for a fresh session: what can be said of one, and how it is run.

mod clean;
pub(super) mod configuration;
mod draw;
mod dry_run;
mod flags;
mod follow;
mod init;
pub(super) mod live;
mod log;
mod run;
pub(super) mod trust;
mod usage;
mod why;

use std::path::{Path, PathBuf};

use posse_agents::headless::agent_file;
use posse_api::{PlanRunStatus, PlanView, RetryIn, StopPlan, Success, TaskAnswerIn};
use posse_core::file_problem::{FileProblem, FileProblems};
use posse_core::plan::config::PlanConfig;
use posse_core::plan::machine::StopHow;
use posse_core::plan::select::{Limits, Selection, select};
use posse_core::plan::settings::{Given, Settings};
use posse_core::plan::{Plan, State};
use posse_term::config_files::ProjectFile;
use posse_term::text_file;
use serde_json::json;

use crate::client::{self, Client, Repeat};
use crate::error::{Error, Exit};
use crate::ui::Ui;
pub(super) use run::{amount, exit};

/// Plans: tasks in YAML, each for a fresh headless session
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  posse plan init                    a sample plan and the directories for it
  posse plan run plan.yaml           carry it out, or go on with it
  posse plan check plan.yaml         every mistake, with its place and a hint
  posse plan status plan.yaml        sections and tasks, and what may start next
  posse plan why plan.yaml 2.1       why a task does not start
  posse plan log plan.yaml 2.1       what its sessions were asked, did and said
  posse plan stop plan.yaml          let what runs finish, and start nothing more
  posse plan answer plan.yaml 2.1 'the blue one'
  posse plan flags coder             what an agent may do, flag by flag
  posse plan config                  what is configured here, and who says so
  posse plan usage --since 7d        what sessions have used

Exit codes: 0 in order, 5 the plan is not valid; of `run`: see `posse plan run --help`.")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Run(Box<run::Args>),
    /// Find every mistake in a plan, with its place and a hint
    #[command(after_help = "Examples:\n  posse plan check plan.yaml\n  posse plan check --strict plan.yaml")]
    Check {
        /// The plan
        file: PathBuf,
        /// Treat warnings as errors
        #[arg(long)]
        strict: bool,
    },
    /// Sections and tasks, how they stand, and what may start next
    #[command(after_help = "Examples:\n  posse plan status plan.yaml")]
    Status {
        /// The plan
        file: PathBuf,
    },
    /// Why a task does not start, or what became of it
    #[command(after_help = "Examples:\n  posse plan why plan.yaml 2.1")]
    Why {
        /// The plan
        file: PathBuf,
        /// The task
        task: String,
    },
    /// Stop a plan that runs
    #[command(
        after_help = "Examples:\n  posse plan stop plan.yaml        let what runs finish\n  posse plan stop plan.yaml now    end it"
    )]
    Stop {
        /// The plan
        file: PathBuf,
        /// `now` ends what runs; otherwise it may finish
        #[arg(value_parser = ["now"])]
        now: Option<String>,
    },
    /// Answer a task that asked
    #[command(after_help = "Examples:\n  posse plan answer plan.yaml 2.1 'the blue one'")]
    Answer {
        /// The plan
        file: PathBuf,
        /// The task
        task: String,
        /// The answer
        #[arg(required = true)]
        text: Vec<String>,
    },
    /// Have a task tried again from the beginning
    #[command(after_help = "Examples:\n  posse plan retry plan.yaml 2.1")]
    Retry {
        /// The plan
        file: PathBuf,
        /// The task
        task: String,
    },
    Log(log::Args),
    #[command(after_help = "Examples:\n  posse plan clean")]
    Clean(clean::Args),
    /// What sessions of an agent may do, flag by flag
    #[command(after_help = "Examples:\n  posse plan flags coder\n  posse plan flags coder --codex")]
    Flags(flags::Args),
    /// What is configured for plans here, and where each value comes from
    #[command(after_help = "Examples:\n  posse plan config\n  posse plan config --default")]
    Config(configuration::Args),
    /// Confirm the commands that the project's files name, and its git configuration
    #[command(after_help = "Examples:\n  posse plan trust\n  posse plan trust plan.yaml")]
    Trust(trust::Args),
    /// What sessions have used: money, tokens, time
    #[command(after_help = "Examples:\n  posse plan usage --since 7d")]
    Usage(usage::Args),
    /// Make the directories, a sample plan and a configuration
    #[command(after_help = "Examples:\n  posse plan init\n  posse plan init plan.yaml")]
    Init(init::Args),
    /// The same as `posse auto items`
    #[command(hide = true)]
    Items(super::auto::items::Args),
}

pub(crate) fn run(args: Args, ui: &Ui) -> Result<Exit, Error> {
    match args.command {
        Command::Run(args) => super::on_own_signals(run::run(*args, ui)),
        Command::Check { file, strict } => check(&file, strict, ui),
        Command::Status { file } => super::on_runtime(status(file, ui)),
        Command::Why { file, task } => super::on_runtime(why(file, task, ui)),
        Command::Stop { file, now } => super::on_runtime(stop(file, now.is_some(), ui)),
        Command::Answer { file, task, text } => super::on_runtime(answer(file, task, text.join(" "), ui)),
        Command::Retry { file, task } => super::on_runtime(retry(file, task, ui)),
        Command::Log(args) => super::on_runtime(log::run(args, ui)),
        Command::Clean(args) => super::on_runtime(clean::run(args, ui)),
        Command::Flags(args) => flags::run(&args, ui),
        Command::Config(args) => configuration::run(&args, ui),
        Command::Trust(args) => super::on_runtime(trust::run(args, ui)),
        Command::Usage(args) => super::on_runtime(usage::run(args, ui)),
        Command::Init(args) => init::run(&args, ui),
        Command::Items(args) => super::on_runtime(super::auto::items::run(args, ui)),
    }
}

/// The run that uses this file now.
async fn running(file: &Path) -> Result<Option<(Client, PlanView)>, Error> {
    let Ok(real) = std::fs::canonicalize(file) else { return Ok(None) };
    let Some(mut client) = Client::connect_if_running().await? else { return Ok(None) };
    let runs: Vec<PlanView> = client.get("/plans?limit=10000").await?;
    let uses = |run: &PlanView| run.status == PlanRunStatus::Running && Path::new(&run.file) == real;
    Ok(runs.into_iter().find(uses).map(|view| (client, view)))
}

async fn status(file: PathBuf, ui: &Ui) -> Result<Exit, Error> {
    let run = running(&file).await?.map(|(_, view)| view);
    let config = configuration::load(Path::new("."))?;
    with_plan(&file, ui, |plan, state| {
        let state = run.as_ref().map_or_else(|| state.clone(), PlanView::state);
        let selection = selection(plan, &state, config.config(), run.as_ref());
        ui.answer(&json!({ "plan": plan, "state": state, "selection": selection, "run": run }), || {
            let mut text = draw::tree(plan, &state, &selection, ui);
            if let Some(run) = &run {
                text.push_str(&draw::run(run));
            }
            text
        });
        Ok(Exit::Ok)
    })
}

async fn why(file: PathBuf, task: String, ui: &Ui) -> Result<Exit, Error> {
    let run = running(&file).await?.map(|(_, view)| view);
    let config = configuration::load(Path::new("."))?;
    with_plan(&file, ui, |plan, state| {
        let Some(task) = plan.task(&task) else {
            return Err(Error::Failed {
                message: format!("there is no task {task:?} in this plan"),
                hint: Some(format!("`posse plan status {}` shows those there are", file.display())),
            });
        };
        let state = run.as_ref().map_or_else(|| state.clone(), PlanView::state);
        let selection = selection(plan, &state, config.config(), run.as_ref());
        let shown = file.display().to_string();
        let known = why::Known { file: &shown, state: &state, selection: &selection, run: run.as_ref() };
        let why = selection.blocked.iter().find(|(id, _)| *id == task.id).map(|(_, why)| why);
        ui.answer(&json!({ "task": task, "record": state.get(&task.id), "why": why }), || why::text(task, &known));
        Ok(Exit::Ok)
    })
}

async fn stop(file: PathBuf, now: bool, ui: &Ui) -> Result<Exit, Error> {
    let Some((mut client, view)) = running(&file).await? else {
        return Err(Error::failed(format!("{} does not run; there is nothing to stop", file.display())));
    };
    let how = Some(if now { StopHow::Now } else { StopHow::AfterTask });
    let path = format!("/plans/{}/stop", view.id);
    let stopped: Success = client.post(&path, &StopPlan { how }, Repeat::Safe).await?;
    ui.done(&stopped, String::new);
    ui.say(&format!("`posse plan run {}` goes on with it", file.display()));
    Ok(Exit::Ok)
}

async fn answer(file: PathBuf, task: String, answer: String, ui: &Ui) -> Result<Exit, Error> {
    let body = TaskAnswerIn { file: client::absolute(&file)?, task, answer };
    let taken: Success = Client::connect().await?.post("/plans/answer", &body, Repeat::Never).await?;
    ui.done(&taken, String::new);
    say_how_to_go_on(&file, ui).await
}

async fn retry(file: PathBuf, task: String, ui: &Ui) -> Result<Exit, Error> {
    let body = RetryIn { file: client::absolute(&file)?, task };
    let taken: Success = Client::connect().await?.post("/plans/retry", &body, Repeat::Safe).await?;
    ui.done(&taken, String::new);
    say_how_to_go_on(&file, ui).await
}

async fn say_how_to_go_on(file: &Path, ui: &Ui) -> Result<Exit, Error> {
    if running(file).await?.is_none() {
        ui.say(&format!("`posse plan run {}` goes on with it", file.display()));
    }
    Ok(Exit::Ok)
}

fn read(file: &Path) -> Result<String, Error> {
    text_file::read(file).map_err(|error| Error::UsageHint {
        message: format!("cannot read {}: {error}", file.display()),
        hint: "`posse plan init` makes a sample plan".into(),
    })
}

/// Everything that is wrong with a plan, also outside of its text.
fn check(file: &Path, strict: bool, ui: &Ui) -> Result<Exit, Error> {
    let text = read(file)?;
    let name = file.display().to_string();
    let project = Path::new(".");
    let configured = ProjectFile::find(project)?;
    let (config_problems, config_warnings) = match configured.as_ref().map(ProjectFile::read) {
        Some(Err(wrong)) => (wrong.problems, wrong.warnings),
        Some(Ok((_, warnings))) => (Vec::new(), warnings),
        None => (Vec::new(), Vec::new()),
    };
    // What the rest says can be looked at even so.
    let config = configuration::load(project).map(|loaded| loaded.config().clone()).unwrap_or_default();
    let (problems, warnings, tasks) = problems(&name, &text, project, &config, strict);
    let in_order = problems.is_empty() && config_problems.is_empty();
    let configuration = configured
        .as_ref()
        .map(|file| json!({ "file": file.name, "problems": config_problems, "warnings": config_warnings }));
    let answer = json!({ "file": name, "problems": problems, "warnings": warnings, "tasks": tasks, "configuration": configuration });
    ui.answer(&answer, || {
        let look = ui.excerpt_look();
        let mut shown: String = problems.iter().map(|problem| problem.error(&name, &text, look)).collect();
        shown.extend(warnings.iter().map(|warning| warning.warning(&name, &text, look)));
        if let Some(file) = &configured {
            shown.extend(config_problems.iter().map(|problem| problem.error(&file.name, &file.text, look)));
            shown.extend(config_warnings.iter().map(|warning| warning.warning(&file.name, &file.text, look)));
        }
        if in_order && !ui.quiet() {
            shown.push_str(&format!("{name} is in order: {tasks} tasks\n"));
        }
        shown
    });
    Ok(if in_order { Exit::Ok } else { Exit::Invalid })
}

/// Returns problems, warnings, and how many tasks there are. With `strict`, every warning is a problem.
fn problems(
    name: &str,
    text: &str,
    project: &Path,
    config: &PlanConfig,
    strict: bool,
) -> (Vec<FileProblem>, Vec<FileProblem>, usize) {
    let (mut problems, mut warnings, tasks) = match Plan::read(name, text) {
        Err(FileProblems { problems, warnings, .. }) => (problems, warnings, 0),
        Ok((plan, mut warnings)) => {
            let agent_exists = |name: &str| {
                project.join(&config.agents_dir).join(format!("{name}.md")).exists()
                    || agent_file::built_in(name).is_some()
            };
            let (problems, missing) = plan.missing(agent_exists, |path| project.join(path).exists());
            warnings.extend(missing);
            (problems, warnings, plan.tasks().count())
        }
    };
    if strict {
        problems.append(&mut warnings);
    }
    problems.sort_by_key(|problem| problem.at.start);
    warnings.sort_by_key(|warning| warning.at.start);
    (problems, warnings, tasks)
}

/// Prints what is wrong with a plan that cannot be used.
fn show_problems(name: &str, text: &str, problems: &[FileProblem], ui: &Ui) {
    ui.answer(&json!({ "file": name, "problems": problems }), || {
        problems.iter().map(|problem| problem.error(name, text, ui.excerpt_look())).collect()
    });
}

/// Prints warnings, and what keeps a plan from running. Returns whether something does.
fn shows_problems(file: &Path, project: &Path, config: &PlanConfig, strict: bool, ui: &Ui) -> Result<bool, Error> {
    let text = read(file)?;
    let name = file.display().to_string();
    let (problems, warnings, _) = problems(&name, &text, project, config, strict);
    warnings.iter().for_each(|warning| ui.warn(&format!("warning: {name}:{warning}")));
    if !problems.is_empty() {
        show_problems(&name, &text, &problems, ui);
    }
    Ok(!problems.is_empty())
}

/// Calls `then` with a plan that can be used; otherwise prints what is wrong.
fn with_plan(file: &Path, ui: &Ui, then: impl FnOnce(&Plan, &State) -> Result<Exit, Error>) -> Result<Exit, Error> {
    let text = read(file)?;
    let name = file.display().to_string();
    match Plan::read(&name, &text) {
        Ok((plan, _)) => then(&plan, &State::recorded(&plan)),
        Err(FileProblems { problems, .. }) => {
            show_problems(&name, &text, &problems, ui);
            Ok(Exit::Invalid)
        }
    }
}

/// What may start, and why the rest may not. What others hold only a run that goes on knows.
fn selection(plan: &Plan, state: &State, config: &PlanConfig, run: Option<&PlanView>) -> Selection {
    let (none, settings) = (Default::default(), Settings::merge(&Given::default(), plan, config));
    let taken = run.map(|run| run.taken.iter().map(|taken| (taken.name.clone(), taken.held_by.clone())).collect());
    let taken: Vec<(String, String)> = taken.unwrap_or_default();
    let limits =
        Limits { workers: settings.workers, only: None, from: None, resting: &none, validating: &none, taken: &taken };
    select(plan, state, &limits)
}

//! `posse plan`: checks, shows and runs plans of tasks, each for a fresh session.

mod clean;
pub(super) mod configuration;
mod draw;
mod dry_run;
mod flags;
mod init;
pub(super) mod live;
mod log;
mod run;
pub(super) mod trust;
mod usage;
mod why;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use posse_agents::headless::agent_file;
use posse_api::{PlanRunStatus, PlanView, RetryIn, TaskAnswerIn};
use posse_core::file_problem::{FileProblem, FileProblems};
use posse_core::plan::config::PlanConfig;
use posse_core::plan::select::{Limits, Selection, Why, select};
use posse_core::plan::settings::{Given, Settings};
use posse_core::plan::{Plan, State, TaskId, TaskStatus};
use posse_term::config_files::ProjectFile;
use posse_term::text_file;
use serde_json::json;

use super::run::kind::{RunKind, StopHowArgs};
use crate::client::{self, Client, Repeat};
use crate::error::{Error, Exit};
use crate::ui::Ui;

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
    /// Show sections and tasks, their states, and the tasks that may start next
    #[command(after_help = "Examples:\n  posse plan status plan.yaml")]
    Status {
        /// The plan
        file: PathBuf,
    },
    /// Explain why a task does not start, or how it ended
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
        #[command(flatten)]
        how: StopHowArgs,
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
    /// Retry a task from the beginning
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
    /// Explain the permissions of an agent's sessions, flag by flag
    #[command(after_help = "Examples:\n  posse plan flags coder\n  posse plan flags coder --codex")]
    Flags(flags::Args),
    /// Show the configuration of plans, and the origin of each value
    #[command(after_help = "Examples:\n  posse plan config\n  posse plan config --default")]
    Config(configuration::Args),
    /// Confirm the commands that the project's files name, and its git configuration
    #[command(after_help = "Examples:\n  posse plan trust\n  posse plan trust plan.yaml")]
    Trust(trust::Args),
    /// Show the money, tokens and time that sessions have used
    #[command(after_help = "Examples:\n  posse plan usage --since 7d")]
    Usage(usage::Args),
    /// Create the directories, a sample plan and a configuration
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
        Command::Stop { file, how } => super::on_runtime(stop(file, how, ui)),
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
async fn running_plan(file: &Path) -> Result<Option<(Client, PlanView)>, Error> {
    let Some(mut client) = Client::connect_if_running().await? else { return Ok(None) };
    let run = newest_run(&mut client, file).await?.filter(|run| run.status == PlanRunStatus::Running);
    Ok(run.map(|run| (client, run)))
}

/// Returns the run of a plan that began last.
async fn newest_run(client: &mut Client, file: &Path) -> Result<Option<PlanView>, Error> {
    let Ok(real) = std::fs::canonicalize(file) else { return Ok(None) };
    let uses = |run: &PlanView| Path::new(&run.file) == real;
    Ok(RunKind::Plan.list(client, uses).await?.into_iter().next())
}

async fn status(file: PathBuf, ui: &Ui) -> Result<Exit, Error> {
    let Some((plan, known)) = known(&file, ui).await? else { return Ok(Exit::Invalid) };
    let KnownPlan { state, selection, run, .. } = &known;
    let answer = json!({ "plan": plan, "state": state, "selection": selection, "run": run });
    ui.answer(&answer, || draw::status(&plan, &known, ui));
    Ok(Exit::Ok)
}

async fn why(file: PathBuf, task: String, ui: &Ui) -> Result<Exit, Error> {
    let Some((plan, known)) = known(&file, ui).await? else { return Ok(Exit::Invalid) };
    let Some(task) = plan.task(&task) else {
        return Err(Error::failed(format!("there is no task {task:?} in this plan"))
            .with_hint(format!("`posse plan status {}` shows those there are", file.display())));
    };
    let why = known.blocked(&task.id);
    ui.answer(&json!({ "task": task, "record": known.state.get(&task.id), "why": why }), || why::text(task, &known));
    Ok(Exit::Ok)
}

async fn stop(file: PathBuf, how: StopHowArgs, ui: &Ui) -> Result<Exit, Error> {
    let shown = file.display();
    let Some((mut client, view)) = running_plan(&file).await? else {
        return Err(Error::failed(format!("{shown} does not run; there is nothing to stop")));
    };
    let how_to_continue = format!("`posse plan run {shown}` goes on with it");
    RunKind::Plan.stop(view.id, &how.request(), &how_to_continue, (&mut client, ui)).await
}

async fn answer(file: PathBuf, task: String, answer: String, ui: &Ui) -> Result<Exit, Error> {
    let body = TaskAnswerIn { file: client::absolute(&file)?, task, answer };
    Client::connect().await?.act("/plans/answer", &body, Repeat::Never, ui).await?;
    say_how_to_go_on(&file, ui).await
}

async fn retry(file: PathBuf, task: String, ui: &Ui) -> Result<Exit, Error> {
    let body = RetryIn { file: client::absolute(&file)?, task };
    Client::connect().await?.act("/plans/retry", &body, Repeat::Safe, ui).await?;
    say_how_to_go_on(&file, ui).await
}

async fn say_how_to_go_on(file: &Path, ui: &Ui) -> Result<Exit, Error> {
    if running_plan(file).await?.is_none() {
        ui.say(&format!("`posse plan run {}` goes on with it", file.display()));
    }
    Ok(Exit::Ok)
}

/// Everything that is wrong with a plan, also outside of its text.
fn check(file: &Path, strict: bool, ui: &Ui) -> Result<Exit, Error> {
    let project = Path::new(".");
    let configured = ProjectFile::find(project)?;
    let (config_problems, config_warnings) = match configured.as_ref().map(ProjectFile::read) {
        Some(Err(wrong)) => (wrong.problems, wrong.warnings),
        Some(Ok((_, warnings))) => (Vec::new(), warnings),
        None => (Vec::new(), Vec::new()),
    };
    // The plan is checked even if the configuration cannot be used.
    let config = configuration::load(project).map(|loaded| loaded.config().clone()).unwrap_or_default();
    let checked = CheckedPlan::read(file)?.checked(project, &config, strict);
    let CheckedPlan { name, text, problems, warnings, .. } = &checked;
    let tasks = checked.plan.as_ref().map_or(0, |plan| plan.tasks().count());
    let in_order = problems.is_empty() && config_problems.is_empty();
    let configuration = configured
        .as_ref()
        .map(|file| json!({ "file": file.name, "problems": config_problems, "warnings": config_warnings }));
    let answer = json!({ "file": name, "problems": problems, "warnings": warnings, "tasks": tasks, "configuration": configuration });
    ui.answer(&answer, || {
        let look = ui.excerpt_look();
        let mut shown: String = problems.iter().map(|problem| problem.error(name, text, look)).collect();
        shown.extend(warnings.iter().map(|warning| warning.warning(name, text, look)));
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

/// A plan as it was read, and what is wrong with it.
struct CheckedPlan {
    /// As the user named it.
    name: String,
    text: String,
    /// `None` if it cannot be used.
    plan: Option<Plan>,
    problems: Vec<FileProblem>,
    warnings: Vec<FileProblem>,
}

impl CheckedPlan {
    fn read(file: &Path) -> Result<Self, Error> {
        let name = file.display().to_string();
        let text = text_file::read(file).map_err(|error| {
            Error::usage(format!("cannot read {name}: {error}")).with_hint("`posse plan init` makes a sample plan")
        })?;
        let (plan, problems, warnings) = match Plan::read(&name, &text) {
            Ok((plan, warnings)) => (Some(plan), Vec::new(), warnings),
            Err(FileProblems { problems, warnings, .. }) => (None, problems, warnings),
        };
        Ok(Self { name, text, plan, problems, warnings })
    }

    /// Adds what is wrong outside of the text. With `strict`, every warning is a problem.
    fn checked(mut self, project: &Path, config: &PlanConfig, strict: bool) -> Self {
        if let Some(plan) = &self.plan {
            let agent_exists = |name: &str| {
                project.join(&config.agents_dir).join(format!("{name}.md")).exists()
                    || agent_file::built_in(name).is_some()
            };
            let (problems, missing) = plan.missing(agent_exists, |path| project.join(path).exists());
            self.problems.extend(problems);
            self.warnings.extend(missing);
        }
        if strict {
            self.problems.append(&mut self.warnings);
        }
        self.problems.sort_by_key(|problem| problem.at.start);
        self.warnings.sort_by_key(|warning| warning.at.start);
        self
    }

    /// Returns the plan; if there are problems, prints them and returns `None`.
    fn usable(self, ui: &Ui) -> Option<Plan> {
        let Self { name, text, plan, problems, .. } = self;
        if problems.is_empty() {
            return plan;
        }
        ui.answer(&json!({ "file": name, "problems": problems }), || {
            problems.iter().map(|problem| problem.error(&name, &text, ui.excerpt_look())).collect()
        });
        None
    }

    fn print_warnings(&self, ui: &Ui) {
        self.warnings.iter().for_each(|warning| ui.warn(&format!("warning: {}:{warning}", self.name)));
    }
}

/// A plan that can be used, with its state and its run.
struct KnownPlan {
    /// As the user named it.
    file: String,
    state: State,
    /// The tasks that may start, and the reasons why others may not.
    selection: Selection,
    /// The run that is not over.
    run: Option<PlanView>,
}

impl KnownPlan {
    /// `last` is the run that began last. The resources of others are known only to one that is not over.
    fn new(file: &Path, plan: &Plan, config: &PlanConfig, last: Option<PlanView>) -> Self {
        let state = match &last {
            Some(run) if run.status == PlanRunStatus::Running => run.state(),
            Some(run) => run.state_between_runs(plan),
            None => State::recorded(plan),
        };
        let run = last.filter(|run| run.status == PlanRunStatus::Running);
        let none = BTreeSet::new();
        let taken: Vec<(String, String)> =
            run.iter().flat_map(|run| &run.taken).map(|taken| (taken.name.clone(), taken.held_by.clone())).collect();
        let limits = Limits {
            workers: Settings::merge(&Given::default(), plan, config).workers,
            only: None,
            from: None,
            resting: &none,
            validating: &none,
            taken: &taken,
        };
        Self { file: file.display().to_string(), selection: select(plan, &state, &limits), state, run }
    }

    /// Returns the reason why a task does not start.
    fn blocked(&self, task: &TaskId) -> Option<&Why> {
        self.selection.blocked.iter().find(|(id, _)| id == task).map(|(_, why)| why)
    }
}

/// Looks at a plan and its run. Prints the problems of a plan that cannot be used.
async fn known(file: &Path, ui: &Ui) -> Result<Option<(Plan, KnownPlan)>, Error> {
    let config = configuration::load(Path::new("."))?;
    let Some(plan) = CheckedPlan::read(file)?.usable(ui) else { return Ok(None) };
    // Only the daemon knows more of a plan that was run than its statuses.
    let was_run = plan.tasks().any(|task| task.record.status != TaskStatus::Pending);
    let client = if was_run { Some(Client::connect().await?) } else { Client::connect_if_running().await? };
    let last = match client {
        Some(mut client) => newest_run(&mut client, file).await?,
        None => None,
    };
    let known = KnownPlan::new(file, &plan, config.config(), last);
    Ok(Some((plan, known)))
}

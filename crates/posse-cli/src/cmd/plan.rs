//! `posse plan`: checks, shows and runs plans of tasks, each for a fresh session.

mod clean;
pub(super) mod configuration;
mod dry_run;
mod flags;
mod init;
mod run;
pub(super) mod trust;
mod usage;
mod why;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use posse_agents::headless::agent_file;
use posse_api::{PlanView, RunView, TaskView};
use posse_core::file_problem::{FileProblem, FileProblems};
use posse_core::plan::config::PlanConfig;
use posse_core::plan::select::{Limits, Selection, Standing, Why, select};
use posse_core::plan::settings::{Given, Settings};
use posse_core::plan::{Plan, State, TaskId, TaskStatus};
use posse_term::config_files::ProjectFile;
use posse_term::text_file;
use serde_json::json;

use super::run::find::{PartArgs, RunArg, runs_of};
use super::run::{find, rows, show};
use crate::client::Client;
use crate::error::{Error, Exit};
use crate::ui::{Colour, Ui, plain};

/// Plans: tasks in YAML, each for a fresh headless session
#[derive(Debug, clap::Subcommand)]
#[command(after_help = "\
Examples:
  posse plan init                    a sample plan and the directories for it
  posse plan run plan.yaml           carry it out, or go on with it
  posse plan check plan.yaml         every mistake, with its place and a hint
  posse plan status plan.yaml        sections and tasks, and what may start next
  posse run why plan.yaml 2.1        why a task does not start
  posse run log plan.yaml 2.1        what its sessions were asked, did and said
  posse run stop plan.yaml           let what runs finish, and start nothing more
  posse run answer plan.yaml 2.1 'the blue one'
  posse plan flags coder             what an agent may do, flag by flag
  posse plan config                  what is configured here, and who says so
  posse plan usage --since 7d        what sessions have used

Exit codes: 0 in order, 5 the plan is not valid; of `run`: see `posse plan run --help`.")]
pub(crate) enum PlanCommand {
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
    #[command(hide = true)]
    Items(super::auto::items::Args),
    #[command(hide = true)]
    Stop {
        #[command(flatten)]
        run: RunArg,
        #[arg(value_parser = ["now"])]
        now: Option<String>,
    },
    #[command(hide = true)]
    Answer(find::AnswerPartArgs),
    #[command(hide = true)]
    Retry(PartArgs),
}

pub(crate) fn run(command: PlanCommand, ui: &Ui) -> Result<Exit, Error> {
    match command {
        PlanCommand::Run(args) => super::on_own_signals(run::run(*args, ui)),
        PlanCommand::Check { file, strict } => check(&file, strict, ui),
        PlanCommand::Status { file } => super::on_runtime(status(file, ui)),
        PlanCommand::Stop { run, now } => super::on_runtime(super::run::stop(run, now.is_some(), ui)),
        PlanCommand::Answer(args) => super::on_runtime(find::answer(args, ui)),
        PlanCommand::Retry(args) => super::on_runtime(find::retry(args, ui)),
        PlanCommand::Clean(args) => super::on_runtime(clean::run(args, ui)),
        PlanCommand::Flags(args) => flags::run(&args, ui),
        PlanCommand::Config(args) => configuration::run(&args, ui),
        PlanCommand::Trust(args) => super::on_runtime(trust::run(args, ui)),
        PlanCommand::Usage(args) => super::on_runtime(usage::run(args, ui)),
        PlanCommand::Init(args) => init::run(&args, ui),
        PlanCommand::Items(args) => super::on_runtime(super::auto::items::run(args, ui)),
    }
}

/// The run that uses this file now.
async fn running_plan(file: &Path) -> Result<Option<PlanView>, Error> {
    let Some(mut client) = Client::connect_if_running().await? else { return Ok(None) };
    Ok(newest_run(&mut client, file).await?.filter(|run| run.is_active()))
}

async fn newest_run(client: &mut Client, file: &Path) -> Result<Option<PlanView>, Error> {
    let newest = runs_of(client, file, "&kind=plan").await?.into_iter().next();
    Ok(newest.and_then(|run| if let RunView::Plan(plan) = run { Some(plan) } else { None }))
}

async fn status(file: PathBuf, ui: &Ui) -> Result<Exit, Error> {
    let Some((plan, known)) = known(&file, ui).await? else { return Ok(Exit::Invalid) };
    let KnownPlan { state, selection, run, .. } = &known;
    let answer = json!({ "plan": plan, "state": state, "selection": selection, "run": run });
    ui.answer(&answer, || known.text(&plan, ui));
    Ok(Exit::Ok)
}

pub(super) async fn why(file: &Path, task: &str, ui: &Ui) -> Result<Exit, Error> {
    let Some((plan, known)) = known(file, ui).await? else { return Ok(Exit::Invalid) };
    let Some(task) = plan.task(task) else {
        return Err(Error::failed(format!("there is no task {task:?} in this plan"))
            .with_hint(format!("`posse plan status {}` shows those there are", file.display())));
    };
    let why = known.blocked(&task.id);
    ui.answer(&json!({ "task": task, "record": known.state.get(&task.id), "why": why }), || why::text(task, &known));
    Ok(Exit::Ok)
}

pub(super) async fn say_how_to_go_on(file: &Path, ui: &Ui) -> Result<Exit, Error> {
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
            Some(run) if run.is_active() => run.state(),
            Some(run) => run.state_between_runs(plan),
            None => State::recorded(plan),
        };
        let run = last.filter(|run| run.is_active());
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

    /// Sections and tasks, whether the plan can continue, and its run.
    fn text(&self, plan: &Plan, ui: &Ui) -> String {
        let mut tasks = Vec::new();
        for section in &plan.sections {
            tasks.extend(section.tasks.iter().map(|task| TaskView {
                id: task.id.clone(),
                name: task.name.clone(),
                section: section.name.clone(),
                status: self.state.status(&task.id),
                record: self.state.get(&task.id).cloned().unwrap_or_default(),
                shown: None,
            }));
        }
        let sessions = self.run.as_ref().map(|run| run.sessions.as_slice()).unwrap_or_default();
        let mut jobs = rows::tasks(&tasks, sessions, Timestamp::now());
        for (job, task) in jobs.iter_mut().zip(&tasks) {
            let why = self.blocked(&task.id).filter(|_| task.status != TaskStatus::Suspended).map(Why::to_string);
            let next = self.selection.start.contains(&task.id).then(|| "next".to_owned());
            job.facts.extend(next.or(why).map(|note| (note, Some(Colour::Dim))));
        }
        let standing = match self.selection.standing {
            Standing::Going => "can go on",
            Standing::Complete => "complete",
            Standing::Failed => "at its end, with failures",
            Standing::Suspended => "waits for an answer",
            Standing::Deadlocked => "deadlocked: what is left needs something that failed",
            Standing::Partial => "done as far as was asked",
        };
        let run = self.run.clone().map(|run| show::facts(&RunView::Plan(run), ui)).unwrap_or_default();
        format!("{}\n{}{standing}\n{run}", ui.paint(&plain(&plan.name), Colour::Bold), rows::lines(&jobs, ui))
    }

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

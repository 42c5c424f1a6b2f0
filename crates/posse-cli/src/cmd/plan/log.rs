//! `posse plan log`: prints the prompts, actions and texts of a plan's sessions, and the results.

use std::path::PathBuf;

use posse_api::PlanView;

use crate::client::{self, Client};
use crate::cmd::run::kind::RunKind;
use crate::cmd::run::log::{self, LogArgs, LogRequest};
use crate::error::{Error, Exit};
use crate::ui::Ui;

/// Show the prompts, actions and texts of a plan's sessions
///
/// Of the newest run, each session in short; of one task everything, in all runs of which there still are files: the prompt, what
/// was said and done, the report, what checks printed. Tokens of well-known shapes are masked.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  posse plan log plan.yaml              the newest run
  posse plan log plan.yaml 2.1          one task, with its prompts and all that was said
  posse plan log plan.yaml -f           go on with what happens from now on
  posse plan log plan.yaml 2.1 --raw    the stream as the agent printed it
  posse plan log plan.yaml --json       for programs: one value a line")]
pub(crate) struct Args {
    /// The plan
    file: PathBuf,
    /// One task, with everything
    task: Option<String>,
    #[command(flatten)]
    log: LogArgs,
}

pub(super) async fn run(args: Args, ui: &Ui) -> Result<Exit, Error> {
    // The plan itself may be gone; its runs are not.
    let real = std::fs::canonicalize(&args.file).unwrap_or_else(|_| args.file.clone());
    let real = client::absolute(&real)?;
    let mut client = Client::connect().await?;
    let mut runs: Vec<PlanView> = RunKind::Plan.list(&mut client, |run: &PlanView| run.file == real).await?;
    let shown = args.file.display();
    if runs.is_empty() {
        return Err(Error::failed(format!("no run of {shown} is known here"))
            .with_hint(format!("`posse plan run {shown}` begins one")));
    }
    match &args.task {
        None => runs.truncate(1),
        Some(task) if runs.iter().flat_map(|run| &run.tasks).all(|one| one.id.as_str() != task) => {
            return Err(Error::failed(format!("there is no task {task:?} in any run of this plan"))
                .with_hint(format!("`posse plan status {shown}` shows the tasks")));
        }
        // A task may have been done long before the newest run.
        Some(_) => runs.reverse(),
    }
    let runs = runs.iter().map(|run| run.id).collect();
    let request = LogRequest { kind: RunKind::Plan, runs, about: args.task.clone(), log: args.log };
    if !log::print(client, request, ui).await?
        && let Some(task) = &args.task
    {
        ui.say(&format!("task {task} has not been worked on yet"));
    }
    Ok(Exit::Ok)
}

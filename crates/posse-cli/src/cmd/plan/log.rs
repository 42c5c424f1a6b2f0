//! `posse plan log`: what the sessions of a plan were asked, did and said, and what came of it.

use std::path::{Path, PathBuf};

use posse_api::{PlanRunStatus, PlanView};

use crate::client::{self, Client};
use crate::cmd::run_log::{self, LogRequest};
use crate::cmd::tail::RunKind;
use crate::error::{Error, Exit};
use crate::ui::Ui;

/// What the sessions of a plan were asked, did and said
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
    /// The lines as the agent printed them
    #[arg(long)]
    raw: bool,
    /// Go on with what happens from now on, until the run is over
    #[arg(long, short)]
    follow: bool,
}

pub(super) async fn run(args: Args, ui: &Ui) -> Result<Exit, Error> {
    let mut client = Client::connect().await?;
    let mut runs = runs_of(&mut client, &args.file).await?;
    let shown = args.file.display();
    let Some(newest) = runs.first().cloned() else {
        return Err(Error::Failed {
            message: format!("no run of {shown} is known here"),
            hint: Some(format!("`posse plan run {shown}` begins one")),
        });
    };
    let knows = |task: &String| runs.iter().flat_map(|run| &run.tasks).any(|one| one.id.as_str() == *task);
    if let Some(task) = args.task.as_ref().filter(|task| !knows(task)) {
        return Err(Error::Failed {
            message: format!("there is no task {task:?} in any run of this plan"),
            hint: Some(format!("`posse plan status {shown}` shows the tasks")),
        });
    }
    // A task may have been done long before the newest run.
    runs.reverse();
    let all: Vec<_> = runs.iter().map(|run| run.id).collect();
    let follow = args.follow && newest.status == PlanRunStatus::Running;
    let request = LogRequest {
        kind: RunKind::Plan,
        runs: if args.task.is_some() { all } else { vec![newest.id] },
        follow: follow.then_some(newest.id),
        about: args.task.clone(),
        raw: args.raw,
        json: false,
    };
    if !run_log::print(client, request, ui).await?
        && let Some(task) = &args.task
    {
        ui.say(&format!("task {task} has not been worked on yet"));
    }
    Ok(Exit::Ok)
}

/// The runs of a plan, newest first.
async fn runs_of(client: &mut Client, file: &Path) -> Result<Vec<PlanView>, Error> {
    // The plan itself may be gone; its runs are not.
    let real = match std::fs::canonicalize(file) {
        Ok(real) => client::absolute(&real)?,
        Err(_) => client::absolute(file)?,
    };
    let runs: Vec<PlanView> = client.get("/plans?limit=10000").await?;
    Ok(runs.into_iter().filter(|run| run.file == real).collect())
}

//! `posse auto`: plans, carries out, verifies and archives the items of a backlog.

pub(super) mod draw;
mod dry_run;
pub(super) mod items;
mod log;
mod run;
mod show;
mod write;

use std::path::PathBuf;

use posse_api::{AutoView, PlanRunStatus, PlanView};
use posse_core::backlog::BacklogDirs;
use posse_core::backlog::Slug;
use posse_core::plan::config::PlanConfig;

use super::run::kind::RunKind;
use crate::client::{self, Client};
use crate::error::{Error, Exit};
use crate::ui::Ui;

/// Work through a backlog: each item is planned, carried out, verified and archived
///
/// Items are Markdown files, one for each defect or feature, in docs/defect-backlog and docs/feature-backlog. For each, a session
/// writes a plan, the plan is carried out as by `posse plan run`, another session verifies what came of it, and the item goes to
/// docs/completed-backlog; or to docs/failed-backlog, with the reason. Work without evidence is not done.
///
/// The pipeline lives in the daemon: this command only follows it. Ctrl-C lets what runs finish for ten seconds and then ends it;
/// `posse auto` again goes on where it was. Without --once or --drain it waits for new items.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "\
Examples:
  posse auto items                  what is in the backlog, in which order, and why something is not begun
  posse auto --dry-run              what would be done
  posse auto --once                 one item, then end
  posse auto --drain                until nothing is left that can be begun
  posse auto --item 7-empty-export  this item only
  posse auto --detach               all night, without this window; `posse auto follow` comes back to it
  posse auto why 7-empty-export     how an item stands, and everything that was decided about it
  posse auto log 7-empty-export     what its sessions were asked, did and said
  posse auto stop                   let what runs finish, and begin nothing more

Exit codes: 0 done or nothing to do, 1 an item failed, 2 out of money, 3 stopped, 4 items failed one after the other, 6 another one \
works here, 7 waits for an answer, 69 no agent installed, 70 it went in circles, 75 out of quota with --no-wait, 130 Ctrl-C."
)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    run: run::RunArgs,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    #[command(after_help = "Examples:\n  posse auto items")]
    Items(items::Args),
    /// Show what the pipeline does, and the state of its items
    #[command(after_help = "Examples:\n  posse auto status")]
    Status(Where),
    #[command(after_help = "Examples:\n  posse auto why 7-empty-export")]
    Why(show::WhyArgs),
    Log(log::Args),
    /// Follow a pipeline that was begun with --detach, or in another window; Ctrl-C leaves it running
    #[command(after_help = "Examples:\n  posse auto follow")]
    Follow(Where),
    #[command(after_help = "Examples:\n  posse auto stop        let what runs finish\n  posse auto stop now    end it")]
    Stop(show::StopArgs),
    #[command(after_help = "Examples:\n  posse auto retry 7-empty-export")]
    Retry(show::RetryArgs),
    #[command(after_help = "Examples:\n  posse auto new defect 'Export is empty'")]
    New(write::NewArgs),
    #[command(after_help = "Examples:\n  posse auto answer 7-empty-export 'the blue one'")]
    Answer(write::AnswerArgs),
}

/// The backlog of a project.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Where {
    /// The project [default: here]
    #[arg(long, short = 'C', value_name = "DIRECTORY", default_value = ".", hide_default_value = true)]
    directory: PathBuf,
    /// Where defect-backlog, feature-backlog, completed-backlog and failed-backlog are, within the project [default: as configured, docs]
    #[arg(long, value_name = "DIR")]
    backlog_dir: Option<String>,
}

impl Where {
    fn project(&self) -> Result<PathBuf, Error> {
        client::real(&self.directory)
    }

    /// The pipelines of this project, newest first.
    async fn pipelines(&self, client: &mut Client) -> Result<Vec<AutoView>, Error> {
        let project = client::absolute(&self.project()?)?;
        RunKind::Backlog.list(client, |view: &AutoView| view.directory == project).await
    }

    /// The pipeline that works now. Without a daemon there is none.
    async fn running(&self) -> Result<Option<(Client, AutoView)>, Error> {
        let Some(mut client) = Client::connect_if_running().await? else { return Ok(None) };
        let running = self.pipelines(&mut client).await?.into_iter().find(|view| view.status == PlanRunStatus::Running);
        Ok(running.map(|view| (client, view)))
    }

    /// Reads the configuration of the project.
    fn config(&self) -> Result<PlanConfig, Error> {
        Ok(super::plan::configuration::load(&self.project()?)?.resolved.config)
    }

    /// The directories of items: as given, else as configured.
    fn shelves(&self) -> Result<BacklogDirs, Error> {
        if let Some(directory) = &self.backlog_dir {
            return Ok(BacklogDirs::below(directory));
        }
        Ok(self.config()?.backlog)
    }
}

/// The plans that are carried out.
pub(super) async fn plans_of(view: &AutoView, client: &mut Client) -> Result<Vec<PlanView>, Error> {
    let mut plans = Vec::new();
    for run in view.doing.iter().filter_map(|doing| doing.plan_run) {
        plans.push(client.get(&format!("/plans/{run}")).await?);
    }
    Ok(plans)
}

/// An item by its name or by its file.
fn slug(typed: &str) -> Result<Slug, Error> {
    let name = typed.rsplit('/').next().unwrap_or(typed);
    let name = name.strip_suffix(".md").unwrap_or(name);
    name.parse().map_err(|error| Error::usage(format!("{typed:?} is no item: {error}")))
}

/// The error for an item that is not in the backlog.
fn no_item(slug: &Slug) -> Error {
    Error::failed(format!("there is no item {slug} in the backlog"))
        .with_hint("`posse auto items` shows those there are")
}

pub(crate) fn run(args: Args, ui: &Ui) -> Result<Exit, Error> {
    let Some(command) = args.command else { return super::on_own_signals(run::run(args.run, ui)) };
    match command {
        Command::Items(args) => super::on_runtime(items::run(args, ui)),
        Command::Status(place) => super::on_runtime(show::status(place, ui)),
        Command::Why(args) => super::on_runtime(show::why(args, ui)),
        Command::Log(args) => super::on_runtime(log::run(args, ui)),
        Command::Follow(place) => super::on_own_signals(show::follow(place, ui)),
        Command::Stop(args) => super::on_runtime(show::stop(args, ui)),
        Command::Retry(args) => super::on_runtime(show::retry(args, ui)),
        Command::New(args) => write::new(&args, ui),
        Command::Answer(args) => write::answer(&args, ui),
    }
}

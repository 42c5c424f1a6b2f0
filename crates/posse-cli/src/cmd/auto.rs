//! `posse auto`: plans, carries out, verifies and archives the items of a backlog.

mod dry_run;
pub(super) mod items;
mod run;
pub(super) mod why;
pub(super) mod write;

use std::path::{Path, PathBuf};

use posse_core::backlog::{BacklogDirs, Slug};
use posse_core::plan::config::PlanConfig;
use posse_files::backlog::{Scan, scan};
use posse_files::disk::Disk;

use crate::client;
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
  posse auto --detach               all night, without this window; `posse run follow` comes back to it
  posse run why . 7-empty-export    how an item stands, and everything that was decided about it
  posse run log . 7-empty-export    what its sessions were asked, did and said
  posse run stop                    let what runs finish, and begin nothing more

Exit codes: 0 done or nothing to do, 1 an item failed, 2 out of money, 3 stopped, 4 items failed one after the other, 6 another one \
works here, 7 waits for an answer, 69 no agent installed, 70 it went in circles, 75 out of quota with --no-wait, 130 Ctrl-C."
)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<AutoCommand>,
    #[command(flatten)]
    run: run::RunArgs,
}

#[derive(Debug, clap::Subcommand)]
enum AutoCommand {
    #[command(after_help = "Examples:\n  posse auto items")]
    Items(items::Args),
    #[command(after_help = "Examples:\n  posse auto new defect 'Export is empty'")]
    New(write::NewArgs),
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

    /// A project whose backlog is where it is configured.
    fn of(project: &Path) -> Self {
        Self { directory: project.to_owned(), backlog_dir: None }
    }

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

    fn scan(&self) -> Result<Scan, Error> {
        Ok(scan(&Disk::of_this_thread(), &self.project()?, &self.shelves()?))
    }
}

/// An item by its name or by its file.
pub(super) fn slug(typed: &str) -> Result<Slug, Error> {
    let name = typed.rsplit('/').next().unwrap_or(typed);
    let name = name.strip_suffix(".md").unwrap_or(name);
    name.parse().map_err(|error| Error::usage(format!("{typed:?} is no item: {error}")))
}

fn no_item(slug: &Slug) -> Error {
    Error::failed(format!("there is no item {slug} in the backlog"))
        .with_hint("`posse auto items` shows those there are")
}

pub(super) fn require_item(item: &str, project: &Path) -> Result<(), Error> {
    let slug = slug(item)?;
    Where::of(project).scan()?.find(&slug).map(drop).ok_or_else(|| no_item(&slug))
}

pub(crate) fn run(args: Args, ui: &Ui) -> Result<Exit, Error> {
    let Some(command) = args.command else { return super::on_own_signals(run::run(args.run, ui)) };
    match command {
        AutoCommand::Items(args) => super::on_runtime(items::run(args, ui)),
        AutoCommand::New(args) => write::new(&args, ui),
    }
}

//! `posse auto`: from a backlog of items to work that is done, verified and archived.

mod draw;
pub(super) mod items;
mod write;

use std::path::PathBuf;

use posse_server::backlog::Shelves;

use crate::error::{Error, Exit};
use crate::ui::Ui;

/// Work through a backlog: plan each item, carry it out, verify it, archive it
#[derive(Debug, clap::Args)]
#[command(
    subcommand_required = true,
    after_help = "\
Examples:
  posse auto items                       what is in the backlog, in which order, and why something is not begun
  posse auto new defect 'Export is empty'
  posse auto answer 7-empty-export 'only with more than ten rows'

Items are Markdown files in docs/defect-backlog and docs/feature-backlog. See docs/auto.md."
)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Items(items::Args),
    New(write::NewArgs),
    Answer(write::AnswerArgs),
}

/// Which backlog.
#[derive(Clone, Debug, clap::Args)]
struct Where {
    /// The project [default: here]
    #[arg(long, short = 'C', value_name = "DIRECTORY", default_value = ".")]
    directory: PathBuf,
    /// Where defect-backlog, feature-backlog, completed-backlog and failed-backlog are, within the project [default: docs]
    #[arg(long, value_name = "DIR")]
    backlog_dir: Option<String>,
}

impl Where {
    fn project(&self) -> Result<PathBuf, Error> {
        std::fs::canonicalize(&self.directory).map_err(Error::io(self.directory.display().to_string()))
    }

    fn shelves(&self) -> Shelves {
        self.backlog_dir.as_deref().map_or_else(Shelves::default, Shelves::below)
    }
}

pub(crate) fn run(args: Args, ui: &Ui) -> Result<Exit, Error> {
    match args.command {
        Command::Items(args) => items::run(&args, ui),
        Command::New(args) => write::new(&args, ui),
        Command::Answer(args) => write::answer(&args, ui),
    }
}

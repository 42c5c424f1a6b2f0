//! `posse plan clean`: removes files that runs of plans left behind.

use std::path::PathBuf;

use posse_api::{CleanIn, CleanItem, CleanView};

use crate::client::{self, Client, Repeat};
use crate::error::{Error, Exit};
use crate::ui::{Cell, Colour, Ui, bytes};

/// Remove what runs left behind: work trees and branches that are merged, files of runs whose plan is done, and of items that
/// are out of the backlog
///
/// Shows what may go, and removes it only with --yes. Work that is not merged always stays, and so does everything of a plan
/// that is not at its end, or of an item that is still in the backlog. By itself posse keeps the files of runs and items for 30 days, and
/// a gigabyte of them.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only what runs of this plan left behind [default: all plans and backlogs]
    file: Option<PathBuf>,
    /// Remove it
    #[arg(long, short)]
    yes: bool,
}

pub(super) async fn run(args: Args, ui: &Ui) -> Result<Exit, Error> {
    let file = args.file.as_deref().map(client::absolute).transpose()?;
    let mut client = Client::connect().await?;
    let found: CleanView = client.post("/runs/clean", &CleanIn { file, remove: args.yes }, Repeat::Safe).await?;
    if args.yes {
        ui.done(&found, || text(&found, true, ui));
        return Ok(Exit::Ok);
    }
    ui.answer(&found, || text(&found, false, ui));
    if !found.gone.is_empty() {
        ui.say("nothing was removed; `posse plan clean --yes` does it");
    }
    Ok(Exit::Ok)
}

fn text(found: &CleanView, removed: bool, ui: &Ui) -> String {
    let row = |title: &'static str| {
        move |item: &CleanItem| {
            let what = item.what.as_str().replace('_', " ");
            vec![
                Cell::new(title, Colour::Bold),
                what.into(),
                item.name.clone().into(),
                Cell::new(&item.why, Colour::Dim),
            ]
        }
    };
    let gone = found.gone.iter().map(row(if removed { "removed" } else { "may go" }));
    let size = match found.gone.len() {
        0 => "there is nothing to remove\n".to_owned(),
        _ => format!("{} of logs\n", bytes(found.bytes)),
    };
    ui.table(&["", "WHAT", "NAME", "WHY"], gone.chain(found.kept.iter().map(row("stays")))) + &size
}

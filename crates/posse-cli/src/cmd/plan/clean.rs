//! `posse plan clean`: removes files that runs of plans left behind.

use std::path::PathBuf;

use posse_api::{CleanIn, CleanView, CleanWhat};

use crate::client::{self, Client, Repeat};
use crate::error::{Error, Exit};
use crate::ui::{Colour, Ui, bytes, plain};

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
    let mut text = String::new();
    let mut list = |title: &str, items: &[posse_api::CleanItem]| {
        if items.is_empty() {
            return;
        }
        text.push_str(&format!("{}\n", ui.paint(title, Colour::Bold)));
        for item in items {
            let what = match item.what {
                CleanWhat::Run => "run",
                CleanWhat::WorkTree => "work tree",
                CleanWhat::Item => "item",
            };
            let why = ui.paint(&plain(&item.why), Colour::Dim);
            text.push_str(&format!("  {what:<9}  {}\n             {why}\n", plain(&item.name)));
        }
    };
    list(if removed { "removed" } else { "may go" }, &found.gone);
    list("stays", &found.kept);
    if found.gone.is_empty() {
        text.push_str("there is nothing to remove\n");
    } else {
        text.push_str(&format!("{} of logs\n", bytes(found.bytes)));
    }
    text
}

//! `posse kill`: end a terminal and forget it.

use posse_api::Deleted;
use serde::Serialize;

use crate::client::Client;
use crate::error::{Error, Exit};
use crate::ui::Ui;

/// End a terminal, with every process in it, and forget it
///
/// Every process that descends from the terminal's program, or carries its id in the environment, is asked to end
/// and killed after a grace of 3 seconds.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  posse kill reviewer           ask first, kill after 3 seconds
  posse kill reviewer build --now")]
pub(crate) struct Args {
    /// The terminals: ids, beginnings of ids, or names
    #[arg(required = true, value_name = "TERMINAL")]
    terminals: Vec<String>,
    /// Kill at once, without asking first
    #[arg(long)]
    now: bool,
}

#[derive(Serialize)]
struct Killed {
    id: posse_core::ids::TerminalId,
    #[serde(flatten)]
    deleted: Deleted,
}

pub(crate) async fn run(args: Args, ui: &Ui) -> Result<Exit, Error> {
    let mut client = Client::connect().await?;
    let mut chosen = Vec::new();
    for name in &args.terminals {
        // All are found before any is ended: a slip in the last name must not cost the first terminal.
        chosen.push(client.find(name).await?);
    }
    let grace = if args.now { "?grace_ms=0" } else { "" };
    let mut killed = Vec::new();
    for terminal in chosen {
        let deleted: Deleted = client.delete(&format!("/terminals/{}{grace}", terminal.id)).await?;
        if deleted.processes_left > 0 {
            ui.warn(&format!("{}: {} processes could not be ended", terminal.name, deleted.processes_left));
        }
        killed.push(Killed { id: terminal.id, deleted });
    }
    ui.done(&killed, String::new);
    let all = killed.iter().all(|killed| killed.deleted.processes_left == 0);
    Ok(if all { Exit::Ok } else { Exit::Failed })
}

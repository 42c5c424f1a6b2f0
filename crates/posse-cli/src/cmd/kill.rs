//! `posse kill`: end a terminal and forget it.

use posse_api::Deleted;
use serde_json::json;

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

pub(crate) async fn run(args: Args, ui: &Ui) -> Result<Exit, Error> {
    let mut client = Client::connect().await?;
    let mut chosen = Vec::new();
    for name in &args.terminals {
        // All are found before any is ended: a slip in the last name must not cost the first terminal.
        chosen.push(client.find(name).await?);
    }
    let grace = if args.now { "?grace_ms=0" } else { "" };
    let mut killed = Vec::new();
    let mut exit = Exit::Ok;
    for terminal in chosen {
        let Deleted { success, processes_left } = client.delete(&format!("/terminals/{}{grace}", terminal.id)).await?;
        if processes_left > 0 {
            ui.warn(&format!("{}: {processes_left} processes could not be ended", terminal.name));
            exit = Exit::Failed;
        }
        killed.push(json!({ "id": terminal.id, "success": success, "processes_left": processes_left }));
    }
    ui.done(&killed, String::new);
    Ok(exit)
}

//! `posse exit`: ask the program to leave.

use crate::client::{Client, Repeat};
use crate::error::{Error, Exit};
use crate::ui::Ui;

/// Ask the program in a terminal to leave
///
/// An agent is asked in its own words, if it listens; everything else as closing its window would.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  posse exit reviewer")]
pub(crate) struct Args {
    /// The terminal: its id, the beginning of it, or its name
    terminal: String,
}

pub(crate) async fn run(args: Args, ui: &Ui) -> Result<Exit, Error> {
    let (mut client, terminal) = Client::with_terminal(&args.terminal).await?;
    client.act(&format!("/terminals/{}/exit", terminal.id), &(), Repeat::Safe, ui).await?;
    if ui.interactive() {
        ui.say(&format!("asked {} to leave; `posse wait {} --until exited` waits for it", terminal.name, terminal.id));
    }
    Ok(Exit::Ok)
}

//! `posse approve` and `posse deny`: answer what an agent asks.

use posse_server::api::types::{AnswerIn, Answered};

use crate::client::{Client, Repeat};
use crate::error::{Error, Exit};
use crate::ui::Ui;

/// Accept what an agent asks
///
/// Chooses the option that allows this once and nothing else. Where there is none, say which option you mean: `posse show`
/// lists them. The question is read again before a key is pressed, and seen to be gone afterwards. `posse audit show` has it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  posse approve reviewer                this once
  posse approve reviewer --option 2     this option, whatever it allows")]
pub(crate) struct Approve {
    /// The terminal: its id, the beginning of it, or its name
    terminal: String,
    /// Choose this option, counted from 1
    #[arg(long, value_name = "N")]
    option: Option<u32>,
    /// Answer only if this is still the question, by the id `posse show --json` gives it
    #[arg(long, value_name = "ID")]
    dialog: Option<String>,
}

/// Refuse what an agent asks
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  posse deny reviewer")]
pub(crate) struct Deny {
    /// The terminal: its id, the beginning of it, or its name
    terminal: String,
    /// Refuse only if this is still the question, by the id `posse show --json` gives it
    #[arg(long, value_name = "ID")]
    dialog: Option<String>,
}

pub(crate) async fn approve(args: Approve, ui: &Ui) -> Result<Exit, Error> {
    answer(&args.terminal, "approve", &AnswerIn { dialog: args.dialog, option: args.option }, ui).await
}

pub(crate) async fn deny(args: Deny, ui: &Ui) -> Result<Exit, Error> {
    answer(&args.terminal, "deny", &AnswerIn { dialog: args.dialog, option: None }, ui).await
}

async fn answer(terminal: &str, verb: &str, body: &AnswerIn, ui: &Ui) -> Result<Exit, Error> {
    let mut client = Client::connect().await?;
    let terminal = client.find(terminal).await?;
    let done: Answered = client.post(&format!("/terminals/{}/{verb}", terminal.id), body, Repeat::Never).await?;
    ui.done(&done, String::new);
    Ok(Exit::Ok)
}

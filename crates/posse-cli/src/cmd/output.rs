//! `posse output`: what a terminal has printed, as text.

use posse_api::Output;

use crate::client::Client;
use crate::error::{Error, Exit};
use crate::ui::Ui;

/// Print what a terminal has printed
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  posse output reviewer           everything it has printed
  posse output reviewer --last    what it said last
  posse output build --tail 20    the last rows of its screen")]
pub(crate) struct Args {
    /// The terminal: its id, the beginning of it, or its name
    terminal: String,
    /// Only what came since text was last sent to it
    #[arg(long, conflicts_with = "tail")]
    last: bool,
    /// Only the last lines on its screen
    #[arg(long, value_name = "LINES", num_args = 0..=1, default_missing_value = "5")]
    tail: Option<usize>,
}

pub(crate) async fn run(args: Args, ui: &Ui) -> Result<Exit, Error> {
    let (mut client, terminal) = Client::with_terminal(&args.terminal).await?;
    let query = match (args.last, args.tail) {
        (true, _) => "mode=last".to_owned(),
        (_, Some(lines)) => format!("mode=tail&lines={lines}"),
        _ => "mode=full".to_owned(),
    };
    let output: Output = client.get(&format!("/terminals/{}/output?{query}", terminal.id)).await?;
    ui.answer(&output, || {
        let end = if output.output.is_empty() || output.output.ends_with('\n') { "" } else { "\n" };
        format!("{}{end}", output.output)
    });
    Ok(Exit::Ok)
}

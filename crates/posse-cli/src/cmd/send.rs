//! `posse send`: type into a terminal.

use std::io::{IsTerminal, Read};

use posse_api::Input;
use posse_core::keys;

use crate::client::{Client, Repeat, new_writer};
use crate::error::{Error, Exit};
use crate::ui::Ui;

/// Type into a terminal
///
/// The text is pasted and Enter is pressed after it. It is typed once, even if the daemon dies in the middle.
///
/// An agent gets it with proof: typed into its empty input field, seen there, submitted, seen to be taken. While it works or
/// asks something the text is refused; `y` and `n` answer a question about a permission. `--key` and `--raw` type as they are.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  posse send reviewer 'Read README.md and say what this is.'
  posse send reviewer - < task.md       what standard input has
  posse send build --key ctrl-c         a key instead of text

Keys: enter esc tab shift-tab backspace space delete up down left right home end pageup pagedown f1..f12
ctrl-a..ctrl-z alt-X, or a single character.")]
pub(crate) struct Args {
    /// The terminal: its id, the beginning of it, or its name
    terminal: String,
    /// The text; several words are joined by spaces, `-` reads standard input
    text: Vec<String>,
    /// Do not press Enter after the text
    #[arg(long)]
    no_enter: bool,
    /// Type the text as it is, escape characters included, instead of pasting it
    #[arg(long)]
    raw: bool,
    /// Press a key instead (may be given several times)
    #[arg(long, value_name = "KEY", conflicts_with_all = ["text", "raw", "no_enter"])]
    key: Vec<String>,
}

pub(crate) async fn run(args: Args, ui: &Ui) -> Result<Exit, Error> {
    let input = input(&args)?;
    let (mut client, terminal) = Client::with_terminal(&args.terminal).await?;
    client.act(&format!("/terminals/{}/input", terminal.id), &input, Repeat::Safe, ui).await?;
    Ok(Exit::Ok)
}

fn input(args: &Args) -> Result<Input, Error> {
    // The writer's number makes the request safe to repeat.
    let of = |message, enter, raw| Input {
        message,
        enter: Some(enter),
        raw: Some(raw),
        writer: Some(new_writer()),
        sequence: Some(1),
        ..Input::default()
    };
    if !args.key.is_empty() {
        let mut message = String::new();
        for name in &args.key {
            let bytes = keys::key(name)
                .ok_or_else(|| Error::usage(format!("unknown key {name:?}; `posse send --help` lists them")))?;
            message.push_str(&String::from_utf8_lossy(&bytes));
        }
        return Ok(of(message, false, true));
    }
    let from_stdin = args.text == ["-"] || (args.text.is_empty() && !std::io::stdin().is_terminal());
    let message = if from_stdin {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map_err(Error::io("cannot read standard input"))?;
        text.truncate(text.trim_end_matches('\n').len());
        text
    } else {
        args.text.join(" ")
    };
    Ok(of(message, !args.no_enter, args.raw))
}

//! The `posse` command: one file per command in `cmd`, all of them clients of the daemon's API.

mod client;
mod cmd;
mod config;
mod error;
mod event_stream;
mod foot;
mod ui;

use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;

use crate::error::Exit;

/// Which posse this is, with the commit it was made from where that is known (see build.rs).
pub(crate) const VERSION: &str = env!("POSSE_VERSION");

fn main() -> ExitCode {
    let cli = match cmd::Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print();
            return match error.kind() {
                ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Exit::Ok.into(),
                _ => Exit::Usage.into(),
            };
        }
    };
    let ui = ui::Ui::new(cli.json, cli.quiet);
    match cmd::run(cli, &ui) {
        Ok(exit) => exit.into(),
        Err(error) => {
            ui.error(&error);
            error.exit().into()
        }
    }
}

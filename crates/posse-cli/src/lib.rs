//! The command line: one file per command in `cmd`, all of them clients of the daemon's API.
//!
//! This crate does not link the daemon. The few things that must work while no daemon can answer come from the binary
//! (`DaemonFunctions`).

mod client;
mod cmd;
mod config;
mod daemon;
mod error;
mod event_stream;
mod scratch_home;
mod status_area;
mod ui;

use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;

pub use crate::daemon::{DaemonFunctions, ReadAnchor, ServeFailure};
use crate::error::{Error, Exit};

/// Runs the command that was typed.
pub fn main(daemon: DaemonFunctions) -> ExitCode {
    daemon::provide(daemon);
    let cli = match cmd::Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) => {
            let _ = error.print();
            return Exit::Ok.into();
        }
        Err(error) => {
            if std::env::args_os().take_while(|word| word != "--").any(|word| word == "--json") {
                ui::Ui::new(true, false).error(&Error::usage(words(&error)));
            } else {
                let _ = error.print();
            }
            return Exit::Usage.into();
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

/// Returns a usage error as one line, for programs.
fn words(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let first = text.split("\n\n").next().unwrap_or_default();
    let lines: Vec<&str> = first.trim_start_matches("error: ").lines().map(str::trim).collect();
    lines.join(" ")
}

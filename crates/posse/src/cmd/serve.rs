//! `posse serve`: the daemon.

use std::io::IsTerminal;

use posse_term::client as keeper;
use tracing_subscriber::EnvFilter;

use crate::client;
use crate::error::{Error, Exit};
use crate::ui::Ui;

/// Start the daemon (every command does that by itself)
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Stay here and log to standard error, instead of going to the background
    #[arg(long)]
    foreground: bool,
}

pub(crate) fn run(args: &Args, ui: &Ui) -> Result<Exit, Error> {
    let places = client::places()?;
    places.prepare()?;
    let executable = client::executable()?;
    if args.foreground {
        start_log();
        posse_server::serve(posse_server::Settings { places, executable })?;
        return Ok(Exit::Ok);
    }
    super::on_runtime(async {
        let pid = keeper::start_daemon(&places, &executable).await?;
        let value = serde_json::json!({ "pid": pid, "socket": places.daemon_socket(), "log": places.log() });
        ui.answer(&value, || {
            format!(
                "the daemon runs (process {pid})\nsocket  {}\nlog     {}\n",
                places.daemon_socket().display(),
                places.log().display()
            )
        });
        Ok(Exit::Ok)
    })
}

/// Standard error is the log: a file when the keeper started us, a window when a person did.
fn start_log() {
    let filter = EnvFilter::try_from_env("POSSE_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr)
        .try_init();
}

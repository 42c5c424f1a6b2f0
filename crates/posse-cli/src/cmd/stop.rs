//! `posse stop`: stops the daemon. Terminals keep running, unless they are to end too.

use std::time::Duration;

use posse_api::{COMMAND, ProblemKind, Stopped};
use posse_term::client::{self as keeper, KeeperError};
use posse_term::lock;

use crate::client::Client;
use crate::error::{Error, Exit};
use crate::ui::{Ui, plain};

/// Stop the daemon; terminals go on
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  posse stop                    terminals go on
  posse stop --all              end them too")]
pub(crate) struct Args {
    /// End all terminals too, with every process in them
    #[arg(long)]
    all: bool,
}

pub(crate) async fn run(args: Args, ui: &Ui) -> Result<Exit, Error> {
    let running = Client::connect_if_running().await?;
    let client = match (running, args.all) {
        (Some(client), _) => Some(client),
        // Terminals may run without a daemon, but ending them requires one.
        (None, true) if crate::client::paths()?.holds_terminals() => match Client::connect().await {
            Err(error)
                if matches!(error, Error::Keeper(KeeperError::Start(_))) || error.kind() == ProblemKind::Database =>
            {
                return end_without_daemon(&error, ui).await;
            }
            connected => Some(connected?),
        },
        (None, _) => None,
    };
    let Some(mut client) = client else {
        ui.done(&Stopped { running: vec![], problem: None, unsaved: None }, || "no daemon is running\n".into());
        return Ok(Exit::Ok);
    };
    let stopped = client.stop(args.all).await?;
    if let Some(problem) = &stopped.problem {
        let message = format!("the daemon has stopped, but {problem}");
        return Err(Error::failed(message).with_hint("`posse stop --all` ends its terminals then"));
    }
    if let Some(why) = &stopped.unsaved {
        ui.warn(&format!("{why}: the keeper remembers how terminals ended until a daemon can write it"));
    }
    ui.done(&stopped, || {
        let mut text = "the daemon has stopped\n".to_owned();
        if !stopped.running.is_empty() {
            text.push_str(
                "these terminals go on without it (`posse ls` starts it again, `posse stop --all` ends them):\n",
            );
        }
        for terminal in &stopped.running {
            let what =
                if terminal.provider == COMMAND { terminal.command.join(" ") } else { terminal.provider.clone() };
            text.push_str(&format!("  {}  {}  {}\n", terminal.id, terminal.name, plain(&what)));
        }
        text
    });
    Ok(Exit::Ok)
}

/// The time programs have to end by themselves.
const GRACE_MS: u32 = 3_000;
/// The time a keeper without terminals has to exit.
const LEAVING: Duration = Duration::from_secs(10);

/// Ends all terminals by the keeper alone.
async fn end_without_daemon(why: &Error, ui: &Ui) -> Result<Exit, Error> {
    let paths = crate::client::paths()?;
    ui.warn(&format!("{why}; the keeper ends the terminals by itself"));
    let (ended, left) = match keeper::end_all(&paths, GRACE_MS).await {
        // It has left meanwhile, because nothing was left to keep.
        Err(KeeperError::NotRunning | KeeperError::Closed) => (0, 0),
        other => other?,
    };
    // Its process is gone when its lock is free.
    let lock = paths.keeper_lock();
    let _ = tokio::task::spawn_blocking(move || lock::acquire(&lock, LEAVING)).await;
    if left > 0 {
        return Err(Error::failed(format!("{left} processes could not be ended")));
    }
    ui.done(&Stopped { running: vec![], problem: Some(why.to_string()), unsaved: None }, || {
        format!("no daemon is running; terminals ended: {ended}\n")
    });
    Ok(Exit::Ok)
}

//! `posse wait`: until a terminal has a certain status.

use std::time::Duration;

use jiff::SignedDuration;
use posse_api::Terminal;
use posse_core::status::{self, StatusKind};

use crate::client::Client;
use crate::error::{BadArgument, Error, Exit};
use crate::ui::{Ui, plain};

/// Wait until a terminal has a certain status
///
/// Nothing is polled: the answer comes when the status changes. Fails when the time is up, and when the program
/// ends and can no longer get there.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  posse wait reviewer                                     until it does not work any more
  posse wait reviewer --until waiting_user_answer,completed
  posse wait build --until exited --timeout 10m")]
pub(crate) struct Args {
    /// The terminal: its id, the beginning of it, or its name
    terminal: String,
    /// What to wait for: idle, processing, waiting_user_answer, completed, error, or exited; several are
    /// separated by commas [default: anything but processing]
    #[arg(long, value_name = "STATUS", value_delimiter = ',', value_parser = goal)]
    until: Vec<Goal>,
    /// Give up after this long, like 90s, 10m, 2h
    #[arg(long, value_name = "TIME", value_parser = duration)]
    timeout: Option<Duration>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Goal {
    Status(StatusKind),
    Exited,
}

fn goal(text: &str) -> Result<Goal, BadArgument> {
    match text {
        "exited" => Ok(Goal::Exited),
        _ => text.parse().map(Goal::Status).map_err(BadArgument::Goal),
    }
}

/// A number alone is in seconds.
fn duration(text: &str) -> Result<Duration, BadArgument> {
    let seconds = text.parse().map(Duration::from_secs).ok();
    let duration = seconds.or_else(|| text.parse::<SignedDuration>().ok()?.try_into().ok());
    duration.ok_or_else(|| BadArgument::Duration(text.to_owned()))
}

pub(crate) async fn run(args: Args, ui: &Ui) -> Result<Exit, Error> {
    let (client, terminal) = Client::with_terminal(&args.terminal).await?;
    let waited = wait(client, terminal, &args.until);
    let terminal = match args.timeout {
        None => waited.await?,
        Some(timeout) => match tokio::time::timeout(timeout, waited).await {
            Ok(waited) => waited?,
            Err(_) => return Err(Error::failed(format!("{} did not get there within {timeout:?}", args.terminal))),
        },
    };
    ui.answer(&terminal, || match &terminal.exit {
        Some(exit @ (status::Exit::Code(_) | status::Exit::Signal(_))) => format!("{exit}\n"),
        Some(status::Exit::Lost) | None => format!("{} ({})\n", terminal.status.status, plain(&terminal.status.reason)),
    });
    Ok(Exit::Ok)
}

async fn wait(mut client: Client, mut terminal: Terminal, goals: &[Goal]) -> Result<Terminal, Error> {
    let path = format!("/terminals/{}", terminal.id);
    client.only_running();
    // Subscribe before reading the state, so that no change in between is lost.
    let mut events = client.listen(None).await?;
    loop {
        terminal = client.get(&path).await?;
        if reached(&terminal, goals) {
            return Ok(terminal);
        }
        if terminal.exit.is_some() {
            let message = format!("{} {} and will not get there", terminal.name, terminal.status.reason);
            return Err(Error::failed(message));
        }
        events.until(|event| event.changes(terminal.id)).await?;
    }
}

fn reached(terminal: &Terminal, goals: &[Goal]) -> bool {
    // The status is the one from before the last input, until the agent reacts.
    let stale = terminal.status.awaiting_reaction;
    if goals.is_empty() {
        return terminal.status.status != StatusKind::Processing && !stale;
    }
    goals.iter().any(|goal| match goal {
        Goal::Status(kind) => terminal.status.status == *kind && !stale,
        Goal::Exited => terminal.exit.is_some(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_from_before_the_last_input_is_not_what_is_waited_for() {
        let terminal = |status: &str, awaiting_reaction: bool| -> Terminal {
            serde_json::from_value(serde_json::json!({
                "id": "00c0ffee", "name": "a", "session_name": "s", "provider": "codex", "agent_profile": null,
                "mode": null, "status": status, "reason": "rule idle", "waiting_kind": null,
                "since": "2026-01-01T00:00:00Z", "epoch": 3, "awaiting_reaction": awaiting_reaction, "title": "",
                "working_directory": "/", "command": [], "size": { "rows": 24, "cols": 80 }, "pid": 1, "exit": null,
                "created_at": "2026-01-01T00:00:00Z", "last_active": "2026-01-01T00:00:00Z",
            }))
            .unwrap()
        };
        let completed = [Goal::Status(StatusKind::Completed)];
        for goals in [&[][..], &completed] {
            assert!(reached(&terminal("completed", false), goals));
            assert!(!reached(&terminal("completed", true), goals));
            assert!(!reached(&terminal("processing", false), goals));
        }
    }

    #[test]
    fn times_are_read_as_people_write_them() {
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("90"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("10m"), Ok(Duration::from_secs(600)));
        assert_eq!(duration("2h"), Ok(Duration::from_secs(7200)));
        for wrong in ["", "s", "1d", "-1s", "99999999999999999999s", "99999999999999999h"] {
            assert!(duration(wrong).is_err(), "{wrong:?} was accepted");
        }
    }
}

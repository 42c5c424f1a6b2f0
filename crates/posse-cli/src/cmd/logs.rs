//! `posse logs`: prints events.

use posse_api::LogEvent;
use posse_core::ids::TerminalId;

use crate::client::Client;
use crate::error::{Error, Exit};
use crate::ui::{Colour, Ui, date_time, plain};

/// Show what happened, from the journal
///
/// The daemon's own log, for when something is wrong with posse itself, is the file posse.log in its home.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  posse logs                    the last 50 events
  posse logs reviewer -n 10     the last of one terminal
  posse logs -f --json          as they happen, one JSON object a line")]
pub(crate) struct Args {
    /// Only what happened to this terminal
    terminal: Option<String>,
    /// Maximum number of events
    #[arg(long, short = 'n', default_value_t = 50)]
    lines: usize,
    /// Print new events as they come
    #[arg(long, short)]
    follow: bool,
}

pub(crate) async fn run(args: Args, ui: &Ui) -> Result<Exit, Error> {
    let mut client = Client::connect().await?;
    let terminal = match &args.terminal {
        Some(name) => Some(client.find(name).await?.id),
        None => None,
    };
    let of_terminal = terminal.map(|id| format!("&terminal={id}")).unwrap_or_default();
    // Always request at least one event: it determines where new events begin.
    let events: Vec<LogEvent> = client.get(&format!("/log?limit={}{of_terminal}", args.lines.max(1))).await?;
    let last = events.last().and_then(|event| event.seq).unwrap_or(0);
    for event in events.iter().skip(events.len().saturating_sub(args.lines)) {
        ui.item(event, || text(event, ui));
    }
    if !args.follow {
        return Ok(Exit::Ok);
    }
    client.only_running();
    tokio::select! {
        ended = follow(&client, terminal, last, ui) => ended,
        () = ui.unread() => Ok(Exit::Ok),
    }
}

async fn follow(client: &Client, terminal: Option<TerminalId>, last: i64, ui: &Ui) -> Result<Exit, Error> {
    // From the last event shown on, so that a daemon that restarts in between costs nothing.
    let mut live = client.listen(Some(last)).await?;
    let wanted = |event: &LogEvent| event.seq.is_some() && (terminal.is_none() || event.terminal == terminal);
    while !ui.is_unread() {
        if let Some(event) = live.until(wanted).await? {
            ui.item(&event, || text(&event, ui));
        }
    }
    Ok(Exit::Ok)
}

fn text(event: &LogEvent, ui: &Ui) -> String {
    let time = date_time(event.at);
    let terminal = event.terminal.map_or_else(|| " ".repeat(8), |id| id.to_string());
    let body = serde_json::to_value(&event.body).unwrap_or_default();
    let facts = match &body["data"] {
        serde_json::Value::Object(facts) => facts
            .iter()
            .filter(|(name, value)| !value.is_null() && !matches!(name.as_str(), "since" | "epoch"))
            .map(|(name, value)| match name.as_str() {
                // The subject is more useful than the whole value.
                "dialog" => format!("asks={} {}", value["question"], value["subject"]),
                _ => format!("{name}={}", value.as_str().map_or_else(|| value.to_string(), str::to_owned)),
            })
            .collect::<Vec<_>>()
            .join(" "),
        other => other.to_string(),
    };
    let facts = plain(&facts);
    format!(
        "{} {} {:<17} {facts}",
        ui.paint(&time, Colour::Dim),
        ui.paint(&terminal, Colour::Bold),
        body["kind"].as_str().unwrap_or_default()
    )
}

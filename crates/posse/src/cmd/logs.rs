//! `posse logs`: what happened.

use posse_server::record::LogEvent;

use crate::client::Client;
use crate::error::{Error, Exit};
use crate::ui::{Colour, Ui};

/// Show what happened, from the journal
///
/// The daemon's own log, for when something is wrong with posse itself, is the file posse.log in its home.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only what happened to this terminal
    terminal: Option<String>,
    /// How many events
    #[arg(long, short = 'n', default_value_t = 50)]
    lines: usize,
    /// Go on with what happens from now on
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
    let events: Vec<LogEvent> = client.get(&format!("/log?limit={}{of_terminal}", args.lines)).await?;
    let mut last = events.last().and_then(|event| event.seq);
    for event in &events {
        ui.item(event, || text(event, ui));
    }
    if !args.follow {
        return Ok(Exit::Ok);
    }
    loop {
        // From the last event shown on, so that a daemon that restarts in between costs nothing.
        let mut live = Client::connect_to(client.places().clone()).await?.events(Some(last.unwrap_or(0))).await?;
        while let Some(event) = live.next().await {
            last = event.seq.or(last);
            if event.seq.is_some() && (terminal.is_none() || event.terminal == terminal) {
                ui.item(&event, || text(&event, ui));
            }
        }
    }
}

fn text(event: &LogEvent, ui: &Ui) -> String {
    let time = event.at.to_zoned(jiff::tz::TimeZone::system()).strftime("%F %T").to_string();
    let terminal = event.terminal.map_or_else(|| " ".repeat(8), |id| id.to_string());
    let facts = match &event.data {
        serde_json::Value::Object(facts) => facts
            .iter()
            .filter(|(name, value)| !value.is_null() && !matches!(name.as_str(), "since" | "epoch"))
            .map(|(name, value)| format!("{name}={}", value.as_str().map_or_else(|| value.to_string(), str::to_owned)))
            .collect::<Vec<_>>()
            .join(" "),
        other => other.to_string(),
    };
    let facts: String = facts.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    format!("{} {} {:<17} {facts}", ui.paint(&time, Colour::Dim), ui.paint(&terminal, Colour::Bold), event.kind)
}

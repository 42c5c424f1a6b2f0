//! `posse show`: one terminal, and its screen.

use posse_api::Terminal;
use posse_core::screen::Screen;
use posse_core::visible;
use serde::Serialize;

use super::ls::{answers_to, status_of};
use crate::client::Client;
use crate::error::{Error, Exit};
use crate::ui::{Colour, Ui, age, plain};

/// Show a terminal: what is known of it, and its screen
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  posse show reviewer           what is known of it, what it asks, and its screen
  posse show reviewer --json")]
pub(crate) struct Args {
    /// The terminal: its id, the beginning of it, or its name
    terminal: String,
}

#[derive(Serialize)]
struct ShownTerminal {
    #[serde(flatten)]
    terminal: Terminal,
    screen: Screen,
}

pub(crate) async fn run(args: Args, ui: &Ui) -> Result<Exit, Error> {
    let (mut client, terminal) = Client::with_terminal(&args.terminal).await?;
    let screen: Screen = client.get(&format!("/terminals/{}/screen", terminal.id)).await?;
    let shown = ShownTerminal { terminal, screen };
    ui.answer(&shown, || text(&shown, ui));
    Ok(Exit::Ok)
}

fn text(shown: &ShownTerminal, ui: &Ui) -> String {
    let t = &shown.terminal;
    let (status, colour) = status_of(t);
    let status = ui.paint(status, colour);
    let mut facts = vec![
        ("id", t.id.to_string()),
        ("name", t.name.to_string()),
        ("session", t.session_name.to_string()),
        ("status", format!("{status} for {} ({})", age(t.status.since), plain(&t.status.reason))),
        ("command", plain(&t.command.join(" "))),
        ("directory", plain(&t.working_directory)),
        ("size", t.size.to_string()),
    ];
    if !t.title.is_empty() {
        facts.push(("title", plain(&t.title)));
    }
    if let Some(mode) = t.mode {
        facts.push(("agent", format!("{}, mode {mode}", t.provider)));
    }
    if let Some(dialog) = &t.status.dialog {
        facts.push(("asks", plain(&dialog.question)));
        facts.extend(dialog.in_full().iter().map(|line| ("", plain(line))));
        for (number, option) in (1..).zip(&dialog.options) {
            facts.push(("", format!("{number}. {}", plain(&option.label))));
        }
        facts.push(("", format!("{} answers it", answers_to(t, t.name.as_str()))));
    }
    if let Some(pid) = t.pid {
        facts.push(("process", pid.to_string()));
    }
    let mut text: String = facts
        .into_iter()
        .map(|(name, value)| format!("{} {value}\n", ui.paint(&format!("{name:<10}"), Colour::Dim)))
        .collect();
    let rule =
        "─".repeat(usize::from(t.size.cols()).min(crate::ui::window().map_or(80, |(_, cols)| usize::from(cols))));
    let rule = ui.paint(&rule, Colour::Dim);
    text.push_str(&format!("{rule}\n{}{rule}\n", visible::lines(&shown.screen.text())));
    text
}

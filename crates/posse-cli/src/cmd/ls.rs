//! `posse ls`: the terminals there are. Also what plain `posse` shows.

use clap::CommandFactory;
use posse_api::{COMMAND, Terminal};
use posse_core::delivery::Suggested;
use posse_core::detect::dialog::short;
use posse_core::status::{Exit, StatusKind};

use crate::client::Client;
use crate::error::{Error, Exit as ExitCode};
use crate::ui::{Cell, Colour, Ui, age, colour_of};

/// List the terminals
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  posse ls                      all terminals, what each does, and what is asked
  posse ls --session night      only those of a session")]
pub(crate) struct Args {
    /// Only those of this session
    #[arg(long, value_name = "NAME")]
    session: Option<String>,
}

pub(crate) async fn run(args: Args, ui: &Ui) -> Result<ExitCode, Error> {
    let mut client = Client::connect().await?;
    let mut terminals: Vec<Terminal> = client.get("/terminals").await?;
    if let Some(problem) = client.problem() {
        ui.warn(problem);
    }
    if let Some(session) = &args.session {
        let of_session = |t: &Terminal| {
            let name = t.session_name.as_str();
            name == session || name.strip_prefix("posse-") == Some(session)
        };
        terminals.retain(of_session);
    }
    ui.answer(&terminals, || {
        if terminals.is_empty() {
            ui.say("no terminals; start one with `posse launch -- COMMAND`");
            return String::new();
        }
        table(&terminals, ui)
    });
    if let Some(how) = how_to_answer(&terminals) {
        ui.say(&how);
    }
    Ok(ExitCode::Ok)
}

/// `posse` alone: help, and what runs now. Starts nothing.
pub(crate) fn overview(ui: &Ui) -> Result<ExitCode, Error> {
    let mut terminals: Vec<Terminal> = Vec::new();
    // The help is shown even if the daemon cannot be asked.
    let _ = super::on_runtime(async {
        if let Some(mut client) = Client::connect_if_running().await? {
            terminals = client.get("/terminals").await?;
        }
        Ok(ExitCode::Ok)
    });
    ui.answer(&terminals, || {
        let running =
            if terminals.is_empty() { String::new() } else { format!("Running now:\n{}", table(&terminals, ui)) };
        format!("{}\n{running}", super::Cli::command().render_help())
    });
    Ok(ExitCode::Ok)
}

/// The question that a terminal waits for, in a line.
pub(super) fn asked(terminal: &Terminal) -> Option<String> {
    let status = &terminal.status;
    if status.status != StatusKind::WaitingUserAnswer {
        return None;
    }
    let kind = status.waiting_kind.map(|kind| format!(" ({kind})")).unwrap_or_default();
    let question = status.dialog.as_ref().map(|dialog| format!(": {}", dialog.about())).unwrap_or_default();
    Some(format!("asks{kind}{question}"))
}

/// The commands that can answer the question of this terminal, and no other question.
pub(super) fn answers_to(terminal: &Terminal, called: &str) -> String {
    let dialog = terminal.status.dialog.as_ref();
    let question = dialog.map(|dialog| format!(" --question {}", short(&dialog.id))).unwrap_or_default();
    Suggested::of(dialog, terminal.status.waiting_kind).commands(called, &question)
}

/// For those that wait, by name.
fn how_to_answer(terminals: &[Terminal]) -> Option<String> {
    let waits = |t: &&Terminal| t.status.status == StatusKind::WaitingUserAnswer;
    let waiting: Vec<&Terminal> = terminals.iter().filter(waits).collect();
    let (first, name) = waiting.first().map(|first| (first, first.name.as_str()))?;
    let all: Vec<&str> = waiting.iter().map(|t| t.name.as_str()).collect();
    let (all, answers) = (all.join(", "), answers_to(first, name));
    Some(format!("waiting for you: {all}; `posse show {name}` has the question, {answers} answers it"))
}

/// The status of a terminal for people. A program that has ended is no error to them, as long as its end was seen.
pub(super) fn status_of(terminal: &Terminal) -> (&'static str, Colour) {
    let status = terminal.status.status;
    match terminal.exit {
        Some(Exit::Code(0)) => ("exited", Colour::Dim),
        Some(Exit::Code(_) | Exit::Signal(_)) => ("exited", Colour::Red),
        Some(Exit::Lost) | None => (status.as_str(), colour_of(status)),
    }
}

pub(crate) fn table(terminals: &[Terminal], ui: &Ui) -> String {
    let row = |t: &Terminal| {
        let (word, colour) = status_of(t);
        let what = match asked(t) {
            Some(asked) => asked,
            None if !t.title.is_empty() => t.title.clone(),
            None if t.provider == COMMAND => t.command.join(" "),
            None => t.provider.clone(),
        };
        vec![
            Cell::new(t.id.to_string(), Colour::Bold),
            Cell::from(t.name.to_string()),
            Cell::from(t.session_name.to_string()),
            Cell::new(word, Some(colour)),
            Cell::from(age(t.status.since)),
            Cell::new(t.status.reason.clone(), Colour::Dim),
            Cell::from(what),
        ]
    };
    ui.table(&["ID", "NAME", "SESSION", "STATUS", "FOR", "WHY", "TITLE OR COMMAND"], terminals.iter().map(row))
}

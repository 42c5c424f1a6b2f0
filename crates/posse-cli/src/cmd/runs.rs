//! `posse runs` and `posse run`: the runs there are, and one of them.

use posse_api::{RunView, StopRun, Success};
use posse_core::run::RunStatus;

use super::render;
use super::run_log::{self, LogRequest};
use super::tail::RunKind;
use crate::client::{Client, Repeat};
use crate::error::{Error, Exit};
use crate::ui::{Cell, Colour, Ui, age};

/// List the runs, newest first
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  posse runs                    the last 20
  posse runs -n 100 --json")]
pub(crate) struct ListArgs {
    /// At most so many
    #[arg(long, short = 'n', default_value_t = 20)]
    lines: u32,
}

/// Look at a run, stop it, read what happened
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  posse run show 1a2b
  posse run logs 1a2b -f
  posse run stop 1a2b")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Where it is, and why
    #[command(after_help = "Examples:\n  posse run show 1a2b")]
    Show {
        /// Its id, or the beginning of it
        run: String,
    },
    /// Stop it; `posse loop --resume` goes on with it
    #[command(after_help = "Examples:\n  posse run stop 1a2b")]
    Stop {
        /// Its id, or the beginning of it
        run: String,
    },
    /// What happened in it
    #[command(
        after_help = "Examples:\n  posse run logs 1a2b -f          as it happens\n  posse run logs 1a2b --all       with prompts and answers, as JSON"
    )]
    Logs {
        /// Its id, or the beginning of it
        run: String,
        /// Go on with what happens from now on
        #[arg(long, short)]
        follow: bool,
        /// Everything: prompts and answers too, as JSON
        #[arg(long)]
        all: bool,
    },
}

pub(crate) async fn list(args: ListArgs, ui: &Ui) -> Result<Exit, Error> {
    let mut client = Client::connect().await?;
    let runs: Vec<RunView> = client.get(&format!("/runs?limit={}", args.lines)).await?;
    ui.answer(&runs, || {
        if runs.is_empty() {
            ui.say("no runs; begin one with `posse loop`");
            return String::new();
        }
        table(&runs, ui)
    });
    Ok(Exit::Ok)
}

pub(crate) async fn run(args: Args, ui: &Ui) -> Result<Exit, Error> {
    let mut client = Client::connect().await?;
    match args.command {
        Command::Show { run } => {
            let view = find(&mut client, &run).await?;
            ui.answer(&view, || text(&view, ui));
        }
        Command::Stop { run } => {
            let view = find(&mut client, &run).await?;
            let why = Some("`posse run stop`".to_owned());
            let stopped: Success =
                client.post(&format!("/runs/{}/stop", view.id), &StopRun { why }, Repeat::Safe).await?;
            ui.done(&stopped, String::new);
            ui.say(&format!("`posse loop --resume {}` goes on with it", view.id));
        }
        Command::Logs { run, follow, all } => {
            let id = find(&mut client, &run).await?.id;
            let (runs, follow) = (vec![id], follow.then_some(id));
            let request = LogRequest { kind: RunKind::Loop, runs, follow, about: None, raw: false, json: all };
            run_log::print(client, request, ui).await?;
        }
    }
    Ok(Exit::Ok)
}

/// A run by its id or the beginning of it.
async fn find(client: &mut Client, name: &str) -> Result<RunView, Error> {
    let runs: Vec<RunView> = client.get("/runs?limit=10000").await?;
    let mut fits = runs.into_iter().filter(|run| !name.is_empty() && run.id.as_str().starts_with(name));
    match (fits.next(), fits.next()) {
        (Some(run), None) => Ok(run),
        (None, _) => Err(Error::Failed {
            message: format!("there is no run {name:?}"),
            hint: Some("`posse runs` shows those there are".into()),
        }),
        (Some(_), Some(_)) => Err(Error::Usage(format!("{name:?} fits several runs; give more of the id"))),
    }
}

fn colour(status: RunStatus) -> Colour {
    match status {
        RunStatus::Running => Colour::Blue,
        RunStatus::Parked | RunStatus::Stopped => Colour::Yellow,
        RunStatus::Passed => Colour::Green,
        RunStatus::Failed => Colour::Red,
    }
}

/// What it does now, or why it does not.
fn doing(view: &RunView) -> String {
    match (&view.turn, &view.stopped) {
        (_, Some(stopped)) => stopped.why.lines().next().unwrap_or_default().to_owned(),
        (Some(turn), None) => format!("{}, turn {}", turn.key, turn.number),
        (None, None) => String::new(),
    }
}

fn table(runs: &[RunView], ui: &Ui) -> String {
    let rows: Vec<Vec<Cell>> = runs
        .iter()
        .map(|run| {
            vec![
                Cell::new(run.id.to_string(), Some(Colour::Bold)),
                Cell::new(run.status.to_string(), Some(colour(run.status))),
                Cell::from(format!("{}/{}", run.round, run.max_rounds)),
                Cell::from(run.phase.clone()),
                Cell::from(age(run.created)),
                Cell::from(run.directory.clone()),
                Cell::new(doing(run), Some(Colour::Dim)),
            ]
        })
        .collect();
    ui.table(&["ID", "STATUS", "ROUND", "PHASE", "AGE", "DIRECTORY", "DOING"], &rows)
}

fn text(view: &RunView, ui: &Ui) -> String {
    let mut text = format!(
        "run              {}\nstatus           {}\nproject          {}\nround            {} of {}, {}, review {}\nturns            {}\n",
        view.id,
        ui.paint(view.status.as_str(), colour(view.status)),
        view.directory,
        view.round,
        view.max_rounds,
        view.phase,
        view.cycle,
        view.turns,
    );
    let mut add = |name: &str, value: String| text.push_str(&format!("{name:<16} {value}\n"));
    if let Some(turn) = &view.turn {
        let accepted =
            if turn.accepts > 0 { format!(", {} permissions accepted", turn.accepts) } else { String::new() };
        add(
            "turn",
            format!(
                "{} of the {} in terminal {}, for {}{accepted}",
                turn.key,
                turn.role,
                turn.terminal,
                age(turn.since)
            ),
        );
    }
    if let Some(until) = view.parked_until {
        add("parked", format!("until {}", until.to_zoned(jiff::tz::TimeZone::system()).strftime("%F %T")));
    }
    if let Some(stopped) = &view.stopped {
        add("stopped", crate::ui::plain(&stopped.why));
        if !view.status.is_over() {
            add("", format!("`posse loop --resume {}` goes on with it", view.id));
        }
    }
    for (role, terminal) in &view.terminals {
        add(role.as_str(), terminal.to_string());
    }
    for step in &view.steps {
        let name = render::step(step.step);
        add("after", format!("{name}: {}: {}", step.outcome, crate::ui::plain(&step.text)));
    }
    add(
        "accepts",
        if view.auto_accept { "permissions are accepted by posse".into() } else { "a person answers".into() },
    );
    add("answers", view.archive.clone());
    add("state", view.state_file.clone());
    text
}

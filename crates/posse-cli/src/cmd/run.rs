//! `posse runs` and `posse run`: the runs of the loop. The modules below serve runs of all kinds.

pub(super) mod follow;
pub(super) mod followed;
pub(super) mod kind;
pub(super) mod log;
pub(super) mod picture;
pub(super) mod render;
pub(super) mod sessions;
pub(super) mod tail;
mod transcript;

use posse_api::{RunView, StopRun};
use posse_core::run::RunStatus;

use self::kind::RunKind;
use self::log::{LogArgs, LogRequest};
use crate::client::Client;
use crate::error::{Error, Exit};
use crate::ui::{Cell, Colour, Ui, age, date_time, plain};

/// List the runs, newest first
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  posse runs                    the last 20
  posse runs -n 100 --json")]
pub(crate) struct ListArgs {
    /// Maximum number of runs
    #[arg(long, short = 'n', default_value_t = 20)]
    lines: u32,
}

/// Show or stop a run, or read its log
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
    /// Show the state of a run, and the reason
    #[command(after_help = "Examples:\n  posse run show 1a2b")]
    Show {
        /// The id of the run, or its beginning
        run: String,
    },
    /// Stop a run; `posse loop --resume` continues it
    #[command(after_help = "Examples:\n  posse run stop 1a2b")]
    Stop {
        /// The id of the run, or its beginning
        run: String,
    },
    /// Show what happened in a run
    #[command(
        after_help = "Examples:\n  posse run logs 1a2b -f          as it happens\n  posse run logs 1a2b --json      with prompts and answers"
    )]
    Logs {
        /// The id of the run, or its beginning
        run: String,
        /// Print new entries as they come, until the run is over
        #[arg(long, short)]
        follow: bool,
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
            let request = StopRun { why: Some("`posse run stop`".to_owned()) };
            let how_to_continue = format!("`posse loop --resume {}` goes on with it", view.id);
            return RunKind::Loop.stop(view.id, &request, &how_to_continue, (&mut client, ui)).await;
        }
        Command::Logs { run, follow } => {
            let runs = vec![find(&mut client, &run).await?.id];
            let log = LogArgs { follow, raw: false };
            log::print(client, LogRequest { kind: RunKind::Loop, runs, about: None, log }, ui).await?;
        }
    }
    Ok(Exit::Ok)
}

/// A run by its id or the beginning of it.
async fn find(client: &mut Client, name: &str) -> Result<RunView, Error> {
    let fits = |run: &RunView| !name.is_empty() && run.id.as_str().starts_with(name);
    let mut fits = RunKind::Loop.list(client, fits).await?.into_iter();
    match (fits.next(), fits.next()) {
        (Some(run), None) => Ok(run),
        (None, _) => {
            Err(Error::failed(format!("there is no run {name:?}")).with_hint("`posse runs` shows those there are"))
        }
        (Some(_), Some(_)) => Err(Error::usage(format!("{name:?} fits several runs; give more of the id"))),
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

/// The turn that is under way, or the reason why there is none.
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
                Cell::new(run.id.to_string(), Colour::Bold),
                Cell::new(run.status.to_string(), Some(colour(run.status))),
                Cell::from(format!("{}/{}", run.round, run.max_rounds)),
                Cell::from(run.phase.clone()),
                Cell::from(age(run.created)),
                Cell::from(run.directory.clone()),
                Cell::new(doing(run), Colour::Dim),
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
        add("parked", format!("until {}", date_time(until)));
    }
    if let Some(stopped) = &view.stopped {
        add("stopped", plain(&stopped.why));
        if !view.status.is_over() {
            add("", format!("`posse loop --resume {}` goes on with it", view.id));
        }
    }
    for (role, terminal) in &view.terminals {
        add(role.as_str(), terminal.to_string());
    }
    for step in &view.steps {
        let name = render::step(step.step);
        add("after", format!("{name}: {}: {}", step.outcome, plain(&step.text)));
    }
    add(
        "accepts",
        if view.auto_accept { "permissions are accepted by posse".into() } else { "a person answers".into() },
    );
    add("answers", view.archive.clone());
    add("state", view.state_file.clone());
    text
}

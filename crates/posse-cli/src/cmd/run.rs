//! `posse run`: the runs of all kinds, of the loop, of plans and of backlogs.

pub(super) mod find;
pub(super) mod follow;
pub(super) mod log;
pub(super) mod render;
pub(super) mod rows;
pub(super) mod sessions;
pub(super) mod show;
pub(super) mod tail;
mod transcript;

use jiff::Timestamp;
use posse_api::{ResumeIn, RunKind, RunView, StopRun, Success};
use posse_core::engine::StopHow;
use posse_core::review_loop::config::auto_accept_in;

use self::find::RunArg;
use self::follow::{Follower, OnSignal};
use super::launch;
use crate::client::{Client, Repeat};
use crate::config;
use crate::error::{Error, Exit};
use crate::ui::Ui;

/// Look at runs of the loop, of plans and of backlogs, and control them
///
/// Wherever a RUN is asked for, its id or the beginning of it will do; so will a plan's file or the directory of a project, which
/// mean their newest run, or the one that goes on. A path has a slash or a dot in it.
#[derive(Debug, clap::Subcommand)]
#[command(after_help = "\
Examples:
  posse run ls                              all runs, and what each does
  posse run show 1a2b                       one run: how it stands, and why
  posse run log plan.yaml -f                what happens, as it happens
  posse run why plan.yaml 2.1               why a task does not start, and what to do
  posse run answer plan.yaml 2.1 'blue'     answer a task that asked
  posse run stop                            stop the run of this project")]
pub(crate) enum RunCommand {
    /// List the runs, newest first
    #[command(after_help = "Examples:\n  posse run ls\n  posse run ls --kind plan -n 100 --json")]
    Ls {
        /// Only runs of this kind: loop, plan or backlog
        #[arg(long)]
        kind: Option<RunKind>,
        /// Maximum number of runs
        #[arg(long, short = 'n', default_value_t = 20)]
        lines: u32,
    },
    /// Show the state of a run, and the reason
    #[command(after_help = "Examples:\n  posse run show 1a2b\n  posse run show plan.yaml")]
    Show(RunArg),
    Log(log::Args),
    /// Follow a run to its end; Ctrl-C leaves it running
    #[command(after_help = "Examples:\n  posse run follow         the run of this project\n  posse run follow 1a2b")]
    Follow(RunArg),
    /// Stop a run; it can be continued
    #[command(
        after_help = "Examples:\n  posse run stop 1a2b        let what runs finish\n  posse run stop 1a2b --now  end it"
    )]
    Stop {
        #[command(flatten)]
        run: RunArg,
        /// End what runs; otherwise it may finish. A run of the loop always stops at once
        #[arg(long)]
        now: bool,
    },
    /// Drop a run that is not active: it leaves the list and cannot be continued
    ///
    /// Its journal, its memory of tasks and items, and the logs of its sessions are removed. Commits, branches, the plan's
    /// file, the audit and what its sessions have cost stay. Refused while work in its work trees is not merged.
    #[command(after_help = "Examples:\n  posse run drop 1a2b\n  posse run drop plan.yaml    its newest run")]
    Drop(RunArg),
    /// Continue a run that stopped, or that lost its environment when the daemon was restarted, and follow it
    #[command(after_help = "Examples:\n  posse run resume 1a2b")]
    Resume(RunArg),
    /// Explain why a task or an item stands as it does, and what can be done
    #[command(
        after_help = "Examples:\n  posse run why plan.yaml 2.1      a task\n  posse run why . 7-empty-export   an item of the backlog here"
    )]
    Why(find::PartArgs),
    /// Answer a task that asked, or what was asked about an item
    #[command(
        after_help = "Examples:\n  posse run answer plan.yaml 2.1 'the blue one'\n  posse run answer . 7-empty-export 'yes'"
    )]
    Answer(find::AnswerPartArgs),
    /// Retry a task or an item from the beginning
    #[command(after_help = "Examples:\n  posse run retry plan.yaml 2.1\n  posse run retry . 7-empty-export")]
    Retry(find::PartArgs),
}

pub(crate) fn run(command: RunCommand, ui: &Ui) -> Result<Exit, Error> {
    match command {
        RunCommand::Ls { kind, lines } => super::on_runtime(list(kind, lines, ui)),
        RunCommand::Show(run) => super::on_runtime(show(run, ui)),
        RunCommand::Log(args) => super::on_runtime(log::run(args, ui)),
        RunCommand::Follow(run) => super::on_own_signals(follow(run, ui)),
        RunCommand::Stop { run, now } => super::on_runtime(stop(run, now, ui)),
        RunCommand::Drop(run) => super::on_runtime(drop_run(run, ui)),
        RunCommand::Resume(run) => super::on_own_signals(resume(run, ui)),
        RunCommand::Why(args) => super::on_runtime(find::why(args, ui)),
        RunCommand::Answer(args) => super::on_runtime(find::answer(args, ui)),
        RunCommand::Retry(args) => super::on_runtime(find::retry(args, ui)),
    }
}

async fn list(kind: Option<RunKind>, lines: u32, ui: &Ui) -> Result<Exit, Error> {
    let kind = kind.map(|kind| format!("&kind={kind}")).unwrap_or_default();
    let runs: Vec<RunView> = Client::connect().await?.get(&format!("/runs?limit={lines}{kind}")).await?;
    ui.answer(&runs, || {
        if runs.is_empty() {
            ui.say("no runs; begin one with `posse loop`, `posse plan run` or `posse auto`");
            return String::new();
        }
        show::table(&runs, ui)
    });
    Ok(Exit::Ok)
}

async fn show(run: RunArg, ui: &Ui) -> Result<Exit, Error> {
    let mut client = Client::connect().await?;
    let found = run.find(&mut client).await?;
    // The list of runs has no tasks and no items.
    let run: RunView = client.get(&format!("/runs/{}", found.id)).await?;
    let details = rows::RunDetails::fetch(&run, &mut client).await?;
    ui.answer(&run, || show::facts(&run, ui) + &rows::lines(&rows::jobs(&run, &details, Timestamp::now()), ui));
    Ok(Exit::Ok)
}

async fn follow(run: RunArg, ui: &Ui) -> Result<Exit, Error> {
    let mut client = Client::connect().await?;
    let run = run.find(&mut client).await?;
    let follower = Follower::alone(client, &run, OnSignal::Leave, ui);
    sessions::print_end(&follower.until_over_or_signal().await?, ui)
}

/// Stops a run, and prints how to continue it.
pub(super) async fn stop(run: RunArg, now: bool, ui: &Ui) -> Result<Exit, Error> {
    let mut client = Client::connect().await?;
    let run = run.find(&mut client).await?;
    let how = if now { StopHow::Now } else { StopHow::AfterTask };
    let request = StopRun { how: Some(how), why: Some("`posse run stop`".to_owned()) };
    client.act(&format!("/runs/{}/stop", run.id), &request, Repeat::Safe, ui).await?;
    ui.say(&follow::how_to_continue(&run));
    Ok(Exit::Ok)
}

async fn drop_run(run: RunArg, ui: &Ui) -> Result<Exit, Error> {
    let mut client = Client::connect().await?;
    let run = run.find(&mut client).await?;
    let dropped: Success = client.delete(&format!("/runs/{}", run.id)).await?;
    ui.done(&dropped, String::new);
    ui.say(&format!("dropped run {}", run.id));
    Ok(Exit::Ok)
}

async fn resume(run: RunArg, ui: &Ui) -> Result<Exit, Error> {
    let mut client = Client::connect().await?;
    let run = run.find(&mut client).await?;
    let over = !run.is_active() && !run.waits;
    if let RunView::Plan(_) | RunView::Backlog(_) = run
        && over
    {
        let hint = follow::how_to_continue(&run);
        return Err(Error::failed(format!("run {} is over", run.id)).with_hint(hint));
    }
    if run.status.is_over() {
        return sessions::print_end(&run, ui);
    }
    let run = send_resume(&mut client, run.id, false).await?;
    let on_signal = if run.kind() == RunKind::Loop { OnSignal::Stop } else { OnSignal::StopGently };
    let follower = Follower::alone(client, &run, on_signal, ui);
    sessions::print_end(&follower.until_over_or_signal().await?, ui)
}

/// Resumes a run. `patient`: only the connection was lost, so a parked run stays parked.
pub(super) async fn send_resume(
    client: &mut Client,
    id: posse_core::ids::RunId,
    patient: bool,
) -> Result<RunView, Error> {
    // The user who resumes the run decides, not the user who began it.
    let auto_accept = auto_accept_in(&config::variable);
    let request = ResumeIn { environment: launch::environment(), patient, auto_accept };
    client.post(&format!("/runs/{id}/resume"), &request, Repeat::Safe).await
}

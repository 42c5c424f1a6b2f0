//! The commands. Each file holds what was typed (`Args` or `Command`), what it does (`run`) and its help.

mod answer;
mod attach;
mod audit;
mod auto;
mod completions;
mod config;
mod demo;
mod doctor;
mod exit;
mod explain;
mod internal;
mod kill;
mod launch;
mod logs;
mod loop_run;
mod ls;
mod output;
mod plan;
mod profile;
mod provider;
mod run;
mod send;
mod serve;
mod show;
mod stop;
mod tmux;
mod wait;

#[cfg(test)]
mod surface_tests;

use std::future::Future;
use std::pin::Pin;
use std::task::Poll;

use clap::{Parser, Subcommand};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::error::{Error, Exit};
use crate::ui::Ui;

/// Runs coding agents unattended in terminals, and always knows what they are doing.
///
/// Programs started with `posse launch` live in terminals of their own. They go on when you close your window,
/// and when posse's daemon is restarted, upgraded or killed; anyone may watch, type or wait for them. The daemon
/// starts by itself.
///
/// Wherever a TERMINAL is asked for, its id, the beginning of its id, or its name will do.
#[derive(Debug, Parser)]
#[command(name = "posse", version = posse_api::VERSION, max_term_width = 100, after_help = AFTER_HELP)]
pub(crate) struct Cli {
    /// Answer in JSON, for programs
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Print only results, warnings and errors
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
    #[command(subcommand)]
    command: Option<Command>,
}

pub(crate) const AFTER_HELP: &str = "\
Examples:
  posse demo                        see it work; needs no agent and no account
  posse doctor                      what of this machine posse can use
  posse launch claude_code          an agent in a terminal of its own

Files: state in $POSSE_HOME (else $XDG_STATE_HOME/posse, else ~/.local/state/posse).
Exit codes: 0 done, 1 failed, 2 to 5, 7 and 75 how a plan ended, 6 another instance runs, 64 wrong use, 69 a program is \
missing, 70 our bug; 129, 130 and 143 ended by a hangup, Ctrl-C, SIGTERM.";

#[derive(Debug, Subcommand)]
enum Command {
    Demo(demo::Args),
    Loop(loop_run::Args),
    #[command(subcommand)]
    Run(run::RunCommand),
    #[command(subcommand)]
    Plan(plan::PlanCommand),
    Auto(Box<auto::Args>),
    Launch(launch::Args),
    Ls(ls::Args),
    Show(show::Args),
    Send(send::Args),
    Output(output::Args),
    Attach(attach::Args),
    Tmux(tmux::Args),
    Wait(wait::Args),
    Approve(answer::Approve),
    Deny(answer::Deny),
    Answer(answer::AnswerArgs),
    Explain(explain::Args),
    Exit(exit::Args),
    Kill(kill::Args),
    Logs(logs::Args),
    #[command(subcommand)]
    Audit(audit::AuditCommand),
    #[command(subcommand)]
    Profile(profile::ProfileCommand),
    #[command(subcommand)]
    Provider(provider::ProviderCommand),
    Doctor(doctor::Args),
    #[command(subcommand)]
    Config(config::ConfigCommand),
    Serve(serve::Args),
    Stop(stop::Args),
    Completions(completions::Args),
    /// Own the terminals (started by posse itself)
    #[command(hide = true)]
    Keep,
    #[command(hide = true)]
    Session(internal::HeadlessArgs),
    /// Tell the daemon what an agent reports (agents call this)
    #[command(hide = true)]
    Hook,
    #[command(hide = true)]
    Actor(internal::ActorArgs),
}

pub(crate) fn run(cli: Cli, ui: &Ui) -> Result<Exit, Error> {
    let Some(command) = cli.command else { return ls::overview(ui) };
    match command {
        Command::Demo(args) => demo::run(&args, ui),
        Command::Loop(args) => on_own_signals(loop_run::run(args, ui)),
        Command::Run(command) => run::run(command, ui),
        Command::Plan(command) => plan::run(command, ui),
        Command::Auto(args) => auto::run(*args, ui),
        Command::Launch(args) => on_runtime(launch::run(args, ui)),
        Command::Ls(args) => on_runtime(ls::run(args, ui)),
        Command::Show(args) => on_runtime(show::run(args, ui)),
        Command::Send(args) => on_runtime(send::run(args, ui)),
        Command::Output(args) => on_runtime(output::run(args, ui)),
        Command::Attach(args) => on_runtime(attach::run(args, ui)),
        Command::Tmux(args) => on_runtime(tmux::run(args, ui)),
        Command::Wait(args) => on_runtime(wait::run(args, ui)),
        Command::Approve(args) => on_runtime(answer::approve(args, ui)),
        Command::Deny(args) => on_runtime(answer::deny(args, ui)),
        Command::Answer(args) => on_runtime(answer::question(args, ui)),
        Command::Explain(args) => on_runtime(explain::run(args, ui)),
        Command::Exit(args) => on_runtime(exit::run(args, ui)),
        Command::Kill(args) => on_runtime(kill::run(args, ui)),
        Command::Logs(args) => on_runtime(logs::run(args, ui)),
        Command::Audit(command) => on_runtime(audit::run(command, ui)),
        Command::Doctor(args) => on_runtime(doctor::run(args, ui)),
        Command::Config(command) => config::run(&command, ui),
        Command::Serve(args) => serve::run(&args, ui),
        Command::Stop(args) => on_runtime(stop::run(args, ui)),
        Command::Completions(args) => Ok(completions::run(&args, ui)),
        Command::Keep => internal::keep(),
        Command::Profile(command) => profile::run(&command, ui),
        Command::Provider(command) => provider::run(&command, ui),
        Command::Session(args) => internal::session(&args),
        Command::Hook => {
            let _ = internal::hook();
            Ok(Exit::Ok)
        }
        Command::Actor(args) => internal::actor(&args),
    }
}

/// Runs a command that talks to the daemon. A signal ends it, with the exit code for that, and not before what it
/// holds, such as the user's terminal, is given back.
fn on_runtime<'a>(command: impl Future<Output = Result<Exit, Error>> + 'a) -> Result<Exit, Error> {
    let command: BoxedCommand<'a> = Box::pin(command);
    on_own_signals(async {
        tokio::select! {
            result = command => result,
            asked = asked_to_end() => Err(asked),
        }
    })
}

/// A command in a box, so that what runs it is compiled once and not for each command.
type BoxedCommand<'a> = Pin<Box<dyn Future<Output = Result<Exit, Error>> + 'a>>;

/// As `on_runtime`, for a command that has something to do before it ends.
fn on_own_signals<'a>(command: impl Future<Output = Result<Exit, Error>> + 'a) -> Result<Exit, Error> {
    let command: BoxedCommand<'a> = Box::pin(command);
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Error::io("cannot start"))?;
    let result = runtime.block_on(command);
    runtime.shutdown_background();
    result
}

/// Waits for a termination signal and returns it as an error.
async fn asked_to_end() -> Error {
    Signals::listen().next().await
}

/// The signals that ask us to end, from now on. None that comes while we are busy is lost.
struct Signals(Vec<(Signal, fn() -> Error)>);

impl Signals {
    fn listen() -> Self {
        let mut kinds: Vec<(SignalKind, fn() -> Error)> =
            vec![(SignalKind::interrupt(), || Error::Interrupted), (SignalKind::terminate(), || Error::Terminated)];
        // Someone who started us with `nohup` wants us to stay.
        if !ignores_hangups() {
            kinds.push((SignalKind::hangup(), || Error::HungUp));
        }
        Self(kinds.into_iter().filter_map(|(kind, error)| Some((signal(kind).ok()?, error))).collect())
    }

    /// Returns the next signal as an error.
    async fn next(&mut self) -> Error {
        std::future::poll_fn(|context| {
            let mut signals = self.0.iter_mut();
            match signals.find_map(|(signal, error)| signal.poll_recv(context).is_ready().then_some(*error)) {
                Some(error) => Poll::Ready(error()),
                None => Poll::Pending,
            }
        })
        .await
    }
}

/// Returns whether this process was started with SIGHUP ignored: signal 1, the lowest bit.
fn ignores_hangups() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap_or_default();
    u64::from_str_radix(ignored.trim(), 16).is_ok_and(|signals| signals & 1 == 1)
}

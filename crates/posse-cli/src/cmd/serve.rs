//! `posse serve`: the daemon.

use std::io::{IsTerminal, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;

use clap::builder::BoolishValueParser;
use posse_api::{Listen, Listening, Settings, Success};
use tracing_subscriber::EnvFilter;

use super::launch;
use crate::client::{self, Client, Repeat};
use crate::daemon;
use crate::error::{BadArgument, Error, Exit};
use crate::ui::Ui;

/// Start the daemon (every command does that by itself)
///
/// With --listen other programs may use it over HTTP, from this machine only and with a token; this is remembered until
/// `posse serve --listen off`. Terminals they start get the environment of this shell.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  posse serve                               in the background
  posse serve --listen 127.0.0.1:9889       also for other programs, with a token
  posse serve --listen off
  posse serve --recordings off              record nothing any more
  posse serve --foreground                  here, with its log")]
pub(crate) struct Args {
    /// Also answer HTTP here, like 127.0.0.1:9889; `off` ends that
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    listen: Option<ListenAddress>,
    /// Let every program on this machine in, without a token
    #[arg(long, requires = "listen")]
    no_auth: bool,
    /// Record what terminals print, in the directory `recordings` of posse's home: `on` or `off`; remembered
    #[arg(long, value_name = "ON|OFF", value_parser = BoolishValueParser::new())]
    recordings: Option<bool>,
    /// Stay here and log to standard error, instead of going to the background
    #[arg(long, conflicts_with_all = ["listen", "recordings"])]
    foreground: bool,
}

/// The address to listen on; `None`: none.
type ListenAddress = Option<SocketAddr>;

fn address(text: &str) -> Result<ListenAddress, BadArgument> {
    match text {
        "off" => Ok(None),
        _ => text.parse().map(Some).map_err(|_| BadArgument::Address),
    }
}

pub(crate) fn run(args: &Args, ui: &Ui) -> Result<Exit, Error> {
    let paths = client::paths()?;
    paths.prepare()?;
    let executable = client::executable()?;
    if args.foreground {
        let log = DaemonLog::start();
        let served = (daemon::functions().serve)(paths, executable);
        log.finish();
        served?;
        return Ok(Exit::Ok);
    }
    super::on_runtime(async {
        let pid = client::start_daemon(&paths, &executable).await?;
        let listening = match args.listen {
            Some(address) => Some(listen(address, !args.no_auth).await?),
            None => None,
        };
        let settings = Settings { recordings: args.recordings };
        if settings != Settings::default() {
            let _: Success = Client::connect().await?.post("/settings", &settings, Repeat::Safe).await?;
        }
        let value = serde_json::json!({
            "pid": pid, "socket": paths.daemon_socket(), "log": paths.log(), "listening": listening,
        });
        ui.answer(&value, || {
            let mut text = String::new();
            if !ui.quiet() {
                let (socket, log) = (paths.daemon_socket(), paths.log());
                let (socket, log) = (socket.display(), log.display());
                text = format!("the daemon runs (process {pid})\nsocket  {socket}\nlog     {log}\n");
            }
            if let Some(Listening { address: Some(address), token_file }) = &listening {
                text.push_str(&format!("http    http://{address}\n"));
                text.extend(token_file.iter().map(|file| format!("token   {}\n", file.display())));
            }
            text
        });
        if let (Some(Some(address)), true) = (args.listen, args.no_auth) {
            ui.warn(&format!("WARNING: no authentication. Every program and every user on this machine may start and steer terminals through {address}."));
        }
        Ok(Exit::Ok)
    })
}

async fn listen(address: ListenAddress, auth: bool) -> Result<Listening, Error> {
    let mut client = Client::connect().await?;
    let body = Listen {
        address,
        auth,
        environment: launch::environment(),
        working_directory: client::absolute(Path::new("."))?,
    };
    client.post("/listen", &body, Repeat::Safe).await
}

/// The number of log lines that wait for a disk that hangs. Lines after that are lost.
const LOG_LINES: usize = 10_000;
/// The time the last lines of the log may take.
const LOG_END: Duration = Duration::from_millis(500);

enum LogMessage {
    Line(Vec<u8>),
    /// Answered when everything before it is written.
    Finish(SyncSender<()>),
}

/// The log goes to standard error: a file if the keeper started the daemon, a window if a person did. A thread of its own
/// writes it, because the thread that logs serves every terminal and must not wait for the disk.
#[derive(Clone)]
struct DaemonLog(SyncSender<LogMessage>);

impl DaemonLog {
    fn start() -> Self {
        let (lines, queue) = sync_channel(LOG_LINES);
        let write = move || {
            for message in queue {
                match message {
                    LogMessage::Line(line) => drop(std::io::stderr().write_all(&line)),
                    LogMessage::Finish(done) => drop(done.send(())),
                }
            }
        };
        let _ = std::thread::Builder::new().name("log".into()).spawn(write);
        let log = Self(lines);
        let writer = log.clone();
        let filter = EnvFilter::try_from_env("POSSE_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
        let _ = tracing_subscriber::fmt()
            .with_env_filter(filter)
            .with_ansi(std::io::stderr().is_terminal() && crate::ui::colours_wanted())
            .with_writer(move || writer.clone())
            .try_init();
        log
    }

    /// Waits until the log is written, with a timeout.
    fn finish(&self) {
        let (done, finished) = sync_channel(1);
        if self.0.try_send(LogMessage::Finish(done)).is_ok() {
            let _ = finished.recv_timeout(LOG_END);
        }
    }
}

impl Write for DaemonLog {
    fn write(&mut self, line: &[u8]) -> std::io::Result<usize> {
        let _ = self.0.try_send(LogMessage::Line(line.to_vec()));
        Ok(line.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

//! Runs a scripted agent on a terminal: waits in one `poll`, makes no decisions.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Stdin, Write as _};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use posse_core::time::Mono;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use rustix::time::{ClockId, clock_gettime};
use signal_hook::consts::{SIGHUP, SIGTERM, SIGWINCH};
use signal_hook::iterator::backend::SignalDelivery;
use signal_hook::iterator::exfiltrator::SignalOnly;

use super::player::{AgentCut, AgentEffect, AgentHost, AgentInput, ScriptedAgent};
use super::record::{AgentRecord, RecordLine};
use super::rows::ScreenSize;
use crate::scenario::{Scenario, ScenarioError, ScenarioPlayer};

/// The reason a scenario could not be played to its end.
#[derive(Debug, thiserror::Error)]
pub enum AgentRunError {
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    #[error("cannot {what} {}: {source}", path.display())]
    File { what: &'static str, path: PathBuf, source: io::Error },
    #[error("cannot use the terminal: {0}")]
    Terminal(#[from] io::Error),
}

/// Plays a scenario on stdin and stdout until it exits, and returns the exit code for the process. A `crash` step does
/// not return. Signal handlers stay registered, so the process should exit afterwards.
///
/// # Errors
/// If a step needs a model, a file cannot be written, or the terminal, the log or the signals cannot be set up.
pub fn run(scenario: Scenario) -> Result<i32, AgentRunError> {
    scenario.check_for(ScenarioPlayer::Agent)?;
    let out = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    let log = scenario.log.as_deref().map(|log| open_to_append(log).map_err(failed("open", log))).transpose()?;
    let (read, write) = UnixStream::pair()?;
    let signals = SignalDelivery::with_pipe(read, write, SignalOnly, [SIGWINCH, SIGTERM, SIGHUP])?;
    let _raw = RawMode::enter(io::stdin())?;
    let terminal = std::env::var("POSSE_TERMINAL_ID").ok();
    let shell = Shell { stdin: io::stdin(), out, signals, log, terminal, open: HashMap::new() };
    let size = shell.size();
    match ScriptedAgent::new(shell, scenario, size).play() {
        AgentCut::Exit(code) => Ok(code),
        AgentCut::Kill(signal) => {
            let _ = signal_hook::low_level::emulate_default_handler(signal);
            // Reached only if the signal does not kill.
            Ok(128 + signal)
        }
        AgentCut::Error(error) => Err(error),
        // These end a turn and not the agent.
        AgentCut::Interrupted | AgentCut::Refused | AgentCut::Failed => Ok(1),
    }
}

#[derive(Debug)]
struct Shell {
    stdin: Stdin,
    out: File,
    signals: SignalDelivery<UnixStream, SignalOnly>,
    log: Option<File>,
    terminal: Option<String>,
    /// Files that are written piece by piece.
    open: HashMap<PathBuf, File>,
}

impl AgentHost for Shell {
    fn now(&self) -> Mono {
        let now = clock_gettime(ClockId::Monotonic);
        Mono(Duration::new(u64::try_from(now.tv_sec).unwrap_or(0), u32::try_from(now.tv_nsec).unwrap_or(0)))
    }

    fn wait(&mut self, until: Option<Mono>) -> Result<AgentInput, AgentCut> {
        let timeout = until.map(|due| due.since(self.now())).map(|left| Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: left.subsec_nanos().into(),
        });
        let mut fds = [PollFd::new(&self.stdin, PollFlags::IN), PollFd::new(self.signals.get_read(), PollFlags::IN)];
        if let Err(error) = poll(&mut fds, timeout.as_ref())
            && error != Errno::INTR
        {
            return Err(AgentCut::Error(AgentRunError::Terminal(error.into())));
        }
        let [has_input, _] = fds.map(|fd| !fd.revents().is_empty());
        let signals: Vec<i32> = self.signals.pending().collect();
        if let Some(signal) = [SIGTERM, SIGHUP].into_iter().find(|signal| signals.contains(signal)) {
            return Err(AgentCut::Exit(128 + signal));
        }
        if signals.contains(&SIGWINCH) {
            return Ok(AgentInput::Resize(self.size()));
        }
        if !has_input {
            return Ok(AgentInput::TimeIsUp);
        }
        let mut buffer = [0; 16 * 1024];
        match rustix::io::read(&self.stdin, &mut buffer) {
            Err(Errno::INTR | Errno::AGAIN) => Ok(AgentInput::TimeIsUp),
            // If the other end of the terminal is closed, reads return EIO.
            Ok(0) | Err(_) => Err(AgentCut::Exit(128 + SIGHUP)),
            Ok(length) => Ok(AgentInput::Bytes(buffer[..length].to_vec())),
        }
    }

    fn carry_out(&mut self, effect: &AgentEffect) -> Result<(), AgentCut> {
        let written = match effect {
            // A failed write means that the terminal is gone.
            AgentEffect::Print(text) => {
                return self.out.write_all(text.as_bytes()).map_err(|_| AgentCut::Exit(128 + SIGHUP));
            }
            AgentEffect::Log(record) => {
                self.log(record);
                return Ok(());
            }
            AgentEffect::Write { path, bytes } => write_file(path, bytes).map_err(failed("write", path)),
            AgentEffect::Piece { path, bytes, last } => {
                self.write_piece(path, bytes, *last).map_err(failed("write", path))
            }
        };
        written.map_err(AgentCut::Error)?;
        if let AgentEffect::Write { path, .. } | AgentEffect::Piece { path, .. } = effect {
            self.log(&AgentRecord::Wrote { path: path.display().to_string() });
        }
        Ok(())
    }

    fn count(&mut self, path: &Path) -> Result<u32, AgentCut> {
        let counted = make_parent(path)
            .and_then(|()| open_to_append(path)?.write_all(b"1\n"))
            .and_then(|()| std::fs::read_to_string(path))
            .map_err(|error| AgentCut::Error(failed("write", path)(error)))?;
        Ok(u32::try_from(counted.lines().count()).unwrap_or(u32::MAX))
    }
}

impl Shell {
    fn size(&self) -> ScreenSize {
        tcgetwinsize(&self.out).map_or(ScreenSize::new(0, 0), |size| ScreenSize::new(size.ws_col, size.ws_row))
    }

    fn write_piece(&mut self, path: &Path, bytes: &[u8], last: bool) -> io::Result<()> {
        let mut file = match self.open.remove(path) {
            Some(file) => file,
            None => {
                make_parent(path)?;
                File::create(path)?
            }
        };
        file.write_all(bytes)?;
        if !last {
            self.open.insert(path.to_owned(), file);
        }
        Ok(())
    }

    /// Writes a record. If the log cannot be written, the play continues.
    fn log(&mut self, record: &AgentRecord) {
        let ns = u64::try_from(self.now().0.as_nanos()).unwrap_or(u64::MAX);
        let line = RecordLine { ns, pid: std::process::id(), terminal: self.terminal.as_deref(), record };
        if let (Some(log), Ok(line)) = (&mut self.log, serde_json::to_string(&line)) {
            let _ = log.write_all(format!("{line}\n").as_bytes());
        }
    }
}

fn failed(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> AgentRunError {
    move |source| AgentRunError::File { what, path: path.to_owned(), source }
}

fn open_to_append(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path)
}

fn make_parent(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), std::fs::create_dir_all)
}

fn write_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    make_parent(path)?;
    let name = path.file_name().ok_or(io::ErrorKind::InvalidFilename)?;
    let beside = path.with_file_name(format!(".{}.{}", name.to_string_lossy(), std::process::id()));
    std::fs::write(&beside, bytes)?;
    std::fs::rename(&beside, path)
}

/// Puts the terminal in raw mode for the lifetime of the value.
struct RawMode {
    terminal: Stdin,
    before: Option<Termios>,
}

impl RawMode {
    /// Does nothing if standard input is not a terminal.
    fn enter(terminal: Stdin) -> io::Result<RawMode> {
        let before = tcgetattr(&terminal).ok();
        if let Some(mut raw) = before.clone() {
            raw.make_raw();
            tcsetattr(&terminal, OptionalActions::Now, &raw)?;
        }
        Ok(RawMode { terminal, before })
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            let _ = tcsetattr(&self.terminal, OptionalActions::Now, before);
        }
    }
}

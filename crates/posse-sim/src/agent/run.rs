//! Runs a scripted agent on a terminal: one `poll`, one write per batch of effects, no decisions.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Stdin, Write as _};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use posse_core::time::Mono;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use rustix::time::{ClockId, clock_gettime};
use signal_hook::consts::{SIGHUP, SIGTERM, SIGWINCH};
use signal_hook::{flag, low_level};

use crate::agent::machine::{AgentEffect, AgentInput, ScriptedAgent};
use crate::agent::record::{AgentRecord, RecordLine};
use crate::agent::review_loop::Tally;
use crate::agent::rows::ScreenSize;
use crate::scenario::{Scenario, ScenarioError, ScenarioPlayer};

/// Why a scenario could not be played to its end.
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
    let stdin = io::stdin();
    let out = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    let log = scenario.log.as_deref().map(|log| open_to_append(log).map_err(failed("open", log))).transpose()?;
    let tally = scenario.review_loop.state_dir.as_deref().map(read_tally).transpose()?.unwrap_or_default();
    let (signalled, writer) = UnixStream::pair()?;
    signalled.set_nonblocking(true)?;
    let terminated = Arc::<AtomicBool>::default();
    let hung_up = Arc::<AtomicBool>::default();
    // Flags are set before the pipe wakes the loop: handlers run in the order of registration.
    flag::register(SIGTERM, terminated.clone())?;
    flag::register(SIGHUP, hung_up.clone())?;
    for signal in [SIGWINCH, SIGTERM, SIGHUP] {
        low_level::pipe::register(signal, writer.try_clone()?)?;
    }
    let _raw = RawMode::enter(io::stdin())?;
    let terminal = std::env::var("POSSE_TERMINAL_ID").ok();
    let mut shell = Shell { out, log, terminal, open: HashMap::new() };

    let (mut agent, mut effects) = ScriptedAgent::open(scenario, tally, size(&shell.out), now());
    loop {
        if let Some(code) = shell.perform(&effects)? {
            return Ok(code);
        }
        effects.clear();
        let [input, woken] = wait(&stdin, &signalled, agent.deadline())?;
        let mut buffer = [0; 16 * 1024];
        if woken {
            while rustix::io::read(&signalled, &mut buffer).is_ok_and(|length| length > 0) {}
            effects.extend(agent.handle(AgentInput::Resize(size(&shell.out)), now()));
        }
        if terminated.load(Ordering::Relaxed) {
            effects.extend(agent.handle(AgentInput::Signal(SIGTERM), now()));
        } else if hung_up.load(Ordering::Relaxed) {
            effects.extend(agent.handle(AgentInput::Signal(SIGHUP), now()));
        } else if input {
            match rustix::io::read(&stdin, &mut buffer) {
                Err(Errno::INTR | Errno::AGAIN) => {}
                // If the other end of the terminal is closed, reads return EIO.
                Ok(0) | Err(_) => effects.extend(agent.handle(AgentInput::Signal(SIGHUP), now())),
                Ok(length) => effects.extend(agent.handle(AgentInput::Bytes(&buffer[..length]), now())),
            }
        }
        if agent.deadline().is_some_and(|due| due <= now()) {
            effects.extend(agent.handle(AgentInput::Tick, now()));
        }
    }
}

/// Waits until a time at most, and returns whether there is input, and whether a signal came.
fn wait(stdin: &Stdin, signalled: &UnixStream, until: Option<Mono>) -> io::Result<[bool; 2]> {
    let timeout = until.map(|due| due.since(now())).map(|left| Timespec {
        tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: left.subsec_nanos().into(),
    });
    let mut fds = [PollFd::new(stdin, PollFlags::IN), PollFd::new(signalled, PollFlags::IN)];
    match poll(&mut fds, timeout.as_ref()) {
        Ok(_) | Err(Errno::INTR) => Ok(fds.map(|fd| !fd.revents().is_empty())),
        Err(error) => Err(error.into()),
    }
}

struct Shell {
    out: File,
    log: Option<File>,
    terminal: Option<String>,
    /// Files that are written piece by piece.
    open: HashMap<PathBuf, File>,
}

impl Shell {
    /// Carries out effects in order and returns the exit code if the agent ends. Output to the terminal is collected
    /// and written before any other effect.
    fn perform(&mut self, effects: &[AgentEffect]) -> Result<Option<i32>, AgentRunError> {
        let mut screen: Vec<u8> = Vec::new();
        for effect in effects {
            if let Some(mut bytes) = effect.bytes() {
                screen.append(&mut bytes);
                continue;
            }
            // A failed write means that the terminal is gone.
            if self.out.write_all(&std::mem::take(&mut screen)).is_err() {
                return Ok(Some(128 + SIGHUP));
            }
            match effect {
                AgentEffect::Log(record) => self.log(record),
                AgentEffect::Write { path, bytes } => {
                    write_file(path, bytes).map_err(failed("write", path))?;
                    self.log(&AgentRecord::Wrote { path: path.display().to_string() });
                }
                AgentEffect::Piece { path, bytes, last } => {
                    self.write_piece(path, bytes, *last).map_err(failed("write", path))?;
                    self.log(&AgentRecord::Wrote { path: path.display().to_string() });
                }
                AgentEffect::Count(path) => append_line(path).map_err(failed("write", path))?,
                AgentEffect::Exit(code) => return Ok(Some(*code)),
                AgentEffect::Kill(signal) => {
                    let _ = low_level::emulate_default_handler(*signal);
                    // Reached only if the signal does not kill.
                    return Ok(Some(128 + signal));
                }
                AgentEffect::Paint(_) | AgentEffect::Title(_) | AgentEffect::Osc(_) | AgentEffect::Raw(_) => {}
            }
        }
        Ok(self.out.write_all(&screen).is_err().then_some(128 + SIGHUP))
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
        let ns = u64::try_from(now().0.as_nanos()).unwrap_or(u64::MAX);
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

/// Reads the counts of the agents before this one: a file each, with one line for each thing counted.
fn read_tally(directory: &Path) -> Result<Tally, AgentRunError> {
    let read = || {
        std::fs::create_dir_all(directory)?;
        let count = |file: std::fs::DirEntry| {
            let lines = std::fs::read_to_string(file.path())?.lines().count();
            Ok((file.file_name().to_string_lossy().into_owned(), u32::try_from(lines).unwrap_or(u32::MAX)))
        };
        std::fs::read_dir(directory)?.map(|file| count(file?)).collect::<io::Result<Tally>>()
    };
    read().map_err(failed("read", directory))
}

fn append_line(path: &Path) -> io::Result<()> {
    open_to_append(path)?.write_all(b"1\n")
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

fn size(out: &File) -> ScreenSize {
    tcgetwinsize(out).map_or(ScreenSize::new(0, 0), |size| ScreenSize::new(size.ws_col, size.ws_row))
}

fn now() -> Mono {
    let now = clock_gettime(ClockId::Monotonic);
    Mono(Duration::new(u64::try_from(now.tv_sec).unwrap_or(0), u32::try_from(now.tv_nsec).unwrap_or(0)))
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

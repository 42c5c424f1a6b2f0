//! The shell around the stage: a raw terminal, one `poll`, one write per batch of effects. Decides nothing.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use rustix::time::{ClockId, clock_gettime};
use signal_hook::SigId;
use signal_hook::consts::{SIGHUP, SIGTERM, SIGWINCH};
use signal_hook::low_level;

use crate::record::{Record, Witness};
use crate::rounds::{Tally, tally_file};
use crate::rows::Size;
use crate::scenario::{Scenario, WriteHow};
use crate::stage::{Effect, Event, Stage};
use crate::time::Mono;

/// Why a scenario could not be played to its end.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error("open the log {}", path.display())]
    Log { path: PathBuf, source: io::Error },
    #[error("read the count {}", path.display())]
    Tally { path: PathBuf, source: io::Error },
    #[error("set up the terminal")]
    Terminal(#[source] io::Error),
    #[error("set up signals")]
    Signals(#[source] io::Error),
    #[error("wait for input")]
    Wait(#[source] io::Error),
}

/// Plays a scenario on stdin and stdout until it exits; returns the exit code the process should have. A
/// `crash` step does not return.
///
/// # Errors
/// If the terminal, the log or the signals cannot be set up.
pub fn run(scenario: Scenario) -> Result<i32, RunError> {
    let (stdin, stdout) = (io::stdin(), io::stdout());
    let told = std::env::var_os("POSSE_ACTOR_LOG").map(PathBuf::from);
    let log = scenario.log.clone().or(told).as_deref().map(open_log).transpose()?;
    let tally = scenario.loop_play.state_dir.as_deref().map(read_tally).transpose()?.unwrap_or_default();
    let witness = Witness { pid: std::process::id(), terminal: std::env::var("POSSE_TERMINAL_ID").ok() };
    // A pipe for each, because the byte in it does not tell which signal it was.
    let resize = Caught::new(SIGWINCH).map_err(RunError::Signals)?;
    let terminate = Caught::new(SIGTERM).map_err(RunError::Signals)?;
    let hang_up = Caught::new(SIGHUP).map_err(RunError::Signals)?;
    let _raw = RawMode::enter(stdin.as_fd()).map_err(RunError::Terminal)?;
    let mut shell = Shell { out: stdout.as_fd(), log, witness, open: HashMap::new(), failures: Vec::new() };

    let (mut stage, mut effects) = Stage::open(scenario, tally, size(shell.out), now());
    loop {
        if let Some(code) = shell.perform(&effects) {
            return Ok(code);
        }
        if let Some((path, error)) = shell.failures.pop() {
            effects = stage.handle(Event::WriteFailed { path, error }, now());
            continue;
        }
        effects.clear();
        let timeout = stage.deadline().map(|due| due - now());
        let timeout = timeout.map(|left| Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: left.subsec_nanos().into(),
        });
        let mut fds = [
            PollFd::from_borrowed_fd(stdin.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(resize.pipe.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(terminate.pipe.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(hang_up.pipe.as_fd(), PollFlags::IN),
        ];
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(RunError::Wait(error.into())),
        }
        let [input, resized, terminated, hung_up] = fds.map(|fd| !fd.revents().is_empty());
        if resized {
            resize.drain();
            effects.extend(stage.handle(Event::Resize(size(shell.out)), now()));
        }
        if terminated {
            effects.extend(stage.handle(Event::Signal(SIGTERM), now()));
        } else if hung_up {
            effects.extend(stage.handle(Event::Signal(SIGHUP), now()));
        } else if input {
            let mut buffer = [0; 16 * 1024];
            match rustix::io::read(stdin.as_fd(), &mut buffer) {
                Ok(0) => effects.extend(stage.handle(Event::Signal(SIGHUP), now())),
                Ok(length) => effects.extend(stage.handle(Event::Input(&buffer[..length]), now())),
                Err(Errno::INTR | Errno::AGAIN) => {}
                // A terminal whose other end is closed says EIO.
                Err(_) => effects.extend(stage.handle(Event::Signal(SIGHUP), now())),
            }
        }
        if stage.deadline().is_some_and(|due| due <= now()) {
            effects.extend(stage.handle(Event::Tick, now()));
        }
    }
}

struct Shell<'a> {
    out: BorrowedFd<'a>,
    log: Option<File>,
    witness: Witness,
    /// Files that are being written piece by piece.
    open: HashMap<PathBuf, File>,
    /// Files that could not be written, to be told to the stage.
    failures: Vec<(String, String)>,
}

impl Shell<'_> {
    /// Carries out effects in order; the exit code, if that was the end. What goes to the terminal is
    /// gathered, and written before anything else happens.
    fn perform(&mut self, effects: &[Effect]) -> Option<i32> {
        let mut screen: Vec<u8> = Vec::new();
        for effect in effects {
            if let Some(mut bytes) = effect.bytes() {
                screen.append(&mut bytes);
                continue;
            }
            // Nobody left to play for: as if the terminal had hung up.
            if write_all(self.out, &std::mem::take(&mut screen)).is_err() {
                return Some(128 + SIGHUP);
            }
            match effect {
                Effect::Log(record) => self.note(record),
                Effect::Write { path, bytes, how } => {
                    let written = write_file(path, bytes, *how);
                    self.wrote(path, bytes.len(), true, written);
                }
                Effect::Piece { path, bytes, last } => {
                    let written = self.write_piece(path, bytes, *last);
                    self.wrote(path, bytes.len(), *last, written);
                }
                Effect::Count(path) => {
                    if let Err(error) = write_file(path, b"1\n", WriteHow::Append) {
                        self.failures.push((path.display().to_string(), error.to_string()));
                    }
                }
                Effect::Exit(code) => return Some(*code),
                Effect::Kill(signal) => {
                    let _ = low_level::emulate_default_handler(*signal);
                    // Only if the signal does not kill.
                    return Some(128 + signal);
                }
                Effect::Paint(_) | Effect::Title(_) | Effect::Osc(_) | Effect::Bell | Effect::Raw(_) => {}
            }
        }
        match write_all(self.out, &screen) {
            Ok(()) => None,
            Err(_) => Some(128 + SIGHUP),
        }
    }

    fn wrote(&mut self, path: &Path, length: usize, whole: bool, written: io::Result<()>) {
        let path = path.display().to_string();
        match written {
            Ok(()) => self.note(&Record::Wrote { path, length, whole }),
            Err(error) => self.failures.push((path, error.to_string())),
        }
    }

    fn write_piece(&mut self, path: &Path, bytes: &[u8], last: bool) -> io::Result<()> {
        let mut file = match self.open.remove(path) {
            Some(file) => file,
            None => {
                make_folder_of(path)?;
                File::create(path)?
            }
        };
        file.write_all(bytes)?;
        if !last {
            self.open.insert(path.to_owned(), file);
        }
        Ok(())
    }

    /// A log that cannot be written must not change the play.
    fn note(&mut self, record: &Record) {
        if let Some(log) = &mut self.log {
            let _ = log.write_all(format!("{}\n", record.to_json(now().0, &self.witness)).as_bytes());
        }
    }
}

fn open_log(path: &Path) -> Result<File, RunError> {
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .map_err(|source| RunError::Log { path: path.to_owned(), source })
}

/// How often each thing was done by those who counted in this folder before.
fn read_tally(folder: &Path) -> Result<Tally, RunError> {
    Tally::of(|key, what| {
        let path = tally_file(folder, key, what);
        match std::fs::read(&path) {
            Ok(lines) => Ok(u32::try_from(lines.iter().filter(|byte| **byte == b'\n').count()).unwrap_or(u32::MAX)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
            Err(source) => Err(RunError::Tally { path, source }),
        }
    })
}

fn make_folder_of(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), std::fs::create_dir_all)
}

fn write_file(path: &Path, bytes: &[u8], how: WriteHow) -> io::Result<()> {
    make_folder_of(path)?;
    match how {
        WriteHow::Plain => std::fs::write(path, bytes),
        WriteHow::Append => OpenOptions::new().create(true).append(true).open(path)?.write_all(bytes),
        WriteHow::Directory => std::fs::create_dir_all(path),
        WriteHow::Rename => {
            let name = path.file_name().ok_or(io::ErrorKind::InvalidFilename)?;
            let beside = path.with_file_name(format!(".{}.{}", name.to_string_lossy(), std::process::id()));
            std::fs::write(&beside, bytes)?;
            std::fs::rename(&beside, path)
        }
    }
}

fn write_all(out: BorrowedFd, mut bytes: &[u8]) -> Result<(), Errno> {
    while !bytes.is_empty() {
        match rustix::io::write(out, bytes) {
            Ok(length) => bytes = &bytes[length..],
            Err(Errno::INTR) => {}
            // Someone else made the terminal non-blocking, and it is full.
            Err(Errno::AGAIN) => {
                let _ = poll(&mut [PollFd::from_borrowed_fd(out, PollFlags::OUT)], None);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn size(out: BorrowedFd) -> Size {
    tcgetwinsize(out).map_or(Size::new(0, 0), |size| Size::new(size.ws_col, size.ws_row))
}

fn now() -> Mono {
    let now = clock_gettime(ClockId::Monotonic);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    Mono(seconds * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0))
}

/// The terminal in raw mode for as long as this lives.
struct RawMode<'a> {
    terminal: BorrowedFd<'a>,
    before: Option<Termios>,
}

impl<'a> RawMode<'a> {
    /// Does nothing if this is no terminal.
    fn enter(terminal: BorrowedFd<'a>) -> io::Result<RawMode<'a>> {
        let before = match tcgetattr(terminal) {
            Ok(before) => before,
            Err(_) => return Ok(RawMode { terminal, before: None }),
        };
        let mut raw = before.clone();
        raw.make_raw();
        tcsetattr(terminal, OptionalActions::Now, &raw)?;
        Ok(RawMode { terminal, before: Some(before) })
    }
}

impl Drop for RawMode<'_> {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            let _ = tcsetattr(self.terminal, OptionalActions::Now, before);
        }
    }
}

/// A signal turned into readability of a pipe for as long as this lives.
struct Caught {
    pipe: UnixStream,
    id: SigId,
}

impl Caught {
    fn new(signal: i32) -> io::Result<Caught> {
        let (pipe, writer) = UnixStream::pair()?;
        pipe.set_nonblocking(true)?;
        Ok(Caught { id: low_level::pipe::register(signal, writer)?, pipe })
    }

    fn drain(&self) {
        let mut buffer = [0; 64];
        while rustix::io::read(&self.pipe, &mut buffer).is_ok_and(|length| length > 0) {}
    }
}

impl Drop for Caught {
    fn drop(&mut self) {
        low_level::unregister(self.id);
    }
}

//! What tmux starts in a pane: starts the program as it was asked for, and says how it ended.
//!
//! tmux gives a pane its own environment, and closes it the moment its process ends, with whatever output was still
//! on its way to us. So the pane's process is the shim: it lives a little longer than the program and rings when it
//! has something to say (`doorbell`).
//!
//! It is two processes. The second becomes the program, but only after the first has put it into the foreground: a
//! program that reads its terminal before that would be stopped. What could not be started is told through the
//! stream between the two, which closes by itself when the program begins.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use posse_core::status::Exit;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group};
use rustix::termios::{tcgetpgrp, tcsetpgrp};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP};

use super::doorbell::Ring;
use super::notes::{End, Errand, Stage};
use crate::wire::{Program, SpawnRefusal};

/// How long an ended program's pane stays for somebody to take its last screen. Whoever listens does so at once; a
/// daemon that is being restarted is back within seconds.
const LINGER: Duration = Duration::from_secs(30);
/// Meanwhile it rings this often: of one ring tmux may have been told to drop the bytes.
const RING_AGAIN: Duration = Duration::from_millis(250);

/// The body of `posse shim FILE`. Returns the code to exit with; does not return where it becomes the program.
pub fn run_shim(program_file: &Path) -> io::Result<i32> {
    let (errand, stage) = Errand::read(program_file)?;
    match stage {
        Stage::Watch => watch(&errand),
        Stage::Start => {
            // To the one who watches. Another descriptor than the program's standard input, and closed when it begins.
            let mut socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
            socket.read_exact(&mut [0])?;
            let end = become_program(&errand);
            socket.write_all(end.to_text().as_bytes())?;
            Ok(1)
        }
    }
}

/// Returns why it could not.
fn become_program(errand: &Errand) -> End {
    errand.delete();
    let Program { arguments, environment, directory, .. } = &errand.program;
    let Some((name, arguments)) = arguments.split_first() else {
        return End::Refused(SpawnRefusal::ProgramMissing, "no program was given".into());
    };
    let directory = Path::new(OsStr::from_bytes(directory));
    if !directory.is_dir() {
        return End::Refused(SpawnRefusal::DirectoryMissing, format!("{} is not a directory", directory.display()));
    }
    let name = OsStr::from_bytes(name);
    let mut command = Command::new(name);
    command
        .args(arguments.iter().map(|argument| OsStr::from_bytes(argument)))
        .env_clear()
        .envs(environment.iter().map(|(name, value)| (OsStr::from_bytes(name), OsStr::from_bytes(value))))
        .current_dir(directory);
    // What the terminal can do is tmux's to say. `TMUX` and its like are not passed on: an agent has no business with
    // the server it runs in.
    if let Some(terminal) = std::env::var_os("TERM") {
        command.env("TERM", terminal);
    }
    match io::stdout().as_fd().try_clone_to_owned() {
        Ok(terminal) => refused(&command.stdin(Stdio::from(terminal)).exec(), name),
        Err(error) => refused(&error, name),
    }
}

fn refused(error: &io::Error, name: &OsStr) -> End {
    let shown = name.to_string_lossy();
    let (why, message) = match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::NOENT | Errno::NOTDIR) => (SpawnRefusal::ProgramMissing, format!("{shown}: no such program")),
        Some(Errno::ACCESS | Errno::NOEXEC) => (SpawnRefusal::NotExecutable, format!("{shown}: {error}")),
        Some(Errno::AGAIN | Errno::MFILE | Errno::NFILE | Errno::NOMEM) => {
            (SpawnRefusal::LimitReached, format!("{shown}: {error}"))
        }
        _ => (SpawnRefusal::Other, format!("{shown}: {error}")),
    };
    End::Refused(why, message)
}

/// Starts the other one, and stays until somebody has heard of its end.
fn watch(errand: &Errand) -> io::Result<i32> {
    let mut signals = Signals::listen()?;
    let file = errand.pass_on()?;
    // Opened anew: programs make the descriptors they share with us non-blocking.
    let terminal = File::options().read(true).write(true).open("/dev/tty")?;
    let (mut socket, theirs) = UnixStream::pair()?;
    let mut child = Command::new(std::env::current_exe()?)
        .args(own_arguments())
        .arg(&file)
        .process_group(0)
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .spawn()?;
    tcsetpgrp(&terminal, Pid::from_child(&child))?;
    socket.write_all(b"!")?;
    // Ends when the program begins, or could not.
    let mut answer = Vec::new();
    socket.read_to_end(&mut answer)?;
    if let Some(refused @ End::Refused(..)) = End::parse(&String::from_utf8_lossy(&answer)) {
        child.wait()?;
        errand.write_end(&refused)?;
        linger(errand, &terminal, &mut signals);
        return Ok(1);
    }
    errand.write_pid(child.id())?;
    let _ = ring(Ring::Begun, errand, &terminal);

    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        signals.wait(None);
        for signal in signals.take() {
            pass_on(signal, &child, &terminal);
        }
    };
    let exit = match (status.code(), status.signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, Some(signal)) => Exit::Signal(signal),
        (None, None) => Exit::Lost,
    };
    errand.write_end(&End::Exit(exit))?;
    linger(errand, &terminal, &mut signals);
    Ok(end_like(status))
}

/// How we were called, without the file.
fn own_arguments() -> Vec<OsString> {
    let mut arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    arguments.pop();
    arguments
}

fn ring(ring: Ring, errand: &Errand, mut terminal: &File) -> io::Result<()> {
    terminal.write_all(&errand.secret.bell(ring))
}

/// Gives whoever listens the time to take the last of the output. They close the pane when they have it.
fn linger(errand: &Errand, terminal: &File, signals: &mut Signals) {
    // Those were for the program.
    signals.take();
    let end = Instant::now() + LINGER;
    // An error means that the pane is gone already.
    while Instant::now() < end && ring(Ring::Over, errand, terminal).is_ok() && signals.take().is_empty() {
        signals.wait(Some(Instant::now() + RING_AGAIN));
    }
}

/// To the program's group, and to the one in the foreground if that is another.
fn pass_on(signal: Signal, child: &Child, terminal: &File) {
    let program = Pid::from_child(child);
    let foreground = tcgetpgrp(terminal).ok().filter(|group| *group != program && *group != rustix::process::getpgrp());
    for group in std::iter::once(program).chain(foreground) {
        let _ = kill_process_group(group, signal);
        // A stopped one would never see it.
        let _ = kill_process_group(group, Signal::CONT);
    }
}

/// Ends by the program's signal if it did, and does not come back; else returns its code.
fn end_like(status: ExitStatus) -> i32 {
    match (status.code(), status.signal()) {
        (Some(code), _) => code,
        (None, Some(signal)) => {
            // Not by those that would leave another core file behind.
            if [SIGHUP, SIGINT, SIGTERM].contains(&signal) {
                let _ = signal_hook::low_level::emulate_default_handler(signal);
            }
            128 + signal
        }
        (None, None) => 1,
    }
}

/// The signals that concern us, to be waited for.
struct Signals {
    woken: UnixStream,
    asked: [(Signal, Arc<AtomicBool>); 2],
}

impl Signals {
    fn listen() -> io::Result<Self> {
        use signal_hook::{flag, low_level::pipe};
        let (woken, wakes) = UnixStream::pair()?;
        let asked = [(Signal::HUP, SIGHUP), (Signal::TERM, SIGTERM)];
        let mut flags = Vec::new();
        for (signal, number) in asked {
            let raised = Arc::new(AtomicBool::new(false));
            // Before the wake-up, so that it is up when we wake.
            flag::register(number, raised.clone())?;
            pipe::register(number, wakes.try_clone()?)?;
            flags.push((signal, raised));
        }
        pipe::register(SIGCHLD, wakes)?;
        // Typed by somebody before the program is in the foreground; they are not for us.
        for number in [SIGINT, SIGQUIT, SIGTSTP] {
            flag::register(number, Arc::<AtomicBool>::default())?;
        }
        let asked = flags.try_into().map_err(|_| io::Error::other("signals"))?;
        Ok(Self { woken, asked })
    }

    /// Until the next signal, or until then.
    fn wait(&mut self, until: Option<Instant>) {
        let left = until.map(|end| end.saturating_duration_since(Instant::now()).max(Duration::from_millis(1)));
        let _ = self.woken.set_read_timeout(left);
        let _ = self.woken.read(&mut [0; 64]);
    }

    fn take(&self) -> Vec<Signal> {
        let raised = self.asked.iter().filter(|(_, raised)| raised.swap(false, Ordering::AcqRel));
        raised.map(|(signal, _)| *signal).collect()
    }
}

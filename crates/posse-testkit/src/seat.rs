//! A simulated user at a terminal: runs a command in a real PTY and reads the screen.

use std::cell::RefCell;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::{Child, Command};
use std::sync::Arc;

use posse_core::screen::{Screen, Size};
use posse_sim::watched::Watched;
use posse_term::emulator::{Emulator, HistoryLimit};

use crate::PATIENCE;

/// Runs the command as an interactive shell does: the shell leads the session and outlives the command. After the
/// command exits, the shell closes the terminal, waits until the window has read everything, and exits with the
/// command's code. So no output is lost with the terminal. Traps, unlike ignored signals, are not inherited by the
/// command.
const LEADER: &str = r#"trap : HUP INT QUIT TERM
all_read=$1; shift
"$@"; code=$?
exec <&- >&- 2>&-
read -r _ <"$all_read"
exit $code"#;

struct SeatScreen {
    emulator: Emulator,
    bytes: Vec<u8>,
    ended: bool,
}

pub struct Seat {
    terminal: File,
    child: Child,
    /// The pipe on which the leader waits. The leader opens it.
    _awaited: OwnedFd,
    shown: Arc<Watched<SeatScreen>>,
}

impl Seat {
    /// Starts the command in a window, with only the environment that was set for the command.
    #[allow(clippy::unwrap_used)]
    pub fn new(command: &Command, size: Size) -> Self {
        let (pty, pts) = pty_process::blocking::open().unwrap();
        pty.resize(pty_process::Size::new(size.rows(), size.cols())).unwrap();
        let (awaited, all_read) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).unwrap();
        let mut leader = Command::new("/bin/sh");
        leader.args(["-c", LEADER, "sh", &format!("/proc/{}/fd/{}", std::process::id(), awaited.as_raw_fd())]);
        leader.arg(command.get_program()).args(command.get_args());
        leader.env_clear().envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        if let Some(directory) = command.get_current_dir() {
            leader.current_dir(directory);
        }
        let child = pty_process::blocking::Command::from(leader).spawn(pts).unwrap();
        let terminal = File::from(OwnedFd::from(pty));
        let emulator = Emulator::new(size, HistoryLimit::default());
        let shown = Arc::new(Watched::new(SeatScreen { emulator, bytes: Vec::new(), ended: false }));
        let (mut reader, shared) = (terminal.try_clone().unwrap(), shown.clone());
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            loop {
                let read = match reader.read(&mut buffer) {
                    Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                    // The last writer has closed it.
                    read => read.unwrap_or(0),
                };
                shared.change(|shown| {
                    shown.emulator.feed(&buffer[..read]);
                    shown.bytes.extend_from_slice(&buffer[..read]);
                    shown.ended = read == 0;
                });
                if read == 0 {
                    return drop(all_read);
                }
            }
        });
        Self { terminal, child, _awaited: awaited, shown }
    }

    #[track_caller]
    pub fn until(&self, fits: impl Fn(&Screen) -> bool) -> Screen {
        // The screen may change right after a match.
        let fitting = RefCell::new(None);
        self.shown.wait(PATIENCE, |shown| {
            fitting.replace(Some(shown.emulator.screen()).filter(&fits));
            shown.ended || fitting.borrow().is_some()
        });
        fitting.into_inner().unwrap_or_else(|| {
            let shown = self.shown.look();
            let how = if shown.ended { "the command has ended" } else { "it never came" };
            let (text, bytes) = (shown.emulator.screen().text(), shown.bytes.escape_ascii());
            panic!("{how}; the window shows:\n{text}\nand was sent:\n{bytes}");
        })
    }

    pub fn bytes(&self) -> Vec<u8> {
        self.shown.look().bytes.clone()
    }

    #[track_caller]
    pub fn type_keys(&self, keys: &[u8]) {
        (&self.terminal).write_all(keys).unwrap_or_else(|error| panic!("cannot type: {error}"));
    }

    #[track_caller]
    pub fn resize(&self, size: Size) {
        let winsize = rustix::termios::Winsize { ws_row: size.rows(), ws_col: size.cols(), ws_xpixel: 0, ws_ypixel: 0 };
        self.shown.look().emulator.resize(size);
        rustix::termios::tcsetwinsize(&self.terminal, winsize).unwrap_or_else(|error| panic!("cannot resize: {error}"));
    }

    #[track_caller]
    pub fn exit_code(mut self) -> Option<i32> {
        self.child.wait().unwrap_or_else(|error| panic!("{error}")).code()
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

//! The window someone attaches from.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::time::Duration;

use posse_core::screen::Size;
use posse_term::emulator::TerminalView;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::time::{Instant, timeout_at};

use super::keys::{Splitter, Typed};

/// How long the beginning of a key may wait for the rest. Terminals send both at once; nobody notices so short a wait.
const REST_OF_KEY: Duration = Duration::from_millis(25);

/// The user's terminal in raw mode, and back when this goes.
pub(super) struct Window {
    terminal: File,
    /// The same, to be waited for. Tokio has no type for terminals; a pipe's reading end does just this.
    keyboard: pipe::Receiver,
    splitter: Splitter,
    /// When the splitter has held something for long enough.
    flush_at: Option<Instant>,
    before: Termios,
}

impl Window {
    pub(super) fn open(splitter: Splitter) -> std::io::Result<Self> {
        // Opened anew, so that waiting without blocking is our affair and not that of the shell that shares it.
        let flags = rustix::fs::OFlags::NONBLOCK.bits() as i32;
        let file = File::options().read(true).write(true).custom_flags(flags).open("/dev/tty")?;
        let before = tcgetattr(&file)?;
        let mut raw = before.clone();
        raw.make_raw();
        let keyboard = pipe::Receiver::from_file_unchecked(file.try_clone()?)?;
        let window = Self { terminal: file, keyboard, splitter, flush_at: None, before };
        tcsetattr(&window.terminal, OptionalActions::Flush, &raw)?;
        write(TerminalView::ENTER);
        Ok(window)
    }

    /// What is typed next; a keyboard that is gone detaches. Nothing is lost if this is not waited for to the end.
    pub(super) async fn typed(&mut self) -> std::io::Result<Typed> {
        let mut buffer = [0; 4096];
        let read = self.keyboard.read(&mut buffer);
        let n = match self.flush_at {
            None => read.await?,
            Some(at) => match timeout_at(at, read).await {
                Ok(read) => read?,
                Err(_) => {
                    self.flush_at = None;
                    return Ok(self.splitter.flush());
                }
            },
        };
        if n == 0 {
            return Ok(Typed { keys: Vec::new(), detach: true });
        }
        let typed = self.splitter.feed(&buffer[..n]);
        self.flush_at = self.splitter.holds().then(|| Instant::now() + REST_OF_KEY);
        Ok(typed)
    }

    pub(super) fn size() -> Size {
        crate::ui::window().map_or(Size::DEFAULT, |(rows, cols)| Size::clamped(rows, cols))
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        write(TerminalView::LEAVE);
        let _ = tcsetattr(&self.terminal, OptionalActions::Flush, &self.before);
    }
}

pub(super) fn write(bytes: &[u8]) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(bytes).and_then(|()| out.flush());
}

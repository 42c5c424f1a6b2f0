//! The window someone attaches from.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;

use posse_core::screen::Size;
use posse_term::emulator::TerminalView;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;

use super::keys::DetachKey;

pub(super) struct KeyboardInput {
    /// The bytes for the program: those before the detach key.
    pub(super) keys: Vec<u8>,
    pub(super) detach: bool,
}

/// The user's terminal in raw mode, and back when this goes.
pub(super) struct Window {
    terminal: File,
    /// The same, to be waited for. Tokio has no type for terminals; a pipe's reading end does just this.
    keyboard: pipe::Receiver,
    detach_key: DetachKey,
    before: Termios,
}

impl Window {
    pub(super) fn open(detach_key: DetachKey) -> std::io::Result<Self> {
        // Opened anew, so that waiting without blocking is our affair and not that of the shell that shares it.
        let flags = rustix::fs::OFlags::NONBLOCK.bits() as i32;
        let file = File::options().read(true).write(true).custom_flags(flags).open("/dev/tty")?;
        let before = tcgetattr(&file)?;
        let mut raw = before.clone();
        raw.make_raw();
        let keyboard = pipe::Receiver::from_file_unchecked(file.try_clone()?)?;
        let window = Self { terminal: file, keyboard, detach_key, before };
        tcsetattr(&window.terminal, OptionalActions::Flush, &raw)?;
        write(TerminalView::ENTER);
        Ok(window)
    }

    /// Waits for what is typed next. A keyboard that is gone detaches.
    pub(super) async fn typed(&mut self) -> std::io::Result<KeyboardInput> {
        let mut buffer = [0; 4096];
        let read = self.keyboard.read(&mut buffer).await?;
        let detach = self.detach_key.find(&buffer[..read]);
        let end = detach.unwrap_or(read);
        Ok(KeyboardInput { keys: buffer[..end].to_vec(), detach: detach.is_some() || read == 0 })
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

//! A terminal's bytes in, its screen and what was said out of band out.
//!
//! vt100 draws; this module decides what vt100 gets to see and adds what it lacks. The stream is cut
//! into whole pieces first (`sequence`), so vt100 is always between two sequences when we look at it,
//! and chunking cannot change anything. Queries are answered here (`responder`); the caller writes the
//! answers. What vt100 does not know is handled here where programs need it, and told as a
//! [`Signal`] otherwise. `docs/decisions/0002-emulator.md` has the choice and its limits.
//!
//! Pure: no IO, no clock, and no panic for any bytes.

mod alternate_grid;
mod bulk_lines;
mod callbacks;
mod checkpoint;
mod control;
mod drawing;
mod history;
mod keyboard;
mod osc;
mod text;
mod view;

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;

use std::num::NonZeroU16;
use std::panic::{AssertUnwindSafe, catch_unwind};

use posse_core::screen::{Screen, Size};
use posse_core::signal::Signal;

use crate::responder;
use crate::sequence::{Scanner, StreamPiece};

pub use checkpoint::BadCheckpoint;
pub use history::HistoryLimit;
pub use view::TerminalView;

use callbacks::EmulatorCallbacks;
use keyboard::Keyboard;
use text::Printed;

/// The most answers kept from one call of `feed`. A program that asks more at once does not wait for
/// answers, it floods.
const REPLIES_MAX: usize = 1024;

/// What the program said in the bytes just fed, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FeedOutcome {
    /// At most 1,024. Of a flood the ones we do not understand go first, then the oldest.
    pub signals: Vec<Signal>,
    /// To be written to the program as they are, in this order.
    pub replies: Vec<QueryReply>,
    /// Whether a synchronised update ended: what is on screen now was meant to be seen.
    pub frame_ended: bool,
    /// Whether vt100 failed on these bytes, which no known ones make it do. The screen was cleared;
    /// a change of size makes most programs draw it again.
    pub screen_lost: bool,
}

/// The answer to one query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryReply {
    /// The offset of output just after the query's last byte. It names the query for ever: no two
    /// queries share one, and replayed output gives the same.
    pub at: u64,
    pub bytes: Vec<u8>,
}

/// How the terminal wants its input encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InputModes {
    pub bracketed_paste: bool,
    pub application_cursor: bool,
    pub application_keypad: bool,
    pub mouse: vt100::MouseProtocolMode,
    pub mouse_encoding: vt100::MouseProtocolEncoding,
    /// Flags of the kitty keyboard protocol; 0 is the old encoding.
    pub keyboard: u8,
    /// Level of xterm's `modifyOtherKeys`; 0 is off.
    pub other_keys: u8,
}

/// Modes that vt100 does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Modes {
    /// `?7`: text goes on in the next row.
    wrap: bool,
    /// `4`: text pushes what is right of it away.
    insert: bool,
    /// `?2026`: inside a synchronised update.
    frame: bool,
    other_keys: u8,
    /// Whether the character sets G0 and G1 are line drawings.
    graphics: [bool; 2],
    /// Whether G1 is the one in use.
    shifted: bool,
}

impl Default for Modes {
    fn default() -> Self {
        Self { wrap: true, insert: false, frame: false, other_keys: 0, graphics: [false; 2], shifted: false }
    }
}

pub struct Emulator {
    terminal: vt100::Parser<EmulatorCallbacks>,
    scanner: Scanner,
    offset: u64,
    size: Size,
    title: String,
    modes: Modes,
    keyboard: Keyboard,
    printed: Printed,
    /// Collected by the current `feed`.
    replies: Vec<QueryReply>,
    frame_ended: bool,
    screen_lost: bool,
}

impl Emulator {
    pub fn new(size: Size, limit: HistoryLimit) -> Self {
        Self {
            terminal: terminal_of(size, EmulatorCallbacks::new(limit)),
            scanner: Scanner::default(),
            offset: 0,
            size,
            title: String::new(),
            modes: Modes::default(),
            keyboard: Keyboard::default(),
            printed: Printed::default(),
            replies: Vec::new(),
            frame_ended: false,
            screen_lost: false,
        }
    }

    /// Takes the next bytes of output, cut anywhere.
    pub fn feed(&mut self, bytes: &[u8]) -> FeedOutcome {
        let rest = self.bulk_lines(bytes);
        self.scan(rest);
        FeedOutcome {
            signals: self.terminal.callbacks_mut().signals.take(),
            replies: std::mem::take(&mut self.replies),
            frame_ended: std::mem::take(&mut self.frame_ended),
            screen_lost: std::mem::take(&mut self.screen_lost),
        }
    }

    fn scan(&mut self, bytes: &[u8]) {
        let mut scanner = std::mem::take(&mut self.scanner);
        let mut rest = bytes;
        while let Some(piece) = scanner.next(&mut rest) {
            let at = self.offset + (bytes.len() - rest.len()) as u64;
            self.take(piece, at);
        }
        self.scanner = scanner;
        self.offset += bytes.len() as u64;
    }

    fn take(&mut self, piece: StreamPiece<'_>, at: u64) {
        if let StreamPiece::Text(text) = piece {
            return self.text(text);
        }
        self.settle();
        let printed = std::mem::take(&mut self.printed);
        match piece {
            StreamPiece::Control(control)
                if (control.private, control.intermediates, control.last) == (None, b"", b'b') =>
            {
                self.repeat(&control, printed);
            }
            StreamPiece::Control(control) => self.control(&control, at),
            StreamPiece::Escape { intermediates, last } => self.escape(intermediates, last, at),
            StreamPiece::Command { body, end } => match responder::command(body, end) {
                Some(answer) => self.reply(at, answer),
                None => self.hear(osc::signal(body)),
            },
            StreamPiece::Device(body) => {
                if let Some(answer) = responder::device(body) {
                    self.reply(at, answer);
                }
            }
            StreamPiece::Text(_) | StreamPiece::Nothing => {}
        }
    }

    fn hear(&mut self, signal: Signal) {
        if let Signal::Title { title } = &signal {
            self.title.clone_from(title);
        }
        self.terminal.callbacks_mut().signals.push(signal);
    }

    fn reply(&mut self, at: u64, bytes: Vec<u8>) {
        if self.replies.len() < REPLIES_MAX {
            self.replies.push(QueryReply { at, bytes });
        }
    }

    /// Shows vt100 something whole.
    fn draw(&mut self, bytes: &[u8]) {
        self.with_terminal(|terminal| terminal.process(bytes));
    }

    /// The last net. vt100 indexes and unwraps by assumptions about its cells; one that did not hold is
    /// known and avoided (see `text`). Should there be another, a blank screen is better than a
    /// terminal nobody watches any more.
    fn with_terminal(&mut self, change: impl FnOnce(&mut vt100::Parser<EmulatorCallbacks>)) {
        let terminal = &mut self.terminal;
        if catch_unwind(AssertUnwindSafe(|| change(terminal))).is_err() {
            let limit = self.terminal.callbacks().history.limit();
            let ears = std::mem::replace(self.terminal.callbacks_mut(), EmulatorCallbacks::new(limit));
            self.terminal = terminal_of(self.size, ears);
            self.screen_lost = true;
        }
    }

    pub fn resize(&mut self, size: Size) {
        if size == self.size {
            return;
        }
        self.size = size;
        // vt100 counts the rows that ever scrolled off and, when a screen grows, puts as many blank
        // ones on top. Programs that draw upwards from the cursor do not expect them, and the count
        // is a state nobody can read. So it is forgotten first; it lives in the main screen.
        let alternate = self.terminal.screen().alternate_screen();
        if alternate {
            self.draw(b"\x1b[?47l");
        }
        self.terminal.screen_mut().clear_scrollback();
        if alternate {
            self.draw(b"\x1b[?47h");
        }
        self.with_terminal(|terminal| terminal.set_size(nonzero(size.rows()), nonzero(size.cols())));
    }

    pub fn size(&self) -> Size {
        self.size
    }

    /// How many bytes the terminal has put out since it began, as far as we have read them.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Goes on at `offset` although the bytes before it were lost: a sequence that had begun is
    /// forgotten, and so is a synchronised update, whose end may have been among them.
    pub fn skip_to(&mut self, offset: u64) {
        self.scanner = Scanner::default();
        self.offset = offset;
        self.modes.frame = false;
        self.printed = Printed::default();
    }

    /// Inside a synchronised update (mode 2026): the screen is not meant to be seen.
    pub fn in_frame(&self) -> bool {
        self.modes.frame
    }

    pub fn screen(&self) -> Screen {
        let screen = self.terminal.screen();
        let rows = screen.rows(0, self.size.cols()).map(|mut row| {
            // Only spaces: a no-break space at the end of a row is how an empty input box looks.
            row.truncate(row.trim_end_matches(' ').len());
            row
        });
        Screen {
            size: self.size,
            rows: rows.collect(),
            cursor: (!screen.hide_cursor()).then(|| self.cursor()),
            alternate: screen.alternate_screen(),
            title: self.title.clone(),
        }
    }

    pub fn title(&self) -> &str {
        &self.title
    }

    /// What scrolled off the top of the main screen, oldest first. A line that was wrapped at the
    /// margin is one line here, whatever the width was; the last one may go on on the screen.
    pub fn history(&self) -> impl Iterator<Item = &str> {
        self.terminal.callbacks().history.lines()
    }

    /// Where the cursor is, as a row counted on from whatever the first one was: rows that scroll off count too. Good
    /// for saying later what came after it; not kept by a checkpoint.
    pub fn cursor_line(&self) -> u64 {
        self.terminal.callbacks().history.rows() + u64::from(self.cursor().0)
    }

    /// The text in the rows below a `cursor_line` of the main screen: what has scrolled off since, then the screen.
    /// Rows that were wrapped are counted by the width of today.
    pub fn text_below(&self, line: u64) -> String {
        let scrolled = self.terminal.callbacks().history.rows();
        let screen = self.screen();
        let skip = (line + 1).saturating_sub(scrolled) as usize;
        let mut above = scrolled.saturating_sub(line + 1) as usize;
        let mut lines: Vec<&str> = screen.filled_rows().iter().skip(skip).rev().map(String::as_str).collect();
        let history: Vec<&str> = self.history().collect();
        for line in history.into_iter().rev() {
            if above == 0 {
                break;
            }
            above = above.saturating_sub(line.chars().count().div_ceil(usize::from(self.size.cols())).max(1));
            lines.push(line);
        }
        lines.reverse();
        lines.join("\n")
    }

    pub fn input_modes(&self) -> InputModes {
        let screen = self.terminal.screen();
        InputModes {
            bracketed_paste: screen.bracketed_paste(),
            application_cursor: screen.application_cursor(),
            application_keypad: screen.application_keypad(),
            mouse: screen.mouse_protocol_mode(),
            mouse_encoding: screen.mouse_protocol_encoding(),
            keyboard: self.keyboard.flags(screen.alternate_screen()),
            other_keys: self.modes.other_keys,
        }
    }

    /// Row and column of the cursor, on the screen. vt100 puts a cursor that waits at the margin for
    /// the next character one column further.
    fn cursor(&self) -> (u16, u16) {
        let (row, column) = self.terminal.screen().cursor_position();
        (row, column.min(self.size.cols() - 1))
    }

    fn at_margin(&self) -> bool {
        self.terminal.screen().cursor_position().1 >= self.size.cols()
    }
}

/// Without scrollback: rows that leave the screen go to our history.
fn terminal_of(size: Size, ears: EmulatorCallbacks) -> vt100::Parser<EmulatorCallbacks> {
    vt100::Parser::new_with_callbacks(nonzero(size.rows()), nonzero(size.cols()), 0, ears)
}

/// A [`Size`] has no zero in it.
fn nonzero(n: u16) -> NonZeroU16 {
    NonZeroU16::new(n).unwrap_or(NonZeroU16::MIN)
}

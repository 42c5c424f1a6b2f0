//! Turns a terminal's output into its screen, and into signals and replies to queries.
//!
//! vt100 draws; this module selects and translates its input, and adds the features it lacks. The stream is cut into
//! whole pieces first (`sequence`), so vt100 is always between two sequences when its state is read, and the chunking of
//! the output makes no difference. `responder` answers queries; the caller writes the answers. Sequences unknown to vt100
//! are handled here if programs need them. `docs/decisions/0002-emulator.md` has the choice and its limits.
//!
//! Pure: no IO, no clock, and no panic for any bytes.

mod alternate_grid;
mod bulk_lines;
mod checkpoint;
mod control;
mod drawing;
mod history;
mod keyboard;
mod osc;
mod responder;
mod text;
mod view;

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::num::NonZeroU16;
use std::panic::{AssertUnwindSafe, catch_unwind};

use posse_core::screen::{Screen, Size};
use posse_core::signal::Signal;

use crate::sequence::{Scanner, StreamPiece};

pub use checkpoint::BadCheckpoint;
pub use history::HistoryLimit;
pub use view::TerminalView;

use history::History;
use keyboard::Keyboard;
use text::Printed;

/// The maximum number of answers kept from one call of `feed`. A program that sends more queries at once does not wait for
/// the answers.
const REPLIES_MAX: usize = 1024;

/// The sequences that end every kind of mouse tracking.
const MOUSE_OFF: &str = "\x1b[?9l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1005l\x1b[?1006l";

/// The signals and replies of one call of `feed`, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FeedOutcome {
    /// At most 1,024: the oldest ones are dropped.
    pub signals: Vec<Signal>,
    /// The caller writes these to the program, in this order.
    pub replies: Vec<QueryReply>,
    /// True if a synchronised update ended, which completes the screen.
    pub frame_ended: bool,
    /// True if vt100 panicked on these bytes; no known bytes make it panic. The screen was cleared; a change of size
    /// makes most programs redraw it.
    pub screen_lost: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryReply {
    /// The output offset just behind the query's last byte. It identifies the query: no two queries share it, and replayed
    /// output gives the same offset.
    pub at: u64,
    pub bytes: Vec<u8>,
}

/// Modes that vt100 does not know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
struct Modes {
    /// `?7` is off: text does not continue in the next row.
    no_wrap: bool,
    /// `4`: text shifts the rest of the row to the right.
    insert: bool,
    /// `?2026`: inside a synchronised update.
    frame: bool,
    /// Level of xterm's `modifyOtherKeys`; 0 is off.
    other_keys: u8,
    /// True if the character sets G0 and G1 are line drawings.
    graphics: [bool; 2],
    /// True if G1 is the one in use.
    shifted: bool,
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

    /// Processes the next bytes of output. They may be cut anywhere.
    pub fn feed(&mut self, bytes: &[u8]) -> FeedOutcome {
        let rest = self.bulk_lines(bytes);
        self.scan(rest);
        FeedOutcome {
            signals: std::mem::take(&mut self.terminal.callbacks_mut().signals).into(),
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
            StreamPiece::Escape { intermediates, last } => self.escape(intermediates, last),
            StreamPiece::Command { body, end } => match responder::command(body, end) {
                None => self.hear(osc::signal(body)),
                answer => self.reply(at, answer),
            },
            StreamPiece::Device(body) => self.reply(at, responder::device(body)),
            StreamPiece::Text(_) | StreamPiece::Nothing => {}
        }
    }

    fn hear(&mut self, signal: Option<Signal>) {
        if let Some(Signal::Title { title }) = &signal {
            self.title.clone_from(title);
        }
        signal.into_iter().for_each(|signal| self.terminal.callbacks_mut().push(signal));
    }

    fn reply(&mut self, at: u64, answer: Option<Vec<u8>>) {
        if let Some(bytes) = answer.filter(|_| self.replies.len() < REPLIES_MAX) {
            self.replies.push(QueryReply { at, bytes });
        }
    }

    /// Passes whole sequences or characters to vt100.
    fn draw(&mut self, bytes: &[u8]) {
        self.with_terminal(|terminal| terminal.process(bytes));
    }

    /// Catches panics of vt100, which indexes and unwraps by assumptions about its cells; one wrong assumption is known
    /// and avoided (see `text`). If there is another one, a blank screen is better than a dead terminal.
    fn with_terminal(&mut self, change: impl FnOnce(&mut vt100::Parser<EmulatorCallbacks>)) {
        let terminal = &mut self.terminal;
        if catch_unwind(AssertUnwindSafe(|| change(terminal))).is_err() {
            let limit = self.terminal.callbacks().history.limit;
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
        // vt100 counts the rows that scrolled off and, when a screen grows, adds as many blank rows on top. Programs that
        // draw upwards from the cursor do not expect those rows, and the count cannot be read. So it is reset first; it
        // belongs to the main screen.
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

    /// Returns the number of output bytes processed since the terminal started.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Continues at `offset` although the bytes before it were lost. Drops an unfinished sequence, and a synchronised
    /// update, whose end may have been lost.
    pub fn skip_to(&mut self, offset: u64) {
        self.scanner = Scanner::default();
        self.offset = offset;
        self.modes.frame = false;
        self.printed = Printed::default();
    }

    /// Returns whether a synchronised update (mode 2026) is in progress: the screen is incomplete.
    pub fn in_frame(&self) -> bool {
        self.modes.frame
    }

    pub fn screen(&self) -> Screen {
        let screen = self.terminal.screen();
        let rows = screen.rows(0, self.size.cols()).map(|mut row| {
            // Only spaces: an empty input box ends with a no-break space.
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

    /// Returns the lines that scrolled off the top of the main screen, oldest first. A line that was wrapped at the
    /// margin is one line here; the last line may continue on the screen.
    pub fn history(&self) -> impl Iterator<Item = &str> {
        self.terminal.callbacks().history.lines()
    }

    /// Returns the row of the cursor, including rows that scrolled off, for `text_below`. A checkpoint does not keep
    /// the count.
    pub fn cursor_line(&self) -> u64 {
        self.terminal.callbacks().history.rows + u64::from(self.cursor().0)
    }

    /// Returns the text in the rows below a `cursor_line` of the main screen: rows that scrolled off since, then the
    /// screen. Wrapped rows are counted by the current width.
    pub fn text_below(&self, line: u64) -> String {
        let scrolled = self.terminal.callbacks().history.rows;
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

    pub fn bracketed_paste(&self) -> bool {
        self.terminal.screen().bracketed_paste()
    }

    /// Returns the sequences that set the modes for keys and mouse and the style of the cursor, from any state.
    pub fn input_modes(&self) -> String {
        let set = self.terminal.screen().input_mode_formatted();
        format!("{MOUSE_OFF}\x1b[0 q{set}\x1b[={}u\x1b[>4;{}m", self.keyboard_flags(), self.modes.other_keys)
    }

    /// Returns the flags of the kitty keyboard protocol; 0 is the old encoding.
    fn keyboard_flags(&self) -> u8 {
        self.keyboard.flags(self.terminal.screen().alternate_screen())
    }

    /// Returns row and column of the cursor. vt100 counts a cursor that waits at the margin one column further.
    fn cursor(&self) -> (u16, u16) {
        let (row, column) = self.terminal.screen().cursor_position();
        (row, column.min(self.size.cols() - 1))
    }

    fn at_margin(&self) -> bool {
        self.terminal.screen().cursor_position().1 >= self.size.cols()
    }
}

/// Creates a parser without scrollback: rows that leave the screen go to `History`.
fn terminal_of(size: Size, ears: EmulatorCallbacks) -> vt100::Parser<EmulatorCallbacks> {
    vt100::Parser::new_with_callbacks(nonzero(size.rows()), nonzero(size.cols()), 0, ears)
}

fn nonzero(n: u16) -> NonZeroU16 {
    NonZeroU16::new(n).unwrap_or(NonZeroU16::MIN)
}

/// The maximum number of signals kept from one call of `feed`.
const SIGNALS_MAX: usize = 1024;

struct EmulatorCallbacks {
    signals: VecDeque<Signal>,
    history: History,
    /// The number of rows that scroll off next and are not kept, see `bulk_lines`.
    blank_rows: usize,
}

impl EmulatorCallbacks {
    fn new(limit: HistoryLimit) -> Self {
        Self { signals: VecDeque::new(), history: History::new(limit), blank_rows: 0 }
    }

    /// Adds a signal. Signals are edges: the last title matters more than the first.
    fn push(&mut self, signal: Signal) {
        if self.signals.len() == SIGNALS_MAX {
            self.signals.pop_front();
        }
        self.signals.push_back(signal);
    }
}

impl vt100::Callbacks for EmulatorCallbacks {
    fn audible_bell(&mut self, _: &mut vt100::Screen) {
        self.push(Signal::Bell);
    }

    fn visual_bell(&mut self, _: &mut vt100::Screen) {
        self.push(Signal::Bell);
    }

    fn on_scroll(&mut self, row: vt100::capture::RowContents<'_>, alternate_screen: bool) {
        if self.blank_rows > 0 {
            self.blank_rows -= 1;
        } else if !alternate_screen {
            self.history.push(&row);
        }
    }
}

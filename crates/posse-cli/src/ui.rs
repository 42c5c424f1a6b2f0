//! The only writer to the user's terminal. Answers go to standard output, talk to standard error; colours only
//! where someone sees them.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;

use jiff::tz::TimeZone;
use posse_core::file_problem::ExcerptLook;
use posse_core::status::StatusKind;
use posse_core::visible;
use serde::Serialize;
use tokio::io::Interest;
use tokio::net::unix::pipe::Sender;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::error::Error;

pub(crate) struct Ui {
    json: bool,
    quiet: bool,
    colour_out: bool,
    colour_err: bool,
    /// Standard output has no reader.
    unread: std::cell::Cell<bool>,
}

/// A colour, or another way to stand out, as a terminal numbers it (SGR).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Colour {
    Bold = 1,
    Dim = 2,
    Red = 31,
    Green = 32,
    Yellow = 33,
    Blue = 34,
}

impl Ui {
    pub(crate) fn new(json: bool, quiet: bool) -> Self {
        let wanted = colours_wanted();
        Self {
            json,
            quiet,
            colour_out: wanted && io::stdout().is_terminal(),
            colour_err: wanted && io::stderr().is_terminal(),
            unread: std::cell::Cell::new(false),
        }
    }

    /// Without colours.
    #[cfg(test)]
    pub(crate) fn dull() -> Self {
        Self { json: false, quiet: false, colour_out: false, colour_err: false, unread: std::cell::Cell::new(false) }
    }

    pub(crate) fn json(&self) -> bool {
        self.json
    }

    /// Returns whether only results, warnings and errors are printed.
    pub(crate) fn quiet(&self) -> bool {
        self.quiet
    }

    /// Returns whether standard output is a terminal, and text is wanted.
    pub(crate) fn interactive(&self) -> bool {
        !self.json && io::stdout().is_terminal()
    }

    /// An answer: as JSON if asked for, else as the text given.
    pub(crate) fn answer<T: Serialize>(&self, value: &T, text: impl FnOnce() -> String) {
        if self.json {
            self.line(&serde_json::to_string_pretty(value).unwrap_or_default());
        } else {
            self.print(&text());
        }
    }

    /// Prints the result of an action: as JSON if asked for, else as text unless `--quiet` is given.
    pub(crate) fn done<T: Serialize>(&self, value: &T, text: impl FnOnce() -> String) {
        if self.json || !self.quiet {
            self.answer(value, text);
        }
    }

    /// Prints one line of a longer answer: a JSON value, or text.
    pub(crate) fn item<T: Serialize>(&self, value: &T, text: impl FnOnce() -> String) {
        self.line(&if self.json { serde_json::to_string(value).unwrap_or_default() } else { text() });
    }

    pub(crate) fn line(&self, text: &str) {
        self.print(&format!("{text}\n"));
    }

    /// Text as it is. A reader that has gone away is no error of ours: `posse ls | head` just ends.
    pub(crate) fn print(&self, text: &str) {
        if self.is_unread() {
            return;
        }
        // Everything of others is made safe where it is put together. This is for what was forgotten there.
        let shown = if self.interactive() { Cow::Owned(visible::with_sequences(text)) } else { Cow::Borrowed(text) };
        if let Err(error) = io::stdout().write_all(shown.as_bytes()).and_then(|()| io::stdout().flush())
            && error.kind() == io::ErrorKind::BrokenPipe
        {
            self.unread.set(true);
        }
    }

    /// Returns whether printing has shown that standard output has no reader.
    pub(crate) fn is_unread(&self) -> bool {
        self.unread.get()
    }

    /// Waits until the reader of standard output is gone, for commands that have more output only later. Anything but a
    /// pipe counts as read forever.
    pub(crate) async fn unread(&self) {
        // A pipe without a reader is in error; what cannot be waited for, such as a file, never is.
        let pipe = io::stdout().as_fd().try_clone_to_owned().map(File::from).and_then(Sender::from_file_unchecked);
        if let Ok(pipe) = pipe
            && pipe.ready(Interest::ERROR).await.is_ok()
        {
            self.unread.set(true);
            return;
        }
        std::future::pending::<()>().await;
    }

    /// Talk, for people who want it: hints, progress, what happens next.
    pub(crate) fn say(&self, text: &str) {
        if !self.quiet {
            self.warn(text);
        }
    }

    /// Prints a warning, also with `--quiet`.
    pub(crate) fn warn(&self, text: &str) {
        if !self.json {
            let _ = writeln!(io::stderr(), "{}", visible::lines(text));
        }
    }

    pub(crate) fn error(&self, error: &Error) {
        if self.json {
            let value = serde_json::json!({ "error": error.to_string(), "kind": error.kind(), "hint": error.hint() });
            let _ = writeln!(io::stderr(), "{value}");
            return;
        }
        if matches!(error, Error::Interrupted | Error::Terminated | Error::HungUp) {
            // The user asked for it: that is no error.
            let _ = writeln!(io::stderr(), "{error}");
            return;
        }
        // Part of the text comes from the daemon and the programs it runs.
        let _ =
            writeln!(io::stderr(), "{} {}", self.paint_err("error:", Colour::Red), visible::lines(&error.to_string()));
        if let Some(hint) = error.hint() {
            let _ = writeln!(io::stderr(), "{} {}", self.paint_err("hint:", Colour::Blue), visible::lines(&hint));
        }
    }

    /// The look of excerpts of files on standard output.
    pub(crate) fn excerpt_look(&self) -> ExcerptLook {
        let width = window().map_or(ExcerptLook::PLAIN.width, |(_, columns)| columns.clamp(40, 120).into());
        ExcerptLook { width, colour: self.colour_out }
    }

    pub(crate) fn paint(&self, text: &str, colour: impl Into<Option<Colour>>) -> String {
        painted(text, colour.into().filter(|_| self.colour_out))
    }

    fn paint_err(&self, text: &str, colour: Colour) -> String {
        painted(text, Some(colour).filter(|_| self.colour_err))
    }

    /// Rows under a header, columns aligned. On a terminal the last column is cut to fit.
    pub(crate) fn table(&self, header: &[&str], rows: impl IntoIterator<Item = Vec<Cell>>) -> String {
        let rows: Vec<Vec<Cell>> = rows.into_iter().collect();
        let mut widths: Vec<usize> = header.iter().map(|title| title.width()).collect();
        for row in &rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.text.width());
            }
        }
        let room = if self.interactive() { window().map(|(_, cols)| usize::from(cols)) } else { None };
        let header: Vec<Cell> = header.iter().map(|title| Cell::new(*title, Some(Colour::Dim))).collect();
        let mut text = String::new();
        for row in std::iter::once(&header).chain(&rows) {
            let mut column = 0;
            for (index, (cell, width)) in row.iter().zip(&widths).enumerate() {
                let last = index + 1 == row.len();
                let content = match room {
                    Some(room) if last => cut(&cell.text, room.saturating_sub(column)),
                    _ => cell.text.clone(),
                };
                let padding = if last { 0 } else { width - content.width() + 2 };
                text.push_str(&self.paint(&content, cell.colour));
                text.push_str(&" ".repeat(padding));
                column += width + 2;
            }
            text.truncate(text.trim_end().len());
            text.push('\n');
        }
        text
    }
}

fn painted(text: &str, colour: Option<Colour>) -> String {
    match colour {
        Some(colour) => format!("\x1b[{}m{text}\x1b[0m", colour as u8),
        None => text.to_owned(),
    }
}

/// Unless NO_COLOR says otherwise.
pub(crate) fn colours_wanted() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

pub(crate) struct Cell {
    text: String,
    colour: Option<Colour>,
}

impl Cell {
    pub(crate) fn new(text: impl Into<String>, colour: impl Into<Option<Colour>>) -> Self {
        Self { text: plain(&text.into()), colour: colour.into() }
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Cell::new(text, None)
    }
}

/// Asks a person whether agents may trust a directory. If the person declines, nothing is started. Without a terminal
/// nothing is trusted, and the agents ask for themselves. Waits on a separate thread, so that Ctrl-C works.
pub(crate) async fn trusts(question: String) -> Result<bool, Error> {
    if !io::stdin().is_terminal() {
        return Ok(false);
    }
    let asked = tokio::task::spawn_blocking(move || {
        eprint!("{question} [y/N] ");
        let mut answer = String::new();
        io::stdin().read_line(&mut answer)?;
        // Ctrl-D ends no line.
        if !answer.ends_with('\n') {
            eprintln!();
        }
        Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
    });
    let asked = asked.await.unwrap_or_else(|error| Err(io::Error::other(error)));
    if asked.map_err(Error::io("cannot read your answer"))? {
        return Ok(true);
    }
    let hint = "look at what is in there; then say yes, or give --trust and you are not asked";
    Err(Error::failed("cancelled: nothing was started").with_hint(hint))
}

/// Text of others in one line. What could move the cursor, or cannot be seen, is shown as its number.
pub(crate) fn plain(text: &str) -> String {
    visible::one_line(text)
}

pub(crate) fn colour_of(status: StatusKind) -> Colour {
    match status {
        StatusKind::Idle | StatusKind::Completed => Colour::Green,
        StatusKind::Processing => Colour::Blue,
        StatusKind::WaitingUserAnswer => Colour::Yellow,
        StatusKind::Error => Colour::Red,
    }
}

/// Returns as much of the text as fits into `columns`.
pub(crate) fn cut(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    let mut used = 1; // for the mark that something is missing
    let mut kept: String = text
        .chars()
        .take_while(|c| {
            used += c.width().unwrap_or(0);
            used <= columns
        })
        .collect();
    kept.push('…');
    kept
}

/// Rows and columns of the user's window.
pub(crate) fn window() -> Option<(u16, u16)> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    (size.ws_row > 0 && size.ws_col > 0).then_some((size.ws_row, size.ws_col))
}

/// The time of day here.
pub(crate) fn clock(at: jiff::Timestamp) -> String {
    at.to_zoned(TimeZone::system()).strftime("%T").to_string()
}

/// The date here.
pub(crate) fn date(at: jiff::Timestamp) -> String {
    at.to_zoned(TimeZone::system()).strftime("%F").to_string()
}

/// Date and time here.
pub(crate) fn date_time(at: jiff::Timestamp) -> String {
    format!("{} {}", date(at), clock(at))
}

/// Returns the time since then.
pub(crate) fn age(since: jiff::Timestamp) -> String {
    took(jiff::Timestamp::now().duration_since(since).as_secs())
}

/// "12s", "1m05s", "2h05m", "3d04h": how long something took.
pub(crate) fn took(seconds: i64) -> String {
    let seconds = seconds.max(0);
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{}h{:02}m", seconds / 3600, seconds % 3600 / 60),
        _ => format!("{}d{:02}h", seconds / 86_400, seconds % 86_400 / 3600),
    }
}

/// "812 B", "12 kB", "40 MB", "25 GB": how much.
pub(crate) fn bytes(bytes: u64) -> String {
    match bytes {
        0..10_000 => format!("{bytes} B"),
        10_000..10_000_000 => format!("{} kB", bytes / 1000),
        10_000_000..10_000_000_000 => format!("{} MB", bytes / 1_000_000),
        _ => format!("{} GB", bytes / 1_000_000_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_text_fits_and_says_so() {
        assert_eq!(cut("hello", 5), "hello");
        assert_eq!(cut("hello", 4), "hel…");
        assert_eq!(cut("日本語", 4), "日…");
        assert_eq!(cut("日本語", 5), "日本…");
        assert_eq!(cut("hello", 0), "…");
    }

    #[test]
    fn what_others_say_moves_no_cursor() {
        assert_eq!(plain("a\x1b[2J\u{9b}2J\nb"), "a\\u{1b}[2J\\u{9b}2J b");
        assert_eq!(visible::lines("a\x1b[2J\r\nb"), "a\\u{1b}[2J \nb");
    }

    #[test]
    fn columns_line_up_and_cannot_be_broken() {
        let ui = Ui::dull();
        let rows = [
            vec![Cell::from("日本".to_owned()), "x".to_owned().into()],
            vec!["a".to_owned().into(), "\x1b[2J".to_owned().into()],
        ];
        assert_eq!(ui.table(&["ID", "N"], rows), "ID    N\n日本  x\na     \\u{1b}[2J\n");
    }
}

//! Wraps text into rows. A row has no control characters, so that scenarios and prompts cannot control the terminal;
//! only `print` and `osc` steps can.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Columns and rows of the terminal, never zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ScreenSize {
    pub(crate) columns: usize,
    pub(crate) rows: usize,
}

impl ScreenSize {
    /// Replaces 0, which means that the terminal does not know its size, with the usual size.
    pub(crate) fn new(columns: u16, rows: u16) -> ScreenSize {
        let or = |value: u16, usual| if value == 0 { usual } else { usize::from(value) };
        ScreenSize { columns: or(columns, 80), rows: or(rows, 24) }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum RowStyle {
    #[default]
    Plain,
    Dim,
    Bold,
    Accent,
    Good,
    Bad,
}

impl RowStyle {
    pub(crate) fn sgr(self) -> &'static str {
        match self {
            RowStyle::Plain => "",
            RowStyle::Dim => "\x1b[2m",
            RowStyle::Bold => "\x1b[1m",
            RowStyle::Accent => "\x1b[38;5;173m",
            RowStyle::Good => "\x1b[32m",
            RowStyle::Bad => "\x1b[31m",
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ScreenRow {
    pub(crate) text: String,
    pub(crate) style: RowStyle,
}

impl ScreenRow {
    pub(crate) fn blank() -> ScreenRow {
        ScreenRow::default()
    }

    pub(crate) fn styled(text: impl Into<String>, style: RowStyle) -> ScreenRow {
        ScreenRow { text: text.into(), style }
    }

    /// Makes one row and cuts it with an ellipsis if it is too long.
    pub(crate) fn cut(text: &str, style: RowStyle, width: usize) -> ScreenRow {
        let text = clean(text);
        if text.width() <= width {
            return ScreenRow { text, style };
        }
        let mut short = text[..fit(&text, width.saturating_sub(1), false)].to_owned();
        short.push('…');
        if short.width() > width {
            short = "…".to_owned();
        }
        ScreenRow { text: short, style }
    }

    pub(crate) fn rule(glyph: char, width: usize) -> ScreenRow {
        ScreenRow::styled(glyph.to_string().repeat(width), RowStyle::Dim)
    }
}

/// Wraps text at words. The first row begins with `first`, every other with `rest`.
pub(crate) fn wrap(text: &str, first: &str, rest: &str, style: RowStyle, width: usize) -> Vec<ScreenRow> {
    let mut rows = Vec::new();
    for line in text.split('\n') {
        let line = clean(line);
        let mut left = line.as_str();
        loop {
            let prefix = if rows.is_empty() { first } else { rest };
            // If the prefix does not fit, only the text is shown.
            let prefix = if prefix.width() < width { prefix } else { "" };
            let room = width - prefix.width();
            let end = fit(left, room, true);
            let (piece, after) = left.split_at(end);
            let piece = if piece.width() > room { "?" } else { piece };
            let piece = if after.is_empty() { piece } else { piece.trim_end_matches(' ') };
            rows.push(ScreenRow { text: format!("{prefix}{piece}"), style });
            left = after.trim_start_matches(' ');
            if left.is_empty() {
                break;
            }
        }
    }
    rows
}

/// Returns how many bytes of the text fit into `room` columns, if possible whole words; at least one character.
fn fit(text: &str, room: usize, whole_words: bool) -> usize {
    let mut used = 0;
    let mut after_space = 0;
    for (at, c) in text.char_indices() {
        used += c.width().unwrap_or(0);
        if used > room && at > 0 {
            return if whole_words && c != ' ' && after_space > 0 { after_space } else { at };
        }
        if c == ' ' {
            after_space = at + 1;
        }
    }
    text.len()
}

fn clean(text: &str) -> String {
    if !text.chars().any(char::is_control) {
        return text.to_owned();
    }
    text.replace('\t', "    ").chars().filter(|c| !c.is_control()).collect()
}

pub(crate) fn text_width(text: &str) -> usize {
    text.width()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(rows: Vec<ScreenRow>) -> Vec<String> {
        rows.into_iter().map(|row| row.text).collect()
    }

    #[test]
    fn text_wraps_at_words_and_keeps_indentation() {
        let wrapped = |text, width| texts(wrap(text, "● ", "  ", RowStyle::Plain, width));
        assert_eq!(wrapped("one two three", 9), ["● one two", "  three"]);
        assert_eq!(wrapped("one\n\n  two", 20), ["● one", "  ", "    two"]);
        assert_eq!(wrapped("abcdefghij", 6), ["● abcd", "  efgh", "  ij"]);
        assert_eq!(wrapped("", 10), ["● "]);
        assert_eq!(wrapped("a\u{1b}[2Jb\tc", 40), ["● a[2Jb    c"]);
        assert_eq!(wrapped("日本語", 5), ["● 日", "  本", "  語"]);
        assert_eq!(wrapped("ab 日", 1), ["a", "b", "?"]);
    }

    #[test]
    fn long_row_is_cut_with_an_ellipsis() {
        let cut = |text, width| ScreenRow::cut(text, RowStyle::Plain, width).text;
        assert_eq!(cut("short", 5), "short");
        assert_eq!(cut("longer", 5), "long…");
        assert_eq!(cut("日本語", 4), "日…");
        assert_eq!(cut("日本", 1), "…");
    }
}

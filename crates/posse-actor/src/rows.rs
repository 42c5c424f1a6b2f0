//! Text to rows of a given width. A row holds no control character, so that nothing a scenario or a
//! prompt contains can steer the terminal; only `print`, `osc` and `title` steps can.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Columns and rows of the terminal, never zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    pub columns: usize,
    pub rows: usize,
}

impl Size {
    /// A terminal that says 0 does not know its size: then it is the usual one.
    pub fn new(columns: u16, rows: u16) -> Size {
        let or = |value: u16, usual| if value == 0 { usual } else { usize::from(value) };
        Size { columns: or(columns, 80), rows: or(rows, 24) }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Style {
    #[default]
    Plain,
    Dim,
    Bold,
    Accent,
    Good,
    Bad,
}

impl Style {
    pub(crate) fn sgr(self) -> &'static str {
        match self {
            Style::Plain => "",
            Style::Dim => "\x1b[2m",
            Style::Bold => "\x1b[1m",
            Style::Accent => "\x1b[38;5;173m",
            Style::Good => "\x1b[32m",
            Style::Bad => "\x1b[31m",
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) text: String,
    pub(crate) style: Style,
}

impl Row {
    pub(crate) fn blank() -> Row {
        Row::default()
    }

    pub(crate) fn styled(text: impl Into<String>, style: Style) -> Row {
        Row { text: text.into(), style }
    }

    /// One row, cut with an ellipsis if it is too long.
    pub(crate) fn cut(text: &str, style: Style, width: usize) -> Row {
        let text = clean(text);
        if text.width() <= width {
            return Row { text, style };
        }
        let mut short = text[..fit(&text, width.saturating_sub(1), Breaks::Anywhere)].to_owned();
        short.push('…');
        if short.width() > width {
            short = "…".to_owned();
        }
        Row { text: short, style }
    }

    pub(crate) fn rule(glyph: char, width: usize) -> Row {
        Row::styled(glyph.to_string().repeat(width), Style::Dim)
    }
}

/// Wraps text at words. The first row begins with `first`, every other with `rest`.
pub(crate) fn wrap(text: &str, first: &str, rest: &str, style: Style, width: usize) -> Vec<Row> {
    let mut rows = Vec::new();
    for line in text.split('\n') {
        let line = clean(line);
        let mut left = line.as_str();
        loop {
            let prefix = if rows.is_empty() { first } else { rest };
            // Where not even the prefix fits, the text is more useful than the indentation.
            let prefix = if prefix.width() < width { prefix } else { "" };
            let room = width - prefix.width();
            let end = fit(left, room, Breaks::AtWords);
            let (piece, after) = left.split_at(end);
            let piece = if piece.width() > room { "?" } else { piece };
            let piece = if after.is_empty() { piece } else { piece.trim_end_matches(' ') };
            rows.push(Row { text: format!("{prefix}{piece}"), style });
            left = after.trim_start_matches(' ');
            if left.is_empty() {
                break;
            }
        }
    }
    rows
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Breaks {
    AtWords,
    Anywhere,
}

/// How many bytes of the text fit into so many columns; always at least one character, if there is one.
fn fit(text: &str, room: usize, breaks: Breaks) -> usize {
    let mut used = 0;
    let mut after_space = 0;
    for (at, c) in text.char_indices() {
        used += c.width().unwrap_or(0);
        if used > room && at > 0 {
            return match breaks {
                _ if c == ' ' => at,
                Breaks::AtWords if after_space > 0 => after_space,
                _ => at,
            };
        }
        if c == ' ' {
            after_space = at + 1;
        }
    }
    text.len()
}

/// Without control characters; a tab becomes blanks.
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

    fn texts(rows: Vec<Row>) -> Vec<String> {
        rows.into_iter().map(|row| row.text).collect()
    }

    #[test]
    fn words_wrap_and_keep_their_indentation() {
        let wrapped = |text, width| texts(wrap(text, "● ", "  ", Style::Plain, width));
        assert_eq!(wrapped("one two three", 9), ["● one two", "  three"]);
        assert_eq!(wrapped("one\n\n  two", 20), ["● one", "  ", "    two"]);
        assert_eq!(wrapped("abcdefghij", 6), ["● abcd", "  efgh", "  ij"]);
        assert_eq!(wrapped("", 10), ["● "]);
        assert_eq!(wrapped("a\u{1b}[2Jb\tc", 40), ["● a[2Jb    c"]);
        assert_eq!(wrapped("日本語", 5), ["● 日", "  本", "  語"]);
        assert_eq!(wrapped("ab 日", 1), ["a", "b", "?"]);
    }

    #[test]
    fn a_row_is_cut_with_an_ellipsis() {
        let cut = |text, width| Row::cut(text, Style::Plain, width).text;
        assert_eq!(cut("short", 5), "short");
        assert_eq!(cut("longer", 5), "long…");
        assert_eq!(cut("日本語", 4), "日…");
        assert_eq!(cut("日本", 1), "…");
    }
}

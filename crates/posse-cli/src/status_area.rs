//! The inline status area at the bottom of a window. It is drawn over itself; the lines above it stay.

use unicode_width::UnicodeWidthStr;

use crate::ui::{Colour, Ui, cut, window};

/// Begin and end of a synchronized update. Terminals that do not know it ignore it.
const BEGIN: &str = "\x1b[?2026h";
const END: &str = "\x1b[?2026l";

/// A row of the area: texts and their colours.
pub(crate) type Row = Vec<(String, Option<Colour>)>;

pub(crate) struct StatusArea<'a> {
    ui: &'a Ui,
    /// The rows that were drawn last.
    text: String,
    /// The width of each row.
    widths: Vec<usize>,
}

impl<'a> StatusArea<'a> {
    pub(crate) fn new(ui: &'a Ui) -> Self {
        Self { ui, text: String::new(), widths: Vec::new() }
    }

    /// Removes the rows.
    pub(crate) fn clear(&mut self) {
        if !self.widths.is_empty() {
            let back = self.back(size().1);
            self.ui.print(&back);
        }
    }

    /// Prints lines that stay, in place of the rows.
    pub(crate) fn print(&mut self, lines: &str) {
        if !self.ui.json() && !self.ui.quiet() {
            self.clear();
            self.ui.print(lines);
        }
    }

    /// Prints permanent lines, and draws these rows below them, in one write to avoid flicker.
    pub(crate) fn draw(&mut self, lines: &str, rows: &[Row]) {
        if let Some(text) = self.update(lines, rows, size().1) {
            self.ui.print(&text);
        }
    }

    /// Returns the text that brings the window up to date; `None` if nothing has changed.
    fn update(&mut self, lines: &str, rows: &[Row], columns: usize) -> Option<String> {
        let rows: Vec<(String, usize)> = rows.iter().map(|row| painted(row, columns, self.ui)).collect();
        let text: String = rows.iter().map(|(row, _)| format!("{row}\n")).collect();
        if lines.is_empty() && text == self.text {
            return None;
        }
        let update = format!("{BEGIN}{}{lines}{text}{END}", self.back(columns));
        self.text = text;
        self.widths = rows.into_iter().map(|(_, width)| width).collect();
        Some(update)
    }

    /// Moves back to the start of the rows, and forgets them.
    fn back(&mut self, columns: usize) -> String {
        self.text.clear();
        // A window that was made narrower has broken rows in two.
        let rows: usize = self.widths.drain(..).map(|width| width.div_ceil(columns).max(1)).sum();
        if rows > 0 { format!("\x1b[{rows}A\r\x1b[J") } else { String::new() }
    }
}

/// Leaves a clean place for what is printed next.
impl Drop for StatusArea<'_> {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Rows and columns of the window, or what is usual.
pub(crate) fn size() -> (usize, usize) {
    window().map_or((24, 80), |(rows, columns)| (rows.into(), columns.into()))
}

/// A row that fits into the window, and how wide it is.
pub(crate) fn painted(row: &Row, columns: usize, ui: &Ui) -> (String, usize) {
    let mut text = String::new();
    let mut used = 0;
    for (part, colour) in row {
        let part = if used < columns { cut(part, columns - used) } else { String::new() };
        used += part.width();
        text.push_str(&ui.paint(&part, *colour));
    }
    (text, used)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unchanged_rows_are_not_written_again() {
        let ui = Ui::dull();
        let mut area = StatusArea::new(&ui);
        let rows = |text: &str| vec![vec![(text.to_owned(), None)]];
        assert_eq!(area.update("", &rows("turn 1"), 80), Some(format!("{BEGIN}turn 1\n{END}")));
        assert_eq!(area.update("", &rows("turn 1"), 80), None);
        let back = "\x1b[1A\r\x1b[J";
        assert_eq!(area.update("", &rows("turn 2"), 80), Some(format!("{BEGIN}{back}turn 2\n{END}")));
        assert_eq!(area.update("a line\n", &rows("turn 2"), 80), Some(format!("{BEGIN}{back}a line\nturn 2\n{END}")));
        // The row was broken in two when the window was made narrower.
        assert_eq!(area.update("", &rows("turn 2"), 4), Some(format!("{BEGIN}\x1b[2A\r\x1b[Jtur…\n{END}")));
        area.widths.clear();
    }
}

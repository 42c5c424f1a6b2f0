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
    /// How wide the rows are that were drawn last.
    drawn: Vec<usize>,
}

impl<'a> StatusArea<'a> {
    pub(crate) fn new(ui: &'a Ui) -> Self {
        Self { ui, drawn: Vec::new() }
    }

    /// Takes it away.
    pub(crate) fn clear(&mut self) {
        if !self.drawn.is_empty() {
            let back = self.back(size().1);
            self.ui.print(&back);
        }
    }

    /// Lines that stay, and below them these rows. All at once, so that nothing flickers.
    pub(crate) fn draw(&mut self, lines: &str, rows: &[Row]) {
        let columns = size().1;
        let mut text = format!("{BEGIN}{}{lines}", self.back(columns));
        for row in rows {
            let (row, width) = painted(row, columns, self.ui);
            text.push_str(&format!("{row}\n"));
            self.drawn.push(width);
        }
        self.ui.print(&format!("{text}{END}"));
    }

    /// Back to where it was drawn, with nothing below.
    fn back(&mut self, columns: usize) -> String {
        // A window that was made narrower has broken rows in two.
        let rows: usize = self.drawn.drain(..).map(|width| width.div_ceil(columns).max(1)).sum();
        if rows > 0 { format!("\x1b[{rows}A\r\x1b[J") } else { String::new() }
    }
}

/// Whatever ends it, what comes next stands in a clean place.
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
    let (mut text, mut used) = (String::new(), 0);
    for (part, colour) in row {
        let part = if used < columns { cut(part, columns - used) } else { String::new() };
        used += part.width();
        text.push_str(&colour.map_or_else(|| part.clone(), |colour| ui.paint(&part, colour)));
    }
    (text, used)
}

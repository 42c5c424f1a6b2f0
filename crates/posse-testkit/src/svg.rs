//! A terminal's screen as a picture: text in a window, with the colours posse uses.

use std::fmt::Write;
use std::num::NonZeroU16;

use posse_core::screen::Size;
use vt100::{Cell, Color, Parser};

/// A cell, in pixels. Fonts differ; `textLength` makes every run as wide as its cells.
const CELL: (f32, f32) = (8.4, 18.0);
const FONT: f32 = 14.0;
/// Around the text, and above it for the title.
const MARGIN: f32 = 16.0;
const TITLE: f32 = 30.0;

const PAPER: &str = "#1b1d23";
const BAR: &str = "#2a2d35";
const INK: &str = "#d7dae0";
const FAINT: &str = "#868c99";
/// Black, red, green, yellow, blue, magenta, cyan, white; legible on the paper.
const PALETTE: [&str; 8] = ["#4b5263", "#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#d7dae0"];

/// How a run of cells looks.
#[derive(Clone, PartialEq)]
struct Style {
    ink: &'static str,
    bold: bool,
}

impl Style {
    fn of(cell: &Cell) -> Self {
        let ink = match cell.fgcolor() {
            Color::Idx(index) => PALETTE[usize::from(index % 8)],
            _ if cell.dim() => FAINT,
            _ => INK,
        };
        Self { ink, bold: cell.bold() }
    }
}

/// What a window of this size shows after these bytes.
pub fn picture(bytes: &[u8], size: Size, title: &str) -> String {
    let some = |length: u16| NonZeroU16::new(length).unwrap_or(NonZeroU16::MIN);
    let mut parser = Parser::new(some(size.rows()), some(size.cols()), 0);
    parser.process(bytes);
    let screen = parser.screen();
    let width = (f32::from(size.cols()) * CELL.0 + 2.0 * MARGIN).round();
    let height = f32::from(size.rows()) * CELL.1 + 2.0 * MARGIN + TITLE;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
         role=\"img\" aria-label=\"{title}\">\n<title>{title}</title>\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"{PAPER}\"/>\n\
         <path d=\"M0 {TITLE}V8a8 8 0 0 1 8-8H{}a8 8 0 0 1 8 8V{TITLE}z\" fill=\"{BAR}\"/>\n\
         <g font-family=\"ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace\" font-size=\"{FONT}\" \
         xml:space=\"preserve\">\n\
         <text x=\"{}\" y=\"20\" text-anchor=\"middle\" fill=\"{FAINT}\">{title}</text>\n",
        width - 8.0,
        width / 2.0,
    );
    for row in 0..size.rows() {
        let y = TITLE + MARGIN + f32::from(row) * CELL.1 + FONT;
        for (column, text, cells, style) in runs(screen, row, size.cols()) {
            let x = MARGIN + f32::from(column) * CELL.0;
            let length = f32::from(cells) * CELL.0;
            let weight = if style.bold { " font-weight=\"bold\"" } else { "" };
            let _ = writeln!(
                svg,
                "<text x=\"{x:.1}\" y=\"{y:.1}\" textLength=\"{length:.1}\" lengthAdjust=\"spacingAndGlyphs\" \
                 fill=\"{}\"{weight}>{}</text>",
                style.ink,
                escaped(&text)
            );
        }
    }
    svg.push_str("</g>\n</svg>\n");
    svg
}

/// The words of a row: where each begins, what it says, how many cells it takes, how it looks. Spaces between are left out.
fn runs(screen: &vt100::Screen, row: u16, columns: u16) -> Vec<(u16, String, u16, Style)> {
    let mut runs: Vec<(u16, String, u16, Style)> = Vec::new();
    for column in 0..columns {
        let Some(cell) = screen.cell(row, column).filter(|cell| cell.has_contents() && cell.contents() != " ") else {
            continue;
        };
        let (style, cells) = (Style::of(cell), if cell.is_wide() { 2 } else { 1 });
        match runs.last_mut() {
            // One space does not end a run: fewer, longer ones look better in any font.
            Some((from, text, length, last)) if *last == style && column - *from - *length <= 1 => {
                text.push_str(&" ".repeat(usize::from(column - *from - *length)));
                text.push_str(cell.contents());
                *length = column - *from + cells;
            }
            _ => runs.push((column, cell.contents().to_owned(), cells, style)),
        }
    }
    runs
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_shows_what_the_window_shows() {
        let bytes = b"\x1b[1mbold\x1b[0m plain\r\n\x1b[32m<ok> &\x1b[0m   \x1b[2mfaint\x1b[0m gone\x1b[4D\x1b[K";
        let svg = picture(bytes, Size::clamped(3, 40), "a title");
        assert!(svg.contains("font-weight=\"bold\">bold</text>"), "{svg}");
        assert!(svg.contains(&format!("fill=\"{INK}\">plain</text>")), "{svg}");
        assert!(svg.contains(&format!("fill=\"{}\">&lt;ok&gt; &amp;</text>", PALETTE[2])), "{svg}");
        assert!(svg.contains(&format!("fill=\"{FAINT}\">faint</text>")), "{svg}");
        assert!(!svg.contains("gone"), "{svg}");
        assert!(svg.contains("x=\"16.0\"") && svg.contains("textLength=\"33.6\""), "{svg}");
    }
}

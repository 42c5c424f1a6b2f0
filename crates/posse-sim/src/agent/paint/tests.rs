use std::num::NonZeroU16;

use proptest::prelude::*;

use super::*;
use crate::agent::rows::RowStyle;

/// One change to the picture: rows that settle, then the rows that live on.
#[derive(Clone, Debug)]
struct Change {
    settle: Vec<String>,
    upper: Vec<String>,
    lower: Vec<String>,
    resize: Option<(u16, u16)>,
}

fn change() -> impl Strategy<Value = Change> {
    let rows = |most| prop::collection::vec("[a-c─❯日]{0,9}", 0..most);
    (rows(6), rows(4), rows(9), prop::option::weighted(0.1, (1..12u16, 1..9u16)))
        .prop_map(|(settle, upper, lower, resize)| Change { settle, upper, lower, resize })
}

fn rows(texts: &[String], columns: usize) -> Vec<ScreenRow> {
    texts.iter().map(|text| ScreenRow::cut(text, RowStyle::Dim, columns)).collect()
}

fn visible(terminal: &vt100::Parser) -> Vec<String> {
    let (_, columns) = terminal.screen().size();
    terminal.screen().rows(0, columns.get()).map(|row| row.trim_end().to_owned()).collect()
}

proptest! {
    /// After any changes the screen equals a fresh drawing.
    #[test]
    fn incremental_frames_equal_a_fresh_drawing(
        screen in prop::sample::select(vec![ScreenMode::Main, ScreenMode::Alternate]),
        changes in prop::collection::vec(change(), 1..12),
    ) {
        let not_zero = |n| NonZeroU16::new(n).unwrap();
        let mut size = ScreenSize { columns: 10, rows: 6 };
        let mut terminal = vt100::Parser::new(not_zero(6), not_zero(10), 100);
        let mut painter = Painter::new(screen);
        let mut said: Vec<String> = Vec::new();
        // The first row on the main screen never comes back down.
        let mut top = 0;
        for change in changes {
            if let Some((columns, height)) = change.resize {
                size = ScreenSize { columns: columns.into(), rows: height.into() };
                terminal.set_size(not_zero(height), not_zero(columns));
                painter.clear();
                top = 0;
            }
            said.extend(change.settle);
            let settled = rows(&said, size.columns);
            let (upper, lower) = (rows(&change.upper, size.columns), rows(&change.lower, size.columns));
            let cursor = (!lower.is_empty()).then(|| (lower.len() - 1, 2));
            let live = LivePanel { upper: upper.clone(), lower: lower.clone(), cursor, at_top: false };
            terminal.process(painter.paint(&settled, &live, size).as_bytes());
            prop_assert_eq!(painter.paint(&settled, &live, size), "", "the same frame again is no change");

            let mut live: Vec<ScreenRow> = upper.iter().chain(&lower).cloned().collect();
            let all: Vec<&ScreenRow>;
            let mut expected: Vec<String> = match screen {
                ScreenMode::Main => {
                    live.drain(..live.len().saturating_sub(size.rows));
                    live.resize(live.len().max(1), ScreenRow::blank());
                    all = settled.iter().chain(&live).collect();
                    top = all.len().saturating_sub(size.rows).max(top);
                    all[top..].iter().map(|row| row.text.trim_end().to_owned()).collect()
                }
                ScreenMode::Alternate => {
                    let above = size.rows.saturating_sub(lower.len());
                    let said: Vec<&ScreenRow> = settled.iter().chain(&upper).collect();
                    let mut shown: Vec<String> =
                        said[said.len().saturating_sub(above)..].iter().map(|row| row.text.clone()).collect();
                    shown.resize(above, String::new());
                    shown.extend(lower[lower.len().saturating_sub(size.rows)..].iter().map(|row| row.text.clone()));
                    shown.iter().map(|row| row.trim_end().to_owned()).collect()
                }
            };
            expected.resize(size.rows, String::new());
            prop_assert_eq!(visible(&terminal), expected);
            prop_assert_eq!(terminal.screen().hide_cursor(), cursor.is_none());
        }
    }
}

#[test]
fn frame_is_one_synchronised_update_of_changed_rows() {
    let size = ScreenSize { columns: 20, rows: 6 };
    let mut painter = Painter::new(ScreenMode::Main);
    let settled = [ScreenRow::styled("said", RowStyle::Dim)];
    let paint = |painter: &mut Painter, lower: &[&str]| {
        let lower = lower.iter().map(|text| ScreenRow::styled(*text, RowStyle::Plain)).collect();
        painter.paint(&settled, &LivePanel { lower, ..LivePanel::default() }, size)
    };
    let first = "\x1b[?2026h\r\x1b[2msaid\x1b[m\r\nspin 1\r\nbox\x1b[?25l\x1b[?2026l";
    assert_eq!(paint(&mut painter, &["spin 1", "box"]), first);
    assert_eq!(paint(&mut painter, &["spin 2", "box"]), "\x1b[?2026h\x1b[1A\r\x1b[2Kspin 2\x1b[?2026l");
    assert_eq!(paint(&mut painter, &["spin 2", "box"]), "");
    assert_eq!(painter.leave(), "\x1b[1B\r\n\x1b[?25h");
}

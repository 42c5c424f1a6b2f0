use std::num::NonZeroU16;

use proptest::prelude::*;

use super::*;
use crate::rows::Style;

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

fn rows(texts: &[String], columns: usize) -> Vec<Row> {
    texts.iter().map(|text| Row::cut(text, Style::Dim, columns)).collect()
}

fn visible(terminal: &vt100::Parser) -> Vec<String> {
    let (_, columns) = terminal.screen().size();
    terminal.screen().rows(0, columns.get()).map(|row| row.trim_end().to_owned()).collect()
}

proptest! {
    /// Whatever the changes, the screen shows what a fresh drawing would show.
    #[test]
    fn drawing_only_what_changed_gives_the_same_picture(
        screen in prop::sample::select(vec![Screen::Main, Screen::Alternate]),
        changes in prop::collection::vec(change(), 1..12),
    ) {
        let not_zero = |n| NonZeroU16::new(n).unwrap();
        let mut size = Size { columns: 10, rows: 6 };
        let mut terminal = vt100::Parser::new(not_zero(6), not_zero(10), 100);
        let mut painter = Painter::new(screen, true);
        let mut said: Vec<String> = Vec::new();
        // The first row on the main screen never comes back down.
        let mut top = 0;
        for change in changes {
            if let Some((columns, height)) = change.resize {
                size = Size { columns: columns.into(), rows: height.into() };
                terminal.set_size(not_zero(height), not_zero(columns));
                painter.clear();
                top = 0;
            }
            said.extend(change.settle);
            let settled = rows(&said, size.columns);
            let (upper, lower) = (rows(&change.upper, size.columns), rows(&change.lower, size.columns));
            let cursor = (!lower.is_empty()).then(|| (lower.len() - 1, 2));
            let frame = Frame { settled: &settled, upper: upper.clone(), lower: lower.clone(), cursor, anchor: Anchor::Bottom };
            terminal.process(painter.paint(&frame, size).as_bytes());
            prop_assert_eq!(painter.paint(&frame, size), "", "the same frame again is no change");

            let mut live: Vec<Row> = upper.iter().chain(&lower).cloned().collect();
            let all: Vec<&Row>;
            let mut expected: Vec<String> = match screen {
                Screen::Main => {
                    live.drain(..live.len().saturating_sub(size.rows));
                    live.resize(live.len().max(1), Row::blank());
                    all = settled.iter().chain(&live).collect();
                    top = all.len().saturating_sub(size.rows).max(top);
                    all[top..].iter().map(|row| row.text.trim_end().to_owned()).collect()
                }
                Screen::Alternate => {
                    let above = size.rows.saturating_sub(lower.len());
                    let said: Vec<&Row> = settled.iter().chain(&upper).collect();
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

fn frame<'a>(settled: &'a [Row], lower: &[&str]) -> Frame<'a> {
    let lower = lower.iter().map(|text| Row::styled(*text, Style::Plain)).collect();
    Frame { settled, upper: Vec::new(), lower, cursor: None, anchor: Anchor::Bottom }
}

#[test]
fn a_frame_is_one_synchronised_update_of_what_changed() {
    let size = Size { columns: 20, rows: 6 };
    let mut painter = Painter::new(Screen::Main, true);
    let settled = [Row::styled("said", Style::Dim)];
    assert_eq!(
        painter.paint(&frame(&settled, &["spin 1", "box"]), size),
        "\x1b[?2026h\r\x1b[2msaid\x1b[m\r\nspin 1\r\nbox\x1b[?25l\x1b[?2026l"
    );
    assert_eq!(
        painter.paint(&frame(&settled, &["spin 2", "box"]), size),
        "\x1b[?2026h\x1b[1A\r\x1b[2Kspin 2\x1b[?2026l"
    );
    assert_eq!(painter.paint(&frame(&settled, &["spin 2", "box"]), size), "");
    assert_eq!(painter.leave(), "\x1b[1B\r\n\x1b[?25h");
}

#[test]
fn foreign_output_pushes_the_picture_down() {
    let size = Size { columns: 20, rows: 6 };
    let mut terminal = vt100::Parser::new(NonZeroU16::new(6).unwrap(), NonZeroU16::new(20).unwrap(), 100);
    let mut painter = Painter::new(Screen::Main, false);
    let settled = [Row::styled("said", Style::Plain)];
    terminal.process(painter.paint(&frame(&settled, &["box", "foot"]), size).as_bytes());
    terminal.process(painter.step_aside(settled.len()).as_bytes());
    terminal.process(b"one\r\ntwo\r\n");
    terminal.process(painter.paint(&frame(&settled, &["box", "foot"]), size).as_bytes());
    assert_eq!(visible(&terminal), ["said", "one", "two", "box", "foot", ""]);
    terminal.process(painter.paint(&frame(&settled, &["BOX", "foot"]), size).as_bytes());
    assert_eq!(visible(&terminal), ["said", "one", "two", "BOX", "foot", ""]);
}

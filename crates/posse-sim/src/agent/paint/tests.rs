use super::*;
use crate::agent::rows::RowStyle;

#[test]
fn frame_is_one_synchronised_update_of_changed_rows() {
    let size = ScreenSize { columns: 20, rows: 6 };
    let mut painter = Painter::new(false);
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

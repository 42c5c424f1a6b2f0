//! A pane that was there before us: from what tmux can tell of it to an emulator that shows the same.
//!
//! tmux tells rows, colours, cursor, title and some modes. It does not tell the bytes that led there, so of this one
//! moment the attributes for the next character, tab stops and saved cursors are unknown.

use posse_core::screen::Size;

use super::command::{Line, PaneId};
use super::control::Reply;
use crate::emulator::{Emulator, HistoryLimit};

/// In this order, so that the title, which may hold anything, comes last.
const FIELDS: [&str; 24] = [
    "pane_width",
    "pane_height",
    "history_size",
    "alternate_on",
    "alternate_saved_x",
    "alternate_saved_y",
    "cursor_x",
    "cursor_y",
    "cursor_flag",
    "scroll_region_upper",
    "scroll_region_lower",
    "origin_flag",
    "wrap_flag",
    "insert_flag",
    "keypad_cursor_flag",
    "keypad_flag",
    "mouse_standard_flag",
    "mouse_button_flag",
    "mouse_all_flag",
    "mouse_sgr_flag",
    "mouse_utf8_flag",
    // Empty before tmux 3.7.
    "bracket_paste_flag",
    "host",
    "pane_title",
];

/// Sends no more of a pane's output.
pub(super) fn stop(pane: PaneId) -> Line {
    Line::new("refresh-client -A").text(format!("{pane}:pause"))
}

/// Everything about a stopped pane, and its output from there on, in one line: what tmux sends of it from now on is
/// exactly what is not in the answer.
pub(super) fn take(pane: PaneId) -> Line {
    let fields = FIELDS.map(|field| format!("#{{{field}}}")).join(" ");
    Line::new("display-message -p -t")
        .pane(pane)
        .text(fields)
        // What scrolled off, as text, wrapped rows joined.
        .then("capture-pane -p -J -S - -E -1 -t")
        .pane(pane)
        .then("capture-pane -p -e -N -t")
        .pane(pane)
        // The main screen, while the other one is shown; nothing otherwise.
        .then("capture-pane -p -e -N -a -q -t")
        .pane(pane)
        .then("refresh-client -A")
        .text(format!("{pane}:continue"))
}

/// What the answers say.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Captured<'a> {
    facts: Facts,
    history: &'a [Vec<u8>],
    shown: &'a [Vec<u8>],
    main: &'a [Vec<u8>],
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Facts {
    size: (u16, u16),
    has_history: bool,
    alternate: bool,
    saved: (u16, u16),
    cursor: (u16, u16),
    visible: bool,
    region: (u16, u16),
    /// Sequences for the modes that are on.
    modes: Vec<&'static str>,
    origin: bool,
    paste: Option<bool>,
    title: String,
}

impl Facts {
    fn parse(line: &str) -> Option<Self> {
        let values: Vec<&str> = line.splitn(FIELDS.len(), ' ').collect();
        let value =
            |field: &str| FIELDS.iter().position(|known| *known == field).and_then(|at| values.get(at)).copied();
        // What tmux does not know it leaves empty, or says with a number out of every range.
        let number = |field: &str| value(field).and_then(|value| value.parse::<u32>().ok());
        let place = |field: &str| number(field).map_or(0, |n| u16::try_from(n).unwrap_or(0));
        let on = |field: &str| value(field) == Some("1");
        let modes = [
            ("insert_flag", "\x1b[4h"),
            ("keypad_cursor_flag", "\x1b[?1h"),
            ("keypad_flag", "\x1b="),
            ("mouse_standard_flag", "\x1b[?1000h"),
            ("mouse_button_flag", "\x1b[?1002h"),
            ("mouse_all_flag", "\x1b[?1003h"),
            ("mouse_sgr_flag", "\x1b[?1006h"),
            ("mouse_utf8_flag", "\x1b[?1005h"),
        ];
        let mut modes: Vec<_> = modes.iter().filter(|(field, _)| on(field)).map(|(_, mode)| *mode).collect();
        if value("wrap_flag") == Some("0") {
            modes.push("\x1b[?7l");
        }
        let title = value("pane_title")?;
        Some(Self {
            size: (place("pane_height"), place("pane_width")),
            has_history: number("history_size").is_some_and(|rows| rows > 0),
            alternate: on("alternate_on"),
            saved: (place("alternate_saved_y"), place("alternate_saved_x")),
            cursor: (place("cursor_y"), place("cursor_x")),
            visible: value("cursor_flag") != Some("0"),
            region: (place("scroll_region_upper"), place("scroll_region_lower")),
            modes,
            origin: on("origin_flag"),
            paste: value("bracket_paste_flag").filter(|flag| !flag.is_empty()).map(|flag| flag == "1"),
            // Until a program sets one, tmux shows the name of the machine there.
            title: if value("host") == Some(title) { String::new() } else { title.to_owned() },
        })
    }
}

impl<'a> Captured<'a> {
    /// From the answers to [`take`].
    pub(super) fn read(replies: &'a [Reply]) -> Option<Self> {
        let [facts, history, shown, main, _] = replies else { return None };
        let facts = Facts::parse(std::str::from_utf8(facts.lines.first()?).ok()?)?;
        // Without any history tmux answers with the first row of the screen.
        let history = if facts.has_history { &history.lines[..] } else { &[] };
        Some(Self { facts, history, shown: &shown.lines, main: &main.lines })
    }

    pub(super) fn size(&self) -> Size {
        Size::clamped(self.facts.size.0, self.facts.size.1)
    }

    /// An emulator that shows the same and goes on at `offset`. `paste`: whether the program was last heard to ask for
    /// marked pastes, for a tmux that does not tell.
    pub(super) fn emulator(&self, offset: u64, paste: bool, limit: HistoryLimit) -> Emulator {
        let Facts { alternate, saved, cursor, visible, region, modes, origin, title, .. } = &self.facts;
        let size = self.size();
        let mut emulator = Emulator::new(size, limit);
        for line in &self.history[self.history.len().saturating_sub(limit.rows)..] {
            emulator.feed(line);
            emulator.feed(b"\r\n");
        }
        // All of that off the screen, and nothing else.
        let used = emulator.screen().cursor.map_or(0, |(row, _)| row);
        emulator.feed(format!("\x1b[{};1H{}", size.rows(), "\n".repeat(usize::from(used))).as_bytes());
        if *alternate {
            emulator.feed(&painted(self.main, size, *saved));
            emulator.feed(b"\x1b[?1049h");
        }
        let mut rest = painted(self.shown, size, *cursor);
        let mut say = |text: &str| rest.extend_from_slice(text.as_bytes());
        let whole = (0, size.rows() - 1);
        if *region != whole && region.0 < region.1 && region.1 < size.rows() {
            // Setting it moves the cursor.
            say(&format!("\x1b[{};{}r{}", region.0 + 1, region.1 + 1, position(*cursor)));
        }
        if *origin {
            say(&format!("\x1b[?6h{}", position((cursor.0.saturating_sub(region.0), cursor.1))));
        }
        if self.facts.paste.unwrap_or(paste) {
            say("\x1b[?2004h");
        }
        if !*visible {
            say("\x1b[?25l");
        }
        if !title.is_empty() {
            say(&format!("\x1b]2;{title}\x1b\\"));
        }
        modes.iter().for_each(|mode| say(mode));
        emulator.feed(&rest);
        emulator.skip_to(offset);
        emulator
    }
}

/// What draws these rows and leaves the cursor there.
fn painted(rows: &[Vec<u8>], size: Size, cursor: (u16, u16)) -> Vec<u8> {
    // tmux writes line drawings between the two shifts. Rows of another width must not spill into the next one.
    let mut out = b"\x1b[m\x1b)0\x1b[?7l".to_vec();
    let paint = |out: &mut Vec<u8>, row: usize| {
        out.extend_from_slice(position((row as u16, 0)).as_bytes());
        out.extend_from_slice(rows.get(row).map_or(&[][..], Vec::as_slice));
        out.extend_from_slice(b"\x0f\x1b[m");
    };
    // A cursor that waits behind the last column gets there only by printing what stands in its row.
    let waits = cursor.1 >= size.cols();
    for row in (0..usize::from(size.rows())).filter(|row| !(waits && *row == usize::from(cursor.0))) {
        paint(&mut out, row);
    }
    out.extend_from_slice(b"\x1b[?7h");
    if waits {
        paint(&mut out, usize::from(cursor.0));
    } else {
        out.extend_from_slice(position(cursor).as_bytes());
    }
    out.extend_from_slice(b"\x1b)B");
    out
}

fn position((row, column): (u16, u16)) -> String {
    format!("\x1b[{};{}H", row + 1, column + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The answers about a pane of 10x3, with these changed.
    fn replies(changes: &[(&str, &str)], history: &[&str], shown: &[&str], main: &[&str]) -> Vec<Reply> {
        let usual = |field: &str| match field {
            "pane_width" => "10",
            "pane_height" => "3",
            "scroll_region_lower" => "2",
            "alternate_saved_x" | "alternate_saved_y" => "4294967295",
            "cursor_flag" | "wrap_flag" => "1",
            "bracket_paste_flag" => "",
            "host" | "pane_title" => "machine",
            _ => "0",
        };
        let value =
            |field: &str| changes.iter().find(|(name, _)| *name == field).map_or(usual(field), |(_, value)| value);
        let facts = FIELDS.map(value).join(" ");
        let reply = |lines: &[&str]| Reply {
            ours: true,
            failed: false,
            lines: lines.iter().map(|line| line.as_bytes().to_vec()).collect(),
        };
        vec![reply(&[&facts]), reply(history), reply(shown), reply(main), reply(&[])]
    }

    fn emulator(replies: &[Reply]) -> Emulator {
        Captured::read(replies).unwrap().emulator(77, false, HistoryLimit::default())
    }

    #[test]
    fn rows_history_cursor_and_title_are_the_same() {
        let changes =
            [("history_size", "3"), ("cursor_x", "2"), ("cursor_y", "1"), ("pane_title", "✳ a title; and %H more")];
        let replies =
            replies(&changes, &["one", "a line longer than the screen", ""], &["top", "\x1b[1;31mre\x1b[md", ""], &[]);
        let shown = emulator(&replies);
        assert_eq!(shown.offset(), 77);
        assert_eq!(shown.history().collect::<Vec<_>>(), ["one", "a line longer than the screen", ""]);
        let screen = shown.screen();
        assert_eq!(screen.rows, ["top", "red", ""]);
        assert_eq!((screen.cursor, screen.alternate), (Some((1, 2)), false));
        assert_eq!(screen.title, "✳ a title; and %H more");
        assert!(String::from_utf8_lossy(&shown.repaint()).contains("38;5;1"), "colours are kept");
    }

    #[test]
    fn the_name_of_the_machine_is_no_title_and_the_first_row_no_history() {
        let shown = emulator(&replies(&[], &["first"], &["first"], &[]));
        assert_eq!(shown.title(), "");
        assert_eq!(shown.history().count(), 0);
        assert_eq!(shown.screen().rows, ["first", "", ""]);
    }

    #[test]
    fn the_main_screen_is_there_when_the_other_is_left() {
        let changes = [
            ("alternate_on", "1"),
            ("alternate_saved_x", "4"),
            ("alternate_saved_y", "1"),
            ("cursor_flag", "0"),
            ("history_size", "1"),
        ];
        let mut shown = emulator(&replies(&changes, &["old"], &["alternate"], &["main", "$ vi"]));
        assert_eq!(shown.screen().rows, ["alternate", "", ""]);
        assert_eq!((shown.screen().alternate, shown.screen().cursor), (true, None));
        shown.feed(b"\x1b[?1049l\x1b[?25h");
        assert_eq!(shown.screen().rows, ["main", "$ vi", ""]);
        assert_eq!(shown.screen().cursor, Some((1, 4)));
        assert_eq!(shown.history().collect::<Vec<_>>(), ["old"]);
    }

    #[test]
    fn modes_are_set_as_far_as_tmux_tells() {
        let changes = [
            ("mouse_all_flag", "1"),
            ("mouse_sgr_flag", "1"),
            ("keypad_cursor_flag", "1"),
            ("scroll_region_upper", "1"),
            ("cursor_y", "2"),
            ("origin_flag", "1"),
        ];
        let replies_now = replies(&changes, &[], &["a", "b", "c"], &[]);
        let mut shown = emulator(&replies_now);
        let modes = shown.input_modes();
        assert!(modes.application_cursor && !modes.bracketed_paste);
        assert_eq!(modes.mouse, vt100::MouseProtocolMode::AnyMotion);
        assert_eq!(shown.screen().cursor, Some((2, 0)));
        shown.feed(b"\r\nd");
        assert_eq!(shown.screen().rows, ["a", "c", "d"], "only the region scrolls");

        let captured = Captured::read(&replies_now).unwrap();
        assert!(captured.emulator(0, true, HistoryLimit::default()).input_modes().bracketed_paste, "as last heard");
        let told = replies(&[("bracket_paste_flag", "0")], &[], &[], &[]);
        let told = Captured::read(&told).unwrap().emulator(0, true, HistoryLimit::default());
        assert!(!told.input_modes().bracketed_paste, "what tmux says counts");
    }

    #[test]
    fn a_cursor_that_waits_at_the_margin_goes_on_in_the_next_row() {
        let changes = [("cursor_x", "10"), ("cursor_y", "0")];
        let mut shown = emulator(&replies(&changes, &[], &["0123456789", ""], &[]));
        shown.feed(b"x");
        assert_eq!(shown.screen().rows, ["0123456789", "x", ""]);
    }

    #[test]
    fn line_drawing_and_rows_too_long() {
        let shown = emulator(&replies(&[], &[], &["\x0elqk\x0f lqk", "0123456789abc", "z"], &[]));
        assert_eq!(shown.screen().rows, ["┌─┐ lqk", "012345678c", "z"]);
    }

    #[test]
    fn incomplete_answers_give_nothing() {
        let all = replies(&[], &[], &["a"], &[]);
        assert_eq!(Captured::read(&all[..4]), None);
        let mut broken = all.clone();
        broken[0].lines[0] = b"80 24 nonsense".to_vec();
        assert_eq!(Captured::read(&broken), None);
    }
}

//! Properties of every stream: no panic, chunking does not matter, a restored emulator is the same one, a painted
//! window shows the screen.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::*;
use crate::sequence;

/// One step in the life of a terminal.
#[derive(Clone)]
enum TerminalStep {
    Output(Vec<u8>),
    Resize(Size),
}

impl std::fmt::Debug for TerminalStep {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            TerminalStep::Output(bytes) => write!(f, "{}", bytes.escape_ascii()),
            TerminalStep::Resize(size) => write!(f, "{size}"),
        }
    }
}

fn size() -> impl Strategy<Value = Size> {
    // Small, because the interesting cases are at the margins.
    prop_oneof![(1u16..4, 2u16..5), (2u16..9, 4u16..30), Just((24, 80)),]
        .prop_map(|(rows, columns)| Size::clamped(rows, columns))
}

fn output() -> impl Strategy<Value = Vec<u8>> {
    let n = || prop_oneof![4 => (0u16..12).prop_map(|n| n.to_string()), 1 => Just(String::new()), 1 => Just("999".to_owned())];
    let text = prop_oneof![
        6 => "[a-z ]{1,12}",
        1 => "[a-z]{20,40}",
        1 => "[漢字日本]{1,4}",
        2 => "[aé漢\u{301}\u{fe0f}❤⚠👍👨👩\u{200d}🏽♀\u{fffd}\u{a0}1\u{20e3}]{1,6}",
        4 => Just("\r\n".to_owned()),
        2 => "[\r\n\t\u{8}\u{b}\u{7}\u{e}\u{f}]",
    ];
    let control = prop_oneof![
        4 => (n(), select(&b"ABCDEFGd`ZXPLM@STJKb"[..])).prop_map(|(n, last)| format!("\x1b[{n}{}", last as char)),
        2 => (n(), n()).prop_map(|(row, column)| format!("\x1b[{row};{column}H")),
        2 => (n(), n()).prop_map(|(top, bottom)| format!("\x1b[{top};{bottom}r")),
        2 => select(&["", "0", "1", "2", "3", "4", "7", "22", "31", "48;5;9", "38;2;1;2;3", "4:3", "58;5;1", "38:2::9:8:7"][..])
            .prop_map(|sgr| format!("\x1b[{sgr}m")),
        3 => (select(&[1, 6, 7, 25, 47, 1047, 1049, 1049, 1000, 1002, 1006, 2004, 2026, 1004][..]), select(&['h', 'l'][..]))
            .prop_map(|(mode, last)| format!("\x1b[?{mode}{last}")),
        1 => select(&["\x1b[4h", "\x1b[4l", "\x1b[s", "\x1b[u", "\x1b[!p", "\x1b[2 q", "\x1b[9 q", "\x1b[>4;2m", "\x1b[5T"][..]).prop_map(str::to_owned),
        1 => select(&["\x1b[>5u", "\x1b[<u", "\x1b[=2;2u", "\x1b[?u", "\x1b[c", "\x1b[6n", "\x1b[?2026$p", "\x1b[18t", "\x1b[?7n"][..]).prop_map(str::to_owned),
        3 => select(&["7", "8", "D", "E", "M", "c", "=", ">", "(0", "(B", ")0", "#8", "Z", "g"][..]).prop_map(|esc| format!("\x1b{esc}")),
        1 => select(&["0;title", "9;4;1;50", "9;hello", "7501;state=idle", "7501;?", "11;?", "133;A", "8;;x", "777;a;b"][..])
            .prop_map(|osc| format!("\x1b]{osc}\x07")),
        1 => select(&["\x1bP+q41\x1b\\", "\x1b_Gx\x1b\\", "\x1b]2;cut\x1b[1m", "\x1bkname\x1b\\", "\x1b[3\n1m"][..]).prop_map(str::to_owned),
    ];
    prop_oneof![
        5 => text.prop_map(String::into_bytes),
        8 => control.prop_map(String::into_bytes),
        3 => sequence::tests::bytes(),
    ]
}

/// Generates streams that are broken in every way, but without sequences that are translated for vt100.
fn simple() -> impl Strategy<Value = Vec<u8>> {
    const FRAGMENTS: &str = "\x1b \x1b[ \x1b[ \x1b] \x1bP \x1b\\ 1 2 9 ; ? \x1b[2!J \x1b[1$1m m H J K L M X G r 7 8 x yv \
                             wxywxywxyw é 漢 \u{301} \r\n \n \t \u{8} \x07 \x18 \x1a \x7f";
    let fragments: Vec<&[u8]> = FRAGMENTS.split(' ').map(str::as_bytes).collect();
    vec(select(fragments), 0..80).prop_map(|parts| parts.concat())
}

fn events() -> impl Strategy<Value = Vec<TerminalStep>> {
    vec(prop_oneof![20 => output().prop_map(TerminalStep::Output), 1 => size().prop_map(TerminalStep::Resize)], 0..60)
}

/// Feeds the events, with output cut by `chunk`, and returns all signals and replies.
fn run(emulator: &mut Emulator, events: &[TerminalStep], chunk: impl Fn(usize) -> usize) -> FeedOutcome {
    let mut heard = FeedOutcome::default();
    let mut count = 0;
    for event in events {
        match event {
            TerminalStep::Resize(size) => emulator.resize(*size),
            TerminalStep::Output(bytes) => {
                let mut rest = &bytes[..];
                while !rest.is_empty() {
                    let (now, later) = rest.split_at(chunk(count).clamp(1, rest.len()));
                    count += 1;
                    rest = later;
                    let mut part = emulator.feed(now);
                    heard.signals.append(&mut part.signals);
                    heard.replies.append(&mut part.replies);
                    heard.frame_ended |= part.frame_ended;
                    assert!(!part.screen_lost, "vt100 panicked");
                }
            }
        }
    }
    heard
}

fn new(size: Size) -> Emulator {
    Emulator::new(size, HistoryLimit { rows: 50, bytes: 2000 })
}

fn joined(events: &[TerminalStep]) -> Vec<TerminalStep> {
    let mut joined: Vec<TerminalStep> = Vec::new();
    for event in events {
        match (joined.last_mut(), event) {
            (Some(TerminalStep::Output(before)), TerminalStep::Output(bytes)) => before.extend_from_slice(bytes),
            _ => joined.push(event.clone()),
        }
    }
    joined
}

fn state(emulator: &Emulator) -> (Screen, String, Vec<String>, String, String) {
    let checkpoint = String::from_utf8_lossy(&emulator.checkpoint()).replace('\x1b', "␛");
    let history = emulator.history().map(str::to_owned).collect();
    (emulator.screen(), emulator.title().to_owned(), history, emulator.input_modes(), checkpoint)
}

/// Generates a line of a flood. Most are plain, see `bulk_lines`.
fn flood_line() -> impl Strategy<Value = Vec<u8>> {
    let text = prop_oneof![
        8 => "[a-z ]{0,9}",
        2 => "[a-z ]{20,60}",
        2 => "[aé漢字→│]{1,12}",
        2 => "[a-z]{0,5}\u{1b}\\[(0|1|2|7|31|48;5;9|1;32|)m[a-z ]{0,9}(\u{1b}\\[0?m)?",
        1 => "\u{1b}\\[58;5;1m[a\t\u{8}\u{301}\u{a0}❤\u{fe0f}👍]{1,3}",
    ];
    let line = (text, prop_oneof![30 => Just("\r\n"), 1 => Just("\n"), 1 => Just("\r")]);
    prop_oneof![60 => line.prop_map(|(text, end)| (text + end).into_bytes()), 1 => output()]
}

proptest! {
    #[test]
    fn no_input_panics(size in size(), bytes in vec(any::<u8>(), 0..3000)) {
        let mut emulator = new(size);
        let events = [TerminalStep::Output(bytes.clone()), TerminalStep::Resize(Size::clamped(2, 2)), TerminalStep::Output(bytes)];
        run(&mut emulator, &events, |_| usize::MAX);
        emulator.checkpoint();
    }

    /// The reference is fed byte by byte, so it draws every line.
    #[test]
    fn flood_gives_the_same_screen_as_line_by_line_drawing(size in size(), before in events(), flood in vec(flood_line(), 0..80)) {
        let flood = [TerminalStep::Output(flood.concat())];
        let mut drawn = new(size);
        run(&mut drawn, &before, |_| usize::MAX);
        let mut bulk = Emulator::restore(&drawn.checkpoint(), HistoryLimit { rows: 50, bytes: 2000 }).unwrap();
        let scrolled = drawn.terminal.callbacks().history.rows - bulk.terminal.callbacks().history.rows;
        let (said, said_in_bulk) = (run(&mut drawn, &flood, |_| 1), run(&mut bulk, &flood, |_| usize::MAX));
        prop_assert_eq!(said.replies, said_in_bulk.replies);
        prop_assert_eq!(state(&drawn), state(&bulk));
        prop_assert_eq!(drawn.cursor_line(), bulk.cursor_line() + scrolled);
    }

    /// Additions must not change correct results of vt100, and sequences must have the same boundaries.
    #[test]
    fn simple_streams_look_as_in_vt100_alone(size in size(), bytes in simple()) {
        let mut emulator = new(size);
        emulator.feed(&bytes);
        let mut alone = vt100::Parser::new(nonzero(size.rows()), nonzero(size.cols()), 0);
        alone.process(&bytes);
        let (ours, theirs) = (emulator.terminal.screen(), alone.screen());
        prop_assert_eq!(ours.cursor_position(), theirs.cursor_position());
        for row in 0..size.rows() {
            prop_assert_eq!(ours.row_wrapped(row), theirs.row_wrapped(row));
            for column in 0..size.cols() {
                prop_assert_eq!(ours.cell(row, column), theirs.cell(row, column), "at {}, {}", row, column);
            }
        }
    }

    #[test]
    fn chunking_changes_nothing(size in size(), events in events(), cuts in vec(1usize..50, 1..20)) {
        let events = joined(&events);
        let mut whole = new(size);
        let heard = run(&mut whole, &events, |_| usize::MAX);
        let chunks: [&dyn Fn(usize) -> usize; 4] = [&|_| 1, &|_| 7, &|_| 4096, &|n| cuts[n % cuts.len()]];
        for chunk in chunks {
            let mut cut = new(size);
            prop_assert_eq!(&run(&mut cut, &events, chunk), &heard);
            prop_assert_eq!(state(&cut), state(&whole));
        }
    }

    #[test]
    fn restored_emulator_continues_like_the_original(size in size(), events in events(), cut in any::<Index>(), byte in any::<Index>()) {
        let mut events = joined(&events);
        // At any place within an event.
        let at = cut.index(events.len() + 1);
        let mut later = events.split_off(at);
        if let Some(TerminalStep::Output(bytes)) = later.first_mut() {
            let rest = bytes.split_off(byte.index(bytes.len() + 1));
            events.push(TerminalStep::Output(std::mem::replace(bytes, rest)));
        }
        let mut original = new(size);
        run(&mut original, &events, |_| usize::MAX);
        let mut restored = Emulator::restore(&original.checkpoint(), HistoryLimit { rows: 50, bytes: 2000 }).unwrap();
        prop_assert_eq!(state(&restored), state(&original), "restored");
        let heard = run(&mut original, &later, |_| usize::MAX);
        prop_assert_eq!(run(&mut restored, &later, |_| usize::MAX), heard);
        prop_assert_eq!(state(&restored), state(&original), "later");
    }

    #[test]
    fn broken_checkpoint_is_refused_or_harmless(events in events(), position in any::<Index>(), byte: u8, keep in any::<Index>()) {
        let mut emulator = new(Size::clamped(4, 10));
        run(&mut emulator, &events, |_| usize::MAX);
        let limit = HistoryLimit { rows: 50, bytes: 2000 };
        let mut blob = emulator.checkpoint();
        prop_assert!(Emulator::restore(&blob[..keep.index(blob.len())], limit).is_err(), "a part of it");
        let at = position.index(blob.len());
        blob[at] = byte;
        if let Ok(mut other) = Emulator::restore(&blob, limit) {
            run(&mut other, &events, |_| usize::MAX);
            other.checkpoint();
        }
    }

    #[test]
    fn joining_viewer_sees_the_same_screen(size in size(), events in events(), later in output()) {
        let mut emulator = new(size);
        run(&mut emulator, &events, |_| usize::MAX);
        // Without wrapping the two kinds of "in the last column" differ only by a mark that follows.
        prop_assume!(!emulator.modes.no_wrap || !emulator.at_margin());
        // A viewer that joins does not know the text printed last either.
        emulator.printed = Default::default();
        let mut joined = new(emulator.size());
        joined.feed(&emulator.repaint());
        joined.printed = Default::default();
        let look = |emulator: &Emulator| {
            let repaint = without_joiners(&String::from_utf8_lossy(&emulator.repaint())).replace('\x1b', "␛");
            (rows(emulator), emulator.screen().cursor, emulator.title().to_owned(), emulator.input_modes(), repaint)
        };
        prop_assert_eq!(look(&joined), look(&emulator));
        // Leaving the alternate screen uncovers a grid that the other emulator lacks.
        let leaves = emulator.screen().alternate;
        emulator.feed(&later);
        joined.feed(&later);
        if !leaves || emulator.screen().alternate {
            prop_assert_eq!(rows(&joined), rows(&emulator));
        }
    }

    #[test]
    fn window_shows_the_part_that_fits(size in size(), window in size(), events in events()) {
        let mut emulator = new(size);
        let mut view = TerminalView::new();
        let mut person = new(window);
        person.feed(TerminalView::ENTER);
        for (i, event) in events.iter().enumerate() {
            run(&mut emulator, std::slice::from_ref(event), |_| usize::MAX);
            let screen = emulator.screen();
            prop_assert_eq!(screen.rows.len(), usize::from(emulator.size().rows()));
            let (row, column) = screen.cursor.unwrap_or((0, 0));
            prop_assert!(row < emulator.size().rows() && column < emulator.size().cols());
            if i % 7 == 3 {
                view.forget();
            }
            let heard = person.feed(&view.paint(&emulator, window));
            prop_assert_eq!(heard.replies, vec![], "a window must not be asked");
            prop_assert!(view.paint(&emulator, window).is_empty(), "painted twice");
            check_window(&emulator, &person, view.origin())?;
        }
        person.feed(TerminalView::LEAVE);
        let fresh = new(window);
        prop_assert_eq!(person.input_modes(), fresh.input_modes());
        prop_assert_eq!(person.screen(), fresh.screen());
    }
}

/// Removes joiners: one alone in a cell is invisible, and joins when printed again.
fn without_joiners(text: &str) -> String {
    text.replace('\u{200d}', "")
}

fn rows(emulator: &Emulator) -> Vec<String> {
    emulator.screen().rows.iter().map(|row| without_joiners(row)).collect()
}

fn check_window(emulator: &Emulator, person: &Emulator, (top, left): (u16, u16)) -> Result<(), TestCaseError> {
    let (theirs, ours) = (emulator.terminal.screen(), person.terminal.screen());
    let shown = emulator.size().smallest(person.size());
    for row in 0..person.size().rows() {
        for column in 0..person.size().cols() {
            let our = ours.cell(row, column).unwrap();
            let inside = row < shown.rows() && column < shown.cols();
            let their = theirs.cell(top + row, left + column).filter(|_| inside);
            let cut = their.is_some_and(|cell| cell.is_wide() && column + 1 == shown.cols());
            let text = their.map(vt100::Cell::contents).filter(|text| !cut && !text.is_empty()).unwrap_or(" ");
            let our_text = if our.contents().is_empty() { " " } else { our.contents() };
            prop_assert_eq!(without_joiners(our_text), without_joiners(text), "at {}, {}", row, column);
            if !our.is_wide_continuation() {
                let look = their.map(drawing::Pen::of).unwrap_or_default();
                prop_assert_eq!(drawing::Pen::of(our), look, "at {}, {}", row, column);
            }
        }
    }
    let cursor = emulator.screen().cursor.map(|(row, column)| (row - top, column - left));
    prop_assert!(cursor.is_none_or(|(row, column)| row < shown.rows() && column < shown.cols()), "{:?}", cursor);
    prop_assert_eq!(person.screen().cursor, cursor);
    let mut expected = new(person.size());
    expected.feed(emulator.input_modes().as_bytes());
    if (top, left) != (0, 0) {
        expected.feed(MOUSE_OFF.as_bytes());
    }
    prop_assert_eq!(person.input_modes(), expected.input_modes());
    Ok(())
}

use super::*;

fn new(rows: u16, columns: u16) -> Emulator {
    Emulator::new(Size::clamped(rows, columns), HistoryLimit::default())
}

fn fed(input: &str) -> Emulator {
    let mut emulator = new(5, 20);
    emulator.feed(input.as_bytes());
    emulator
}

fn history(emulator: &Emulator) -> Vec<&str> {
    emulator.history().collect()
}

#[track_caller]
fn check_signals(input: &str, expected: &[Signal]) {
    assert_eq!(new(5, 20).feed(input.as_bytes()).signals, expected, "{input:?}");
}

#[test]
fn signals_arrive_in_order() {
    let title = |title: &str| Signal::Title { title: title.to_owned() };
    check_signals("a\x07b\x1b]2;t;u\x07\x07", &[Signal::Bell, title("t;u"), Signal::Bell]);
    check_signals("\x1b]7501;state=idle\x1b\\", &[Signal::AgentState { payload: "state=idle".to_owned() }]);
    // No signals from changes of appearance, from queries, and from sequences that are executed.
    check_signals("\x1b[5;9m\x1b[4:3m\x1b[c\x1b]11;?\x07\x1b[>5u\x1b[>4;2m\x1b[?1049h\x1b[s\x1b[4h\x1b[?1004h", &[]);
}

#[test]
fn synchronised_updates_start_and_end() {
    let mut emulator = new(5, 20);
    let heard = emulator.feed(b"\x1b[?2026h");
    assert!(emulator.in_frame() && !heard.frame_ended);
    let heard = emulator.feed(b"x\x1b[?2026");
    assert!(emulator.in_frame() && !heard.frame_ended);
    let heard = emulator.feed(b"l");
    assert!(!emulator.in_frame() && heard.frame_ended);
    assert!(!emulator.feed(b"\x1b[?2026l").frame_ended, "an end without a begin");
}

#[test]
fn reply_has_the_offset_of_its_query() {
    let mut emulator = new(5, 20);
    let reply = |at, bytes: &str| QueryReply { at, bytes: bytes.as_bytes().to_vec() };
    let heard = emulator.feed(b"ab\x1b[6n\x1b]11;?\x1b\\");
    assert_eq!(heard.replies, [reply(6, "\x1b[1;3R"), reply(14, "\x1b]11;rgb:1e1e/1e1e/1e1e\x1b\\")]);
    assert_eq!(emulator.feed(b"\x1b]10;?\x1b").replies, []);
    // Not ended by `ESC \`, but by the next sequence.
    let heard = emulator.feed(b"[5n");
    assert_eq!(heard.replies, [reply(21, "\x1b]10;rgb:e0e0/e0e0/e0e0\x1b\\"), reply(24, "\x1b[0n")]);
    assert_eq!(emulator.offset(), 24);
}

#[test]
fn cursor_is_always_on_the_screen() {
    let mut emulator = fed("12345678901234567890");
    assert_eq!(emulator.screen().cursor, Some((0, 19)));
    assert_eq!(emulator.feed(b"\x1b[6n").replies[0].bytes, b"\x1b[1;20R");
    emulator.feed(b"x");
    assert_eq!(emulator.screen().cursor, Some((1, 1)), "it had been waiting at the margin");
    emulator.feed(b"\x1b[?25l");
    assert_eq!(emulator.screen().cursor, None);
}

#[test]
fn rows_keep_significant_blanks() {
    assert_eq!(fed("❯\u{a0}   ").screen().rows[0], "❯\u{a0}");
    assert_eq!(fed("a  \x1b[44m   ").screen().rows[0], "a");
}

#[test]
fn rows_that_scroll_off_the_main_screen_become_history() {
    let lines = |n: usize| (1..=n).map(|n| n.to_string()).collect::<Vec<_>>().join("\r\n");
    assert_eq!(history(&fed(&lines(8))), ["1", "2", "3"]);
    assert_eq!(history(&fed(&format!("\x1b[?1049h{}", lines(8)))), [""; 0], "full-screen programs have none");
    // Codex pushes finished text up through a region above its own.
    assert_eq!(history(&fed(&format!("{}\x1b[1;3r\x1b[3;1H\r\n\r\n", lines(5)))), ["1", "2"]);
    assert_eq!(history(&fed(&format!("{}\x1b[2;4r\x1b[4;1H\r\n", lines(5)))), [""; 0], "not from the middle");
    let wrapped = fed("\x1b[31mabcdefghijklmnopqrstuvwxyz\x1b[m 漢é\r\n\n\n\n\n\nx");
    assert_eq!(history(&wrapped)[0], "abcdefghijklmnopqrstuvwxyz 漢é");
    let cleared = fed(&format!("{}\x1b[2J\x1b[3J\x1b[H{}", lines(9), lines(6)));
    assert_eq!(history(&cleared), ["1"], "who clears the scrollback prints it again");
}

#[test]
fn new_size_keeps_the_rows_that_fit() {
    let mut emulator = fed("1\r\n2\r\n3\r\n4\r\n5\r\n6");
    emulator.resize(Size::clamped(8, 30));
    assert_eq!(emulator.screen().text(), "2\n3\n4\n5\n6\n", "no blank rows on top");
    assert_eq!(emulator.screen().cursor, Some((4, 1)));
    emulator.resize(Size::clamped(3, 30));
    assert_eq!(emulator.screen().text(), "4\n5\n6\n");
    assert_eq!(history(&emulator), ["1", "2", "3"]);
    emulator.feed(b"\x1b[?1049h");
    emulator.resize(Size::clamped(5, 10));
    emulator.feed(b"\x1b[?1049l");
    assert_eq!(emulator.screen().text(), "4\n5\n6\n");
    assert_eq!((emulator.size(), emulator.screen().rows.len()), (Size::clamped(5, 10), 5));
}

#[test]
fn lost_bytes_end_unfinished_sequences() {
    let mut emulator = fed("a\x1b[?2026h\x1b]2;half a ti");
    emulator.skip_to(1_000_000);
    let heard = emulator.feed(b"bc\x1b[5n");
    assert_eq!((emulator.title(), emulator.in_frame()), ("", false));
    assert_eq!(emulator.screen().rows[0], "abc");
    assert_eq!((heard.replies[0].at, emulator.offset()), (1_000_006, 1_000_006));
}

#[test]
fn emoji_have_the_width_that_programs_expect() {
    for (text, row, column) in [
        ("⚠\u{fe0f}|", "⚠\u{fe0f}|", 3),
        ("👨\u{200d}👩\u{200d}👧|", "👨|", 3),
        ("🤷\u{200d}♀\u{fe0f}|", "🤷\u{fe0f}|", 3),
        ("❤\u{fe0f}\u{200d}🔥|", "❤\u{fe0f}|", 3),
        ("👍🏽|", "👍|", 3),
        // Not emoji: a joiner in a word, a skin tone on its own.
        ("a\u{200d}b|", "a\u{200d}b|", 3),
        ("a🏽|", "a🏽|", 4),
        ("👨\x1b[m👩|", "👨👩|", 5),
    ] {
        let screen = fed(text).screen();
        assert_eq!((screen.rows[0].as_str(), screen.cursor), (row, Some((0, column))), "{text:?}");
    }
}

#[test]
fn emoji_in_the_corner_is_harmless() {
    // The second half overwrites what vt100 alone leaves behind, and panics on.
    let mut emulator = new(24, 80);
    let heard = emulator.feed("\x1b[24;80H❤\u{fe0f}\x1b[23;80Hx\x1b[24;80Hy".as_bytes());
    assert!(!heard.screen_lost);
    assert_eq!(emulator.screen().rows[23].trim_start(), "y");
}

#[test]
fn each_screen_has_its_keyboard_flags() {
    let mut emulator = fed("\x1b[>1u\x1b[?1049h\x1b[>5u\x1b[>7u");
    assert_eq!(emulator.keyboard_flags(), 7);
    emulator.feed(b"\x1b[<u");
    assert_eq!(emulator.keyboard_flags(), 5);
    emulator.feed(b"\x1b[?1049l");
    assert_eq!(emulator.keyboard_flags(), 1);
    emulator.feed(b"\x1bc");
    assert_eq!(emulator.input_modes(), new(5, 20).input_modes());
}

#[test]
fn signals_replies_title_and_history_are_bounded() {
    let mut emulator = new(5, 20);
    let heard = emulator.feed(format!("\x1b]2;first\x07{}\x1b]2;last\x07", "\x1b[6n\x07".repeat(5000)).as_bytes());
    assert_eq!((heard.signals.len(), heard.replies.len()), (1024, 1024));
    assert_eq!(heard.signals.last(), Some(&Signal::Title { title: "last".to_owned() }), "the oldest are dropped");
    let title = format!("\x1b]2;{}\x07", "x".repeat(1 << 20));
    emulator.feed(title.as_bytes());
    assert_eq!(emulator.title().len(), 4096);
    emulator.feed("wrapped without end ".repeat(1 << 17).as_bytes());
    let limit = HistoryLimit::default();
    assert!(emulator.history().map(str::len).sum::<usize>() <= limit.bytes);
}

#[test]
fn checkpoint_is_about_as_large_as_its_text() {
    let mut emulator = Emulator::new(Size::DEFAULT, HistoryLimit::default());
    let line = format!("\x1b[32m●\x1b[39m {}\r\n", "some words of an answer ".repeat(6));
    emulator.feed(line.repeat(500).as_bytes());
    let text = emulator.screen().text().len() + emulator.history().map(|line| line.len() + 1).sum::<usize>();
    let size = emulator.checkpoint().len();
    assert!(size < text + 48 * 40 + 1000, "{size} bytes for {text}");
}

#[test]
fn foreign_checkpoints_are_refused() {
    let good = fed("hello").checkpoint();
    let with = |at: usize, byte: u8| {
        let mut blob = good.clone();
        blob[at] = byte;
        blob
    };
    let (no_rows, short_history) = (with(16, 0), with(good.len() - 1, 1));
    for blob in [vec![], good[..16].to_vec(), with(15, b'9'), no_rows, short_history, [&good[..], b"x"].concat()] {
        assert!(Emulator::restore(&blob, HistoryLimit::default()).is_err(), "{}", blob.escape_ascii());
    }
}

#[test]
fn panic_of_vt100_loses_only_the_screen() {
    // No output leads to this state, but a checkpoint with a broken picture does.
    let mut emulator = fed("1\r\n2\r\n3\r\n4\r\n5\r\n6");
    emulator.terminal.process("\x1b[5;20H❤\u{fe0f}".as_bytes());
    let heard = emulator.feed(b"\x1b[4;20Hx\x1b]2;t\x07");
    assert!(heard.screen_lost);
    assert_eq!(heard.signals, [Signal::Title { title: "t".to_owned() }]);
    emulator.feed(b"\x1b[Hagain");
    assert_eq!(emulator.screen().text(), "again\n");
    assert_eq!(history(&emulator)[0], "1", "what is kept outside of vt100 stays");
    assert!(!emulator.feed(b"x").screen_lost);
}

#[test]
fn window_gets_only_changes() {
    let mut emulator = fed("hello\r\nworld");
    let mut view = TerminalView::new();
    let window = Size::clamped(5, 20);
    assert!(view.paint(&emulator, window).starts_with(b"\x1b[?2026h\x1b[0m\x1b[2J"));
    assert_eq!(view.paint(&emulator, window), b"");
    emulator.feed(b"\x1b[1;3Hx\x1b[2;6H");
    let painted = view.paint(&emulator, window);
    assert_eq!(painted.escape_ascii().to_string(), r"\x1b[?2026h\x1b[1;3Hx\x1b[2;6H\x1b[?2026l");
    emulator.feed(b"\x1b[?2004h\x1b[?1000h\x1b[?1006h\x1b[>5u\x1b[?25l");
    let painted = view.paint(&emulator, window).escape_ascii().to_string();
    assert!(painted.starts_with(r"\x1b[?2026h\x1b[?25l\x1b[?9l"), "no cell is drawn again: {painted}");
    for mode in [r"\x1b[?2004h", r"\x1b[?1000h", r"\x1b[?1006h", r"\x1b[=5u"] {
        assert!(painted.contains(mode), "{mode}: {painted}");
    }
    // Another window, or one that was changed from outside.
    assert!(view.paint(&emulator, Size::clamped(2, 4)).starts_with(b"\x1b[?2026h\x1b[0m\x1b[2J"));
    view.forget();
    assert!(view.paint(&emulator, Size::clamped(2, 4)).starts_with(b"\x1b[?2026h\x1b[0m\x1b[2J"));
}

#[test]
fn small_window_shows_the_part_around_the_cursor() {
    let mut emulator = Emulator::new(Size::clamped(40, 120), HistoryLimit::default());
    let lines: Vec<String> = (0..40).map(|n| format!("line {n}")).collect();
    emulator.feed(lines.join("\r\n").as_bytes());
    let window = Size::clamped(10, 40);
    let mut view = TerminalView::new();
    let mut person = Emulator::new(window, HistoryLimit::default());
    let mut look = |emulator: &Emulator| {
        person.feed(&view.paint(emulator, window));
        (person.screen().rows, view.origin())
    };
    let (rows, origin) = look(&emulator);
    assert_eq!((rows[0].as_str(), rows[9].as_str(), origin), ("line 30", "line 39", (30, 0)));
    // It moves only when the cursor comes near the edge, and no further than needed.
    emulator.feed(b"\x1b[36;1H");
    assert_eq!(look(&emulator).1, (30, 0));
    emulator.feed(b"\x1b[34;1H");
    assert_eq!(look(&emulator).1, (29, 0));
    emulator.feed(b"\x1b[1;100Hx");
    assert_eq!(look(&emulator).1, (0, 69));
    emulator.feed(b"\x1b[H");
    assert_eq!(look(&emulator).1, (0, 0));
}

#[test]
fn text_below_a_line_can_be_read_later() {
    let mut emulator = fed("one\r\n$ ls\r\n");
    let line = emulator.cursor_line() - 1;
    assert_eq!(emulator.text_below(line), "");
    emulator.feed(b"a\r\nb");
    assert_eq!(emulator.text_below(line), "a\nb");
    let numbers: Vec<String> = (1..=30).map(|n| n.to_string()).collect();
    emulator.feed(numbers.join("\r\n").as_bytes());
    let all: Vec<String> =
        ["a".to_owned(), "b1".to_owned()].into_iter().chain((2..=30).map(|n| n.to_string())).collect();
    assert_eq!(emulator.text_below(line), all.join("\n"), "also what has scrolled off");
}

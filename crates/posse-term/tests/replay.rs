//! The emulator on recordings of real agents, with the real tmux as the judge.
//!
//! Where vt100 and tmux differ and we know why, the difference is listed here with its reason; see
//! `docs/decisions/0002-emulator.md`.

// What cannot be set up fails the test.
#![allow(clippy::unwrap_used)]

mod tmux;

use std::path::Path;

use posse_core::screen::Size;
use posse_core::signal::Signal;
use posse_term::emulator::{Emulator, FeedOutcome, HistoryLimit};

struct Recording {
    name: String,
    size: Size,
    bytes: Vec<u8>,
}

fn recordings() -> Vec<Recording> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings");
    let index = std::fs::read_to_string(directory.join("index.tsv")).unwrap();
    let recordings: Vec<_> = index
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| {
            let fields: Vec<_> = line.split('\t').collect();
            let [name, columns, rows, _] = fields[..] else { panic!("in index.tsv: {line:?}") };
            let bytes = std::fs::read(directory.join(name).with_added_extension("raw")).unwrap();
            let size = Size::new(rows.parse().unwrap(), columns.parse().unwrap()).unwrap();
            Recording { name: name.to_owned(), size, bytes }
        })
        .collect();
    let files = std::fs::read_dir(&directory)
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().path().extension().is_some_and(|extension| extension == "raw"));
    assert_eq!(files.count(), recordings.len(), "every recording is in the index");
    recordings
}

fn new(size: Size) -> Emulator {
    Emulator::new(size, HistoryLimit::default())
}

/// Feeds in chunks and gathers what was heard.
fn feed(emulator: &mut Emulator, bytes: &[u8], chunk: usize) -> FeedOutcome {
    let mut heard = FeedOutcome::default();
    for chunk in bytes.chunks(chunk) {
        let mut part = emulator.feed(chunk);
        heard.signals.append(&mut part.signals);
        heard.replies.append(&mut part.replies);
        heard.frame_ended |= part.frame_ended;
    }
    heard
}

#[track_caller]
fn assert_same(a: &Emulator, b: &Emulator, what: &str) {
    assert_eq!(a.screen(), b.screen(), "{what}");
    assert!(a.history().eq(b.history()), "history, {what}");
    assert!(a.checkpoint() == b.checkpoint(), "checkpoint, {what}");
}

#[test]
fn a_checkpoint_anywhere_changes_nothing_and_a_new_viewer_sees_the_same() {
    for Recording { name, size, bytes } in recordings() {
        let mut whole = new(size);
        let mut relay = new(size);
        // An odd step, so that checkpoints fall into the middle of sequences and characters.
        for chunk in bytes.chunks(1013) {
            assert_eq!(relay.feed(chunk), whole.feed(chunk), "{name}");
            let blob = relay.checkpoint();
            relay = Emulator::restore(&blob, HistoryLimit::default()).unwrap();
            let place = format!("{name} at {}", whole.offset());
            assert_same(&relay, &whole, &place);
            let mut joined = new(size);
            joined.feed(&whole.repaint());
            assert_eq!(joined.screen(), whole.screen(), "{place}");
            assert_eq!(joined.input_modes(), whole.input_modes(), "{place}");
        }
    }
}

/// What the agents said of themselves, in order.
fn states(name: &str) -> Vec<String> {
    let Recording { size, bytes, .. } = recordings().into_iter().find(|recording| recording.name == name).unwrap();
    let heard = feed(&mut new(size), &bytes, 4096);
    let state = |signal| match signal {
        Signal::AgentState { payload } => {
            let state = payload.split(':').next().unwrap_or_default();
            Some(state.strip_prefix("state=").unwrap_or(state).to_owned())
        }
        _ => None,
    };
    heard.signals.into_iter().filter_map(state).collect()
}

#[test]
fn agents_are_heard() {
    let turn = ["working", "done"];
    let asked = ["working", "blocked", "working", "done"];
    let session = [&["idle"][..], &turn, &asked, &turn, &turn].concat();
    assert_eq!(states("claude-2.1.325-fullscreen"), session);
    assert_eq!(states("claude-2.1.325-classic"), session);
    assert_eq!(states("codex-0.166-startup"), ["idle", "working", "idle"]);
}

#[test]
fn queries_are_answered_in_their_order() {
    let answers = |name: &str| {
        let Recording { size, bytes, .. } = recordings().into_iter().find(|recording| recording.name == name).unwrap();
        let replies = feed(&mut new(size), &bytes, 4096).replies;
        assert!(replies.is_sorted_by(|a, b| a.at < b.at));
        replies.into_iter().map(|reply| String::from_utf8(reply.bytes).unwrap()).collect::<Vec<_>>()
    };
    // The last of the first four makes Claude Code stop listening.
    assert_eq!(
        answers("claude-2.1.325-fullscreen")[..4],
        [concat!("\x1bP>|posse(", env!("CARGO_PKG_VERSION"), ")\x1b\\"), "\x1b[?0u", "\x1b]7501;?\x07", "\x1b[?62;22c"]
    );
    assert_eq!(
        answers("codex-0.166")[..5],
        [
            "\x1b[?7u",
            "\x1b[?62;22c",
            "\x1b[1;1R",
            "\x1b]10;rgb:e0e0/e0e0/e0e0\x1b\\",
            "\x1b]11;rgb:1e1e/1e1e/1e1e\x1b\\"
        ]
    );
}

/// A place at or after `at` where a program had finished saying something.
fn pause(bytes: &[u8], at: usize) -> usize {
    let end = b"\x1b[?2026l";
    let frame = bytes[at..].windows(end.len()).position(|window| window == end).map(|found| found + end.len());
    let sequence = bytes[at..].iter().position(|byte| *byte == 0x1b);
    at + frame.or(sequence).unwrap_or(bytes.len() - at)
}

#[test]
fn recordings_look_as_in_tmux() {
    let Some(tmux) = tmux::Tmux::start() else { return };
    let mut differences = Vec::new();
    for Recording { name, size, bytes } in recordings() {
        for percent in [25, 50, 75, 100] {
            let bytes = &bytes[..pause(&bytes, bytes.len() * percent / 100)];
            let mut emulator = new(size);
            feed(&mut emulator, bytes, 4096);
            let theirs = tmux.show(bytes, size);
            let their_cursor = (theirs.cursor.0, theirs.cursor.1.min(size.cols() - 1));
            if let Some(cursor) = emulator.screen().cursor.filter(|cursor| *cursor != their_cursor) {
                differences.push(format!("{name} at {percent} %: cursor at {cursor:?}, in tmux at {their_cursor:?}"));
            }
            for (row, (ours, theirs)) in emulator.screen().rows.iter().zip(&theirs.rows).enumerate() {
                if ours != theirs && !known_difference(ours, theirs) {
                    differences.push(format!("{name} at {percent} %, row {row}:\n  ours {ours:?}\n  tmux {theirs:?}"));
                }
            }
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// tmux 3.3a keeps a character with an emoji selector narrow and draws every part of a joined emoji;
/// we make the first wide and draw only the first part, as the agents count. So a row that holds
/// either may differ in blanks and in emoji.
fn known_difference(ours: &str, theirs: &str) -> bool {
    let is_part = |c: char| matches!(c, '\u{200d}' | '\u{fe0f}' | '\u{1f000}'..);
    let plain = |row: &str| row.replace(is_part, "").split(' ').filter(|word| !word.is_empty()).collect::<String>();
    theirs.contains(['\u{200d}', '\u{fe0f}']) && plain(ours) == plain(theirs)
}

/// What a terminal of 20x5 is told, and what we show instead of what tmux shows, with the reason.
struct Case {
    name: &'static str,
    input: &'static str,
    instead: Option<(&'static str, &'static str)>,
}

const fn same(name: &'static str, input: &'static str) -> Case {
    Case { name, input, instead: None }
}

const fn other(name: &'static str, input: &'static str, ours: &'static str, reason: &'static str) -> Case {
    Case { name, input, instead: Some((ours, reason)) }
}

/// What reaches vt100 as it is needs no case here, see `simple_streams_look_as_in_vt100_alone`.
const CASES: &[Case] = &[
    same("wide character at the margin", "1234567890123456789漢x"),
    same("bytes that do nothing", "a\0b\x7fc"),
    same("controls inside a sequence", "a\x1b[3\nGX"),
    same("a sequence broken off by another", "a\x1b[3\x1b[2GX"),
    same("up from the margin", "\r\n\r\n12345678901234567890\x1b[1AX"),
    same("down from the margin", "12345678901234567890\x1b[1BX"),
    same("save and restore, the other way", "ab\x1b[scd\x1b[uX"),
    same("index", "a\x1bDX"),
    same("next line", "a\x1bEX"),
    same("index in a region", "1\r\n2\r\n3\r\n4\r\n5\x1b[2;4r\x1b[4;1H\x1bDX"),
    same("origin mode", "\x1b[2;4r\x1b[?6h\x1b[1;1HX\x1b[9;1HY"),
    same("repeat", "a\x1b[5b|"),
    same("repeat stops at the margin", "a\x1b[500b|"),
    same("repeat after something else", "a\x1b[31m\x1b[5b|"),
    same("insert mode", "abcdef\x1b[3G\x1b[4hXY\x1b[4lZ"),
    same("insert mode, wide", "abcdef\x1b[3G\x1b[4h漢Y"),
    same("no wrapping", "\x1b[?7l1234567890123456789012345X"),
    same("no wrapping, then wrapping", "\x1b[?7l1234567890123456789012345\x1b[?7hXY"),
    same("tab backwards", "0123456789012345\x1b[2ZX"),
    same("enter the alternate screen", "abc\r\ndef\x1b[?1049hX"),
    same("leave the alternate screen", "abc\r\ndef\x1b[?1049hX\r\n\n\nY\x1b[?1049lZ"),
    same("leave it without having entered", "abc\r\ndef\x1b[?1049lZ"),
    same("enter it twice", "abc\x1b[?1049hX\r\nY\x1b[?1049hZ\x1b[?1049lW"),
    same("the old alternate screen", "abc\r\ndef\x1b[?47hX\r\n\nY\x1b[?47lZ"),
    same("the other alternate screen", "abc\r\ndef\x1b[?1047hX\r\n\nY\x1b[?1047lZ"),
    same("full reset", "abc\r\nd\x1bcX"),
    same("soft reset", "\x1b[2;3r\x1b[?6h\x1b[!pX"),
    same("strings are not text", "a\x1bkname\x1b\\b\x1b_Gfoo\x1b\\c\x1bPqÜb\x1b\\d\x1b]2;t\x18e"),
    same("C1 controls are not text", "a\u{9b}b"),
    same("clear the scrollback", "a\r\nb\r\nc\r\nd\r\ne\r\nf\r\ng\x1b[3J"),
    other("replacement character", "a\u{fffd}b", "a?b", "vt100 refuses to draw it; the column is right"),
    other("line drawing", "\x1b(0lqk\x1b(Bq", "┌─┐q", "tmux captures the letters and draws the lines"),
    other("emoji selector", "❤\u{fe0f}x", "❤\u{fe0f}x", "wide with us, narrow in tmux 3.3a"),
    other("joined emoji", "👨\u{200d}👩\u{200d}👧|", "👨|", "only the first part is drawn"),
    other("skin tone", "👍🏽|", "👍|", "as wide as without, as agents count; 4 columns in tmux 3.3a"),
    other("half a wide character overwritten", "漢字\x1b[2Gx", " x字", "tmux 3.3a shows more than fits"),
    other("half a wide character erased", "漢字\x1b[2G\x1b[X", "  字", "as above"),
    other("restore at the margin", "12345678901234567890\x1b7\x1b8X", "12345678901234567890\nX", "xterm wraps too"),
    other("repeat of a wide character", "漢\x1b[2b|", "漢漢漢|", "tmux repeats only narrow ones"),
    other("repeat twice", "a\x1b[3b\x1b[2b|", "aaaaaa|", "xterm does too"),
    other("tab at the margin", "\x1b[18GX\tY\tZ", "                 X Z", "vt100 gives up the wish to wrap"),
    other("tab stops", "\x1b[3g\x1b[5G\x1bH\r\tX", "        X", "vt100 has them every 8 columns and nowhere else"),
    other("screen alignment", "\x1b#8", "", "vt100 does not know it; only test programs use it"),
    other("soft hyphen", "a\u{ad}b|", "a\u{ad}b|", "no column of its own with us, one in tmux"),
];

#[test]
fn plain_things_look_as_in_tmux() {
    let Some(tmux) = tmux::Tmux::start() else { return };
    let size = Size::clamped(5, 20);
    let mut wrong = Vec::new();
    for Case { name, input, instead } in CASES {
        let mut emulator = new(size);
        emulator.feed(input.as_bytes());
        let ours = emulator.screen();
        let cursor = ours.cursor.unwrap();
        let theirs = tmux.show(input.as_bytes(), size);
        let their_cursor = (theirs.cursor.0, theirs.cursor.1.min(size.cols() - 1));
        match instead {
            None if ours.rows != theirs.rows || cursor != their_cursor => {
                wrong.push(format!(
                    "{name}:\n  ours {:?} {cursor:?}\n  tmux {:?} {their_cursor:?}",
                    ours.rows, theirs.rows
                ));
            }
            Some((expected, reason)) if ours.text().trim_end_matches('\n') != *expected => {
                wrong.push(format!("{name} ({reason}):\n  ours {:?}\n  not {expected:?}", ours.text()));
            }
            Some((_, reason)) if ours.rows == theirs.rows && cursor == their_cursor => {
                eprintln!("{name} is the same in this tmux: {reason}");
            }
            _ => {}
        }
    }
    // Other versions are worth a look, but each has its own mind about oddities.
    let judge = tmux.version() == "tmux 3.3a";
    assert!(wrong.is_empty() || !judge, "{}", wrong.join("\n"));
    if !wrong.is_empty() {
        eprintln!("other than {}:\n{}", tmux.version(), wrong.join("\n"));
    }
}

use super::*;
use proptest::prelude::*;

/// Returns a piece as short text for tables, which outlives the scanner.
fn name(piece: StreamPiece<'_>) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match piece {
        StreamPiece::Text(bytes) => format!("text {:?}", text(bytes)),
        StreamPiece::Escape { intermediates, last } => format!("esc {}{}", text(intermediates), last as char),
        StreamPiece::Control(control) => format!("csi {}", text(&control.raw[2..])),
        StreamPiece::Command { body, end } => format!("osc {} {end:?}", text(body)),
        StreamPiece::Device(body) => format!("dcs {}", text(body)),
        StreamPiece::Nothing => "nothing".to_owned(),
    }
}

#[track_caller]
fn check(input: &[u8], expected: &[&str], unfinished: &[u8]) {
    let mut scanner = Scanner::default();
    let mut found: Vec<String> = Vec::new();
    let mut text = Vec::new();
    let mut rest = input;
    while let Some(piece) = scanner.next(&mut rest) {
        if let StreamPiece::Text(bytes) = piece {
            // Invalid bytes are dropped, here or by vt100.
            bytes.utf8_chunks().for_each(|chunk| text.extend_from_slice(chunk.valid().as_bytes()));
            continue;
        }
        let piece = name(piece);
        if !text.is_empty() {
            found.push(name(StreamPiece::Text(&std::mem::take(&mut text))));
        }
        found.push(piece);
    }
    assert!(rest.is_empty(), "the scanner stopped before the end");
    if !text.is_empty() {
        found.push(name(StreamPiece::Text(&text)));
    }
    assert_eq!(found, expected);
    assert_eq!(scanner.unfinished(), unfinished);
}

#[test]
fn sequences_are_separated_from_text() {
    check(b"ab\x1b[31mcd", &[r#"text "ab""#, "csi 31m", r#"text "cd""#], b"");
    check(b"\x1b[?2026$p", &["csi ?2026$p"], b"");
    check(b"\x1b7\x1b(0", &["esc 7", "esc (0"], b"");
    check(b"\x1b]2;t\x07x", &["osc 2;t Bell", r#"text "x""#], b"");
    check(b"\x1b]2;t\x1b\\x", &["osc 2;t String", r#"text "x""#], b"");
    check(b"\x1bP+q4d73\x1b\\", &["dcs +q4d73"], b"");
    check(b"a\x1b_Gi=1;AAAA\x1b\\b", &[r#"text "a""#, "nothing", r#"text "b""#], b"");
    check(b"a\x1bkname\x1b\\b", &[r#"text "a""#, "nothing", r#"text "b""#], b"");
}

#[test]
fn string_ends_at_any_escape() {
    check(b"\x1b]2;t\x1b[2J", &["osc 2;t String", "csi 2J"], b"");
    check(b"\x1b]2;t\x1b\x1b[2J", &["osc 2;t String", "csi 2J"], b"");
    check(b"\x1b]2;t\x18x", &["osc 2;t String", r#"text "x""#], b"");
    // Programs that assume tmux wrap their sequences; the inside counts.
    check(b"\x1bPtmux;\x1b\x1b]4;0;?\x07\x1b\\", &["dcs tmux;", "osc 4;0;? Bell", "esc \\"], b"");
}

#[test]
fn foreign_bytes_inside_a_sequence_are_handled() {
    check(b"\x1b[3\n1m", &[r#"text "\n""#, "csi 31m"], b"");
    check(b"\x1b[\x7f3\xff1m", &["csi 31m"], b"");
    check(b"\x1b[3\x1b[4m", &["csi 4m"], b"");
    check(b"\x1b[3\x18m", &["nothing", r#"text "m""#], b"");
    check(b"\x1b[3?1mx", &["nothing", r#"text "x""#], b"");
    check(b"\x1b[3$1mx", &["nothing", r#"text "x""#], b"");
    check(b"\x1b\x1b\x1bM", &["esc M"], b"");
    check("a\x1bPqÜb\x1b\\c".as_bytes(), &[r#"text "a""#, "dcs qÜb", r#"text "c""#], b"");
}

#[test]
fn unfinished_piece_is_kept() {
    check(b"a\x1b", &[r#"text "a""#], b"\x1b");
    check(b"\x1b[38;5", &[], b"\x1b[38;5");
    check(b"\x1b]2;ti", &[], b"\x1b]2;ti");
    check(b"\x1b]2;ti\x1b", &[], b"\x1b]2;ti\x1b");
    check(b"a\xe2\x96", &[r#"text "a""#], b"\xe2\x96");
    // The beginning of a character before an escape sequence is lost, as in vte.
    check(b"a\xe2\x96\x1b[m", &[r#"text "a""#, "csi m"], b"");
    // Not the start of any character: left to vt100, which drops it.
    assert!(Scanner::default().unfinished().is_empty());
    check(b"a\xe0\x80", &[r#"text "a""#], b"");
}

#[test]
fn parameters_are_parsed_leniently() {
    let raw = b"\x1b[?1;;99999;4:3$p";
    let control = Control::parse(raw).unwrap();
    assert_eq!(control.private, Some(b'?'));
    assert_eq!(control.numbers().collect::<Vec<_>>(), [1, 0, 65535, 4]);
    assert_eq!(control.intermediates, b"$");
    assert_eq!(control.last, b'p');
    assert_eq!(control.number_or(1, 7), 7);
    assert_eq!(control.number_or(9, 7), 7);
    assert_eq!(Control::parse(b"\x1b[m").unwrap().numbers().collect::<Vec<_>>(), [0]);
}

#[test]
fn endless_sequences_take_bounded_memory() {
    for start in ["\x1b]52;c;", "\x1bPq", "\x1b_G", "\x1b[", "\x1b("] {
        let mut scanner = Scanner::default();
        let mut rest = start.as_bytes();
        assert!(scanner.next(&mut rest).is_none());
        for _ in 0..100 {
            let mut rest: &[u8] = &[b'1'; 4096][..];
            if start == "\x1b(" {
                rest = &[b'('; 4096];
            }
            assert_eq!(scanner.next(&mut rest), None);
        }
        assert!(scanner.unfinished().len() <= STRING_MAX, "{start:?}");
        let mut rest: &[u8] = b"m\x07\x1b\\\x1b[1mx";
        let mut last = String::new();
        while let Some(piece) = scanner.next(&mut rest) {
            last = name(piece);
        }
        assert_eq!(last, r#"text "x""#, "lost after {start:?}");
    }
}

/// Bytes that resemble a terminal's, broken in every way.
pub(crate) fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let part = prop_oneof![
        4 => "[ -~]{0,8}".prop_map(String::into_bytes),
        1 => "[é漢😀\u{301}\u{fe0f}]{1,3}".prop_map(String::into_bytes),
        3 => "\x1b\\[[<-?]?[0-9;:]{0,6}[ -/]?[@-~]".prop_map(String::into_bytes),
        1 => "\x1b[ -/]?[0-~]".prop_map(String::into_bytes),
        1 => "\x1b[\\]P_^Xk][ -~]{0,12}(\x07|\x1b\\\\|\x18|)".prop_map(String::into_bytes),
        2 => proptest::collection::vec(any::<u8>(), 0..4),
        1 => proptest::collection::vec(proptest::sample::select(&b"\x1b\x1b\x1b[]P\x18\x07\n\r\xe2\x96\xf0\x9f"[..]), 0..6),
    ];
    proptest::collection::vec(part, 0..30).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn resumed_scanner_holds_exactly_its_input(input in bytes()) {
        if let Some(scanner) = Scanner::resume(&input) {
            prop_assert_eq!(scanner.unfinished(), input);
        }
    }
}

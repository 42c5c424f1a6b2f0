use proptest::prelude::*;

use super::*;

const HEADER: Header = Header { size: Size::DEFAULT, began: 1_700_000_000 };

fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

fn read(text: &[u8]) -> Vec<CastEvent> {
    let reader = CastReader::new(text).unwrap();
    assert_eq!(reader.header(), HEADER);
    reader.map(Result::unwrap).collect()
}

fn lines(text: &[u8]) -> Vec<&str> {
    std::str::from_utf8(text).unwrap().lines().collect()
}

#[test]
fn recordings_of_other_tools_can_be_read() {
    let mut out = HEADER.line().into_bytes();
    let mut encoder = Encoder::default();
    encoder.output(ms(0), b"\x1b[1mhi\r\n", &mut out);
    encoder.resized(ms(1500), Size::clamped(30, 100), &mut out);
    encoder.mark(ms(2000), "redrawn", &mut out);
    let (width, height) = (Size::DEFAULT.cols(), Size::DEFAULT.rows());
    assert_eq!(
        lines(&out),
        [
            format!(r#"{{"version":2,"width":{width},"height":{height},"timestamp":1700000000}}"#).as_str(),
            r#"[0.000000,"o","\u001b[1mhi\r\n"]"#,
            r#"[1.500000,"r","100x30"]"#,
            r#"[2.000000,"m","redrawn"]"#,
        ]
    );
    let theirs = br#"{"version": 2, "width": 80, "height": 24, "env": {"TERM": "xterm"}, "theme": {}}
[1, "o", "x"]
[1.25, "i", "typed"]
[2.5, "o", "y"]
[3, "o", "unfinished"#;
    let events: Vec<_> = CastReader::new(&theirs[..]).unwrap().map(Result::unwrap).collect();
    let output = |at, text: &str| CastEvent { at, what: CastEventKind::Output(text.into()) };
    assert_eq!(events, [output(ms(1000), "x"), output(ms(2500), "y")]);
}

#[test]
fn cut_characters_are_completed_and_invalid_bytes_dropped() {
    let mut out = HEADER.line().into_bytes();
    let mut encoder = Encoder::default();
    encoder.output(ms(1), b"a\xe2\x82", &mut out);
    encoder.output(ms(2), b"\xac!", &mut out);
    encoder.output(ms(3), b"x\xff\xfe", &mut out);
    encoder.output(ms(4), b"\xf0\x9f", &mut out);
    assert_eq!(lines(&out)[1..], [r#"[0.001000,"o","a"]"#, r#"[0.002000,"o","€!"]"#, r#"[0.003000,"o","x"]"#,]);
    let output = |at, text: &str| CastEvent { at: ms(at), what: CastEventKind::Output(text.into()) };
    assert_eq!(read(&out), [output(1, "a"), output(2, "€!"), output(3, "x")]);
}

#[test]
fn invalid_recordings_are_errors() {
    for header in ["", "{}", "[]", r#"{"version":3,"width":80,"height":24}"#, r#"{"version":2,"width":0,"height":0}"#] {
        assert!(matches!(CastReader::new(header.as_bytes()), Err(CastError::Header(_))), "{header}");
    }
    for line in ["x", "[]", r#"[-1,"o","x"]"#, r#"["o",1,"x"]"#, r#"[1,"r","80"]"#] {
        let text = format!("{}{line}\n", HEADER.line());
        let read: Result<Vec<_>, _> = CastReader::new(text.as_bytes()).unwrap().collect();
        assert!(matches!(read, Err(CastError::Line { line: 2, .. })), "{line}");
    }
}

fn chunks() -> impl Strategy<Value = Vec<(u64, Vec<u8>)>> {
    let text = "[a-zé€😀\u{fffd}\u{1b}\u{0}]{0,20}".prop_map(String::into_bytes);
    let bytes = prop_oneof![text, prop::collection::vec(any::<u8>(), 0..20)];
    prop::collection::vec((0..10_000_000u64, bytes), 0..20)
}

fn valid(bytes: &[u8]) -> String {
    bytes.utf8_chunks().map(|chunk| chunk.valid()).collect()
}

/// Returns the output of a recording: each character with its time.
fn output_of(text: &[u8]) -> Vec<(char, Duration)> {
    let outputs = read(text).into_iter().filter_map(|event| match event.what {
        CastEventKind::Output(bytes) => Some((event.at, String::from_utf8(bytes).unwrap())),
        _ => None,
    });
    outputs.flat_map(|(at, text)| text.chars().map(move |c| (c, at)).collect::<Vec<_>>()).collect()
}

proptest! {
    #[test]
    fn chunking_changes_neither_text_nor_times(chunks in chunks(), cuts in prop::collection::vec(1..8usize, 1..8)) {
        let mut cuts = cuts.iter().cycle();
        let (mut at, mut given) = (0, Vec::new());
        for (step, bytes) in &chunks {
            let mut rest = &bytes[..];
            while !rest.is_empty() {
                let (piece, after) = rest.split_at((*cuts.next().unwrap()).min(rest.len()));
                at += step;
                given.push((Duration::from_micros(at), piece));
                rest = after;
            }
        }
        let (mut out, mut encoder) = (HEADER.line().into_bytes(), Encoder::default());
        given.iter().for_each(|(at, piece)| encoder.output(*at, piece, &mut out));
        let got = output_of(&out);
        let whole: Vec<u8> = given.iter().flat_map(|(_, piece)| *piece).copied().collect();
        prop_assert_eq!(got.iter().map(|(c, _)| *c).collect::<String>(), valid(&whole));
        // A character has the time of the chunk that completes it.
        for (place, at) in &given {
            let ascii = |text: &str| text.chars().filter(char::is_ascii).count();
            let with_that_time = got.iter().filter(|(c, when)| c.is_ascii() && when == place).count();
            let pieces = given.iter().filter(|(when, _)| when == place).map(|(_, piece)| ascii(&valid(piece)));
            prop_assert_eq!(with_that_time, pieces.sum::<usize>(), "{:?}", at);
        }
    }

    #[test]
    fn long_output_is_split_into_lines(bytes in prop::collection::vec(any::<u8>(), 40_000..60_000), escapes in any::<bool>()) {
        let bytes = if escapes { vec![0x1b; bytes.len()] } else { bytes };
        let (mut out, mut encoder) = (HEADER.line().into_bytes(), Encoder::default());
        encoder.output(ms(1), &bytes, &mut out);
        prop_assert!(out.split(|byte| *byte == b'\n').all(|line| line.len() < MAX_LINE));
        prop_assert!(output_of(&out).into_iter().map(|(c, _)| c).collect::<String>() == valid(&bytes));
    }

    #[test]
    fn any_input_is_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), line in ".{0,60}") {
        let text = [HEADER.line().as_bytes(), line.as_bytes(), b"\n", &bytes].concat();
        for reader in [CastReader::new(&text[..]), CastReader::new(&bytes[..])].into_iter().flatten() {
            let _ = reader.take(100).collect::<Vec<_>>();
        }
    }
}

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
fn it_reads_as_others_write_it() {
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
fn what_is_cut_waits_and_what_is_no_text_is_kept_exactly() {
    let mut out = HEADER.line().into_bytes();
    let mut encoder = Encoder::default();
    encoder.output(ms(1), b"a\xe2\x82", &mut out);
    encoder.output(ms(2), b"\xac!", &mut out);
    encoder.output(ms(3), b"x\xff\xfe", &mut out);
    encoder.output(ms(4), b"\xf0\x9f", &mut out);
    encoder.finish(ms(5), &mut out);
    assert_eq!(
        lines(&out)[1..],
        [
            r#"[0.001000,"o","a"]"#,
            r#"[0.002000,"o","€!"]"#,
            "[0.003000,\"o\",\"x\u{fffd}\u{fffd}\"]",
            r#"[0.003000,"b","78fffe"]"#,
            "[0.005000,\"o\",\"\u{fffd}\"]",
            r#"[0.005000,"b","f09f"]"#,
        ]
    );
    let output = |at, bytes: &[u8]| CastEvent { at: ms(at), what: CastEventKind::Output(bytes.into()) };
    assert_eq!(
        read(&out),
        [output(1, b"a"), output(2, "€!".as_bytes()), output(3, b"x\xff\xfe"), output(5, b"\xf0\x9f")]
    );
}

#[test]
fn nonsense_is_said_to_be() {
    for header in ["", "{}", "[]", r#"{"version":3,"width":80,"height":24}"#, r#"{"version":2,"width":0,"height":0}"#] {
        assert!(matches!(CastReader::new(header.as_bytes()), Err(CastError::Header(_))), "{header}");
    }
    for line in ["x", "[]", r#"[-1,"o","x"]"#, r#"["o",1,"x"]"#, r#"[1,"r","80"]"#, r#"[1,"b","abc"]"#] {
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

proptest! {
    #[test]
    fn the_same_bytes_at_the_same_times_however_they_were_cut(
        chunks in chunks(), cuts in prop::collection::vec(1..8usize, 1..8), size in any::<bool>(),
    ) {
        // Cut text, so that characters are cut as well.
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
        for (at, piece) in &given {
            encoder.output(*at, piece, &mut out);
            if size {
                encoder.resized(*at, Size::DEFAULT, &mut out);
            }
        }
        let end = Duration::from_micros(at);
        encoder.finish(end, &mut out);
        prop_assert!(out.split(|byte| *byte == b'\n').all(|line| line.len() < MAX_LINE));

        let put: Vec<(u8, Duration)> = given.iter().flat_map(|(at, piece)| piece.iter().map(|byte| (*byte, *at))).collect();
        let events = read(&out);
        let got: Vec<(u8, Duration)> = events.iter().filter_map(|event| match &event.what {
            CastEventKind::Output(bytes) => Some(bytes.iter().map(|byte| (*byte, event.at))),
            _ => None,
        }).flatten().collect();
        prop_assert_eq!(put.iter().map(|(byte, _)| *byte).collect::<Vec<_>>(), got.iter().map(|(byte, _)| *byte).collect::<Vec<_>>());
        for ((byte, put), (_, got)) in put.iter().zip(&got) {
            // Only what may begin or go on a character may have waited, and then not for long.
            let chunk = given.iter().position(|(at, _)| at == put).unwrap_or(0);
            let waited = given.iter().skip(chunk).take(4).any(|(at, _)| at == got) || *got == end;
            prop_assert!(got == put || (*byte >= 0x80 && waited && !size), "{byte:02x} of {put:?} came at {got:?}");
        }
        prop_assert_eq!(events.iter().filter(|event| matches!(event.what, CastEventKind::Resized(_))).count(), if size { given.len() } else { 0 });
    }

    #[test]
    fn long_output_is_cut_into_lines(bytes in prop::collection::vec(any::<u8>(), 40_000..60_000), escapes in any::<bool>()) {
        let bytes = if escapes { vec![0x1b; bytes.len()] } else { bytes };
        let (mut out, mut encoder) = (HEADER.line().into_bytes(), Encoder::default());
        encoder.output(ms(1), &bytes, &mut out);
        encoder.finish(ms(1), &mut out);
        prop_assert!(out.split(|byte| *byte == b'\n').all(|line| line.len() < MAX_LINE));
        let got: Vec<u8> = read(&out).into_iter().flat_map(|event| match event.what {
            CastEventKind::Output(bytes) => bytes,
            _ => vec![],
        }).collect();
        prop_assert!(got == bytes);
    }

    #[test]
    fn anything_can_be_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), line in ".{0,60}") {
        let text = [HEADER.line().as_bytes(), line.as_bytes(), b"\n", &bytes].concat();
        for reader in [CastReader::new(&text[..]), CastReader::new(&bytes[..])].into_iter().flatten() {
            let _ = reader.take(100).collect::<Vec<_>>();
        }
    }
}

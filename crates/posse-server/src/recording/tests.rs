use std::fs::{self, File};
use std::io::BufReader;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::mpsc;

use posse_term::cast::{self, CastEvent, CastReader};
use posse_term::emulator::{Emulator, HistoryLimit};

use super::*;

const SIZE: Size = Size::DEFAULT;
const PATIENCE: Duration = Duration::from_secs(300);

fn id(number: u32) -> TerminalId {
    TerminalId::from_random(number)
}

/// Creates a recorder, and a receiver for its thread's messages.
fn recorder(directory: &Path) -> (Recorder, Thread, mpsc::Receiver<Word>) {
    let (words, heard) = mpsc::channel();
    let (recorder, thread) = start(directory.to_owned(), true, move |word| drop(words.send(word)));
    (recorder, thread, heard)
}

#[track_caller]
fn wanted(heard: &mpsc::Receiver<Word>) -> TerminalId {
    loop {
        if let Word::PictureWanted(id) = heard.recv_timeout(PATIENCE).unwrap() {
            return id;
        }
    }
}

#[track_caller]
fn read(path: &Path) -> Vec<CastEvent> {
    CastReader::new(BufReader::new(File::open(path).unwrap())).unwrap().map(Result::unwrap).collect()
}

fn output(events: &[CastEvent]) -> Vec<u8> {
    let bytes = events.iter().filter_map(|event| match &event.what {
        cast::CastEventKind::Output(bytes) => Some(&bytes[..]),
        _ => None,
    });
    bytes.collect::<Vec<_>>().concat()
}

/// Returns the screen of a file that is replayed on its own.
fn replay(path: &Path) -> Vec<String> {
    let reader = CastReader::new(BufReader::new(File::open(path).unwrap())).unwrap();
    let mut emulator = Emulator::new(reader.header().size, HistoryLimit::default());
    for event in reader {
        match event.unwrap().what {
            cast::CastEventKind::Output(bytes) => drop(emulator.feed(&bytes)),
            cast::CastEventKind::Resized(size) => emulator.resize(size),
            cast::CastEventKind::Mark(_) | cast::CastEventKind::Evidence(_) => {}
        }
    }
    emulator.screen().rows
}

fn marks(events: &[CastEvent]) -> Vec<&str> {
    let marks = events.iter().filter_map(|event| match &event.what {
        cast::CastEventKind::Mark(text) => Some(text.as_str()),
        _ => None,
    });
    marks.collect()
}

#[test]
fn what_is_printed_is_what_is_read() {
    let directory = tempfile::tempdir().unwrap();
    let (recorder, thread, _heard) = recorder(directory.path());
    let mut tapes = [Tape::new(recorder.clone(), id(1)), Tape::new(recorder, id(2))];
    for tape in &mut tapes {
        tape.output(&Bytes::from_static(b"caught up with, not recorded"));
        tape.picture(SIZE, vec![]);
        tape.output(&Bytes::from_static(b"one \xe2\x82"));
        tape.resized(Size::clamped(10, 20));
        tape.output(&Bytes::from_static(b"\xac two \xff"));
    }
    tapes[0].end();
    thread.finish();
    for number in 1..=2 {
        let path = reel::path(directory.path(), id(number));
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let events = read(&path);
        assert_eq!(output(&events), "one € two ".as_bytes());
        assert!(events.iter().any(|event| event.what == cast::CastEventKind::Resized(Size::clamped(10, 20))));
        assert!(events.iter().all(|event| event.at < PATIENCE), "times count from the header on");
        assert_eq!(marks(&events), [""; 0]);
    }
}

#[test]
fn a_daemon_that_comes_next_goes_on_after_the_last_whole_line() {
    let directory = tempfile::tempdir().unwrap();
    let path = reel::path(directory.path(), id(1));
    let (first, thread, _heard) = recorder(directory.path());
    let mut tape = Tape::new(first, id(1));
    tape.picture(SIZE, vec![]);
    tape.output(&Bytes::from_static(b"before"));
    thread.finish();
    let mut cut = fs::read(&path).unwrap();
    cut.extend_from_slice(b"[1.5,\"o\",\"cut");
    fs::write(&path, cut).unwrap();

    let (second, thread, _heard) = recorder(directory.path());
    let mut tape = Tape::new(second, id(1));
    tape.picture(Size::clamped(10, 40), b"the screen".to_vec());
    tape.output(&Bytes::from_static(b" after"));
    thread.finish();
    let events = read(&path);
    assert_eq!(output(&events), b"before\x18\x1bcthe screen after");
    assert_eq!(marks(&events), ["the screen as it was"]);
    assert_eq!(replay(&path)[0], "the screen after");
    // A file that is no recording is replaced.
    fs::write(&path, "nonsense").unwrap();
    let (third, thread, _heard) = recorder(directory.path());
    Tape::new(third, id(1)).picture(SIZE, b"anew".to_vec());
    thread.finish();
    assert_eq!(replay(&path)[0], "anew");
}

#[test]
fn a_flood_leaves_a_gap_and_goes_on_from_a_picture() {
    let directory = tempfile::tempdir().unwrap();
    let (recorder, thread, heard) = recorder(directory.path());
    let (mut flood, mut calm) = (Tape::new(recorder.clone(), id(1)), Tape::new(recorder, id(2)));
    flood.picture(SIZE, vec![]);
    calm.picture(SIZE, vec![]);
    let piece = Bytes::from(vec![b'x'; 64 << 10]);
    let mut printed = 0;
    while !flood.is_behind() {
        flood.output(&piece);
        printed += piece.len();
        assert!(printed < 64 << 20);
    }
    flood.output(&piece);
    calm.output(&Bytes::from_static(b"not disturbed"));
    assert_eq!(wanted(&heard), id(1), "told when there is room again");
    flood.picture(SIZE, b"the end".to_vec());
    assert!(!flood.is_behind());
    thread.finish();
    let path = reel::path(directory.path(), id(1));
    assert_eq!(marks(&read(&path)), ["131072 bytes of output are missing here; the screen as it was"]);
    assert_eq!(replay(&path)[0], "the end");
    assert_eq!(output(&read(&reel::path(directory.path(), id(2)))), b"not disturbed");
}

#[test]
fn a_recording_has_two_files_at_most_and_each_replays_alone() {
    let directory = tempfile::tempdir().unwrap();
    let (recorder, thread, heard) = recorder(directory.path());
    let mut tape = Tape::new(recorder.clone(), id(1));
    tape.picture(SIZE, vec![]);
    let piece = Bytes::from(vec![b'x'; 512 << 10]);
    for round in 0..2 {
        // Until the file is full; each time there is room.
        let asked = loop {
            tape.output(&piece);
            match heard.recv_timeout(Duration::from_millis(1)) {
                Ok(Word::PictureWanted(_)) if tape.is_behind() => tape.picture(SIZE, b"caught up".to_vec()),
                Ok(Word::PictureWanted(asked)) => break asked,
                Ok(Word::Grown) | Err(_) => {}
            }
        };
        assert_eq!(asked, id(1));
        tape.picture(SIZE, format!("round {round}").into_bytes());
    }
    tape.output(&Bytes::from_static(b", the end"));
    thread.finish();
    let (path, older) = (reel::path(directory.path(), id(1)), reel::older_path(directory.path(), id(1)));
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2);
    assert!(fs::metadata(&older).unwrap().len() >= reel::SEGMENT);
    assert!(fs::metadata(&older).unwrap().len() < 2 * reel::SEGMENT);
    assert_eq!(replay(&path)[0], "round 1, the end");
    assert!(marks(&read(&older))[0].ends_with("the screen as it was"), "it begins with one");
}

#[test]
fn a_disk_that_refuses_stops_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let (recorder, thread, _heard) = recorder(&directory.path().join("missing"));
    let mut tape = Tape::new(recorder, id(1));
    tape.picture(SIZE, vec![]);
    for _ in 0..100 {
        tape.output(&Bytes::from_static(b"x"));
    }
    tape.end();
    thread.finish();
}

#[test]
fn switched_off_nothing_is_written_and_what_is_forgotten_goes() {
    let directory = tempfile::tempdir().unwrap();
    let (recorder, thread, _heard) = recorder(directory.path());
    let mut tape = Tape::new(recorder.clone(), id(1));
    let mut forgotten = Tape::new(recorder.clone(), id(2));
    tape.picture(SIZE, vec![]);
    forgotten.picture(SIZE, vec![]);
    tape.output(&Bytes::from_static(b"on"));
    recorder.switch(false);
    tape.output(&Bytes::from_static(b"off"));
    recorder.forget(id(2));
    recorder.switch(true);
    tape.picture(SIZE, b"on again".to_vec());
    tape.end();
    thread.finish();
    assert_eq!(output(&read(&reel::path(directory.path(), id(1)))), b"on\x18\x1bcon again");
    assert!(!reel::path(directory.path(), id(2)).exists());
}

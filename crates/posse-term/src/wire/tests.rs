use proptest::prelude::*;
use serde::de::DeserializeOwned;

use super::*;

fn decode<M: DeserializeOwned>(bytes: &[u8]) -> Result<Option<(M, usize)>, WireError> {
    super::decode(bytes, MAX_FRAME)
}

fn frame_of(message: &impl Serialize) -> Vec<u8> {
    let mut frame = Vec::new();
    encode(message, &mut frame);
    frame
}

fn round_trip<M: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(messages: &[M]) {
    let bytes: Vec<u8> = messages.iter().flat_map(frame_of).collect();
    let mut rest = &bytes[..];
    for message in messages {
        let (read, length) = decode::<M>(rest).unwrap().unwrap();
        for short in 0..length {
            assert_eq!(decode::<M>(&rest[..short]).map(|d| d.map(|_| ())), Ok(None), "part of a frame was decoded");
        }
        assert_eq!(&read, message);
        rest = &rest[length..];
    }
    assert!(rest.is_empty());
}

#[test]
fn messages_survive_the_wire() {
    let (requests, events) = samples();
    round_trip(&requests);
    round_trip(&events);
}

proptest! {
    #[test]
    fn garbage_is_refused_and_never_panics(mut bytes in proptest::collection::vec(any::<u8>(), 0..200), kind in 0u8..20) {
        let _ = decode::<StampedRequest>(&bytes);
        let _ = decode::<KeeperEvent>(&bytes);
        // Complete frames of a known kind, so that the fields are decoded too.
        let mut frame = (bytes.len() as u32 + 3).to_le_bytes().to_vec();
        frame.extend(VERSION.to_le_bytes());
        frame.push(kind);
        frame.append(&mut bytes);
        let _ = decode::<KeeperRequest>(&frame);
        let _ = decode::<KeeperEvent>(&frame);
    }
}

#[test]
fn bad_frames_are_refused_before_the_rest_arrives() {
    let too_long = WireError::TooLong { length: u32::MAX as usize, limit: MAX_FRAME };
    assert_eq!(decode::<StampedRequest>(&[0xff; 4]), Err(too_long));
    for length in [0, 1] {
        assert_eq!(decode::<StampedRequest>(&[length, 0, 0, 0]), Err(WireError::Malformed));
    }
    for version in [0, VERSION - 1, VERSION + 1, u16::MAX] {
        let frame = [&100u32.to_le_bytes()[..], &version.to_le_bytes()].concat();
        assert_eq!(decode::<StampedRequest>(&frame), Err(WireError::Version(version)));
    }
    let list = frame_of(&StampedRequest::from(KeeperRequest::List));
    let length = list.len() - 4;
    let trailing = [&(length as u32 + 1).to_le_bytes()[..], &list[4..], b"x"].concat();
    assert_eq!(decode::<StampedRequest>(&trailing), Err(WireError::Malformed));
    assert_eq!(
        super::decode::<StampedRequest>(&list, length - 1),
        Err(WireError::TooLong { length, limit: length - 1 })
    );
}

/// Announced lengths far beyond the frame must not be allocated.
#[test]
fn missing_announced_elements_are_refused() {
    let huge = [0xff, 0xff, 0xff, 0xff, 0x0f];
    let id = b"\x0800c0ffee";
    for fields in [[&[0, 2][..], id, &huge].concat(), [&[0, 11][..], &huge].concat()] {
        let length = (fields.len() as u32 + 2).to_le_bytes();
        let frame = [&length[..], &VERSION.to_le_bytes(), &fields].concat();
        assert_eq!(decode::<StampedRequest>(&frame), Err(WireError::Malformed));
    }
}

/// Returns one message of every kind, with every value of its enums.
fn samples() -> (Vec<StampedRequest>, Vec<KeeperEvent>) {
    let id = TerminalId::from_random(0x00c0_ffee);
    let writer = WriterId(7);
    let size = Size::clamped(40, 300);
    let program = ProgramSpec {
        arguments: vec![b"sh".to_vec(), b"-c".to_vec()],
        environment: vec![(b"TERM".to_vec(), b"xterm".to_vec())],
        directory: b"/tmp".to_vec(),
        size,
        ring: 1 << 20,
        label: b"{}".to_vec(),
    };
    let summary = TerminalSummary {
        id,
        pid: 300,
        size,
        output: (1, 70_000),
        checkpoint: Some(5),
        exit: None,
        ring: 1 << 20,
        label: b"{}".to_vec(),
    };
    let requests = [
        KeeperRequest::Hello { daemon: true },
        KeeperRequest::List,
        KeeperRequest::Spawn { id, program },
        KeeperRequest::Attach { id, from: 300 },
        KeeperRequest::Acknowledge { id, offset: u64::MAX },
        KeeperRequest::Input { id, writer, sequence: 2, bytes: b"yes\r".to_vec() },
        KeeperRequest::Resize { id, size },
        KeeperRequest::HangUp { id },
        KeeperRequest::End { id, grace_ms: 5000 },
        KeeperRequest::Forget { id },
        KeeperRequest::Checkpoint { id, offset: 1, blob: b"screen".to_vec() },
        KeeperRequest::StartDaemon { executable: b"/bin/posse".to_vec() },
        KeeperRequest::Rest,
    ];
    let mut requests: Vec<StampedRequest> = requests.map(StampedRequest::from).into();
    let stamp = Some(RequestStamp { token: 1, sent: NEVER_LATE });
    requests.push(StampedRequest { stamp, request: KeeperRequest::List });
    let mut events = vec![
        KeeperEvent::Hello,
        KeeperEvent::Listed { summaries: vec![summary] },
        KeeperEvent::Spawned { id, pid: 300 },
        KeeperEvent::Output { id, offset: 300, bytes: b"hello".to_vec() },
        KeeperEvent::Resized { id, offset: 300, size },
        KeeperEvent::Checkpoint { id, offset: 300, blob: b"screen".to_vec() },
        KeeperEvent::InputDone { id, writer, sequence: 2 },
        KeeperEvent::Ended { id, left: 1 },
        KeeperEvent::Problem { message: "é".into() },
        KeeperEvent::DaemonUp { pid: 300 },
        KeeperEvent::DaemonFailed { message: "é".into() },
        KeeperEvent::Resting,
        KeeperEvent::Taken { token: 1, late: true },
    ];
    let spawn_refusals = [
        SpawnRefusal::IdTaken,
        SpawnRefusal::DirectoryMissing,
        SpawnRefusal::ProgramMissing,
        SpawnRefusal::NotExecutable,
        SpawnRefusal::LimitReached,
        SpawnRefusal::Other,
    ];
    events.extend(spawn_refusals.map(|why| KeeperEvent::SpawnFailed { id, why, message: "no".into() }));
    let refusals = [InputRefusal::NotReading, InputRefusal::Full, InputRefusal::Untaken];
    events.extend(refusals.map(|why| KeeperEvent::InputRefused { id, writer, sequence: 2, why }));
    let exits = [Exit::Code(-1), Exit::Signal(9), Exit::Lost];
    events.extend(exits.map(|exit| KeeperEvent::Exited { id, exit, end: 300 }));
    (requests, events)
}

fn golden_lines<M: Serialize + std::fmt::Debug>(messages: &[M]) -> String {
    let line = |message: &M| {
        let bytes: String = frame_of(message).iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{bytes} {message:?}\n")
    };
    messages.iter().map(line).collect()
}

fn frames(golden: &str) -> impl Iterator<Item = &str> {
    golden.lines().filter_map(|line| line.split(' ').next())
}

/// A keeper of an older build uses the bytes in its golden file, so they must not change.
#[test]
fn encoding_matches_the_golden_bytes_of_its_version() {
    let (requests, events) = samples();
    let encoded = golden_lines(&requests) + &golden_lines(&events);
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden");
    let path = format!("{directory}/wire-v{VERSION}.txt");
    if std::env::var_os("POSSE_WRITE_GOLDEN").is_some() {
        std::fs::write(&path, &encoded).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        frames(&encoded).eq(frames(&golden)),
        "the encoding of protocol version {VERSION} is not the one in {path}.\n\
         Running keepers speak the bytes in that file. If you changed a message, raise `wire::VERSION`, delete the old\n\
         file, and write the new one by running this test with POSSE_WRITE_GOLDEN=1.\n\
         If you only added a sample, write the file again the same way and check that no old line changed.\n\n\
         encoded now:\n{encoded}"
    );
}

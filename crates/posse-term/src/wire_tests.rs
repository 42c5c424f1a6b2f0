use proptest::prelude::*;

use super::*;

fn id() -> impl Strategy<Value = TerminalId> {
    any::<u32>().prop_map(TerminalId::from_random)
}

fn blob() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(any::<u8>(), 0..40)
}

fn size() -> impl Strategy<Value = Size> {
    (1..=1000u16, 2..=1000u16).prop_map(|(rows, cols)| Size::clamped(rows, cols))
}

fn stream() -> impl Strategy<Value = OutputStream> {
    prop_oneof![Just(OutputStream::Main), Just(OutputStream::Error)]
}

fn wiring() -> impl Strategy<Value = Wiring> {
    prop_oneof![size().prop_map(Wiring::Terminal), Just(Wiring::Pipes)]
}

fn exit() -> impl Strategy<Value = Exit> {
    prop_oneof![any::<i32>().prop_map(Exit::Code), any::<i32>().prop_map(Exit::Signal), Just(Exit::Lost)]
}

fn program() -> impl Strategy<Value = ProgramSpec> {
    let several = |strategy| proptest::collection::vec(strategy, 0..4);
    (several(blob()), proptest::collection::vec((blob(), blob()), 0..4), blob(), wiring(), any::<u32>(), blob())
        .prop_map(|(arguments, environment, directory, wiring, ring, label)| ProgramSpec {
            arguments,
            environment,
            directory,
            wiring,
            ring,
            label,
        })
}

fn request() -> impl Strategy<Value = KeeperRequest> {
    prop_oneof![
        (any::<u16>(), any::<bool>()).prop_map(|(version, daemon)| KeeperRequest::Hello { version, daemon }),
        Just(KeeperRequest::List),
        (id(), program()).prop_map(|(id, program)| KeeperRequest::Spawn { id, program }),
        (id(), stream(), any::<u64>()).prop_map(|(id, stream, from)| KeeperRequest::Attach { id, stream, from }),
        (id(), stream(), any::<u64>()).prop_map(|(id, stream, offset)| KeeperRequest::Acknowledge {
            id,
            stream,
            offset
        }),
        (id(), any::<u64>(), any::<u64>(), blob()).prop_map(|(id, writer, sequence, bytes)| KeeperRequest::Input {
            id,
            writer: WriterId(writer),
            sequence,
            bytes
        }),
        (id(), size()).prop_map(|(id, size)| KeeperRequest::Resize { id, size }),
        id().prop_map(|id| KeeperRequest::HangUp { id }),
        (id(), any::<u32>()).prop_map(|(id, grace_ms)| KeeperRequest::End { id, grace_ms }),
        id().prop_map(|id| KeeperRequest::Forget { id }),
        (id(), any::<u64>(), blob()).prop_map(|(id, offset, blob)| KeeperRequest::Checkpoint { id, offset, blob }),
        blob().prop_map(|executable| KeeperRequest::StartDaemon { executable }),
        Just(KeeperRequest::Rest),
        (any::<u64>(), any::<u64>()).prop_map(|(token, sent)| KeeperRequest::Stamp { token, sent }),
    ]
}

fn summary() -> impl Strategy<Value = TerminalSummary> {
    let range = || (any::<u64>(), any::<u64>());
    let exit = proptest::option::of(exit());
    (id(), any::<u32>(), wiring(), range(), range(), proptest::option::of(any::<u64>()), exit, any::<u32>(), blob())
        .prop_map(|(id, pid, wiring, main, error, checkpoint, exit, ring, label)| TerminalSummary {
            id,
            pid,
            wiring,
            main,
            error,
            checkpoint,
            exit,
            ring,
            label,
        })
}

fn event() -> impl Strategy<Value = KeeperEvent> {
    let spawn_refusal = prop_oneof![
        Just(SpawnRefusal::IdTaken),
        Just(SpawnRefusal::DirectoryMissing),
        Just(SpawnRefusal::ProgramMissing),
        Just(SpawnRefusal::NotExecutable),
        Just(SpawnRefusal::LimitReached),
        Just(SpawnRefusal::Other),
    ];
    let input_refusal = prop_oneof![
        Just(InputRefusal::NoSuchTerminal),
        Just(InputRefusal::NotReading),
        Just(InputRefusal::Full),
        Just(InputRefusal::Untaken)
    ];
    prop_oneof![
        (any::<u16>(), any::<u32>(), blob()).prop_map(|(version, pid, build)| KeeperEvent::Hello {
            version,
            pid,
            build
        }),
        proptest::collection::vec(summary(), 0..4).prop_map(|summaries| KeeperEvent::Listed { summaries }),
        (id(), any::<u32>()).prop_map(|(id, pid)| KeeperEvent::Spawned { id, pid }),
        (id(), spawn_refusal, blob()).prop_map(|(id, why, message)| KeeperEvent::SpawnFailed { id, why, message }),
        (id(), stream(), any::<u64>(), blob()).prop_map(|(id, stream, offset, bytes)| KeeperEvent::Output {
            id,
            stream,
            offset,
            bytes
        }),
        (id(), any::<u64>(), size()).prop_map(|(id, offset, size)| KeeperEvent::Resized { id, offset, size }),
        (id(), any::<u64>(), blob()).prop_map(|(id, offset, blob)| KeeperEvent::Checkpoint { id, offset, blob }),
        (id(), any::<u64>(), any::<u64>()).prop_map(|(id, writer, sequence)| KeeperEvent::InputDone {
            id,
            writer: WriterId(writer),
            sequence
        }),
        (id(), any::<u64>(), any::<u64>(), input_refusal).prop_map(|(id, writer, sequence, why)| {
            KeeperEvent::InputRefused { id, writer: WriterId(writer), sequence, why }
        }),
        (id(), exit(), any::<u64>(), any::<u64>()).prop_map(|(id, exit, main, error)| KeeperEvent::Exited {
            id,
            exit,
            main,
            error
        }),
        (id(), any::<u32>()).prop_map(|(id, left)| KeeperEvent::Ended { id, left }),
        id().prop_map(|id| KeeperEvent::Forgotten { id }),
        blob().prop_map(|message| KeeperEvent::Problem { message }),
        any::<u32>().prop_map(|pid| KeeperEvent::DaemonUp { pid }),
        blob().prop_map(|message| KeeperEvent::DaemonFailed { message }),
        Just(KeeperEvent::Resting),
        (any::<u64>(), any::<bool>()).prop_map(|(token, late)| KeeperEvent::Taken { token, late }),
    ]
}

fn round_trip<M: Message + PartialEq + std::fmt::Debug>(messages: &[M]) {
    let mut bytes = Vec::new();
    for message in messages {
        encode(message, &mut bytes);
    }
    let mut rest = &bytes[..];
    for message in messages {
        let (read, length) = decode::<M>(rest).unwrap().unwrap();
        for short in 0..length {
            assert_eq!(decode::<M>(&rest[..short]).map(|d| d.map(|_| ())), Ok(None), "a part was taken for a whole");
        }
        assert_eq!(&read, message);
        rest = &rest[length..];
    }
    assert!(rest.is_empty());
}

proptest! {
    #[test]
    fn requests_survive_the_wire(messages in proptest::collection::vec(request(), 0..5)) {
        round_trip(&messages);
    }

    #[test]
    fn events_survive_the_wire(messages in proptest::collection::vec(event(), 0..5)) {
        round_trip(&messages);
    }

    #[test]
    fn garbage_is_refused_and_never_panics(mut bytes in proptest::collection::vec(any::<u8>(), 0..200), kind in 0u8..20) {
        let _ = decode::<KeeperRequest>(&bytes);
        let _ = decode::<KeeperEvent>(&bytes);
        // The same as a complete frame of a known kind, so that the field readers see it too.
        let mut frame = (bytes.len() as u32 + 1).to_le_bytes().to_vec();
        frame.push(kind);
        frame.append(&mut bytes);
        let _ = decode::<KeeperRequest>(&frame);
        let _ = decode::<KeeperEvent>(&frame);
    }

    #[test]
    fn a_damaged_frame_is_refused_or_read_as_another(message in request(), at in any::<prop::sample::Index>(), flip in 1u8..) {
        let mut bytes = Vec::new();
        encode(&message, &mut bytes);
        let at = at.index(bytes.len());
        bytes[at] ^= flip;
        let _ = decode::<KeeperRequest>(&bytes);
    }

    #[test]
    fn output_from_a_ring_is_the_same_frame(id in id(), stream in stream(), offset in any::<u64>(), a in blob(), b in blob()) {
        let (mut from_halves, mut whole) = (Vec::new(), Vec::new());
        encode_output(id, stream, offset, (&a, &b), &mut from_halves);
        encode(&KeeperEvent::Output { id, stream, offset, bytes: [a, b].concat() }, &mut whole);
        prop_assert_eq!(from_halves, whole);
    }
}

#[test]
fn an_announced_giant_is_refused_before_it_is_awaited() {
    assert_eq!(decode::<KeeperRequest>(&[0xff; 4]), Err(WireError::TooLong(u32::MAX as usize)));
    assert_eq!(decode::<KeeperRequest>(&[0, 0, 0, 0]), Err(WireError::Malformed(0)));
    assert_eq!(decode::<KeeperRequest>(&[1, 0, 0, 0, 99]), Err(WireError::UnknownKind(99)));
}

/// The bytes of version 1. If this test fails, an old keeper can no longer be talked to: add a frame
/// instead of changing one.
#[test]
fn the_frozen_bytes_of_version_one() {
    let id = TerminalId::from_random(0x00c0_ffee);
    let mut hello = Vec::new();
    encode(&KeeperRequest::Hello { version: 1, daemon: true }, &mut hello);
    assert_eq!(hello, [4, 0, 0, 0, 1, 1, 0, 1]);
    let mut input = Vec::new();
    encode(&KeeperRequest::Input { id, writer: WriterId(7), sequence: 2, bytes: b"y".to_vec() }, &mut input);
    assert_eq!(input, b"\x1e\0\0\0\x0600c0ffee\x07\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\x01\0\0\0y");
    let mut exited = Vec::new();
    encode(&KeeperEvent::Exited { id, exit: Exit::Signal(9), main: 1, error: 0 }, &mut exited);
    assert_eq!(exited, b"\x1e\0\0\0\x0a00c0ffee\x02\x09\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
}

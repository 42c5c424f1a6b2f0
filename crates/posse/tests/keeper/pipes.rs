//! Programs without a terminal: two outputs and no input.

use posse_core::status::Exit;
use posse_term::wire::{InputRefusal, KeeperRequest, OutputStream};

use crate::keeper::{Keeper, new_id};

#[test]
fn output_and_errors_are_two_streams_with_offsets_of_their_own() {
    let keeper = Keeper::start();
    let mut peer = keeper.peer();
    let id = new_id();
    // `cat` comes back at once because there is nothing to read.
    peer.follow(id, keeper.shell_on_pipes(id, "echo one; echo two >&2; cat; echo three; echo four and >&2; exit 5"));
    assert_eq!(peer.until_exit(id), Exit::Code(5));
    let heard = peer.heard(id);
    assert_eq!(heard.bytes(OutputStream::Main), b"one\nthree\n");
    assert_eq!(heard.bytes(OutputStream::Error), b"two\nfour and\n");
    assert_eq!(heard.exits, [(Exit::Code(5), 10, 13)]);

    let mut late = keeper.peer();
    let attach = |stream, from| KeeperRequest::Attach { id, stream, from };
    late.send_all(&[attach(OutputStream::Main, 4), attach(OutputStream::Error, 9)]);
    late.until_exit(id);
    assert_eq!(late.heard(id).main, [(4, b"three\n".to_vec())]);
    assert_eq!(late.heard(id).error, [(9, b"and\n".to_vec())]);
}

#[test]
fn the_end_is_told_after_all_that_both_streams_carried() {
    let keeper = Keeper::start();
    let mut daemon = keeper.daemon();
    let id = new_id();
    daemon.follow(id, keeper.shell_on_pipes(id, "seq 1 300000 & seq 300001 600000 >&2; wait"));
    assert_eq!(daemon.until_exit(id), Exit::Code(0));
    let lines = |from: u32, to: u32| (from..=to).map(|n| format!("{n}\n")).collect::<String>().into_bytes();
    let heard = daemon.heard(id);
    assert!(heard.bytes(OutputStream::Main) == lines(1, 300_000), "the output is not what was printed");
    assert!(heard.bytes(OutputStream::Error) == lines(300_001, 600_000), "the errors are not what was printed");
    assert_eq!(heard.exits, [(Exit::Code(0), heard.end(OutputStream::Main), heard.end(OutputStream::Error))]);
}

#[test]
fn nothing_can_be_typed_into_a_program_on_pipes() {
    let keeper = Keeper::start();
    let mut peer = keeper.peer();
    let id = new_id();
    peer.spawn(id, keeper.program(id, &["sleep", "1000"]));
    peer.input(id, 1, 1, b"x");
    assert_eq!(peer.receipt(id, 1, 1), Ok(()), "into one on a terminal it can");
    let id = new_id();
    peer.spawn(id, keeper.shell_on_pipes(id, "exec sleep 1000"));
    peer.input(id, 1, 1, b"x");
    assert_eq!(peer.receipt(id, 1, 1), Err(InputRefusal::NotReading));
}

#[test]
fn a_program_that_closes_its_outputs_is_still_running() {
    let keeper = Keeper::start();
    let mut peer = keeper.peer();
    let id = new_id();
    let script = "echo bye; exec >&- 2>&-; while [ ! -e go ]; do sleep 0.01; done; exit 6";
    peer.follow(id, keeper.shell_on_pipes(id, script));
    peer.until_printed(id, "bye");
    assert_eq!(peer.summary(id).exit, None);
    std::fs::write(keeper.work().join("go"), "").unwrap();
    assert_eq!(peer.until_exit(id), Exit::Code(6));
}

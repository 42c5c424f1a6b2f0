//! Starting programs, and the sizes of their terminals, reported at the offset where they took effect.

use std::fs;

use posse_core::screen::Size;
use posse_core::status::Exit;
use posse_term::wire::{KeeperEvent, KeeperRequest, ProgramSpec, SpawnRefusal};

use crate::keeper::{Keeper, Stat, new_id, until};

#[test]
fn what_cannot_be_started_is_refused_with_the_reason() {
    let (keeper, mut peer) = Keeper::with_peer();
    let taken = new_id();
    peer.spawn(taken, keeper.program(taken, &["sleep", "1000"]));
    fs::write(keeper.work().join("plain.txt"), "echo no").unwrap();

    let sleep = |id| keeper.program(id, &["sleep", "1000"]);
    let elsewhere = |id, directory: &str| ProgramSpec { directory: directory.as_bytes().to_vec(), ..sleep(id) };
    let id = new_id();
    let work = keeper.work().display().to_string();
    let cases = [
        (taken, sleep(taken), SpawnRefusal::IdTaken, "exists already"),
        (id, elsewhere(id, "/nowhere/at/all"), SpawnRefusal::DirectoryMissing, "/nowhere/at/all"),
        (id, elsewhere(id, &format!("{work}/plain.txt")), SpawnRefusal::DirectoryMissing, "plain.txt"),
        (id, keeper.program(id, &["no-such-program"]), SpawnRefusal::ProgramMissing, "no-such-program"),
        (id, keeper.program(id, &["./missing"]), SpawnRefusal::ProgramMissing, "./missing"),
        (id, keeper.program::<&str>(id, &[]), SpawnRefusal::ProgramMissing, "no program"),
        (id, keeper.program(id, &["./plain.txt"]), SpawnRefusal::NotExecutable, "plain.txt"),
        (id, keeper.program(id, &["sleep", "nul\0in it"]), SpawnRefusal::Other, "nul"),
    ];
    for (id, program, expected, words) in cases {
        let shown = format!("{:?} in {:?}", program.arguments, program.directory);
        peer.send(&KeeperRequest::Spawn { id, program });
        match peer.next() {
            KeeperEvent::SpawnFailed { id: of, why, message } => {
                assert_eq!((of, why), (id, expected), "{shown}: {message}");
                assert!(message.contains(words), "{shown}: {message}");
            }
            other => panic!("{shown}: {other:?}"),
        }
    }
    assert_eq!(peer.list().len(), 1, "none of them is there");
}

#[test]
fn the_environment_is_exactly_what_was_sent_and_its_path_finds_the_program() {
    let (keeper, mut peer) = Keeper::with_peer();
    let id = new_id();
    let bin = keeper.work().join("bin");
    fs::create_dir(&bin).unwrap();
    // A link, as writing a program while other threads fork makes "text file busy" of it.
    let path = std::env::var_os("PATH").unwrap();
    let env = std::env::split_paths(&path).map(|directory| directory.join("env")).find(|env| env.exists());
    std::os::unix::fs::symlink(env.unwrap(), bin.join("only-here")).unwrap();
    let mut program = keeper.program(id, &["only-here"]);
    program.environment[0].1 = bin.to_string_lossy().into_owned().into_bytes();
    program.environment.push((b"EMPTY".to_vec(), Vec::new()));
    program.environment.push((b"SPACED".to_vec(), b" a = b ".to_vec()));
    let mut sent: Vec<String> = (program.environment.iter())
        .map(|(name, value)| format!("{}={}", String::from_utf8_lossy(name), String::from_utf8_lossy(value)))
        .collect();
    peer.follow(id, program);
    assert_eq!(peer.until_exit(id), Exit::Code(0));
    let mut got: Vec<String> = peer.heard(id).text().lines().map(str::to_owned).collect();
    sent.sort();
    got.sort();
    assert_eq!(got, sent);
}

#[test]
fn a_program_leads_its_own_session_on_a_terminal_of_the_size_asked_for() {
    let (keeper, mut peer) = Keeper::with_peer();
    let id = new_id();
    let program = keeper.program(id, &["sleep", "1000"]);
    let (sleeper, directory) = (peer.spawn(id, program.clone()), program.directory);
    let stat = Stat::of(sleeper).unwrap();
    assert_eq!(stat.parent, keeper.pid());
    assert_eq!((stat.session, stat.group, stat.foreground), (sleeper, sleeper, sleeper as i32));
    assert_ne!(stat.terminal, 0, "it has a controlling terminal");
    let proc = |what: &str| format!("/proc/{sleeper}/{what}");
    assert_eq!(fs::read(proc("cmdline")).unwrap(), b"sleep\x001000\0", "started without a shell in between");
    assert_eq!(fs::read_link(proc("cwd")).unwrap().as_os_str().as_encoded_bytes(), directory);
    // Descriptors that this test itself inherited are not the keeper's fault.
    let inherited = descriptors("/proc/self/fd");
    let open = || -> Vec<_> {
        descriptors(&proc("fd")).into_iter().filter(|one| one.0 < 3 || !inherited.contains(one)).collect()
    };
    let terminal = open()[0].1.clone();
    assert!(terminal.starts_with("/dev/pts/"), "{terminal}");
    // A program that has just started is still opening and closing its libraries.
    let expected = [0, 1, 2].map(|number| (number, terminal.clone()));
    until("it has its terminal, and nothing of the keeper's", || open() == expected);

    let id = new_id();
    let size = Size::clamped(33, 101);
    peer.follow(id, ProgramSpec { size, ..keeper.program(id, &["stty", "size"]) });
    peer.until_exit(id);
    assert_eq!(peer.heard(id).text(), "33 101\r\n");
    assert_eq!(peer.heard(id).sizes, [(0, size)]);
}

/// Returns open descriptors, by number.
fn descriptors(directory: &str) -> Vec<(u32, String)> {
    let mut open: Vec<_> = fs::read_dir(directory)
        .unwrap()
        .flatten()
        .filter_map(|entry| {
            let target = fs::read_link(entry.path()).ok()?.display().to_string();
            Some((entry.file_name().to_str()?.parse().ok()?, target))
        })
        .collect();
    open.sort();
    open
}

/// Of signals that were ignored when the keeper was started (a script's `&` ignores INT and QUIT, `nohup` HUP) a
/// program would inherit the same, and no Ctrl-C would reach it.
#[test]
fn what_the_keepers_starter_ignored_its_programs_do_not() {
    let keeper = Keeper::start_after("trap '' INT QUIT HUP PIPE");
    let mut peer = keeper.peer();
    let id = new_id();
    let program = keeper.program(id, &["grep", "-E", "^Sig(Ign|Blk)", "/proc/self/status"]);
    peer.follow(id, program);
    peer.until_exit(id);
    let text = peer.heard(id).text();
    let masks: Vec<u64> = text
        .lines()
        .map(|line| u64::from_str_radix(line.split_ascii_whitespace().nth(1).unwrap(), 16).unwrap())
        .collect();
    let keyboards_and_pipes = [1, 2, 3, 13].iter().fold(0u64, |bits, signal| bits | 1 << (signal - 1));
    assert_eq!(masks.iter().map(|mask| mask & keyboards_and_pipes).collect::<Vec<_>>(), [0, 0], "{text}");
}

#[test]
fn a_new_size_reaches_the_program_and_is_replayed_at_its_place() {
    // `wait` comes back for every signal that is trapped.
    let script = "trap 'stty size' WINCH; echo ready; sleep 1000 & while :; do wait; done";
    let (keeper, mut peer, id) = Keeper::running(script);
    peer.until_printed(id, "ready\r\n");
    let mut expected = vec![(0, Size::clamped(24, 80))];
    for (rows, cols) in [(30, 100), (10, 20), (50, 132)] {
        let size = Size::clamped(rows, cols);
        expected.push((peer.heard(id).end(), size));
        peer.send(&KeeperRequest::Resize { id, size });
        peer.until_printed(id, &format!("{rows} {cols}\r\n"));
    }
    assert_eq!(peer.heard(id).sizes, expected);
    assert_eq!(peer.summary(id).size, Size::clamped(50, 132));

    // A later peer gets the same events, in the same order.
    let mut late = keeper.peer();
    late.attach(id, 0);
    let end = peer.heard(id).end();
    let mut order = Vec::new();
    while late.heard(id).end() < end {
        match late.next() {
            KeeperEvent::Resized { offset, .. } => order.push((offset, "size")),
            KeeperEvent::Output { offset, .. } => order.push((offset, "output")),
            _ => {}
        }
    }
    assert_eq!(late.heard(id).sizes, expected);
    assert_eq!(late.heard(id).text(), peer.heard(id).text());
    let pairs: Vec<_> = expected.iter().flat_map(|(offset, _)| [(*offset, "size"), (*offset, "output")]).collect();
    assert_eq!(order, pairs);
    // And from the middle: the size that held there, and those after it.
    let middle = expected[2].0 + 3;
    late.attach(id, middle);
    late.until_printed(id, "50 132\r\n");
    assert_eq!(late.heard(id).sizes, [(middle, expected[2].1), expected[3]]);
}

#[test]
fn of_several_sizes_without_output_between_them_the_last_one_counts() {
    let (keeper, mut peer) = Keeper::with_peer();
    let id = new_id();
    peer.spawn(id, keeper.shell(id, "while [ ! -e go ]; do sleep 0.01; done; stty size"));
    let sizes = (1..=200).map(|n| Size::clamped(n, 2 * n));
    peer.send_all(&sizes.map(|size| KeeperRequest::Resize { id, size }).collect::<Vec<_>>());
    peer.attach(id, 0);
    // The keeper answers in order: it has taken all sizes when it has listed.
    peer.summary(id);
    std::fs::write(keeper.work().join("go"), "").unwrap();
    assert_eq!(peer.until_exit(id), Exit::Code(0));
    assert_eq!(peer.heard(id).text(), "200 400\r\n");
    assert_eq!(peer.heard(id).sizes, [(0, Size::clamped(200, 400))]);
}

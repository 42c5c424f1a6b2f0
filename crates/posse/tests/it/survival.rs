//! The daemon may die at any moment. Nothing is lost, and nothing happens twice.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use posse_api::{Input, StreamMessage, Terminal};
use posse_core::ids::TerminalId;
use posse_core::screen::{Screen, Size};
use posse_term::emulator::{Emulator, HistoryLimit};
use posse_testkit::PATIENCE;
use posse_testkit::files::when;
use posse_testkit::stream::{Item, Stream};
use posse_testkit::{TestEnv, http};

use crate::kills::Random;
use crate::{env, shell_until, text_when};

#[test]
fn open_files_of_the_shell_are_not_inherited_by_keeper_and_daemon() {
    let env = env();
    let posse = env.posse_path().display();
    let line = format!("exec 9>held; '{posse}' launch -- sleep 1000");
    assert!(env.shell(&line).status().unwrap().success());
    let held = env.work().join("held");
    for pid in [env.keeper_pid().unwrap(), env.daemon_pid()] {
        let open = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
        let inherited = open.flatten().any(|file| std::fs::read_link(file.path()).is_ok_and(|path| path == held));
        assert!(!inherited, "process {pid} holds {}", held.display());
    }
}

/// Fewer inputs and fewer bytes of output prove nothing.
const LEAST_INPUTS: u64 = 200;
const LEAST_OUTPUT: u64 = 10_000;

/// Types the numbers from 1 on, one at a time, until `stop` is set and there are enough of them. Sends each number until the
/// daemon has confirmed it.
fn type_numbers(client: &http::Client, id: TerminalId, stop: &AtomicBool) -> u64 {
    let mut number = 0;
    while number < LEAST_INPUTS || !stop.load(Ordering::Relaxed) {
        number += 1;
        let message = format!("{number}\n");
        let input = Input {
            message,
            enter: Some(false),
            raw: Some(true),
            writer: Some(77),
            sequence: Some(number),
            ..Input::default()
        };
        // After an error the result is unknown. Sending the input again is safe: that is the point.
        while !client.post(&format!("/terminals/{id}/input"), &input).is_ok_and(|answer| answer.status == 200) {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    number
}

/// The position of a follower.
#[derive(Default)]
struct Progress {
    connections: AtomicU64,
    bytes: AtomicU64,
}

#[track_caller]
fn until_more_than(counter: &AtomicU64, few: u64) {
    when("progress", || (counter.load(Ordering::Relaxed) > few).then_some(()));
}

/// Follows a terminal's output, going on where it was whenever the connection breaks, up to the end of the program.
fn follow(client: &http::Client, id: TerminalId, progress: &Progress) -> Vec<u8> {
    let mut all = Vec::new();
    loop {
        let Ok(mut stream) = Stream::open(client, id, Some(all.len() as u64), 1) else {
            // The daemon is down for a few milliseconds, without an event to wait for.
            std::thread::sleep(Duration::from_millis(1));
            continue;
        };
        loop {
            match stream.next_item() {
                Ok(Item::Output { offset, bytes }) => {
                    assert_eq!(offset, all.len() as u64, "output is missing or repeated");
                    all.extend_from_slice(&bytes);
                    progress.bytes.store(all.len() as u64, Ordering::Relaxed);
                }
                Ok(Item::Word(StreamMessage::Start { continued, offset, .. })) => {
                    assert!(continued, "the output could not be continued from {}, only from {offset}", all.len());
                    progress.connections.fetch_add(1, Ordering::Relaxed);
                }
                Ok(Item::Word(StreamMessage::Exited { .. })) => return all,
                Ok(Item::Word(_)) => {}
                Err(_) => break,
            }
        }
    }
}

#[test]
fn forty_kills_in_the_middle_of_input_and_output() {
    kills_in_the_middle_of_input_and_output(40);
}

#[test]
#[ignore = "takes minutes: ./test --full"]
fn two_hundred_kills_in_the_middle_of_input_and_output() {
    kills_in_the_middle_of_input_and_output(200);
}

fn kills_in_the_middle_of_input_and_output(kills: u32) {
    let env = env();
    let received = env.work().join("received");
    let reader = env.launch(&["sh", "-c", "stty raw -echo; exec cat > received"]);
    // As fast as a shell loop runs, with pauses; ends when a file appears.
    let script = "i=0; while [ ! -e enough ]; do i=$((i+1)); echo \"line $i\"; [ $((i % 40)) = 0 ] && sleep 0.01; done; echo END";
    let printer = env.launch(&["sh", "-c", script]);
    let pids = |env: &TestEnv| -> Vec<(TerminalId, Option<u32>)> {
        let terminals: Vec<Terminal> = env.http().get("/terminals").unwrap();
        terminals.into_iter().map(|t| (t.id, t.pid)).collect()
    };
    let before = pids(&env);

    let (stop, progress) = (Arc::new(AtomicBool::new(false)), Arc::new(Progress::default()));
    let typist = {
        let (client, stop) = (env.http(), stop.clone());
        std::thread::spawn(move || type_numbers(&client, reader, &stop))
    };
    let follower = {
        let (client, progress) = (env.http(), progress.clone());
        std::thread::spawn(move || follow(&client, printer, &progress))
    };
    let mut random = Random::new(1);
    let mut connections = 0;
    for kill in 0..kills {
        // Every fourth is killed while it is still finding its feet, the others somewhere in the next stretch of output.
        if !kill.is_multiple_of(4) {
            until_more_than(&progress.connections, connections);
            let seen = progress.bytes.load(Ordering::Relaxed);
            until_more_than(&progress.bytes, seen + random.below(1500));
        }
        connections = progress.connections.load(Ordering::Relaxed);
        env.kill_daemon();
        env.run(["serve"]).ok();
    }
    assert_eq!(pids(&env), before, "the same terminals, the same programs");
    stop.store(true, Ordering::Relaxed);
    let typed = typist.join().unwrap();
    until_more_than(&progress.bytes, LEAST_OUTPUT);
    std::fs::write(env.work().join("enough"), "").unwrap();
    let output = follower.join().unwrap();

    env.run(["wait", printer.as_str(), "--until", "exited", "--timeout", "300s"]).ok();
    let text = String::from_utf8(output.clone()).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.last(), Some(&"END"));
    for (number, line) in (1..).zip(&lines[..lines.len() - 1]) {
        assert_eq!(*line, format!("line {number}"));
    }
    let numbers = std::fs::read_to_string(&received).unwrap();
    let expected: String = (1..=typed).map(|number| format!("{number}\n")).collect();
    assert!(numbers == expected, "typed 1 to {typed}; received {} lines", numbers.lines().count());

    // The screen after 200 daemons is the screen one would have drawn.
    let mut reference = Emulator::new(Size::clamped(24, 80), HistoryLimit::default());
    reference.feed(&output);
    let screen: Screen = env.http().get(&format!("/terminals/{printer}/screen")).unwrap();
    assert_eq!(screen.rows, reference.screen().rows);
    let full = env.run(["output", printer.as_str()]).ok();
    let kept: String =
        reference.history().map(|row| format!("{row}\n")).collect::<String>() + &reference.screen().text();
    assert_eq!(full, kept, "what scrolled off is there as well");
    println!("{kills} kills, {typed} inputs, {} lines of output", lines.len());
}

#[test]
fn a_full_screen_program_looks_the_same_after_a_crash() {
    let env = env();
    // Main screen, alternate screen with colours, a scroll region, a title, a hidden cursor; then it waits.
    let script = r"seq 1 50; printf '\033[?1049h\033[2J\033[3;10r\033[5;7Hhello \033[1;31mred\033[0m\033]2;deep\007\033[?25l'; read x; printf '\033[?1049l\033[?25hback\n'; exec sleep 1000";
    let id = shell_until(&env, script, "hello red");
    let screen = |env: &TestEnv| -> Screen { env.http().get(&format!("/terminals/{id}/screen")).unwrap() };
    let before = screen(&env);
    assert!(before.alternate && before.cursor.is_none() && before.title == "deep");
    env.kill_daemon();
    env.run(["serve"]).ok();
    assert_eq!(screen(&env), before);
    env.run(["send", id.as_str(), ""]).ok();
    let text = text_when(&env, id, |text| text.contains("back"));
    assert!(
        text.starts_with("1\n2\n3\n") && text.contains("\n50\n"),
        "the main screen came back with all of it: {text}"
    );
}

#[test]
fn more_output_than_the_ring_holds_survives_on_checkpoints() {
    let env = env();
    let id = shell_until(&env, "seq 1 600000; echo END; exec sleep 1000", "END");
    let before = env.run(["output", id.as_str()]).ok();
    env.kill_daemon();
    env.run(["serve"]).ok();
    let after = env.run(["output", id.as_str()]).ok();
    assert_eq!(after, before);
    assert!(before.trim_end().ends_with("599999\n600000\nEND"), "{}", &before[before.len() - 100..]);
}

#[test]
fn terminals_go_on_when_the_daemon_is_stopped() {
    let env = env();
    let id = shell_until(&env, "echo one; read x; echo two; exec sleep 1000", "one");
    let stopped = env.run(["stop"]).ok();
    assert!(stopped.contains(id.as_str()) && stopped.contains("go on"), "{stopped}");
    assert!(env.http().connect().is_err(), "no daemon answers");
    assert!(env.keeper_pid().is_some());
    env.run(["send", id.as_str(), "x"]).ok();
    text_when(&env, id, |text| text.contains("two"));
    env.run(["stop", "--all"]).ok();
    assert!(env.processes().is_empty(), "{:?}", env.processes());
    assert!(!env.paths().runtime.exists());
}

/// T89.
#[test]
fn two_daemons_do_not_share_a_home() {
    let env = env();
    env.launch(&["sleep", "1000"]);
    let first = env.daemon_pid();
    env.run(["serve", "--foreground"]).ends(6).complains(&[&format!("process {first}")]);
    assert_eq!(env.daemon_pid(), first, "undisturbed");
}

#[test]
fn many_who_start_it_at_once_get_the_same_daemon() {
    let env = env();
    let started: Vec<_> = std::thread::scope(|scope| {
        let starts: Vec<_> =
            (0..8).map(|_| scope.spawn(|| env.run(["serve", "--json"]).json()["pid"].clone())).collect();
        starts.into_iter().map(|start| start.join().unwrap()).collect()
    });
    assert!(started.iter().all(|pid| pid == &started[0]), "{started:?}");
}

/// A program exits, and the daemon dies before it has recorded that. The next daemon still knows the exit status, from
/// the keeper.
#[test]
fn an_end_that_is_not_written_down_yet_is_not_lost() {
    let env = env();
    let gate = env.work().join("gate");
    let owner = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, &gate, rustix::fs::FileType::Fifo, owner, 0).unwrap();
    let id = shell_until(&env, "echo ready; read line < gate; echo last words; exit 7", "ready");
    let mut stream = Stream::open(&env.http(), id, None, 1).unwrap();
    // The daemon waits while another process writes.
    let database = rusqlite::Connection::open(env.paths().database()).unwrap();
    database.execute_batch("BEGIN IMMEDIATE").unwrap();
    std::fs::write(&gate, "go\n").unwrap();
    while !matches!(stream.next_item().unwrap(), Item::Word(StreamMessage::Exited { .. })) {}
    while env.http().get::<Terminal>(&format!("/terminals/{id}")).unwrap().exit.is_none() {}
    env.kill_daemon();
    database.execute_batch("ROLLBACK").unwrap();
    drop(database);
    env.run(["wait", id.as_str(), "--until", "exited", "--timeout", "300s"]).ok();
    let terminal: Terminal = env.http().get(&format!("/terminals/{id}")).unwrap();
    assert_eq!(terminal.exit, Some(posse_core::status::Exit::Code(7)));
    let output: posse_api::Output = env.http().get(&format!("/terminals/{id}/output?mode=full")).unwrap();
    assert!(output.output.contains("last words"), "{}", output.output);
}

/// A program with endless output is ended midway. Followers see the end, though it is behind the output.
#[test]
fn whoever_watches_a_flood_hears_of_its_end() {
    for _ in 0..10 {
        let env = env();
        let id = shell_until(&env, "while :; do echo a flood of words; done", "flood");
        let mut stream = Stream::open(&env.http(), id, None, 1).unwrap();
        stream.set_timeout(PATIENCE).unwrap();
        env.run(["kill", id.as_str()]).ok();
        loop {
            match stream.next_item() {
                Ok(Item::Word(StreamMessage::Exited { .. })) => break,
                Ok(_) => {}
                // One that is too slow is let go.
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionAborted => break,
                Err(error) => panic!("it hears nothing: {error}"),
            }
        }
        when("nothing is left of it", || (!env.paths().screens().join(id.as_str()).exists()).then_some(()));
    }
}

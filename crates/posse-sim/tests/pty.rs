//! The scripted agent as a process in a real terminal: raw mode, resizes, signals, files, the log, and exits. Its
//! decisions are tested without a process.

// Clippy allows this in tests but not in their helpers.
#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use pty_process::Size;
use pty_process::blocking::{Command, Pty};

/// Far more than anything here takes; only a failing test waits so long.
const PATIENCE: Duration = Duration::from_secs(300);

struct Terminal {
    pty: std::sync::Arc<Pty>,
    child: Child,
    output: Receiver<Vec<u8>>,
    screen: vt100::Parser,
    seen: Vec<u8>,
    folder: PathBuf,
}

impl Terminal {
    fn start(test: &str, scenario: &str) -> Terminal {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{test}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("scenario.toml");
        let log = folder.join("log");
        std::fs::write(&file, format!("log = '{}'\n{scenario}", log.display())).unwrap();

        let (pty, pts) = pty_process::blocking::open().unwrap();
        pty.resize(Size::new(24, 80)).unwrap();
        let command = Command::new(agent()).arg(&file).current_dir(&folder).env("POSSE_TERMINAL_ID", "0000abcd");
        let child = command.spawn(pts).unwrap();
        let pty = std::sync::Arc::new(pty);
        let (send, output) = channel();
        let reader = pty.clone();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            // The end of the child is an error here, and the end of this thread.
            while let Ok(length @ 1..) = (&*reader).read(&mut buffer) {
                if send.send(buffer[..length].to_vec()).is_err() {
                    return;
                }
            }
        });
        let size = |n| std::num::NonZeroU16::new(n).unwrap();
        Terminal { pty, child, output, screen: vt100::Parser::new(size(24), size(80), 100), seen: Vec::new(), folder }
    }

    fn send(&self, bytes: &str) {
        (&*self.pty).write_all(bytes.as_bytes()).unwrap();
    }

    fn resize(&mut self, columns: u16, rows: u16) {
        let size = |n| std::num::NonZeroU16::new(n).unwrap();
        self.screen.set_size(size(rows), size(columns));
        self.pty.resize(Size::new(rows, columns)).unwrap();
    }

    fn wait_for_text(&mut self, text: &str) {
        let end = Instant::now() + PATIENCE;
        while !self.screen.screen().contents().contains(text) {
            match self.output.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(bytes) => {
                    self.screen.process(&bytes);
                    self.seen.extend(bytes);
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    panic!("{text} never came:\n{}", self.screen.screen().contents());
                }
            }
        }
    }

    /// Waits for the process to end and for all of its output.
    fn end(mut self) -> (ExitStatus, String, String) {
        let end = Instant::now() + PATIENCE;
        while let Ok(bytes) = self.output.recv_timeout(end.saturating_duration_since(Instant::now())) {
            self.seen.extend(bytes);
        }
        let status = self.child.wait().unwrap();
        let log = std::fs::read_to_string(self.folder.join("log")).unwrap();
        std::fs::remove_dir_all(&self.folder).unwrap();
        (status, log, String::from_utf8_lossy(&self.seen).into_owned())
    }
}

/// The example of this crate; cargo builds it with the tests, beside their folder.
fn agent() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let agent = tests.ancestors().nth(2).unwrap().join("examples/agent");
    assert!(agent.exists(), "{} is missing: build it with `cargo build -p posse-sim --examples`", agent.display());
    agent
}

fn events(log: &str) -> Vec<&str> {
    log.lines()
        .filter_map(|line| line.split("\"event\":\"").nth(1)?.split('"').next())
        .filter(|event| *event != "keys")
        .collect()
}

#[test]
fn turn_with_a_dialog_a_resize_and_a_file() {
    let mut terminal = Terminal::start(
        "turn",
        r#"
look = "claude"
[[turn]]
steps = [
  { think = "300ms" },
  { ask = { kind = "permission", command = "make all" } },
  { write = { path = "out/answer.md", text = "heard: {prompt}" } },
  { say = "All done." },
]"#,
    );
    terminal.wait_for_text("? for shortcuts");
    terminal.send("\x1b[200~build it\x1b[201~\r");
    terminal.wait_for_text("❯ 1. Yes");
    terminal.resize(40, 20);
    // Only a repaint wraps this label; the emulator merely cuts it.
    terminal.wait_for_text("\n      session\n");
    terminal.send("1");
    terminal.wait_for_text("✻ Worked for");
    assert_eq!(std::fs::read_to_string(terminal.folder.join("out/answer.md")).unwrap(), "heard: build it");
    assert_eq!(std::fs::read_dir(terminal.folder.join("out")).unwrap().count(), 1, "no temporary file is left");
    terminal.send("\x03\x03");
    let (status, log, seen) = terminal.end();
    assert_eq!(status.code(), Some(0), "{log}");
    let story = [
        "ready",
        "submitted",
        "turn_started",
        "dialog_drawn",
        "resized",
        "dialog_closed",
        "wrote",
        "turn_ended",
        "exit",
    ];
    assert_eq!(events(&log), story);
    assert!(seen.contains("\x1b]0;✳ Claude Code\x07"), "{seen:?}");
    assert!(seen.ends_with("\x1b[?2004l"), "{seen:?}");
    let times: Vec<u64> = log.lines().map(|line| line[6..].split(',').next().unwrap().parse().unwrap()).collect();
    assert!(times.is_sorted(), "{log}");
}

#[test]
fn exit_crash_and_signals_have_distinct_statuses() {
    let steps = |steps: &str| format!("look = \"codex\"\nauto_prompt = \"x\"\n[[turn]]\nsteps = [{steps}]");
    let (status, log, seen) = Terminal::start("exit", &steps("{ exit = 7 }")).end();
    assert_eq!(status.code(), Some(7));
    assert_eq!(events(&log), ["ready", "submitted", "turn_started", "exit"]);
    assert!(seen.contains("\x1b]7501;state=working:app=codex\x1b\\") && seen.contains("\x1b]7501;state=clear\x1b\\"));

    for signal in [9, 11, 15] {
        let (status, log, seen) =
            Terminal::start(&format!("crash{signal}"), &steps(&format!("{{ crash = {signal} }}"))).end();
        assert_eq!(status.signal(), Some(signal), "{log}");
        assert_eq!(events(&log).last(), Some(&"crash"));
        assert!(!seen.contains("state=clear"));
    }

    let mut terminal = Terminal::start("term", &steps("{ think = \"forever\" }"));
    terminal.wait_for_text("Working (");
    let pid = rustix::process::Pid::from_child(&terminal.child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    let (status, log, seen) = terminal.end();
    assert_eq!(status.code(), Some(143), "{log}");
    assert!(seen.ends_with("\x1b[?2004l"));

    let mut terminal = Terminal::start("hup", &steps("{ think = \"forever\" }"));
    terminal.wait_for_text("Working (");
    let pid = rustix::process::Pid::from_child(&terminal.child);
    rustix::process::kill_process(pid, rustix::process::Signal::HUP).unwrap();
    assert_eq!(terminal.end().0.code(), Some(129));
}

#[test]
fn loop_answers_are_written_in_every_mode() {
    let state = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("state-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&state);
    let scenario = format!(
        r#"
look = "claude"
play = "loop"
[loop]
state_dir = '{}'
[[turn]]
nth = 1
steps = [{{ answer = {{ text = "one\ntwo\n", pieces = 2, gap = "400ms" }} }}, {{ say = "First." }}]
[[turn]]
nth = 2
steps = [{{ answer = {{ text = "x\n", with = ["bom", "crlf", "invalid"] }} }}, {{ say = "Second." }}]
[[turn]]
nth = 3
steps = [{{ answer = {{ how = "directory" }} }}, {{ say = "Third." }}]
[[turn]]
nth = 4
steps = [{{ answer = {{}} }}, {{ say = "never" }}]
[[turn]]
nth = 5
steps = [{{ crash = 9 }}]"#,
        state.display()
    );
    let mut terminal = Terminal::start("loop", &scenario);
    let file = terminal.folder.join("it's/test_result.md");
    let prompt = format!("\x1b[200~Write '{}'\x1b[201~\r", file.display().to_string().replace('\'', "'\\''"));
    terminal.wait_for_text("? for shortcuts");
    terminal.send(&prompt);
    let end = Instant::now() + PATIENCE;
    while !file.exists() {
        assert!(Instant::now() < end, "{} never came", file.display());
        std::thread::sleep(Duration::from_millis(5));
    }
    // The agent keeps writing into the moved file.
    let moved = terminal.folder.join("moved.md");
    std::fs::rename(&file, &moved).unwrap();
    terminal.wait_for_text("● First.");
    assert_eq!(std::fs::read_to_string(&moved).unwrap(), "one\ntwo\n");
    assert!(!file.exists());
    terminal.send(&prompt);
    terminal.wait_for_text("● Second.");
    assert_eq!(std::fs::read(&file).unwrap(), b"\xef\xbb\xbfx\r\n\xff\xc3\x28\n");
    std::fs::remove_file(&file).unwrap();
    terminal.send(&prompt);
    terminal.wait_for_text("● Third.");
    assert!(file.is_dir());
    terminal.send(&prompt);
    terminal.wait_for_text("● cannot write");
    terminal.send(&prompt);
    let (status, log, _) = terminal.end();
    assert_eq!(status.signal(), Some(9), "{log}");
    let lines = |name: &str| std::fs::read_to_string(state.join(name)).unwrap().lines().count();
    assert_eq!((lines("tester.asked"), lines("tester.answered")), (5, 4));
    std::fs::remove_dir_all(&state).unwrap();
    let wrote: Vec<&str> = log.lines().filter(|line| line.contains("\"event\":\"wrote\"")).collect();
    assert_eq!(wrote.len(), 5, "three pieces, a file, a folder: {log}");
    assert!(wrote[0].contains("\"whole\":false") && wrote[2].contains("\"whole\":true"), "{wrote:?}");
}

#[test]
fn every_record_names_its_process_and_terminal() {
    let scenario = "auto_prompt = \"x\"\n[[turn]]\nsteps = [{ exit = 0 }]";
    let terminal = Terminal::start("source", scenario);
    let pid = terminal.child.id();
    let (_, log, _) = terminal.end();
    assert_eq!(events(&log), ["ready", "submitted", "turn_started", "exit"]);
    let source = format!("\"pid\":{pid},\"terminal\":\"0000abcd\"");
    assert!(log.lines().all(|line| line.contains(&source)), "{log}");
}

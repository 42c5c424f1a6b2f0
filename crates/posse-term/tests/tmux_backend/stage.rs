//! A private tmux server, a connection to it, and a mirror of what the connection tells.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use posse_core::ids::{TerminalId, WriterId};
use posse_core::screen::Size;
use posse_core::status::Exit;
use posse_term::client::Link;
use posse_term::emulator::{Emulator, HistoryLimit};
use posse_term::tmux::{self, Settings, Socket};
use posse_term::wire::{Event, InputRefusal, Program, Request, SpawnRefusal, Stream, Summary, Wiring};
use tokio::sync::mpsc;
use tokio::time::Instant;

/// Far more than anything here takes; only a failing test waits so long.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) const SIZE: (u16, u16) = (24, 80);

/// A directory with a server in it, ended with the test.
pub(crate) struct Stage {
    pub(crate) directory: tempfile::TempDir,
    socket: Socket,
}

impl Stage {
    /// `None`, and a line saying so, if there is no tmux. Where tests must not be skipped, a panic.
    pub(crate) fn new() -> Option<Self> {
        if Command::new("tmux").arg("-V").stdout(Stdio::null()).stderr(Stdio::null()).status().is_err() {
            assert!(std::env::var_os("CI").is_none(), "tmux is not installed, and CI may not skip this test");
            eprintln!("skipped: tmux not installed");
            return None;
        }
        let directory = tempfile::tempdir().unwrap();
        let socket = Socket::Private(directory.path().join("socket"));
        let stage = Self { directory, socket };
        stage.guard();
        Some(stage)
    }

    /// On a server as users have them, found by a name.
    pub(crate) fn of_a_user() -> Option<Self> {
        let mut stage = Self::new()?;
        stage.kill_server();
        stage.socket = Socket::User { name: "theirs".into(), directory: Some(stage.directory.path().to_owned()) };
        stage.guard();
        Some(stage)
    }

    /// Ends the server when this test ends without dropping anything.
    fn guard(&self) {
        let watch = format!("while kill -0 {} 2>/dev/null; do sleep 1; done; tmux kill-server", std::process::id());
        self.tmux(&["new-session", "-d", "-s", "guard", &watch]);
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn settings(&self) -> Settings {
        Settings {
            socket: self.socket.clone(),
            state: self.path("state"),
            shim: vec![shim().into_os_string()],
            history: HistoryLimit::default(),
        }
    }

    pub(crate) async fn connect(&self) -> Client {
        self.client(tmux::start(self.settings()).await.unwrap())
    }

    pub(crate) fn client(&self, connected: (Link, mpsc::UnboundedReceiver<Event>)) -> Client {
        Client::new(connected)
    }

    fn command(&self) -> Command {
        let mut command = Command::new("tmux");
        match &self.socket {
            Socket::Private(path) => command.arg("-S").arg(path),
            Socket::User { name, directory } => {
                command.args(["-L", name]).envs(directory.iter().map(|directory| ("TMUX_TMPDIR", directory)))
            }
        };
        command.args(["-f", "/dev/null", "-u"]).env_remove("TMUX").stdin(Stdio::null());
        command
    }

    /// What a person does from outside.
    pub(crate) fn tmux(&self, arguments: &[&str]) -> String {
        let output = self.command().args(arguments).output().unwrap();
        assert!(output.status.success(), "tmux {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim_end_matches('\n').to_owned()
    }

    /// The pane of a terminal.
    pub(crate) fn pane(&self, id: TerminalId) -> String {
        let panes = self.tmux(&["list-panes", "-a", "-F", "#{@posse_id} #{pane_id}"]);
        let pane = panes.lines().find_map(|line| line.strip_prefix(&format!("{id} ")));
        pane.unwrap_or_else(|| panic!("no pane of {id} in:\n{panes}")).to_owned()
    }

    /// A value of a format, of the pane of a terminal.
    pub(crate) fn value(&self, id: TerminalId, format: &str) -> String {
        self.tmux(&["display-message", "-p", "-t", &self.pane(id), format])
    }

    pub(crate) fn shown(&self, id: TerminalId) -> Vec<String> {
        let text = self.tmux(&["capture-pane", "-p", "-t", &self.pane(id)]);
        let mut rows: Vec<_> = text.lines().map(|row| row.trim_end().to_owned()).collect();
        rows.resize(self.value(id, "#{pane_height}").parse().unwrap(), String::new());
        rows
    }

    pub(crate) fn kill_server(&self) {
        let _ = self.command().arg("kill-server").stderr(Stdio::null()).status();
    }

    /// What is in the private directory.
    pub(crate) fn notes(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.path("state")).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.kill_server();
    }
}

fn shim() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let shim = tests.ancestors().nth(2).unwrap().join("examples/shim");
    assert!(shim.exists(), "{} is missing: build it with `cargo build -p posse-term --examples`", shim.display());
    shim
}

pub(crate) fn id(number: u32) -> TerminalId {
    TerminalId::from_random(number)
}

/// A program in a terminal of 80x24.
pub(crate) fn program(words: &[&str]) -> Program {
    let path = std::env::var_os("PATH").unwrap_or_else(|| OsString::from("/usr/bin:/bin"));
    Program {
        arguments: words.iter().map(|word| word.as_bytes().to_vec()).collect(),
        environment: vec![(b"PATH".to_vec(), path.into_encoded_bytes()), (b"LC_ALL".to_vec(), b"C.UTF-8".to_vec())],
        directory: b"/".to_vec(),
        wiring: Wiring::Terminal(Size::clamped(SIZE.0, SIZE.1)),
        ring: 1 << 20,
        label: br#"{"name":"name","session":"posse-session"}"#.to_vec(),
    }
}

pub(crate) fn script(text: &str) -> Program {
    program(&["bash", "-c", text])
}

/// What the daemon would know of one terminal.
pub(crate) struct Mirror {
    pub(crate) emulator: Emulator,
    /// All output since the last checkpoint.
    pub(crate) output: Vec<u8>,
    pub(crate) begin: u64,
    pub(crate) checkpoints: usize,
    pub(crate) exit: Option<Exit>,
}

impl Mirror {
    fn new() -> Self {
        let emulator = Emulator::new(Size::clamped(SIZE.0, SIZE.1), HistoryLimit::default());
        Self { emulator, output: Vec::new(), begin: 0, checkpoints: 0, exit: None }
    }

    pub(crate) fn text(&self) -> String {
        self.emulator.screen().text()
    }
}

pub(crate) struct Client {
    pub(crate) link: Link,
    events: mpsc::UnboundedReceiver<Event>,
    mirrors: HashMap<TerminalId, Mirror>,
    pub(crate) acknowledge: bool,
    inputs: u64,
    /// What was neither output nor an answer somebody waited for.
    pub(crate) heard: Vec<Event>,
}

impl Client {
    fn new((link, events): (Link, mpsc::UnboundedReceiver<Event>)) -> Self {
        Self { link, events, mirrors: HashMap::new(), acknowledge: true, inputs: 0, heard: Vec::new() }
    }

    /// The next event, after it has been mirrored. `None` when the server is gone.
    async fn next(&mut self, until: Instant) -> Option<Event> {
        let event = tokio::time::timeout_at(until, self.events.recv()).await;
        let event = event.unwrap_or_else(|_| panic!("nothing came; screens:\n{}", self.screens()))?;
        self.take(&event);
        Some(event)
    }

    fn take(&mut self, event: &Event) {
        match event {
            Event::Output { id, stream, offset, bytes } => {
                let mirror = self.mirrors.entry(*id).or_insert_with(Mirror::new);
                assert_eq!(*stream, Stream::Main);
                assert_eq!(*offset, mirror.emulator.offset(), "output goes on where it was");
                let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(200)]);
                assert_eq!(mirror.exit, None, "{id}: output after the end: {shown:?}");
                mirror.emulator.feed(bytes);
                mirror.output.extend(bytes);
                if self.acknowledge {
                    let offset = mirror.emulator.offset();
                    self.link.send(Request::Acknowledge { id: *id, stream: Stream::Main, offset });
                }
            }
            Event::Checkpoint { id, offset, blob } => {
                let mirror = self.mirrors.entry(*id).or_insert_with(Mirror::new);
                assert!(*offset > mirror.emulator.offset(), "a checkpoint stands for what was missed");
                mirror.emulator = Emulator::restore(blob, HistoryLimit::default()).unwrap();
                assert_eq!(mirror.emulator.offset(), *offset);
                mirror.output.clear();
                mirror.begin = *offset;
                mirror.checkpoints += 1;
            }
            Event::Resized { id, size, .. } => {
                self.mirrors.entry(*id).or_insert_with(Mirror::new).emulator.resize(*size);
            }
            Event::Exited { id, exit, main, .. } => {
                let mirror = self.mirrors.entry(*id).or_insert_with(Mirror::new);
                assert_eq!(*main, mirror.emulator.offset(), "all output before the end");
                assert_eq!(mirror.exit, None, "one end");
                mirror.exit = Some(*exit);
            }
            _ => self.heard.push(event.clone()),
        }
    }

    fn screens(&self) -> String {
        let mut text = String::new();
        for (id, mirror) in &self.mirrors {
            text += &format!("{id}: {:?}\n{}\n", mirror.exit, mirror.text());
        }
        for event in &self.heard {
            text += &match event {
                Event::Problem { message } => format!("problem: {}\n", String::from_utf8_lossy(message)),
                other => format!("{other:?}\n"),
            };
        }
        text
    }

    /// Waits for an event that gives an answer.
    pub(crate) async fn wait_for<T>(&mut self, mut answer: impl FnMut(&Event) -> Option<T>) -> T {
        let until = Instant::now() + PATIENCE;
        loop {
            let event = self.next(until).await.expect("the server is gone");
            if let Some(answer) = answer(&event) {
                return answer;
            }
        }
    }

    /// Waits until a terminal is as wished.
    pub(crate) async fn until(&mut self, id: TerminalId, mut wish: impl FnMut(&Mirror) -> bool) -> &mut Mirror {
        let until = Instant::now() + PATIENCE;
        while !self.mirrors.get(&id).is_some_and(&mut wish) {
            self.next(until).await.expect("the server is gone");
        }
        self.mirrors.get_mut(&id).unwrap()
    }

    pub(crate) async fn until_text(&mut self, id: TerminalId, text: &str) -> &mut Mirror {
        self.until(id, |mirror| mirror.text().contains(text)).await
    }

    pub(crate) async fn until_exit(&mut self, id: TerminalId) -> Exit {
        self.until(id, |mirror| mirror.exit.is_some()).await.exit.unwrap()
    }

    pub(crate) fn mirror(&mut self, id: TerminalId) -> &mut Mirror {
        self.mirrors.entry(id).or_insert_with(Mirror::new)
    }

    /// Everything up to the end of the server.
    pub(crate) async fn until_gone(&mut self) {
        let until = Instant::now() + PATIENCE;
        while self.next(until).await.is_some() {}
    }

    /// Starts a program and attaches to it. Its process id.
    pub(crate) async fn spawn(&mut self, id: TerminalId, program: Program) -> u32 {
        let pid = match self.try_spawn(id, program).await {
            Ok(pid) => pid,
            Err((why, message)) => panic!("{why:?}: {message}\n{}", self.screens()),
        };
        self.attach(id);
        pid
    }

    pub(crate) async fn try_spawn(&mut self, id: TerminalId, program: Program) -> Result<u32, (SpawnRefusal, String)> {
        self.link.send(Request::Spawn { id, program });
        self.wait_for(|event| match event {
            Event::Spawned { id: of, pid } if *of == id => Some(Ok(*pid)),
            Event::SpawnFailed { id: of, why, message } if *of == id => {
                Some(Err((*why, String::from_utf8_lossy(message).into_owned())))
            }
            _ => None,
        })
        .await
    }

    pub(crate) fn attach(&self, id: TerminalId) {
        self.link.send(Request::Attach { id, stream: Stream::Main, from: 0 });
    }

    /// Sends input and waits until it is there.
    pub(crate) async fn type_in(&mut self, id: TerminalId, bytes: &[u8]) -> Result<(), InputRefusal> {
        self.inputs += 1;
        self.type_as(id, WriterId(7), self.inputs, bytes).await
    }

    pub(crate) async fn type_as(
        &mut self,
        id: TerminalId,
        writer: WriterId,
        sequence: u64,
        bytes: &[u8],
    ) -> Result<(), InputRefusal> {
        self.link.send(Request::Input { id, writer, sequence, bytes: bytes.to_vec() });
        let ours = move |w: WriterId, s: u64| w == writer && s == sequence;
        self.wait_for(|event| match event {
            Event::InputDone { writer, sequence, .. } if ours(*writer, *sequence) => Some(Ok(())),
            Event::InputRefused { writer, sequence, why, .. } if ours(*writer, *sequence) => Some(Err(*why)),
            _ => None,
        })
        .await
    }

    pub(crate) async fn list(&mut self) -> Vec<Summary> {
        self.link.send(Request::List);
        self.wait_for(|event| match event {
            Event::Listed { summaries } => Some(summaries.clone()),
            _ => None,
        })
        .await
    }

    /// Waits until something outside is as wished. Nobody tells when a file or a process changes, so it is looked at.
    pub(crate) async fn until_outside(&mut self, what: &str, mut wish: impl FnMut() -> bool) {
        let until = Instant::now() + PATIENCE;
        while !wish() {
            assert!(Instant::now() < until, "{what} never came; screens:\n{}", self.screens());
            if let Ok(event) = tokio::time::timeout(Duration::from_millis(10), self.events.recv()).await {
                self.take(&event.expect("the server is gone"));
            }
        }
    }
}

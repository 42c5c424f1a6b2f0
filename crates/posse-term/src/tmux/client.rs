//! The driver: runs `tmux -C`, carries out what the machine decides, and comes back when the connection is lost.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, getsid, kill_process, kill_process_group};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::control::Parser;
use super::machine::{Effect, Happening, Machine};
use super::notes::Notes;
use crate::wire::{Event, Request};

/// How often a server that is there but does not talk to us is tried again. Each time it has as long as any command.
const ATTEMPTS: u32 = 6;
/// Before the first of those; twice as long each time. tmux 3.3a dies when it has something to tell (that a session was
/// closed, say) to a connection that is just being made, and when ours is lost there often is.
const PAUSE: Duration = Duration::from_millis(100);
/// How often the first connection is tried. A server that was killed a moment ago may still seem to be there.
const FIRST_ATTEMPTS: u32 = 3;
/// How long tmux may take to do something simple.
const ANSWER: Duration = Duration::from_secs(2);
/// As much as a pipe holds.
const BUFFER: usize = 64 << 10;
/// What the client has left to say when it has ended is there at once.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// How to run tmux.
#[derive(Clone, Debug)]
pub(super) struct Caller {
    pub(super) program: std::ffi::OsString,
    /// Which server.
    pub(super) server: Vec<std::ffi::OsString>,
    /// Where it looks for servers by name, if not in the usual place.
    pub(super) directory: Option<PathBuf>,
    pub(super) anchor: String,
}

impl Caller {
    pub(super) fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        // Of the tmux we may have been started in.
        command.env_remove("TMUX").env_remove("TMUX_PANE");
        match &self.directory {
            Some(directory) => command.env("TMUX_TMPDIR", directory),
            None => command.env_remove("TMUX_TMPDIR"),
        };
        // A person's Ctrl-C is not for this one.
        command.process_group(0).kill_on_drop(true);
        command
    }

    fn connect(&self, start: Start) -> io::Result<Connection> {
        let mut command = self.command();
        command.args(&self.server).args(["-u", "-C"]);
        if start == Start::Never {
            command.arg("-N");
        }
        command.args(["new-session", "-A", "-s", &self.anchor, "-n", "posse", "-x", "80", "-y", "24"]);
        command.args(["sh", "-c", ANCHOR]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let missing = || io::Error::other("no pipes");
        let (lines, queue) = mpsc::unbounded_channel();
        tokio::spawn(write(child.stdin.take().ok_or_else(missing)?, queue));
        let (output, errors) = (child.stdout.take().ok_or_else(missing)?, child.stderr.take().ok_or_else(missing)?);
        Ok(Connection { child, output, errors, lines, buffer: Vec::with_capacity(BUFFER), parser: Parser::default() })
    }
}

impl Caller {
    /// Closes our session on a server that goes on, from outside and when nobody looks at it: tmux (3.2a, 3.3a and 3.5a
    /// were seen) may die when the session goes together with our connection.
    async fn end_anchor(&self) {
        let session = format!("={}", self.anchor);
        for attempt in 0..=ATTEMPTS {
            let format = "#{client_control_mode} #{client_pid}";
            let Some(clients) = self.ask(&["list-clients", "-t", &session, "-F", format]).await else { return };
            if clients.is_empty() {
                self.ask(&["kill-session", "-t", &session]).await;
                return;
            }
            for client in clients.lines() {
                match client.strip_prefix("1 ").and_then(|process| process.parse().ok()).and_then(pid) {
                    // Left behind by a daemon that was killed: tmux 3.8 let one of those hang. Ours is gone by now.
                    Some(process) if attempt > 0 => drop(kill_process(process, Signal::KILL)),
                    Some(_) => {}
                    // A person looks at it.
                    None => return,
                }
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Whether our session is there.
    pub(super) async fn has_anchor(&self) -> bool {
        self.ask(&["has-session", "-t", &format!("={}", self.anchor)]).await.is_some()
    }

    /// What a command that needs no connection answers; `None` if it failed.
    async fn ask(&self, words: &[&str]) -> Option<String> {
        let mut command = self.command();
        command.args(&self.server).arg("-N").args(words).stdin(Stdio::null()).stderr(Stdio::null());
        let output = tokio::time::timeout(ANSWER, command.output()).await.ok()?.ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }
}

/// What runs in the session that keeps the server, and that the connection looks at.
const ANCHOR: &str = "echo 'posse listens to its terminals here. Leave this session alone.'; exec cat >/dev/null";

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Start {
    IfNeeded,
    Never,
}

struct Connection {
    child: Child,
    output: ChildStdout,
    errors: ChildStderr,
    lines: mpsc::UnboundedSender<Vec<u8>>,
    buffer: Vec<u8>,
    parser: Parser,
}

impl Connection {
    /// Ends it for good: tmux shall have dealt with that before there is another. What it said besides.
    async fn end(mut self) -> String {
        drop(self.lines);
        let mut words = String::new();
        let _ = tokio::time::timeout(LAST_WORDS, self.errors.read_to_string(&mut words)).await;
        let _ = self.child.start_kill();
        let _ = tokio::time::timeout(LAST_WORDS, self.child.wait()).await;
        words.trim().to_owned()
    }
}

/// A task of its own, so that nothing waits for tmux to read.
async fn write(mut input: ChildStdin, mut queue: mpsc::UnboundedReceiver<Vec<u8>>) {
    while let Some(line) = queue.recv().await {
        if input.write_all(&line).await.is_err() || input.flush().await.is_err() {
            return; // The reading side sees it too.
        }
    }
}

/// Why a connection was left.
enum Left {
    Broken(String),
    /// The server is gone.
    Gone,
    /// Nobody wants us any more.
    Unwanted,
    /// Nobody does, and nothing of ours shall stay.
    Departing,
}

pub(super) struct Driver {
    pub(super) caller: Caller,
    pub(super) machine: Machine,
    pub(super) notes: Notes,
    pub(super) requests: mpsc::UnboundedReceiver<Request>,
    pub(super) events: mpsc::UnboundedSender<Event>,
}

/// A driver that has looked around.
pub(super) struct Ready {
    driver: Driver,
    connection: Connection,
}

impl Driver {
    /// Connects for the first time. The error is what tmux had to say.
    pub(super) async fn begin(mut self, start: Start) -> Result<Ready, String> {
        let mut attempts = 0;
        loop {
            let mut connection = self.caller.connect(start).map_err(|error| error.to_string())?;
            let mut left = self.happen(Happening::Connected, Some(&connection));
            while left.is_none() && !self.machine.is_ready() {
                left = self.step(&mut connection, Wanted::ToBeReady).await;
            }
            let Some(left) = left else { return Ok(Ready { driver: self, connection }) };
            self.happen(Happening::Disconnected, None);
            let words = connection.end().await;
            attempts += 1;
            if attempts == FIRST_ATTEMPTS {
                return Err(match left {
                    Left::Broken(why) if words.is_empty() => why,
                    Left::Gone | Left::Unwanted | Left::Departing if words.is_empty() => "it ended at once".into(),
                    _ => words,
                });
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Waits for whatever comes first, and deals with it.
    async fn step(&mut self, connection: &mut Connection, wanted: Wanted) -> Option<Left> {
        connection.buffer.clear();
        let deadline = self.machine.deadline().map(Instant::from_std);
        let due = async {
            match deadline {
                Some(deadline) => tokio::time::sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            read = connection.output.read_buf(&mut connection.buffer) => match read {
                Ok(1..) => {
                    let mut messages = Vec::new();
                    connection.parser.feed(&connection.buffer, |message| messages.push(message));
                    messages.into_iter().find_map(|message| self.happen(Happening::Said(message), Some(connection)))
                }
                Ok(0) | Err(_) => Some(Left::Broken("tmux closed the connection".into())),
            },
            request = self.requests.recv(), if wanted == Wanted::Everything => match request {
                Some(request) => self.happen(Happening::Asked(request), Some(connection)),
                None => Some(Left::Unwanted),
            },
            () = due => self.happen(Happening::Time, Some(connection)),
        }
    }

    fn happen(&mut self, happening: Happening, connection: Option<&Connection>) -> Option<Left> {
        let mut happenings = VecDeque::from([happening]);
        let mut left = None;
        while let Some(happening) = happenings.pop_front() {
            for effect in self.machine.handle(happening, std::time::Instant::now()) {
                match effect {
                    Effect::Send(line) => drop(connection.map(|connection| connection.lines.send(line.bytes()))),
                    Effect::Tell(event) => {
                        if self.events.send(event).is_err() {
                            left = Some(Left::Unwanted);
                        }
                    }
                    Effect::Prepare(id, program, secret) => {
                        let outcome = self.notes.prepare(id, &program, &secret).map_err(|error| error.to_string());
                        happenings.push_back(Happening::Prepared(id, outcome));
                    }
                    Effect::ReadFate(id) => happenings.push_back(Happening::Fate(id, self.notes.fate(id))),
                    Effect::Forget(id) => self.notes.remove(id),
                    // Should it fail, tmux will not find the file, and the input is refused.
                    Effect::SaveInput(number, bytes) => drop(self.notes.save_input(number, &bytes)),
                    Effect::DropInput(number) => self.notes.drop_input(number),
                    Effect::Signal(process, signal) => {
                        if let Some(process) = pid(process) {
                            let _ = kill_process(process, signal);
                        }
                    }
                    Effect::Kill { program, session } => kill(program, session),
                    Effect::Broken(why) => left = Some(Left::Broken(why)),
                    Effect::OtherServer => left = Some(Left::Gone),
                    Effect::Depart => left = Some(Left::Departing),
                }
            }
        }
        left
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    ToBeReady,
    Everything,
}

impl Ready {
    /// Runs until nobody wants it any more or the server is gone.
    pub(super) async fn run(self) {
        let Self { mut driver, mut connection } = self;
        let mut attempts = 0;
        loop {
            let left = driver.step(&mut connection, Wanted::Everything).await;
            if driver.machine.is_ready() {
                attempts = 0;
            }
            let why = match left {
                None => continue,
                Some(Left::Unwanted) => return,
                Some(Left::Departing) => {
                    connection.end().await;
                    return driver.caller.end_anchor().await;
                }
                Some(Left::Gone) => String::new(),
                Some(Left::Broken(why)) => why,
            };
            driver.happen(Happening::Disconnected, None);
            if !why.is_empty() {
                let _ = driver.events.send(Event::Problem { message: why.clone().into_bytes() });
            }
            connection.end().await;
            attempts += 1;
            let next = if why.is_empty() { None } else { driver.reconnect(attempts).await };
            let Some(next) = next else {
                driver.happen(Happening::ServerGone, None);
                return;
            };
            connection = next;
            driver.happen(Happening::Connected, Some(&connection));
        }
    }
}

impl Driver {
    /// Another connection to the same server, if it is there.
    async fn reconnect(&self, attempts: u32) -> Option<Connection> {
        if attempts > ATTEMPTS {
            return None;
        }
        tokio::time::sleep(PAUSE * 2u32.pow(attempts - 1)).await;
        // A server that is about to end still takes connections, and closes them.
        UnixStream::connect(Path::new(self.machine.socket())).await.ok()?;
        self.caller.connect(Start::Never).ok()
    }
}

fn pid(process: u32) -> Option<Pid> {
    i32::try_from(process).ok().and_then(Pid::from_raw)
}

/// Only while it is in the session of its pane: the number may belong to somebody else by now.
fn kill(program: u32, session: u32) {
    let (Some(program), Some(session)) = (pid(program), pid(session)) else { return };
    if getsid(Some(program)) == Ok(session) {
        let _ = kill_process_group(program, Signal::KILL);
        let _ = kill_process(program, Signal::KILL);
    }
}

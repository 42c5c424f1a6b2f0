//! A keeper process of one's own, and programs to give it.

use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use posse_core::ids::TerminalId;
use posse_core::screen::Size;
use posse_term::wire::{KeeperRequest, ProgramSpec};
use posse_testkit::{TestEnv, process};

use crate::peer::{PATIENCE, Peer};

/// The default ring size of programs.
pub(crate) const RING: u32 = 1 << 20;

/// The script of a program that echoes its input. It prints `ready` first.
pub(crate) const PARROT: &str = "stty raw -echo; printf ready; exec cat";

pub(crate) struct Keeper {
    env: TestEnv,
    child: Child,
    /// Someone it serves, so that it stays when a test has nothing in it for a moment.
    guest: Option<Peer>,
}

impl Keeper {
    pub(crate) fn start() -> Self {
        Self::start_after(":")
    }

    pub(crate) fn with_peer() -> (Self, Peer) {
        let keeper = Self::start();
        let peer = keeper.peer();
        (keeper, peer)
    }

    /// A keeper, and a program that a peer follows.
    pub(crate) fn running(script: &str) -> (Self, Peer, TerminalId) {
        let (keeper, mut peer) = Self::with_peer();
        let id = new_id();
        peer.follow(id, keeper.shell(id, script));
        (keeper, peer, id)
    }

    /// Starts it from a shell that ran `prelude` first: what that sets, the keeper inherits.
    pub(crate) fn start_after(prelude: &str) -> Self {
        let mut keeper = Self::start_alone(prelude);
        keeper.guest = Some(keeper.peer());
        keeper
    }

    /// Starts a keeper without a connection.
    pub(crate) fn start_alone(prelude: &str) -> Self {
        let env = TestEnv::new(env!("CARGO_BIN_EXE_posse"));
        let child = launch(&env, prelude);
        Self { env, child, guest: None }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.env.paths().keeper_socket()
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.env.work()
    }

    /// A connection that has not introduced itself.
    #[track_caller]
    pub(crate) fn stranger(&self) -> Peer {
        Peer::connect(&self.socket()).unwrap_or_else(|error| panic!("cannot connect: {error}; {}", self.log()))
    }

    #[track_caller]
    pub(crate) fn peer(&self) -> Peer {
        let mut peer = self.stranger();
        peer.greet(false);
        peer
    }

    #[track_caller]
    pub(crate) fn daemon(&self) -> Peer {
        let mut peer = self.stranger();
        peer.greet(true);
        peer
    }

    /// From here on it serves only peers of the test.
    pub(crate) fn without_guest(&mut self) {
        self.guest = None;
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.env.paths().log()).unwrap_or_default()
    }

    /// A program in a terminal, with nothing in its environment but what it takes to run and to be found.
    pub(crate) fn program<S: AsRef<str>>(&self, id: TerminalId, arguments: &[S]) -> ProgramSpec {
        let pair = |name: &str, value: &str| (name.as_bytes().to_vec(), value.as_bytes().to_vec());
        ProgramSpec {
            arguments: arguments.iter().map(|argument| argument.as_ref().as_bytes().to_vec()).collect(),
            environment: vec![
                pair("PATH", &std::env::var("PATH").unwrap_or_default()),
                pair("POSSE_HOME", &self.env.paths().home.to_string_lossy()),
                pair("POSSE_TERMINAL_ID", id.as_str()),
            ],
            directory: self.work().to_string_lossy().into_owned().into_bytes(),
            size: Size::clamped(24, 80),
            ring: RING,
            label: Vec::new(),
        }
    }

    pub(crate) fn shell(&self, id: TerminalId, script: &str) -> ProgramSpec {
        self.program(id, &["sh", "-c", script])
    }

    /// Starts a program that types back what is typed, byte by byte, and waits until it is ready.
    #[track_caller]
    pub(crate) fn parrot(&self, peer: &mut Peer) -> TerminalId {
        let id = new_id();
        peer.follow(id, self.shell(id, PARROT));
        peer.until_printed(id, "ready");
        id
    }

    /// Processor time it has used, in hundredths of a second.
    pub(crate) fn ticks(&self) -> u64 {
        process::effort(self.pid()).expect("the keeper is gone").0
    }

    pub(crate) fn memory(&self) -> u64 {
        process::memory(self.pid()).expect("the keeper is gone")
    }

    /// Waits until it has noticed the end of all its children.
    #[track_caller]
    pub(crate) fn until_reaped(&self) {
        let zombie = |pid| Stat::of(pid).is_some_and(|stat| stat.state == 'Z' && stat.parent == self.pid());
        let pids = || fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        until("all are reaped", || !pids().any(zombie));
    }

    /// Waits until it has left by itself, with its socket.
    #[track_caller]
    pub(crate) fn until_gone(&mut self) {
        assert!(process::ends_within(self.pid(), PATIENCE), "the keeper does not leave; {}", self.log());
        assert!(self.child.wait().unwrap().success() && !self.socket().exists());
    }

    pub(crate) fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the keeper's log:\n{}", self.log());
            let _ = self.child.kill();
            // Without a socket the environment looks for nobody.
            let _ = fs::remove_file(self.socket());
        } else if self.is_running() {
            let mut peer = self.peer();
            for summary in peer.list() {
                peer.end(summary.id, 0);
                peer.forget(summary.id);
            }
            peer.send(&KeeperRequest::Rest);
            self.until_gone();
        }
    }
}

fn launch(env: &TestEnv, prelude: &str) -> Child {
    let keep = env.command(["keep"]);
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("{prelude}; exec \"$0\" \"$@\"")).arg(keep.get_program()).args(keep.get_args());
    command.env_clear().envs(keep.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let log = fs::File::options().create(true).append(true).open(env.paths().log()).unwrap();
    command.current_dir(env.work()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n", "{}", fs::read_to_string(env.paths().log()).unwrap_or_default());
    child
}

/// Returns a unique id. Families are found by it among all processes of the machine, so tests that run at the same time
/// must not share one.
pub(crate) fn new_id() -> TerminalId {
    TerminalId::from_random(RandomState::new().hash_one(std::process::id()) as u32)
}

/// Asks until it is so.
#[track_caller]
pub(crate) fn until(what: &str, mut so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !so() {
        assert!(Instant::now() < deadline, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A process's data in /proc/PID/stat.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) state: char,
    pub(crate) parent: u32,
    pub(crate) group: u32,
    pub(crate) session: u32,
    /// Number of the controlling terminal, 0 without one.
    pub(crate) terminal: i32,
    /// The group in that terminal's foreground.
    pub(crate) foreground: i32,
}

impl Stat {
    pub(crate) fn of(pid: u32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let mut fields = stat[stat.rfind(')')? + 1..].split_ascii_whitespace();
        Some(Self {
            state: fields.next()?.chars().next()?,
            parent: fields.next()?.parse().ok()?,
            group: fields.next()?.parse().ok()?,
            session: fields.next()?.parse().ok()?,
            terminal: fields.next()?.parse().ok()?,
            foreground: fields.next()?.parse().ok()?,
        })
    }
}

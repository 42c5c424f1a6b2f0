//! The keeper: one process, one thread, that owns every terminal and outlives the daemon.
//!
//! It starts programs, reads what they print into rings, writes what others type, reaps what ends, and
//! starts the daemon again when it dies. It understands nothing of what it carries: no emulator, no
//! database, no configuration. The loop below is all that makes it act; between two events it sleeps in
//! the kernel.
//!
//! What it promises (see `wire` for the protocol):
//! - a byte of output has one offset for ever; a peer is told of every byte, or sees by the offsets which
//!   ones were overwritten before it came for them;
//! - input with a number that was applied before is not applied again;
//! - a peer that does not read delays nobody: output waits in the ring, not in a queue of its own. Only
//!   the daemon may hold a program back, when it is a whole ring behind and still making progress, so
//!   that a flood of output is not lost on the way to the screen.

mod accept;
mod children;
mod family;
mod peer;
mod requests;
mod ring;
mod spawn;
mod supervise;
mod terminal;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use posse_core::ids::TerminalId;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::process::Signal;

use family::{Leader, Member, ProcessTable};
use peer::KeeperPeer;
use supervise::Supervisor;
use terminal::KeptTerminal;

use crate::wire::{KeeperEvent, OutputStream};

/// How long the end of a program waits for its last output when something else still holds the terminal open.
/// The kernel hands bytes from one side to the other within a few milliseconds, even on a busy machine.
const DRAIN: Duration = Duration::from_millis(250);
/// How long a daemon that is a whole ring behind may hold a program back without taking anything.
const STALL: Duration = Duration::from_secs(2);
/// How often /proc is looked at while a family is being ended. Strangers forked meanwhile show up nowhere else.
const ENDING_LOOK: Duration = Duration::from_millis(20);
/// On a machine with thousands of processes a look takes longer than that; then at most a fifth of the time is spent
/// looking.
const ENDING_REST: u32 = 4;
/// How long SIGKILL is repeated before what is left is reported as left.
const KILLING: Duration = Duration::from_secs(3);
/// How long nobody is let in after someone could not be. The kernel would report him for as long as he waits; four
/// looks a second cost nothing, and hardly anyone notices the wait.
const DOOR_SHUT: Duration = Duration::from_millis(250);
/// Descriptors that terminals leave free: for a peer who comes to end some of them, and for what ending them takes.
const SPARE_FOR_PEERS: usize = 16;
/// Descriptors that peers leave free in turn. Looking at a process takes three.
const SPARE: usize = 8;

const LISTENER: u64 = 0;
const CHILDREN: u64 = 1;
const PEER: u64 = 2 << 32;
const MAIN: u64 = 3 << 32;
const ERROR: u64 = 4 << 32;

/// Where the keeper listens, and what it starts as the daemon.
#[derive(Debug)]
pub struct KeeperSettings {
    pub socket: PathBuf,
    /// Arguments that make the program named by `StartDaemon` a daemon.
    pub daemon_arguments: Vec<OsString>,
    /// Told to peers, for people.
    pub build: String,
}

/// A family being ended.
struct FamilyEnding {
    kill_at: Instant,
    /// Who has been asked to end. One that is born during the grace has not been, and its parent may wait for it; one
    /// that was known by its parents is still to be ended when they are gone.
    asked: HashSet<Member>,
}

struct KeeperState {
    settings: KeeperSettings,
    epoll: rustix::fd::OwnedFd,
    listener: UnixListener,
    children: UnixStream,
    terminals: HashMap<TerminalId, KeptTerminal>,
    peers: BTreeMap<u32, KeeperPeer>,
    next_peer: u32,
    /// When the door, shut for a moment, opens again.
    door_opens: Option<Instant>,
    endings: HashMap<TerminalId, FamilyEnding>,
    next_look: Option<Instant>,
    /// Outputs that are not being read for now, and programs whose last output is awaited.
    paused: BTreeSet<(TerminalId, OutputStream)>,
    draining: BTreeSet<TerminalId>,
    supervisor: Supervisor,
    daemon_executable: Option<OsString>,
    daemon_pid: Option<u32>,
    buffer: Vec<u8>,
    leave: bool,
}

/// Runs until the daemon rests and no terminal is left. `ready` is called once peers can connect.
pub fn run(settings: KeeperSettings, ready: impl FnOnce()) -> io::Result<()> {
    // Its own session: closing the window of whoever started it must not end it. Fails when it leads one already.
    let _ = rustix::process::setsid();
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    let (children, child_signals) = UnixStream::pair()?;
    children.set_nonblocking(true)?;
    signal_hook::low_level::pipe::register(signal_hook::consts::SIGCHLD, child_signals)?;
    // Nobody's keyboard, nobody's window. That these are handled also keeps programs from inheriting that they were
    // ignored where the keeper was started (by a script's `&`, by `nohup`).
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGQUIT, signal_hook::consts::SIGHUP] {
        signal_hook::flag::register(signal, Arc::<AtomicBool>::default())?;
    }
    let _ = fs::remove_file(&settings.socket);
    let listener = UnixListener::bind(&settings.socket)?;
    listener.set_nonblocking(true)?;
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    epoll::add(&epoll, &listener, EventData::new_u64(LISTENER), EventFlags::IN)?;
    epoll::add(&epoll, &children, EventData::new_u64(CHILDREN), EventFlags::IN)?;
    let mut keeper = KeeperState {
        settings,
        epoll,
        listener,
        children,
        terminals: HashMap::new(),
        peers: BTreeMap::new(),
        next_peer: 0,
        door_opens: None,
        endings: HashMap::new(),
        next_look: None,
        paused: BTreeSet::new(),
        draining: BTreeSet::new(),
        supervisor: Supervisor::new(),
        daemon_executable: None,
        daemon_pid: None,
        buffer: vec![0; 64 << 10],
        leave: false,
    };
    ready();
    keeper.run()
}

impl KeeperState {
    fn run(&mut self) -> io::Result<()> {
        let mut events = Vec::with_capacity(64);
        while !self.leave {
            let timeout = self.deadline().map(|deadline| {
                let left = deadline.saturating_duration_since(Instant::now());
                rustix::event::Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) }
            });
            events.clear();
            match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), timeout.as_ref()) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            let now = Instant::now();
            for event in &events {
                self.handle(event.data.u64(), event.flags, now);
            }
            self.on_time(now);
            self.flush_peers(now);
        }
        let _ = fs::remove_file(&self.settings.socket);
        Ok(())
    }

    fn handle(&mut self, token: u64, flags: EventFlags, now: Instant) {
        let number = token as u32;
        match token & !u64::from(u32::MAX) {
            PEER => self.peer_ready(number, flags, now),
            MAIN => self.terminal_ready(TerminalId::from_random(number), OutputStream::Main, flags, now),
            ERROR => self.terminal_ready(TerminalId::from_random(number), OutputStream::Error, flags, now),
            _ if token == LISTENER => self.accept(now),
            _ => self.reap(now),
        }
    }

    // ---- ending families ----

    fn look_at_endings(&mut self, now: Instant) {
        let table = ProcessTable::read();
        let (terminals, peers) = (&self.terminals, &mut self.peers);
        self.endings.retain(|id, ending| {
            let leader = terminals.get(id).map(|terminal| match terminal.exit {
                None => Leader::Running(terminal.pid as i32),
                Some(_) => Leader::Ended(terminal.pid as i32),
            });
            let left = match &table {
                Ok(table) => ending.press(table.family(*id, leader, &ending.asked), now),
                // Nobody was seen, but nobody looked either.
                Err(_) => 1,
            };
            // A program that is dead and not reaped yet cannot be forgotten yet.
            let left = left.max(usize::from(matches!(leader, Some(Leader::Running(_)))));
            let over = left == 0 || now >= ending.kill_at + KILLING;
            if over {
                for peer in peers.values_mut().filter(|peer| peer.greeted) {
                    peer.tell(&KeeperEvent::Ended { id: *id, left: left as u32 });
                }
            }
            !over
        });
        if self.endings.is_empty() {
            self.next_look = None;
            self.leave_if_unneeded();
        } else {
            self.next_look = Some(Instant::now() + ENDING_LOOK.max(now.elapsed() * ENDING_REST));
        }
    }

    // ---- time ----

    fn deadline(&self) -> Option<Instant> {
        let drains = self.draining.iter().filter_map(|id| self.terminals.get(id)?.drained_at());
        let stalls = self.waited_for().map(|moved| moved + STALL);
        drains.chain(stalls).chain(self.next_look).chain(self.door_opens).chain(self.supervisor.deadline()).min()
    }

    /// When the daemons that hold programs back last took something.
    fn waited_for(&self) -> impl Iterator<Item = Instant> {
        self.paused.iter().flat_map(|key| {
            let cursors = self.peers.values().filter(|peer| peer.daemon).filter_map(|peer| peer.cursors.get(key));
            cursors.filter(|cursor| !cursor.stalled).map(|cursor| cursor.moved)
        })
    }

    fn on_time(&mut self, now: Instant) {
        for id in self.draining.clone() {
            if self.terminals.get(&id).and_then(KeptTerminal::drained_at).is_some_and(|at| at <= now) {
                self.announce_exit(id, true);
            }
        }
        if self.waited_for().any(|moved| moved + STALL <= now) {
            for key in &self.paused {
                for cursor in self.peers.values_mut().filter_map(|peer| peer.cursors.get_mut(key)) {
                    cursor.stalled |= cursor.moved + STALL <= now;
                }
            }
            self.resume_all(now);
        }
        if self.door_opens.is_some_and(|opens| opens <= now) {
            self.door_opens = None;
            self.watch_door(EventFlags::IN);
        }
        if self.next_look.is_some_and(|look| look <= now) {
            self.look_at_endings(now);
        }
        if self.supervisor.start_now(now) {
            self.start_daemon(now);
        }
    }

    // ---- the daemon ----

    fn start_daemon(&mut self, now: Instant) {
        let Some(executable) = &self.daemon_executable else {
            // The one that went away was not started by us; whoever did start it may do so again.
            self.supervisor.rests();
            return self.leave_if_unneeded();
        };
        let mut command = Command::new(executable);
        command.args(&self.settings.daemon_arguments).stdin(Stdio::null()).stdout(Stdio::null());
        match command.spawn() {
            Ok(child) => self.daemon_pid = Some(child.id()),
            Err(error) => {
                let message = format!("cannot start {}: {error}", executable.display());
                log(&message);
                self.daemon_failed(&message, now);
            }
        }
    }

    fn daemon_failed(&mut self, message: &str, now: Instant) {
        if !self.supervisor.failed(now) {
            return;
        }
        for peer in self.peers.values_mut().filter(|peer| peer.awaits_daemon) {
            peer.awaits_daemon = false;
            peer.tell(&KeeperEvent::DaemonFailed { message: message.to_owned() });
        }
        // Nothing to keep and nobody to serve: trying for ever would only burn the machine.
        if self.terminals.is_empty() {
            self.supervisor.rests();
            self.leave_if_unneeded();
        }
    }
}

impl FamilyEnding {
    /// Asks every member to end that has not been asked yet, or kills them all when the grace is over. Gives their
    /// number.
    fn press(&mut self, family: Vec<Member>, now: Instant) -> usize {
        let left = family.len();
        for member in family {
            if now >= self.kill_at {
                member.signal(Signal::KILL);
            } else if !self.asked.contains(&member) {
                // The last one because a stopped process would never see the others.
                for signal in [Signal::TERM, Signal::HUP, Signal::CONT] {
                    member.signal(signal);
                }
                self.asked.insert(member);
            }
        }
        left
    }
}

#[derive(Clone, Copy)]
enum EpollAction {
    Begin,
    Change,
}

fn peer_token(number: u32) -> EventData {
    EventData::new_u64(PEER | u64::from(number))
}

fn hello(settings: &KeeperSettings) -> KeeperEvent {
    KeeperEvent::Hello { pid: std::process::id(), build: settings.build.clone() }
}

fn unknown(id: TerminalId) -> KeeperEvent {
    KeeperEvent::Problem { message: format!("there is no terminal {id}") }
}

/// The keeper's standard error is its log file.
fn log(message: &str) {
    let _ = writeln!(io::stderr(), "keeper[{}]: {message}", std::process::id());
}

//! The keeper: one process, one thread, that owns every terminal and outlives the daemon.
//!
//! It starts programs, reads their output into rings, writes input to them, reaps them when they exit, and restarts the
//! daemon when it dies. It does not interpret the bytes it carries: it has no emulator, no database and no configuration.
//! All work happens in the loop below; between two events the process sleeps in the kernel.
//!
//! The keeper guarantees (see `wire` for the protocol):
//! - Every byte of output has one permanent offset. A peer gets every byte, or sees from the offsets which bytes were
//!   overwritten before they could be sent.
//! - Input with a sequence number that was applied before is not applied again.
//! - A peer that does not read delays no other peer: output waits in the ring, not in a queue per peer. Only the daemon
//!   may pause a program, and only while it is a whole ring behind and still making progress, so that a flood of output
//!   is not lost on the way to the screen.

mod accept;
mod children;
mod family;
mod peer;
mod requests;
mod supervise;
mod terminal;

use std::collections::{BTreeMap, HashMap, HashSet};
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

use crate::wire::KeeperEvent;

/// The time for which the exit of a program waits for its last output while another process holds the terminal open.
/// The kernel transfers bytes between the two sides within a few milliseconds, even on a busy machine.
const DRAIN: Duration = Duration::from_millis(250);
/// The time for which a daemon that is a whole ring behind may pause a program without acknowledging anything.
const STALL: Duration = Duration::from_secs(2);
/// The interval between two reads of /proc while a family is being ended. Processes forked meanwhile show up only there.
const ENDING_LOOK: Duration = Duration::from_millis(20);
/// On a machine with thousands of processes a read takes longer than that. The pause is a multiple of the read, so at
/// most a fifth of the time is spent reading.
const ENDING_REST: u32 = 4;
/// The time for which SIGKILL is repeated before the remaining processes are reported as left.
const KILLING: Duration = Duration::from_secs(3);
/// The time for which the keeper accepts no connection after `accept` failed. The kernel reports a waiting connection
/// for as long as it waits; four attempts per second cost nothing.
const DOOR_SHUT: Duration = Duration::from_millis(250);
/// Descriptors that terminals leave free, for a peer that connects to end some of them, and for ending them.
const SPARE_FOR_PEERS: usize = 16;
/// Descriptors that peers leave free. Inspecting a process takes three.
const SPARE: usize = 8;

const LISTENER: u64 = 0;
const CHILDREN: u64 = 1;
const PEER: u64 = 2 << 32;
const TERMINAL: u64 = 3 << 32;

/// The arguments that make the program named by `StartDaemon` a daemon.
const DAEMON_ARGUMENTS: [&str; 2] = ["serve", "--foreground"];

struct FamilyEnding {
    kill_at: Instant,
    /// The processes that got SIGTERM. A process forked during the grace period is not among them yet, and its parent may
    /// wait for it. A process known only by its parents stays a member after they exit.
    asked: HashSet<Member>,
}

struct KeeperState {
    socket: PathBuf,
    epoll: rustix::fd::OwnedFd,
    listener: UnixListener,
    children: UnixStream,
    terminals: HashMap<TerminalId, KeptTerminal>,
    peers: BTreeMap<u32, KeeperPeer>,
    next_peer: u32,
    /// The time at which the keeper accepts connections again.
    door_opens: Option<Instant>,
    endings: HashMap<TerminalId, FamilyEnding>,
    next_look: Option<Instant>,
    supervisor: Supervisor,
    daemon_executable: Option<OsString>,
    daemon_pid: Option<u32>,
    buffer: Vec<u8>,
    leave: bool,
}

/// Runs until the daemon rests and no terminal is left. `ready` is called once peers can connect.
pub fn run(socket: PathBuf, ready: impl FnOnce()) -> io::Result<()> {
    // A session of its own: closing the window that started the keeper must not end it. Fails if it leads one already.
    let _ = rustix::process::setsid();
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    let (children, child_signals) = UnixStream::pair()?;
    children.set_nonblocking(true)?;
    signal_hook::low_level::pipe::register(signal_hook::consts::SIGCHLD, child_signals)?;
    // The keeper belongs to no keyboard and no window. Handling these signals also keeps programs from inheriting that
    // the signals were ignored where the keeper was started (by a script's `&`, by `nohup`).
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGQUIT, signal_hook::consts::SIGHUP] {
        signal_hook::flag::register(signal, Arc::<AtomicBool>::default())?;
    }
    let _ = fs::remove_file(&socket);
    let listener = UnixListener::bind(&socket)?;
    listener.set_nonblocking(true)?;
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    epoll::add(&epoll, &listener, EventData::new_u64(LISTENER), EventFlags::IN)?;
    epoll::add(&epoll, &children, EventData::new_u64(CHILDREN), EventFlags::IN)?;
    let mut keeper = KeeperState {
        socket,
        epoll,
        listener,
        children,
        terminals: HashMap::new(),
        peers: BTreeMap::new(),
        next_peer: 0,
        door_opens: None,
        endings: HashMap::new(),
        next_look: None,
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
        let _ = fs::remove_file(&self.socket);
        Ok(())
    }

    fn handle(&mut self, token: u64, flags: EventFlags, now: Instant) {
        let number = token as u32;
        match token & !u64::from(u32::MAX) {
            PEER => self.peer_ready(number, flags, now),
            TERMINAL => self.terminal_ready(TerminalId::from_random(number), flags, now),
            _ if token == LISTENER => self.accept(now),
            _ => self.reap(now),
        }
    }

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
                // /proc could not be read, so the family counts as alive.
                Err(_) => 1,
            };
            // A program that is dead but not reaped cannot be forgotten yet.
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

    fn deadline(&self) -> Option<Instant> {
        let drains = self.terminals.values().filter_map(KeptTerminal::drained_at);
        let stalls = self.waited_for().map(|moved| moved + STALL);
        drains.chain(stalls).chain(self.next_look).chain(self.door_opens).chain(self.supervisor.deadline()).min()
    }

    /// Returns the times of the last acknowledgements by daemons that pause programs.
    fn waited_for(&self) -> impl Iterator<Item = Instant> {
        self.terminals.values().filter(|terminal| terminal.paused).flat_map(|terminal| {
            let daemons = self.peers.values().filter(|peer| peer.daemon);
            let cursors = daemons.filter_map(|peer| peer.cursors.get(&terminal.id));
            cursors.filter(|cursor| !cursor.stalled).map(|cursor| cursor.moved)
        })
    }

    fn terminals_that(&self, fit: impl Fn(&KeptTerminal) -> bool) -> Vec<TerminalId> {
        self.terminals.values().filter(|terminal| fit(terminal)).map(|terminal| terminal.id).collect()
    }

    fn on_time(&mut self, now: Instant) {
        for id in self.terminals_that(|terminal| terminal.drained_at().is_some_and(|at| at <= now)) {
            self.announce_exit(id, true);
        }
        if self.waited_for().any(|moved| moved + STALL <= now) {
            for id in self.terminals_that(|terminal| terminal.paused) {
                for cursor in self.peers.values_mut().filter_map(|peer| peer.cursors.get_mut(&id)) {
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

    fn start_daemon(&mut self, now: Instant) {
        let Some(executable) = &self.daemon_executable else {
            // The daemon that went away was not started by the keeper, so the keeper does not restart it.
            self.supervisor.rests();
            return self.leave_if_unneeded();
        };
        let mut command = Command::new(executable);
        command.args(DAEMON_ARGUMENTS).stdin(Stdio::null()).stdout(Stdio::null());
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
        self.answer_who_awaits_daemon(&KeeperEvent::DaemonFailed { message: message.to_owned() });
        // Without terminals there is nothing to serve, so the keeper does not retry forever.
        if self.terminals.is_empty() {
            self.supervisor.rests();
            self.leave_if_unneeded();
        }
    }
}

impl FamilyEnding {
    /// Asks every new member to end, or kills all members when the grace period is over. Returns the number of members.
    fn press(&mut self, family: Vec<Member>, now: Instant) -> usize {
        let left = family.len();
        for member in family {
            if now >= self.kill_at {
                member.signal(Signal::KILL);
            } else if !self.asked.contains(&member) {
                // SIGCONT comes last because a stopped process would never see the others.
                for signal in [Signal::TERM, Signal::HUP, Signal::CONT] {
                    member.signal(signal);
                }
                self.asked.insert(member);
            }
        }
        left
    }
}

fn peer_token(number: u32) -> EventData {
    EventData::new_u64(PEER | u64::from(number))
}

fn unknown(id: TerminalId) -> KeeperEvent {
    KeeperEvent::Problem { message: format!("there is no terminal {id}") }
}

/// Writes to standard error, which is the keeper's log file.
fn log(message: &str) {
    let _ = writeln!(io::stderr(), "keeper[{}]: {message}", std::process::id());
}

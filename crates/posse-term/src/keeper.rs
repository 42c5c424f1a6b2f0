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

mod family;
mod peer;
mod ring;
mod spawn;
mod supervise;
mod terminal;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ffi::OsString;
use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use posse_core::ids::TerminalId;
use posse_core::status::Exit;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::process::{Signal, WaitOptions};

pub use family::TERMINAL_VARIABLE;
use family::{Leader, Member, Table};
use peer::{Gone, Peer};
use supervise::Supervisor;
use terminal::{Accepted, Output, Receipt, Terminal};

use crate::wire::{self, Event, InputRefusal, Request, SpawnRefusal, Stream};

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
pub struct Settings {
    pub socket: PathBuf,
    /// Arguments that make the program named by `StartDaemon` a daemon.
    pub daemon_arguments: Vec<OsString>,
    /// Told to peers, for people.
    pub build: String,
}

/// A family being ended.
struct Ending {
    kill_at: Instant,
    /// Who has been asked to end. One that is born during the grace has not been, and its parent may wait for it; one
    /// that was known by its parents is still to be ended when they are gone.
    asked: HashSet<Member>,
}

struct Keeper {
    settings: Settings,
    epoll: rustix::fd::OwnedFd,
    listener: UnixListener,
    children: UnixStream,
    terminals: HashMap<TerminalId, Terminal>,
    peers: BTreeMap<u32, Peer>,
    next_peer: u32,
    /// When the door, shut for a moment, opens again.
    door_opens: Option<Instant>,
    endings: HashMap<TerminalId, Ending>,
    next_look: Option<Instant>,
    /// Outputs that are not being read for now, and programs whose last output is awaited.
    paused: BTreeSet<(TerminalId, Stream)>,
    draining: BTreeSet<TerminalId>,
    supervisor: Supervisor,
    daemon_executable: Option<OsString>,
    daemon_pid: Option<u32>,
    buffer: Vec<u8>,
    leave: bool,
}

/// Runs until the daemon rests and no terminal is left. `ready` is called once peers can connect.
pub fn run(settings: Settings, ready: impl FnOnce()) -> io::Result<()> {
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
    let mut keeper = Keeper {
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

impl Keeper {
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
            MAIN => self.terminal_ready(TerminalId::from_random(number), Stream::Main, flags, now),
            ERROR => self.terminal_ready(TerminalId::from_random(number), Stream::Error, flags, now),
            _ if token == LISTENER => self.accept(now),
            _ => self.reap(now),
        }
    }

    // ---- peers ----

    fn accept(&mut self, now: Instant) {
        loop {
            let stream = match self.spare(SPARE).and_then(|()| self.listener.accept()) {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) => {
                    log(&format!("cannot let anyone in for now: {error}"));
                    self.door_opens = Some(now + DOOR_SHUT);
                    return self.watch_door(EventFlags::empty());
                }
            };
            // The directory is private already; this is the second lock on the door.
            let peer = rustix::net::sockopt::socket_peercred(&stream);
            let pid = match peer {
                Ok(peer) if peer.uid == rustix::process::getuid() => peer.pid.as_raw_nonzero().get() as u32,
                _ => continue,
            };
            let number = self.next_peer;
            self.next_peer += 1;
            let added = stream
                .set_nonblocking(true)
                .and_then(|()| Ok(epoll::add(&self.epoll, &stream, peer_token(number), EventFlags::IN)?));
            if added.is_ok() {
                self.peers.insert(number, Peer::new(stream, pid));
            }
        }
    }

    fn watch_door(&self, flags: EventFlags) {
        if let Err(error) = epoll::modify(&self.epoll, &self.listener, EventData::new_u64(LISTENER), flags) {
            log(&format!("cannot watch the door: {error}"));
        }
    }

    /// Whether so many descriptors could be had.
    fn spare(&self, count: usize) -> io::Result<()> {
        let spare: Result<Vec<_>, _> = (0..count).map(|_| rustix::io::fcntl_dupfd_cloexec(&self.epoll, 0)).collect();
        Ok(spare.map(drop)?)
    }

    fn peer_ready(&mut self, number: u32, flags: EventFlags, now: Instant) {
        let Some(peer) = self.peers.get_mut(&number) else { return };
        if !flags.intersects(EventFlags::IN | EventFlags::HUP | EventFlags::ERR) {
            return; // It can take more: every peer is flushed at the end of the round.
        }
        match peer.receive(&mut self.buffer) {
            Ok(requests) => {
                for request in requests {
                    if let Err(why) = self.request(number, request, now) {
                        return self.drop_peer(number, &why, now);
                    }
                }
            }
            Err(Gone::Closed) => self.drop_peer(number, "", now),
            Err(gone) => self.drop_peer(number, &gone.to_string(), now),
        }
    }

    fn drop_peer(&mut self, number: u32, why: &str, now: Instant) {
        let Some(peer) = self.peers.remove(&number) else { return };
        if !why.is_empty() {
            log(&format!("cut off process {}: {why}", peer.pid));
        }
        let _ = epoll::delete(&self.epoll, &peer.stream);
        if peer.daemon && !self.peers.values().any(|other| other.daemon) {
            self.supervisor.disconnected(now);
        }
        self.resume_all(now);
        // One that only knocked was never a guest: whoever starts a keeper knocks before he enters.
        if peer.greeted {
            self.leave_if_unneeded();
        }
    }

    /// Nothing to keep, nobody to serve, no daemon on its way: then nobody would ever say that it may leave.
    fn leave_if_unneeded(&mut self) {
        let idle = self.terminals.is_empty() && self.endings.is_empty() && self.supervisor.is_resting();
        self.leave |= idle && !self.peers.values().any(|peer| peer.greeted);
    }

    fn flush_peers(&mut self, now: Instant) {
        let mut gone = Vec::new();
        for (number, peer) in &mut self.peers {
            let waited = peer.wants_write;
            match peer.flush(&self.terminals) {
                Ok(()) if peer.wants_write != waited => {
                    let out = if peer.wants_write { EventFlags::OUT } else { EventFlags::empty() };
                    let _ = epoll::modify(&self.epoll, &peer.stream, peer_token(*number), EventFlags::IN | out);
                }
                Ok(()) => {}
                Err(why) => gone.push((*number, why)),
            }
        }
        for (number, why) in gone {
            self.drop_peer(number, &why.to_string(), now);
        }
    }

    /// Carries out one request. `Err` cuts the peer off.
    fn request(&mut self, number: u32, request: Request, now: Instant) -> Result<(), String> {
        let Some(peer) = self.peers.get_mut(&number) else { return Ok(()) };
        if !peer.greeted && !matches!(request, Request::Hello { .. }) {
            return Err("it did not introduce itself".into());
        }
        match request {
            Request::Hello { version, daemon } => {
                peer.greeted = true;
                let build = self.settings.build.clone().into_bytes();
                peer.tell(&Event::Hello { version: wire::VERSION, pid: std::process::id(), build });
                if version != wire::VERSION {
                    let _ = peer.flush(&self.terminals);
                    return Err(format!("it speaks version {version} of the protocol, not {}", wire::VERSION));
                }
                peer.daemon = daemon;
                if daemon {
                    let pid = peer.pid;
                    self.supervisor.connected(now);
                    for peer in self.peers.values_mut().filter(|peer| peer.awaits_daemon) {
                        peer.awaits_daemon = false;
                        peer.tell(&Event::DaemonUp { pid });
                    }
                }
            }
            Request::List => {
                let summaries = self.terminals.values().map(Terminal::summary).collect();
                peer.tell(&Event::Listed { summaries });
            }
            Request::Spawn { id, program } => {
                let answer = self.spawn(id, program);
                self.tell(number, &answer);
            }
            Request::Attach { id, stream, from } => match self.terminals.get(&id) {
                Some(terminal) => {
                    peer.attach(terminal, stream, from, now);
                    self.resume(id, stream, now);
                }
                None => peer.tell(&unknown(id)),
            },
            Request::Acknowledge { id, stream, offset } => {
                if let (Some(cursor), Some(terminal)) = (peer.cursors.get_mut(&(id, stream)), self.terminals.get(&id)) {
                    let end = terminal.output(stream).map_or(0, |output| output.ring.end());
                    if offset > cursor.acknowledged {
                        cursor.acknowledged = offset.min(end);
                        cursor.moved = now;
                        cursor.stalled = false;
                    }
                    peer.has_news(id, stream);
                    self.resume(id, stream, now);
                }
            }
            Request::Input { id, writer, sequence, bytes } => {
                let receipt = Receipt { peer: number, writer, sequence };
                let accepted = match self.terminals.get_mut(&id) {
                    Some(terminal) => terminal.accept_input(&bytes, receipt),
                    None => Err(InputRefusal::NoSuchTerminal),
                };
                match accepted {
                    Ok(Accepted::Queued) => self.write_input(id),
                    Ok(Accepted::Repeated) => peer.tell(&Event::InputDone { id, writer, sequence }),
                    Err(why) => peer.tell(&Event::InputRefused { id, writer, sequence, why }),
                }
            }
            Request::Resize { id, size } => match self.terminals.get_mut(&id) {
                Some(terminal) => {
                    terminal.resize(size);
                    for peer in self.peers.values_mut() {
                        peer.has_news(id, Stream::Main);
                    }
                }
                None => peer.tell(&unknown(id)),
            },
            Request::HangUp { id } => {
                if let Some(Err(error)) = self.terminals.get(&id).map(Terminal::hang_up) {
                    let message = format!("could not hang up {id}: {error}").into_bytes();
                    peer.tell(&Event::Problem { message });
                }
            }
            Request::End { id, grace_ms } => {
                let kill_at = now + Duration::from_millis(grace_ms.into());
                let ending = self.endings.entry(id).or_insert_with(|| Ending { kill_at, asked: HashSet::new() });
                // Asked twice, the shorter grace holds.
                ending.kill_at = ending.kill_at.min(kill_at);
                self.next_look = Some(now);
            }
            Request::Forget { id } => {
                // A program may be dead and not reaped yet; its family was seen to be gone before that was.
                self.reap(now);
                if self.terminals.get(&id).is_some_and(|terminal| terminal.exit.is_none()) {
                    let message = format!("{id} is still running; end it first").into_bytes();
                    self.tell(number, &Event::Problem { message });
                } else {
                    self.forget(id);
                    self.tell(number, &Event::Forgotten { id });
                }
            }
            Request::Checkpoint { id, offset, blob } => {
                if let Some(terminal) = self.terminals.get_mut(&id)
                    && terminal.checkpoint.as_ref().is_none_or(|(held, _)| *held <= offset)
                {
                    terminal.checkpoint = Some((offset, blob));
                }
            }
            Request::StartDaemon { executable } => {
                self.daemon_executable = Some(OsString::from_vec(executable));
                match self.peers.values().find(|peer| peer.daemon).map(|peer| peer.pid) {
                    Some(pid) => self.tell(number, &Event::DaemonUp { pid }),
                    None => {
                        if let Some(peer) = self.peers.get_mut(&number) {
                            peer.awaits_daemon = true;
                        }
                        self.supervisor.wanted(now);
                    }
                }
            }
            Request::Rest => {
                self.supervisor.rests();
                peer.daemon = false;
                peer.tell(&Event::Resting);
                self.leave = self.terminals.is_empty();
                self.resume_all(now);
            }
        }
        Ok(())
    }

    fn tell(&mut self, number: u32, event: &Event) {
        if let Some(peer) = self.peers.get_mut(&number) {
            peer.tell(event);
        }
    }

    // ---- terminals ----

    fn spawn(&mut self, id: TerminalId, program: wire::Program) -> Event {
        let failed = |why, message: String| Event::SpawnFailed { id, why, message: message.into_bytes() };
        if self.terminals.contains_key(&id) {
            return failed(SpawnRefusal::IdTaken, format!("{id} exists already"));
        }
        let room = self.spare(SPARE_FOR_PEERS).map_err(|error| spawn::no_spare(&error));
        let spawned = match room.and_then(|()| spawn::spawn(&program)) {
            Ok(spawned) => spawned,
            Err((why, message)) => return failed(why, message),
        };
        let pid = spawned.pid;
        let terminal = Terminal::new(id, program, spawned);
        self.terminals.insert(id, terminal);
        self.watch(id, Stream::Main, Watch::Begin);
        self.watch(id, Stream::Error, Watch::Begin);
        Event::Spawned { id, pid }
    }

    /// Tells the kernel what to wake us for: output unless paused, room for input if there is any waiting.
    fn watch(&self, id: TerminalId, stream: Stream, watch: Watch) {
        let Some(terminal) = self.terminals.get(&id) else { return };
        let Some(output) = terminal.output(stream) else { return };
        let Some(fd) = output.fd.as_ref().map(AsFd::as_fd) else { return };
        // That the other side is closed is reported whether it was asked for or not. Once is enough while nothing is read.
        let mut flags = match output {
            Output { paused: true, .. } => EventFlags::ET,
            Output { deserted: true, .. } => EventFlags::IN | EventFlags::ET,
            _ => EventFlags::IN,
        };
        if stream == Stream::Main && terminal.wants_to_write() {
            flags |= EventFlags::OUT;
        }
        let data = EventData::new_u64(match stream {
            Stream::Main => MAIN | u64::from(id.bits()),
            Stream::Error => ERROR | u64::from(id.bits()),
        });
        let result = match watch {
            Watch::Begin => epoll::add(&self.epoll, fd, data, flags),
            Watch::Change => epoll::modify(&self.epoll, fd, data, flags),
        };
        if let Err(error) = result {
            log(&format!("cannot watch terminal {id}: {error}"));
        }
    }

    fn terminal_ready(&mut self, id: TerminalId, stream: Stream, flags: EventFlags, now: Instant) {
        if flags.contains(EventFlags::OUT) {
            self.write_input(id);
        }
        if !flags.intersects(EventFlags::IN | EventFlags::HUP | EventFlags::ERR) {
            return;
        }
        let room = self.room(id, stream);
        let Some(terminal) = self.terminals.get_mut(&id) else { return };
        let state = |terminal: &Terminal| terminal.output(stream).map(|o| (o.ring.end(), o.paused, o.deserted));
        let Some((end, paused, deserted)) = state(terminal) else { return };
        if paused {
            return;
        }
        if room == 0 {
            return self.pause(id, stream, now);
        }
        terminal.read(stream, &mut self.buffer, room);
        let after = state(terminal);
        if after.is_some_and(|(after, ..)| after != end) {
            for peer in self.peers.values_mut() {
                peer.has_news(id, stream);
            }
        }
        if after.is_some_and(|(.., after)| after != deserted) {
            self.watch(id, stream, Watch::Change);
        }
        self.announce_exit(id, false);
    }

    /// How many bytes may be read without overwriting what a healthy daemon has yet to take.
    fn room(&self, id: TerminalId, stream: Stream) -> u64 {
        let Some(ring) = self.terminals.get(&id).and_then(|t| t.output(stream)).map(|o| &o.ring) else { return 0 };
        let daemons = self.peers.values().filter(|peer| peer.daemon);
        let cursors = daemons.filter_map(|peer| peer.cursors.get(&(id, stream))).filter(|cursor| !cursor.stalled);
        cursors.map(|c| ring.capacity().saturating_sub(ring.end() - c.acknowledged)).min().unwrap_or(u64::MAX)
    }

    /// Stops reading an output that has no room. The daemons that hold it back are given `STALL` from now.
    fn pause(&mut self, id: TerminalId, stream: Stream, now: Instant) {
        if let Some(output) = self.terminals.get_mut(&id).and_then(|terminal| terminal.output_mut(stream)) {
            output.paused = true;
        }
        for cursor in self.peers.values_mut().filter_map(|peer| peer.cursors.get_mut(&(id, stream))) {
            cursor.moved = now;
        }
        self.paused.insert((id, stream));
        self.watch(id, stream, Watch::Change);
    }

    /// Reads a paused output again if there is room again.
    fn resume(&mut self, id: TerminalId, stream: Stream, now: Instant) {
        if !self.paused.contains(&(id, stream)) || self.room(id, stream) == 0 {
            return;
        }
        self.paused.remove(&(id, stream));
        if let Some(terminal) = self.terminals.get_mut(&id) {
            // What it printed last is only now coming.
            terminal.drain_until = terminal.drain_until.map(|_| now + DRAIN);
            if let Some(output) = terminal.output_mut(stream) {
                output.paused = false;
            }
        }
        self.watch(id, stream, Watch::Change);
    }

    fn resume_all(&mut self, now: Instant) {
        for (id, stream) in self.paused.clone() {
            self.resume(id, stream, now);
        }
    }

    fn write_input(&mut self, id: TerminalId) {
        let Some(terminal) = self.terminals.get_mut(&id) else { return };
        let peers = &mut self.peers;
        terminal.write_input(|Receipt { peer, writer, sequence }| {
            if let Some(peer) = peers.get_mut(&peer) {
                peer.tell(&Event::InputDone { id, writer, sequence });
            }
        });
        self.watch(id, Stream::Main, Watch::Change);
    }

    fn reap(&mut self, now: Instant) {
        let _ = self.children.read(&mut self.buffer);
        while let Ok(Some((pid, status))) = rustix::process::wait(WaitOptions::NOHANG) {
            let pid = pid.as_raw_nonzero().get() as u32;
            let exit = match (status.exit_status(), status.terminating_signal()) {
                (Some(code), _) => Exit::Code(code),
                (_, Some(signal)) => Exit::Signal(signal),
                _ => continue, // stopped or continued
            };
            if self.daemon_pid == Some(pid) {
                self.daemon_pid = None;
                log(&format!("the daemon (process {pid}) {exit}"));
                self.daemon_failed(&format!("the daemon {exit}"), now);
                continue;
            }
            let Some(terminal) = self.terminals.values_mut().find(|t| t.pid == pid && t.exit.is_none()) else {
                continue;
            };
            terminal.exit = Some(exit);
            terminal.drain_until = Some(now + DRAIN);
            terminal.main.deserted = false;
            let id = terminal.id;
            self.draining.insert(id);
            for Receipt { peer, writer, sequence } in terminal.drop_input() {
                let why = InputRefusal::NotReading;
                self.tell(peer, &Event::InputRefused { id, writer, sequence, why });
            }
            self.watch(id, Stream::Main, Watch::Change);
            self.announce_exit(id, false);
        }
    }

    /// Announces the end of a program once all it printed has been read, or `now_or_never`.
    fn announce_exit(&mut self, id: TerminalId, now_or_never: bool) {
        let Some(terminal) = self.terminals.get_mut(&id) else { return };
        if terminal.exit.is_none() || terminal.announced.is_some() || !(terminal.outputs_ended() || now_or_never) {
            return;
        }
        terminal.drain_until = None;
        self.draining.remove(&id);
        let error = terminal.error.as_ref().map_or(0, |error| error.ring.end());
        terminal.announced = Some((terminal.main.ring.end(), error));
        for peer in self.peers.values_mut().filter(|peer| peer.greeted) {
            peer.owes_exit(id);
        }
    }

    fn forget(&mut self, id: TerminalId) {
        self.terminals.remove(&id);
        self.draining.remove(&id);
        self.paused.retain(|(paused, _)| *paused != id);
        for peer in self.peers.values_mut() {
            peer.forget(id);
        }
    }

    // ---- ending families ----

    fn look_at_endings(&mut self, now: Instant) {
        let table = Table::read();
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
            let over = left == 0 || now >= ending.kill_at + KILLING;
            if over {
                for peer in peers.values_mut().filter(|peer| peer.greeted) {
                    peer.tell(&Event::Ended { id: *id, left: left as u32 });
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
            if self.terminals.get(&id).and_then(Terminal::drained_at).is_some_and(|at| at <= now) {
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
            peer.tell(&Event::DaemonFailed { message: message.as_bytes().to_vec() });
        }
        // Nothing to keep and nobody to serve: trying for ever would only burn the machine.
        if self.terminals.is_empty() {
            self.supervisor.rests();
            self.leave_if_unneeded();
        }
    }
}

impl Ending {
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
enum Watch {
    Begin,
    Change,
}

fn peer_token(number: u32) -> EventData {
    EventData::new_u64(PEER | u64::from(number))
}

fn unknown(id: TerminalId) -> Event {
    Event::Problem { message: format!("there is no terminal {id}").into_bytes() }
}

/// The keeper's standard error is its log file.
fn log(message: &str) {
    let _ = writeln!(io::stderr(), "keeper[{}]: {message}", std::process::id());
}

//! The programs of the keeper: started directly, without a shell in between, read, written to, reaped.

use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use posse_core::ids::TerminalId;
use posse_core::status::Exit;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::process::WaitOptions;

use super::terminal::{KeptTerminal, Receipt};
use super::{DRAIN, KeeperState, SPARE_FOR_PEERS, TERMINAL, log};
use crate::wire::{InputRefusal, KeeperEvent, ProgramSpec, SpawnRefusal};

impl KeeperState {
    pub(super) fn spawn(&mut self, id: TerminalId, program: ProgramSpec) -> KeeperEvent {
        let failed = |why, message| KeeperEvent::SpawnFailed { id, why, message };
        if self.terminals.contains_key(&id) {
            return failed(SpawnRefusal::IdTaken, format!("{id} exists already"));
        }
        let room = self.spare(SPARE_FOR_PEERS).map_err(|error| refusal(&error, OsStr::new("descriptors")));
        let spawned = match room.and_then(|()| spawn(&program)) {
            Ok(spawned) => spawned,
            Err((why, message)) => return failed(why, message),
        };
        let pid = spawned.pid;
        if let Err(error) = epoll::add(&self.epoll, &spawned.terminal, terminal_token(id), EventFlags::IN) {
            log(&format!("cannot watch terminal {id}: {error}"));
        }
        self.terminals.insert(id, KeptTerminal::new(id, program, spawned));
        KeeperEvent::Spawned { id, pid }
    }

    /// Registers for epoll events: output unless paused, room for input if some is waiting.
    pub(super) fn watch(&self, id: TerminalId) {
        let Some(terminal) = self.terminals.get(&id) else { return };
        let Some(fd) = terminal.fd.as_ref() else { return };
        // The kernel always reports that the other side is closed. Edge-triggered, it reports it only once.
        let mut flags = match (terminal.paused, terminal.deserted) {
            (true, _) => EventFlags::ET,
            (_, true) => EventFlags::IN | EventFlags::ET,
            _ => EventFlags::IN,
        };
        if terminal.wants_to_write() {
            flags |= EventFlags::OUT;
        }
        if let Err(error) = epoll::modify(&self.epoll, fd, terminal_token(id), flags) {
            log(&format!("cannot watch terminal {id}: {error}"));
        }
    }

    pub(super) fn terminal_ready(&mut self, id: TerminalId, flags: EventFlags, now: Instant) {
        if flags.contains(EventFlags::OUT) {
            self.write_input(id);
        }
        if !flags.intersects(EventFlags::IN | EventFlags::HUP | EventFlags::ERR) {
            return;
        }
        let room = self.room(id);
        let Some(terminal) = self.terminals.get_mut(&id) else { return };
        if terminal.paused {
            return;
        }
        if room == 0 {
            return self.pause(id, now);
        }
        let (end, deserted) = (terminal.ring.end(), terminal.deserted);
        terminal.read(&mut self.buffer, room);
        let changed = terminal.deserted != deserted;
        if terminal.ring.end() != end {
            for peer in self.peers.values_mut() {
                peer.has_news(id);
            }
        }
        if changed {
            self.watch(id);
        }
        self.announce_exit(id, false);
    }

    /// Returns how many bytes may be read without overwriting output that a healthy daemon has not acknowledged.
    pub(super) fn room(&self, id: TerminalId) -> u64 {
        let Some(ring) = self.terminals.get(&id).map(|terminal| &terminal.ring) else { return 0 };
        let daemons = self.peers.values().filter(|peer| peer.daemon);
        let cursors = daemons.filter_map(|peer| peer.cursors.get(&id)).filter(|cursor| !cursor.stalled);
        cursors.map(|c| ring.capacity().saturating_sub(ring.end() - c.acknowledged)).min().unwrap_or(u64::MAX)
    }

    /// Stops reading an output without room. The daemons that are behind have `STALL` from now on to catch up.
    pub(super) fn pause(&mut self, id: TerminalId, now: Instant) {
        if let Some(terminal) = self.terminals.get_mut(&id) {
            terminal.paused = true;
        }
        for cursor in self.peers.values_mut().filter_map(|peer| peer.cursors.get_mut(&id)) {
            cursor.moved = now;
        }
        self.watch(id);
    }

    pub(super) fn resume(&mut self, id: TerminalId, now: Instant) {
        let room = self.room(id);
        if let Some(terminal) = self.terminals.get_mut(&id).filter(|terminal| terminal.paused && room > 0) {
            // The last output of the program is read only now.
            terminal.drain_until = terminal.drain_until.map(|_| now + DRAIN);
            terminal.paused = false;
            self.watch(id);
        }
    }

    pub(super) fn resume_all(&mut self, now: Instant) {
        self.terminals_that(|terminal| terminal.paused).into_iter().for_each(|id| self.resume(id, now));
    }

    pub(super) fn write_input(&mut self, id: TerminalId) {
        let Some(terminal) = self.terminals.get_mut(&id) else { return };
        let peers = &mut self.peers;
        terminal.write_input(|Receipt { peer, writer, sequence }| {
            if let Some(peer) = peers.get_mut(&peer) {
                peer.tell(&KeeperEvent::InputDone { id, writer, sequence });
            }
        });
        self.watch(id);
    }

    pub(super) fn reap(&mut self, now: Instant) {
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
            terminal.deserted = false;
            let id = terminal.id;
            for Receipt { peer, writer, sequence } in terminal.drop_input() {
                let why = InputRefusal::NotReading;
                self.tell(peer, &KeeperEvent::InputRefused { id, writer, sequence, why });
            }
            self.watch(id);
            self.announce_exit(id, false);
        }
    }

    /// Announces the exit of a program once all its output has been read, or at once if `now_or_never`.
    pub(super) fn announce_exit(&mut self, id: TerminalId, now_or_never: bool) {
        let Some(terminal) = self.terminals.get_mut(&id) else { return };
        let ended = terminal.fd.is_none();
        if terminal.exit.is_none() || terminal.announced.is_some() || !(ended || now_or_never) {
            return;
        }
        terminal.drain_until = None;
        terminal.announced = Some(terminal.ring.end());
        for peer in self.peers.values_mut().filter(|peer| peer.greeted) {
            peer.owes_exit(id);
        }
    }

    pub(super) fn forget(&mut self, id: TerminalId) {
        self.terminals.remove(&id);
        for peer in self.peers.values_mut() {
            peer.forget(id);
        }
    }
}

fn terminal_token(id: TerminalId) -> EventData {
    EventData::new_u64(TERMINAL | u64::from(id.bits()))
}

pub(super) struct Spawned {
    pub(super) pid: u32,
    /// The terminal's master side.
    pub(super) terminal: OwnedFd,
}

type Refusal = (SpawnRefusal, String);

fn spawn(program: &ProgramSpec) -> Result<Spawned, Refusal> {
    let Some((name, arguments)) = program.arguments.split_first() else {
        return Err((SpawnRefusal::ProgramMissing, "no program was given".into()));
    };
    let directory = Path::new(OsStr::from_bytes(&program.directory));
    if !directory.is_dir() {
        return Err((SpawnRefusal::DirectoryMissing, format!("{} is not a directory", directory.display())));
    }
    let name = OsStr::from_bytes(name);
    let mut command = Command::new(name);
    command
        .args(arguments.iter().map(|a| OsStr::from_bytes(a)))
        .env_clear()
        .envs(program.environment.iter().map(|(k, v)| (OsStr::from_bytes(k), OsStr::from_bytes(v))))
        .current_dir(directory);
    let spawn = || -> pty_process::Result<Spawned> {
        let (pty, pts) = pty_process::blocking::open()?;
        pty.resize(pty_process::Size::new(program.size.rows(), program.size.cols()))?;
        let child = pty_process::blocking::Command::from(command).spawn(pts)?;
        let terminal: OwnedFd = pty.into();
        rustix::io::ioctl_fionbio(&terminal, true)?;
        Ok(Spawned { pid: child.id(), terminal })
    };
    spawn().map_err(|error| match error {
        pty_process::Error::Io(error) => refusal(&error, name),
        pty_process::Error::Rustix(error) => refusal(&error.into(), name),
    })
}

fn refusal(error: &io::Error, name: &OsStr) -> Refusal {
    use rustix::io::Errno;
    let shown = name.to_string_lossy();
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::NOENT) => (SpawnRefusal::ProgramMissing, format!("{shown}: no such program")),
        Some(Errno::ACCESS | Errno::NOEXEC) => (SpawnRefusal::NotExecutable, format!("{shown}: {error}")),
        Some(Errno::AGAIN) => (SpawnRefusal::LimitReached, format!("too many processes (raise `ulimit -u`): {error}")),
        Some(Errno::MFILE | Errno::NFILE) => {
            (SpawnRefusal::LimitReached, format!("too many open files (raise `ulimit -n`): {error}"))
        }
        Some(Errno::NOSPC | Errno::IO) => {
            (SpawnRefusal::LimitReached, format!("no terminal left (raise /proc/sys/kernel/pty/max): {error}"))
        }
        Some(Errno::NOMEM) => (SpawnRefusal::LimitReached, format!("out of memory: {error}")),
        _ => (SpawnRefusal::Other, format!("{shown}: {error}")),
    }
}

//! Connections: accepted, read, answered, closed.

use std::io;
use std::time::Instant;

use rustix::event::epoll::{self, EventData, EventFlags};

use super::peer::{DisconnectReason, KeeperPeer};
use super::{DOOR_SHUT, KeeperState, LISTENER, SPARE, log, peer_token};
use crate::lineage::lineage;
use crate::wire::{KeeperEvent, WireError};

impl KeeperState {
    pub(super) fn accept(&mut self, now: Instant) {
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
            // The directory is private already; this is a second check.
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
                let inside = self.is_inside(pid);
                self.peers.insert(number, KeeperPeer::new(stream, pid, inside));
            }
        }
    }

    /// Returns whether a process has restricted rights. A descendant of the keeper runs in one of its terminals or was
    /// started by the daemon; of these only the daemon itself is trusted. A process that cannot be looked up is not
    /// trusted either.
    fn is_inside(&self, pid: u32) -> bool {
        let line = lineage(pid as i32);
        let keeper = std::process::id() as i32;
        line.is_empty() || (self.daemon_pid != Some(pid) && line.iter().any(|one| one.pid == keeper))
    }

    pub(super) fn watch_door(&self, flags: EventFlags) {
        if let Err(error) = epoll::modify(&self.epoll, &self.listener, EventData::new_u64(LISTENER), flags) {
            log(&format!("cannot watch the door: {error}"));
        }
    }

    /// Checks that `count` descriptors are free.
    pub(super) fn spare(&self, count: usize) -> io::Result<()> {
        let spare: Result<Vec<_>, _> = (0..count).map(|_| rustix::io::fcntl_dupfd_cloexec(&self.epoll, 0)).collect();
        Ok(spare.map(drop)?)
    }

    pub(super) fn peer_ready(&mut self, number: u32, flags: EventFlags, now: Instant) {
        let Some(peer) = self.peers.get_mut(&number) else { return };
        if !flags.intersects(EventFlags::IN | EventFlags::HUP | EventFlags::ERR) {
            return; // The peer can take more: every peer is flushed at the end of the round.
        }
        match peer.receive(&mut self.buffer) {
            Ok(requests) => {
                for request in requests {
                    if let Err(why) = self.request(number, request, now) {
                        return self.drop_peer(number, &why, now);
                    }
                }
            }
            Err(why) => {
                if matches!(why, DisconnectReason::BadFrame(WireError::Version(_))) {
                    // The header of the answer shows the peer the protocol version of this keeper.
                    peer.tell(&KeeperEvent::Hello);
                    let _ = peer.flush(&self.terminals);
                }
                self.drop_peer(number, &why, now);
            }
        }
    }

    pub(super) fn drop_peer(&mut self, number: u32, why: &DisconnectReason, now: Instant) {
        let Some(peer) = self.peers.remove(&number) else { return };
        if !matches!(why, DisconnectReason::Closed) {
            log(&format!("cut off process {}: {why}", peer.pid));
        }
        let _ = epoll::delete(&self.epoll, &peer.stream);
        if peer.daemon && !self.peers.values().any(|other| other.daemon) {
            self.supervisor.disconnected(now);
        }
        self.resume_all(now);
        // A client that starts a keeper connects once without a greeting; that connection must not end the keeper.
        if peer.greeted {
            self.leave_if_unneeded();
        }
    }

    /// Ends the keeper if it has no terminals and no peers, and expects no daemon: nothing would ever end it later.
    pub(super) fn leave_if_unneeded(&mut self) {
        let idle = self.terminals.is_empty() && self.endings.is_empty() && self.supervisor.is_resting();
        self.leave |= idle && !self.peers.values().any(|peer| peer.greeted);
    }

    pub(super) fn flush_peers(&mut self, now: Instant) {
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
            self.drop_peer(number, &why, now);
        }
    }

    pub(super) fn tell(&mut self, number: u32, event: &KeeperEvent) {
        if let Some(peer) = self.peers.get_mut(&number) {
            peer.tell(event);
        }
    }
}

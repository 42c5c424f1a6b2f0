//! Executes the requests of peers.

use std::collections::HashSet;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::time::{Duration, Instant};

use posse_core::ids::TerminalId;

use super::peer::DisconnectReason;
use super::terminal::{AcceptedInput, KeptTerminal, Receipt};
use super::{FamilyEnding, KeeperState, unknown};
use crate::monotonic_ns;
use crate::wire::{InputRefusal, KeeperEvent, KeeperRequest, LATE_AFTER, RequestStamp, StampedRequest};

/// Returns the refusal of a request that a process in a terminal may not make.
fn refused_inside(request: &KeeperRequest, executable: Option<&OsString>) -> Option<KeeperEvent> {
    match request {
        KeeperRequest::Hello { daemon: false, .. } | KeeperRequest::List => None,
        KeeperRequest::StartDaemon { executable: wanted }
            if executable.is_some_and(|known| known.as_encoded_bytes() == wanted) =>
        {
            None
        }
        KeeperRequest::StartDaemon { .. } => Some(KeeperEvent::DaemonFailed {
            message:
                "a process in a terminal cannot start a daemon from another program than the one that ran before: \
                 run any posse command outside of posse's terminals"
                    .into(),
        }),
        _ => Some(KeeperEvent::Problem { message: "a process in a terminal may not do this".into() }),
    }
}

impl KeeperState {
    /// Executes one request unless it is too old, and reports which. If it fails, the caller disconnects the peer.
    pub(super) fn request(
        &mut self,
        number: u32,
        StampedRequest { stamp, request }: StampedRequest,
        now: Instant,
    ) -> Result<(), DisconnectReason> {
        let Some(peer) = self.peers.get_mut(&number) else { return Ok(()) };
        let Some(RequestStamp { token, sent }) = stamp else { return self.carry_out(number, request, now) };
        let at = monotonic_ns();
        if at.saturating_sub(sent) > LATE_AFTER.as_nanos() as u64 {
            peer.refuse_before = at;
        }
        let late = sent < peer.refuse_before;
        if !late {
            self.carry_out(number, request, now)?;
        }
        self.tell(number, &KeeperEvent::Taken { token, late });
        Ok(())
    }

    fn carry_out(&mut self, number: u32, request: KeeperRequest, now: Instant) -> Result<(), DisconnectReason> {
        let Some(peer) = self.peers.get_mut(&number) else { return Ok(()) };
        if !peer.greeted && !matches!(request, KeeperRequest::Hello { .. }) {
            return Err(DisconnectReason::NoGreeting);
        }
        if peer.inside
            && let Some(refusal) = refused_inside(&request, self.daemon_executable.as_ref())
        {
            peer.tell(&refusal);
            let _ = peer.flush(&self.terminals);
            return Err(DisconnectReason::NotAllowed);
        }
        match request {
            KeeperRequest::Hello { daemon } => self.greet(number, daemon, now),
            KeeperRequest::List => {
                let summaries = self.terminals.values().map(KeptTerminal::summary).collect();
                peer.tell(&KeeperEvent::Listed { summaries });
            }
            KeeperRequest::Spawn { id, program } => {
                let answer = self.spawn(id, program);
                self.tell(number, &answer);
                if let (KeeperEvent::Spawned { .. }, Some(peer)) = (&answer, self.peers.get_mut(&number))
                    && peer.daemon
                {
                    peer.expects(id, now);
                }
            }
            KeeperRequest::Attach { id, from } => match self.terminals.get(&id) {
                Some(terminal) => {
                    peer.attach(terminal, from, now);
                    self.resume(id, now);
                }
                None => peer.tell(&unknown(id)),
            },
            KeeperRequest::Acknowledge { id, offset } => self.acknowledge(number, id, offset, now),
            KeeperRequest::Input { id, writer, sequence, bytes } => {
                self.input(id, &bytes, Receipt { peer: number, writer, sequence });
            }
            KeeperRequest::Resize { id, size } => match self.terminals.get_mut(&id) {
                Some(terminal) => {
                    terminal.resize(size);
                    for peer in self.peers.values_mut() {
                        peer.has_news(id);
                    }
                }
                None => peer.tell(&unknown(id)),
            },
            KeeperRequest::HangUp { id } => {
                if let Some(Err(error)) = self.terminals.get(&id).map(KeptTerminal::hang_up) {
                    let message = format!("could not hang up {id}: {error}");
                    peer.tell(&KeeperEvent::Problem { message });
                }
            }
            KeeperRequest::End { id, grace_ms } => {
                let kill_at = now + Duration::from_millis(grace_ms.into());
                let ending = self.endings.entry(id).or_insert_with(|| FamilyEnding { kill_at, asked: HashSet::new() });
                // Of two requests, the shorter grace period holds.
                ending.kill_at = ending.kill_at.min(kill_at);
                self.next_look = Some(now);
            }
            KeeperRequest::Forget { id } => self.forget_exited(number, id, now),
            KeeperRequest::Checkpoint { id, offset, blob } => {
                if let Some(terminal) = self.terminals.get_mut(&id)
                    && terminal.checkpoint.as_ref().is_none_or(|(held, _)| *held <= offset)
                {
                    terminal.checkpoint = Some((offset, blob));
                }
            }
            KeeperRequest::StartDaemon { executable } => {
                self.daemon_executable = Some(OsString::from_vec(executable));
                match self.peers.values().find(|peer| peer.daemon).map(|peer| peer.pid) {
                    Some(pid) => self.tell(number, &KeeperEvent::DaemonUp { pid }),
                    None => {
                        if let Some(peer) = self.peers.get_mut(&number) {
                            peer.awaits_daemon = true;
                        }
                        self.supervisor.wanted(now);
                    }
                }
            }
            KeeperRequest::Rest => {
                self.supervisor.rests();
                peer.daemon = false;
                peer.tell(&KeeperEvent::Resting);
                self.leave = self.terminals.is_empty();
                self.resume_all(now);
            }
        }
        Ok(())
    }

    fn greet(&mut self, number: u32, daemon: bool, now: Instant) {
        let Some(peer) = self.peers.get_mut(&number) else { return };
        peer.greeted = true;
        peer.daemon = daemon;
        peer.tell(&KeeperEvent::Hello);
        if daemon {
            let pid = peer.pid;
            self.supervisor.connected(now);
            self.answer_who_awaits_daemon(&KeeperEvent::DaemonUp { pid });
        }
    }

    /// Answers the peers that wait for a running daemon.
    pub(super) fn answer_who_awaits_daemon(&mut self, answer: &KeeperEvent) {
        for peer in self.peers.values_mut() {
            if std::mem::take(&mut peer.awaits_daemon) {
                peer.tell(answer);
            }
        }
    }

    fn acknowledge(&mut self, number: u32, id: TerminalId, offset: u64, now: Instant) {
        let (Some(peer), Some(terminal)) = (self.peers.get_mut(&number), self.terminals.get(&id)) else { return };
        let Some(cursor) = peer.cursors.get_mut(&id) else { return };
        if offset > cursor.acknowledged {
            cursor.acknowledged = offset.min(terminal.ring.end());
            cursor.moved = now;
            cursor.stalled = false;
        }
        peer.has_news(id);
        self.resume(id, now);
    }

    fn input(&mut self, id: TerminalId, bytes: &[u8], receipt: Receipt) {
        let Receipt { peer, writer, sequence } = receipt;
        let accepted = match self.terminals.get_mut(&id) {
            Some(terminal) => terminal.accept_input(bytes, receipt),
            None => Err(InputRefusal::NotReading),
        };
        match accepted {
            Ok(AcceptedInput::Queued) => self.write_input(id),
            Ok(AcceptedInput::Repeated) => self.tell(peer, &KeeperEvent::InputDone { id, writer, sequence }),
            Err(why) => self.tell(peer, &KeeperEvent::InputRefused { id, writer, sequence, why }),
        }
    }

    fn forget_exited(&mut self, number: u32, id: TerminalId, now: Instant) {
        // A dead program may not be reaped yet, although its family was already reported as gone.
        self.reap(now);
        if self.terminals.get(&id).is_some_and(|terminal| terminal.exit.is_none()) {
            let message = format!("{id} is still running; end it first");
            self.tell(number, &KeeperEvent::Problem { message });
        } else {
            self.forget(id);
        }
    }
}

//! A keeper that is there and does not answer: it was stopped, or the machine is overloaded. What it did not take in time
//! is given up and told so; its terminals stay as they are.

use posse_api::EventBody;
use posse_core::ids::TerminalId;
use posse_term::client::{self, Untaken};
use posse_term::wire::KeeperRequest;
use tokio::sync::oneshot;

use super::{Change, Hub, KeeperSilent, Message, event};

impl Hub {
    /// A request was given up.
    pub(super) fn untaken(&mut self, untaken: Untaken, why: KeeperSilent) {
        match untaken {
            Untaken::Spawn { id } => self.spawn_failed(id, why.into()),
            Untaken::End { id } => self.not_ended(id, &why),
            Untaken::Rest => {
                if let Some(stopping) = &mut self.stopping {
                    stopping.keeper_silent = Some(why);
                }
                self.rested();
            }
            // The pump hears of its input, who asked for a hang-up has a reply, and the daemon starts no daemon.
            Untaken::Input { .. } | Untaken::HangUp { .. } | Untaken::StartDaemon | Untaken::Probe => {}
        }
    }

    /// Nobody ends this terminal now: who wanted it deleted, or everything stopped, may ask again.
    fn not_ended(&mut self, id: TerminalId, why: &KeeperSilent) {
        for reply in self.deleting.remove(&id).into_iter().flatten() {
            let _ = reply.send(Err(why.clone()));
        }
        let stops = self.stopping.as_ref().is_some_and(|stopping| stopping.ending.contains(&id));
        if let Some(stopping) = self.stopping.take_if(|_| stops) {
            for reply in stopping.replies {
                let _ = reply.send(Err(why.clone()));
            }
        }
    }

    /// Whether the keeper answers has changed.
    pub(super) fn keeper_silence(&mut self, why: Option<String>) {
        match &why {
            Some(why) => {
                tracing::error!("{why}");
                self.emit(event(EventBody::KeeperSilent { reason: why.clone() }), vec![]);
            }
            None => self.emit(event(EventBody::KeeperAnswers {}), vec![]),
        }
        self.keeper_silent = why;
    }

    /// Also where nobody has asked it for anything since it was stopped.
    pub(super) fn why_keeper_is_silent(&self) -> Option<String> {
        let stopped = || {
            let keeper = self.link.as_ref()?.keeper()?;
            client::is_stopped(keeper).then(|| client::silence(Some(keeper)))
        };
        self.keeper_silent.clone().or_else(stopped)
    }

    /// Says whether the keeper answers. Where none is connected, there is nobody to ask.
    pub(super) fn probe_keeper(&self, reply: oneshot::Sender<Result<(), KeeperSilent>>) {
        let Some(link) = &self.link else { return drop(reply.send(Ok(()))) };
        let keeper = link.keeper();
        let alive = link.probe();
        tokio::spawn(async move {
            // A connection that is lost meanwhile is not silence; the daemon connects again.
            let silent = alive.await.is_ok_and(|alive| !alive);
            let _ = reply.send(if silent { Err(KeeperSilent(client::silence(keeper))) } else { Ok(()) });
        });
    }

    pub(super) fn hang_up(&mut self, id: TerminalId, reply: oneshot::Sender<Result<(), KeeperSilent>>) {
        let Some(link) = &self.link else { return drop(reply.send(Ok(()))) };
        let keeper = link.keeper();
        let taken = link.confirm(KeeperRequest::HangUp { id });
        let messages = self.messages.clone();
        tokio::spawn(async move {
            let answer = if taken.await.unwrap_or(false) {
                let _ = messages.send(Message::Change(id, None, Change::Event(Box::new(EventBody::HangUp {}))));
                Ok(())
            } else {
                Err(KeeperSilent(client::silence(keeper)))
            };
            let _ = reply.send(answer);
        });
    }
}

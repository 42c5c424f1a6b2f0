//! Moving to another tmux server. Possible while nothing of ours runs on the one we have.

use posse_term::client::Link;
use posse_term::wire::Request;
use serde_json::json;
use tokio::sync::oneshot;

use super::{Hub, LogEvent, Message, Outcome, SettingError, event};
use crate::record::Backend;
use crate::store;
use crate::tmux_server::{SETTING, TmuxServer};

/// Somebody who asked for another server, while that is written down.
pub(crate) struct Choice {
    server: TmuxServer,
    reply: oneshot::Sender<Result<(), SettingError>>,
}

/// The tmux server before, while it is being left.
pub(super) struct Leaving {
    /// Dropping it would end the connection before it has been left in order.
    _link: Link,
    replies: Vec<oneshot::Sender<Result<(), SettingError>>>,
}

impl Hub {
    pub(super) fn use_tmux_server(&mut self, server: TmuxServer, reply: oneshot::Sender<Result<(), SettingError>>) {
        if let Err(why) = self.may_use(&server) {
            return drop(reply.send(Err(why)));
        }
        let event = event("setting_changed", None, json!({ "name": SETTING, "value": &server }));
        let changes = vec![setting(&server), store::Change::Event(event.clone())];
        let (messages, choice) = (self.messages.clone(), Choice { server, reply });
        self.store.write(changes, move |outcome| {
            let _ = messages.send(Message::TmuxServerStored(choice, event, outcome));
        });
    }

    /// Only what is written down counts. A terminal that was started meanwhile has written down where it lives.
    pub(super) fn tmux_server_stored(&mut self, choice: Choice, event: LogEvent, outcome: Outcome) {
        let done = match &outcome {
            Outcome::Written(_) => self.move_to(choice.server),
            Outcome::Refused(why) => Err(SettingError::Store(why.clone())),
        };
        match (done, &mut self.leaving_tmux) {
            // Answered when the server before is rid of us.
            (Ok(()), Some(leaving)) => leaving.replies.push(choice.reply),
            (done, _) => drop(choice.reply.send(done)),
        }
        self.stored(event, outcome);
    }

    fn may_use(&self, server: &TmuxServer) -> Result<(), SettingError> {
        let here: Vec<String> = self
            .running()
            .map(|e| &e.record)
            .filter(|r| r.backend == Backend::Tmux)
            .map(|r| r.name.to_string())
            .collect();
        match server == &self.tmux_server {
            true => Ok(()),
            false if !here.is_empty() => {
                Err(SettingError::TmuxInUse { server: self.tmux_server.clone(), terminals: here.join(", ") })
            }
            false if self.wanted.contains(&Backend::Tmux) => Err(SettingError::TmuxBusy),
            false => Ok(()),
        }
    }

    /// From now on terminals in tmux are started on this server. The connection to the one before ends first.
    pub(super) fn move_to(&mut self, server: TmuxServer) -> Result<(), SettingError> {
        self.may_use(&server)?;
        if server != self.tmux_server {
            self.tmux_server = server;
            if let Some(link) = self.links.remove(&Backend::Tmux) {
                // Until it has left nothing is started there; `backend_lost` goes on.
                self.wanted.insert(Backend::Tmux);
                link.send(Request::Rest);
                self.leaving_tmux = Some(Leaving { _link: link, replies: Vec::new() });
            }
        }
        Ok(())
    }

    /// The server before has been left: those who waited for that may have the one they want.
    pub(super) fn left_tmux(&mut self) {
        for reply in self.leaving_tmux.take().into_iter().flat_map(|leaving| leaving.replies) {
            let _ = reply.send(Ok(()));
        }
        if self.running().any(|entry| entry.record.backend == Backend::Tmux) {
            self.want(Backend::Tmux);
        }
    }
}

/// Where terminals in tmux live, to be written down.
pub(super) fn setting(server: &TmuxServer) -> store::Change {
    store::Change::Setting(SETTING, serde_json::to_string(server).ok())
}

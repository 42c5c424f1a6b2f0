//! The daemon's connection to the keeper: hands what concerns one terminal to its pump, and the rest to the hub.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use posse_core::ids::TerminalId;
use posse_term::client::Events;
use posse_term::wire::Event;
use tokio::sync::mpsc;

use crate::hub::{KeeperNews, Message};
use crate::pump::{Event as PumpEvent, Handle};

/// Which pump belongs to which terminal. The hub writes it, the connection reads it.
#[derive(Clone, Default)]
pub(crate) struct Routes(Arc<Mutex<HashMap<TerminalId, Handle>>>);

impl Routes {
    pub(crate) fn insert(&self, id: TerminalId, handle: Handle) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(id, handle);
    }

    pub(crate) fn remove(&self, id: TerminalId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
    }

    fn send(&self, id: TerminalId, event: Event) {
        if let Some(handle) = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&id) {
            handle.send(PumpEvent::Keeper(event));
        }
    }
}

/// Reads until the connection ends, then says so.
pub(crate) async fn run(mut events: Events, routes: Routes, hub: mpsc::UnboundedSender<Message>) {
    loop {
        let event = match events.next().await {
            Ok(event) => event,
            Err(error) => {
                let _ = hub.send(Message::Keeper(KeeperNews::Lost(error.to_string())));
                return;
            }
        };
        match event {
            Event::Output { id, .. }
            | Event::Resized { id, .. }
            | Event::Checkpoint { id, .. }
            | Event::InputDone { id, .. }
            | Event::InputRefused { id, .. }
            | Event::Exited { id, .. } => routes.send(id, event),
            Event::Spawned { id, pid } => {
                let _ = hub.send(Message::Keeper(KeeperNews::Spawned { id, pid }));
            }
            Event::SpawnFailed { id, why, message } => {
                let message = String::from_utf8_lossy(&message).into_owned();
                let _ = hub.send(Message::Keeper(KeeperNews::SpawnFailed { id, why, message }));
            }
            Event::Ended { id, left } => {
                let _ = hub.send(Message::Keeper(KeeperNews::Ended { id, left }));
            }
            Event::Resting => {
                let _ = hub.send(Message::Keeper(KeeperNews::Resting));
            }
            Event::Problem { message } => tracing::debug!("keeper: {}", String::from_utf8_lossy(&message)),
            _ => {}
        }
    }
}

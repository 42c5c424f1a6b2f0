//! The daemon's connection to the keeper. Events of one terminal go to its pump, all others to the hub.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use posse_core::ids::TerminalId;
use posse_term::client::{self, KeeperError, KeeperEvents, KeeperMessage, Untaken};
use posse_term::wire::{InputRefusal, KeeperEvent};
use tokio::sync::mpsc;

use crate::disk::{self, Disk};
use crate::hub::{HubEvent, KeeperReport};
use crate::pump::{PumpEvent, PumpHandle};
use crate::run::lock;
use crate::serve::Settings;

const RETRY: Duration = Duration::from_secs(1);

#[derive(Clone, Default)]
pub(crate) struct Routes(Arc<Mutex<HashMap<TerminalId, PumpHandle>>>);

impl Routes {
    pub(crate) fn insert(&self, id: TerminalId, handle: PumpHandle) {
        lock(&self.0).insert(id, handle);
    }

    pub(crate) fn remove(&self, id: TerminalId) {
        lock(&self.0).remove(&id);
    }

    pub(crate) fn get(&self, id: TerminalId) -> Option<PumpHandle> {
        lock(&self.0).get(&id).cloned()
    }

    pub(crate) fn send(&self, id: TerminalId, event: PumpEvent) {
        if let Some(handle) = self.get(id) {
            handle.send(event);
        }
    }

    pub(crate) fn handles(&self) -> Vec<PumpHandle> {
        lock(&self.0).values().cloned().collect()
    }
}

/// Connects to the keeper when the hub asks for it, and reports to the hub.
pub(crate) struct KeeperConnector {
    pub(crate) settings: Settings,
    pub(crate) routes: Routes,
    pub(crate) hub: mpsc::UnboundedSender<HubEvent>,
}

impl KeeperConnector {
    /// Reconnects at each request of the hub, and retries until a keeper answers. Returns when the hub is gone.
    pub(crate) async fn run(self, mut requests: mpsc::UnboundedReceiver<()>) {
        while requests.recv().await.is_some() {
            while let Err(error) = self.connect().await {
                tracing::error!("{error}");
                let _ = self.hub.send(HubEvent::Keeper(KeeperReport::Unreachable(error.to_string())));
                tokio::time::sleep(RETRY).await;
            }
        }
    }

    pub(crate) async fn connect(&self) -> Result<(), KeeperError> {
        let (link, mut events) =
            client::connect_or_start(&self.settings.paths, &self.settings.executable, true).await?;
        let held = client::list(&link, &mut events).await?;
        let ended: Vec<TerminalId> = held.iter().filter(|held| held.exit.is_some()).map(|held| held.id).collect();
        let screens = self.settings.paths.screens();
        let saved = move |disk: &Disk| ended.into_iter().filter(|id| disk.exists(&screens.join(id.as_str()))).collect();
        let saved_screens = disk::run(saved).await;
        let _ = self.hub.send(HubEvent::Keeper(KeeperReport::Up { link, held, saved_screens }));
        crate::spawn(follow(events, self.routes.clone(), self.hub.clone()));
        Ok(())
    }
}

async fn follow(mut events: KeeperEvents, routes: Routes, hub: mpsc::UnboundedSender<HubEvent>) {
    let report = |report| drop(hub.send(HubEvent::Keeper(report)));
    let mut reported_silent = false;
    loop {
        match events.next().await {
            Ok(KeeperMessage::Event(event)) => forward(event, &routes, &hub),
            Ok(KeeperMessage::Untaken(Untaken::Input { id, writer, sequence })) => {
                let event = KeeperEvent::InputRefused { id, writer, sequence, why: InputRefusal::Untaken };
                routes.send(id, PumpEvent::Keeper(event));
            }
            Ok(KeeperMessage::Untaken(untaken)) => report(KeeperReport::Untaken(untaken, events.why_untaken())),
            Err(error) => return report(KeeperReport::Lost(error.to_string())),
        }
        let silence = events.silence();
        if silence.is_some() != reported_silent {
            reported_silent = silence.is_some();
            report(KeeperReport::Silent(silence));
        }
    }
}

fn forward(event: KeeperEvent, routes: &Routes, hub: &mpsc::UnboundedSender<HubEvent>) {
    match event {
        KeeperEvent::Output { id, .. }
        | KeeperEvent::Resized { id, .. }
        | KeeperEvent::Checkpoint { id, .. }
        | KeeperEvent::InputDone { id, .. }
        | KeeperEvent::InputRefused { id, .. }
        | KeeperEvent::Exited { id, .. } => routes.send(id, PumpEvent::Keeper(event)),
        KeeperEvent::Problem { message } => tracing::warn!("the keeper: {message}"),
        event => drop(hub.send(HubEvent::Keeper(KeeperReport::Event(event)))),
    }
}

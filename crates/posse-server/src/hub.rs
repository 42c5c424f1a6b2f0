//! The owner of all shared state: the existing terminals, their known facts, and the subscribers.
//!
//! [`HubMachine`] decides: it takes one [`HubEvent`] after the other and returns effects. [`Hub`] carries them out and
//! never waits: results of the database, the keeper and the disk come back as events.

mod machine;
mod messages;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::SystemTime;

use posse_api::LogEvent;
use posse_core::audit::{Ended, Entry, Note, Step};
use posse_core::ids::TerminalId;
use posse_files::providers::Providers;
use posse_term::client::{self, KeeperLink};
use posse_term::emulator::{Emulator, HistoryLimit};
use posse_term::paths::Paths;
use posse_term::wire::KeeperRequest;
use tokio::sync::{broadcast, mpsc, oneshot};

use crate::disk::{self, Disk};
use crate::keeper::Routes;
use crate::pump::{self, PumpBeginning, PumpStart};
use crate::recording::Recorder;
use crate::retention;
use crate::store::Writer;
use crate::watched_files::WatchedFiles;

pub(crate) use machine::HubMachine;
pub(crate) use messages::*;

/// The time in which a family may exit by itself before it is killed.
pub(crate) const GRACE_MS: u32 = 3_000;

pub(crate) struct Hub {
    pub(crate) machine: HubMachine,
    pub(crate) paths: Paths,
    pub(crate) store: Writer,
    pub(crate) messages: mpsc::UnboundedSender<HubEvent>,
    pub(crate) events: broadcast::Sender<Arc<LogEvent>>,
    pub(crate) newest: Arc<AtomicI64>,
    pub(crate) routes: Routes,
    pub(crate) recorder: Recorder,
    /// The connection to the keeper, if it exists.
    pub(crate) link: Option<KeeperLink>,
    pub(crate) reconnect: mpsc::UnboundedSender<()>,
    pub(crate) providers: Arc<Providers>,
    pub(crate) files: WatchedFiles,
}

fn hub_time() -> HubTime {
    HubTime { wall: crate::now(), mono: crate::mono() }
}

impl Hub {
    pub(crate) async fn run(mut self, mut queue: mpsc::UnboundedReceiver<HubEvent>) {
        let mut effects = self.machine.start(hub_time());
        loop {
            for effect in effects {
                self.execute(effect);
            }
            if self.machine.finished {
                return;
            }
            let Some(event) = queue.recv().await else { return };
            match &event {
                HubEvent::Keeper(KeeperReport::Up { link, .. }) => self.link = Some(link.clone()),
                HubEvent::Keeper(KeeperReport::Lost(_)) => self.link = None,
                _ => {}
            }
            effects = self.machine.handle(event, hub_time());
        }
    }

    fn execute(&mut self, effect: HubEffect) {
        match effect {
            HubEffect::Write { changes, retry, then, forget } => {
                let messages = self.messages.clone();
                let stored = move |outcome| drop(messages.send(HubEvent::Stored(then, outcome)));
                if retry {
                    let link = self.link.clone();
                    let committed = move || {
                        if let (Some(link), Some(id)) = (link, forget) {
                            link.send(KeeperRequest::Forget { id });
                        }
                    };
                    self.store.handle.write_surely(changes, stored, committed);
                } else {
                    self.store.handle.write(changes, stored);
                }
            }
            HubEffect::Publish(event) => {
                if let Some(seq) = event.seq {
                    self.newest.store(seq, Ordering::Release);
                }
                let _ = self.events.send(Arc::new(*event));
            }
            HubEffect::Reply(reply) => reply(),
            HubEffect::Keeper(request) => {
                if let Some(link) = &self.link {
                    link.send(*request);
                }
            }
            HubEffect::Reconnect => drop(self.reconnect.send(())),
            HubEffect::Confirm(hang_up, reply) => self.confirm(hang_up, reply),
            HubEffect::Health(problems, reply) => drop(reply.send(self.health(problems))),
            HubEffect::LoadTerminal(load) => self.load_terminal(load),
            HubEffect::StartPump(start) => self.start_pump(*start),
            HubEffect::ToPump(id, event) => self.routes.send(id, *event),
            HubEffect::DropPump(id) => self.routes.remove(id),
            HubEffect::Find(id, reply) => drop(reply.send(self.routes.get(id))),
            HubEffect::Record(on) => {
                self.recorder.switch(on);
                for pump in self.routes.handles().into_iter().filter(|_| on) {
                    pump.send(pump::PumpEvent::Command(pump::PumpCommand::Picture));
                }
            }
            HubEffect::RemoveEventsFile(id) => {
                let file = self.paths.events().join(id.as_str());
                in_background(move |disk| drop(disk.remove_file(&file)));
            }
            HubEffect::RemoveFiles(id) => {
                let files = [self.paths.screens(), self.paths.events()].map(|directory| directory.join(id.as_str()));
                in_background(move |disk| files.iter().for_each(|file| drop(disk.remove_file(file))));
                self.recorder.forget(id);
            }
            HubEffect::Tidy(tidy) => self.tidy(tidy),
        }
    }

    fn tidy(&self, tidy: TidyRequest) {
        let (screens, recordings, log) = (self.paths.screens(), self.paths.recordings(), self.paths.log());
        let as_of = SystemTime::now();
        in_background(move |disk| {
            if tidy.scope != TidyScope::Recordings {
                let _ = retention::tidy_files(disk, &screens, &tidy.known);
                let _ = retention::tidy_log(disk, &log);
            }
            if let Err(error) = retention::tidy_recordings(disk, &recordings, &tidy.known, &tidy.running, as_of) {
                tracing::warn!("old recordings cannot be removed: {error}");
            }
        });
    }

    fn load_terminal(&self, load: LoadTerminal) {
        let providers = self.providers.clone();
        let screen = load.screen.then(|| self.paths.screens().join(load.id.as_str()));
        let messages = self.messages.clone();
        in_background(move |disk| {
            let id = load.id;
            let provider = load.provider.map(|provider| providers.load(disk, &provider));
            let provider = provider.and_then(|loaded| {
                loaded.inspect_err(|error| tracing::warn!(terminal = %id, "its screen is not read: {error}")).ok()
            });
            let blob = screen.and_then(|screen| disk.read(&screen).ok());
            let emulator = blob.and_then(|blob| Emulator::restore(&blob, HistoryLimit::default()).ok()).map(Box::new);
            let _ = messages.send(HubEvent::TerminalLoaded { id, load: load.number, provider, emulator });
        });
    }

    fn start_pump(&self, start: PumpStart) {
        let id = start.record.id;
        let link = match start.beginning {
            PumpBeginning::Live { .. } if self.link.is_none() => return, // The loss of the keeper is the next event.
            PumpBeginning::Live { .. } => self.link.clone(),
            PumpBeginning::Ended(..) => None,
        };
        let settings = pump::PumpSettings {
            link,
            last_screen: self.paths.screens().join(id.as_str()),
            events_file: self.paths.events().join(id.as_str()),
            hub: self.messages.clone(),
            store: self.store.handle.clone(),
            recorder: self.recorder.clone(),
            files: self.files.clone(),
        };
        // The route must exist before the keeper answers `Attach`.
        self.routes.insert(id, pump::start(start, settings));
    }

    /// Hangs up a terminal, or only requests a sign of life. Answers when the keeper has taken the request.
    fn confirm(&self, hang_up: Option<TerminalId>, reply: KeeperReply) {
        let Some(link) = &self.link else { return drop(reply.send(Ok(()))) };
        let keeper = link.pid;
        let request = hang_up.map_or(KeeperRequest::List, |id| KeeperRequest::HangUp { id });
        let taken = link.confirm(request);
        crate::spawn(async move {
            // A lost connection is not silence: the daemon reconnects. A hang-up did not happen, though.
            let taken = taken.await.unwrap_or(hang_up.is_none());
            let _ = reply.send(if taken { Ok(()) } else { Err(KeeperSilent(client::silence(keeper))) });
        });
    }

    /// Adds facts that only the processes themselves can provide.
    fn health(&self, problems: HubProblems) -> Option<String> {
        // Also if the keeper got no request since it was stopped.
        let stopped = || {
            let keeper = self.link.as_ref()?.pid?;
            client::is_stopped(keeper).then(|| client::silence(Some(keeper)))
        };
        let keeper = problems.no_keeper.map(|why| format!("no keeper: {why}"));
        let disk = problems.disk.map(|why| why.to_string());
        let problem = problems.keeper_silent.or_else(stopped).or(keeper).or(disk);
        problem.or_else(|| self.store.anchor_problem())
    }
}

/// Completes the entries of answers that a crash interrupted. Returns when they are written, or refused for now.
pub(crate) async fn complete_unfinished(writer: &Writer, unfinished: Vec<Entry>) {
    for Entry { seq, note } in unfinished {
        let note = Note { at: crate::now(), step: Step::Outcome(Ended::cut_off(seq)), ..note };
        let (done, completed) = oneshot::channel();
        writer.handle.write_audit(note, true, move |_| {
            let _ = done.send(());
        });
        let _ = completed.await;
    }
}

fn in_background(work: impl FnOnce(&Disk) + Send + 'static) {
    drop(crate::spawn(disk::run(work)));
}

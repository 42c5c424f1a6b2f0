//! The connections to where terminals live, the keeper and tmux: what concerns one terminal goes to its pump, the rest
//! to the hub. Both speak the same language (`posse_term::wire`), so nothing behind this needs to know which is which.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use posse_core::ids::TerminalId;
use posse_term::client::{self, Events, Heard, KeeperError, Link, Untaken};
use posse_term::emulator::HistoryLimit;
use posse_term::tmux::{self, Socket, TmuxError};
use posse_term::wire::{Event, InputRefusal, Request, Summary};
use tokio::sync::mpsc;

use crate::hub::{Message, News};
use crate::pump::{Event as PumpEvent, Handle};
use crate::record::Backend;
use crate::serve::Settings;
use crate::tmux_server::TmuxServer;

/// How long to wait before a keeper or tmux is tried again: there is nothing to be told by when it can be reached.
const RETRY: Duration = Duration::from_secs(1);

/// Which pump belongs to which terminal, and the keeper's process. The hub writes the former, the connections the latter.
#[derive(Clone, Default)]
pub(crate) struct Routes(Arc<Mutex<HashMap<TerminalId, Handle>>>, Arc<AtomicI32>);

impl Routes {
    pub(crate) fn insert(&self, id: TerminalId, handle: Handle) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(id, handle);
    }

    pub(crate) fn remove(&self, id: TerminalId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
    }

    /// Tells the pump of a running terminal.
    pub(crate) fn send(&self, id: TerminalId, event: PumpEvent) {
        if let Some(handle) = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&id) {
            handle.send(event);
        }
    }

    /// The process of the keeper that was connected last.
    pub(crate) fn keeper(&self) -> Option<i32> {
        Some(self.1.load(Ordering::Relaxed)).filter(|pid| *pid > 0)
    }

    /// All those whose terminals run.
    pub(crate) fn handles(&self) -> Vec<Handle> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }
}

/// A connection the hub asks for.
pub(crate) enum Want {
    Keeper,
    Tmux(TmuxServer),
    /// In a moment.
    TmuxAgain(TmuxServer),
}

/// Connects to backends when the hub wants them, and tells it what they say.
pub(crate) struct Backends {
    pub(crate) settings: Settings,
    pub(crate) routes: Routes,
    pub(crate) hub: mpsc::UnboundedSender<Message>,
}

impl Backends {
    /// Serves the hub's wishes until it is gone, each on its own: one that takes long holds up no other.
    pub(crate) async fn run(self, mut wanted: mpsc::UnboundedReceiver<Want>) {
        let backends = Arc::new(self);
        while let Some(want) = wanted.recv().await {
            tokio::spawn(backends.clone().connect(want));
        }
    }

    async fn connect(self: Arc<Self>, want: Want) {
        match want {
            Want::Keeper => {
                while let Err(error) = self.connect_keeper().await {
                    tracing::error!("{error}");
                    self.tell(Backend::Embedded, News::NotYet(error.to_string()));
                    tokio::time::sleep(RETRY).await;
                }
            }
            Want::Tmux(server) => self.reach_tmux(server).await,
            Want::TmuxAgain(server) => {
                tokio::time::sleep(RETRY).await;
                self.reach_tmux(server).await;
            }
        }
    }

    async fn reach_tmux(&self, server: TmuxServer) {
        let Err(error) = self.connect_tmux(server.clone()).await else { return };
        // Of somebody else's server only tmux itself can say that there is none.
        let gone = match (&error, &server) {
            (TmuxError::NoServer(_), _) => true,
            (_, TmuxServer::Private) => !self.tmux_is_there(&server).await,
            (_, TmuxServer::User { .. }) => false,
        };
        let why = error.to_string();
        self.tell(Backend::Tmux, if gone { News::Failed(why) } else { News::NotYet(why) });
    }

    fn tell(&self, backend: Backend, news: News) {
        let _ = self.hub.send(Message::Backend(backend, news));
    }

    pub(crate) async fn connect_keeper(&self) -> Result<(), KeeperError> {
        let (link, mut events) =
            client::connect_or_start(&self.settings.places, &self.settings.executable, true).await?;
        self.routes.1.store(link.keeper().unwrap_or_default(), Ordering::Relaxed);
        let summaries = client::list(&link, &mut events).await?;
        self.tell(Backend::Embedded, News::Up(link, summaries));
        tokio::spawn(follow_keeper(events, self.routes.clone(), self.hub.clone()));
        Ok(())
    }

    /// Whether an earlier daemon has left anything on this server.
    pub(crate) async fn tmux_is_there(&self, server: &TmuxServer) -> bool {
        tmux::is_there(&self.tmux_settings(server.clone())).await
    }

    fn tmux_settings(&self, server: TmuxServer) -> tmux::Settings {
        let places = &self.settings.places;
        tmux::Settings {
            socket: match server {
                TmuxServer::Private => Socket::Private(places.tmux_socket()),
                TmuxServer::User { name, directory } => Socket::User { name, directory },
            },
            state: places.tmux_state(),
            shim: vec![self.settings.executable.clone().into_os_string(), "shim".into()],
            history: HistoryLimit::default(),
        }
    }

    async fn connect_tmux(&self, server: TmuxServer) -> Result<(), TmuxError> {
        let (link, mut events) = tmux::start(self.tmux_settings(server)).await?;
        let (summaries, earlier) = list(&link, &mut events).await;
        self.tell(Backend::Tmux, News::Up(link, summaries));
        for event in earlier {
            forward(Backend::Tmux, event, &self.routes, &self.hub);
        }
        tokio::spawn(follow_tmux(events, self.routes.clone(), self.hub.clone()));
        Ok(())
    }
}

/// What is there, and what was told before that.
async fn list(link: &Link, events: &mut mpsc::UnboundedReceiver<Event>) -> (Vec<Summary>, Vec<Event>) {
    link.send(Request::List);
    let mut earlier = Vec::new();
    while let Some(event) = events.recv().await {
        match event {
            Event::Listed { summaries } => return (summaries, earlier),
            event => earlier.push(event),
        }
    }
    (Vec::new(), earlier)
}

async fn follow_keeper(mut events: Events, routes: Routes, hub: mpsc::UnboundedSender<Message>) {
    let tell = |news| drop(hub.send(Message::Backend(Backend::Embedded, news)));
    let mut told_silent = false;
    loop {
        match events.next().await {
            Ok(Heard::Event(event)) => forward(Backend::Embedded, event, &routes, &hub),
            Ok(Heard::Untaken(Untaken::Input { id, writer, sequence })) => {
                let event = Event::InputRefused { id, writer, sequence, why: InputRefusal::Untaken };
                routes.send(id, PumpEvent::Keeper(event));
            }
            Ok(Heard::Untaken(untaken)) => tell(News::Untaken(untaken, events.why_untaken())),
            Err(error) => return tell(News::Lost(error.to_string())),
        }
        let silence = events.silence();
        if silence.is_some() != told_silent {
            told_silent = silence.is_some();
            tell(News::Silent(silence));
        }
    }
}

async fn follow_tmux(mut events: mpsc::UnboundedReceiver<Event>, routes: Routes, hub: mpsc::UnboundedSender<Message>) {
    while let Some(event) = events.recv().await {
        forward(Backend::Tmux, event, &routes, &hub);
    }
    let _ = hub.send(Message::Backend(Backend::Tmux, News::Lost("the tmux server has ended".into())));
}

fn forward(backend: Backend, event: Event, routes: &Routes, hub: &mpsc::UnboundedSender<Message>) {
    let news = match event {
        Event::Output { id, .. }
        | Event::Resized { id, .. }
        | Event::Checkpoint { id, .. }
        | Event::InputDone { id, .. }
        | Event::InputRefused { id, .. }
        | Event::Exited { id, .. } => return routes.send(id, PumpEvent::Keeper(event)),
        Event::Spawned { id, pid } => News::Spawned { id, pid },
        Event::SpawnFailed { id, why, message } => {
            News::SpawnFailed { id, why, message: String::from_utf8_lossy(&message).into_owned() }
        }
        Event::Ended { id, left } => News::Ended { id, left },
        Event::Resting => News::Resting,
        Event::Problem { message } => {
            return tracing::warn!("{backend}: {}", String::from_utf8_lossy(&message));
        }
        _ => return,
    };
    let _ = hub.send(Message::Backend(backend, news));
}

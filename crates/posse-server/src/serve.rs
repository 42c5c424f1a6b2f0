//! Putting the daemon together, and taking it apart.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use posse_api::RunKind;
use posse_term::client::KeeperError;
use posse_term::lock::{self, LockError};
use posse_term::paths::{Paths, PathsError};
use tokio::net::UnixListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, oneshot};

use crate::anchor::Anchor;
use crate::api::listen::{self, Place};
use crate::api::{self, App};
use crate::disk::{self, Disk};
use crate::git;
use crate::hub::{Hub, HubCommand, HubEvent, HubMachine};
use crate::keeper::{KeeperConnector, Routes};
use crate::recording::{self, Word};
use crate::store::{self, Found, StoreError, Writer};
use crate::watched_files::WatchedFiles;
use crate::{hub, pump, retention};

/// The time for open responses when the daemon stops.
const FAREWELL: Duration = Duration::from_millis(500);
/// The time in which the previous daemon must have exited.
const LOCK_PATIENCE: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub struct Settings {
    pub paths: Paths,
    /// This program: what a new keeper is started from.
    pub executable: PathBuf,
}

#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error(transparent)]
    Paths(#[from] PathsError),
    #[error(transparent)]
    Lock(#[from] LockError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Keeper(#[from] KeeperError),
    #[error("cannot listen on {path}: {error}")]
    Listen { path: PathBuf, error: io::Error },
    #[error("cannot run the daemon: {0}")]
    Io(#[from] io::Error),
}

#[expect(clippy::disallowed_methods, reason = "the runtime does not run yet")]
pub fn serve(settings: Settings) -> Result<(), ServeError> {
    settings.paths.prepare()?;
    lock::acquire(&settings.paths.daemon_lock(), LOCK_PATIENCE)?.until_exit();
    let _ = posse_files::replace::DAEMON_STARTED.set(std::time::SystemTime::now());
    // One thread is enough for hundreds of terminals, and cheaper than several that wake each other. The disk
    // has a thread of its own.
    let disk = Disk::of_this_thread();
    let (store, found) = store::open(disk, &settings.paths.database(), Anchor::new(settings.paths.clone()))?;
    // Events of agents that ended while no daemon ran. Later this would remove those of a new terminal.
    let running = found.terminals.iter().filter(|record| record.exit.is_none()).map(|record| record.id).collect();
    let _ = retention::tidy_files(&Disk::of_this_thread(), &settings.paths.events(), &running);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let result = runtime.block_on(run(settings, store, found));
    runtime.shutdown_timeout(FAREWELL);
    result
}

async fn run(settings: Settings, store: Writer, found: Found) -> Result<(), ServeError> {
    let (paths, executable) = (settings.paths.clone(), settings.executable.clone());
    // Before a client can read the audit.
    hub::complete_unfinished(&store, found.unfinished).await;
    let socket = paths.daemon_socket();
    let _ = disk::at(&socket, Disk::remove_file).await;
    let listener = UnixListener::bind(&socket).map_err(|error| ServeError::Listen { path: socket.clone(), error })?;

    let (messages, queue) = mpsc::unbounded_channel();
    let (reconnect, reconnects) = mpsc::unbounded_channel();
    let routes = Routes::default();
    let records = found.settings.get(recording::SETTING).is_none_or(|value| value != "off");
    let (recorder, recorder_thread) = recording::start(paths.recordings(), records, {
        let (routes, messages) = (routes.clone(), messages.clone());
        move |word| match word {
            Word::PictureWanted(id) => routes.send(id, pump::PumpEvent::Command(pump::PumpCommand::Picture)),
            Word::Grown => drop(messages.send(HubEvent::RecordingsGrown)),
        }
    });
    git::guard::keep_in(paths.repositories());
    let files = WatchedFiles::start();
    let app = App::new(messages.clone(), paths.clone(), files.clone(), executable, found.newest);
    let keeper = KeeperConnector { settings, routes: routes.clone(), hub: messages.clone() };
    let hub = Hub {
        machine: HubMachine::new(found.terminals, found.inputs, std::process::id()),
        paths: paths.clone(),
        store,
        messages: messages.clone(),
        events: app.events.clone(),
        newest: app.newest.clone(),
        routes,
        recorder,
        link: None,
        reconnect,
        providers: app.providers.clone(),
        files,
    };
    let events = app.events.clone();
    if let Some(place) = found.settings.get(listen::SETTING).and_then(|place| serde_json::from_str::<Place>(place).ok())
        && let Err(error) = listen::open(&app, &place).await
    {
        tracing::error!("cannot listen on {} again: {error}", place.address);
    }
    // Connected only now that the socket accepts: a client that waits for a daemon learns of it from the keeper.
    keeper.connect().await?;
    crate::spawn(keeper.run(reconnects));
    let (stop_serving, stopped_serving) = oneshot::channel::<()>();
    crate::spawn({
        let app = app.clone();
        async move {
            let of_kind = |kind| found.runs.iter().filter(|(of, _)| *of == kind).map(|(_, run)| *run).collect();
            app.loops.resume_all(&app, of_kind(RunKind::Loop)).await;
            app.plans.resume_all(&app, of_kind(RunKind::Plan)).await;
            app.autos.resume_all(&app, of_kind(RunKind::Backlog)).await;
            app.plans.services.stop_files.all_are_resumed();
            app.plans.clean_up(None).await;
            crate::run::retention::tidy(&app).await;
        }
    });
    let server = tokio::spawn(api::serve(listener, app, async {
        let _ = stopped_serving.await;
    }));
    crate::spawn(stop_on_signal(messages));
    tracing::info!("daemon {} listens on {}", posse_api::VERSION, socket.display());
    hub.run(queue).await;
    recorder_thread.finish();
    let _ = disk::at(&socket, Disk::remove_file).await;
    // Fails while the keeper runs: the last of the two removes the directory.
    let _ = disk::at(&paths.runtime, Disk::remove_dir).await;
    let _ = stop_serving.send(());
    let farewell = async {
        let _ = server.await;
        // All followers of the events have received the last one.
        events.closed().await;
    };
    let _ = tokio::time::timeout(FAREWELL, farewell).await;
    tracing::info!("daemon stopped");
    Ok(())
}

async fn stop_on_signal(hub: mpsc::UnboundedSender<HubEvent>) {
    let (Ok(mut term), Ok(mut interrupt)) = (signal(SignalKind::terminate()), signal(SignalKind::interrupt())) else {
        return;
    };
    tokio::select! {
        _ = term.recv() => {}
        _ = interrupt.recv() => {}
    }
    let (reply, _) = oneshot::channel();
    let _ = hub.send(HubEvent::Command(HubCommand::Stop { all: false, reply }));
}

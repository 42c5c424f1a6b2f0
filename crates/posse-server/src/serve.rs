//! Putting the daemon together, and taking it apart.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::time::Duration;

use posse_files::providers::Providers;
use posse_term::client::KeeperError;
use posse_term::lock::{self, LockError};
use posse_term::paths::{Paths, PathsError};
use tokio::net::UnixListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{broadcast, mpsc, oneshot};

use crate::anchor::Anchor;
use crate::api::listen::{self, Listeners, Place};
use crate::api::{self, App};
use crate::auto::Autos;
use crate::disk::{self, Disk};
use crate::git;
use crate::hub::{Hub, HubCommand, HubEvent, HubParams};
use crate::keeper::{KeeperConnector, Routes};
use crate::loops::Loops;
use crate::notify::Notifier;
use crate::plans::Plans;
use crate::recording::{self, Word};
use crate::run::RunServices;
use crate::store::{self, Found, StoreError, Writer};
use crate::watched_files::WatchedFiles;
use crate::{hub, pump};

/// How many events may wait for someone who follows them. Who falls further behind reads the log instead.
const EVENTS_WAITING: usize = 1024;
/// How long open answers may take when the daemon stops.
const FAREWELL: Duration = Duration::from_millis(500);
/// How long a daemon before us may take to be gone for good.
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

/// Runs the daemon until it is told to stop.
#[expect(clippy::disallowed_methods, reason = "the runtime does not run yet")]
pub fn serve(settings: Settings) -> Result<(), ServeError> {
    settings.paths.prepare()?;
    lock::acquire(&settings.paths.daemon_lock(), LOCK_PATIENCE)?.until_exit();
    let _ = posse_files::replace::DAEMON_STARTED.set(std::time::SystemTime::now());
    // One thread is enough for hundreds of terminals, and cheaper than several that wake each other. The disk
    // has a thread of its own.
    let disk = Disk::of_this_thread();
    let (store, found) = store::open(disk, &settings.paths.database(), Anchor::new(settings.paths.clone()))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let result = runtime.block_on(run(settings, store, found));
    runtime.shutdown_timeout(FAREWELL);
    result
}

async fn run(settings: Settings, store: Writer, found: Found) -> Result<(), ServeError> {
    let (paths, executable) = (settings.paths.clone(), settings.executable.clone());
    // Before anybody can look.
    hub::audit::complete_unfinished(&store, found.unfinished).await;
    let newest = Arc::new(AtomicI64::new(found.newest));
    let socket = paths.daemon_socket();
    let _ = disk::at(&socket, Disk::remove_file).await;
    let listener = UnixListener::bind(&socket).map_err(|error| ServeError::Listen { path: socket.clone(), error })?;

    let (messages, queue) = mpsc::unbounded_channel();
    let (events, _) = broadcast::channel(EVENTS_WAITING);
    let (reconnect, reconnects) = mpsc::unbounded_channel();
    let routes = Routes::default();
    let providers = Arc::new(Providers::new(paths.providers()));
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
    let keeper = KeeperConnector { settings, routes: routes.clone(), hub: messages.clone() };
    let hub = Hub::new(HubParams {
        paths: paths.clone(),
        store,
        records: found.terminals,
        messages: messages.clone(),
        events: events.clone(),
        newest: newest.clone(),
        routes: routes.clone(),
        recorder,
        inputs: found.inputs,
        reconnect,
        providers: providers.clone(),
        files: files.clone(),
        executable: executable.clone(),
    });
    let (loops_active, plans_active, autos_active) = (found.runs, found.plans, found.autos);
    let services = RunServices::new(files, paths.database(), executable);
    let app = App {
        hub: messages.clone(),
        events: events.clone(),
        newest,
        paths: paths.clone(),
        listeners: Listeners::default(),
        providers,
        versions: Arc::default(),
        first_starts: Arc::default(),
        notifier: Notifier::default(),
        loops: Loops::new(services.clone(), paths.home.clone()),
        plans: Plans::new(services.clone(), paths.plans()),
        autos: Autos::new(services, paths.autos()),
    };
    if let Some(place) = found.settings.get(listen::SETTING).and_then(|place| serde_json::from_str::<Place>(place).ok())
        && let Err(error) = listen::open(&app, &place).await
    {
        tracing::error!("cannot listen on {} again: {error}", place.address);
    }
    // Connected only now that the socket accepts: whoever waits for a daemon hears of us through the keeper.
    keeper.connect().await?;
    crate::spawn(keeper.run(reconnects));
    let (stop_serving, stopped_serving) = oneshot::channel::<()>();
    crate::spawn({
        let app = app.clone();
        async move {
            app.loops.resume_all(&app, loops_active).await;
            app.plans.resume_all(&app, plans_active).await;
            app.autos.resume_all(&app, autos_active).await;
            app.plans.services.stop_files.all_are_resumed().await;
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
    // Goes if the keeper has left too; whoever leaves last closes the door.
    let _ = disk::at(&paths.runtime, Disk::remove_dir).await;
    let _ = stop_serving.send(());
    let farewell = async {
        let _ = server.await;
        // Whoever follows the events, over TCP too, has been told of our end.
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

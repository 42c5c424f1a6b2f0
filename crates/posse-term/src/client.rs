//! The client side of the keeper's socket: connects to the keeper, and starts one if none runs.

mod pending;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::io::{self, BufRead, BufReader};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use posse_core::ids::TerminalId;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{mpsc, oneshot};

use pending::{PATIENCE, Pending};

use crate::lineage::ProcessStat;
use crate::lock;
use crate::paths::{self, Paths};
use crate::wire::{self, KeeperEvent, KeeperRequest, StampedRequest, TerminalSummary, WireError};

pub use pending::Untaken;

#[derive(Debug, thiserror::Error)]
pub enum KeeperError {
    #[error("no keeper is running")]
    NotRunning,
    #[error("cannot talk to the keeper: {0}")]
    Io(#[from] io::Error),
    #[error("the keeper sent {0}")]
    BadFrame(WireError),
    #[error("the keeper closed the connection")]
    Closed,
    #[error(
        "the running keeper speaks version {0} of the protocol, this posse speaks {ours}; \
         end its terminals with the posse that started them (`posse stop --all`), then try again",
        ours = wire::VERSION
    )]
    Version(u16),
    #[error("cannot start the keeper: {0}")]
    Start(String),
    #[error("{0}")]
    Silent(String),
}

impl From<WireError> for KeeperError {
    fn from(error: WireError) -> Self {
        match error {
            WireError::Version(version) => Self::Version(version),
            error => Self::BadFrame(error),
        }
    }
}

/// The time in which a daemon must start. It takes some ten milliseconds, and longer on an overloaded machine.
const DAEMON_PATIENCE: Duration = Duration::from_secs(30);

/// The time in which a keeper that is leaving must exit.
const LEAVING: Duration = Duration::from_secs(2);

/// Sends requests. Clones share the connection.
#[derive(Clone)]
pub struct KeeperLink {
    requests: mpsc::UnboundedSender<StampedRequest>,
    pending: Arc<Pending>,
    /// The process id of the keeper, if it is known.
    pub pid: Option<i32>,
}

impl KeeperLink {
    /// Creates a link without a keeper, for tests. They receive the requests.
    pub fn unconnected() -> (Self, mpsc::UnboundedReceiver<StampedRequest>) {
        let (requests, sent) = mpsc::unbounded_channel();
        (Self { requests, pending: Arc::new(Pending::new(PATIENCE)), pid: None }, sent)
    }

    /// Queues a request. If the connection is lost, so is the request; [`KeeperEvents`] reports that. It also reports if the
    /// keeper does not take the request in time; then the keeper never executes it.
    pub fn send(&self, request: KeeperRequest) {
        match Untaken::of(&request) {
            Some(untaken) => self.send_stamped(request, untaken, None),
            None => drop(self.requests.send(request.into())),
        }
    }

    /// Sends a request and reports whether the keeper takes it in time. Without a request, a stopped keeper is not noticed.
    pub fn confirm(&self, request: KeeperRequest) -> oneshot::Receiver<bool> {
        let (reply, taken) = oneshot::channel();
        let untaken = Untaken::of(&request).unwrap_or(Untaken::Other);
        self.send_stamped(request, untaken, Some(reply));
        taken
    }

    fn send_stamped(&self, request: KeeperRequest, untaken: Untaken, reply: Option<oneshot::Sender<bool>>) {
        if let Some(stamp) = self.pending.add(untaken, reply) {
            let _ = self.requests.send(StampedRequest { stamp: Some(stamp), request });
        }
    }
}

/// The keeper's messages in order, and the requests that it does not take in time.
pub struct KeeperEvents {
    socket: OwnedReadHalf,
    buffer: Vec<u8>,
    used: usize,
    pending: Arc<Pending>,
    pid: Option<i32>,
}

pub enum KeeperMessage {
    Event(KeeperEvent),
    Untaken(Untaken),
}

impl KeeperEvents {
    pub async fn next(&mut self) -> Result<KeeperMessage, KeeperError> {
        loop {
            if let Some((event, length)) = wire::decode(&self.buffer[self.used..], wire::MAX_FRAME)? {
                self.used += length;
                self.pending.keeper_spoke();
                match event {
                    KeeperEvent::Taken { token, late } => {
                        if let Some(untaken) = self.pending.taken(token, late) {
                            return Ok(KeeperMessage::Untaken(untaken));
                        }
                        continue;
                    }
                    event => return Ok(KeeperMessage::Event(event)),
                }
            }
            self.buffer.drain(..self.used);
            self.used = 0;
            self.buffer.reserve(64 << 10);
            // Messages that have arrived are read first: it may be this process that was stopped.
            let read = tokio::select! {
                biased;
                read = self.socket.read_buf(&mut self.buffer) => read,
                untaken = self.pending.overdue() => return Ok(KeeperMessage::Untaken(untaken)),
            };
            match read {
                Ok(0) => return Err(KeeperError::Closed),
                // The keeper died before it had read everything that was sent.
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Err(KeeperError::Closed),
                read => read?,
            };
        }
    }

    /// Returns the first event that `pick` takes. Fails if a request is given up meanwhile.
    async fn until<T>(&mut self, mut pick: impl FnMut(KeeperEvent) -> Option<T>) -> Result<T, KeeperError> {
        loop {
            match self.next().await? {
                KeeperMessage::Event(event) => {
                    if let Some(picked) = pick(event) {
                        return Ok(picked);
                    }
                }
                KeeperMessage::Untaken(_) => return Err(KeeperError::Silent(self.why_untaken())),
            }
        }
    }

    pub fn why_untaken(&self) -> String {
        self.silence().unwrap_or_else(|| "the keeper was stopped, or too busy to take the request in time".into())
    }

    /// Explains why the keeper does not answer; `None` while it does.
    pub fn silence(&self) -> Option<String> {
        self.pending.is_silent().then(|| silence(self.pid))
    }
}

/// Explains why a keeper does not answer, and what to do about it.
pub fn silence(keeper: Option<i32>) -> String {
    match keeper {
        Some(pid) if is_stopped(pid) => format!(
            "the keeper (process {pid}) is stopped and does not answer; `kill -CONT {pid}` continues it, with its terminals"
        ),
        Some(pid) => format!("the keeper (process {pid}) does not answer; is the machine overloaded?"),
        None => "the keeper does not answer; `posse doctor` looks at it".into(),
    }
}

/// Returns whether a process was stopped by a signal or a debugger.
pub fn is_stopped(pid: i32) -> bool {
    ProcessStat::read(pid).is_some_and(|stat| matches!(stat.state, 'T' | 't'))
}

/// Refuses a socket that another user listens on: that user would see all input.
pub fn require_own(stream: &UnixStream) -> io::Result<()> {
    let (theirs, ours) = (stream.peer_cred()?.uid(), rustix::process::getuid().as_raw());
    if theirs == ours {
        return Ok(());
    }
    let message = format!("another user (uid {theirs}) listens there, not you (uid {ours})");
    Err(io::Error::new(io::ErrorKind::PermissionDenied, message))
}

/// Connects to a running keeper. If `daemon` is set, the keeper restarts the daemon when this connection is lost.
pub async fn connect(socket: &Path, daemon: bool) -> Result<(KeeperLink, KeeperEvents), KeeperError> {
    let stream = UnixStream::connect(socket).await.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => KeeperError::NotRunning,
        // The kernel's queue of waiting connections is full.
        io::ErrorKind::WouldBlock => KeeperError::Silent(silence(None)),
        _ => KeeperError::Io(error),
    })?;
    require_own(&stream)?;
    let pid = stream.peer_cred()?.pid();
    let (reading, writing) = stream.into_split();
    let (requests, queue) = mpsc::unbounded_channel();
    tokio::spawn(write(writing, queue));
    let pending = Arc::new(Pending::new(PATIENCE));
    let link = KeeperLink { requests, pending: pending.clone(), pid };
    let mut events = KeeperEvents { socket: reading, buffer: Vec::new(), used: 0, pending, pid };
    link.send(KeeperRequest::Hello { daemon });
    events.until(|event| (event == KeeperEvent::Hello).then_some(())).await?;
    Ok((link, events))
}

pub async fn list(link: &KeeperLink, events: &mut KeeperEvents) -> Result<Vec<TerminalSummary>, KeeperError> {
    link.send(KeeperRequest::List);
    let listed = |event| if let KeeperEvent::Listed { summaries } = event { Some(summaries) } else { None };
    events.until(listed).await
}

async fn write(mut socket: OwnedWriteHalf, mut queue: mpsc::UnboundedReceiver<StampedRequest>) {
    let (mut requests, mut frames) = (Vec::new(), Vec::new());
    while queue.recv_many(&mut requests, 64).await > 0 {
        requests.drain(..).for_each(|request| wire::encode(&request, &mut frames));
        if socket.write_all(&frames).await.is_err() {
            return; // The reading side reports it.
        }
        frames.clear();
        // A checkpoint makes the buffer large; it does not need to stay large.
        frames.shrink_to(64 << 10);
    }
}

/// Connects to the keeper, starting one from `executable` if none runs.
pub async fn connect_or_start(
    paths: &Paths,
    executable: &Path,
    daemon: bool,
) -> Result<(KeeperLink, KeeperEvents), KeeperError> {
    let leaving = match connect(&paths.keeper_socket(), daemon).await {
        Err(KeeperError::NotRunning) => false,
        Err(KeeperError::Closed) => true,
        other => return other,
    };
    let start = {
        let (paths, executable) = (paths.clone(), executable.to_owned());
        tokio::task::spawn_blocking(move || {
            if leaving {
                // Until it has exited, its socket looks like that of a running keeper.
                drop(lock::acquire(&paths.keeper_lock(), LEAVING));
            }
            start(&paths, &executable)
        })
    };
    start.await.map_err(io::Error::other)??;
    connect(&paths.keeper_socket(), daemon).await
}

/// Starts a keeper and returns when it listens. Of several callers one starts it, the others wait for it.
fn start(paths: &Paths, executable: &Path) -> Result<(), KeeperError> {
    let lock =
        OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(paths.home.join("start.lock"))?;
    lock.lock()?;
    if std::os::unix::net::UnixStream::connect(paths.keeper_socket()).is_ok() {
        return Ok(());
    }
    let mut command = Command::new(executable);
    command.arg("keep").env_clear().envs(inherited(paths)).current_dir("/");
    let log = OpenOptions::new().create(true).append(true).mode(0o600).open(paths.log())?;
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
    // The keeper must not inherit the caller's open files: a lock that a shell holds would stay held as long as the keeper
    // runs. The standard library marks its own files, this marks all others.
    close_fds::set_fds_cloexec_threadsafe(3, &[]);
    let mut child =
        command.spawn().map_err(|error| KeeperError::Start(format!("{}: {error}", executable.display())))?;
    // The keeper writes `ready` when it listens, and closes the pipe if it cannot.
    let mut answer = String::new();
    if let Some(stdout) = child.stdout.take() {
        BufReader::new(stdout).read_line(&mut answer)?;
    }
    if answer == "ready\n" {
        return Ok(());
    }
    let status = child.wait()?;
    Err(KeeperError::Start(format!("it ended at once ({status}); see {}", paths.log().display())))
}

/// Returns the part of the caller's environment that the keeper and the daemon inherit: enough to find programs and to
/// write logs, and nothing that influences later decisions.
fn inherited(paths: &Paths) -> Vec<(&'static str, std::ffi::OsString)> {
    let names = ["PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ", "SHELL", "POSSE_LOG", "RUST_BACKTRACE"];
    let mut variables: Vec<_> = names.into_iter().filter_map(|name| Some((name, std::env::var_os(name)?))).collect();
    variables.push(("POSSE_HOME", paths.home.clone().into_os_string()));
    variables.push((paths::CONFIG_VARIABLE, paths.config.clone().into_os_string()));
    variables
}

/// Ends every terminal of the keeper without a daemon, then the keeper. Returns the number of terminals, and the number of
/// processes that could not be ended.
pub async fn end_all(paths: &Paths, grace_ms: u32) -> Result<(usize, u32), KeeperError> {
    let (link, mut events) = connect(&paths.keeper_socket(), false).await?;
    let held: Vec<TerminalId> = list(&link, &mut events).await?.into_iter().map(|summary| summary.id).collect();
    held.iter().for_each(|id| link.send(KeeperRequest::End { id: *id, grace_ms }));
    let mut ending: BTreeSet<TerminalId> = held.iter().copied().collect();
    let mut left = 0;
    while !ending.is_empty() {
        let ended = |event| if let KeeperEvent::Ended { id, left } = event { Some((id, left)) } else { None };
        let (id, left_of_it) = events.until(ended).await?;
        left += if ending.remove(&id) { left_of_it } else { 0 };
    }
    held.iter().for_each(|id| link.send(KeeperRequest::Forget { id: *id }));
    link.send(KeeperRequest::Rest);
    match events.until(|event| (event == KeeperEvent::Resting).then_some(())).await {
        Ok(()) | Err(KeeperError::Closed) => Ok((held.len(), left)),
        Err(error) => Err(error),
    }
}

/// Makes sure that a daemon is connected to the keeper and returns its process id.
pub async fn start_daemon(paths: &Paths, executable: &Path) -> Result<u32, KeeperError> {
    let (link, mut events) = connect_or_start(paths, executable, false).await?;
    let executable = AsRef::<OsStr>::as_ref(executable).as_bytes().to_vec();
    link.send(KeeperRequest::StartDaemon { executable });
    let see_log = |message: &str| KeeperError::Start(format!("{message}; see {}", paths.log().display()));
    let answer = events.until(|event| match event {
        KeeperEvent::DaemonUp { pid } => Some(Ok(pid)),
        KeeperEvent::DaemonFailed { message } => Some(Err(see_log(&message))),
        _ => None,
    });
    match tokio::time::timeout(DAEMON_PATIENCE, answer).await {
        Ok(answer) => answer?,
        Err(_) => Err(see_log("the daemon was started and does not answer")),
    }
}

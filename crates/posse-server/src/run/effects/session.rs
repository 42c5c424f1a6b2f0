//! One headless session, from its start to its end, through any crash of the daemon.
//!
//! A session runs under the keeper, so it continues when the daemon dies, and it is ended with all processes that it started. Its
//! output goes to files in a directory of its own, which a later daemon reads from the beginning. It reads its prompt from a
//! file, and nothing else (`posse session`). The end of a session is written to a note in that directory before it is reported:
//! no session is started twice under one name.

use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, UNIX_EPOCH};

use jiff::tz::TimeZone;
use posse_agents::headless::{Event, HeadlessRules, Reader, Spawn};
use posse_api::{Create, LogEvent};
use posse_core::engine::hold::Hold;
use posse_core::ids::{Name, TerminalId};
use posse_core::plan::TaskId;
use posse_core::plan::budget::Usage;
use posse_core::plan::limits::{QuotaWaits, Signs, detect};
use posse_core::plan::outcome::{Ended, Evidence};
use posse_core::status::Exit;
use posse_core::time::Wall;
use tokio::sync::{broadcast, mpsc, watch};
use tokio::time::Instant;

use super::facts::Facts;
use super::transcript::SaidLog;
use crate::api::{App, agents};
use crate::disk::{self, Disk};
use crate::hub::{self, SessionChoice};
use crate::plans::briefing::PROMPT;
use crate::pump;
use crate::run::{LaunchContext, StepError, lock};
use crate::watched_files::{WatchScope, WatchedFiles};

/// The time that a session has to tidy up before it is killed (spec §4.4).
const GRACE_MS: u32 = 10_000;
/// The file that records how a session ended.
const NOTE: &str = "end.json";
/// The part of standard error that is read, from its end.
const STDERR: u64 = 64 << 10;
/// The size of one read of the output.
const PIECE: usize = 64 << 10;

pub(crate) struct Order {
    /// The name of its terminal, which no other session ever has.
    pub(crate) name: Name,
    /// The terminal session that it is shown in.
    pub(crate) group: Name,
    /// Not needed by a session that runs already.
    pub(crate) spawn: Result<Spawn, StepError>,
    /// A directory of its own.
    pub(crate) files: PathBuf,
    pub(crate) texts: Arc<HeadlessRules>,
    /// The limits of its duration and of its silence.
    pub(crate) timeout: Duration,
    pub(crate) idle: Duration,
}

/// The end of a session, and its output.
#[derive(Debug)]
pub(crate) struct Over {
    pub(crate) ended: Ended,
    pub(crate) facts: Facts,
    /// The end of its standard error.
    pub(crate) stderr: String,
    /// The time of the last output.
    pub(crate) said_at: Wall,
}

impl Over {
    /// Reports whether the session ended because it had spent its budget. A session that does not report its cost has
    /// no budget: it would be restarted forever.
    pub(crate) fn spent_all(&self) -> bool {
        self.facts.out_of_money() && self.usage().cost_usd.is_some_and(|cost| cost > 0.0)
    }

    /// The usage of the session. One that was never started used nothing.
    pub(crate) fn usage(&self) -> Usage {
        match self.ended {
            Ended::NotStarted(_) => Usage::none(),
            _ => self.facts.usage(),
        }
    }

    /// The evidence for what came of the session, without what it left in its work tree.
    pub(crate) fn evidence<'a>(
        &'a self,
        task: &'a TaskId,
        nonce: &'a str,
        report: Option<&'a str>,
        limit: Option<Hold>,
    ) -> Evidence<'a> {
        Evidence {
            task,
            nonce,
            ended: self.ended.clone(),
            limit,
            result: self.facts.result(),
            report,
            last_message: self.facts.last_words(),
            may_write: false,
            left_work: false,
            deliverables: &[],
        }
    }

    /// The usage limit that the account has reached. `probes`: the number of limits in a row whose end was not known.
    pub(crate) fn limit(&self, probes: u32, waits: &QuotaWaits) -> Option<Hold> {
        let failed = !matches!(self.ended, Ended::Exited(0));
        let signs = Signs { said_at: Some(self.said_at), ..self.facts.limit_signs(failed, &self.stderr) };
        detect(&signs, crate::now(), &TimeZone::system(), probes, waits)
    }
}

#[derive(Clone)]
pub(crate) struct Sessions {
    pub(crate) app: App,
    pub(crate) files: WatchedFiles,
    pub(crate) executable: PathBuf,
}

impl Sessions {
    /// Runs a session to its end, or follows the one of this name. `stop` ends it.
    pub(crate) async fn run(
        &self,
        order: Order,
        context: Option<LaunchContext>,
        mut stop: watch::Receiver<bool>,
        mut heard: impl FnMut(&Event),
    ) -> Over {
        let note = order.files.join(NOTE);
        let known = disk::at(&note, Disk::read).await.ok().and_then(|text| serde_json::from_slice::<Ended>(&text).ok());
        if let Some(ended) = known {
            if let Some(terminal) = self.find(&order.name).await {
                self.end(terminal, &ended).await;
            }
            let stream = Stream::open(&order).await;
            stream.read(&mut heard).await;
            return stream.over(ended, &order).await;
        }
        let terminal = match self.find(&order.name).await {
            Some(terminal) => terminal,
            None => match self.start(&order, context).await {
                Ok(terminal) => terminal,
                Err(error) => {
                    let (ended, facts) = (Ended::NotStarted(error.to_string()), Facts::default());
                    return Over { ended, facts, stderr: String::new(), said_at: crate::now() };
                }
            },
        };
        let stream = Stream::open(&order).await;
        let ended = self.follow(terminal, &order, &stream, &mut stop, &mut heard).await;
        // Before it goes: one that is gone without a note would be started again.
        let written = match serde_json::to_vec(&ended) {
            Ok(text) => disk::at(&note, move |disk, note| disk.write_private_unsynced(note, &text)).await,
            Err(error) => Err(error.into()),
        };
        if let Err(error) = written {
            tracing::warn!("the end of session {} is not written down: {error}", order.name);
        }
        self.end(terminal, &ended).await;
        stream.read(&mut heard).await;
        stream.over(ended, &order).await
    }

    /// Reports whether a session of this name was started: it runs, or has left a note.
    pub(crate) async fn is_known(&self, name: &Name, files: &Path) -> bool {
        disk::at(files.join(NOTE), Disk::exists).await || self.find(name).await.is_some()
    }

    /// Ends the session with all processes that it started, and removes its terminal.
    async fn end(&self, terminal: TerminalId, ended: &Ended) {
        let grace_ms = if matches!(ended, Ended::Exited(_) | Ended::Killed(_)) { 0 } else { GRACE_MS };
        self.app.end_terminal(terminal, grace_ms).await;
    }

    async fn find(&self, name: &Name) -> Option<TerminalId> {
        let views = self.app.ask(hub::HubCommand::List).await.ok()?;
        views.into_iter().find(|view| view.record.name == *name).map(|view| view.record.id)
    }

    async fn start(&self, order: &Order, context: Option<LaunchContext>) -> Result<TerminalId, StepError> {
        let spawn = order.spawn.as_ref().map_err(StepError::clone)?;
        let context = context.ok_or_else(StepError::no_environment)?;
        disk::at(&order.files, Disk::create_dir_all).await?;
        let mut environment = context.environment;
        spawn.unset.iter().for_each(|name| drop(environment.remove(name)));
        environment.extend(spawn.set.clone());
        write_command(&order.files, spawn, environment.keys()).await;
        let file = |name: &str| order.files.join(name).to_string_lossy().into_owned();
        let mut command: Vec<String> = vec![self.executable.to_string_lossy().into_owned(), "session".into()];
        command.extend(["--in".into(), file(PROMPT), "--out".into(), file("stream.jsonl")]);
        command.extend(["--err".into(), file("stderr.log"), "--".into()]);
        command.extend(spawn.argv.iter().cloned());
        let create = Create {
            command,
            name: Some(order.name.to_string()),
            working_directory: spawn.directory.clone(),
            environment,
            ring_bytes: Some(64 << 10),
            ..Create::default()
        };
        Ok(agents::start(&self.app, create, SessionChoice::Any, order.group.clone()).await?.id)
    }

    /// Until it has ended, or has to be ended.
    async fn follow(
        &self,
        terminal: TerminalId,
        order: &Order,
        stream: &Stream,
        stop: &mut watch::Receiver<bool>,
        heard: &mut impl FnMut(&Event),
    ) -> Ended {
        let mut events = self.app.events.subscribe();
        let (tell, mut grown) = mpsc::unbounded_channel();
        let _watch = self.files.watch(&lock(&stream.0).path, WatchScope::GrowingFile, move |_, _| {
            let _ = tell.send(());
        });
        // The watch begins with a scan.
        let _ = grown.recv().await;
        stream.read(heard).await;
        let mut spoke = Instant::now();
        loop {
            let record = match self.app.ask(|reply| hub::HubCommand::Show(terminal, reply)).await {
                // The daemon stops; the session continues, and the next daemon follows it.
                Err(_) => std::future::pending().await,
                Ok(None) => return Ended::Lost,
                Ok(Some(view)) => view.record,
            };
            match record.exit {
                Some(Exit::Code(code)) => return Ended::Exited(code),
                Some(Exit::Signal(signal)) => return Ended::Killed(signal),
                Some(Exit::Lost) => return Ended::Lost,
                None => {}
            }
            // The time while no daemon ran counts too.
            let ran = Duration::from_millis(u64::try_from(crate::now().0 - record.created.0).unwrap_or(0));
            let late = Instant::now() + order.timeout.saturating_sub(ran);
            let is_silent = tokio::select! {
                () = heard_of(&mut events, terminal) => continue,
                Some(()) = grown.recv() => false,
                () = asked_to_stop(stop) => return Ended::Stopped,
                () = self.runs_still(terminal, late) => return Ended::TimedOut,
                () = self.runs_still(terminal, spoke + order.idle) => true,
            };
            if stream.read(heard).await {
                spoke = Instant::now();
            } else if is_silent {
                return Ended::Stalled;
            }
        }
    }

    /// Completes at `then`, if the program is known to run. A program that exited while no daemon ran is not late: its
    /// exit is reported once the keeper's backlog is read.
    async fn runs_still(&self, terminal: TerminalId, then: Instant) {
        tokio::time::sleep_until(then).await;
        let pump = self.app.ask(|reply| hub::HubCommand::Find(terminal, reply)).await;
        let alive = match pump {
            Ok(Some(pump)) => pump.ask(pump::PumpCommand::Alive).await,
            _ => None,
        };
        if alive != Some(true) {
            std::future::pending::<()>().await;
        }
    }
}

/// Waits until something happens to this terminal, or events were missed.
async fn heard_of(events: &mut broadcast::Receiver<Arc<LogEvent>>, terminal: TerminalId) {
    loop {
        match events.recv().await {
            Ok(event) if event.terminal != Some(terminal) => {}
            Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => return,
            Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
        }
    }
}

/// Writes how the session was started, for people: the names of the environment's variables, the hash of the prompt.
async fn write_command<'a>(files: &Path, spawn: &Spawn, variables: impl Iterator<Item = &'a String>) {
    let told = serde_json::json!({
        "argv": spawn.argv,
        "prompt": format!("sha256:{}", crate::sha256(spawn.prompt.as_bytes())),
        "directory": spawn.directory,
        "environment": variables.collect::<Vec<_>>(),
    });
    let told = told.to_string();
    let write = move |disk: &Disk, file: &Path| disk.write_private_unsynced(file, told.as_bytes());
    if let Err(error) = disk::at(files.join("command.json"), write).await {
        tracing::warn!("how a session was started is not written down: {error}");
    }
}

/// Waits for a request to end the session. If the sender is gone, waits forever.
async fn asked_to_stop(stop: &mut watch::Receiver<bool>) {
    if stop.wait_for(|stop| *stop).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// The output of a session.
struct Stream(Arc<Mutex<StreamFile>>);

struct StreamFile {
    path: PathBuf,
    read: u64,
    reader: Reader,
    facts: Facts,
    said: SaidLog,
}

impl Stream {
    async fn open(order: &Order) -> Self {
        let path = order.files.join("stream.jsonl");
        let said = disk::at(&order.files, SaidLog::open).await;
        let (reader, facts) = (Reader::new(order.texts.clone()), Facts::default());
        Self(Arc::new(Mutex::new(StreamFile { path, read: 0, reader, facts, said })))
    }

    /// Reads new output. Reports whether there was any.
    async fn read(&self, heard: &mut impl FnMut(&Event)) -> bool {
        let file = self.0.clone();
        let read_new = move |disk: &Disk| {
            let mut file = lock(&file);
            let before = file.read;
            (file.new_events(disk).unwrap_or_default(), file.read > before)
        };
        let (events, grew) = disk::run(read_new).await;
        for event in events {
            heard(&event);
            lock(&self.0).facts.add(event);
        }
        grew
    }

    async fn over(self, ended: Ended, order: &Order) -> Over {
        let read_last = move |disk: &Disk, errors: &Path| {
            let mut file = lock(&self.0);
            let stderr = end_of(disk, errors);
            let said_at = last_written(disk, &[&file.path, errors]);
            let mut last = file.reader.stderr(stderr.as_bytes());
            last.extend(file.reader.finish());
            for event in last {
                file.said.add(disk, &event);
                file.facts.add(event);
            }
            Over { ended, facts: std::mem::take(&mut file.facts), stderr, said_at }
        };
        disk::at(order.files.join("stderr.log"), read_last).await
    }
}

impl StreamFile {
    fn new_events(&mut self, disk: &Disk) -> std::io::Result<Vec<Event>> {
        let mut file = disk.open_regular(&self.path)?;
        file.seek(SeekFrom::Start(self.read))?;
        let mut piece = vec![0; PIECE];
        let mut events = Vec::new();
        while let Ok(n @ 1..) = file.read(&mut piece) {
            self.read += n as u64;
            events.extend(self.reader.stdout(&piece[..n]));
        }
        events.iter().for_each(|event| self.said.add(disk, event));
        Ok(events)
    }
}

/// Returns the time of the last write to these files. The daemon may have been dead when a session last wrote.
fn last_written(disk: &Disk, files: &[&Path]) -> Wall {
    let written = files.iter().filter_map(|file| {
        let since_1970 = disk.metadata(file).ok()?.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
        i64::try_from(since_1970.as_millis()).ok()
    });
    let now = crate::now();
    written.max().map_or(now, |last| Wall(last).min(now))
}

/// The end of a file, as text.
pub(crate) fn end_of(disk: &Disk, path: &Path) -> String {
    let read = || -> std::io::Result<Vec<u8>> {
        let mut file = disk.open_regular(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(STDERR)))?;
        let mut bytes = Vec::new();
        file.take(STDERR).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    String::from_utf8_lossy(&read().unwrap_or_default()).into_owned()
}

#[cfg(test)]
mod tests;

//! Writes the end of the audit chain to a place outside of it: a file, a command, or the system log. `posse audit
//! verify --anchor` compares the two. Failures are reported to the user; the answer itself does not wait for the
//! anchor.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use posse_api::AuditVerdict;
use posse_core::audit::anchor::{Anchored, compare};
use posse_core::audit::{FlawKind, Mark};
use posse_files::child::ends_within;
use posse_files::operator::{AnchorRule, Operator};
use posse_term::config_files::ConfigFileError;
use posse_term::paths::Paths;
use rustix::fs::OFlags;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::disk::{self, Disk};
use crate::run::lock;
use crate::store::{self, StoreError};

/// Facility `authpriv`, severity `info`.
const PRIORITY: u8 = 10 * 8 + 6;
const COMMAND_LIMIT: Duration = Duration::from_secs(10);

/// Interval and number of checks for entries on their way to the anchor.
const ANCHOR_LOOK: Duration = Duration::from_millis(100);
const ANCHOR_LOOKS: usize = 20;

/// The anchor's current problem, if any, for the daemon's health report.
pub(crate) type AnchorProblem = Arc<Mutex<Option<String>>>;

/// Anchors the heads of one audit. Held by the thread that writes the audit.
pub(crate) struct Anchor {
    paths: Option<Paths>,
    problem: AnchorProblem,
    commands: Option<Sender<(Vec<String>, String)>>,
}

impl Anchor {
    pub(crate) fn new(paths: Paths) -> Self {
        Self { paths: Some(paths), problem: AnchorProblem::default(), commands: None }
    }

    /// Anchors nothing: for audits without a home.
    #[cfg(test)]
    pub(crate) fn none() -> Self {
        Self { paths: None, problem: AnchorProblem::default(), commands: None }
    }

    pub(crate) fn problem(&self) -> AnchorProblem {
        self.problem.clone()
    }

    /// Anchors the end of the chain, as config.toml currently specifies.
    pub(crate) fn head(&mut self, disk: &Disk, end: Mark) {
        let Some(paths) = &self.paths else { return };
        let line = Anchored { home: home_tag(paths), end, at: crate::now() }.to_string();
        let done = match Operator::load(disk, paths).map(|operator| operator.anchor) {
            Err(error) => Err(AnchorFailure::Config(error)),
            Ok(None) => Ok(()),
            Ok(Some(AnchorRule::File(path))) => {
                append(disk, &path, &line).map_err(AnchorFailure::at(&path.to_string_lossy()))
            }
            Ok(Some(AnchorRule::Syslog(socket))) => {
                log(&socket, &line).map_err(AnchorFailure::at(&socket.to_string_lossy()))
            }
            // A command may take its time; nothing else waits for it.
            Ok(Some(AnchorRule::Command(words))) => {
                let problem = self.problem.clone();
                let commands = self.commands.get_or_insert_with(|| {
                    let (commands, queue) = channel::<(Vec<String>, String)>();
                    let _ = disk::thread("anchor", move |disk| {
                        queue.into_iter().for_each(|(words, line)| report(&problem, run(&disk, &words, &line)));
                    });
                    commands
                });
                match commands.send((words, line)) {
                    Ok(()) => return,
                    Err(_) => Err(AnchorFailure::ThreadEnded),
                }
            }
        };
        report(&self.problem, done);
    }
}

/// Distinguishes the audit of this home from others: the name of its socket directory, which is a hash of its path.
pub fn home_tag(paths: &Paths) -> String {
    paths.runtime.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Checks the audit as `posse audit verify` does, and against what was anchored of it. Blocking, and without a daemon.
pub fn verify(
    disk: &Disk,
    paths: &Paths,
    read_anchor: &dyn Fn() -> io::Result<String>,
) -> Result<AuditVerdict, AnchorError> {
    let read = || -> Result<Vec<Anchored>, AnchorError> {
        Ok(read_anchor().map_err(AnchorError::Io)?.lines().filter_map(Anchored::parse).collect())
    };
    let home = home_tag(paths);
    // The anchor first: an entry is written before it is anchored, so what is anchored must be there.
    let mut anchored = read()?;
    let checked = store::verify_audit(disk, &paths.database())?;
    let hashes = store::audit_hashes(disk, &paths.database())?;
    let mut flaws = compare(&anchored, &home, &hashes);
    for _ in 0..ANCHOR_LOOKS {
        // Entries of this very moment may still be on their way to the anchor.
        if !flaws.iter().any(|flaw| flaw.kind == FlawKind::Unanchored) {
            break;
        }
        disk.sleep(ANCHOR_LOOK);
        anchored = read()?;
        flaws.retain(|flaw| flaw.kind != FlawKind::Unanchored);
        let later = compare(&anchored, &home, &hashes);
        flaws.extend(later.into_iter().filter(|flaw| flaw.kind == FlawKind::Unanchored));
    }
    let all = checked.flaws.iter().chain(&flaws).cloned().collect();
    Ok(store::Checked { flaws: all, ..checked }.into())
}

#[derive(Debug, thiserror::Error)]
pub enum AnchorError {
    #[error("cannot read the anchor: {0}")]
    Io(io::Error),
    #[error(transparent)]
    Store(#[from] StoreError),
}

#[derive(Debug, thiserror::Error)]
enum AnchorFailure {
    #[error(transparent)]
    Config(#[from] ConfigFileError),
    #[error("{place}: {error}")]
    Io { place: String, error: io::Error },
    #[error("{0} did not end within {limit} s", limit = COMMAND_LIMIT.as_secs())]
    Late(String),
    #[error("{program} ended with {status}")]
    Failed { program: String, status: ExitStatus },
    #[error("its thread has ended")]
    ThreadEnded,
}

impl AnchorFailure {
    /// An error at this file, socket or program.
    fn at(place: &str) -> impl Fn(io::Error) -> Self {
        let place = place.to_owned();
        move |error| Self::Io { place: place.clone(), error }
    }
}

fn report(problem: &AnchorProblem, done: Result<(), AnchorFailure>) {
    let new = done.err().map(|why| format!("the audit cannot be anchored: {why}"));
    let mut held = lock(problem);
    if let Some(why) = &new
        && held.as_ref() != Some(why)
    {
        tracing::error!("{why}");
    }
    *held = new;
}

fn append(disk: &Disk, path: &Path, line: &str) -> io::Result<()> {
    // A pipe without a reader is an error, and not waited for.
    let flags = OFlags::NONBLOCK.bits() as i32;
    let mut options = OpenOptions::new();
    options.create(true).append(true).mode(0o600).custom_flags(flags);
    let mut file = disk.open(path, &options)?;
    // In one piece: others may append to the same file.
    file.write_all(format!("{line}\n").as_bytes())?;
    file.sync_data().or_else(|error| if error.kind() == io::ErrorKind::InvalidInput { Ok(()) } else { Err(error) })
}

fn log(socket: &Path, line: &str) -> io::Result<()> {
    let sender = UnixDatagram::unbound()?;
    sender.set_nonblocking(true)?;
    let message = format!("<{PRIORITY}>posse[{}]: {line}", std::process::id());
    sender.send_to(message.as_bytes(), socket).map(drop)
}

fn run(disk: &Disk, words: &[String], line: &str) -> Result<(), AnchorFailure> {
    let Some((program, arguments)) = words.split_first() else { return Ok(()) };
    let failed = AnchorFailure::at(program);
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).current_dir("/");
    let mut child = disk.spawn(&mut command).map_err(&failed)?;
    if let Some(mut input) = child.stdin.take() {
        // A command that does not read is judged by how it ends.
        let _ = input.write_all(format!("{line}\n").as_bytes());
    }
    let process = pidfd_open(Pid::from_child(&child), PidfdFlags::empty());
    if !process.and_then(|process| ends_within(&process, COMMAND_LIMIT)).map_err(|error| failed(error.into()))? {
        let _ = child.kill();
        let _ = child.wait();
        return Err(AnchorFailure::Late(program.clone()));
    }
    match child.wait().map_err(&failed)? {
        status if status.success() => Ok(()),
        status => Err(AnchorFailure::Failed { program: program.clone(), status }),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use posse_core::audit::Hash;
    use posse_core::config::{ConfigFormat, ConfigLayer, LayerSource};
    use posse_core::file_problem::FileProblems;

    use super::*;
    use crate::disk::DISK;

    /// The rule of a config.toml; an error if the file is refused.
    fn rule(text: &str) -> Result<Option<AnchorRule>, FileProblems> {
        let text = format!("[audit]\n{text}");
        let read = ConfigLayer::read(LayerSource::User, ConfigFormat::Toml, "config.toml", &text, None);
        read.map(|(layer, _)| Operator::of(&layer).anchor)
    }

    #[test]
    fn an_anchor_is_a_path_a_log_or_a_command() {
        let command = ["logger", "-t", "x"].map(str::to_owned).into();
        for (text, expected) in [
            ("anchor = ''", None),
            ("anchor = '/var/log/posse'", Some(AnchorRule::File("/var/log/posse".into()))),
            ("anchor = 'syslog'", Some(AnchorRule::Syslog("/dev/log".into()))),
            ("anchor = 'syslog:/run/log'", Some(AnchorRule::Syslog("/run/log".into()))),
            ("anchor = ['logger', '-t', 'x']", Some(AnchorRule::Command(command))),
        ] {
            assert_eq!(rule(text), Ok(expected), "{text}");
        }
        for bad in ["anchor = 'here'", "anchor = []", "anchor = ['']", "anchor = true"] {
            assert!(rule(bad).is_err(), "{bad}");
        }
    }

    /// A home with this configuration, and what is anchored of three heads.
    fn anchored(directory: &Path, config: &str) -> AnchorProblem {
        let paths = Paths { home: directory.into(), runtime: directory.join("0123456789ab"), config: directory.into() };
        std::fs::write(directory.join("config.toml"), config).unwrap();
        let mut anchor = Anchor::new(paths);
        for seq in 1..=3 {
            anchor.head(DISK, Mark { seq, hash: Hash::of_text("x") });
        }
        anchor.problem()
    }

    #[test]
    fn each_head_reaches_the_file_the_log_and_the_command() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let seqs = |text: &str| text.lines().filter_map(Anchored::parse).map(|one| one.end.seq).collect::<Vec<_>>();
        let said = |problem: AnchorProblem| problem.lock().unwrap().clone();

        let config = format!("[audit]\nanchor = {:?}", path("file"));
        assert_eq!(said(anchored(directory.path(), &config)), None);
        assert_eq!(seqs(&std::fs::read_to_string(path("file")).unwrap()), [1, 2, 3]);

        let socket = UnixDatagram::bind(path("socket")).unwrap();
        let config = format!("[audit]\nanchor = \"syslog:{}\"", path("socket").display());
        assert_eq!(said(anchored(directory.path(), &config)), None);
        let mut buffer = [0; 1024];
        let length = socket.recv(&mut buffer).unwrap();
        let text = String::from_utf8_lossy(&buffer[..length]).into_owned();
        assert!(text.starts_with("<86>posse["), "{text}");
        assert_eq!(seqs(&text), [1]);

        let config = format!("[audit]\nanchor = ['sh', '-c', 'cat >> {}']", path("by-command").display());
        anchored(directory.path(), &config);
        let give_up = Instant::now() + Duration::from_secs(60);
        while seqs(&std::fs::read_to_string(path("by-command")).unwrap_or_default()) != [1, 2, 3] {
            assert!(Instant::now() < give_up, "the command never ran");
            std::thread::sleep(Duration::from_millis(5)); // Nothing tells of a file alone.
        }
    }

    #[test]
    fn what_cannot_be_anchored_is_told() {
        let directory = tempfile::tempdir().unwrap();
        let said = |config: &str| anchored(directory.path(), config).lock().unwrap().clone().unwrap_or_default();
        assert!(said("[audit]\nanchor = '/nowhere/at/all'").contains("the audit cannot be anchored: /nowhere/at/all"));
        assert!(said("[audit]\nanchor = 'syslog:/nowhere/at/all'").contains("/nowhere/at/all"));
        assert!(said("[audit]\nanchor = 'here'").contains("a path that begins with `/`"));
        assert_eq!(said("[audit]"), "");
        assert!(run(DISK, &["false".into()], "x").unwrap_err().to_string().contains("false ended with"));
    }
}

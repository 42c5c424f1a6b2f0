//! Follows files that agents write line by line. Each line goes to the agent's pump as soon as it is written. Lines
//! that were read are freed on disk, so a long conversation does not fill it.
//!
//! The agent keeps its write position, so the file cannot be truncated. It may keep writing while no daemon reads. The
//! next daemon reads the end of the file, as far as it still matters. A session file is small, and replaced whole.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use posse_agents::Provider;
use posse_agents::account::fill;
use posse_core::ids::TerminalId;
use posse_core::question::ReportEvent;
use posse_core::status::{Claim, Source};
use posse_term::paths::Paths;
use rustix::fs::{FallocateFlags, fallocate};
use serde_json::Value;

use crate::disk::{self, Disk};
use crate::pump::{PumpEvent, PumpHandle};
use crate::run::lock;
use crate::watched_files::{FileWatch, WatchScope, WatchedFiles};

/// The distance from the end at which reading starts. Only the last report counts, and the lines after it are short.
const BACK: u64 = 64 << 10;
/// Maximum length of a line. Longer lines are conversation, not reports, and are skipped.
const LONGEST: usize = 1 << 20;
/// So much is given back to the disk at a time.
const PIECE: u64 = 1 << 20;

/// Makes an empty file for an agent that is about to be started. Only its owner may read it: it will be the whole conversation.
pub(crate) async fn make(paths: &Paths, id: TerminalId) {
    let made = disk::at(paths.events().join(id.as_str()), |disk, file| {
        disk.open(file, OpenOptions::new().write(true).create_new(true).mode(0o600))
    });
    if let Err(error) = made.await {
        tracing::warn!(terminal = %id, "the events of this agent will not be read: {error}");
    }
}

/// Sends to the pump what the agent writes there, until the watch is dropped.
pub(crate) fn follow(files: &WatchedFiles, file: &Path, provider: Arc<Provider>, pump: PumpHandle) -> FileWatch {
    let path = file.to_owned();
    let mut reader = None;
    files.watch(file, WatchScope::GrowingFile, move |disk, _| {
        if reader.is_none() {
            reader = Reader::open(disk, &path).ok();
        }
        if let Some(open) = &mut reader {
            let read = open.read(disk, &provider, |(said, report)| pump.send(PumpEvent::Said(said, report)));
            if let Err(error) = read {
                tracing::warn!("{} cannot be read: {error}", path.display());
            }
        }
    })
}

/// The agent state and the question event that a line reports.
type LineMeaning = (Option<(Source, Claim)>, Option<ReportEvent>);

/// Reads on where it was. The first byte is taken away once it was read, so that another one there is news.
struct Reader {
    file: File,
    /// Up to where it was read, and up to where it was given back.
    at: u64,
    freed: u64,
    /// The start of an incomplete line. `None`: of a line that is skipped.
    line: Option<Vec<u8>>,
    before: Option<Value>,
    /// This much was there already; of that only the last word counts.
    old: u64,
}

impl Reader {
    fn open(disk: &Disk, file: &Path) -> io::Result<Self> {
        let file = disk.open(file, OpenOptions::new().read(true).write(true))?;
        let old = file.metadata()?.len();
        let at = old.saturating_sub(BACK);
        if at > 0 {
            file.write_all_at(&[0], 0)?;
        }
        // In the middle of a line, unless it is the beginning.
        let line = (at == 0).then(Vec::new);
        Ok(Self { file, at, freed: 0, line, before: None, old })
    }

    fn read(&mut self, _: &Disk, provider: &Provider, mut tell: impl FnMut(LineMeaning)) -> io::Result<()> {
        let mut buffer = [0; 16 << 10];
        let mut last = None;
        if self.starts_over()? {
            // Lines since the restart only report the start, so drop them. The agent writes on behind them.
            self.file.set_len(0)?;
            (self.at, self.freed, self.old) = (0, 0, 0);
            (self.line, self.before) = (Some(Vec::new()), None);
        }
        loop {
            let length = self.file.read_at(&mut buffer, self.at)?;
            if length == 0 {
                break;
            }
            let is_old = self.at < self.old;
            for meaning in self.take(&buffer[..length], provider) {
                if is_old {
                    last = Some(meaning);
                } else {
                    tell(meaning);
                }
            }
            if self.at == 0 {
                self.file.write_all_at(&[0], 0)?;
            }
            self.at += length as u64;
            if self.at >= self.old
                && let Some(meaning) = last.take()
            {
                tell(meaning);
            }
        }
        self.free();
        Ok(())
    }

    /// Reports whether the file has data at its first byte again: an agent that restarts itself writes from the
    /// beginning.
    fn starts_over(&self) -> io::Result<bool> {
        let mut first = [0];
        Ok(self.at > 0 && self.file.read_at(&mut first, 0)? == 1 && first != [0])
    }

    /// Gives back to the disk what was read, a good deal at a time: the agent waits meanwhile if it wants to write. Where
    /// the disk cannot do that the file grows, and goes with the terminal.
    fn free(&mut self) {
        let holes = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        if self.at - self.freed >= PIECE {
            let _ = fallocate(&self.file, holes, self.freed, self.at - self.freed);
            self.freed = self.at;
        }
    }

    /// Returns the meaning of the lines that end in these bytes.
    fn take(&mut self, bytes: &[u8], provider: &Provider) -> Vec<LineMeaning> {
        let mut all = Vec::new();
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (piece, ends) = piece.strip_suffix(b"\n").map_or((piece, false), |line| (line, true));
            if let Some(line) = &mut self.line {
                // Zeros are where nothing is any more.
                line.extend(piece.iter().filter(|byte| **byte != 0));
            }
            self.line.take_if(|line| line.len() > LONGEST);
            if !ends {
                continue;
            }
            let line = self.line.replace(Vec::new());
            let value = line.and_then(|line| serde_json::from_slice::<Value>(&line).ok());
            if let Some(value) = &value {
                let before = self.before.as_ref();
                let signals = &provider.manifest.signals;
                let meaning = signals.event(value, before);
                all.extend((meaning != (None, None)).then_some(meaning));
            }
            self.before = value;
        }
        all
    }
}

/// Maximum size of a session file; a larger file is something else.
const SESSION_FILE: u64 = 64 << 10;

/// Sends the file's content to the pump, now and whenever the file changes.
pub(crate) fn watch_session(files: &WatchedFiles, file: &Path, pump: PumpHandle) -> FileWatch {
    let path = file.to_owned();
    files.watch(file, WatchScope::CompleteFile, move |disk, _| send_content(disk, &path, &pump))
}

/// Returns the session file of a running program. A pattern has `{pid}`, and `{NAME}` for a variable of its environment; the
/// first that can be filled in counts.
pub(crate) fn locate_session(disk: &Disk, patterns: &[String], pid: u32) -> Option<PathBuf> {
    if patterns.is_empty() {
        return None;
    }
    let environment = disk.read(Path::new(&format!("/proc/{pid}/environ"))).ok()?;
    let value = |name: &str| match name {
        "pid" => Some(pid.to_string().into()),
        name => {
            let mut variables = environment.split(|byte| *byte == 0);
            let value = |variable: &[u8]| Some(variable.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?.to_vec());
            variables.find_map(|variable| value(variable).filter(|value| !value.is_empty())).map(OsString::from_vec)
        }
    };
    patterns.iter().find_map(|pattern| fill(pattern, value))
}

fn send_content(disk: &Disk, file: &Path, pump: &PumpHandle) {
    let content = disk.read_bounded(file, SESSION_FILE).ok().and_then(|text| serde_json::from_slice(&text).ok());
    if let Some(content) = content {
        pump.send(PumpEvent::SessionFile(content));
    }
}

/// Writes the hook files through which an agent reports to posse, and returns their directory. `None`: there are none,
/// or they cannot be written, so only the screen shows the state. All terminals share them; they are written only if
/// they changed.
pub(crate) async fn lay_out_hooks(paths: &Paths, provider: Arc<Provider>) -> Option<String> {
    let has_files = |provider: &Provider| {
        let hooks = provider.manifest.launch.as_ref().and_then(|launch| launch.hooks.as_ref());
        hooks.is_some_and(|hooks| !hooks.files.is_empty())
    };
    if !has_files(&provider) {
        return None;
    }
    let directory = paths.hook_files(&provider.manifest.id);
    let place = directory.to_str()?.to_owned();
    match disk::at(directory, move |disk, directory| write_hooks(disk, directory, &provider)).await {
        Ok(()) => Some(place),
        Err(error) => {
            tracing::warn!("{place}: {error}; agents that need what is there are started without their hooks");
            None
        }
    }
}

/// Agents are started several at a time, and these files are the same for all of them.
static WRITING: Mutex<()> = Mutex::new(());

fn write_hooks(disk: &Disk, directory: &Path, provider: &Provider) -> io::Result<()> {
    let _alone = lock(&WRITING);
    disk.create_private_dir(directory)?;
    let hooks = provider.manifest.launch.as_ref().and_then(|launch| launch.hooks.as_ref());
    for (name, text) in hooks.iter().flat_map(|hooks| &hooks.files) {
        let plain = !name.is_empty() && !name.starts_with('.') && !name.contains('/');
        if !plain {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{name:?} is no name for a file")));
        }
        let path = directory.join(name);
        if disk.read(&path).ok().as_deref() != Some(text.as_bytes()) {
            disk.write_private(&path, text.as_bytes())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    use super::*;
    use crate::disk::DISK;

    const RULES: &str = r#"
        id = "x"
        name = "X"
        [[signals.events]]
        if = { type = "begin" }
        means = "working"
        [[signals.events]]
        if = { type = "end" }
        unless_after = { tool = true }
        means = "ready"
        [screen]
        [[screen.rule]]
        id = "any"
        status = "idle"
        why = "It is only read."
    "#;

    struct Case {
        provider: Provider,
        path: std::path::PathBuf,
        file: File,
        _directory: tempfile::TempDir,
    }

    impl Case {
        fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("events");
            File::create(&path).unwrap();
            let file = OpenOptions::new().write(true).open(&path).unwrap();
            Self { provider: Provider::parse(RULES).unwrap(), path, file, _directory: directory }
        }

        fn write(&mut self, text: &str) {
            self.file.write_all(text.as_bytes()).unwrap();
        }

        fn read(&self, reader: &mut Reader) -> Vec<Claim> {
            let mut all = Vec::new();
            reader.read(DISK, &self.provider, |(said, _)| all.extend(said.map(|(_, claim)| claim))).unwrap();
            all
        }
    }

    #[test]
    fn lines_are_told_when_they_are_complete() {
        let mut case = Case::new();
        let mut reader = Reader::open(DISK, &case.path).unwrap();
        assert_eq!(case.read(&mut reader), []);
        case.write("{\"type\": \"beg");
        assert_eq!(case.read(&mut reader), []);
        case.write("in\"}\nnot json\n{\"type\": \"end\"}\n{\"type\": \"begin\"");
        assert_eq!(case.read(&mut reader), [Claim::Working, Claim::Ready]);
        case.write("}\n{\"tool\": true}\n{\"type\": \"end\"}\n");
        assert_eq!(case.read(&mut reader), [Claim::Working], "what comes after a tool is no end");
    }

    #[test]
    fn of_what_was_there_before_the_last_word_counts() {
        let mut case = Case::new();
        case.write(&"{\"type\": \"begin\"}\n".repeat(10_000));
        case.write("{\"type\": \"end\"}\n{\"type\": \"begin\"}\n{}\n");
        let mut reader = Reader::open(DISK, &case.path).unwrap();
        assert_eq!(case.read(&mut reader), [Claim::Working]);
        case.write("{\"type\": \"end\"}\n");
        assert_eq!(case.read(&mut reader), [Claim::Ready]);
    }

    #[test]
    fn long_lines_are_passed_over_and_what_was_read_is_given_back() {
        let mut case = Case::new();
        let mut reader = Reader::open(DISK, &case.path).unwrap();
        case.write(&format!("{{\"type\": \"begin\", \"text\": \"{}\"}}\n", "x".repeat(4 << 20)));
        case.write("{\"type\": \"end\"}\n");
        assert_eq!(case.read(&mut reader), [Claim::Ready]);
        let left = case.file.metadata().unwrap();
        assert!(left.len() > 4 << 20 && left.blocks() * 512 < PIECE, "{} blocks", left.blocks());
        case.write("{\"type\": \"begin\"}\n");
        assert_eq!(case.read(&mut reader), [Claim::Working], "the agent goes on where it was");
        case.write("{\"type\": \"end\"}\n");
        assert_eq!(case.read(&mut Reader::open(DISK, &case.path).unwrap()), [Claim::Ready], "the next daemon, too");
    }

    #[test]
    fn an_agent_that_starts_itself_anew_is_heard_from_the_beginning() {
        let mut case = Case::new();
        let mut reader = Reader::open(DISK, &case.path).unwrap();
        case.write("{\"type\": \"begin\"}\n{\"type\": \"end\"}\n{}\n{}\n{}\n");
        assert_eq!(case.read(&mut reader), [Claim::Working, Claim::Ready]);
        case.file = OpenOptions::new().write(true).open(&case.path).unwrap();
        case.write("{\"type\": \"start\"}\n");
        assert_eq!(case.read(&mut reader), []);
        case.write("{\"type\": \"begin\"}\n");
        assert_eq!(case.read(&mut reader), [Claim::Working]);
        case.write(&"{}\n".repeat(99));
        case.write("{\"type\": \"end\"}\n");
        assert_eq!(case.read(&mut reader), [Claim::Ready]);
        assert_eq!(case.read(&mut reader), []);
    }

    fn mole(name: &str, text: &str) -> Provider {
        let manifest = format!(
            "id = 'mole'\nname = 'Mole'\n[launch]\nprogram = 'mole'\ninstall = 'x'\n[launch.modes]\nask = {{}}\n\
             [launch.hooks]\nfiles = {{ '{name}' = '{text}' }}\n[screen]\n"
        );
        Provider::parse(&manifest).unwrap()
    }

    #[test]
    fn files_are_written_once_and_for_their_owner_only() {
        let temp = tempfile::tempdir().unwrap();
        let directory = temp.path().join("hooks/mole");
        write_hooks(DISK, &directory, &mole("mole.js", "one")).unwrap();
        let path = directory.join("mole.js");
        let first = std::fs::metadata(&path).unwrap();
        assert_eq!(first.permissions().mode() & 0o777, 0o600);
        write_hooks(DISK, &directory, &mole("mole.js", "one")).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().ino(), first.ino(), "it is the same");
        write_hooks(DISK, &directory, &mole("mole.js", "two")).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "two");
        for name in ["../mole.js", "/mole.js", ".mole"] {
            assert!(write_hooks(DISK, &directory, &mole(name, "three")).is_err(), "{name}");
        }
    }
}

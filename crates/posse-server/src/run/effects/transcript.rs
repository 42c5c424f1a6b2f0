//! The transcript of a session, next to its raw stream: one event per line with the time at which it was read, the same for
//! every agent, and without secrets. For people; a run does not depend on it.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use jiff::Timestamp;
use posse_agents::headless::Event;
use posse_core::secrets::mask_json;

use crate::disk::Disk;

/// Its name in the session's directory.
pub(crate) const NAME: &str = "said.jsonl";

pub(super) struct SaidLog {
    file: Option<File>,
    /// The number of events in the file. A stream gives the same events whenever it is read, so these are the first.
    written: usize,
}

impl SaidLog {
    /// Opens the file in this directory and continues it. If it cannot be written, the session runs without.
    pub(super) fn open(disk: &Disk, directory: &Path) -> Self {
        let open = || -> std::io::Result<(File, usize)> {
            let mut options = File::options();
            options.create(true).truncate(false).read(true).write(true).mode(0o600);
            let mut file = disk.open(&directory.join(NAME), &options)?;
            let mut text = Vec::new();
            file.read_to_end(&mut text)?;
            // A line that was cut off by a crash is written again.
            let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
            file.set_len(whole as u64)?;
            file.seek(SeekFrom::Start(whole as u64))?;
            Ok((file, text[..whole].iter().filter(|byte| **byte == b'\n').count()))
        };
        match open() {
            Ok((file, written)) => Self { file: Some(file), written },
            Err(error) => {
                tracing::warn!("{}: {error}", directory.join(NAME).display());
                Self { file: None, written: 0 }
            }
        }
    }

    pub(super) fn add(&mut self, _: &Disk, event: &Event) {
        if self.written > 0 {
            self.written -= 1;
            return;
        }
        let Some(file) = &mut self.file else { return };
        let mut line = serde_json::json!({ "at": Timestamp::now(), "event": event });
        mask_json(&mut line);
        if let Err(error) = file.write_all(format!("{line}\n").as_bytes()) {
            tracing::warn!("what a session says is not written down any more: {error}");
            self.file = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use posse_api::SaidLine;

    use super::*;
    use crate::disk::DISK;

    #[test]
    fn who_comes_after_a_crash_repeats_nothing_and_loses_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(NAME);
        let secret = format!("ghp_{}", "a1".repeat(18));
        let events = [Event::Said(format!("the key is {secret}")), Event::Warning("two".into()), Event::Cost(None)];
        let read = || -> Vec<Event> {
            let text = std::fs::read_to_string(&path).unwrap();
            text.lines().map(|line| serde_json::from_str::<SaidLine>(line).unwrap().event).collect()
        };
        let mut log = SaidLog::open(DISK, directory.path());
        events[..2].iter().for_each(|event| log.add(DISK, event));
        // Cut off in the middle of the second line.
        let length = std::fs::metadata(&path).unwrap().len();
        File::options().write(true).open(&path).unwrap().set_len(length - 3).unwrap();
        let mut log = SaidLog::open(DISK, directory.path());
        events.iter().for_each(|event| log.add(DISK, event));
        let masked = Event::Said("the key is ghp_[masked]".into());
        assert_eq!(read(), [masked, events[1].clone(), events[2].clone()]);
        let mut log = SaidLog::open(DISK, directory.path());
        events.iter().for_each(|event| log.add(DISK, event));
        assert_eq!(read().len(), 3, "the whole stream, read again");
    }
}

//! Limits growth: removes old or excess data, at start and periodically.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use posse_core::ids::TerminalId;
use posse_core::time::Wall;

use crate::disk::Disk;
use crate::record::Record;

/// Ended terminals and events are kept this long.
pub(crate) const AGE: Duration = Duration::from_secs(14 * 24 * 3600);
/// Maximum number of events kept, regardless of age: about 50 MB.
pub(crate) const EVENTS: i64 = 200_000;
pub(crate) const ROUND: u64 = 10_000;
/// The maximum size of the log file, and the size of its end that is kept.
const LOG: u64 = 4 << 20;
const LOG_KEPT: u64 = 1 << 20;

pub(crate) const RECORDINGS: u64 = 1 << 30;

/// Returns ended terminals that were not viewed for too long.
pub(crate) fn expired<'a>(records: impl Iterator<Item = &'a Record>, now: Wall) -> Vec<TerminalId> {
    let oldest = now.0 - AGE.as_millis() as i64;
    records.filter(|r| r.exit.is_some() && r.last_active.0 < oldest).map(|r| r.id).collect()
}

/// Removes files of other terminals than these: last screens, or what agents have written down.
pub(crate) fn tidy_files(disk: &Disk, directory: &Path, known: &BTreeSet<TerminalId>) -> io::Result<()> {
    for entry in disk.read_dir(directory)? {
        let entry = entry?;
        let id = entry.file_name().to_str().and_then(|name| name.parse::<TerminalId>().ok());
        if id.is_none_or(|id| !known.contains(&id)) {
            disk.remove_file(&entry.path())?;
        }
    }
    Ok(())
}

struct Recording {
    path: PathBuf,
    id: Option<TerminalId>,
    /// An older part of a recording that continues in another file.
    older: bool,
    bytes: u64,
    modified: SystemTime,
}

/// Removes recordings of removed terminals, and the oldest ones above the size limit. `known` was current at `as_of`.
pub(crate) fn tidy_recordings(
    disk: &Disk,
    directory: &Path,
    known: &BTreeSet<TerminalId>,
    running: &BTreeSet<TerminalId>,
    as_of: SystemTime,
) -> io::Result<()> {
    let mut files = Vec::new();
    for entry in disk.read_dir(directory)? {
        let entry = entry?;
        // Gone meanwhile, perhaps.
        let Ok(found) = entry.metadata() else { continue };
        let name = entry.file_name();
        let stem = name.to_str().and_then(|name| name.strip_suffix(".cast")).unwrap_or_default();
        let (id, older) = stem.strip_suffix(".1").map_or((stem, false), |id| (id, true));
        let (bytes, modified) = (found.len(), found.modified()?);
        files.push(Recording { path: entry.path(), id: id.parse().ok(), older, bytes, modified });
    }
    // Of a terminal that was started since, nothing was known.
    files.retain(|file| file.modified < as_of || file.id.is_some_and(|id| known.contains(&id)));
    for path in surplus(files, known, running, RECORDINGS) {
        disk.remove_file(&path)?;
    }
    Ok(())
}

/// Selects recordings to remove: first those of removed terminals, then the oldest of ended terminals, then older parts
/// of running ones, until the size fits. Files being written stay.
fn surplus(
    mut files: Vec<Recording>,
    known: &BTreeSet<TerminalId>,
    running: &BTreeSet<TerminalId>,
    limit: u64,
) -> Vec<PathBuf> {
    let is = |file: &Recording, of: &BTreeSet<TerminalId>| file.id.is_some_and(|id| of.contains(&id));
    let mut gone: Vec<PathBuf> = files.extract_if(.., |file| !is(file, known)).map(|file| file.path).collect();
    let mut total: u64 = files.iter().map(|file| file.bytes).sum();
    files.retain(|file| file.older || !is(file, running));
    files.sort_by_key(|file| (is(file, running), file.modified));
    for file in files {
        if total <= limit {
            break;
        }
        total -= file.bytes;
        gone.push(file.path);
    }
    gone
}

/// Empties a log that has become too large, keeping its end in a second file. Writers continue at its new end.
pub(crate) fn tidy_log(disk: &Disk, path: &Path) -> io::Result<()> {
    let mut file = disk.open(path, File::options().read(true).write(true))?;
    let length = file.metadata()?.len();
    if length <= LOG {
        return Ok(());
    }
    file.seek(SeekFrom::Start(length - LOG_KEPT))?;
    let mut end = Vec::new();
    file.read_to_end(&mut end)?;
    disk.write_private(&path.with_extension("log.1"), &end)?;
    file.set_len(0)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    use crate::disk::DISK;

    #[test]
    fn a_log_is_cut_and_its_end_kept() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("posse.log");
        let mut appending = File::options().create(true).append(true).open(&path).unwrap();
        let write = |file: &mut File, text: &str| io::Write::write_all(file, text.as_bytes()).unwrap();
        write(&mut appending, "short\n");
        tidy_log(DISK, &path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "short\n");
        write(&mut appending, &"x".repeat(LOG as usize));
        write(&mut appending, "the end\n");
        tidy_log(DISK, &path).unwrap();
        write(&mut appending, "after\n");
        assert_eq!(fs::read_to_string(&path).unwrap(), "after\n");
        let kept = fs::read_to_string(path.with_extension("log.1")).unwrap();
        assert!(kept.len() as u64 == LOG_KEPT && kept.ends_with("the end\n"));
    }

    #[test]
    fn too_many_recordings_go_oldest_first() {
        let id = TerminalId::from_random;
        let file = |number: u32, older: bool, bytes: u64, age: u64| Recording {
            path: format!("{number}{}", if older { ".1" } else { "" }).into(),
            id: Some(id(number)),
            older,
            bytes,
            modified: SystemTime::UNIX_EPOCH + Duration::from_secs(1000 - age),
        };
        let files = || {
            vec![
                file(1, false, 10, 5),
                file(1, true, 10, 6),
                file(2, false, 10, 1),
                file(3, false, 10, 9), // runs
                file(3, true, 10, 10),
                file(4, false, 10, 0), // of nobody
            ]
        };
        let (known, running) = (BTreeSet::from([id(1), id(2), id(3)]), BTreeSet::from([id(3)]));
        let gone = |limit| -> Vec<String> {
            surplus(files(), &known, &running, limit).iter().map(|path| path.display().to_string()).collect()
        };
        assert_eq!(gone(50), ["4"]);
        assert_eq!(gone(45), ["4", "1.1"]);
        assert_eq!(gone(30), ["4", "1.1", "1"]);
        assert_eq!(gone(0), ["4", "1.1", "1", "2", "3.1"], "what is being written stays");
    }

    #[test]
    fn files_of_nobody_go() {
        let directory = tempfile::tempdir().unwrap();
        let known = TerminalId::from_random(1);
        for name in [known.as_str(), "00000002", "00000003.new", "nonsense"] {
            fs::write(directory.path().join(name), "x").unwrap();
        }
        tidy_files(DISK, directory.path(), &BTreeSet::from([known])).unwrap();
        let left: Vec<_> = fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, [known.as_str()]);
    }
}

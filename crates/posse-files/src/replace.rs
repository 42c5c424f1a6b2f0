//! Replacing files as a whole.

use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::OnceLock;
use std::time::{Duration, SystemTime};

use posse_core::finalize::UNFINISHED;
use tempfile::NamedTempFile;

use crate::disk::Disk;

/// A text that has waited this long for its place was left behind by a crash.
const LEFT: Duration = Duration::from_secs(60);

/// The start time of this daemon, by the file system's clock. Not set outside a daemon.
pub static DAEMON_STARTED: OnceLock<SystemTime> = OnceLock::new();

pub fn beside(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("/"))
}

/// Replaces a file: writes a temporary file beside it and renames that, so that no reader sees half of the text.
pub fn replace(disk: &Disk, path: &Path, text: &str) -> io::Result<()> {
    let name: String = path.file_name().unwrap_or_default().to_string_lossy().chars().take(40).collect();
    let prefix = format!("{UNFINISHED}{name}-");
    disk.persist(prepare(disk, path, &prefix, text)?, path)?;
    let left = |entry: &std::fs::DirEntry| {
        let changed = entry.metadata().and_then(|found| found.modified()).ok();
        // An earlier daemon's file is left over however young it is: that daemon is gone.
        let from_before = || changed.zip(DAEMON_STARTED.get()).is_some_and(|(changed, started)| changed < *started);
        changed.and_then(|changed| changed.elapsed().ok()).is_some_and(|age| age > LEFT) || from_before()
    };
    for entry in called(disk, beside(path), &prefix).filter(left) {
        let _ = disk.remove_file(&entry.path());
    }
    Ok(())
}

/// Lists the files whose names begin like this.
pub fn called<'a>(disk: &Disk, directory: &Path, prefix: &'a str) -> impl Iterator<Item = std::fs::DirEntry> + use<'a> {
    let entries = disk.read_dir(directory).into_iter().flatten().flatten();
    entries.filter(move |entry| entry.file_name().to_string_lossy().starts_with(prefix))
}

/// Writes the text into a temporary file beside this one, with the same permissions.
pub fn prepare(disk: &Disk, path: &Path, prefix: &str, text: &str) -> io::Result<NamedTempFile> {
    let mut file = disk.temporary_file(beside(path), prefix)?;
    file.write_all(text.as_bytes())?;
    let mode = disk.metadata(path).map_or(0o644, |old| old.permissions().mode());
    file.as_file().set_permissions(std::fs::Permissions::from_mode(mode))?;
    file.as_file().sync_all()?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::DISK;

    #[test]
    fn who_may_read_it_stays() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("plan.yaml");
        std::fs::write(&path, "a").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        replace(DISK, &path, "b").unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    }

    #[test]
    fn what_a_crash_has_left_beside_it_goes() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("item.md");
        let beside = |name: &str, age: u64| {
            let file = std::fs::File::create(directory.path().join(name)).unwrap();
            file.set_modified(std::time::SystemTime::now() - Duration::from_secs(age)).unwrap();
        };
        beside(".posse-item.md-old", 120);
        beside(".posse-item.md-new", 0);
        beside(".posse-other.md-old", 120);
        replace(DISK, &path, "a").unwrap();
        let mut names: Vec<_> = std::fs::read_dir(directory.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, [".posse-item.md-new", ".posse-other.md-old", "item.md"]);
    }
}

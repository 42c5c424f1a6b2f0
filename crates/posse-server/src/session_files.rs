//! Files in which agents write down what they do.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use crate::disk::Disk;
use crate::pump::{PumpEvent, PumpHandle};
use crate::watched_files::{FileWatch, WatchScope, WatchedFiles};

/// A file that says a few words; more is something else.
const MOST: u64 = 64 << 10;

/// Sends the file's content to the pump, now and whenever the file changes.
pub(crate) fn watch(files: &WatchedFiles, file: &Path, pump: PumpHandle) -> FileWatch {
    let path = file.to_owned();
    files.watch(file, WatchScope::CompleteFile, move |disk, _| send_content(disk, &path, &pump))
}

/// Which file it is, for a running program: `{pid}`, and `{NAME}` for a variable of its environment. The first that
/// can be filled in counts. `None` until its directory is there.
pub(crate) fn locate(disk: &Disk, patterns: &[String], pid: u32) -> Option<PathBuf> {
    let environment = disk.read(Path::new(&format!("/proc/{pid}/environ"))).ok()?;
    let variable = |name: &str| {
        let mut variables = environment.split(|byte| *byte == 0);
        variables
            .find_map(|variable| variable.strip_prefix(name.as_bytes())?.strip_prefix(b"=").filter(|v| !v.is_empty()))
    };
    let path = patterns.iter().find_map(|pattern| fill(pattern, pid, variable))?;
    disk.is_dir(path.parent()?).then_some(path)
}

fn fill<'v>(pattern: &str, pid: u32, variable: impl Fn(&str) -> Option<&'v [u8]>) -> Option<PathBuf> {
    let mut path = Vec::new();
    let mut rest = pattern;
    while let Some((before, after)) = rest.split_once('{') {
        let (name, after) = after.split_once('}')?;
        path.extend_from_slice(before.as_bytes());
        match name {
            "pid" => path.extend_from_slice(pid.to_string().as_bytes()),
            name => path.extend_from_slice(variable(name)?),
        }
        rest = after;
    }
    path.extend_from_slice(rest.as_bytes());
    Some(PathBuf::from(OsString::from_vec(path)))
}

fn send_content(disk: &Disk, file: &Path, pump: &PumpHandle) {
    use std::io::Read;
    let Ok(opened) = disk.open_regular(file) else { return };
    let mut text = Vec::new();
    if opened.take(MOST).read_to_end(&mut text).is_ok()
        && let Ok(content) = serde_json::from_slice(&text)
    {
        pump.send(PumpEvent::SessionFile(content));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_found_by_the_first_pattern_that_can_be_filled() {
        let variable = |name: &str| (name == "HOME").then_some(&b"/home/me"[..]);
        assert_eq!(fill("{CONF}/s/{pid}.json", 7, variable), None);
        assert_eq!(fill("{HOME}/s/{pid}.json", 7, variable), Some(PathBuf::from("/home/me/s/7.json")));
        assert_eq!(fill("{HOME", 7, variable), None);
    }
}

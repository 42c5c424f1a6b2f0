//! Files in which agents write down what they do.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use posse_agents::account::fill;

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
    let value = |name: &str| match name {
        "pid" => Some(pid.to_string().into()),
        name => {
            let mut variables = environment.split(|byte| *byte == 0);
            let value = |variable: &[u8]| Some(variable.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?.to_vec());
            variables.find_map(|variable| value(variable).filter(|value| !value.is_empty())).map(OsString::from_vec)
        }
    };
    let path = patterns.iter().find_map(|pattern| fill(pattern, value))?;
    disk.is_dir(path.parent()?).then_some(path)
}

fn send_content(disk: &Disk, file: &Path, pump: &PumpHandle) {
    let content = disk.read_bounded(file, MOST).ok().and_then(|text| serde_json::from_slice(&text).ok());
    if let Some(content) = content {
        pump.send(PumpEvent::SessionFile(content));
    }
}

//! Locations of programs, and the versions they report.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rustix::fs::{Access, access};

use crate::child::{self, Leftovers};
use crate::disk::Disk;

/// The slowest of them, a script on a cold disk, takes two seconds.
const PATIENCE: Duration = Duration::from_secs(10);

/// Finds the first executable of this name in a search path. A name with a slash in it is a path already.
pub fn locate(_: &Disk, program: &str, path: &str) -> Option<PathBuf> {
    let runs = |file: &Path| file.is_file() && access(file, Access::EXEC_OK).is_ok();
    if program.contains('/') {
        return Some(PathBuf::from(program)).filter(|file| runs(file));
    }
    std::env::split_paths(path).map(|directory| directory.join(program)).find(|file| runs(file))
}

pub async fn ask(program: &Path, environment: &BTreeMap<String, String>) -> Option<String> {
    let mut command = Command::new(program);
    command.arg("--version").env_clear().envs(environment);
    let output = child::run(command, b"", PATIENCE, Leftovers::End).await.ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

//! Which version of an agent is installed: the program is asked once, and again when its file has changed.

#![expect(clippy::disallowed_methods, reason = "the command line uses it too; the daemon calls it through `Disk`")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use posse_agents::version::Version;
use rustix::fs::{Access, access};

use crate::child::{self, Leftovers};
use crate::disk::{self, Disk};

/// The slowest of them, a script on a cold disk, takes two seconds.
const PATIENCE: Duration = Duration::from_secs(10);

/// What programs said, as long as their files are the same.
#[derive(Debug, Default)]
pub struct Versions {
    known: Mutex<BTreeMap<PathBuf, (SystemTime, Version)>>,
}

impl Versions {
    /// The version of this program, found and started as in this environment. `None`: nobody knows.
    pub async fn find(&self, program: &str, environment: &BTreeMap<String, String>) -> Option<Version> {
        let (program, search) = (program.to_owned(), environment.get("PATH")?.clone());
        let find = move |disk: &Disk| {
            let path = disk.locate_program(&program, &search)?;
            let changed = disk.metadata(&path).and_then(|file| file.modified()).ok()?;
            Some((path, changed))
        };
        let (path, changed) = disk::run(find).await?;
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, version)) = known().get(&path)
            && *at == changed
        {
            return Some(version.clone());
        }
        let version = Version::said(&ask(&path, environment).await?)?;
        known().insert(path, (changed, version.clone()));
        Some(version)
    }
}

/// Where a program is, by this path: the first that may be run. A name with a slash in it is a place already.
pub fn locate(program: &str, path: &str) -> Option<PathBuf> {
    let runs = |file: &Path| file.is_file() && access(file, Access::EXEC_OK).is_ok();
    if program.contains('/') {
        return Some(PathBuf::from(program)).filter(|file| runs(file));
    }
    std::env::split_paths(path).map(|directory| directory.join(program)).find(|file| runs(file))
}

/// What a program says about its version.
pub async fn ask(program: &Path, environment: &BTreeMap<String, String>) -> Option<String> {
    let mut command = Command::new(program);
    command.arg("--version").env_clear().envs(environment);
    let output = child::run(command, b"", PATIENCE, Leftovers::End).await.ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[tokio::test]
    async fn asked_once_and_again_when_it_was_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let program = directory.path().join("agent");
        let install = |version: &str| {
            let script = format!("#!/bin/sh\necho asked >> {}/log\necho agent {version}\n", directory.path().display());
            std::fs::write(directory.path().join("new"), script).unwrap();
            std::fs::set_permissions(directory.path().join("new"), PermissionsExt::from_mode(0o755)).unwrap();
            std::fs::rename(directory.path().join("new"), &program).unwrap();
        };
        let path = format!("/nowhere:{}", directory.path().display());
        let environment = BTreeMap::from([("PATH".to_owned(), path)]);
        let versions = Versions::default();
        assert_eq!(versions.find("agent", &environment).await, None, "it is not installed");
        install("1.2");
        for _ in 0..2 {
            assert_eq!(versions.find("agent", &environment).await, "1.2".parse().ok());
        }
        let asked = std::fs::read_to_string(directory.path().join("log")).unwrap();
        assert_eq!(asked.lines().count(), 1);
        install("1.3");
        let file = std::fs::File::open(&program).unwrap();
        file.set_modified(SystemTime::now() + Duration::from_secs(5)).unwrap();
        assert_eq!(versions.find(program.to_str().unwrap(), &environment).await, "1.3".parse().ok());
    }
}

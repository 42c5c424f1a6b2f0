//! The versions of installed agents: a program is asked once, and again when its file has changed.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::SystemTime;

use posse_agents::version::Version;
use posse_files::versions::{self, ask};

use crate::disk::{self, Disk};
use crate::run::lock;

/// Reported versions of programs, cached while their files are unchanged.
#[derive(Debug, Default)]
pub(crate) struct Versions {
    known: Mutex<BTreeMap<PathBuf, (SystemTime, Version)>>,
}

impl Versions {
    /// Returns the version of this program, found and started in this environment. `None`: unknown.
    pub(crate) async fn find(&self, program: &str, environment: &BTreeMap<String, String>) -> Option<Version> {
        let (program, search) = (program.to_owned(), environment.get("PATH")?.clone());
        let find = move |disk: &Disk| {
            let path = versions::locate(disk, &program, &search)?;
            let changed = disk.metadata(&path).and_then(|file| file.modified()).ok()?;
            Some((path, changed))
        };
        let (path, changed) = disk::run(find).await?;
        let known = || lock(&self.known);
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

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::time::Duration;

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

//! Repositories for tests with the real git.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::disk::DISK;
use crate::environment::Environment;

/// A checkout with room for other directories beside it.
pub(crate) struct TestRepo {
    pub(crate) place: tempfile::TempDir,
    pub(crate) root: PathBuf,
}

impl TestRepo {
    pub(crate) fn empty() -> Self {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap().join("project");
        fs::create_dir(&root).unwrap();
        git_in(&root, &["init", "--quiet", "-b", "main"]);
        // No signature; and no hooks but the test's own, whatever the machine's configuration says.
        let hooks = root.join(".git/hooks");
        let mut config = fs::File::options().append(true).open(root.join(".git/config")).unwrap();
        let hooks = hooks.display();
        writeln!(config, "[user]\nname = T\nemail = t@example.org\n[commit]\ngpgsign = false").unwrap();
        writeln!(config, "[core]\nhooksPath = {hooks}").unwrap();
        Self { place, root }
    }

    /// With one commit in which are the files a, b, c and d/e.
    pub(crate) fn new() -> Self {
        let repo = Self::empty();
        for name in ["a", "b", "c", "d/e"] {
            repo.write(name, "1\n2\n3\n4\n5\n");
        }
        repo.git(&["add", "."]);
        repo.git(&["commit", "--quiet", "-m", "first"]);
        repo
    }

    #[track_caller]
    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        git_in(&self.root, arguments)
    }

    /// Runs a git that may fail.
    pub(crate) fn try_git(&self, arguments: &[&str]) -> bool {
        let mut git = Command::new("git");
        git.args(arguments).current_dir(&self.root).output().unwrap().status.success()
    }

    pub(crate) fn write(&self, name: &str, content: &str) {
        write(&self.root, name, content);
    }

    pub(crate) fn read(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.root.join(name)).ok()
    }

    pub(crate) fn remove(&self, name: &str) {
        fs::remove_file(self.root.join(name)).unwrap();
    }

    pub(crate) fn commit(&self, name: &str, content: &str) {
        self.write(name, content);
        self.git(&["add", "--", name]);
        self.git(&["commit", "--quiet", "-m", name, "--", name]);
    }

    pub(crate) fn hook(&self, name: &str, script: &str) {
        let path = self.root.join(".git/hooks").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
        // It is there before the run begins.
        super::guard::begin(DISK, &Environment::default(), &self.root).unwrap();
    }

    pub(crate) fn head(&self) -> String {
        self.git(&["rev-parse", "HEAD"])
    }

    pub(crate) fn index(&self) -> Vec<u8> {
        fs::read(self.root.join(".git/index")).unwrap()
    }

    pub(crate) fn status(&self) -> String {
        self.git(&["status", "--porcelain", "--untracked-files=all"])
    }
}

#[track_caller]
pub(crate) fn git_in(directory: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git").args(arguments).current_dir(directory).env("LC_ALL", "C").output().unwrap();
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim_end_matches('\n').to_owned()
}

pub(crate) fn write(directory: &Path, name: &str, content: &str) {
    let path = directory.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

/// Waits until no git works there: one that was told to end is still there for a moment.
pub(crate) fn wait_for_gits(place: &Path) {
    let me = std::process::id().to_string();
    let (ours, parent) = (fs::read_link("/proc/self/exe").unwrap(), format!("\nPPid:\t{me}\n"));
    let within = |process: &Path| fs::read_link(process.join("cwd")).is_ok_and(|cwd| cwd.starts_with(place));
    // A child that has not become git yet may become one of this place.
    let unborn = |process: &Path| {
        let is_child = || fs::read_to_string(process.join("status")).is_ok_and(|text| text.contains(&parent));
        fs::read_link(process.join("exe")).is_ok_and(|exe| exe == ours) && is_child()
    };
    let others = |process: &fs::DirEntry| process.file_name().to_str() != Some(&me);
    let busy = || {
        let mut processes = fs::read_dir("/proc").unwrap().flatten().filter(others).map(|process| process.path());
        processes.any(|process| within(&process) || unborn(&process))
    };
    while busy() {
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
}

//! Repositories for tests with the real git.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use proptest::prelude::*;

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

/// A change of one file.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Edit {
    Write(&'static str, u8),
    Delete(&'static str),
}

pub(crate) fn edit(names: &'static [&'static str]) -> impl Strategy<Value = Edit> {
    let name = move || prop::sample::select(names);
    prop_oneof![
        // Few contents, so that two sometimes write the same.
        4 => (name(), 0..4_u8).prop_map(|(name, content)| Edit::Write(name, content)),
        1 => name().prop_map(Edit::Delete),
    ]
}

/// What is in the way is removed.
pub(crate) fn apply(root: &Path, edit: Edit) {
    match edit {
        Edit::Write(name, content) => {
            let path = root.join(name);
            let parent = path.parent().unwrap();
            if parent.is_file() {
                fs::remove_file(parent).unwrap();
            }
            let _ = fs::remove_dir_all(&path);
            write(root, name, &format!("1\n2\n3\n4\n{content}\n"));
        }
        Edit::Delete(name) => drop(fs::remove_file(root.join(name))),
    }
}

/// What a checkout has of one name.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Has {
    pub(crate) file: Option<String>,
    /// The id in the index, and in the last commit.
    pub(crate) staged: Option<String>,
    pub(crate) committed: Option<String>,
    pub(crate) dirty: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct State {
    pub(crate) names: BTreeMap<&'static str, Has>,
    pub(crate) stash: String,
    pub(crate) head: String,
}

pub(crate) fn state(repo: &TestRepo, names: &[&'static str]) -> State {
    let by_path = |said: String| -> BTreeMap<String, String> {
        let lines = said.split('\0').filter_map(|line| line.split_once('\t'));
        let id = |words: &str| words.split(' ').find(|word| word.len() == 40).unwrap().to_owned();
        lines.map(|(words, path)| (path.to_owned(), id(words))).collect()
    };
    let index = by_path(repo.git(&["ls-files", "--stage", "-z"]));
    let head = by_path(repo.git(&["ls-tree", "-r", "-z", "HEAD"]));
    let status = repo.git(&["status", "--porcelain", "-z", "--untracked-files=all", "--no-renames"]);
    let dirty: BTreeSet<&str> = status.split('\0').filter_map(|line| line.get(3..)).collect();
    let has = |name: &&'static str| Has {
        file: repo.read(name),
        staged: index.get(*name).cloned(),
        committed: head.get(*name).cloned(),
        dirty: dirty.contains(name),
    };
    State {
        names: names.iter().map(|name| (*name, has(name))).collect(),
        stash: repo.git(&["stash", "list", "--format=%H"]),
        head: repo.head(),
    }
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

//! Finds work trees by the files with which git ties them to their repository. Git is not asked: it would obey what a session
//! wrote there.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::guard::{self, Found, Places};
use super::{GitError, WorkTree};
use crate::disk::{self, Disk};
use crate::environment::Environment;

impl WorkTree {
    /// The one this directory is in, if any.
    pub(crate) async fn find(directory: &Path) -> Result<Option<Self>, GitError> {
        Self::find_in(&Environment::default(), directory).await
    }

    /// The same, in this environment; what is done there later is done in it too.
    pub(crate) async fn find_in(environment: &Environment, directory: &Path) -> Result<Option<Self>, GitError> {
        Ok(match disk::at(directory, guard::resolve).await? {
            Found::Tree(places) => Some(Self { places, environment: environment.clone() }),
            Found::Bare | Found::Nothing => None,
        })
    }

    /// This one, or another one of its repository, by the files with which git ties it to that. `None` where they are not
    /// just as git writes them.
    pub(crate) async fn beside(&self, root: &Path) -> Option<Self> {
        let home = self.clone();
        disk::at(root, move |disk, root| home.tree_beside(disk, root)).await
    }

    fn tree_beside(&self, disk: &Disk, root: &Path) -> Option<Self> {
        if root == self.root && self.directory == self.common && root.join(".git") == self.common {
            return disk.is_dir(&self.common).then(|| self.clone());
        }
        let read = |path: &Path| disk.read(path).ok().map(|text| text.trim_ascii_end().to_vec());
        let dot_git = root.join(".git");
        let directory = PathBuf::from(OsStr::from_bytes(read(&dot_git)?.strip_prefix(b"gitdir: ")?));
        let tied = directory.parent()? == self.common.join("worktrees")
            && read(&directory.join("gitdir"))? == dot_git.as_os_str().as_bytes()
            && read(&directory.join("commondir"))? == b"../..";
        let places = Places { root: root.to_owned(), directory, common: self.common.clone() };
        tied.then(|| Self { places, environment: self.environment.clone() })
    }

    /// Whether another work tree is of the same repository.
    pub(crate) fn shares_with(&self, other: &Self) -> bool {
        self.common == other.common
    }
}

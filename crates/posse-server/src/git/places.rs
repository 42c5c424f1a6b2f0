//! Where work trees are: asked of git, or read from the files with which git ties them to their repository.

use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use super::{GitError, WorkTree, git, line};
use crate::environment::Environment;

/// Where a work tree is, and what belongs to it: behind the first words one place each.
const PLACES: [&[&str]; 5] = [
    &["rev-parse", "--path-format=absolute"],
    &["--show-toplevel"],
    &["--absolute-git-dir"],
    &["--git-common-dir"],
    &["--git-path", "index"],
];

impl WorkTree {
    /// The one this directory is in, if any.
    pub(crate) async fn find(directory: &Path) -> Result<Option<Self>, GitError> {
        Self::find_in(&Environment::default(), directory).await
    }

    /// The same, in this environment; what is done there later is done in it too.
    pub(crate) async fn find_in(environment: &Environment, directory: &Path) -> Result<Option<Self>, GitError> {
        let said = match line(git(environment, directory, None, &PLACES.concat(), b"").await?) {
            Ok(said) => said.into_vec(),
            // Said in English: we ask for that.
            Err(GitError::Failed { words, .. })
                if words.contains("not a git repository") || words.contains("must be run in a work tree") =>
            {
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        let lines: Vec<PathBuf> =
            said.split(|byte| *byte == b'\n').map(|line| OsStr::from_bytes(line).into()).collect();
        let [root, own, common, index] = match <[PathBuf; 4]>::try_from(lines) {
            Ok(places) => places,
            // A name with a line break in it: one at a time.
            Err(_) => {
                let mut places: [PathBuf; 4] = Default::default();
                for (place, what) in places.iter_mut().zip(&PLACES[1..]) {
                    *place = line(git(environment, directory, None, &[PLACES[0], *what].concat(), b"").await?)?.into();
                }
                places
            }
        };
        Ok(Some(Self { root, directory: own, common, index, environment: environment.clone() }))
    }

    /// This one, or another one of its repository, by the files with which git ties it to that: they say what git would say.
    /// `None` where they are not just as git writes them; then git has to be asked.
    pub(crate) fn beside(&self, root: &Path) -> Option<Self> {
        if root == self.root && self.directory == self.common && root.join(".git") == self.common {
            return self.common.is_dir().then(|| self.clone());
        }
        let read = |path: &Path| std::fs::read(path).ok().map(|text| text.trim_ascii_end().to_vec());
        let dot_git = root.join(".git");
        let directory = PathBuf::from(OsStr::from_bytes(read(&dot_git)?.strip_prefix(b"gitdir: ")?));
        let tied = directory.parent()? == self.common.join("worktrees")
            && read(&directory.join("gitdir"))? == dot_git.as_os_str().as_bytes()
            && read(&directory.join("commondir"))? == b"../.."
            // Only there it could say that its files are elsewhere.
            && directory.join("config.worktree").symlink_metadata().is_err();
        let index = directory.join("index");
        let (common, environment) = (self.common.clone(), self.environment.clone());
        tied.then(|| Self { root: root.to_owned(), directory, common, index, environment })
    }
}

//! What a pipeline waits for: a change in the backlog, in an archive, in a plan, or of what is checked out. The kernel tells;
//! nothing polls.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::mpsc;

use super::entry::Spec;
use crate::git::WorkTree;
use crate::watched_files::WatchedFiles;

pub(super) struct Watching {
    files: WatchedFiles,
    project: PathBuf,
    /// Directories in which something may come or go.
    wanted: Vec<PathBuf>,
    /// For each of them what is really watched: itself or, if it is not there, what it would be in.
    armed: BTreeMap<PathBuf, Armed>,
    /// Where git notes what is checked out.
    git: Option<PathBuf>,
    tell: mpsc::UnboundedSender<Change>,
    pub(super) changes: mpsc::UnboundedReceiver<Change>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Backlog,
    /// Something else may be checked out, or something was begun or finished there.
    Checkout,
}

struct Armed {
    directory: PathBuf,
    /// A directory that was made anew is another one.
    inode: u64,
    alive: Arc<AtomicBool>,
}

impl Drop for Armed {
    fn drop(&mut self) {
        self.alive.store(false, Ordering::Relaxed);
    }
}

impl Watching {
    pub(super) fn new(files: WatchedFiles, spec: &Spec) -> Self {
        let project = PathBuf::from(&spec.directory);
        let mut wanted = Vec::new();
        let open = [&spec.shelves.defects, &spec.shelves.features, &spec.config.plans_dir].map(String::clone);
        // An item may wait for one that somebody else puts there.
        let done = spec.shelves.archives().map(|(directory, _)| directory);
        for directory in open.into_iter().chain(done) {
            let directory = project.join(directory);
            // A directory that goes is not told of by itself.
            wanted.extend(directory.parent().map(Path::to_owned));
            wanted.push(directory);
        }
        wanted.sort();
        wanted.dedup();
        let (tell, changes) = mpsc::unbounded_channel();
        Self { files, project, wanted, armed: BTreeMap::new(), git: None, tell, changes }
    }

    /// Looks where git notes what is checked out.
    pub(super) async fn find_checkout(&mut self) {
        let tree = WorkTree::find(&self.project).await.ok().flatten();
        self.git = tree.map(|tree| tree.directory().to_owned());
    }

    /// Watches what is there now. `false`: nobody tells of changes.
    pub(super) fn arm(&mut self) -> bool {
        let mut all = true;
        for wanted in self.wanted.iter().chain(&self.git) {
            let is_git = self.git.as_ref() == Some(wanted);
            let ours = |path: &&Path| path.starts_with(&self.project) || is_git;
            let there = wanted.ancestors().take_while(ours).find(|path| path.is_dir());
            let Some(inode) = there.and_then(|path| std::fs::metadata(path).ok()).map(|found| found.ino()) else {
                all = false;
                continue;
            };
            let directory = there.unwrap_or(wanted).to_owned();
            let known = self.armed.get(wanted);
            if known.is_some_and(|armed| armed.directory == directory && armed.inode == inode) {
                continue;
            }
            let alive = Arc::new(AtomicBool::new(true));
            let (tell, lives) = (self.tell.clone(), alive.clone());
            let told = move |path: &Path, _| {
                let change = if is_git { Change::Checkout } else { Change::Backlog };
                let matters = !is_git || path.file_name().is_some_and(WorkTree::tells_of_checkout);
                lives.load(Ordering::Relaxed) && (!matters || tell.send(change).is_ok())
            };
            all &= self.files.watch_directory(&directory, told);
            self.armed.insert(wanted.clone(), Armed { directory, inode, alive });
        }
        all
    }
}

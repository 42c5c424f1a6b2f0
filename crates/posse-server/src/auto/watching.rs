//! What a pipeline that has nothing to do waits for: a change in the backlog or in a plan. The kernel tells; nothing polls.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::mpsc;

use super::entry::Spec;
use crate::watched_files::WatchedFiles;

pub(super) struct Watching {
    files: WatchedFiles,
    project: PathBuf,
    /// Directories in which something may come or go.
    wanted: Vec<PathBuf>,
    /// For each of them what is really watched: itself or, if it is not there, what it would be in.
    armed: BTreeMap<PathBuf, Armed>,
    tell: mpsc::UnboundedSender<()>,
    pub(super) changes: mpsc::UnboundedReceiver<()>,
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
        for directory in [&spec.shelves.defects, &spec.shelves.features, &spec.config.plans_dir] {
            let directory = project.join(directory);
            // A directory that goes is not told of by itself.
            wanted.extend(directory.parent().map(Path::to_owned));
            wanted.push(directory);
        }
        wanted.sort();
        wanted.dedup();
        let (tell, changes) = mpsc::unbounded_channel();
        Self { files, project, wanted, armed: BTreeMap::new(), tell, changes }
    }

    /// Watches what is there now. `false`: nobody tells of changes.
    pub(super) fn arm(&mut self) -> bool {
        let mut all = true;
        for wanted in &self.wanted {
            let there =
                wanted.ancestors().take_while(|path| path.starts_with(&self.project)).find(|path| path.is_dir());
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
            let told = move |_: &Path, _| lives.load(Ordering::Relaxed) && tell.send(()).is_ok();
            all &= self.files.watch_directory(&directory, told);
            self.armed.insert(wanted.clone(), Armed { directory, inode, alive });
        }
        all
    }
}

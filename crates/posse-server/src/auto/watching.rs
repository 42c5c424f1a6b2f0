//! Watches what a pipeline depends on: the backlog, the archives, the plans, and what is checked out.

use std::path::{Path, PathBuf};

use posse_api::AutoSpec;
use tokio::sync::mpsc;

use crate::git::WorkTree;
use crate::watched_files::{FileHint, FileWatch, WatchScope, WatchedFiles};

pub(super) struct Watching {
    files: WatchedFiles,
    project: PathBuf,
    tell: mpsc::UnboundedSender<BacklogChange>,
    pub(super) changes: mpsc::UnboundedReceiver<BacklogChange>,
    watches: Vec<FileWatch>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BacklogChange {
    Backlog,
    /// Another commit or branch may be checked out, or git began or finished an operation.
    Checkout,
}

impl Watching {
    pub(super) fn new(files: WatchedFiles, spec: &AutoSpec) -> Self {
        let project = PathBuf::from(&spec.directory);
        let mut wanted = Vec::new();
        let open = [&spec.shelves.defects, &spec.shelves.features, &spec.config.plans_dir].map(String::clone);
        // An item may wait for another one that a person moves there.
        let done = spec.shelves.archives().map(|(directory, _)| directory);
        for directory in open.into_iter().chain(done) {
            let directory = project.join(directory);
            // A rename of the parent moves the directory away, and is reported only there.
            wanted.extend(directory.parent().map(Path::to_owned));
            wanted.push(directory);
        }
        wanted.sort();
        wanted.dedup();
        let (tell, changes) = mpsc::unbounded_channel();
        let watch = |directory: &PathBuf| {
            let tell = tell.clone();
            files.watch(directory, WatchScope::Directory, move |_, _| {
                let _ = tell.send(BacklogChange::Backlog);
            })
        };
        let watches = wanted.iter().map(watch).collect();
        Self { files, project, tell, changes, watches }
    }

    /// Watches the directory in which git records what is checked out.
    pub(super) async fn watch_checkout(&mut self) {
        let Some(tree) = WorkTree::find(&self.project).await.ok().flatten() else { return };
        let tell = self.tell.clone();
        let watch = self.files.watch(tree.directory(), WatchScope::Directory, move |_, hint| {
            let matters = match hint {
                FileHint::Scan => true,
                FileHint::Changed(path) | FileHint::Renamed(path) => {
                    path.file_name().is_some_and(WorkTree::tells_of_checkout)
                }
            };
            if matters {
                let _ = tell.send(BacklogChange::Checkout);
            }
        });
        self.watches.push(watch);
    }
}

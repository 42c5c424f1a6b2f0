//! Watches what a pipeline depends on: the backlog, the archives, the plans, and what is checked out.

use std::path::{Path, PathBuf};

use posse_api::AutoSpec;
use tokio::sync::mpsc::UnboundedSender;

use super::driver::BacklogWake;
use super::executor::BacklogWork;
use crate::git::WorkTree;
use crate::run::executor::Signal;
use crate::watched_files::{FileHint, FileWatch, WatchScope, WatchedFiles};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BacklogChange {
    Backlog,
    /// Another commit or branch may be checked out, or git began or finished an operation.
    Checkout,
}

/// Sends changes to the driver as long as the watches live.
pub(super) async fn watch(
    files: &WatchedFiles,
    spec: &AutoSpec,
    signals: UnboundedSender<Signal<BacklogWork>>,
) -> Vec<FileWatch> {
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
    let send = |signals: &UnboundedSender<_>, change| {
        let _ = signals.send(Signal::Wake(BacklogWake::Changed(change)));
    };
    let mut watches = Vec::new();
    for directory in &wanted {
        let signals = signals.clone();
        watches.push(files.watch(directory, WatchScope::Directory, move |_, _| {
            send(&signals, BacklogChange::Backlog);
        }));
    }
    // The file in which git records the current branch.
    if let Some(tree) = WorkTree::find(&project).await.ok().flatten() {
        watches.push(files.watch(&tree.directory, WatchScope::Directory, move |_, hint| {
            let matters = match hint {
                FileHint::Scan => true,
                FileHint::Changed(path) | FileHint::Renamed(path) => {
                    path.file_name().is_some_and(WorkTree::tells_of_checkout)
                }
            };
            if matters {
                send(&signals, BacklogChange::Checkout);
            }
        }));
    }
    watches
}

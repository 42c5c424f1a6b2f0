//! A run's claim to its files. Two runs in one project would take each other's answers, two with one state file would each
//! believe that it is theirs. Within a home the store knows; against the posse of another home only the kernel helps.
//!
//! Held while the run is driven. A run that rests claims nothing, and takes its claim again when it is resumed.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::disk::{self, Disk};
use crate::project_files::make_room;
use posse_core::run::Spec;
use posse_term::lock::{self, Holder, Lock, LockError};

/// The time a previous daemon may take to exit completely.
const PATIENCE: Duration = Duration::from_secs(1);

#[derive(Debug, thiserror::Error)]
pub(crate) enum ClaimError {
    #[error(
        "{} goes on there already{}, and two at once would take each other's answers (it holds {}): wait until it is over, or stop it there",
        .holder.as_ref().and_then(|holder| holder.purpose.as_deref()).unwrap_or("another run"), lock::describe(.holder.as_ref()), .path.display()
    )]
    Held { path: PathBuf, holder: Option<Holder> },
    #[error("cannot make sure that nobody else works there: {path}: {error}")]
    Io { path: PathBuf, error: std::io::Error },
}

/// Released when it is dropped, or when this process ends.
#[derive(Debug)]
pub(crate) struct Claim {
    _locks: [Lock; 2],
}

impl Claim {
    /// For a run of the posse in this home.
    pub(super) async fn take(spec: &Spec, home: &Path) -> Result<Self, ClaimError> {
        let purpose = format!("run {} of the posse in {}", spec.id, home.display());
        let project = PathBuf::from(&spec.directory);
        let state_file = PathBuf::from(&spec.state_file);
        let tmp = project.join(".tmp");
        let mut beside = PathBuf::from(&spec.state_file).into_os_string();
        beside.push(".lock");
        let paths = [tmp.join("agent-responses.lock"), PathBuf::from(beside)];
        let take = move |disk: &Disk| {
            let [responses, state] = paths;
            super::files::ignore_in_git(disk, &project).map_err(|error| ClaimError::Io { path: tmp, error })?;
            let io = |error| ClaimError::Io { path: state_file.clone(), error };
            make_room(disk, &project, &state_file).map_err(io)?;
            Ok(Self { _locks: [hold(disk, &purpose, &responses)?, hold(disk, &purpose, &state)?] })
        };
        disk::run(take).await
    }
}

fn hold(disk: &Disk, purpose: &str, path: &Path) -> Result<Lock, ClaimError> {
    let io = |error| ClaimError::Io { path: path.to_owned(), error };
    // A link beside the file that is meant would be followed.
    if disk.is_symlink(path) {
        let text = "it is a link, and posse writes only inside of the project: remove it";
        return Err(io(std::io::Error::other(text)));
    }
    disk.lock(purpose, path, PATIENCE).map_err(|error| match error {
        LockError::Held(holder) => ClaimError::Held { path: path.to_owned(), holder },
        LockError::Io { path, error } => ClaimError::Io { path, error },
    })
}

//! Whether git knows who commits: without that no work can be kept, and it is better to know before anything is done.

use super::{WorktreeError, Worktrees};
use crate::git::{self, GitError};

impl Worktrees {
    pub(crate) async fn knows_who_commits(&self) -> Result<(), WorktreeError> {
        for who in ["GIT_AUTHOR_IDENT", "GIT_COMMITTER_IDENT"] {
            match git::ask(&self.root, &["var", who]).await {
                Ok(_) => {}
                Err(GitError::Failed { .. }) => return Err(WorktreeError::Nobody),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

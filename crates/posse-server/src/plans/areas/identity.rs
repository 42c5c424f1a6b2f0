//! Whether git knows who commits: without that no work can be kept, and it is better to know before anything is done.

use super::{AreaError, Areas};
use crate::git::{self, GitError};

impl Areas {
    pub(crate) async fn knows_who_commits(&self) -> Result<(), AreaError> {
        for who in ["GIT_AUTHOR_IDENT", "GIT_COMMITTER_IDENT"] {
            match git::ask(&self.root, &["var", who]).await {
                Ok(_) => {}
                Err(GitError::Failed { .. }) => return Err(AreaError::Nobody),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

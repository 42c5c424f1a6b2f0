//! What keeps a project from being worked on in work trees.

use std::path::Path;

use posse_core::finalize::GitPath;
use posse_core::plan::isolation::Obstacle;

use super::WorktreeError;
use crate::git::{self, WorkTree};

/// The first one, in what is checked out. Where there is no repository, whoever opens it says so.
pub(crate) async fn obstacle(directory: &Path) -> Result<Option<Obstacle>, WorktreeError> {
    let Some(tree) = WorkTree::find(directory).await? else { return Ok(None) };
    let Some(head) = tree.head().await? else { return Ok(None) };
    if let Some(path) = submodule(&tree.root, &head).await? {
        return Ok(Some(Obstacle::Submodule(path.to_string())));
    }
    let arguments = ["grep", "-l", "-z", "-E", "-e", "^[^#].*filter=lfs", &head, "--", ":(glob)**/.gitattributes"];
    let (_, said) = git::hear_either(&tree.root, &arguments).await?;
    let first = said.split(|byte| *byte == 0).next().filter(|name| !name.is_empty());
    // It names the commit too.
    let path = first.map(|name| name.splitn(2, |byte| *byte == b':').last().unwrap_or(name));
    Ok(path.map(|path| Obstacle::Lfs(GitPath(path.to_vec()).to_string())))
}

/// A repository within a commit.
pub(super) async fn submodule(root: &Path, commit: &str) -> Result<Option<GitPath>, WorktreeError> {
    let said = git::hear(root, None, &["ls-tree", "-r", "-z", commit], b"").await?;
    let line = said.split(|byte| *byte == 0).find(|line| line.starts_with(b"160000 "));
    let path = line.and_then(|line| line.splitn(2, |byte| *byte == b'\t').nth(1));
    Ok(path.map(|path| GitPath(path.to_vec())))
}

//! What keeps a project from being worked on in work trees.

use std::path::Path;

use posse_core::finalize::GitPath;
use posse_core::plan::isolation::Obstacle;

use super::Result;
use crate::git::WorkTree;

/// The first obstacle in what is checked out. A missing repository is reported by `Worktrees::open`.
pub(crate) async fn obstacle(directory: &Path) -> Result<Option<Obstacle>> {
    let Some(tree) = WorkTree::find(directory).await? else { return Ok(None) };
    let Some(head) = tree.head().await? else { return Ok(None) };
    if let Some(path) = submodule(&tree, &head).await? {
        return Ok(Some(Obstacle::Submodule(path.to_string())));
    }
    let arguments = ["grep", "-l", "-z", "-E", "-e", "^[^#].*filter=lfs", &head, "--", ":(glob)**/.gitattributes"];
    let (_, said) = tree.hear_either(&arguments).await?;
    let first = said.split(|byte| *byte == 0).next().filter(|name| !name.is_empty());
    // It names the commit too.
    let path = first.map(|name| name.splitn(2, |byte| *byte == b':').last().unwrap_or(name));
    Ok(path.map(|path| Obstacle::Lfs(GitPath(path.to_vec()).to_string())))
}

/// A repository within a commit.
pub(super) async fn submodule(tree: &WorkTree, commit: &str) -> Result<Option<GitPath>> {
    Ok(repositories(&tree.hear(&["ls-tree", "-r", "-z", commit]).await?).next())
}

pub(super) fn repositories(said: &[u8]) -> impl Iterator<Item = GitPath> {
    let lines = said.split(|byte| *byte == 0).filter(|line| line.starts_with(b"160000 "));
    lines.filter_map(|line| Some(GitPath(line.splitn(2, |byte| *byte == b'\t').nth(1)?.to_vec())))
}

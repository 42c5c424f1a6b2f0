//! Whether the user's checkout is the one that a backlog belongs to: its branch is checked out, and nothing is half done there.
//! Otherwise nothing is read from it or written to it: it would be another backlog, and a commit would go onto another branch.

use std::path::{Path, PathBuf};

use crate::git::{GitError, WorkTree};

/// Why not, and what to do about it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Away {
    #[error("{what} is under way in {}; it goes on when that is finished", root.display())]
    UnderWay { root: PathBuf, what: &'static str },
    #[error("no branch is checked out in {}; it goes on when one is", .0.display())]
    NoBranch(PathBuf),
    #[error("{found} is checked out, and the backlog is that of {home}; it goes on when {home} is checked out again")]
    OtherBranch { found: String, home: String },
}

/// `home` is the branch of the backlog, if it has one.
pub(crate) async fn away(tree: &WorkTree, home: Option<&str>) -> Result<Option<Away>, GitError> {
    if let Some(what) = tree.under_way().await {
        return Ok(Some(Away::UnderWay { root: tree.root.clone(), what }));
    }
    let Some(found) = tree.branch().await? else { return Ok(Some(Away::NoBranch(tree.root.clone()))) };
    Ok(match home {
        Some(home) if home != found => Some(Away::OtherBranch { found, home: home.to_owned() }),
        _ => None,
    })
}

/// The same as text, for a project that is a repository. A checkout that cannot be inspected counts as away.
pub(crate) async fn why_away(project: &Path, home: Option<&str>) -> Option<String> {
    let away = async {
        match WorkTree::find(project).await? {
            Some(tree) => Ok(away(&tree, home).await?.map(|away| away.to_string())),
            None => Ok(Some(format!("{} is no repository any more", project.display()))),
        }
    };
    away.await.unwrap_or_else(|error: GitError| Some(format!("what is checked out could not be told: {error}")))
}

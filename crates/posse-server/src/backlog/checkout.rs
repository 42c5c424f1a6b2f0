//! Checks that the user's checkout is the one a backlog belongs to: its branch is checked out, and no operation is in
//! progress. Otherwise nothing is read or written: it would be another backlog, and a commit would go onto another
//! branch.

use std::path::Path;

use crate::git::{GitError, WorkTree};

/// Returns the obstacle and its remedy. `home` is the branch of the backlog, if it has one.
pub(crate) async fn away(tree: &WorkTree, home: Option<&str>) -> Result<Option<String>, GitError> {
    let root = tree.root.display();
    if let Some(what) = tree.under_way().await {
        return Ok(Some(format!("{what} is under way in {root}; it goes on when that is finished")));
    }
    Ok(match (tree.branch().await?, home) {
        (None, _) => Some(format!("no branch is checked out in {root}; it goes on when one is")),
        (Some(found), Some(home)) if home != found => Some(format!(
            "{found} is checked out, and the backlog is that of {home}; it goes on when {home} is checked out again"
        )),
        _ => None,
    })
}

/// The same for a project that is a repository. A checkout that cannot be inspected counts as away.
pub(crate) async fn why_away(project: &Path, home: Option<&str>) -> Option<String> {
    let away = async {
        match WorkTree::find(project).await? {
            Some(tree) => away(&tree, home).await,
            None => Ok(Some(format!("{} is no repository any more", project.display()))),
        }
    };
    away.await.unwrap_or_else(|error: GitError| Some(format!("what is checked out could not be told: {error}")))
}

//! The place where tasks run: each in its own work tree, or all in the user's checkout.

use super::file::Isolation;

/// The reason why a project cannot use work trees.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Obstacle {
    /// A nested repository.
    #[error("{0} is a repository within this one, which would be missing in a work tree")]
    Submodule(String),
    /// Contents outside git, such as LFS, with the file that declares them.
    #[error("{0} keeps files with Git LFS, which may be missing in a work tree")]
    Lfs(String),
}

const ONE_BY_ONE: &str = "leave out `parallel`, and the tasks are worked on one after the other";

/// The reason why the requested isolation is impossible, with a remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IsolationError {
    #[error("with `isolation: in_place` all sessions work in the same files, so only one can run; {ONE_BY_ONE}")]
    SharedCheckout,
    #[error("{0}; set `isolation: in_place`")]
    NoWorktrees(Obstacle),
    #[error("{0}, so sessions work in your checkout, and only one can run; {ONE_BY_ONE}")]
    OnlyCheckout(Obstacle),
}

/// Returns the isolation of tasks, and a warning if it is unexpected.
pub fn choose(
    asked: Option<Isolation>,
    obstacle: Option<&Obstacle>,
    workers: usize,
) -> Result<(Isolation, Option<String>), IsolationError> {
    match (asked, obstacle) {
        (Some(Isolation::InPlace), _) if workers > 1 => Err(IsolationError::SharedCheckout),
        (Some(Isolation::InPlace), _) => Ok((Isolation::InPlace, None)),
        (_, None) => Ok((Isolation::Worktree, None)),
        (Some(Isolation::Worktree), Some(obstacle)) => Err(IsolationError::NoWorktrees(obstacle.clone())),
        (None, Some(obstacle)) if workers > 1 => Err(IsolationError::OnlyCheckout(obstacle.clone())),
        (None, Some(obstacle)) => {
            let warning = format!("{obstacle}; sessions work in your checkout, as with `isolation: in_place`");
            Ok((Isolation::InPlace, Some(warning)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_tasks_are_worked_on() {
        let submodule = Obstacle::Submodule("lib".into());
        let lfs = Obstacle::Lfs(".gitattributes".into());
        let (tree, place) = (Some(Isolation::Worktree), Some(Isolation::InPlace));
        for (asked, obstacle, workers, expected) in [
            (None, None, 4, "worktree"),
            (tree, None, 4, "worktree"),
            (place, None, 1, "in_place"),
            (place, None, 2, "refused: with `isolation: in_place` all sessions"),
            (place, Some(&submodule), 1, "in_place"),
            (tree, Some(&submodule), 1, "refused: lib is a repository within this one"),
            (None, Some(&submodule), 1, "in_place, warned: lib is a repository"),
            (None, Some(&lfs), 1, "in_place, warned: .gitattributes keeps files with Git LFS"),
            (tree, Some(&lfs), 1, "refused: .gitattributes keeps files"),
            (None, Some(&lfs), 2, "refused: .gitattributes keeps files"),
        ] {
            let shown = match choose(asked, obstacle, workers) {
                Ok((isolation, None)) => isolation.to_string(),
                Ok((isolation, Some(warning))) => format!("{isolation}, warned: {warning}"),
                Err(why) => format!("refused: {why}"),
            };
            assert!(shown == expected || (expected.contains(": ") && shown.starts_with(expected)), "{shown}");
        }
    }
}

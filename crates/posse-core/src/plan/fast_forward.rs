//! Merging a task's work into its target branch: git's output, and the user's files that are in the way.

use crate::finalize::{Change, GitPath};

/// The difference between two commits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Difference {
    pub paths: Vec<GitPath>,
    /// The paths that exist in the first commit.
    pub existing: Vec<GitPath>,
    /// One of the paths is a nested repository on either side.
    pub repositories: bool,
}

/// Parses the output of `git diff-tree -r -z --raw --no-renames`, or returns `None`.
pub fn difference(said: &[u8]) -> Option<Difference> {
    let mut words = said.split(|byte| *byte == 0).filter(|word| !word.is_empty());
    let mut difference = Difference::default();
    while let Some(modes) = words.next() {
        // `:100644 160000 id id M`, then the path.
        let mut modes = modes.strip_prefix(b":")?.split(|byte| *byte == b' ');
        let (old, new) = (modes.next()?, modes.next()?);
        difference.repositories |= [old, new].contains(&&b"160000"[..]);
        let path = GitPath(words.next()?.to_vec());
        if old != b"000000" {
            difference.existing.push(path.clone());
        }
        difference.paths.push(path);
    }
    Some(difference)
}

/// The relation of two commits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AheadBehind {
    /// The commits that only the first has, oldest first.
    pub behind: Vec<String>,
    /// The commits that only the second has.
    pub ahead: Vec<String>,
}

/// Parses the output of `git rev-list --left-right` for `first...second`, or returns `None`.
pub fn ahead_behind(said: &str) -> Option<AheadBehind> {
    let mut ahead_behind = AheadBehind::default();
    for line in said.lines() {
        match line.split_at_checked(1)? {
            ("<", commit) => ahead_behind.behind.push(commit.to_owned()),
            (">", commit) => ahead_behind.ahead.push(commit.to_owned()),
            _ => return None,
        }
    }
    Some(ahead_behind)
}

/// The merge of two commits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Together {
    /// The tree, with conflict markers in files that have conflicts.
    pub tree: String,
    pub conflicts: Vec<GitPath>,
}

/// Parses the output of `git merge-tree --write-tree --name-only --no-messages -z`, or returns `None`.
pub fn together(said: &[u8]) -> Option<Together> {
    let mut words = said.split(|byte| *byte == 0).filter(|word| !word.is_empty());
    let tree = String::from_utf8(words.next()?.trim_ascii().to_vec()).ok()?;
    let mut conflicts: Vec<GitPath> = words.map(|path| GitPath(path.to_vec())).collect();
    conflicts.sort();
    conflicts.dedup();
    Some(Together { tree, conflicts })
}

/// Returns the user's changes that writing these paths would overwrite or remove: the path itself, a file in place of a
/// directory, or files in a directory that becomes a file.
pub fn in_the_way(written: &[GitPath], changes: &[Change], ignored: &[GitPath]) -> Vec<GitPath> {
    let meets = |users: &GitPath| written.iter().any(|path| path == users || path.is_in(users) || users.is_in(path));
    let users = changes.iter().map(|change| &change.path).chain(ignored);
    let mut paths: Vec<GitPath> = users.filter(|path| meets(path)).cloned().collect();
    paths.sort();
    paths.dedup();
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> GitPath {
        GitPath(text.as_bytes().to_vec())
    }

    #[test]
    fn in_what_two_commits_differ() {
        let expected = |names: &[&str], existing: &[&str], repositories| {
            let paths = |names: &[&str]| names.iter().map(|name| path(name)).collect();
            Some(Difference { paths: paths(names), existing: paths(existing), repositories })
        };
        for (said, expected) in [
            ("", expected(&[], &[], false)),
            (":100644 100755 1 2 M\0a b\0:000000 120000 0 3 A\0c\nd\0", expected(&["a b", "c\nd"], &["a b"], false)),
            (":000000 160000 0 1 A\0lib\0", expected(&["lib"], &[], true)),
            (":160000 000000 1 0 D\0lib\0", expected(&["lib"], &["lib"], true)),
            (":100644 100644 1 2 M\0", None),
            ("a\0b\0", None),
        ] {
            assert_eq!(difference(said.as_bytes()), expected, "{said:?}");
        }
    }

    #[test]
    fn how_two_commits_stand_to_each_other() {
        let of = |behind: &[&str], ahead: &[&str]| {
            let owned = |commits: &[&str]| commits.iter().map(|commit| (*commit).to_owned()).collect();
            Some(AheadBehind { behind: owned(behind), ahead: owned(ahead) })
        };
        for (said, expected) in
            [("", of(&[], &[])), (">1\n<2\n>3\n", of(&["2"], &["1", "3"])), ("1\n", None), ("\n", None)]
        {
            assert_eq!(ahead_behind(said), expected, "{said:?}");
        }
    }

    #[test]
    fn what_two_commits_give() {
        for (said, expected) in
            [("abc\0", Some(("abc", vec![]))), ("abc\0b\0a b\0b\0", Some(("abc", vec!["a b", "b"]))), ("", None)]
        {
            let expected = expected.map(|(tree, conflicts)| Together {
                tree: tree.into(),
                conflicts: conflicts.into_iter().map(path).collect(),
            });
            assert_eq!(together(said.as_bytes()), expected, "{said:?}");
        }
    }

    #[test]
    fn only_what_would_be_written_over_is_in_the_way() {
        let change = |name| Change { path: path(name), present: true, tracked: true, ..Change::default() };
        for (written, users, expected) in [
            (vec!["a"], vec!["b", "ab"], vec![]),
            (vec!["a", "c"], vec!["b", "a"], vec!["a"]),
            (vec!["a/b"], vec!["a"], vec!["a"]),
            (vec!["a"], vec!["a/b", "a/c"], vec!["a/b", "a/c"]),
        ] {
            let (written, shown): (Vec<GitPath>, _) = (written.into_iter().map(path).collect(), format!("{users:?}"));
            let changes: Vec<Change> = users.iter().copied().map(change).collect();
            let ignored: Vec<GitPath> = users.into_iter().map(path).collect();
            let expected: Vec<GitPath> = expected.into_iter().map(path).collect();
            assert_eq!(in_the_way(&written, &changes, &[]), expected, "{shown}");
            assert_eq!(in_the_way(&written, &[], &ignored), expected, "{shown}, ignored");
        }
    }
}

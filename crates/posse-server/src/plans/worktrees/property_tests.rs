//! Whatever the user and the tasks do, in whatever order, and whenever somebody is killed: no commit is lost, and nothing
//! that the user has not committed is changed, in the files, in the index or in the stash.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::Duration;

use posse_core::plan::machine::MergeResult;
use proptest::prelude::*;

use super::tests::{begin, merge, run, words};
use super::*;
use crate::git::test_repo::{TestRepo, wait_for_gits, write};

/// Some of them cannot be there together.
pub(super) const NAMES: [&str; 8] = ["a", "b", "c", "d/e", "d", "a/in", "two words", "new"];
const TASKS: [&str; 3] = ["1", "2", "3"];

#[derive(Clone, Copy, Debug)]
pub(super) enum Edit {
    Write(&'static str, u8),
    Delete(&'static str),
}

#[derive(Clone, Debug)]
enum Act {
    /// In the work tree of a task, as its session.
    Work(usize, Edit),
    User(Edit),
    UserStages(&'static str),
    UserCommits,
    UserStashes,
    Seal(usize),
    /// Killed after so many milliseconds.
    Merge(usize, Option<u64>),
    Tidy,
    /// The daemon dies, and another one comes.
    Restart,
}

pub(super) fn edit() -> impl Strategy<Value = Edit> {
    let name = || prop::sample::select(&NAMES[..]);
    prop_oneof![
        // Few contents, so that two sometimes write the same.
        4 => (name(), 0..4_u8).prop_map(|(name, content)| Edit::Write(name, content)),
        1 => name().prop_map(Edit::Delete),
    ]
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let task = || 0..TASKS.len();
    let act = prop_oneof![
        6 => (task(), edit()).prop_map(|(task, edit)| Act::Work(task, edit)),
        4 => edit().prop_map(Act::User),
        2 => prop::sample::select(&NAMES[..]).prop_map(Act::UserStages),
        1 => Just(Act::UserCommits),
        1 => Just(Act::UserStashes),
        1 => task().prop_map(Act::Seal),
        4 => (task(), prop::option::of(0..150_u64)).prop_map(|(task, kill)| Act::Merge(task, kill)),
        1 => Just(Act::Tidy),
        1 => Just(Act::Restart),
    ];
    prop::collection::vec(act, 4..14)
}

pub(super) fn apply(root: &Path, edit: Edit) {
    match edit {
        Edit::Write(name, content) => {
            let path = root.join(name);
            let parent = path.parent().unwrap();
            if parent.is_file() {
                fs::remove_file(parent).unwrap();
            }
            let _ = fs::remove_dir_all(&path);
            write(root, name, &format!("1\n2\n3\n4\n{content}\n"));
        }
        Edit::Delete(name) => drop(fs::remove_file(root.join(name))),
    }
}

/// What the user has of one name.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Has {
    pub(super) file: Option<String>,
    /// Mode and id in the index, and in the last commit.
    pub(super) staged: Option<String>,
    pub(super) committed: Option<String>,
    pub(super) dirty: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct State {
    pub(super) names: BTreeMap<&'static str, Has>,
    pub(super) stash: String,
    pub(super) head: String,
}

pub(super) fn state(repo: &TestRepo) -> State {
    let by_path = |said: String| -> BTreeMap<String, String> {
        let lines = said.split('\0').filter_map(|line| line.split_once('\t'));
        let id = |words: &str| words.split(' ').find(|word| word.len() == 40).unwrap().to_owned();
        lines.map(|(words, path)| (path.to_owned(), id(words))).collect()
    };
    let index = by_path(repo.git(&["ls-files", "--stage", "-z"]));
    let head = by_path(repo.git(&["ls-tree", "-r", "-z", "HEAD"]));
    let status = repo.git(&["status", "--porcelain", "-z", "--untracked-files=all", "--no-renames"]);
    let dirty: BTreeSet<&str> = status.split('\0').filter_map(|line| line.get(3..)).collect();
    let has = |name: &&'static str| Has {
        file: repo.read(name),
        staged: index.get(*name).cloned(),
        committed: head.get(*name).cloned(),
        dirty: dirty.contains(name),
    };
    State {
        names: NAMES.iter().map(|name| (*name, has(name))).collect(),
        stash: repo.git(&["stash", "list", "--format=%H"]),
        head: repo.git(&["rev-parse", "HEAD"]),
    }
}

/// What may have changed in the user's checkout by something of ours.
fn compare(before: &State, after: &State, killed: bool, what: &str) {
    assert_eq!(before.stash, after.stash, "the stash: {what}");
    for name in NAMES {
        let (old, new) = (&before.names[name], &after.names[name]);
        // It was, to the letter, what a task made of it too.
        let became_merged = old.file == new.file && new.staged == new.committed && !new.dirty;
        if old.dirty {
            let same = (&old.file, &old.staged) == (&new.file, &new.staged);
            assert!(
                same || became_merged || killed_while_taking_up(killed, old, new),
                "{name}: {what}\n{old:?}\n{new:?}"
            );
        } else if !killed {
            assert!(!new.dirty, "{name} follows the commit: {what}\n{old:?}\n{new:?}");
        }
    }
}

/// Entered in the index as it is on disk, and no further.
fn killed_while_taking_up(killed: bool, old: &Has, new: &Has) -> bool {
    killed && old.file == new.file && old.staged == old.committed
}

async fn play(acts: &[Act]) {
    let repo = TestRepo::new();
    let mut worktrees = repo.worktrees().await;
    let mut made = Vec::new();
    for task in TASKS {
        made.push(begin(&worktrees, task).await);
    }
    let mut commits = BTreeSet::new();
    for act in acts {
        let before = state(&repo);
        let mut killed = false;
        match act {
            // A session is over when its work is committed, and its work tree may be gone when that is merged.
            Act::Work(task, edit) if made[*task].directory.exists() => apply(&made[*task].directory, *edit),
            Act::User(edit) => apply(&repo.root, *edit),
            Act::UserStages(name) => _ = repo.try_git(&["--literal-pathspecs", "add", "--", name]),
            Act::UserCommits => _ = repo.try_git(&["commit", "--quiet", "-m", "by hand"]),
            Act::UserStashes => _ = repo.try_git(&["stash", "--quiet"]),
            Act::Seal(task) if made[*task].directory.exists() => {
                commits.extend(worktrees.commit_leftovers(&made[*task], &words(&made[*task])).await);
            }
            Act::Merge(task, kill) if made[*task].directory.exists() => {
                let limit = Duration::from_millis(kill.unwrap_or(300_000));
                let result = tokio::time::timeout(limit, merge(&worktrees, &made[*task])).await;
                killed = result.is_err();
                wait_for_gits(&repo.root);
                match result {
                    Ok(MergeResult::Merged { commits: merged }) => commits.extend(merged),
                    Ok(MergeResult::RedTogether(failure)) => panic!("{failure:?}"),
                    _ => {}
                }
            }
            Act::Tidy => {
                let in_use = TASKS.iter().filter(|_| commits.is_empty()).map(|task| run(task, 1)).collect();
                worktrees.tidy(&in_use).await.unwrap();
            }
            Act::Restart => worktrees = repo.worktrees().await,
            Act::Work(..) | Act::Seal(_) | Act::Merge(..) => {}
        }
        let after = state(&repo);
        if !matches!(act, Act::User(_) | Act::UserStages(_) | Act::UserCommits | Act::UserStashes) {
            compare(&before, &after, killed, &format!("{act:?} of {acts:?}"));
        }
        commits.insert(after.head);
        for commit in &commits {
            let held = repo.git(&["for-each-ref", "--contains", commit, "--count=1"]);
            assert!(!held.is_empty(), "{commit} is lost: {act:?} of {acts:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, max_shrink_iters: 40, failure_persistence: None, ..Default::default() })]

    #[test]
    fn nothing_is_lost(acts in acts()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(play(&acts));
    }
}

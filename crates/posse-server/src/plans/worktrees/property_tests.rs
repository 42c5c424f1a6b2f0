//! Whatever the user and the tasks do, in whatever order, and whenever somebody is killed: no commit is lost, and nothing
//! that the user has not committed is changed, in the files, in the index or in the stash.

use std::collections::BTreeSet;
use std::time::Duration;

use posse_core::plan::machine::MergeResult;
use proptest::prelude::*;

use super::tests::{begin, merge, words};
use crate::git::test_repo::{Edit, Has, State, TestRepo, apply, edit, state, wait_for_gits};

/// Some of them cannot be there together.
pub(super) const NAMES: [&str; 8] = ["a", "b", "c", "d/e", "d", "a/in", "two words", "new"];
const TASKS: [&str; 3] = ["1", "2", "3"];

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

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let task = || 0..TASKS.len();
    let act = prop_oneof![
        6 => (task(), edit(&NAMES)).prop_map(|(task, edit)| Act::Work(task, edit)),
        4 => edit(&NAMES).prop_map(Act::User),
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
        let before = state(&repo, &NAMES);
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
            Act::Tidy => _ = worktrees.tidy().await.unwrap(),
            Act::Restart => worktrees = repo.worktrees().await,
            Act::Work(..) | Act::Seal(_) | Act::Merge(..) => {}
        }
        let after = state(&repo, &NAMES);
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

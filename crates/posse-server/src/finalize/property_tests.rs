//! Whatever the user left uncommitted and whatever the run did, no uncommitted line is lost. The user's index changes
//! only for committed paths.

use std::collections::BTreeSet;
use std::fs;

use posse_core::finalize::is_suspicious;
use proptest::prelude::*;

use super::*;
use crate::git::test_repo::{Edit, TestRepo, apply, edit, state};

/// Some of them cannot be there together.
const NAMES: [&str; 10] = ["a", "b", "c", "d/e", "d", "a/in", "two words", "[id].tsx", "x = 1", "d/f(x)"];

#[derive(Clone, Debug)]
enum Act {
    Edit(Edit),
    Stage(&'static str),
    Announce(&'static str),
    Forget(&'static str),
    CommitStaged,
}

fn acts(most: usize) -> impl Strategy<Value = Vec<Act>> {
    let name = || prop::sample::select(&NAMES[..]);
    let act = prop_oneof![
        8 => edit(&NAMES).prop_map(Act::Edit),
        3 => name().prop_map(Act::Stage),
        1 => name().prop_map(Act::Announce),
        1 => name().prop_map(Act::Forget),
        1 => Just(Act::CommitStaged),
    ];
    prop::collection::vec(act, 0..most)
}

/// Skips acts that are impossible.
fn play(repo: &TestRepo, acts: &[Act]) {
    for act in acts {
        match act {
            Act::Edit(edit) => apply(&repo.root, *edit),
            Act::Stage(name) => _ = repo.try_git(&["--literal-pathspecs", "add", "--", name]),
            Act::Announce(name) => _ = repo.try_git(&["--literal-pathspecs", "add", "--intent-to-add", "--", name]),
            Act::Forget(name) => _ = repo.try_git(&["--literal-pathspecs", "rm", "--cached", "--quiet", "--", name]),
            Act::CommitStaged => _ = repo.try_git(&["commit", "--quiet", "-m", "by hand"]),
        }
    }
}

fn within(one: &str, other: &str) -> bool {
    one.strip_prefix(other).is_some_and(|rest| rest.starts_with('/'))
}

fn check(users_acts: &[Act], runs_acts: &[Act]) {
    let repo = TestRepo::new();
    play(&repo, users_acts);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let snapshot = runtime.block_on(repo.snapshot());
    play(&repo, runs_acts);
    let before = state(&repo, &NAMES);
    let step = runtime.block_on(repo.commit_work(snapshot.as_ref()));
    let after = state(&repo, &NAMES);
    assert!(!matches!(step, Step::Failed(_)), "{step:?}");

    let dirty = snapshot.unwrap().dirty;
    let users: BTreeSet<String> = dirty.into_iter().map(|was| String::from_utf8(was.path.0).unwrap()).collect();
    for (name, old) in &before.names {
        let new = &after.names[name];
        if let Ok(aside) = fs::read_to_string(repo.quarantine().join(name)) {
            assert!(is_suspicious(Path::new(name).file_name().unwrap().as_bytes()) && !users.contains(*name), "{name}");
            assert_eq!((Some(&aside), &new.file, &new.staged), (old.file.as_ref(), &None, &None), "{name}");
            continue;
        }
        let in_the_way = |user: &String| before.names[user.as_str()].dirty && within(user, name) && old.file.is_some();
        if users.iter().any(|user| user == name || within(name, user) || in_the_way(user)) {
            assert_eq!(old, new, "{name}: {step:?}");
        } else {
            assert_eq!(old.file, new.file, "{name} is there, or put aside");
            assert!(!new.dirty, "the work of the run on {name} is committed: {step:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, max_shrink_iters: 200, failure_persistence: None, ..Default::default() })]

    #[test]
    fn nothing_of_the_users_is_lost(users_acts in acts(8), runs_acts in acts(10)) {
        check(&users_acts, &runs_acts);
    }
}

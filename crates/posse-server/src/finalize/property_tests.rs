//! Whatever the user has left lying about and whatever the run did: no uncommitted line is lost, and the user's index is as
//! it was, but for what was committed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use posse_core::finalize::is_suspicious;
use proptest::prelude::*;

use super::*;
use crate::git::test_repo::TestRepo;

/// Some of them cannot be there together.
const NAMES: [&str; 10] = ["a", "b", "c", "d/e", "d", "a/in", "two words", "[id].tsx", "x = 1", "d/f(x)"];

#[derive(Clone, Debug)]
enum Act {
    Write(&'static str, u8),
    Delete(&'static str),
    Stage(&'static str),
    Announce(&'static str),
    Forget(&'static str),
    CommitStaged,
}

fn acts(most: usize) -> impl Strategy<Value = Vec<Act>> {
    let name = || prop::sample::select(&NAMES[..]);
    let act = prop_oneof![
        6 => (name(), any::<u8>()).prop_map(|(name, content)| Act::Write(name, content)),
        2 => name().prop_map(Act::Delete),
        3 => name().prop_map(Act::Stage),
        1 => name().prop_map(Act::Announce),
        1 => name().prop_map(Act::Forget),
        1 => Just(Act::CommitStaged),
    ];
    prop::collection::vec(act, 0..most)
}

/// What cannot be done is not done.
fn play(repo: &TestRepo, acts: &[Act]) {
    for act in acts {
        match act {
            Act::Write(name, content) => {
                let path = repo.root.join(name);
                let parent = path.parent().unwrap();
                if parent.is_file() {
                    fs::remove_file(parent).unwrap();
                }
                let _ = fs::remove_dir_all(&path);
                repo.write(name, &format!("{content}\n"));
            }
            Act::Delete(name) => drop(fs::remove_file(repo.root.join(name))),
            Act::Stage(name) => _ = repo.try_git(&["--literal-pathspecs", "add", "--", name]),
            Act::Announce(name) => _ = repo.try_git(&["--literal-pathspecs", "add", "--intent-to-add", "--", name]),
            Act::Forget(name) => _ = repo.try_git(&["--literal-pathspecs", "rm", "--cached", "--quiet", "--", name]),
            Act::CommitStaged => _ = repo.try_git(&["commit", "--quiet", "-m", "by hand"]),
        }
    }
}

#[derive(Debug, PartialEq)]
struct State {
    files: BTreeMap<String, String>,
    /// Lines of git's about entries, and about changed paths.
    index: BTreeMap<String, String>,
    head: BTreeMap<String, String>,
    changed: BTreeMap<String, String>,
}

fn state(repo: &TestRepo) -> State {
    let by_path = |said: String, before_path: char| -> BTreeMap<String, String> {
        let lines = said.split('\0').filter(|line| !line.is_empty());
        // The path is the last field, and may hold blanks itself.
        let at = |line: &str| match before_path {
            ' ' if line.starts_with('?') => 1,
            ' ' => line.match_indices(' ').nth(7).unwrap().0,
            tab => line.find(tab).unwrap(),
        };
        lines.map(|line| (line[at(line) + 1..].to_owned(), line.to_owned())).collect()
    };
    let status = repo.git(&["status", "--porcelain=v2", "-z", "--untracked-files=all", "--no-renames"]);
    State {
        files: files_in(&repo.root),
        index: by_path(repo.git(&["ls-files", "--stage", "-z"]), '\t'),
        head: by_path(repo.git(&["ls-tree", "-r", "-z", "HEAD"]), '\t'),
        changed: by_path(status, ' '),
    }
}

fn files_in(directory: &Path) -> BTreeMap<String, String> {
    let there = |name: &&str| directory.join(name).is_file();
    let read = |name: &str| (name.to_owned(), fs::read_to_string(directory.join(name)).unwrap());
    NAMES.into_iter().filter(there).map(read).collect()
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
    let before = state(&repo);
    let step = runtime.block_on(repo.commit_work(snapshot.as_ref()));
    let after = state(&repo);
    assert!(!matches!(step, Step::Failed(_)), "{step:?}");

    let dirty = snapshot.unwrap().dirty;
    let users: BTreeSet<String> = dirty.into_iter().map(|was| String::from_utf8(was.path.0).unwrap()).collect();
    let mut files = after.files.clone();
    let aside = files_in(&repo.quarantine());
    for (name, content) in aside.clone() {
        assert!(is_suspicious(Path::new(&name).file_name().unwrap().as_bytes()) && !users.contains(&name), "{name}");
        assert!(!after.index.contains_key(&name), "{name}");
        assert_eq!(files.insert(name, content), None);
    }
    assert_eq!(files, before.files, "every file is there, or put aside");
    for name in NAMES.into_iter().filter(|name| !aside.contains_key(*name)) {
        let stays = |what: &str, before: &BTreeMap<_, _>, after: &BTreeMap<_, _>| {
            assert_eq!(before.get(name), after.get(name), "{what} of {name}: {step:?}");
        };
        let in_the_way =
            |user: &String| before.changed.contains_key(user) && within(user, name) && before.files.contains_key(name);
        if users.iter().any(|user| user == name || within(name, user) || in_the_way(user)) {
            stays("the entry in the index", &before.index, &after.index);
            stays("the entry in HEAD", &before.head, &after.head);
            stays("the state", &before.changed, &after.changed);
        } else {
            assert_eq!(after.changed.get(name), None, "the work of the run is committed: {step:?}");
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

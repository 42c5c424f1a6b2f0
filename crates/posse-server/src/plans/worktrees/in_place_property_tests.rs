//! In the user's own checkout: whatever the user and sessions do there, in whatever order, and whenever somebody is killed, no
//! commit is lost, nothing that we do changes a file, and what the user had not committed when a session began can be had again.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use posse_core::plan::machine::MergeResult;
use proptest::prelude::*;

use super::in_place_tests::in_place;
use super::property_tests::NAMES;
use super::tests::{gates, merge, run};
use super::*;
use crate::git::test_repo::{Edit, State, TestRepo, apply, edit, state, wait_for_gits};

const TASKS: [&str; 2] = ["1", "2"];

#[derive(Clone, Debug)]
enum Act {
    User(Edit),
    UserStages(&'static str),
    UserCommits,
    /// A session begins, unless one is there. Killed after so many milliseconds.
    Begin(usize, Option<u64>),
    Session(Edit),
    SessionCommits(&'static str),
    /// Well-behaved ones do none of that.
    SessionGoesWild(&'static [&'static str]),
    /// It is over, and its work is brought home if it may.
    End(Option<u64>),
    /// The daemon dies, and another one comes.
    Restart,
}

const WILD: [&[&str]; 5] = [
    &["commit", "--quiet", "-am", "everything"],
    &["commit", "--quiet", "--amend", "-m", "mine now"],
    &["reset", "--quiet", "--hard"],
    &["checkout", "--quiet", "--", "."],
    &["clean", "-dfq"],
];

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let name = || prop::sample::select(&NAMES[..]);
    let kill = || prop::option::of(0..150_u64);
    let act = prop_oneof![
        4 => edit(&NAMES).prop_map(Act::User),
        2 => name().prop_map(Act::UserStages),
        1 => Just(Act::UserCommits),
        4 => (0..TASKS.len(), kill()).prop_map(|(task, kill)| Act::Begin(task, kill)),
        6 => edit(&NAMES).prop_map(Act::Session),
        2 => name().prop_map(Act::SessionCommits),
        1 => prop::sample::select(&WILD[..]).prop_map(Act::SessionGoesWild),
        4 => kill().prop_map(Act::End),
        1 => Just(Act::Restart),
    ];
    prop::collection::vec(act, 6..18)
}

/// A session that is there.
struct Session {
    worktree: TaskWorktree,
    /// As everything was when it began.
    before: State,
    /// What it may not commit.
    guarded: BTreeSet<String>,
}

/// Nothing of ours changes a file or the stash; and of the index only what is committed with it.
fn untouched(before: &State, after: &State, guarded: &BTreeSet<String>, what: &str) {
    assert_eq!(before.stash, after.stash, "the stash: {what}");
    for name in NAMES {
        let (old, new) = (&before.names[name], &after.names[name]);
        assert_eq!(old.file, new.file, "{name}: {what}");
        if guarded.contains(name) {
            assert_eq!(old.staged, new.staged, "{name} in the index: {what}");
            assert_eq!(old.committed, new.committed, "{name} is not ours to commit: {what}");
        }
    }
}

fn hold(repo: &TestRepo, commits: &BTreeSet<String>, what: &str) {
    for commit in commits {
        let held = repo.git(&["for-each-ref", "--contains", commit, "--count=1"]);
        assert!(!held.is_empty(), "{commit} is lost: {what}");
    }
}

/// What was not committed when it began is there under its ref, file by file.
async fn kept(repo: &TestRepo, worktrees: &Worktrees, session: &Session, what: &str) {
    let record = worktrees.known_record(&session.worktree.run).await.unwrap();
    let saved = record.in_place.as_ref().unwrap().saved.as_str();
    let listed = repo.git(&["ls-tree", "-r", "-z", "--name-only", saved]);
    let listed: BTreeSet<&str> = listed.split('\0').collect();
    for (name, has) in session.before.names.iter().filter(|(_, has)| has.dirty) {
        match &has.file {
            Some(text) => assert_eq!(&(repo.git(&["show", &format!("{saved}:{name}")]) + "\n"), text, "{name}: {what}"),
            None => assert!(!listed.contains(name), "{name}: {what}"),
        }
    }
}

async fn within<T>(repo: &TestRepo, kill: Option<u64>, deed: impl Future<Output = T>) -> Option<T> {
    let done = tokio::time::timeout(Duration::from_millis(kill.unwrap_or(300_000)), deed).await;
    wait_for_gits(&repo.root);
    done.ok()
}

async fn play(acts: &[Act], allow_dirty: bool) {
    let repo = TestRepo::new();
    if allow_dirty {
        apply(&repo.root, Edit::Write("b", 3));
        apply(&repo.root, Edit::Write("new", 3));
    }
    let open = async || Worktrees::open(in_place(&repo)).await.unwrap();
    let mut worktrees = open().await;
    worktrees.may_begin(allow_dirty, None).await.unwrap();
    let mut session: Option<Session> = None;
    let mut starts: BTreeMap<usize, u32> = BTreeMap::new();
    let mut commits = BTreeSet::new();
    for act in acts {
        let what = format!("{act:?} of {acts:?}");
        let before = state(&repo, &NAMES);
        match act {
            Act::User(edit) => apply(&repo.root, *edit),
            Act::UserStages(name) => _ = repo.try_git(&["--literal-pathspecs", "add", "--", name]),
            Act::UserCommits => _ = repo.try_git(&["commit", "--quiet", "-m", "by hand"]),
            Act::Restart => worktrees = open().await,
            Act::Begin(task, kill) if session.is_none() => {
                let start = starts.entry(*task).or_default();
                *start += 1;
                let id = run(TASKS[*task], *start);
                let begun = within(&repo, *kill, worktrees.begin(&id, &gates(&[]))).await;
                untouched(&before, &state(&repo, &NAMES), &NAMES.map(str::to_owned).into(), &what);
                if let Some(worktree) = begun {
                    let worktree = worktree.unwrap();
                    let guarded = worktrees.not_its_own(&worktree).await.unwrap().into_iter();
                    let guarded = guarded.map(|name| name.trim_matches('"').to_owned()).collect();
                    commits.insert(worktree.base.clone());
                    let begun = Session { worktree, before, guarded };
                    kept(&repo, &worktrees, &begun, &what).await;
                    session = Some(begun);
                }
            }
            Act::Session(edit) if session.is_some() => apply(&repo.root, *edit),
            Act::SessionCommits(name) if session.is_some() => {
                repo.try_git(&["--literal-pathspecs", "add", "--", name]);
                repo.try_git(&["--literal-pathspecs", "commit", "--quiet", "-m", "by the session", "--", name]);
            }
            Act::SessionGoesWild(arguments) if session.is_some() => _ = repo.try_git(arguments),
            Act::End(kill) => {
                let Some(ending) = session.take() else { continue };
                let end = async {
                    let traces = worktrees.session_over(&ending.worktree.run, &ending.worktree).await.unwrap();
                    match traces.trespass {
                        Some(_) => None,
                        None => Some(merge(&worktrees, &ending.worktree).await),
                    }
                };
                let ended = within(&repo, *kill, end).await;
                untouched(&before, &state(&repo, &NAMES), &ending.guarded, &what);
                kept(&repo, &worktrees, &ending, &what).await;
                match ended {
                    None => session = Some(ending),
                    Some(Some(MergeResult::Merged { commits: merged })) => commits.extend(merged),
                    Some(_) => {}
                }
            }
            Act::Begin(..) | Act::Session(_) | Act::SessionCommits(_) | Act::SessionGoesWild(_) => {}
        }
        hold(&repo, &commits, &what);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, max_shrink_iters: 40, failure_persistence: None, ..Default::default() })]

    #[test]
    fn nothing_is_lost_in_the_users_checkout(acts in acts(), allow_dirty in any::<bool>()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(play(&acts, allow_dirty));
    }
}

//! Tasks in the user's own checkout, with the real git.

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use posse_core::plan::isolation::Obstacle;
use posse_core::plan::keep::Fate;
use posse_core::plan::machine::MergeResult;
use posse_core::plan::{Record, State, TaskStatus};
use posse_core::time::Wall;

use super::in_place::Traces;
use super::tests::{begin, gates, merge, merged, run, words};
use super::*;
use crate::git::test_repo::{TestRepo, git_in, write};

pub(super) fn in_place(repo: &TestRepo) -> WorktreesParams {
    WorktreesParams { isolation: Isolation::InPlace, ..repo.params() }
}

async fn open(repo: &TestRepo, allow_dirty: bool) -> Worktrees {
    let worktrees = Worktrees::open(in_place(repo)).await.unwrap();
    worktrees.may_begin(allow_dirty, None).await.unwrap();
    worktrees
}

async fn start(worktrees: &Worktrees, task: &str, start: u32) -> TaskWorktree {
    worktrees.begin(&run(task, start), &gates(&[])).await.unwrap()
}

async fn over(worktrees: &Worktrees, worktree: &TaskWorktree) -> Traces {
    worktrees.session_over(&worktree.run, worktree).await.unwrap()
}

async fn saved(worktrees: &Worktrees, worktree: &TaskWorktree) -> String {
    worktrees.known_record(&worktree.run).await.unwrap().in_place.unwrap().saved
}

#[tokio::test]
async fn work_is_committed_where_it_was_done() {
    let repo = TestRepo::new();
    let worktrees = open(&repo, false).await;
    let worktree = start(&worktrees, "1.1", 1).await;
    assert_eq!((worktree.directory.as_path(), worktree.branch.as_str()), (repo.root.as_path(), "main"));
    assert_eq!(worktrees.find(&run("1.1", 1)).await.unwrap(), worktree);
    assert!(!worktrees.has_work(&worktree).await.unwrap());
    repo.commit("a", "by the session\n");
    write(&repo.root, "b", "left by the session\n");
    write(&repo.root, "new", "left by the session\n");
    fs::remove_file(repo.root.join("c")).unwrap();
    assert_eq!(over(&worktrees, &worktree).await, Traces::default());
    let stat = worktrees.stat(&worktree).await.unwrap();
    assert!(stat.contains("4 files changed"), "{stat}");
    let commits = merged(&merge(&worktrees, &worktree).await).to_vec();
    assert_eq!((commits.len(), repo.status().as_str()), (2, ""));
    assert_eq!(repo.git(&["show", "--name-only", "--format=%s"]), "task 1.1: Do it\n\nb\nc\nnew");
    let trailers = repo.git(&["log", "-1", "--format=%(trailers:only,unfold)"]);
    assert_eq!(trailers.trim(), "Plan: The plan\nTask: 1.1\nRun: 1.1-1\nAttempt: 1");
    // Asked again after a crash.
    let again = Worktrees::open(in_place(&repo)).await.unwrap();
    assert_eq!(merged(&merge(&again, &worktree).await), commits);
    assert_eq!(again.tidy().await.unwrap(), []);
    assert_eq!(repo.git(&["for-each-ref", "--format=%(refname)"]), "refs/heads/main", "nothing is left behind");
}

/// After a crash it is asked again how a session ended. What the user has begun meanwhile is not the session's.
#[tokio::test]
async fn changes_made_after_a_crash_stay_the_users() {
    let repo = TestRepo::new();
    write(&repo.root, "a", "of the user\n");
    let worktrees = open(&repo, true).await;
    let worktree = start(&worktrees, "1", 1).await;
    write(&repo.root, "left", "by the session\n");
    assert_eq!(over(&worktrees, &worktree).await, Traces::default());
    write(&repo.root, "mine", "of the user\n");
    repo.git(&["commit", "-q", "-m", "what I had begun", "a"]);
    let again = Worktrees::open(in_place(&repo)).await.unwrap();
    assert_eq!(over(&again, &worktree).await.trespass, None);
    merged(&merge(&again, &worktree).await);
    assert_eq!(repo.git(&["show", "--name-only", "--format="]), "left");
    assert_eq!(repo.status(), "?? mine");
}

/// A deleted file stays deleted in the saved tree if an empty directory has taken its place.
#[tokio::test]
async fn file_replaced_by_a_directory_is_saved_as_deleted() {
    let repo = TestRepo::new();
    fs::remove_file(repo.root.join("a")).unwrap();
    fs::create_dir(repo.root.join("a")).unwrap();
    fs::remove_file(repo.root.join("b")).unwrap();
    write(&repo.root, "b/in", "of the user\n");
    let worktrees = open(&repo, true).await;
    let saved = saved(&worktrees, &start(&worktrees, "1", 1).await).await;
    let files = repo.git(&["ls-tree", "-r", "--name-only", &saved]);
    let files: BTreeSet<&str> = files.lines().collect();
    assert!(!files.contains("a") && !files.contains("b") && files.contains("b/in"), "{files:?}");
}

/// Everything of the user's: the index, as it differs from the commit, and the files as they differ from the index.
fn users(repo: &TestRepo) -> (String, String, String) {
    let untracked = repo.git(&["ls-files", "--others", "--exclude-standard"]);
    (repo.git(&["diff", "--cached"]), repo.git(&["diff"]), untracked)
}

#[tokio::test]
async fn t47_what_the_user_has_begun_stays_as_it_is() {
    let repo = TestRepo::new();
    write(&repo.root, "a", "staged by the user\n");
    repo.git(&["add", "a"]);
    write(&repo.root, "a", "and changed again\n");
    write(&repo.root, "b", "changed by the user\n");
    write(&repo.root, "loose", "of the user\n");
    let before = users(&repo);
    let refused = Worktrees::open(in_place(&repo)).await.unwrap().may_begin(false, None).await.unwrap_err().to_string();
    assert!(
        refused.contains("not committed: a, b, loose; commit them") && refused.contains("--allow-dirty"),
        "{refused}"
    );
    let worktrees = open(&repo, true).await;
    let worktree = start(&worktrees, "1", 1).await;
    assert_eq!(worktrees.not_its_own(&worktree).await.unwrap(), ["a", "b", "loose"]);
    assert_eq!(users(&repo), before);
    write(&repo.root, "c", "by the session\n");
    write(&repo.root, "new", "by the session\n");
    assert_eq!(over(&worktrees, &worktree).await, Traces::default());
    merged(&merge(&worktrees, &worktree).await);
    assert_eq!(repo.git(&["show", "--name-only", "--format="]), "c\nnew");
    assert_eq!(users(&repo), before);
    // The file, what was staged of it, and what no commit has.
    let saved = saved(&worktrees, &worktree).await;
    for (what, expected) in [(":a", "and changed again"), (":loose", "of the user"), ("^2:a", "staged by the user")] {
        assert_eq!(repo.git(&["show", &format!("{saved}{what}")]), expected);
    }
    let kept = worktrees.tidy().await.unwrap();
    assert_eq!((kept.len(), kept[0].branch.as_str()), (1, saved.as_str()));
}

#[tokio::test]
async fn a_session_that_commits_what_is_the_users_has_failed() {
    let repo = TestRepo::new();
    write(&repo.root, "a", "of the user\n");
    write(&repo.root, "d/loose", "of the user\n");
    let worktrees = open(&repo, true).await;
    for (number, name) in [(1, "a"), (2, "d/loose")] {
        let worktree = start(&worktrees, "1", number).await;
        write(&repo.root, name, &format!("by session {number}\n"));
        repo.git(&["add", name]);
        repo.git(&["commit", "--quiet", "-m", "swept"]);
        // Also after a crash.
        for worktrees in [&worktrees, &Worktrees::open(in_place(&repo)).await.unwrap()] {
            let text = over(worktrees, &worktree).await.trespass.unwrap();
            let place = format!("{}:{name}", saved(worktrees, &worktree).await);
            assert!(text.contains(&format!("before the session began: {name}.")) && text.contains(&place), "{text}");
            assert_eq!(repo.git(&["show", &place]), "of the user");
        }
        assert_eq!(repo.git(&["show", &format!("HEAD:{name}")]), format!("by session {number}"));
        // Another commit on top does not hide it.
        write(&repo.root, name, "of the user\n");
        repo.git(&["commit", "--quiet", "-m", "back", "--", name]);
        assert!(over(&worktrees, &worktree).await.trespass.is_some());
        write(&repo.root, name, "of the user\nagain\n");
    }
    // Changed and not committed: nobody knows by whom, but it is told and kept.
    let worktree = start(&worktrees, "2", 1).await;
    repo.git(&["checkout", "--quiet", "--", "a"]);
    write(&repo.root, "b", "by the session\n");
    let traces = over(&worktrees, &worktree).await;
    assert_eq!(traces.trespass, None);
    assert!(traces.notes[0].contains("not as they were, by its hand or by yours: a;"), "{:?}", traces.notes);
    assert_eq!(repo.git(&["show", &format!("{}:a", saved(&worktrees, &worktree).await)]), "of the user\nagain");
}

#[tokio::test]
async fn commits_that_were_there_before_are_not_rewritten() {
    let repo = TestRepo::new();
    repo.commit("a", "of the user\n");
    let theirs = repo.git(&["rev-parse", "HEAD"]);
    let worktrees = open(&repo, false).await;
    let worktree = start(&worktrees, "1", 1).await;
    write(&repo.root, "b", "by the session\n");
    repo.git(&["commit", "--quiet", "--amend", "-am", "mine now"]);
    let text = over(&worktrees, &worktree).await.trespass.unwrap();
    assert!(text.starts_with("what was on main when the task began is not all there any more"), "{text}");
    let MergeResult::NotNow { why } = merge(&worktrees, &worktree).await else { panic!("merged") };
    assert!(why.contains(&saved(&worktrees, &worktree).await), "{why}");
    assert!(
        repo.git(&["for-each-ref", "--contains", &theirs, "--format=%(refname)"])
            .starts_with("refs/posse/p-1/state/1-1")
    );
    let state = verified("1", "1970-01-01T00:00:00Z");
    let failed = Keeping { state: &State::default(), keep: Duration::ZERO, now: Wall(i64::MAX) };
    assert_eq!(worktrees.clean(&failed, Sweep::Remove).await.unwrap()[0].fate, Fate::Needed);
    let done = Keeping { state: &state, ..failed };
    assert_eq!(worktrees.clean(&done, Sweep::Remove).await.unwrap()[0].fate, Fate::Goes);
    assert_eq!(repo.git(&["for-each-ref", "refs/posse"]), "");
}

#[tokio::test]
async fn the_next_attempt_goes_on_with_what_is_there() {
    let repo = TestRepo::new();
    let worktrees = open(&repo, false).await;
    let first = start(&worktrees, "1", 1).await;
    repo.commit("a", "by attempt 1\n");
    write(&repo.root, "b", "left by attempt 1\n");
    write(&repo.root, "c", "left by attempt 1\n");
    over(&worktrees, &first).await;
    // It failed. Another task must not take it along, and does not.
    let other = start(&worktrees, "2", 1).await;
    assert_eq!(worktrees.not_its_own(&other).await.unwrap(), ["b", "c"]);
    write(&repo.root, "d/e", "by task 2\n");
    assert_eq!(over(&worktrees, &other).await, Traces::default());
    assert_eq!(merged(&merge(&worktrees, &other).await).len(), 1);
    assert_eq!(repo.git(&["show", "--name-only", "--format="]), "d/e");

    let worktrees = Worktrees::open(in_place(&repo)).await.unwrap();
    let second = start(&worktrees, "1", 2).await;
    assert_eq!(worktrees.not_its_own(&second).await.unwrap(), [] as [&str; 0]);
    assert!(!worktrees.has_work(&second).await.unwrap(), "what attempt 1 did is no evidence for attempt 2");
    write(&repo.root, "c", "mended by attempt 2\n");
    over(&worktrees, &second).await;
    assert!(worktrees.has_work(&second).await.unwrap());
    let commits = merged(&merge(&worktrees, &second).await).to_vec();
    assert_eq!((commits.len(), repo.status().as_str()), (2, ""), "the commit of attempt 1 is the task's too");
    assert_eq!(repo.git(&["show", "--name-only", "--format="]), "b\nc");
}

#[tokio::test]
async fn a_run_that_was_stopped_is_no_obstacle_for_the_next() {
    let repo = TestRepo::new();
    let worktrees = open(&repo, false).await;
    let worktree = start(&worktrees, "1", 1).await;
    write(&repo.root, "b", "half\n");
    over(&worktrees, &worktree).await;
    let earlier = Earlier { state: repo.params().state, unfinished: true };
    let next = || WorktreesParams { state: repo.params().state.with_file_name("next"), ..in_place(&repo) };
    let worktrees = Worktrees::open(next()).await.unwrap();
    worktrees.may_begin(false, Some(&earlier)).await.unwrap();
    assert_eq!(worktrees.not_its_own(&start(&worktrees, "1", 2).await).await.unwrap(), [] as [&str; 0]);
    // What somebody changed since is theirs.
    write(&repo.root, "b", "half, and a line of the user\n");
    let refused = worktrees.may_begin(false, Some(&earlier)).await.unwrap_err();
    assert!(matches!(refused, WorktreeError::NotClean { .. }), "{refused}");
}

#[tokio::test]
async fn t50_what_was_red_before_is_known_and_what_checks_leave_is_no_work() {
    let repo = TestRepo::new();
    // It names what is red, and leaves something behind each time.
    let check = "date +%N >> report; for f in a b; do grep -q bad $f && echo \"test $f ... FAILED\" && bad=1; done; test -z \"$bad\"";
    let gates = gates(&[check]);
    repo.commit("a", "bad\n");
    let worktrees = open(&repo, false).await;
    let worktree = worktrees.begin(&run("1", 1), &gates).await.unwrap();
    assert_eq!(repo.status(), "?? report", "it was run before the session");
    assert_eq!(worktrees.not_its_own(&worktree).await.unwrap(), [] as [&str; 0]);
    write(&repo.root, "c", "by the session\n");
    over(&worktrees, &worktree).await;
    assert_eq!(worktrees.check(&worktree, &words(&worktree), &gates).await.unwrap(), None, "red as it was before");
    merged(&merge(&worktrees, &worktree).await);
    assert_eq!((repo.git(&["show", "--name-only", "--format="]).as_str(), repo.status().as_str()), ("c", "?? report"));

    let runs = || repo.read("report").unwrap().lines().count();
    let before = runs();
    let worktree = worktrees.begin(&run("2", 1), &gates).await.unwrap();
    assert_eq!(runs(), before, "nobody has changed anything since: it is not run again");
    write(&repo.root, "b", "bad\n");
    over(&worktrees, &worktree).await;
    let failure = worktrees.check(&worktree, &words(&worktree), &gates).await.unwrap().unwrap();
    assert!(failure.message.contains("new: b"), "{failure:?}");
    assert_eq!(repo.status(), "?? report", "the work is committed, and stays");
}

#[tokio::test]
async fn checks_of_the_whole_plan() {
    let of_plan = |command: &str| {
        let mut gates = gates(&[command]);
        gates.commands[0].when = posse_core::plan::file::GateWhen::AfterPlan;
        gates
    };
    for isolation in [Isolation::Worktree, Isolation::InPlace] {
        for (command, expected) in [
            ("true", "Green"),
            ("grep -q good a || { echo 'test a ... FAILED'; exit 1; }", "KnownRed"),
            ("grep -q bad b || { echo 'test b ... FAILED'; exit 1; }", "Green"),
            ("! grep -q bad b || { echo 'test b ... FAILED'; exit 1; }", "Red"),
            ("exit 77", "NotRun"),
            ("", "NotRun"),
        ] {
            let repo = TestRepo::new();
            let base = repo.git(&["rev-parse", "HEAD"]);
            let worktrees = Worktrees::open(WorktreesParams { isolation, ..repo.params() }).await.unwrap();
            let gates = of_plan(command);
            let worktree = worktrees.begin(&run("1", 1), &gates).await.unwrap();
            write(&worktree.directory, "b", "bad\n");
            over(&worktrees, &worktree).await;
            assert_eq!(
                worktrees.check(&worktree, &words(&worktree), &gates).await.unwrap(),
                None,
                "not a check of tasks"
            );
            merged(&merge(&worktrees, &worktree).await);
            // By another process, after a crash.
            let worktrees = Worktrees::open(WorktreesParams { isolation, ..repo.params() }).await.unwrap();
            let checks = worktrees.check_plan(Some(&base), &gates).await.unwrap();
            let said = format!("{:?}", checks[0].verdict);
            assert!(said.starts_with(expected), "{isolation:?}, {command}: {said}");
        }
    }
}

#[tokio::test]
async fn unfit_checkouts_are_refused_for_work_in_place() {
    let refused = async |repo: &TestRepo, allow_dirty| {
        let worktrees = Worktrees::open(in_place(repo)).await.unwrap();
        worktrees.may_begin(allow_dirty, None).await.unwrap_err().to_string()
    };
    let repo = TestRepo::new();
    write(&repo.root, ".posse/notes", "ours\n");
    write(&repo.root, "plan.yaml", "meta: {}\n");
    let params = WorktreesParams { plan_file: Some(repo.root.join("plan.yaml")), ..in_place(&repo) };
    Worktrees::open(params).await.unwrap().may_begin(false, None).await.unwrap();

    repo.git(&["checkout", "--quiet", "-b", "other"]);
    repo.commit("a", "other\n");
    repo.git(&["checkout", "--quiet", "main"]);
    let params = WorktreesParams { branch: Some("other".into()), ..in_place(&repo) };
    let text = Worktrees::open(params).await.unwrap().may_begin(true, None).await.unwrap_err().to_string();
    assert!(text.starts_with("other is not checked out in"), "{text}");
    repo.commit("a", "main\n");
    assert!(!repo.try_git(&["merge", "other"]));
    let text = refused(&repo, true).await;
    assert!(text.starts_with("a merge is under way in"), "{text}");

    let inner = TestRepo::new();
    let repo = TestRepo::new();
    let url = inner.root.to_str().unwrap();
    repo.git(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", url, "lib"]);
    repo.git(&["commit", "--quiet", "-m", "a submodule"]);
    assert_eq!(obstacle(&repo.root).await.unwrap(), Some(Obstacle::Submodule("lib".into())));
    let worktrees = open(&repo, false).await;
    let worktree = start(&worktrees, "1", 1).await;
    write(&repo.root, "lib/a", "by the session\n");
    git_in(
        &repo.root.join("lib"),
        &["-c", "user.name=s", "-c", "user.email=s@x", "commit", "--quiet", "-am", "inside"],
    );
    repo.git(&["commit", "--quiet", "-am", "lib"]);
    assert_eq!(over(&worktrees, &worktree).await, Traces::default());
    assert_eq!(merged(&merge(&worktrees, &worktree).await).len(), 1);
    write(&repo.root, "lib/a", "of the user\n");
    let text = refused(&repo, true).await;
    assert!(text.starts_with("lib is a repository within this one that has changes of its own"), "{text}");

    let repo = TestRepo::new();
    assert_eq!(obstacle(&repo.root).await.unwrap(), None);
    repo.commit("d/.gitattributes", "# *.txt filter=lfs\n");
    assert_eq!(obstacle(&repo.root).await.unwrap(), None);
    repo.commit("d/.gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n");
    assert_eq!(obstacle(&repo.root).await.unwrap(), Some(Obstacle::Lfs("d/.gitattributes".into())));
}

fn verified(task: &str, at: &str) -> State {
    let mut state = State::default();
    *state.of(&task.parse().unwrap()) =
        Record { status: TaskStatus::Verified, completed_at: Some(at.into()), ..Record::default() };
    state
}

/// In work trees of their own.
#[tokio::test]
async fn work_of_failed_attempts_goes_when_its_time_is_over() {
    let repo = TestRepo::new();
    let worktrees = repo.worktrees().await;
    for task in ["done", "open", "dirty", "merged"] {
        let worktree = begin(&worktrees, task).await;
        write(&worktree.directory, task, "x\n");
        match task {
            "dirty" => {}
            "merged" => drop(merge(&worktrees, &worktree).await),
            _ => drop(worktrees.commit_leftovers(&worktree, &words(&worktree)).await.unwrap()),
        }
    }
    let mut state = verified("done", "1970-01-01T00:00:00Z");
    *state.of(&"dirty".parse().unwrap()) = state.get(&"done".parse().unwrap()).unwrap().clone();
    let now = crate::now();
    let in_days = |days: i64| Wall(now.0 + days * 24 * 60 * 60 * 1000);
    let told = |kept: &[Kept]| -> Vec<String> {
        let fate = |kept: &Kept| match kept.fate {
            Fate::Until(_) => "later".to_owned(),
            fate => format!("{fate:?}").to_lowercase(),
        };
        kept.iter().map(|kept| format!("{} {}", kept.branch.split('/').nth(2).unwrap(), fate(kept))).collect()
    };
    let branches = || repo.git(&["branch", "--list", "--format=%(refname:short)", "plan/*"]);
    let all = branches();

    let keeping = Keeping { state: &state, keep: std::time::Duration::from_secs(7 * 86_400), now: in_days(6) };
    let looked = worktrees.clean(&keeping, Sweep::Look).await.unwrap();
    assert_eq!(told(&looked), ["dirty later", "done later", "merged goes", "open needed"]);
    assert_eq!(branches(), all, "to look changes nothing");
    let keeping = Keeping { now: in_days(8), ..keeping };
    let looked = worktrees.clean(&keeping, Sweep::Look).await.unwrap();
    assert_eq!(told(&looked), ["dirty later", "done goes", "merged goes", "open needed"]);
    assert_eq!(told(&worktrees.clean(&keeping, Sweep::Remove).await.unwrap()), told(&looked));
    assert_eq!(branches(), "plan/p-1/dirty/1\nplan/p-1/open/1");
    // What was not committed is now, and its time begins.
    assert_eq!(repo.git(&["show", "plan/p-1/dirty/1:dirty"]), "x");
    let keeping = Keeping { now: in_days(16), ..keeping };
    for expected in [&["dirty goes", "open needed"][..], &["open needed"]] {
        assert_eq!(told(&worktrees.clean(&keeping, Sweep::Remove).await.unwrap()), expected);
    }
    assert_eq!(branches(), "plan/p-1/open/1");
    assert!(worktrees.find(&run("open", 1)).await.unwrap().directory.join("open").exists());
}

//! With the real git, in repositories of the tests' own; killed wherever it hurts.

use std::fs;
use std::path::Path;
use std::time::Duration;

use posse_core::backlog::ItemOutcome;
use posse_core::backlog::edit::{OutcomeBlock, set_outcome};
use posse_core::backlog::{BacklogDirs, Kind, Slug};
use posse_files::backlog::{edit, scan};
use proptest::prelude::*;

use super::archive::*;
use crate::disk::DISK;
use crate::git::test_repo::{TestRepo, wait_for_gits, write};

const SOURCE: &str = "docs/defect-backlog/7-foo.md";
const TEXT: &str = "# Foo\n\n## Status: Open\n\n## Summary\nIt is broken.\n";
const TARGET: &str = "docs/completed-backlog/defects/7-foo.md";
const REPORT: &str = "docs/completed-backlog/defects/7-foo.report.md";

/// The last step completed before a kill.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
enum Step {
    OutcomeWritten,
    Moved,
    ReportWritten,
    Committed,
}

const STEPS: [Step; 4] = [Step::OutcomeWritten, Step::Moved, Step::ReportWritten, Step::Committed];

fn block(outcome: ItemOutcome, run: &str) -> OutcomeBlock {
    OutcomeBlock {
        outcome,
        run: run.into(),
        reason: None,
        finished: "2026-02-10 14:05".into(),
        cost: "$1.23".into(),
        duration: "12m".into(),
        commits: vec!["abc1234".into()],
        plan: None,
    }
}

/// A repository with an item, and with work of the user's in every state.
fn repo() -> TestRepo {
    let repo = TestRepo::new();
    repo.commit(SOURCE, TEXT);
    write(&repo.root, "a", "staged\n");
    repo.git(&["add", "a"]);
    write(&repo.root, "a", "staged, and changed again\n");
    write(&repo.root, "b", "changed\n");
    write(&repo.root, "new", "not tracked\n");
    write(&repo.root, "docs/defect-backlog/8-other.md", "# Other\n");
    write(&repo.root, "added", "added\n");
    repo.git(&["add", "added"]);
    repo.git(&["rm", "--quiet", "--cached", "c"]);
    repo
}

/// The user's things: index, files, stash; without the item's own.
fn users(repo: &TestRepo) -> Vec<String> {
    let theirs = |line: &&str| !line.contains("7-foo");
    let index = repo.git(&["ls-files", "--stage"]);
    let status = repo.status();
    let mut all: Vec<String> = index.lines().chain(status.lines()).filter(theirs).map(str::to_owned).collect();
    all.extend(["a", "b", "c", "new", "added"].map(|name| format!("{:?}", repo.read(name))));
    all
}

async fn archive_it(repo: &TestRepo, block: &OutcomeBlock) -> Result<Done, ArchiveError> {
    archive_in(&repo.root, block).await
}

async fn archive_in(root: &Path, block: &OutcomeBlock) -> Result<Done, ArchiveError> {
    let (slug, shelves) = ("7-foo".parse().unwrap(), BacklogDirs::default());
    let report = |item: &posse_core::backlog::Item| format!("# Report on {}\n", item.title);
    archive(DISK, &ArchiveRequest { place: place(root, &shelves, &slug), block, report: &report }).await
}

/// Leaves the state of a call that was killed after this step.
async fn killed_after(step: Step, repo: &TestRepo, block: &OutcomeBlock) {
    let index = repo.index();
    edit(DISK, &repo.root.join(SOURCE), |text| set_outcome(text, Kind::Defect, block)).unwrap();
    if step >= Step::Moved {
        write(&repo.root, TARGET, &repo.read(SOURCE).unwrap());
        repo.remove(SOURCE);
    }
    if step >= Step::ReportWritten {
        write(&repo.root, REPORT, "# Report on Foo\n");
    }
    if step == Step::Committed {
        archive_it(repo, block).await.unwrap();
        fs::write(repo.root.join(".git/index"), index).unwrap();
    }
}

fn place<'a>(project: &'a Path, shelves: &'a BacklogDirs, slug: &'a Slug) -> ItemPlace<'a> {
    ItemPlace { project, shelves, slug, kind: Kind::Defect, source: SOURCE, home: Some("main") }
}

fn commits(repo: &TestRepo) -> usize {
    repo.git(&["rev-list", "--count", "HEAD"]).parse().unwrap()
}

/// It is archived: once, completely, and with nothing else in the commit.
#[track_caller]
fn assert_archived(repo: &TestRepo, before: usize, users_before: &[String]) {
    assert_eq!(commits(repo), before + 1, "one commit");
    let changed = repo.git(&["show", "--name-status", "--no-renames", "--format=%s", "HEAD"]);
    assert_eq!(changed, format!("archive 7-foo: completed\n\nA\t{TARGET}\nA\t{REPORT}\nD\t{SOURCE}"));
    assert_eq!(repo.read(SOURCE), None);
    let text = repo.read(TARGET).unwrap();
    assert!(text.contains("## Status: Fixed") && text.matches("## Outcome (posse)").count() == 1, "{text}");
    assert_eq!(repo.git(&["status", "--porcelain", "--", SOURCE, TARGET, REPORT]), "", "the index follows");
    assert_eq!(users(repo), users_before, "nothing of the user's");
}

#[tokio::test]
async fn an_item_is_archived_with_exactly_its_paths() {
    let repo = repo();
    let (before, theirs) = (commits(&repo), users(&repo));
    let done = archive_it(&repo, &block(ItemOutcome::Completed, "R1")).await.unwrap();
    assert_eq!((done.path.as_str(), done.warnings.len()), (TARGET, 0));
    assert_eq!(done.commit, Some(repo.git(&["rev-parse", "HEAD"])));
    assert_archived(&repo, before, &theirs);
    assert!(repo.git(&["log", "-1", "--format=%B"]).contains("\nOutcome: completed\nRun: R1"));
    let again = archive_it(&repo, &block(ItemOutcome::Completed, "R1")).await.unwrap();
    assert_eq!(again.commit, None, "called again, there is nothing to do");
    assert_archived(&repo, before, &theirs);
}

#[tokio::test]
async fn t94_killed_after_any_step_it_is_finished_by_the_next() {
    for step in STEPS {
        let repo = repo();
        let (before, theirs) = (commits(&repo), users(&repo));
        let block = block(ItemOutcome::Completed, "R1");
        killed_after(step, &repo, &block).await;
        archive_it(&repo, &block).await.unwrap();
        assert_archived(&repo, before, &theirs);
        let scan = scan(DISK, &repo.root, &BacklogDirs::default());
        assert!(scan.find(&"7-foo".parse().unwrap()).is_none() && scan.archived.len() == 1, "{step:?}");
    }
}

#[tokio::test]
async fn t93_a_source_that_is_there_again_is_removed_once() {
    let repo = repo();
    let theirs = users(&repo);
    archive_it(&repo, &block(ItemOutcome::Completed, "R1")).await.unwrap();
    let before = commits(&repo);
    for run in ["R1", "R2"] {
        // A merge or a checkout brings it back.
        repo.commit(SOURCE, TEXT);
        let block = block(ItemOutcome::Completed, run);
        let done = archive_it(&repo, &block).await.unwrap();
        assert_eq!(done.path, TARGET);
        assert!(done.commit.is_some() && repo.read(SOURCE).is_none());
        archive_it(&repo, &block).await.unwrap();
    }
    assert_eq!(commits(&repo), before + 4, "two by hand, two by us");
    assert_eq!(users(&repo), theirs);
    // A scan of the backlog shows that the item only has to be removed.
    let (slug, shelves) = ("7-foo".parse().unwrap(), BacklogDirs::default());
    let returned = || place(&repo.root, &shelves, &slug).is_archived(DISK);
    repo.commit(SOURCE, TEXT);
    assert!(returned());
    repo.commit(SOURCE, &TEXT.replace("broken", "broken in another way"));
    assert!(!returned(), "this is another one");
}

#[tokio::test]
async fn another_item_of_the_name_is_not_overwritten() {
    let repo = repo();
    archive_it(&repo, &block(ItemOutcome::Completed, "R1")).await.unwrap();
    let first = repo.read(TARGET);
    repo.commit(SOURCE, &TEXT.replace("broken", "broken in another way"));
    for _ in 0..2 {
        let done = archive_it(&repo, &block(ItemOutcome::Completed, "R2")).await.unwrap();
        assert_eq!(done.path, "docs/completed-backlog/defects/7-foo-2.md");
    }
    assert_eq!(repo.read(TARGET), first);
    assert!(repo.read("docs/completed-backlog/defects/7-foo-2.md").unwrap().contains("another way"));
    assert!(repo.read("docs/completed-backlog/defects/7-foo-2.report.md").is_some());
}

#[tokio::test]
async fn item_that_was_given_up_goes_to_the_failed_backlog() {
    for (outcome, status) in
        [(ItemOutcome::Exhausted, "Exhausted"), (ItemOutcome::Failed, "Failed"), (ItemOutcome::Deadlocked, "Failed")]
    {
        let repo = repo();
        let done = archive_it(&repo, &block(outcome, "R1")).await.unwrap();
        assert_eq!(done.path, "docs/failed-backlog/7-foo.md");
        let text = repo.read(&done.path).unwrap();
        assert!(text.contains(&format!("## Status: {status}\n")) && text.contains(outcome.as_str()), "{text}");
        assert!(repo.git(&["log", "-1", "--format=%s"]).starts_with("give up 7-foo: "));
    }
}

/// If another branch is checked out, no byte changes there, and no commit goes onto that branch.
#[tokio::test]
async fn another_branch_gets_nothing() {
    let repo = repo();
    let block = block(ItemOutcome::Completed, "R1");
    for (checkout, words) in [
        (&["checkout", "--quiet", "-b", "feature"][..], "feature is checked out, and the backlog is that of main"),
        (&["checkout", "--quiet", "--detach"][..], "no branch is checked out"),
    ] {
        repo.git(checkout);
        let (before, theirs) = (commits(&repo), users(&repo));
        let error = archive_it(&repo, &block).await.unwrap_err();
        assert!(matches!(error, ArchiveError::Away(_)) && error.to_string().starts_with(words), "{error}");
        assert_eq!((commits(&repo), users(&repo)), (before, theirs));
        assert_eq!(repo.read(SOURCE).as_deref(), Some(TEXT));
    }
    repo.git(&["checkout", "--quiet", "main"]);
    let (before, theirs) = (commits(&repo), users(&repo));
    // In the middle of it: nothing is committed there, and the rest is done when they are back.
    let branch = |name: &str| repo.git(&["symbolic-ref", "HEAD", &format!("refs/heads/{name}")]);
    killed_after(Step::ReportWritten, &repo, &block).await;
    branch("feature");
    let error = archive_it(&repo, &block).await.unwrap_err();
    assert!(matches!(error, ArchiveError::Away(_)), "{error}");
    assert_eq!(commits(&repo), before);
    // The same when it is switched in the middle of a call, after everything was looked at.
    branch("main");
    repo.remove(REPORT);
    let (slug, shelves) = ("7-foo".parse().unwrap(), BacklogDirs::default());
    let report = |_: &posse_core::backlog::Item| {
        branch("feature");
        "# Report on Foo\n".to_owned()
    };
    let request = ArchiveRequest { place: place(&repo.root, &shelves, &slug), block: &block, report: &report };
    let error = archive(DISK, &request).await.unwrap_err();
    assert!(matches!(error, ArchiveError::Away(_)), "{error}");
    assert_eq!(commits(&repo), before);
    branch("main");
    archive_it(&repo, &block).await.unwrap();
    assert_archived(&repo, before, &theirs);
    assert_eq!(repo.git(&["rev-list", "--count", "feature"]).parse::<usize>().unwrap(), before);
}

#[tokio::test]
async fn what_cannot_be_done_changes_nothing() {
    let repo = repo();
    let block = block(ItemOutcome::Completed, "R1");
    fs::write(repo.root.join(".git/MERGE_HEAD"), repo.git(&["rev-parse", "HEAD"])).unwrap();
    let error = archive_it(&repo, &block).await.unwrap_err();
    assert!(error.to_string().starts_with("a merge is under way"), "{error}");
    assert_eq!(repo.read(SOURCE).as_deref(), Some(TEXT));
    fs::remove_file(repo.root.join(".git/MERGE_HEAD")).unwrap();
    repo.hook("pre-commit", "echo no >&2; exit 1");
    let error = archive_it(&repo, &block).await.unwrap_err();
    assert!(matches!(error, ArchiveError::NotCommitted { .. }) && error.to_string().ends_with("no"), "{error}");
    fs::remove_file(repo.root.join(".git/hooks/pre-commit")).unwrap();
    crate::git::guard::begin(DISK, &crate::environment::Environment::default(), &repo.root).unwrap();
    let before = commits(&repo);
    assert!(archive_it(&repo, &block).await.unwrap().commit.is_some(), "the rest is done later");
    assert_eq!(commits(&repo), before + 1);
    fs::remove_file(repo.root.join(TARGET)).unwrap();
    let error = archive_it(&repo, &block).await.unwrap_err();
    assert!(matches!(error, ArchiveError::SourceMissing(_)), "{error}");
}

#[tokio::test]
async fn without_git_it_is_moved() {
    let place = tempfile::tempdir().unwrap();
    let root = place.path().canonicalize().unwrap();
    write(&root, SOURCE, TEXT);
    let block = block(ItemOutcome::Completed, "R1");
    let done = archive_in(&root, &block).await.unwrap();
    assert_eq!((done.path.as_str(), done.commit), (TARGET, None));
    assert!(root.join(TARGET).exists() && !root.join(SOURCE).exists());
}

#[tokio::test]
async fn what_git_ignores_stays_out_of_it() {
    let repo = repo();
    repo.commit(".gitignore", "docs/completed-backlog/\n");
    let done = archive_it(&repo, &block(ItemOutcome::Completed, "R1")).await.unwrap();
    assert!(repo.read(&done.path).is_some());
    assert_eq!(repo.git(&["show", "--name-status", "--format=", "HEAD"]), format!("D\t{SOURCE}"));
}

/// git reads the index again after a hook. Without an index it would commit that all files are gone.
#[test]
fn commit_that_nobody_waits_for_keeps_its_index() {
    let repo = repo();
    let gates = tempfile::tempdir().unwrap();
    let (begun, may_end) = (gates.path().join("begun"), gates.path().join("may-end"));
    repo.hook("pre-commit", &format!("mkfifo {0} && echo > {1} && read _ < {0}", may_end.display(), begun.display()));
    let (before, files) = (commits(&repo), repo.git(&["ls-tree", "-r", "--name-only", "HEAD"]).lines().count());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let block = block(ItemOutcome::Completed, "R1");
    runtime.block_on(async {
        let hook_runs = async {
            while !begun.exists() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::select! {
            done = archive_it(&repo, &block) => panic!("{done:?}"),
            () = hook_runs => {}
        }
    });
    // Waits for everything that the dropped caller left to blocking threads.
    drop(runtime);
    fs::write(&may_end, "\n").unwrap();
    wait_for_gits(&repo.root);
    assert_eq!(commits(&repo), before + 1);
    // The item moved, and its report came.
    assert_eq!(repo.git(&["ls-tree", "-r", "--name-only", "HEAD"]).lines().count(), files + 1);
}

/// The state of the item in the user's checkout.
#[derive(Clone, Copy, Debug)]
enum Item {
    Committed,
    CommittedAndChanged,
    CommittedAndStaged,
    OnlyAdded,
    NotTracked,
}

async fn play(item: Item, kills: &[u64]) {
    let repo = repo();
    match item {
        Item::Committed => {}
        Item::CommittedAndChanged => write(&repo.root, SOURCE, &format!("{TEXT}\nMore.\n")),
        Item::CommittedAndStaged => {
            write(&repo.root, SOURCE, &format!("{TEXT}\nMore.\n"));
            repo.git(&["add", SOURCE]);
        }
        Item::OnlyAdded | Item::NotTracked => {
            repo.git(&["rm", "--quiet", "-f", SOURCE]);
            repo.git(&["commit", "--quiet", "-m", "without", "--", SOURCE]);
            write(&repo.root, SOURCE, TEXT);
            if matches!(item, Item::OnlyAdded) {
                repo.git(&["add", SOURCE]);
            }
        }
    }
    let (before, theirs) = (commits(&repo), users(&repo));
    let block = block(ItemOutcome::Completed, "R1");
    for kill in kills {
        let _ = tokio::time::timeout(Duration::from_millis(*kill), archive_it(&repo, &block)).await;
        wait_for_gits(&repo.root);
    }
    archive_it(&repo, &block).await.unwrap();
    assert_eq!(commits(&repo), before + 1, "one commit");
    let changed = repo.git(&["show", "--name-only", "--no-renames", "--format=", "HEAD"]);
    assert!(changed.lines().all(|path| path.contains("7-foo")), "{changed}");
    assert_eq!(repo.git(&["status", "--porcelain", "--", SOURCE, TARGET, REPORT]), "");
    assert!(repo.read(SOURCE).is_none() && repo.read(TARGET).is_some());
    assert_eq!(users(&repo), theirs);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, max_shrink_iters: 20, failure_persistence: None, ..Default::default() })]

    #[test]
    fn killed_at_any_moment(
        item in prop::sample::select(vec![Item::Committed, Item::CommittedAndChanged, Item::CommittedAndStaged, Item::OnlyAdded, Item::NotTracked]),
        kills in prop::collection::vec(0..200_u64, 0..4),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(play(item, &kills));
    }
}

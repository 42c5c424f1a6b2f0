//! Repositories that have lost objects.

use super::WorkTree;
use super::test_repo::TestRepo;

#[tokio::test]
async fn a_missing_object_is_explained_with_what_to_do() {
    for lost in ["HEAD:d/e", "HEAD:d", "HEAD"] {
        let repo = TestRepo::new();
        repo.commit("d/e", "hello");
        let object = repo.git(&["rev-parse", lost]);
        repo.remove(&format!(".git/objects/{}/{}", &object[..2], &object[2..]));
        let tree = WorkTree::at(&repo.root).await.unwrap();
        let error = match lost {
            "HEAD" => tree.ask(&["log", "-1", "HEAD"]).await.unwrap_err(),
            _ => tree.write_files(&["worktree", "add", "-q", "--detach", "../area"]).await.unwrap_err(),
        };
        let error = error.to_string();
        assert!(error.contains("git fsck --full") && error.contains("git fetch --refetch"), "{lost}: {error}");
    }
}

#[tokio::test]
async fn other_failures_are_told_in_the_words_of_git() {
    let repo = TestRepo::new();
    let tree = WorkTree::at(&repo.root).await.unwrap();
    let error = tree.ask(&["rev-parse", "--verify", "no-such-branch"]).await.unwrap_err().to_string();
    assert!(!error.contains("fsck"), "{error}");
}

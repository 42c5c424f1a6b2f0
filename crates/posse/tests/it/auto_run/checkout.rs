//! Somebody works on another branch while the backlog is worked through.

use super::*;
use crate::steps::{DONE, commit, wait_for};

impl Scene {
    fn commits(&self, branch: &str) -> Vec<String> {
        self.git(&["log", "--format=%s", branch]).lines().map(str::to_owned).collect()
    }
}

/// The work goes where it belongs; what would be read or written in the checkout waits until they are back, also through
/// another daemon. The strange branch gets nothing.
#[test]
fn an_item_is_archived_where_its_work_went() {
    let scene = Scene::new(&["1-bug", "2-more"]);
    scene.claude.gate("gate");
    scene.does("1-bug");
    scene.claude.play("do-1-bug.1", wait_for("gate") + &commit("1-bug", "done") + DONE);
    scene.does("2-more");
    let id = scene.begin(&json!({}));
    scene.until_waits("do-1-bug", 1);
    scene.git(&["checkout", "-q", "-b", "elsewhere"]);
    fs::write(scene.env.work().join("mine"), "mine\n").unwrap();
    scene.git(&["add", "mine"]);
    scene.git(&["commit", "-q", "-m", "mine"]);
    let theirs = scene.commits("elsewhere");
    let away = "elsewhere is checked out, and the backlog is that of main";
    when("it is seen", || scene.show(&id)?["away"].as_str()?.starts_with(away).then_some(()));
    scene.claude.open_gate("gate");
    let waits = || scene.why("1-bug").1.starts_with(&format!("checking the plan waits: {away}")).then_some(());
    when("it waits", waits);
    assert!(scene.commits("main").len() > 2, "what is done is done");
    assert!(scene.git(&["show", "main:1-bug"]).contains("done"));
    scene.another_daemon(&id);
    when("it still waits", waits);
    assert_eq!(scene.commits("elsewhere"), theirs, "nothing comes here");
    assert_eq!(scene.git(&["status", "--porcelain"]), "?? .posse/\n", "nor is anything written");
    assert_eq!(scene.names("docs/feature-backlog"), ["2-more.md"], "nor begun");
    assert_eq!(scene.claude.sessions(), 3, "planner, worker, validator");

    scene.git(&["checkout", "-q", "main"]);
    scene.ends(&id, "verified", "2 done");
    let archived = scene.commits("main").iter().filter(|subject| subject.starts_with("archive ")).count();
    assert_eq!((archived, scene.commits("elsewhere")), (2, theirs));
    assert_eq!(scene.claude.sessions(), 7);
    let (.., history) = scene.why("1-bug");
    assert!(history.iter().any(|line| line.starts_with(away)), "{history:?}");
}

/// What was begun for one branch is not mixed into another by the next pipeline.
#[test]
fn what_was_begun_on_one_branch_waits_for_it() {
    let scene = Scene::new(&["1-more"]);
    scene.claude.gate("gate");
    scene.does("1-more");
    scene.claude.play("do-1-more.1", wait_for("gate"));
    let id = scene.begin(&json!({}));
    scene.until_waits("do-1-more", 1);
    let stopped = scene.env.http().post(&format!("/runs/{id}/stop"), &json!({ "how": "now" })).unwrap();
    assert_eq!((stopped.status, scene.ended(&id).0.as_str()), (200, "stopped"));
    scene.git(&["checkout", "-q", "-b", "elsewhere"]);
    let id = scene.begin(&json!({}));
    scene.ends(&id, "verified", "nothing to do");
    let (standing, reason, _) = scene.why("1-more");
    assert!(standing == "held" && reason.starts_with("what was done for it is on main"), "{standing}: {reason}");
    scene.git(&["checkout", "-q", "main"]);
    scene.does("1-more");
    scene.claude.play("do-1-more.2", commit("1-more", "done") + DONE);
    let id = scene.begin(&json!({}));
    scene.ends(&id, "verified", "1 done");
}

/// A session goes on whatever is checked out, and another daemon goes on with it: what it was asked about is not read anew.
#[test]
fn a_session_is_gone_on_with_where_its_item_is_not_checked_out() {
    let scene = Scene::new(&["1-more"]);
    scene.claude.gate("gate");
    scene.does("1-more");
    scene.claude.play("plan.1", wait_for("gate") + PLANNER);
    let id = scene.begin(&json!({}));
    scene.until_waits("plan", 1);
    scene.git(&["checkout", "-q", "-b", "elsewhere"]);
    scene.git(&["rm", "-q", "docs/feature-backlog/1-more.md"]);
    scene.git(&["commit", "-q", "-m", "without it"]);
    scene.another_daemon(&id);
    scene.claude.open_gate("gate");
    when("it waits", || scene.why("1-more").1.starts_with("checking the plan waits").then_some(()));
    scene.git(&["checkout", "-q", "main"]);
    scene.ends(&id, "verified", "1 done");
    assert_eq!(scene.claude.sessions(), 3, "planner, worker, validator");
}

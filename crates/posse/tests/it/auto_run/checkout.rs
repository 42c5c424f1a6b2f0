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

//! Several items at once, and a person who works on another branch meanwhile.

use super::*;
use crate::steps::{DONE, commit, wait_for};

impl Scene {
    fn under_way(&self, id: &str) -> Option<Vec<String>> {
        let view = self.show(id)?;
        let doing = view["doing"].as_array()?.iter();
        let said = |doing: &Value| format!("{} {}", doing["item"].as_str().unwrap(), doing["step"].as_str().unwrap());
        Some(doing.map(said).collect())
    }
}

/// As many as are configured, and no more; what is new is taken up while others are worked on.
#[test]
fn as_many_items_as_are_configured_are_worked_on_at_once() {
    let scene = Scene::new(&["1-more", "2-more"]);
    scene.configure("[pipeline]\nmax_parallel_items = 2\n");
    for item in ["1-more", "2-more", "3-more"] {
        scene.does(item);
    }
    for item in ["1-more", "2-more"] {
        scene.claude.gate(item);
        scene.claude.play(&format!("do-{item}.1"), wait_for(item) + &commit(item, "done") + DONE);
    }
    let text = scene.auto_ends(0, &["--detach"]);
    let id = text.trim().to_owned();
    when("both", || (scene.claude.waits("do-1-more", 1) && scene.claude.waits("do-2-more", 1)).then_some(()));
    when("both are shown", || (scene.under_way(&id)? == ["1-more executing", "2-more executing"]).then_some(()));
    scene.auto_says(0, &["show"], &["▸ 1-more", "▸ 2-more"]);
    // One more is too many, until there is room.
    scene.add("3-more");
    scene.claude.open_gate("1-more");
    scene.until_archived("3-more");
    when("the second is alone", || (scene.under_way(&id)? == ["2-more executing"]).then_some(()));
    // And one is taken up while another is worked on.
    scene.does("4-more");
    scene.add("4-more");
    scene.until_archived("4-more");
    scene.claude.open_gate("2-more");
    scene.until_archived("2-more");
    scene.auto_ends(0, &["stop"]);
    scene.ends_as(&id, "stopped");
    scene.archived_once(&["1-more", "2-more", "3-more", "4-more"]);
    assert_eq!(scene.claude.sessions(), 12, "none is worked on twice");
}

/// In one's own checkout there is room for one.
#[test]
fn several_items_in_one_checkout_are_refused() {
    let scene = Scene::new(&["1-more"]);
    let config = "[pipeline]\nmax_parallel_items = 2\n[git]\nisolation = 'in_place'\n";
    scene.configure(config);
    let (code, text) = scene.auto(&["--once"]);
    assert!(code != 0 && text.contains("several items at once need work trees"), "{code} {text}");
    assert_eq!(scene.claude.sessions(), 0);
}

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

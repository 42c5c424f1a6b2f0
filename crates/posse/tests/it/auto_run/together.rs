//! Several items at once.

use super::*;
use crate::steps::{DONE, commit, wait_for};

impl Scene {
    fn under_way(&self, id: &str) -> Option<Vec<String>> {
        let view = self.show(id)?;
        let doing = view["doing"].as_array()?.iter();
        let said = |doing: &Value| format!("{} {}", doing["item"].as_str().unwrap(), doing["step"].as_str().unwrap());
        Some(doing.map(said).collect())
    }

    /// Each was archived once, and nothing is left behind.
    #[track_caller]
    fn archived_once(&self, items: &[&str]) {
        for item in items {
            let moved = format!("docs/completed-backlog/features/{item}.md");
            let commits = self.git(&["log", "--format=%h", "--", &moved]);
            assert_eq!(commits.lines().count(), 1, "{item}");
            assert_eq!(self.file(item).as_deref(), Some("done\n"));
        }
        assert_eq!(self.git(&["status", "--porcelain"]), "?? .posse/\n");
        // What runs of plans leave is cleared away after they have ended.
        when("no work tree is left", || (self.git(&["worktree", "list"]).lines().count() == 1).then_some(()));
    }
}

/// As many as are configured, and no more; what is new is taken up while others are worked on.
#[test]
fn as_many_items_as_are_configured_are_worked_on_at_once() {
    let scene = Scene::new(&["1-more", "2-more"]);
    fs::create_dir_all(scene.env.work().join(".posse")).unwrap();
    fs::write(scene.env.work().join(".posse/config.toml"), "[pipeline]\nmax_parallel_items = 2\n").unwrap();
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
    let (code, text) = scene.auto(&["show"]);
    assert!(code == 0 && text.contains("now: 1-more") && text.contains("now: 2-more"), "{text}");
    // One more is too many, until there is room.
    scene.add("3-more");
    scene.claude.open_gate("1-more");
    when("the third", || scene.there("docs/completed-backlog/features").contains(&"3-more.md".into()).then_some(()));
    when("the second is alone", || (scene.under_way(&id)? == ["2-more executing"]).then_some(()));
    // And one is taken up while another is worked on.
    scene.does("4-more");
    scene.add("4-more");
    when("the fourth", || scene.there("docs/completed-backlog/features").contains(&"4-more.md".into()).then_some(()));
    scene.claude.open_gate("2-more");
    when("the second", || scene.there("docs/completed-backlog/features").contains(&"2-more.md".into()).then_some(()));
    scene.auto_ends(0, &["stop"]);
    assert_eq!(scene.ended(&id).0, "stopped");
    scene.archived_once(&["1-more", "2-more", "3-more", "4-more"]);
    assert_eq!(scene.claude.sessions(), 12, "none is worked on twice");
}

#[test]
fn the_daemon_may_die_at_any_time_of_several_items() {
    let items = ["1-more", "2-more", "3-more"];
    let scene = Scene::new(&items);
    items.iter().for_each(|item| scene.does(item));
    scene.claude.gate("gate");
    scene.claude.play("plan.1", wait_for("gate") + PLANNER);
    let id = scene.begin(&json!({ "config": { "pipeline": { "max_parallel_items": 3 } } }));
    let kills = scene.killed_till_over(&id, 8, 2);
    let (outcome, reason) = scene.ended(&id);
    assert_eq!((outcome.as_str(), reason.as_str()), ("verified", "3 done"), "{kills} kills: {:#}", scene.journal(&id));
    assert_eq!(scene.claude.sessions(), 9, "after {kills} kills: {:#}", scene.journal(&id));
    scene.archived_once(&items);
}

/// In one's own checkout there is room for one.
#[test]
fn several_items_in_one_checkout_are_refused() {
    let scene = Scene::new(&["1-more"]);
    fs::create_dir_all(scene.env.work().join(".posse")).unwrap();
    let config = "[pipeline]\nmax_parallel_items = 2\n[git]\nisolation = 'in_place'\n";
    fs::write(scene.env.work().join(".posse/config.toml"), config).unwrap();
    let (code, text) = scene.auto(&["--once"]);
    assert!(code != 0 && text.contains("several items at once need work trees"), "{code} {text}");
    assert_eq!(scene.claude.sessions(), 0);
}

//! The same, as people see it.

use rustix::process::{Pid, Signal, kill_process};

use super::*;

#[test]
fn t89_a_second_one_is_refused_and_the_first_goes_on_until_it_is_stopped() {
    let scene = Scene::new(&["1-more"]);
    scene.claude.gate("gate");
    scene.does("1-more");
    scene.claude.play("plan", wait_for("gate") + PLANNER);
    scene.auto_ends(0, &["--detach"]);
    scene.until_waits("plan", 1);
    scene.auto_says(6, &[], &["one at a time", "posse run stop"]);
    scene.auto_says(0, &["show"], &["watches the backlog", "▸ 1-more", "  planning"]);
    scene.auto_says(0, &["items"], &["▸  1-more", "planning"]);
    let follower = spawned(scene.command(&["follow"]));
    scene.auto_says(0, &["stop"], &["goes on with it"]);
    scene.claude.open_gate("gate");
    ended_with(3, follower);
    scene.auto_says(1, &["stop", "--now"], &["is over"]);
    scene.auto_ends(0, &["--drain"]);
    assert!(scene.claude.called("plan", 2).is_none(), "the plan that was made is used");
}

#[test]
fn what_waits_for_a_person_is_listed_with_the_reason_until_somebody_says_go_on() {
    let scene = Scene::new(&["1-bug"]);
    scene.does_again_and_again("1-bug");
    scene.claude.play("verify", end("I could not decide."));
    scene.auto_says(7, &["--drain"], &["`posse run show` shows what waits for you"]);
    scene.auto_says(0, &["items"], &["–  1-bug", "needs_attention"]);
    let items = scene.auto_says(0, &["items", "--json"], &[]);
    let items: Value = serde_json::from_str(&items).unwrap();
    let known = ["attempts", "cost"].map(|key| items["items"][0][key].clone());
    assert_eq!(known, [json!(0), json!("1.50 USD")], "as the pipeline knows it");
    scene.auto_says(1, &["retry", ".", "1-bug"], &["posse auto --retry 1-bug"]);
    scene.claude.play("verify", VERIFIED);
    // Asked of one that has only just begun, and has yet to look at its backlog.
    scene.auto_ends(0, &["--detach"]);
    scene.auto_says(1, &["retry", ".", "2-bug"], &["nothing is known of an item"]);
    scene.auto_ends(0, &["retry", ".", "1-bug"]);
    scene.until_archived("1-bug");
    scene.auto_ends(0, &["stop"]);
}

#[test]
fn an_interrupted_one_goes_on_where_it_was_also_with_another_daemon() {
    let scene = Scene::new(&["1-more"]);
    scene.claude.gate("gate");
    scene.does("1-more");
    scene.claude.play("plan.1", wait_for("gate"));
    let child = spawned(scene.command(&["--drain"]));
    scene.until_waits("plan", 1);
    let interrupt = || kill_process(Pid::from_raw(child.id() as i32).unwrap(), Signal::INT).unwrap();
    interrupt();
    scene.until_journaled(&scene.newest(), "stop");
    interrupt();
    let shown = ended_with(130, child);
    assert!(shown.contains("stopping now"), "{shown}");
    // A following command provides the environment again after the daemon dies.
    scene.claude.play("plan.2", wait_for("gate") + PLANNER);
    let child = spawned(scene.command(&["--drain"]));
    scene.until_waits("plan", 2);
    scene.env.kill_daemon();
    scene.claude.open_gate("gate");
    ended_with(0, child);
    assert!(scene.is_archived("1-more"));
}

/// T93, and the converse: a remembered item is no evidence that it is done. The archive has to show it, too.
#[test]
fn what_somebody_puts_back_is_done_again_unless_the_archive_has_it() {
    let scene = Scene::new(&["1-more"]);
    scene.does_again_and_again("1-more");
    let first = scene.git(&["rev-parse", "HEAD"]);
    assert_eq!(scene.auto(&["--drain"]).0, 0);
    // Both: it only has to go.
    scene.git(&["checkout", "-q", first.trim(), "--", "docs/feature-backlog"]);
    let shown = scene.auto_says(0, &["--drain"], &["it is done already"]);
    assert!(scene.claude.called("plan", 2).is_none(), "{shown}");
    assert_eq!(scene.names("docs/feature-backlog"), Vec::<String>::new());
    // As if it had never been done.
    scene.git(&["reset", "-q", "--hard", first.trim()]);
    let shown = scene.auto_ends(0, &["--drain"]);
    assert!(scene.claude.called("plan", 2).is_some() && scene.file("1-more").is_some(), "{shown}");
    assert!(scene.is_archived("1-more"), "{shown}");
}

/// Agents can write the project's file.
#[test]
fn commands_of_a_project_need_a_yes_before_a_backlog_is_worked_on() {
    let scene = Scene::new(&["1-more"]);
    scene.configure("test_command = 'touch ../test-ran'\n");
    let mut command = scene.env.command(["auto", "--drain"]);
    let (code, text) = said(&command.env("PATH", scene.claude.path()).stdin(Stdio::null()).output().unwrap());
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("touch ../test-ran") && text.contains("posse plan trust"), "{text}");
    assert_eq!(scene.claude.sessions(), 0, "nothing was started");
}

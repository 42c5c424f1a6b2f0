//! The same, as people see it.

use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use super::*;
use crate::plan_run::{ended, ended_with, said};
use crate::steps::{end, wait_for};

impl Scene {
    fn command(&self, arguments: &[&str]) -> Command {
        // The user has confirmed what the project's file names.
        let _ = self.env.command(["plan", "trust"]).stdin(Stdio::null()).output().unwrap();
        let verb =
            ["show", "why", "log", "follow", "stop", "retry", "answer"].contains(arguments.first().unwrap_or(&""));
        let mut command = self.env.command([if verb { "run" } else { "auto" }]);
        command.args(arguments).env("PATH", self.claude.path()).stdin(Stdio::null());
        command
    }

    /// Runs `posse auto`, or a verb of `posse run`: exit code, and what it said.
    #[track_caller]
    pub(super) fn auto(&self, arguments: &[&str]) -> (i32, String) {
        said(&self.command(arguments).output().unwrap())
    }

    /// Runs `posse auto`, which has to end with this code, and returns what it said.
    #[track_caller]
    pub(super) fn auto_ends(&self, code: i32, arguments: &[&str]) -> String {
        let (found, text) = self.auto(arguments);
        assert_eq!(found, code, "{text}");
        text
    }

    fn follows(&self, arguments: &[&str]) -> Child {
        self.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }
}

#[test]
fn a_backlog_is_drained_and_can_be_asked_about() {
    let scene = Scene::new(&["1-bug", "2-more"]);
    scene.does("1-bug");
    scene.does("2-more");
    let shown = scene.auto_ends(0, &["--drain"]);
    for told in [
        "1-bug: planner (planner)",
        "1-bug: planned",
        "1-bug: verification 1: Pass",
        "2-more: ",
        "2 done",
        "7 sessions, 1.75 USD",
    ] {
        assert!(shown.contains(told), "{told}: {shown}");
    }
    let (code, status) = scene.auto(&["show"]);
    assert_eq!(code, 0);
    assert!(status.contains("passed") && status.contains("2 done") && status.contains("■  1-bug"), "{status}");
    let (_, why) = scene.auto(&["why", ".", "docs/defect-backlog/1-bug.md"]);
    assert!(why.starts_with("■ 1-bug: completed\n") && why.contains("all evidence is there"), "{why}");
    let json = scene.env.run(["run", "why", ".", "1-bug", "--json"]).json();
    assert_eq!(json["item"]["standing"], "ended");
    let (code, nothing) = scene.auto(&["--drain"]);
    assert!(code == 0 && nothing.contains("nothing to do"), "{nothing}");
    let (code, unknown) = scene.auto(&["why", ".", "3-nobody"]);
    assert!(code == 1 && unknown.contains("there is no item 3-nobody"), "{unknown}");
}

#[test]
fn one_item_and_no_more() {
    let scene = Scene::new(&["1-more", "2-more"]);
    scene.does("1-more");
    scene.does("2-more");
    scene.auto_ends(0, &["--item", "docs/feature-backlog/2-more.md"]);
    assert_eq!(scene.there("docs/feature-backlog"), ["1-more.md"]);
    scene.auto_ends(0, &["--once"]);
    assert_eq!(scene.there("docs/feature-backlog"), Vec::<String>::new());
}

#[test]
fn t89_a_second_one_is_refused_and_the_first_goes_on_until_it_is_stopped() {
    let scene = Scene::new(&["1-more"]);
    scene.claude.gate("gate");
    scene.does("1-more");
    scene.claude.play("plan", wait_for("gate") + PLANNER);
    scene.auto_ends(0, &["--detach"]);
    when("the planner", || scene.claude.waits("plan", 1).then_some(()));
    let (code, refused) = scene.auto(&[]);
    assert!(code == 6 && refused.contains("one at a time") && refused.contains("posse run stop"), "{refused}");
    let (_, status) = scene.auto(&["show"]);
    assert!(status.contains("watches the backlog") && status.contains("now: 1-more  planning"), "{status}");
    let (_, items) = scene.auto(&["items"]);
    assert!(items.contains("▸  1-more") && items.contains("planning"), "{items}");
    let follower = scene.follows(&["follow"]);
    let (code, stopped) = scene.auto(&["stop"]);
    assert!(code == 0 && stopped.contains("goes on with it"), "{stopped}");
    scene.claude.open_gate("gate");
    ended_with(3, follower);
    let (code, nothing) = scene.auto(&["stop", "--now"]);
    assert!(code == 1 && nothing.contains("is over"), "{nothing}");
    scene.auto_ends(0, &["--drain"]);
    assert!(scene.claude.called("plan", 2).is_none(), "the plan that was made is used");
}

#[test]
fn what_waits_for_a_person_is_listed_with_the_reason_until_somebody_says_go_on() {
    let scene = Scene::new(&["1-bug"]);
    scene.does_again_and_again("1-bug");
    scene.claude.play("verify", end("I could not decide."));
    let shown = scene.auto_ends(7, &["--drain"]);
    assert!(shown.contains("`posse run show` shows what waits for you"), "{shown}");
    let (_, items) = scene.auto(&["items"]);
    assert!(items.contains("–  1-bug") && items.contains("needs_attention"), "{items}");
    let (code, refused) = scene.auto(&["retry", ".", "1-bug"]);
    assert!(code == 1 && refused.contains("posse auto --retry 1-bug"), "{refused}");
    scene.claude.play("verify", VERIFIED);
    // Asked of one that has only just begun, and has yet to look at its backlog.
    scene.auto_ends(0, &["--detach"]);
    let (code, unknown) = scene.auto(&["retry", ".", "2-bug"]);
    assert!(code == 1 && unknown.contains("nothing is known of an item"), "{unknown}");
    scene.auto_ends(0, &["retry", ".", "1-bug"]);
    when("it is done", || scene.there("docs/completed-backlog/defects").contains(&"1-bug.md".into()).then_some(()));
    scene.auto_ends(0, &["stop"]);
}

#[test]
fn what_waits_for_a_person_is_taken_up_by_the_next_one_that_is_told_to() {
    let scene = Scene::new(&["1-bug"]);
    scene.does_again_and_again("1-bug");
    scene.claude.play("verify", end("I could not decide."));
    scene.auto_ends(7, &["--drain"]);
    scene.claude.play("verify", VERIFIED);
    scene.auto_ends(0, &["--drain", "--retry", "1-bug"]);
}

#[test]
fn an_interrupted_one_goes_on_where_it_was_also_with_another_daemon() {
    let scene = Scene::new(&["1-more"]);
    scene.claude.gate("gate");
    scene.does("1-more");
    scene.claude.play("plan.1", wait_for("gate"));
    let child = scene.follows(&["--drain"]);
    when("the planner", || scene.claude.waits("plan", 1).then_some(()));
    let interrupt = || kill_process(Pid::from_raw(child.id() as i32).unwrap(), Signal::INT).unwrap();
    interrupt();
    when("it is told", || {
        let autos: Value = scene.env.http().get("/runs?kind=backlog").ok()?;
        let id = autos[0]["id"].as_str()?.to_owned();
        let journal: Value = scene.env.http().get(&format!("/runs/{id}/journal")).ok()?;
        journal.as_array()?.iter().any(|entry| entry["event"].get("stop").is_some()).then_some(())
    });
    interrupt();
    let (code, shown) = ended(child);
    assert!(code == 130 && shown.contains("stopping now"), "{code}: {shown}");
    // Who follows brings the environment back when the daemon dies.
    scene.claude.play("plan.2", wait_for("gate") + PLANNER);
    let child = scene.follows(&["--drain"]);
    when("the planner", || scene.claude.waits("plan", 2).then_some(()));
    scene.env.kill_daemon();
    scene.claude.open_gate("gate");
    ended_with(0, child);
    assert!(scene.there("docs/completed-backlog/features").contains(&"1-more.md".to_owned()));
}

#[test]
fn what_is_too_vague_is_asked_about() {
    let scene = Scene::new(&[]);
    fs::write(scene.env.work().join("docs/feature-backlog/1-more.md"), "# More\n").unwrap();
    scene.auto_ends(7, &["--drain"]);
    assert!(scene.auto(&["items"]).1.contains("waits for an answer: How will one see that it is done?"));
    assert_eq!(scene.claude.sessions(), 0, "nothing was spent");
    scene.does("1-more");
    scene.claude.play("plan", PLANNER.replace("        target_acs: [AC1]\n", ""));
    assert_eq!(scene.auto(&["answer", ".", "1-more", "there", "is more"]).0, 0);
    let (_, items) = scene.auto(&["items"]);
    assert!(items.contains("1  1-more") && !items.contains("needs_clarification"), "{items}");
    scene.auto_ends(0, &["--drain"]);
}

/// T93, and its other side: what is remembered of an item is no evidence that it is done. The archive has to say so, too.
#[test]
fn what_somebody_puts_back_is_done_again_unless_the_archive_has_it() {
    let scene = Scene::new(&["1-more"]);
    scene.does_again_and_again("1-more");
    let first = scene.git(&["rev-parse", "HEAD"]);
    assert_eq!(scene.auto(&["--drain"]).0, 0);
    // Both: it only has to go.
    scene.git(&["checkout", "-q", first.trim(), "--", "docs/feature-backlog"]);
    let (code, shown) = scene.auto(&["--drain"]);
    assert!(code == 0 && shown.contains("it is done already"), "{shown}");
    assert!(scene.claude.called("plan", 2).is_none(), "{shown}");
    assert_eq!(scene.there("docs/feature-backlog"), Vec::<String>::new());
    // As if it had never been done.
    scene.git(&["reset", "-q", "--hard", first.trim()]);
    let shown = scene.auto_ends(0, &["--drain"]);
    assert!(scene.claude.called("plan", 2).is_some() && scene.file("1-more").is_some(), "{shown}");
    assert!(scene.there("docs/completed-backlog/features").contains(&"1-more.md".to_owned()), "{shown}");
}

/// Agents can write the project's file.
#[test]
fn commands_of_a_project_need_a_yes_before_a_backlog_is_worked_on() {
    let scene = Scene::new(&["1-more"]);
    fs::create_dir_all(scene.env.work().join(".posse")).unwrap();
    fs::write(scene.env.work().join(".posse/config.toml"), "test_command = 'touch ../test-ran'\n").unwrap();
    let mut command = scene.env.command(["auto", "--drain"]);
    let (code, text) = said(&command.env("PATH", scene.claude.path()).stdin(Stdio::null()).output().unwrap());
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("touch ../test-ran") && text.contains("posse plan trust"), "{text}");
    assert_eq!(scene.claude.sessions(), 0, "nothing was started");
}

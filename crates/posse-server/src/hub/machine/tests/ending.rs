//! The end of terminals, and of the daemon.

use super::*;

#[test]
fn keeper_forgets_an_exit_only_after_it_is_written() {
    let (mut story, id) = Story::with_running();
    story.exits(id);
    story.expect(&["drop pump", "remove events file", "write: put + terminal_exited, then forget"]);
    story.stored();
    story.expect(&["publish terminal_exited"]);
}

#[test]
fn every_caller_of_a_deletion_is_answered_after_it_is_written() {
    let (mut story, id) = Story::with_running();
    story.delete(id);
    story.delete(id);
    story.expect(&["keeper: End", "keeper: End"]);
    story.family_ended(id, 2);
    story.expect(&["pump: keeper lost", "drop pump", "remove files", "write: drop + terminal_deleted, then forget"]);
    story.family_ended(id, 0);
    story.expect(&[]);
    story.stored();
    story.expect(&["publish terminal_deleted", "reply: deleted, 2 left", "reply: deleted, 2 left"]);
    story.delete(id);
    story.expect(&["reply: nothing to delete"]);
    // The pump saves its last screen after that.
    story.exits(id);
    story.expect(&["remove files"]);
}

#[test]
fn deletion_waits_for_a_keeper_that_reconnects_and_fails_if_it_is_silent() {
    let (mut story, id) = Story::with_running();
    story.delete(id);
    story.log.clear();
    story.untaken(Untaken::End { id });
    story.expect(&["reply: not deleted: it was stopped"]);
    story.lost();
    story.log.clear();
    story.delete(id);
    story.expect(&[]);
    story.keeper_up(vec![]);
    assert!(story.log.contains(&"keeper: End".to_owned()), "{:?}", story.log);
}

#[test]
fn daemon_stops_when_its_farewell_is_written_and_the_keeper_answers() {
    let (mut story, _) = Story::with_running();
    story.stop(false);
    story.expect(&["write: daemon_stopped"]);
    story.stored();
    story.expect(&["publish daemon_stopped", "keeper: Rest"]);
    assert!(!story.machine.finished);
    story.resting();
    story.expect(&["reply: stopped, 1 running"]);
    assert!(story.machine.finished);
}

#[test]
fn silent_or_lost_keeper_does_not_hold_up_a_stop() {
    for report in [KeeperReport::Lost("killed".into()), KeeperReport::Untaken(Untaken::Rest, "stopped".into())] {
        let mut story = Story::connected();
        story.stop(false);
        story.stored();
        story.log.clear();
        story.keeper(report);
        story.expect(&["reply: stopped, 0 running"]);
    }
}

#[test]
fn stop_of_all_waits_for_every_process() {
    let (mut story, id) = Story::with_running();
    story.stop(true);
    story.expect(&["keeper: End"]);
    // The program exits before its child processes.
    story.exits(id);
    story.expect(&["drop pump", "remove events file", "write: put + terminal_exited, then forget"]);
    story.family_ended(id, 0);
    story.expect(&["write: daemon_stopped"]);
    story.all_stored();
    story.expect(&["publish terminal_exited", "publish daemon_stopped", "keeper: Rest"]);
    story.resting();
    story.expect(&["reply: stopped, 0 running"]);
}

#[test]
fn stop_of_all_overrides_a_stop_that_is_under_way() {
    let (mut story, id) = Story::with_running();
    story.stop(false);
    story.stop(true);
    story.expect(&["write: daemon_stopped", "keeper: End"]);
    story.stored();
    story.expect(&["publish daemon_stopped"]);
    story.exits(id);
    story.family_ended(id, 0);
    story.all_stored();
    story.log.clear();
    story.resting();
    story.expect(&["reply: stopped, 0 running", "reply: stopped, 0 running"]);
}

#[test]
fn stop_of_all_fails_if_the_keeper_ends_nothing_and_may_be_repeated() {
    let (mut story, id) = Story::with_running();
    story.stop(true);
    story.log.clear();
    story.untaken(Untaken::End { id });
    story.expect(&["reply: not stopped: it was stopped"]);
    assert!(!story.machine.finished);
    story.stop(true);
    story.expect(&["keeper: End"]);
}

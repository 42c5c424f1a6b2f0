//! Creating terminals.

use super::*;

#[test]
fn program_is_written_before_it_is_started_and_announced_after() {
    let mut story = Story::connected();
    story.create("a");
    story.expect(&["write once: put + terminal_created"]);
    story.stored();
    story.expect(&["publish terminal_created", "keeper: Spawn"]);
    let id = story.id("a");
    story.spawned(id);
    story.expect(&["start pump from 0 to 0", "write: put + terminal_started", "reply: created a"]);
    story.stored();
    story.expect(&["publish terminal_started"]);
}

#[test]
fn caller_that_does_not_wait_is_answered_when_the_record_is_written() {
    let mut story = Story::connected();
    story.create_with(NewTerminal { at_once: true, ..new_terminal("a") });
    story.expect(&["write once: put + terminal_created"]);
    story.stored();
    story.expect(&["publish terminal_created", "reply: created a", "keeper: Spawn"]);
}

#[test]
fn creator_of_an_agent_is_answered_when_the_agent_is_ready() {
    let cases = [
        (StatusKind::Processing, None),
        (StatusKind::Idle, Some("reply: created a")),
        (StatusKind::WaitingUserAnswer, Some("reply: created a")),
        (StatusKind::Error, Some("reply: not created: it ended while it was starting: starting")),
    ];
    for (kind, answer) in cases {
        let mut story = Story::connected();
        story.create_with(new_agent("a"));
        let id = story.id("a");
        story.expect(&["write once: put + terminal_created"]);
        story.stored();
        story.expect(&["publish terminal_created", "keeper: Spawn"]);
        story.spawned(id);
        story.expect(&["start pump with agent from 0 to 0", "write: put + terminal_started"]);
        story.pump(id, status(kind));
        let mut expected = vec!["write: put + status_changed"];
        expected.extend(answer);
        story.expect(&expected);
    }
}

#[test]
fn requests_that_cannot_be_met_change_nothing() {
    let (mut story, _) = Story::with_running();
    let with = |name, session: &str, choice| {
        let mut new = new_terminal(name);
        new.record.session = session.parse().unwrap();
        NewTerminal { choice, ..new }
    };
    let cases = [
        (new_terminal("a"), "reply: not created: the name a is taken"),
        (with("b", "posse-a", SessionChoice::New), "reply: not created: there is a session posse-a already"),
        (with("b", "posse-x", SessionChoice::Existing), "reply: not created: there is no session posse-x"),
    ];
    for (request, answer) in cases {
        // The first one has the id of an existing terminal.
        let own_file = (request.record.name.as_str() != "a").then_some("remove events file");
        story.create_with(request);
        story.expect(&own_file.into_iter().chain([answer]).collect::<Vec<_>>());
    }
    for request in [with("c", "posse-a", SessionChoice::Existing), with("d", "posse-x", SessionChoice::Any)] {
        story.create_with(request);
        story.expect(&["write once: put + terminal_created"]);
    }
}

#[test]
fn refused_record_starts_nothing() {
    let mut story = Story::connected();
    story.create("a");
    story.log.clear();
    story.refused();
    story.expect(&["remove events file", &format!("reply: not created: {REFUSED}")]);
    assert!(story.machine.terminals.is_empty());
}

#[test]
fn creation_waits_for_a_keeper_that_reconnects() {
    let mut story = Story::connected();
    story.lost();
    story.all_stored();
    story.log.clear();
    story.create("a");
    story.stored();
    // The connection was requested when the keeper was lost.
    story.expect(&["write once: put + terminal_created", "publish terminal_created"]);
    story.keeper_up(vec![]);
    story.expect(&["keeper: Spawn"]);
}

#[test]
fn keeper_that_comes_up_starts_nothing_that_is_not_written() {
    let mut story = Story::begin(vec![]);
    story.all_stored();
    story.create("a");
    story.log.clear();
    story.keeper_up(vec![]);
    story.expect(&[]);
    story.stored();
    story.expect(&["publish terminal_created", "keeper: Spawn"]);
}

#[test]
fn creation_fails_when_no_keeper_can_be_reached() {
    let mut story = Story::begin(vec![]);
    story.all_stored();
    story.log.clear();
    story.create("a");
    story.stored();
    story.expect(&["write once: put + terminal_created", "publish terminal_created", "reconnect"]);
    story.keeper(KeeperReport::Unreachable("no memory".into()));
    story.expect(&[
        "remove events file",
        "write: drop + terminal_failed",
        "reply: not created: no keeper is running to start it: no memory",
    ]);
    story.create("b");
    story.expect(&["remove events file", "reply: not created: no keeper is running to start it: no memory"]);
}

#[test]
fn creation_fails_when_the_keeper_refuses_or_is_silent() {
    let refused = |id| {
        let why = SpawnRefusal::ProgramMissing;
        KeeperReport::Event(KeeperEvent::SpawnFailed { id, why, message: "no".into() })
    };
    let silent = |id| KeeperReport::Untaken(Untaken::Spawn { id }, "it was stopped".into());
    type Report = fn(TerminalId) -> KeeperReport;
    let cases: [(NewTerminal, Report, &str); 3] = [
        (new_terminal("a"), refused, "no"),
        (new_agent("a"), refused, "x-agent is not installed, or not in PATH"),
        (new_terminal("a"), silent, "nothing was started: it was stopped"),
    ];
    for (request, report, why) in cases {
        let mut story = Story::connected();
        story.create_with(request);
        let id = story.id("a");
        story.stored();
        story.log.clear();
        story.keeper(report(id));
        let answer = format!("reply: not created: {why}");
        story.expect(&["remove events file", "write: drop + terminal_failed", &answer]);
    }
}

#[test]
fn terminal_deleted_while_it_is_written_is_never_started() {
    let mut story = Story::connected();
    story.create("a");
    let id = story.id("a");
    story.log.clear();
    story.delete(id);
    story.expect(&["keeper: End"]);
    story.stored();
    // The keeper has taken the request to end it already, and would keep a program started after that.
    story.expect(&["publish terminal_created"]);
    story.family_ended(id, 0);
    story.expect(&[
        "reply: not created: it was ended before it had started",
        "drop pump",
        "remove files",
        "write: drop + terminal_deleted, then forget",
    ]);
    story.stored();
    story.expect(&["publish terminal_deleted", "reply: deleted, 0 left"]);
}

#[test]
fn agent_deleted_before_it_is_ready_answers_both_callers() {
    let mut story = Story::connected();
    story.create_with(new_agent("a"));
    let id = story.id("a");
    story.stored();
    story.spawned(id);
    story.delete(id);
    story.log.clear();
    story.family_ended(id, 1);
    story.expect(&[
        "reply: not created: it was ended before it had started",
        "pump: keeper lost",
        "drop pump",
        "remove files",
        "write: drop + terminal_deleted, then forget",
    ]);
}

#[test]
fn stop_during_a_creation_starts_nothing() {
    let mut story = Story::connected();
    story.create("a");
    story.log.clear();
    story.stop(false);
    story.expect(&["write: daemon_stopped"]);
    story.create("b");
    story.expect(&["reply: dropped"]);
    story.stored();
    story.expect(&[
        "publish terminal_created",
        "remove events file",
        "write: drop + terminal_failed",
        "reply: not created: it was ended before it had started",
    ]);
}

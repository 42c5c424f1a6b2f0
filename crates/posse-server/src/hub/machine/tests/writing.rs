//! Writes: the log, settings and retention.

use super::*;

#[test]
fn step_after_a_write_depends_on_its_result() {
    type Start = fn(&mut Story, TerminalId);
    let set = |story: &mut Story, _| {
        let show = |answer: Result<(), StoreRefusal>| format!("set {}", answer.is_ok());
        let events = vec![EventBody::SettingChanged { name: "recordings".into(), value: None }];
        let change = Box::new(Change::Setting("recordings", None));
        story.ask(show, |reply| HubCommand::Commit { change, events, reply });
    };
    let cases: [(Start, &str, &[&str], &[&str]); 2] = [
        (
            set,
            "write once: setting_changed + setting",
            &["publish setting_changed", "reply: set true"],
            &["reply: set false"],
        ),
        (
            |story, id| story.pump(id, status(StatusKind::Idle)),
            "write: put + status_changed",
            &["publish status_changed"],
            &["publish status_changed without number"],
        ),
    ];
    for (start, write, after_commit, after_refusal) in cases {
        for (settle, expected) in [(Story::stored as fn(&mut Story), after_commit), (Story::refused, after_refusal)] {
            let (mut story, id) = Story::with_running();
            start(&mut story, id);
            story.expect(&[write]);
            settle(&mut story);
            story.expect(expected);
        }
    }
}

#[test]
fn refused_event_is_a_problem_of_the_disk() {
    let (mut story, id) = Story::with_running();
    story.pump(id, status(StatusKind::Completed));
    story.refused();
    assert_eq!(story.machine.problems.disk.as_ref().map(ToString::to_string).as_deref(), Some(REFUSED));
    story.log.clear();
    // Events that are not kept are published at once.
    story.pump(id, PumpReport::Title("x".into()));
    story.expect(&["publish title_changed without number"]);
}

#[test]
fn retention_drops_what_ended_long_ago_and_trims_the_log() {
    let old = record(1, Some(Exit::Code(0)), false);
    let running = record(2, None, false);
    let mut story = Story::begin(vec![old, running]);
    story.expect(&[
        "write: daemon_started",
        "drop pump",
        "write: drop + terminal_deleted",
        "write once: trim",
        "tidy Everything known 1 running 1",
    ]);
    story.send(HubEvent::RecordingsGrown);
    story.expect(&["tidy Recordings known 1 running 1"]);
}

#[test]
fn retention_comes_round_after_enough_events() {
    let (mut story, id) = Story::with_running();
    story.machine.since_tidy = retention::ROUND - 1;
    story.pump(id, status(StatusKind::Idle));
    story.log.clear();
    story.stored();
    story.expect(&["write once: trim", "tidy Everything known 1 running 1", "publish status_changed"]);
}

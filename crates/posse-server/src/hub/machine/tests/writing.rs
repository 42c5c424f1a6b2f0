//! Writes: the audit, the log, settings and retention.

use posse_core::ids::WriterId;

use super::*;

#[test]
fn step_after_a_write_depends_on_its_result() {
    type Start = fn(&mut Story, TerminalId);
    let set = |story: &mut Story, _| {
        let show = |answer: Result<(), StoreRefusal>| format!("set {}", answer.is_ok());
        story.ask(show, |reply| HubCommand::Set { name: "recordings", value: None, reply });
    };
    let cases: [(Start, &str, &[&str], &[&str]); 4] = [
        // Nothing is typed before the entry of the audit is written.
        (
            |story, id| story.pump(id, PumpReport::Answering(note(id))),
            "write once: audit",
            &["pump: answer noted true"],
            &["pump: answer noted false"],
        ),
        (
            |story, id| story.pump(id, PumpReport::InputAhead { writer: WriterId(1), sequence: 1 }),
            "write once: ahead",
            &["pump: input noted true"],
            &["pump: input noted false"],
        ),
        (
            set,
            "write once: setting + setting_changed",
            &["publish setting_changed", "reply: set true"],
            &["publish setting_changed without number", "reply: set false"],
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
fn another_pump_does_not_get_the_answer_of_the_one_before() {
    let (mut story, id) = Story::with_running();
    story.pump(id, PumpReport::Answering(note(id)));
    let held = story.machine.terminals[&id].record.clone();
    story.keeper_up(vec![summary(&held, None)]);
    story.log.clear();
    story.stored();
    story.expect(&[]);
}

#[test]
fn outcome_of_an_answer_is_kept_until_it_is_written() {
    let (mut story, id) = Story::with_running();
    let (reply, mut answer) = oneshot::channel::<()>();
    story.send(HubEvent::AnswerOver(note(id), Box::new(move || reply.send(()).unwrap())));
    story.expect(&["write: audit"]);
    assert!(answer.try_recv().is_err(), "it is not answered before");
    story.refused();
    assert!(answer.try_recv().is_ok());
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

//! The connection to the keeper: adoption, loss and silence.

use super::*;

#[test]
fn restart_adopts_what_the_keeper_holds_and_gives_up_the_rest() {
    let held = record(1, None, false);
    let agent = record(2, None, true);
    let missing = record(3, None, false);
    let mut story = Story::begin(vec![held.clone(), agent.clone(), missing]);
    story.expect(&["write: daemon_started", "write once: trim", "tidy Everything known 3 running 3"]);
    story.all_stored();
    story.expect(&["publish daemon_started"]);
    story.keeper_up(vec![summary(&held, None), summary(&agent, None)]);
    story.expect(&[
        "start pump from 100 to 900",
        "write: put + terminal_adopted",
        "load provider true screen false",
        "write: put + terminal_adopted",
        // Its processes may still exist.
        "keeper: End",
        "write: put + status_changed",
        "remove events file",
        "write: put + terminal_exited",
    ]);
    story.loaded();
    story.expect(&["start pump with agent from 100 to 900"]);
}

#[test]
fn terminal_that_the_database_lost_is_adopted_from_its_label() {
    let unknown = record(1, None, false);
    let mut story = Story::connected();
    story.keeper_up(vec![summary(&unknown, None)]);
    story.expect(&["start pump from 100 to 900", "write: put + terminal_adopted"]);
    // An ended one was deleted: records are written first.
    let deleted = record(2, None, false);
    story.keeper_up(vec![summary(&unknown, None), summary(&deleted, Some(Exit::Code(0)))]);
    assert!(story.log.contains(&"keeper: Forget".to_owned()));
    assert!(!story.machine.terminals.contains_key(&deleted.id));
}

#[test]
fn ended_terminal_whose_screen_is_saved_does_not_run_again() {
    let ended = Record { last_active: Wall(15 * DAY), ..record(1, Some(Exit::Code(0)), false) };
    let adopted = &["start pump from 100 to 900", "write: put + terminal_adopted"][..];
    for (saved, expected) in [(true, &["keeper: Forget"][..]), (false, adopted)] {
        let mut story = Story::begin(vec![ended.clone()]);
        story.log.clear();
        let (link, _requests) = KeeperLink::unconnected();
        let saved_screens = saved.then_some(ended.id).into_iter().collect();
        let held = vec![summary(&ended, Some(Exit::Code(0)))];
        story.keeper(KeeperReport::Up { link, held, saved_screens });
        story.expect(expected);
    }
}

#[test]
fn load_that_the_loss_of_the_keeper_overtakes_starts_no_pump() {
    let mut story = Story::with_loading(&record(1, None, true));
    story.lost();
    story.expect(&[
        "write: keeper_lost",
        "write: put + status_changed",
        "remove events file",
        "write: put + terminal_exited",
        "reconnect",
    ]);
    story.loaded();
    story.expect(&[]);
}

#[test]
fn load_for_an_earlier_connection_starts_no_pump() {
    let agent = record(1, None, true);
    let mut story = Story::with_loading(&agent);
    story.lost();
    story.keeper_up(vec![summary(&agent, None)]);
    story.log.clear();
    story.loaded();
    story.expect(&[]);
    story.loaded();
    story.expect(&["start pump with agent from 100 to 900"]);
}

#[test]
fn lost_keeper_ends_every_terminal_and_is_reconnected_once() {
    let (mut story, id) = Story::with_running();
    story.create("b");
    story.stored();
    story.delete(id);
    story.log.clear();
    story.lost();
    story.note_answers();
    let lines: Vec<String> = std::mem::take(&mut story.log);
    let count = |line: &str| lines.iter().filter(|found| *found == line).count();
    assert_eq!(count("pump: keeper lost"), 2, "once as lost, once as deleted: {lines:?}");
    assert_eq!(count("reply: not created: no keeper is running to start it: killed"), 1, "{lines:?}");
    assert_eq!(count("write: drop + terminal_deleted"), 1, "no keeper is left to forget it: {lines:?}");
    assert_eq!(count("reconnect"), 1, "{lines:?}");
    story.all_stored();
    story.note_answers();
    assert!(story.log.contains(&"reply: deleted, 0 left".to_owned()), "{:?}", story.log);
}

#[test]
fn caller_gets_the_pump_as_soon_as_there_is_one() {
    let known = record(1, None, false);
    let mut story = Story::begin(vec![known.clone()]);
    story.log.clear();
    story.find(known.id);
    story.find(TerminalId::from_random(99));
    story.expect(&["reply: found false"]);
    story.keeper_up(vec![summary(&known, None)]);
    story.expect(&["start pump from 100 to 900", "write: put + terminal_adopted", "reply: found true"]);
}

#[test]
fn pump_of_an_ended_terminal_is_read_from_its_file_once() {
    let (mut story, id) = Story::with_running();
    story.exits(id);
    story.log.clear();
    story.find(id);
    story.find(id);
    story.expect(&["load provider false screen true"]);
    story.loaded();
    story.expect(&["start pump of ended", "reply: found true", "reply: found true"]);
}

#[test]
fn caller_that_waits_for_a_lost_terminal_is_answered() {
    let known = record(1, None, false);
    let mut story = Story::begin(vec![known.clone()]);
    story.find(known.id);
    story.keeper_up(vec![]);
    story.log.clear();
    story.loaded();
    story.expect(&["start pump of ended", "reply: found true"]);
}

#[test]
fn silent_keeper_is_reported_once_and_is_a_problem_until_it_answers() {
    let mut story = Story::connected();
    story.keeper(KeeperReport::Silent(Some("stopped".into())));
    story.expect(&["write: keeper_silent"]);
    assert_eq!(story.machine.problems.keeper_silent.as_deref(), Some("stopped"));
    story.keeper(KeeperReport::Silent(None));
    story.expect(&["write: keeper_answers"]);
    assert_eq!(story.machine.problems.keeper_silent, None);
}

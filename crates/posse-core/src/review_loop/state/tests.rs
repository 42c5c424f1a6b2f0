use super::super::phase_tests::{APPROVED, FAIL, PASS, prompt, rules};
use super::*;
use serde_json::json;

fn file(change: &Value) -> String {
    let mut state = json!({
        "version": 1, "updated_at": "2026-02-21T10:00:00Z", "api": "http://localhost:9889", "provider": "codex",
        "wd": "/p", "prompt": prompt().to_string(), "current_round": 2, "current_phase": "programmer",
        "final_status": "RUNNING", "session_name": "posse-x",
        "terminals": {"analyst": {"id": "0000000a", "provider": "claude_code"}},
        "feedback": "it failed", "analyst_feedback": "None yet.", "programmer_feedback": "None yet.",
        "outputs": {"analyst": "summary", "analyst_review": "ok", "programmer": "", "programmer_review": "", "tester": ""},
    });
    for (name, value) in change.as_object().unwrap() {
        state[name] = value.clone();
    }
    state.to_string()
}

fn read(change: &Value) -> StateFile {
    StateFile::read(&file(change)).unwrap()
}

fn resumed(change: &Value) -> (Rounds, Vec<Note>) {
    Rounds::from_state(&read(change), rules())
}

#[test]
fn a_file_says_where_the_run_stands() {
    let state = read(&json!({"programmer_context_for_retry": "a.rs", "current_cycle": 2, "mine": {"x": 1}}));
    let (rounds, notes) = Rounds::from_state(&state, rules());
    assert_eq!((rounds.round(), rounds.cycle(), rounds.phase()), (2, 2, Phase::Programmer));
    assert_eq!((rounds.next(), notes), (Next::Turn(Key::Programmer), vec![]));
    assert_eq!((rounds.output(Key::Analyst), rounds.prompt()), ("summary", &prompt()));
    let text = rounds.text(Key::Programmer, "");
    assert!(text.contains("it failed") && text.contains("a.rs") && text.contains("Add an export."), "{text}");

    let again = StateFile { terminals: state.terminals.clone(), other: state.other.clone(), ..rounds.to_state() };
    let written = again.write().unwrap();
    assert!(written.ends_with("}\n") && written.contains("\n  \"mine\": {\n"), "{written}");
    assert_eq!(StateFile::read(&written).unwrap(), again);
}

#[test]
fn s_196_what_has_ended_stays_ended() {
    for (change, how) in [
        (json!({"current_phase": "done", "final_status": "PASS"}), Final::Pass),
        (json!({"current_phase": "done", "final_status": "FAIL"}), Final::Fail),
        (json!({"current_phase": "done"}), Final::Fail),
        (json!({"current_round": 9}), Final::Fail),
    ] {
        let (rounds, notes) = resumed(&change);
        assert_eq!((rounds.next(), rounds.phase()), (Next::Over(how), Phase::Done), "{change}");
        assert_eq!(notes.len(), 1, "it is said");
    }
}

#[test]
fn s_197_a_terminal_may_be_its_id_alone() {
    let terminals = json!({"analyst": "0000000a", "tester": {"id": "0000000b"}, "programmer": {"id": "0000000c", "provider": "claude_code"}, "nobody": "x", "peer_analyst": ""});
    let state = read(&json!({"terminals": terminals}));
    let terminal = |id: &str, provider: &str| TerminalOf { id: id.into(), provider: provider.into() };
    let expected = [
        (Role::Analyst, terminal("0000000a", "codex")),
        (Role::Programmer, terminal("0000000c", "claude_code")),
        (Role::Tester, terminal("0000000b", "codex")),
    ];
    assert_eq!(state.terminals, BTreeMap::from(expected));
}

#[test]
fn s_198_nonsense_in_round_and_phase_is_the_beginning() {
    for (round, phase) in
        [(json!("x"), json!("foo")), (json!(0), json!(7)), (json!(1.5), Value::Null), (json!(-3), json!([]))]
    {
        let state = read(&json!({"current_round": round, "current_phase": phase, "current_cycle": "y"}));
        let LoopProgress { round, phase, cycle, context_for_retry, .. } = state.progress;
        assert_eq!((round, phase, cycle, context_for_retry.as_str()), (1, Phase::Analyst, 1, ""));
    }
}

#[test]
fn a_file_that_cannot_be_trusted_says_why() {
    let whole = file(&json!({}));
    for (text, why) in [
        (whole[..whole.len() / 2].to_owned(), "not valid JSON"),
        ("[]".to_owned(), "not a JSON object"),
        (file(&json!({"version": 2})), "version 2"),
        (file(&json!({"final_status": "MAYBE"})), "\"MAYBE\""),
        (file(&json!({"final_status": null})), "`final_status` is null"),
        (file(&json!({"current_phase": "initialising"})), "begin a new one"),
        (file(&json!({"prompt": "x"})), "no line"),
    ] {
        let error = StateFile::read(&text).unwrap_err().to_string();
        assert!(error.contains(why), "{text}: {error}");
    }
}

#[test]
fn a_phase_is_taken_up_where_it_makes_sense() {
    let outputs = json!({"analyst": "summary", "programmer": "code"});
    for (change, next) in [
        (json!({"current_phase": "analyst", "current_round": 1}), Key::Analyst),
        (json!({"current_phase": "analyst", "start_at_peer": true, "outputs": outputs}), Key::AnalystReview),
        (json!({"current_phase": "programmer", "outputs": outputs}), Key::Programmer),
        (json!({"current_phase": "programmer", "start_at_peer": true, "outputs": outputs}), Key::ProgrammerReview),
        (json!({"current_phase": "tester", "outputs": outputs}), Key::Tester),
        (json!({"current_phase": "tester"}), Key::Programmer),
        (json!({"current_phase": "tester", "outputs": {}}), Key::Analyst),
        (json!({"current_phase": "programmer", "outputs": {"analyst": 7}}), Key::Analyst),
    ] {
        assert_eq!(resumed(&change).0.next(), Next::Turn(next), "{change}");
    }
}

#[test]
fn the_answer_to_a_turn_on_its_way_is_waited_for() {
    let in_flight =
        json!({"key": "programmer_review", "terminal": "0000000a", "dispatched_at": "2026-02-21T10:00:00Z"});
    let outputs = json!({"analyst": "summary", "programmer": "code"});
    let state = read(&json!({"in_flight": in_flight, "outputs": outputs, "current_cycle": 2}));
    let (mut rounds, _) = Rounds::from_state(&state, rules());
    assert!(rounds.resume_at(state.in_flight.unwrap().key));
    rounds.answered(Key::ProgrammerReview, APPROVED);
    assert_eq!(rounds.next(), Next::Turn(Key::Tester));
    assert!(!rounds.resume_at(Key::Analyst), "that phase is over");
    rounds.answered(Key::Tester, PASS);
    assert!(!rounds.resume_at(Key::Tester), "so is the run");

    let (mut empty, _) = resumed(&json!({}));
    assert!(!empty.resume_at(Key::ProgrammerReview), "there is nothing to review");
    assert!(empty.resume_at(Key::Programmer));
    assert!(read(&json!({"in_flight": {"key": "nonsense"}})).in_flight.is_none());
}

#[test]
fn the_start_at_a_peer_is_remembered_until_it_is_over() {
    let mut rounds = Rounds::begin(rules(), prompt(), Role::PeerAnalyst);
    assert!(rounds.to_state().progress.start_at_peer);
    rounds.answered(Key::AnalystReview, FAIL);
    assert!(!rounds.to_state().progress.start_at_peer);
    assert_eq!(rounds.to_state().final_status, FinalStatus::Running);
}

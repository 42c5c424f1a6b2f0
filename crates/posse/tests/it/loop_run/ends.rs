//! Ends of runs, and what they leave behind.

use super::*;

#[test]
fn five_agents_of_two_kinds_come_to_pass() {
    let play = Play::new("").and_claude("");
    play.configure(json!({
        "agents": { "analyst": { "provider": "claude_code" }, "tester": { "provider": "claude_code" } },
    }));
    let ran = play.run().ends(0).prints(&["turn 9: tester", "turn 9: answered, ", "PASS in round 1"]);
    contains(&ran.stdout, &["PASS in round 1, 9 turns"]);
    play.passed();
    let mut expected: Vec<String> =
        TURNS.iter().zip(1..).map(|(key, number)| format!("{number:03}-{key}.md")).collect();
    expected.push("agnostic-3agents-loop-state.json".into());
    assert_eq!(play.archive(), expected);
    let answer = fs::read_to_string(play.archive_folder().join("009-tester.md")).unwrap();
    assert!(answer.starts_with("RESULT: PASS"), "{answer}");

    // LOOP-48, LOOP-50.
    let state = fs::read_to_string(play.archive_folder().join("agnostic-3agents-loop-state.json")).unwrap();
    assert!(state.ends_with("}\n") && state.starts_with("{\n  \"version\": 1,\n"), "{state}");
    let state: Value = serde_json::from_str(&state).unwrap();
    assert_eq!((&state["final_status"], &state["current_phase"]), (&json!("PASS"), &json!("done")));
    assert_eq!((&state["provider"], &state["current_round"]), (&json!("codex"), &json!(1)));
    assert_eq!(state["terminals"]["analyst"]["provider"], "claude_code");
    assert_eq!(state["terminals"]["programmer"]["provider"], "codex");
    assert_eq!(state["wd"], json!(fs::canonicalize(play.env.work()).unwrap()));
    assert!(state["outputs"]["tester"].as_str().unwrap().starts_with("RESULT: PASS"));
    assert!(state["updated_at"].as_str().unwrap().ends_with('Z'));

    // The agents stay, to be looked at, and nothing of it is git's business.
    assert_eq!(play.env.run(["ls", "--json"]).json().as_array().unwrap().len(), 5);
    assert_eq!(fs::read_to_string(play.env.work().join(".tmp/.gitignore")).unwrap(), "*\n");
}

#[test]
fn s_188_rounds_run_out() {
    let play = Play::new("[loop]\nfailures = 9");
    play.configure(json!({ "limits": { "max_rounds": 2 }, "cleanup_on_exit": true }));
    play.run().ends(1).prints(&["FAIL in round 2, 14 turns"]);
    let run = play.shown();
    assert_eq!((&run["status"], &run["round"]), (&json!("failed"), &json!(2)));
    let keys: Vec<Value> = play.records("asked").into_iter().map(|asked| asked["key"].clone()).collect();
    assert_eq!(keys, [&TURNS[..], &TURNS[4..]].concat(), "the analysts are not asked again");
    let turns = play.journal("turn_begun");
    contains(turns[9]["text"].as_str().unwrap(), &["RESULT: FAIL"]);
    assert_eq!(play.state(), None);
    assert!(play.archive().contains(&"014-tester.md".to_owned()));
    let state = fs::read_to_string(play.archive_folder().join("agnostic-3agents-loop-state.json")).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&state).unwrap()["final_status"], "FAIL");
    // LOOP-57.
    play.until_all_have_left(5);
    // It is over: nothing is resumed, and a new run begins.
    let id = play.id();
    play.env.run(["loop", "--resume", &id]).ends(1).prints(&["FAIL in round 2"]);
    play.env.run(["run", "stop", &id]).complains(&["is over", "posse run show"]).ends(1);
}

#[test]
fn what_happens_is_told_to_programs_too() {
    let play = Play::new("");
    // A run may begin in the middle.
    play.configure(json!({ "start_agent": "tester" }));
    let ran = Followed::new(play.command(&["--json"])).end().ends(0);
    let lines: Vec<Value> = ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0]["entry"], "created");
    let numbers: Vec<i64> = lines.iter().filter_map(|line| line["seq"].as_i64()).collect();
    assert_eq!(numbers, (1..=numbers.len() as i64).collect::<Vec<_>>(), "each once, in order");
    assert_eq!(lines[numbers.len() - 1]["entry"], "finished");
    let last = lines.last().unwrap();
    assert_eq!((&last["status"], &last["turns"]), (&json!("passed"), &json!(1)));
}

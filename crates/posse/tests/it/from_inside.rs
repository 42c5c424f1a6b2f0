//! Processes in terminals, agents included, ask the daemon for what only a person may do.

use std::fs;
use std::time::{Duration, Instant};

use posse_testkit::{PATIENCE, TestEnv};
use serde_json::{Value, json};

use crate::agents::{CLAUDE, actor, count, question, wait};
use crate::env;

/// Runs a line in a terminal of its own and gives what it printed and its exit code.
#[track_caller]
fn inside(env: &TestEnv, line: &str) -> (String, String) {
    let marker = env.work().join("over");
    let _ = fs::remove_file(&marker);
    let script = format!("posse() {{ '{}' \"$@\"; }}\n{line}\n", env.posse_path().display());
    fs::write(env.work().join("script"), script).unwrap();
    let line = "bash ./script > said 2>&1; echo $? > over.new; mv over.new over; cat";
    let terminal = env.run(["launch", "--name", "shell", "--", "bash", "-c", line]).ok();
    let give_up = Instant::now() + PATIENCE;
    while !marker.exists() {
        assert!(Instant::now() < give_up, "it never ended: {}", fs::read_to_string(env.work().join("said")).unwrap());
        std::thread::sleep(Duration::from_millis(5)); // Nothing tells of a file alone.
    }
    let said = fs::read_to_string(env.work().join("said")).unwrap();
    assert!(said.is_empty() || !terminal.trim().is_empty());
    (said, fs::read_to_string(&marker).unwrap().trim().to_owned())
}

/// Forked twice, in a session of its own, with nothing of its environment: adopted by the keeper.
const ORPHAN: &str = r#"
    export -f posse 2>/dev/null
    cat > approve <<END
while [ "\$(cut -d' ' -f4 /proc/\$\$/stat)" = "$$" ]; do :; done
$(declare -f posse)
posse approve a > orphan.said 2>&1
echo \$? > orphan.code.new
mv orphan.code.new orphan.code
END
    (setsid env -i POSSE_HOME="$POSSE_HOME" PATH="$PATH" bash ./approve > /dev/null 2>&1 &)
    until [ -e orphan.code ]; do sleep 0.05; done
    cat orphan.said
    exit $(cat orphan.code)
"#;

fn audit(env: &TestEnv) -> Vec<Value> {
    env.run(["audit", "show", "--json"]).json().as_array().unwrap().clone()
}

/// The audit once the last attempt has its outcome, which `posse send` does not wait for.
#[track_caller]
fn when_complete(env: &TestEnv) -> Vec<Value> {
    let give_up = Instant::now() + PATIENCE;
    loop {
        let entries = audit(env);
        if entries.last().is_some_and(|entry| !entry["outcome"].is_null()) {
            return entries;
        }
        assert!(Instant::now() < give_up, "it was never completed: {entries:#?}");
        std::thread::sleep(Duration::from_millis(1)); // Nothing tells of an entry alone.
    }
}

fn asking(env: &TestEnv) -> (std::path::PathBuf, Value) {
    let log = actor(env, "claude_code", CLAUDE);
    let launched = env.run(["launch", "claude_code", "--trust", "--name", "a", "--json"]).json();
    env.run(["send", "a", "danger"]).ok();
    question(env, "a");
    (log, launched["id"].clone())
}

#[test]
fn an_answer_from_a_terminal_is_recorded_and_refused() {
    for line in
        ["posse approve a", "posse deny a", "posse approve a --option 1", "posse send a y", "posse send a n", ORPHAN]
    {
        let env = env();
        let (log, terminal) = asking(&env);
        let (said, code) = inside(&env, line);
        assert_eq!(code, "1", "{line}: {said}");
        assert!(said.contains("comes from a process in a terminal"), "{line}: {said}");
        assert!(said.contains("answers_from_terminals = true"), "{line}: {said}");
        assert_eq!(count(&log, "dialog_closed"), 0, "{line}");
        let shell = env.run(["show", "shell", "--json"]).json();
        let audit = when_complete(&env);
        assert_eq!(audit.len(), 2, "{line}: {audit:#?}");
        let from = if line == ORPHAN { Value::Null } else { shell["id"].clone() };
        let first = &audit[0];
        assert_eq!((&first["by"], &first["from"], &first["terminal"]), (&json!("terminal"), &from, &terminal));
        assert_eq!(audit[1]["outcome"]["end"], "refused", "{line}");
        assert_eq!(audit[1]["outcome"]["typed"], json!([]), "{line}");
        let text = env.run(["audit", "show"]).ok();
        let from = if line == ORPHAN { "a process in an unknown terminal" } else { "a process in terminal shell" };
        assert!(text.contains(from), "{text}");
        // A person still can.
        env.run(["approve", "a"]).ok();
        wait(&env, "a", "completed");
        assert_eq!(count(&log, "dialog_closed"), 1, "{line}");
    }
}

#[test]
fn an_attempt_is_recorded_once_for_each_question() {
    let env = env();
    asking(&env);
    let (said, _) = inside(&env, "for n in 1 2 3 4 5; do posse approve a; posse send a y; done");
    assert_eq!(said.matches("comes from a process in a terminal").count(), 10, "{said}");
    assert_eq!(audit(&env).len(), 2);
}

#[test]
fn keys_from_a_terminal_reach_no_agent_and_prompts_do() {
    let env = env();
    let log = actor(&env, "claude_code", CLAUDE);
    env.run(["launch", "claude_code", "--trust", "--name", "a"]).ok();
    // Also before anything is asked: the keys would wait for the question.
    for line in ["posse send a --key 1", "posse send a --raw 1", "posse send a --no-enter 1"] {
        let (said, code) = inside(&env, line);
        assert_eq!(code, "1", "{line}: {said}");
        assert!(said.contains("these keys come from a process in a terminal"), "{line}: {said}");
        env.run(["kill", "shell"]).ok();
    }
    let (said, code) = inside(&env, "posse send a danger");
    assert_eq!(code, "0", "{said}");
    question(&env, "a");
    env.run(["kill", "shell"]).ok();
    let (said, code) = inside(&env, "posse send a --key 1");
    assert_eq!(code, "1", "{said}");
    assert_eq!(count(&log, "dialog_closed"), 0);
    env.run(["kill", "shell"]).ok();

    // Through `posse attach` in a terminal: the keys are refused, and the bell rings there.
    env.run(["launch", "--name", "shell", "--", env.posse_path().to_str().unwrap(), "attach", "a"]).ok();
    let shows = |text: &str| env.run(["output", "shell"]).stdout.contains(text);
    let give_up = Instant::now() + PATIENCE;
    while !shows("Do you want to proceed?") {
        assert!(Instant::now() < give_up, "{}", env.run(["output", "shell"]).stdout);
        std::thread::sleep(Duration::from_millis(20)); // Only a screen tells.
    }
    let mut events = env.http().events(None).unwrap();
    env.run(["send", "shell", "--key", "1"]).ok();
    events.until(|event| event.to_string().to_lowercase().contains("bell"));
    assert_eq!(count(&log, "dialog_closed"), 0);
}

#[test]
fn the_operator_can_allow_answers_from_terminals() {
    let env = env();
    let (log, _) = asking(&env);
    fs::write(env.places().config.join("config.toml"), "[permissions]\nanswers_from_terminals = true\n").unwrap();
    let (said, code) = inside(&env, "posse approve a");
    assert_eq!(code, "0", "{said}");
    wait(&env, "a", "completed");
    assert_eq!(count(&log, "dialog_closed"), 1);
    let audit = audit(&env);
    let shell = env.run(["show", "shell", "--json"]).json();
    assert_eq!((&audit[0]["by"], &audit[0]["from"]), (&json!("terminal"), &shell["id"]));
    assert_eq!(audit[1]["outcome"]["end"], "answered");
}

#[test]
fn a_terminal_cannot_open_other_ways_to_answer() {
    let env = env();
    env.run(["ls"]).ok();
    let project = env.work().join("project");
    fs::create_dir_all(&project).unwrap();
    actor(&env, "codex", "look = 'codex'\n[[turn]]\nsteps = [{ say = 'Done.' }]");
    let task = env.run(["loop", "--template"]).ok().replace("<", "").replace(">", "");
    fs::write(project.join("task.md"), task).unwrap();
    for line in [
        "posse serve --listen 127.0.0.1:0 --no-auth",
        "posse serve --recordings off",
        "cd project && AUTO_ACCEPT_PERMISSIONS=1 posse loop --trust --prompt-file task.md",
    ] {
        let (said, code) = inside(&env, line);
        assert_eq!(code, "1", "{line}: {said}");
        assert!(said.contains("a process in a terminal may not"), "{line}: {said}");
        env.run(["kill", "shell"]).ok();
    }
    assert!(!env.places().token().exists());
}

#[test]
fn only_a_process_of_the_terminal_reports_what_its_agent_does() {
    let env = env();
    let (_, terminal) = asking(&env);
    let terminal = terminal.as_str().unwrap();
    let report = r#"{"hook_event_name":"UserPromptSubmit"}"#;
    let path = format!("/terminals/{terminal}/hook");
    let refused = env.http().call("POST", &path, report).unwrap();
    assert_eq!(refused.status, 403, "a process outside: {}", refused.json());
    let before = env.run(["explain", "a", "--json"]).json();
    let line = format!("echo '{report}' | POSSE_TERMINAL_ID={terminal} posse hook; echo told");
    let (said, _) = inside(&env, &line);
    assert_eq!(said.trim(), "told");
    assert_eq!(env.run(["explain", "a", "--json"]).json()["signals"], before["signals"], "another terminal");
}

//! Processes in terminals, agents included, ask the daemon for what only a person may do.

use std::fs;

use posse_testkit::TestEnv;
use posse_testkit::files::when;
use serde_json::{Value, json};

use crate::agents::{CLAUDE, asked, count, launched, logged, question, wait};
use crate::env;
use crate::plan_run::{ONE, Scene};
use crate::steps::{DONE, sh};

/// Runs a line in a terminal of its own and gives what it printed and its exit code.
#[track_caller]
pub(crate) fn inside(env: &TestEnv, line: &str) -> (String, String) {
    let marker = env.work().join("over");
    let _ = fs::remove_file(&marker);
    // The terminal of the line before.
    env.run(["kill", "shell"]);
    let script = format!("posse() {{ '{}' \"$@\"; }}\n{line}\n", env.posse_path().display());
    fs::write(env.work().join("script"), script).unwrap();
    let line = "bash ./script > said 2>&1; echo $? > over.new; mv over.new over; cat";
    let terminal = env.run(["launch", "--name", "shell", "--", "bash", "-c", line]).ok();
    when(&format!("the end of {line}"), || marker.exists().then_some(()));
    let said = fs::read_to_string(env.work().join("said")).unwrap();
    assert!(said.is_empty() || !terminal.trim().is_empty());
    (said, fs::read_to_string(&marker).unwrap().trim().to_owned())
}

/// Forked twice, in a session of its own, with nothing of its environment: adopted by the keeper.
const ORPHAN: &str = include_str!("scripts/orphan.sh");

fn audit(env: &TestEnv) -> Vec<Value> {
    env.run(["audit", "show", "--json"]).json().as_array().unwrap().clone()
}

/// The audit once the last attempt has its outcome, which `posse send` does not wait for.
#[track_caller]
fn when_complete(env: &TestEnv) -> Vec<Value> {
    when("the outcome of the last attempt", || {
        let entries = audit(env);
        entries.last().is_some_and(|entry| !entry["outcome"].is_null()).then_some(entries)
    })
}

fn asking(env: &TestEnv) -> (std::path::PathBuf, Value) {
    let log = env.script_agent("claude_code", CLAUDE);
    let launched = env.run(["launch", "claude_code", "--trust", "--name", "a", "--json"]).json();
    asked(env, "danger");
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
        assert_eq!(logged(&log, "dialog_closed", 1), 1, "{line}");
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
    let (env, log) = launched(CLAUDE);
    // Also before anything is asked: the keys would wait for the question.
    for line in ["posse send a --key 1", "posse send a --raw 1", "posse send a --no-enter 1"] {
        let (said, code) = inside(&env, line);
        assert_eq!(code, "1", "{line}: {said}");
        assert!(said.contains("these keys come from a process in a terminal"), "{line}: {said}");
    }
    let (said, code) = inside(&env, "posse send a danger");
    assert_eq!(code, "0", "{said}");
    question(&env, "a");
    let (said, code) = inside(&env, "posse send a --key 1");
    assert_eq!(code, "1", "{said}");
    assert_eq!(count(&log, "dialog_closed"), 0);

    // Through `posse attach` in a terminal: the keys are refused, and the bell rings there.
    env.run(["kill", "shell"]).ok();
    env.run(["launch", "--name", "shell", "--", env.posse_path().to_str().unwrap(), "attach", "a"]).ok();
    let shows = |text: &str| env.run(["output", "shell"]).stdout.contains(text);
    when("the question in the other terminal", || shows("Do you want to proceed?").then_some(()));
    let mut events = env.http().events(None).unwrap();
    env.run(["send", "shell", "--key", "1"]).ok();
    events.until(|event| event.to_string().to_lowercase().contains("bell"));
    assert_eq!(count(&log, "dialog_closed"), 0);
}

#[test]
fn the_operator_can_allow_answers_from_terminals() {
    let env = env();
    let (log, _) = asking(&env);
    fs::write(env.paths().config.join("config.toml"), "[permissions]\nanswers_from_terminals = true\n").unwrap();
    let (said, code) = inside(&env, "posse approve a");
    assert_eq!(code, "0", "{said}");
    wait(&env, "a", "completed");
    assert_eq!(logged(&log, "dialog_closed", 1), 1);
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
    env.script_agent("codex", "look = 'codex'\n[[turn]]\nsteps = [{ say = 'Done.' }]");
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
    }
    assert!(!env.paths().token().exists());
}

/// A plan in a project whose file names a command.
fn with_command(command: &str) -> Scene {
    let scene = Scene::new(ONE);
    scene.configure(&format!("test_command = '{command}'\n"));
    scene.git(&["add", "-A"]);
    scene.git(&["commit", "-qm", "a command"]);
    scene
}

#[test]
fn commands_are_not_confirmed_from_a_terminal() {
    let scene = with_command("true");
    let env = &scene.env;
    let kept = || env.paths().home.join("confirmed").exists();
    let orphan = format!("ORPHANS_ARGUMENTS='plan trust'\n{ORPHAN}");
    let cleared = r#"env -i POSSE_HOME="$POSSE_HOME" PATH="$PATH" bash -c "$(declare -f posse); posse plan trust""#;
    // With a terminal of its own `posse plan run` asks instead of refusing.
    let asks = format!(
        "echo y | script -qec \"env -i POSSE_HOME=$POSSE_HOME PATH=$PATH {} plan run {}\" /dev/null",
        env.posse_path().display(),
        scene.plan.display()
    );
    for line in ["posse plan trust", cleared, &orphan, &asks] {
        let (said, code) = inside(env, line);
        assert_eq!(code, "1", "{line}: {said}");
        assert!(said.contains("may not confirm commands"), "{line}: {said}");
        assert!(!kept(), "{line}");
    }
    env.run(["plan", "trust"]).ok();
    assert!(kept());
}

/// Also with nothing of its environment.
#[test]
fn session_of_a_plan_confirms_no_commands() {
    let scene = Scene::new(ONE);
    let posse = scene.env.posse_path().display();
    scene.claude.play(
        "t",
        sh(&format!(
            "mkdir .posse; echo \"test_command = 'make evil'\" > .posse/config.toml
            env -i POSSE_HOME=$POSSE_HOME PATH=$PATH {posse} plan trust > a 2>&1"
        )) + DONE,
    );
    scene.plan_ends(0, "run", &[]);
    let said = scene.git(&["show", "HEAD:a"]);
    assert!(said.contains("may not confirm commands"), "{said}");
}

/// Sends a request over the daemon's socket, as any program can.
const POST: &str = include_str!("scripts/post.py");

#[test]
fn a_terminal_cannot_begin_a_run_with_commands_of_its_own() {
    let scene = with_command("true");
    let env = &scene.env;
    env.run(["ls"]).ok();
    let (project, plan) = (env.work().canonicalize().unwrap(), scene.plan.to_str().unwrap());
    let gated = env.work().parent().unwrap().join("outside/gated.yaml");
    fs::write(&gated, ONE.replace("backoff_base: 1", "backoff_base: 1, gates: [{name: g, cmd: make evil}]")).unwrap();
    let gated = gated.to_str().unwrap();
    fs::write(env.work().join("post.py"), POST).unwrap();
    let configured = env.run(["plan", "config", "--json"]).json()["config"].clone();
    let with = |key: &str, value: Value| {
        let mut config = configured.clone();
        config[key] = value;
        config
    };
    let post = |body: &Value| {
        fs::write(env.work().join("body.json"), body.to_string()).unwrap();
        let socket = env.paths().daemon_socket();
        let (said, _) = inside(env, &format!("python3 post.py {} /runs body.json", socket.display()));
        said
    };
    let refused = |body: &Value| {
        let said = post(body);
        assert!(said.starts_with("403") && said.contains("from_terminal"), "{body}: {said}");
    };
    // Anything but a refusal: there is no agent in this environment.
    let goes_on = |body: &Value| {
        let said = post(body);
        assert!(said.contains("no_program"), "{body}: {said}");
    };
    let body = |file: &str, config: &Value| json!({ "plan": { "file": file, "directory": project, "config": config, "environment": { "PATH": "/bin" } } });
    let auto = |config: &Value| json!({ "backlog": { "directory": project, "config": config, "environment": { "PATH": "/bin" } } });
    // The files name a command that is not confirmed.
    refused(&body(plan, &configured));
    refused(&auto(&configured));
    env.run(["plan", "trust"]).ok();
    goes_on(&body(plan, &configured));
    goes_on(&auto(&configured));
    // The request names another one, another program, other rules.
    for (key, value) in [
        ("test_command", json!("make evil")),
        ("lint_command", json!("make evil")),
        ("claude", json!({ "binary": "/tmp/evil" })),
        ("sandbox", json!({ "enabled": false, "strict": true, "deny": [] })),
        ("sandbox", json!({ "strict": false })),
        ("sandbox", json!({ "agents": { "validator": "WRITE" } })),
    ] {
        refused(&body(plan, &with(key, value.clone())));
        refused(&auto(&with(key, value)));
    }
    let mut notified = body(plan, &configured);
    notified["plan"]["notifications"] =
        json!({ "ntfy_topic": "", "ntfy_url": "", "webhook": "", "command": ["/bin/touch", "evil"] });
    refused(&notified);
    // The plan names one.
    refused(&body(gated, &configured));
    env.run(["plan", "trust", gated]).ok();
    goes_on(&body(gated, &configured));
    // A process outside may, as before: the command line has asked the person there.
    let answer = env.http().post("/runs", &body(plan, &with("test_command", json!("make mine")))).unwrap();
    assert_eq!(answer.json()["kind"], "no_program", "{answer:?}");
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

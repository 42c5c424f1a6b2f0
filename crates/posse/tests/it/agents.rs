//! Agents: launched, read, talked to, answered. Scripted ones, which look and behave like the real ones.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use posse_testkit::PATIENCE;
use posse_testkit::TestEnv;
use posse_testkit::files::{records, when};
use serde_json::{Value, json};

use crate::env;

/// Returns how often the agent logged the event.
pub(crate) fn count(log: &Path, event: &str) -> usize {
    records(log, event).len()
}

/// The same, once it happened so often: the agent logs a key a moment after its screen shows the effect.
#[track_caller]
pub(crate) fn logged(log: &Path, event: &str, expected: usize) -> usize {
    let enough = || Some(count(log, event)).filter(|count| *count >= expected);
    when(&format!("{expected} × {event}"), enough)
}

#[track_caller]
pub(crate) fn wait(env: &TestEnv, name: &str, until: &str) -> Value {
    env.run(["wait", name, "--until", until, "--timeout", &format!("{}s", PATIENCE.as_secs())]).ok();
    env.run(["show", name, "--json"]).json()
}

/// Starts a scripted Claude Code named `a`. Returns its log too.
#[track_caller]
pub(crate) fn launched(scenario: &str) -> (TestEnv, PathBuf) {
    launched_as("claude_code", scenario)
}

/// Starts a scripted agent of this provider named `a`. Returns its log too.
#[track_caller]
fn launched_as(provider: &str, scenario: &str) -> (TestEnv, PathBuf) {
    let env = env();
    let log = env.script_agent(provider, scenario);
    env.run(["launch", provider, "--trust", "--name", "a"]).ok();
    (env, log)
}

/// Sends this prompt to `a`, and waits for the question that comes of it.
#[track_caller]
pub(crate) fn asked(env: &TestEnv, prompt: &str) -> Value {
    env.run(["send", "a", prompt]).ok();
    question(env, "a")
}

/// Waits for a question that is on the screen: some agents announce it before they draw it.
#[track_caller]
pub(crate) fn question(env: &TestEnv, name: &str) -> Value {
    when("a drawn question", || Some(wait(env, name, "waiting_user_answer")).filter(|shown| !shown["dialog"].is_null()))
}

pub(crate) const CLAUDE: &str = r#"
    look = "claude"
    dialog_deaf = "200ms"
    [[turn]]
    on = "danger"
    steps = [
      { think = "300ms" },
      { ask = { kind = "permission", command = "rm -r target", detail = "Remove the build directory" } },
      { tool = { name = "Bash", input = "rm -r target", for = "300ms", output = "done" } },
      { say = "All clean." },
    ]
    [[turn]]
    steps = [{ think = "300ms" }, { say = { text = "Here is the answer, bit by bit, for everyone.", rate = 60 } }]
"#;

const CODEX: &str = r#"
    look = "codex"
    burst_guard = "100ms"
    [[turn]]
    on = "danger"
    steps = [
      { think = "300ms" },
      { ask = { kind = "permission", command = "rm -r target", announce = "900ms" } },
      { tool = { name = "Bash", input = "rm -r target", for = "300ms", output = "done" } },
      { say = "All clean." },
    ]
    [[turn]]
    steps = [{ think = "300ms" }, { say = { text = "Here is the answer, bit by bit, for everyone.", rate = 60 } }]
"#;

fn a_turn(provider: &str, scenario: &str) {
    let env = env();
    let log = env.script_agent(provider, scenario);
    let launched = env.run(["launch", provider, "--trust", "--name", "a", "--json"]).json();
    assert_eq!((&launched["status"], &launched["mode"]), (&"idle".into(), &"ask".into()), "{launched}");

    env.run(["send", "a", "what is it?"]).ok();
    let shown = wait(&env, "a", "completed");
    assert_eq!(shown["waiting_kind"], Value::Null);
    assert_eq!(logged(&log, "submitted", 1), 1);
    let last = env.run(["output", "a", "--last"]).ok();
    assert_eq!(last.trim(), "Here is the answer, bit by bit, for everyone.");

    env.run(["send", "a", "something with danger"]).ok();
    let shown = wait(&env, "a", "waiting_user_answer");
    assert_eq!(shown["waiting_kind"], "permission", "{shown}");
    env.run(["send", "a", "and another thing"]).ends(1).complains(&["question", "posse approve"]);
    assert_eq!(logged(&log, "submitted", 2), 2, "nothing was typed into the dialog");
    assert_eq!(count(&log, "dialog_closed"), 0);
    env.run(["send", "a", "y"]).ok();
    wait(&env, "a", "completed");
    assert_eq!(logged(&log, "dialog_closed", 1), 1);
    assert!(fs::read_to_string(&log).unwrap().contains("\"accepted\":true"));

    let shown = asked(&env, "danger again");
    env.run(["approve", "a", "--question", "0123"]).complains(&["another question"]);
    env.run(["deny", "a", "--question", shown["dialog"]["id"].as_str().unwrap()]).ok();
    wait(&env, "a", "idle,completed");
    assert_eq!(logged(&log, "dialog_closed", 2), 2);
    assert!(fs::read_to_string(&log).unwrap().contains("\"accepted\":false"));
    let log = env.run(["logs"]).ok();
    assert!(log.contains("question_answered") && log.contains("prompt_delivered"), "{log}");

    env.run(["exit", "a"]).ok();
    wait(&env, "a", "exited");
}

#[test]
fn a_turn_of_claude_code() {
    a_turn("claude_code", CLAUDE);
}

#[test]
fn a_turn_of_codex() {
    a_turn("codex", CODEX);
}

#[test]
fn a_directory_is_trusted_only_if_the_operator_says_so() {
    let scenario = r#"
        look = "claude"
        start = [{ ask = { kind = "startup", text = "Quick safety check", options = ["No, exit", "Yes, I trust this folder"], accept = 2, numbered = false } }]
    "#;
    let env = env();
    let log = env.script_agent("claude_code", scenario);
    // Without a terminal for the question the agent is not started.
    let refused = env.run(["launch", "claude_code", "--name", "a"]).ends(64);
    assert!(refused.stderr.contains("nobody is here to answer") && refused.stderr.contains("--trust"));
    assert_eq!(env.run(["ls", "--json"]).json(), json!([]));
    // Other programs can, and a person answers later.
    let environment = json!({ "PATH": std::env::var("PATH").unwrap() });
    let body = json!({
        "provider": "claude_code", "name": "a", "working_directory": env.work(), "environment": environment,
    });
    let launched = env.http().post("/terminals", &body).unwrap().json();
    assert_eq!(launched["status"], "waiting_user_answer", "{launched}");
    assert_eq!(launched["waiting_kind"], "startup");
    for message in ["hello", "y"] {
        let refused = env.run(["send", "a", message]);
        assert_eq!(refused.code, Some(1), "{message}");
    }
    let closed = count(&log, "dialog_closed");
    assert_eq!(closed, 0, "a program does not accept this; a person may");
    let hint = env.run(["ls"]).stderr;
    assert!(hint.contains("posse approve a"), "{hint}");
    env.run(["approve", "a"]).ok();
    wait(&env, "a", "idle");

    let launched = env.run(["launch", "claude_code", "--name", "b", "--trust", "--json"]).json();
    assert_eq!(launched["status"], "idle", "{launched}");
    assert_eq!(logged(&log, "dialog_closed", 2), 2);
    let audit = env.run(["audit", "show", "--json"]).json();
    let startup = audit.as_array().unwrap().iter().find(|entry| entry["by"] == "startup").unwrap();
    assert_eq!(startup["answering"]["wish"], "option 2", "{audit:#}");
    assert_eq!(startup["answering"]["keys"], json!(["down", "enter"]));
}

/// A prompt would be typed into the menu.
#[test]
fn provider_check_fails_for_rules_that_call_a_menu_ready() {
    let env = env();
    fs::create_dir_all(env.paths().providers()).unwrap();
    let mine = |rules: &str| {
        let manifest = format!("id = 'mine'\nname = 'Mine'\n[screen.dialog]\ncursors = '❯'\n{rules}");
        fs::write(env.paths().providers().join("mine.toml"), manifest).unwrap();
        env.run(["provider", "check", "mine"])
    };
    let idle = "[[screen.rule]]\nid = 'ready'\nstatus = 'idle'\nany = ['^ *❯']\nwhy = ''\n";
    let checked = mine(idle).ends(1);
    let said = format!("{}{}", checked.stdout, checked.stderr);
    assert!(said.contains("rule \"ready\" says idle while a menu stands on the screen"), "{said}");
    let menu =
        "[[screen.rule]]\nid = 'menu'\nstatus = 'waiting_user_answer'\nkind = 'question'\nwhen = ['menu']\nwhy = ''\n";
    assert_eq!(mine(&format!("{menu}{idle}")).code, Some(0));
}

#[test]
fn a_live_check_without_a_model_says_what_it_can() {
    let env = env();
    let programs = env.work().join("bin");
    fs::create_dir(&programs).unwrap();
    let check = |arguments: &[&str]| {
        let mut command = env.command(["provider", "check", "--live"].iter().chain(arguments));
        let output = command.env("PATH", &programs).output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, missing, _) = check(&["codex"]);
    assert_eq!(code, Some(69));
    assert!(missing.contains("codex is not installed") && missing.contains("npm install"), "{missing}");
    let (code, _, none) = check(&[]);
    assert_eq!(code, Some(69));
    assert!(none.contains("claude_code") && none.contains("kiro_cli"), "{none}");
    assert_eq!(check(&["mole"]).0, Some(64));

    let kiro = programs.join("kiro-cli");
    fs::write(&kiro, "#!/bin/sh\necho kiro-cli 1.20.0\n").unwrap();
    fs::set_permissions(&kiro, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let (code, kiro, _) = check(&[]);
    assert_eq!(code, Some(0), "{kiro}");
    assert!(kiro.contains("kiro_cli 1.20.0") && kiro.contains("no scripted model"), "{kiro}");
}

/// A user has read one question, and answers when another one is open.
#[test]
fn only_the_question_that_was_read_is_answered() {
    let scenario = r#"
        look = "claude"
        [[turn]]
        steps = [
          { ask = { kind = "permission", command = "ls" } },
          { think = "100ms" },
          { ask = { kind = "permission", command = "rm -r target" } },
          { say = "All clean." },
        ]
    "#;
    let env = env();
    let log = env.script_agent("claude_code", scenario);
    let launched = env.run(["launch", "claude_code", "--trust", "--name", "a", "--json"]).json();
    let first = asked(&env, "go")["dialog"]["id"].as_str().unwrap().to_owned();
    let approved = env.run(["approve", "a", "--question", &first[..4]]).ends(0);
    assert_eq!(approved.stderr, format!("approve: Bash ls ({})\n", &first[..4]));
    let second = loop {
        let id = question(&env, "a")["dialog"]["id"].as_str().unwrap().to_owned();
        if id != first {
            break id;
        }
    };
    for verb in ["approve", "deny"] {
        let refused = env.run([verb, "a", "--question", &first[..4]]).ends(1);
        let answers = format!("`posse approve a --question {}`", &second[..4]);
        for part in ["another question is open now", "Bash rm -r target", &answers] {
            assert!(refused.stderr.contains(part), "{part}: {}", refused.stderr);
        }
    }
    let post = |answer: Value| {
        let path = format!("/terminals/{}/approve", launched["id"].as_str().unwrap());
        let answer = env.http().post(&path, &answer).unwrap();
        (answer.status, answer.json()["kind"].clone())
    };
    assert_eq!(post(json!({ "dialog": first })), (409, "question_changed".into()));
    assert_eq!(post(json!({})), (422, "malformed".into()), "whatever is open is nobody's question");
    // An option that allows more is not chosen, named or not.
    let shown = question(&env, "a");
    let options = shown["dialog"]["options"].as_array().unwrap();
    let wide = 1 + options.iter().position(|option| option["meaning"] == "widen").unwrap();
    let refused = env.run(["approve", "a", "--option", &wide.to_string()]).ends(1);
    for part in ["allows more than this once", "posse attach"] {
        assert!(refused.stderr.contains(part), "{part}: {}", refused.stderr);
    }
    assert_eq!(logged(&log, "dialog_closed", 1), 1);
    let approved = env.run(["approve", "a"]).ends(0);
    assert_eq!(approved.stderr, format!("approve: Bash rm -r target ({})\n", &second[..4]));
    assert_eq!(logged(&log, "dialog_closed", 2), 2);
}

/// The reason is the agent's next prompt, and part of the audit.
#[test]
fn deny_with_a_reason_tells_the_agent_and_the_audit_why() {
    let (env, log) = launched(CLAUDE);
    asked(&env, "danger");
    env.run(["deny", "a", "--reason", "Use the other directory."]).ok();
    logged(&log, "submitted", 2);
    let told = fs::read_to_string(&log).unwrap();
    let prompts: Vec<&str> = told.lines().filter(|line| line.contains("\"event\":\"submitted\"")).collect();
    assert!(prompts.len() == 2 && prompts[1].contains("Use the other directory."), "{told}");
    assert!(told.contains("\"accepted\":false"), "{told}");
    let audit = env.run(["audit", "show", "--json"]).json();
    let answering = &audit[0]["answering"];
    assert_eq!((&answering["wish"], &answering["reason"]), (&"deny".into(), &"Use the other directory.".into()));
}

#[test]
fn answer_chooses_the_option_that_is_named() {
    let scenario = r#"
        look = "claude"
        [[turn]]
        steps = [{ ask = { kind = "question", text = "Which one?", options = ["SQLite", "Postgres"] } }, { say = "Fine." }]
    "#;
    let (env, log) = launched(scenario);
    let shown = asked(&env, "go");
    let id = &shown["dialog"]["id"].as_str().unwrap()[..4];
    // The hint suggests only safe commands: none of them approves or denies.
    let hint = env.run(["ls"]).stderr;
    assert!(hint.contains(&format!("`posse answer a --option N --question {id}` answers it")), "{hint}");
    let refused = env.run(["answer", "a", "Neither"]);
    assert_eq!(refused.code, Some(1), "none of its options takes words: {refused:?}");
    assert_eq!(count(&log, "dialog_closed"), 0);
    env.run(["answer", "a", "--question", id, "--option", "2"]).ok();
    wait(&env, "a", "completed");
    assert!(fs::read_to_string(&log).unwrap().contains("\"choice\":2"), "{}", fs::read_to_string(&log).unwrap());
}

#[test]
fn a_status_can_be_explained() {
    let (env, _) = launched(CLAUDE);
    let explained = env.run(["explain", "a"]).ok();
    assert!(explained.contains("box.idle") && explained.contains("decided"), "{explained}");
    let screen = env.work().join("screen.txt");
    let arguments = ["explain", "--provider", "claude_code", "--screen", screen.to_str().unwrap(), "--json"];
    fs::write(&screen, "Would you like to run the following command?\n").unwrap();
    let explained = env.run(arguments).json();
    assert_eq!(
        (&explained["status"], &explained["waiting_kind"], &explained["rule"]),
        (&"waiting_user_answer".into(), &"permission".into(), &"seed.permission".into())
    );
    // The same with escape sequences in it.
    fs::write(&screen, "\x1b[1mWould you like\x1b[0m to \x1b[32mrun\x1b[0m it?\n\x1b[2m❯\x1b[0m \n").unwrap();
    assert_eq!(env.run(arguments).json()["status"], "idle", "answered: a prompt follows");
}

#[test]
fn what_an_agent_writes_down_of_itself_is_heard() {
    let scenario = r#"
        look = "claude"
        silent = true
        [[turn]]
        steps = [
          { think = "500ms" },
          { write = { path = "HOME/state-of-it.json", text = '{"status":"waiting","waitingFor":"permission prompt"}' } },
          { pause = "60s" },
        ]
    "#;
    let env = env();
    let home = env.work();
    env.script_agent("claude_code", &scenario.replace("HOME", home.to_str().unwrap()));
    let manifest = env.paths().providers().join("claude_code.toml");
    let text = fs::read_to_string(&manifest).unwrap();
    fs::write(&manifest, format!("session_file = ['{{NO_SUCH}}/x', '{}/state-of-it.json']\n{text}", home.display()))
        .unwrap();
    env.run(["launch", "claude_code", "--trust", "--name", "a"]).ok();
    env.run(["send", "a", "go"]).ok();
    let shown = wait(&env, "a", "waiting_user_answer");
    assert!(shown["reason"].as_str().unwrap().contains("session file"), "{shown}");
    assert!(env.run(["explain", "a"]).ok().contains("session file: asking"));
}

/// A later daemon reads the agent's files too, and they are removed at the end.
#[test]
fn what_an_agent_writes_down_of_what_it_does_is_heard() {
    let env = env();
    env.script_agent(
        "claude_code",
        "look = \"claude\"\nsilent = true\n[[turn]]\nsteps = [{ think = \"100ms\" }, { say = \"ok\" }]",
    );
    let manifest = env.paths().providers().join("claude_code.toml");
    let events =
        "[[signals.events]]\nif = { type = \"broke\" }\nmeans = { says = \"failed\", class_from = \"of.what\" }\n";
    fs::write(&manifest, fs::read_to_string(&manifest).unwrap() + events).unwrap();
    let launched = env.run(["launch", "claude_code", "--trust", "--name", "a", "--json"]).json();
    let file = env.paths().events().join(launched["id"].as_str().unwrap());
    let mut written = fs::OpenOptions::new().append(true).open(&file).unwrap();
    let mut breaks = |why: &str| {
        let line = format!("{{\"type\":\"works\"}}\n{{\"type\":\"broke\",\"of\":{{\"what\":\"{why}\"}}}}\n");
        written.write_all(line.as_bytes()).unwrap();
        let shown = wait(&env, "a", "error");
        assert_eq!(shown["reason"], format!("the agent said failed: {why} (session file)"));
    };
    breaks("boredom");
    env.run(["send", "a", "go"]).ok();
    wait(&env, "a", "completed");
    env.kill_daemon();
    breaks("loneliness");
    env.run(["kill", "a"]).ok();
    assert!(!file.exists());
}

/// The agents in the tests of long prompts.
const AGENTS: [(&str, &str); 2] = [("claude_code", "claude"), ("codex", "codex")];

/// Starts such an agent. Returns the path that takes its input, and its log.
fn typed_to(provider: &str, look: &str) -> (TestEnv, String, PathBuf) {
    let (env, log) = launched_as(provider, &format!("look = \"{look}\"\n[[turn]]\nsteps = [{{ say = \"Done.\" }}]"));
    let id = env.run(["show", "a", "--json"]).json()["id"].as_str().unwrap().to_owned();
    (env, format!("/terminals/{id}/input"), log)
}

/// A prompt as dressed up as those of the loop.
fn long_prompt(lines: usize, end: &str) -> String {
    "Read src/main.rs, don't guess; the user's words are \"as they are\".\n".repeat(lines) + end
}

fn prompts(log: &Path) -> BTreeSet<String> {
    records(log, "submitted").iter().map(|record| record["prompt"].as_str().unwrap().to_owned()).collect()
}

/// S-163: of two concurrent inputs each is taken whole, or refused.
#[test]
fn s_163_two_inputs_at_once_are_never_mixed() {
    for (provider, look) in AGENTS {
        let (env, path, log) = typed_to(provider, look);
        let taken: BTreeSet<String> = std::thread::scope(|scope| {
            let send = |end| {
                let prompt = long_prompt(60, end);
                let answer = env.http().post(&path, &json!({ "message": prompt })).unwrap();
                (answer.status == 200).then_some(prompt)
            };
            let sending = ["the first", "the second"].map(|end| scope.spawn(move || send(end)));
            sending.into_iter().filter_map(|one| one.join().unwrap()).collect()
        });
        assert!(!taken.is_empty(), "{provider}: one of them is the first");
        assert_eq!(logged(&log, "submitted", taken.len()), taken.len(), "{provider}");
        assert_eq!(prompts(&log), taken, "{provider}");
    }
}

/// S-167.
#[test]
fn s_167_a_long_prompt_arrives_whole() {
    for (provider, look) in AGENTS {
        let (env, path, log) = typed_to(provider, look);
        let long = long_prompt(3_200, "the end");
        assert!(long.len() > 200 << 10);
        let answer = env.http().post(&path, &json!({ "message": long })).unwrap();
        assert_eq!(answer.status, 200, "{provider}: {answer:?}");
        wait(&env, "a", "completed");
        assert_eq!(prompts(&log), BTreeSet::from([long]), "{provider}");
    }
}

/// The five of the loop are there for everyone, and the user's own take their place.
#[test]
fn profiles_are_listed_shown_and_overridden() {
    let env = env();
    let directory = env.paths().profiles();
    let listed = env.run(["profile", "list", "--json"]).json();
    let names: Vec<&str> = listed.as_array().unwrap().iter().map(|listed| listed["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["peer_programmer", "peer_system_analyst", "programmer", "system_analyst", "tester"]);
    assert!(env.run(["profile", "list"]).ok().contains("built in"));

    let shown = env.run(["profile", "show", "tester"]).ok();
    assert!(shown.starts_with("---\nname: tester\n") && shown.contains("RESULT:"), "{shown}");
    // What is shown can be laid in place of ours.
    fs::create_dir_all(&directory).unwrap();
    fs::write(directory.join("tester.md"), shown.replace("Then stop.", "Then rest.")).unwrap();
    let mine = env.run(["profile", "show", "tester", "--json"]).json();
    assert!(mine["text"].as_str().unwrap().contains("Then rest."), "{mine}");
    assert!(mine["from"].as_str().unwrap().ends_with("agent-store/tester.md"), "{mine}");
    fs::write(directory.join("tester.md"), "no fields").unwrap();
    env.run(["profile", "show", "tester"]).ends(1).prints(&["no fields"]).complains(&["tester.md"]);
    assert!(env.run(["profile", "list"]).ok().contains("does not begin"));
}

//! The real agents, started and talked to as people do: by provider, with proof.

use posse_api::Terminal;
use posse_core::status::{StatusKind, WaitingKind};
use posse_sim::ModelServer;
use posse_testkit::TestEnv;
use posse_testkit::agents::{Agent, HomeOptions, Maker, OPENCODE, QWEN, or_skip};
use posse_testkit::files::when;
use serde_json::Value;

use crate::env;

#[track_caller]
fn wait(env: &TestEnv, id: &str, until: &str) -> Value {
    env.run(["wait", id, "--until", until, "--timeout", "300s"]).ok();
    env.run(["show", id, "--json"]).json()
}

fn a_turn(agent: &Agent, provider: &str) {
    let server = ModelServer::script(
        r#"
        [[turn]]
        steps = [{ say = "Good morning" }, { wait_for = "sunrise" }, { say = " to everyone." }]
        [[turn]]
        steps = [{ say = "I make the file." }, { run = { command = "echo made > made.txt && cat made.txt", escalated = true } }]
        [[turn]]
        steps = [{ say = "The file is there." }]
        [[turn]]
        steps = [{ run = { command = "echo other > other.txt", escalated = true } }]
        "#,
    );
    let home = agent.home(&server, &HomeOptions::default());
    let env = env();
    let launched = home.launch_as(&env, provider);
    assert_eq!(launched.status.status, StatusKind::Idle, "{launched:?}");
    let id = launched.id.as_str();

    env.run(["send", id, "say good morning"]).ok();
    server.wait_for(|log| log.waits_at("sunrise"), crate::PATIENCE);
    wait(&env, id, "processing");
    server.release("sunrise");
    wait(&env, id, "completed");
    let last = env.run(["output", id, "--last"]).ok();
    assert_eq!(last.trim(), "Good morning to everyone.");

    env.run(["send", id, "make a file"]).ok();
    let shown = wait(&env, id, "waiting_user_answer");
    assert_eq!(shown["waiting_kind"], "permission", "{shown}");
    let refused = env.run(["send", id, "something else"]);
    assert!(refused.stderr.contains("question"), "{}", refused.stderr);
    env.run(["send", id, "y"]).ok();
    wait(&env, id, "completed");
    assert_eq!(std::fs::read_to_string(home.directory.join("made.txt")).unwrap(), "made\n");

    env.run(["send", id, "make another"]).ok();
    wait(&env, id, "waiting_user_answer");
    env.run(["deny", id]).ok();
    wait(&env, id, "idle,completed");
    assert!(!home.directory.join("other.txt").exists());

    env.run(["exit", id]).ok();
    wait(&env, id, "exited");
}

fn trust(agent: &Agent, provider: &str) {
    let server = ModelServer::script("[[turn]]\nsteps = [{ say = \"Hello.\" }]");
    let home = agent.home(&server, &HomeOptions { trusted: false, ..HomeOptions::default() });
    let env = env();
    let launched = home.launch_as(&env, provider);
    assert_eq!(launched.status.waiting_kind, Some(WaitingKind::Startup), "{launched:?}");
    // Follow the hint exactly.
    let name = launched.name.as_str();
    let shown = env.run(["show", name]).ok();
    assert!(shown.contains(&format!("posse approve {name}")), "{shown}");
    env.run(["approve", name]).ok();
    wait(&env, name, "idle");
    env.run(["kill", name]).ok();
    let refused = env.run(["launch", provider, "--directory", home.directory.to_str().unwrap()]);
    assert_eq!(refused.code, Some(64), "{}", refused.stderr);
    assert!(refused.stderr.contains("nobody is here to answer") && refused.stderr.contains("--trust"));
    let launched = home.posse(&env, ["launch", provider, "--trust", "--json"]).output().unwrap();
    let launched: Terminal = serde_json::from_slice(&launched.stdout).unwrap();
    assert_eq!(launched.status.status, StatusKind::Idle, "{launched:?}");
}

const QUESTION: &str = r#"{ tool = { name = "AskUserQuestion", input = { questions = [{ question = "Which database?", header = "Database", multiSelect = false, options = [{ label = "PostgreSQL", description = "Relational" }, { label = "SQLite", description = "Embedded" }] }] } } }"#;

/// A question is answered with an option and in words, and a refusal carries its reason.
#[test]
fn claude_questions_are_answered_and_refusals_explained() {
    let Some(agent) = or_skip(Agent::installed(Maker::Claude, "2.1.325")) else { return };
    let say = |text: &str| format!("[[turn]]\nsteps = [{{ say = \"{text}\" }}]\n");
    let ask = format!("[[turn]]\nsteps = [{QUESTION}]\n");
    let run = "[[turn]]\nsteps = [{ run = { command = \"echo other > other.txt\", escalated = true } }]\n";
    let script = [ask.clone(), say("First."), ask, say("Second."), run.to_owned(), say("Third.")].concat();
    let server = ModelServer::script(&script);
    let home = agent.home(&server, &HomeOptions::default());
    let env = env();
    let launched = home.launch_as(&env, "claude_code");
    let id = launched.id.as_str();
    let asked = |text: &str| server.log().turns().any(|turn| format!("{turn:?}").contains(text));

    env.run(["send", id, "ask me"]).ok();
    wait(&env, id, "waiting_user_answer");
    let refused = env.run(["approve", id]);
    assert!(refused.stderr.contains("posse answer NAME --option N"), "{}", refused.stderr);
    env.run(["answer", id, "--option", "2"]).ok();
    wait(&env, id, "completed");
    assert!(asked("SQLite"), "{:?}", server.log());

    env.run(["send", id, "ask me again"]).ok();
    wait(&env, id, "waiting_user_answer");
    env.run(["answer", id, "Neither of these: use a file, always, 1 2 3."]).ok();
    wait(&env, id, "completed");
    assert!(asked("Neither of these: use a file, always, 1 2 3."), "{:?}", server.log());
    let audit = env.run(["audit", "show", "--json"]).json();
    let last = audit.as_array().unwrap().iter().rev().find(|entry| !entry["answering"].is_null()).unwrap();
    assert_eq!(last["answering"]["wish"], "answer", "{last}");
    assert_eq!(last["answering"]["chosen"], "Neither of these: use a file, always, 1 2 3.");

    env.run(["send", id, "make a file"]).ok();
    wait(&env, id, "waiting_user_answer");
    env.run(["deny", id, "--reason", "Use the other directory."]).ok();
    wait(&env, id, "completed");
    assert!(asked("Use the other directory."), "{:?}", server.log());
    assert!(!home.directory.join("other.txt").exists());
}

/// It asks nothing at its start.
mod opencode {
    use super::*;

    #[test]
    fn a_turn_by_provider() {
        let Some(agent) = or_skip(Agent::installed(Maker::Opencode, OPENCODE)) else { return };
        a_turn(&agent, "opencode");
    }

    /// By the plugin that posse gives it.
    #[test]
    #[ignore = "./test --full"]
    fn it_reports_itself() {
        let Some(agent) = or_skip(Agent::installed(Maker::Opencode, OPENCODE)) else { return };
        let server = ModelServer::script("[[turn]]\nsteps = [{ say = \"Good\" }, { wait_for = \"never\" }]");
        let home = agent.home(&server, &HomeOptions::default());
        let env = env();
        let launched = home.launch_as(&env, "opencode");
        let id = launched.id.as_str();
        env.run(["send", id, "say good morning"]).ok();
        server.wait_for(|log| log.waits_at("never"), crate::PATIENCE);
        // What it says of itself is no event when the screen has said the same before: one can only look.
        let says = || env.run(["explain", id, "--json"]).json()["signals"].clone();
        let said = when("a report", || Some(says()).filter(|said| said.to_string().contains("hook")));
        assert_eq!(said, serde_json::json!([{ "source": "hook", "said": "working" }]));
    }
}

/// One module per agent and version. The turn of the newest version is the smoke test of `./test`.
macro_rules! provider {
    ($($(#[$attribute:meta])? $name:ident: $agent:expr, $provider:literal;)*) => {$(
        mod $name {
            use super::*;
            #[test]
            $(#[$attribute])?
            fn a_turn_by_provider() {
                let Some(agent) = or_skip($agent) else { return };
                a_turn(&agent, $provider);
            }
            #[test]
            #[ignore = "./test --full"]
            fn trusted_by_provider() {
                let Some(agent) = or_skip($agent) else { return };
                trust(&agent, $provider);
            }
        }
    )*};
}

provider! {
    #[ignore = "./test --full"]
    claude_197: Agent::installed(Maker::Claude, "2.1.197"), "claude_code";
    claude_325: Agent::installed(Maker::Claude, "2.1.325"), "claude_code";
    codex_166: Agent::installed(Maker::Codex, "0.166.0"), "codex";
    qwen_0_15: Agent::installed(Maker::Qwen, QWEN), "qwen";
}

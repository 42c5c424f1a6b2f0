//! The real agents, started and talked to as people do: by provider, with proof.

use std::time::{Duration, Instant};

use posse_testkit::TestEnv;
use posse_testkit::agents::{Agent, OPENCODE, Options, QWEN, or_skip};
use posse_testkit::models::ModelServer;
use serde_json::Value;

use crate::env;

#[track_caller]
fn wait(env: &TestEnv, id: &str, until: &str) -> Value {
    env.run(["wait", id, "--until", until, "--timeout", "60s"]).ok();
    env.run(["show", id, "--json"]).json()
}

fn a_turn(agent: &Agent, provider: &str) {
    let server = ModelServer::script(
        r#"
        [[turn]]
        steps = [{ text = "Good morning" }, { wait_for = "sunrise" }, { text = " to everyone." }]
        [[turn]]
        steps = [{ text = "I make the file." }, { run = { command = "echo made > made.txt && cat made.txt", escalated = true } }]
        [[turn]]
        steps = [{ text = "The file is there." }]
        [[turn]]
        steps = [{ run = { command = "echo other > other.txt", escalated = true } }]
        "#,
    );
    let home = agent.home(&server, &Options::default());
    let env = env();
    let launched = home.launch_as(&env, provider, &[]);
    assert_eq!(launched["status"], "idle", "{launched}");
    let id = launched["id"].as_str().unwrap();

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
    env.run(["wait", id, "--until", "idle,completed", "--timeout", "30s"]).ok();
    assert!(!home.directory.join("other.txt").exists());

    env.run(["exit", id]).ok();
    env.run(["wait", id, "--until", "exited", "--timeout", "30s"]).ok();
}

fn trust(agent: &Agent, provider: &str) {
    let server = ModelServer::script("[[turn]]\nsteps = [{ text = \"Hello.\" }]");
    let home = agent.home(&server, &Options { trusted: false, ..Options::default() });
    let env = env();
    let launched = home.launch_as(&env, provider, &["--name", "asks"]);
    assert_eq!(
        (&launched["status"], &launched["waiting_kind"]),
        (&"waiting_user_answer".into(), &"startup".into()),
        "{launched}"
    );
    env.run(["kill", "asks"]).ok();
    let launched = home.launch_as(&env, provider, &["--trust"]);
    assert_eq!(launched["status"], "idle", "{launched}");
}

/// It asks nothing at its start.
mod opencode {
    use super::*;

    #[test]
    fn a_turn_by_provider() {
        let Some(agent) = or_skip(Agent::opencode(OPENCODE)) else { return };
        a_turn(&agent, "opencode");
    }

    /// By the plugin that posse gives it.
    #[test]
    #[ignore = "./test --full"]
    fn it_reports_itself() {
        let Some(agent) = or_skip(Agent::opencode(OPENCODE)) else { return };
        let server = ModelServer::script("[[turn]]\nsteps = [{ text = \"Good\" }, { wait_for = \"never\" }]");
        let home = agent.home(&server, &Options::default());
        let env = env();
        let launched = home.launch_as(&env, "opencode", &[]);
        let id = launched["id"].as_str().unwrap();
        env.run(["send", id, "say good morning"]).ok();
        server.wait_for(|log| log.waits_at("never"), crate::PATIENCE);
        // What it says of itself is no event when the screen has said the same before: one can only look.
        let end = Instant::now() + crate::PATIENCE;
        let says = || env.run(["explain", id, "--json"]).json()["signals"].clone();
        while !says().to_string().contains("hook") && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(50));
        }
        assert_eq!(says(), serde_json::json!([{ "source": "hook", "said": "working" }]));
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
    claude_197: Agent::claude("2.1.197"), "claude_code";
    claude_325: Agent::claude("2.1.325"), "claude_code";
    codex_166: Agent::codex("0.166.0"), "codex";
    qwen_0_15: Agent::qwen(QWEN), "qwen";
}

//! A plan on the real agents without a terminal: one task, from its prompt to the merge.

use std::fs;
use std::process::{Command, Stdio};

use posse_testkit::agents::{Agent, CLAUDE, CODEX, Options, or_skip};
use posse_testkit::models::ModelServer;

use crate::env;

const PLAN: &str = "\
meta: {name: Greeting}
sections:
  - id: s
    tasks:
      - {id: t, name: Greet, description: 'Write greeting.txt.'}
";

fn carries_out_a_task(agent: &Agent, provider: &str) {
    let server = ModelServer::script(
        r#"[[turn]]
           steps = [{ text = 'I write it.' }, { write = { path = 'greeting.txt', content = 'hello' } }]
           [[turn]]
           steps = [{ text = """It is there.
```json
{"task_id": "t", "status": "completed", "message": "the greeting is there"}
```""" }]"#,
    );
    let home = agent.home(&server, &Options::default());
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).current_dir(&home.directory).output().unwrap();
        assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    git(&["init", "-q", "-b", "main"]);
    git(&["config", "user.name", "U"]);
    git(&["config", "user.email", "u@example.org"]);
    git(&["commit", "-q", "--allow-empty", "-m", "first"]);
    let before = git(&["status", "--porcelain"]);
    let env = env();
    let plan = env.work().join("plan.yaml");
    fs::write(&plan, PLAN).unwrap();
    let mut command = env.command(["plan", "run", "--provider", provider]);
    command.arg(&plan).current_dir(&home.directory).envs(&home.env).env("PATH", home.path()).stdin(Stdio::null());
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert_eq!(output.status.code(), Some(0), "{said}\n{}", server.log());
    assert_eq!(fs::read_to_string(home.directory.join("greeting.txt")).unwrap().trim(), "hello");
    assert_eq!(git(&["status", "--porcelain"]), before, "what is the user's own");
    assert!(git(&["log", "-1", "--format=%B"]).contains("Task: t"), "{said}");
    assert!(fs::read_to_string(&plan).unwrap().contains("status: verified"));
    let log = server.log();
    let asked = &log.turns().next().unwrap().1.user_text;
    assert!(asked.contains("Write greeting.txt.") && asked.contains("## How to report"), "{asked}");
    assert!(home.processes().is_empty(), "{:?}", home.processes());
}

#[test]
fn claude_code_carries_out_a_task() {
    for agent in CLAUDE.iter().filter_map(|version| or_skip(Agent::claude(version))) {
        carries_out_a_task(&agent, "claude_code");
    }
}

#[test]
fn codex_carries_out_a_task() {
    for agent in CODEX.iter().filter_map(|version| or_skip(Agent::codex(version))) {
        carries_out_a_task(&agent, "codex");
    }
}

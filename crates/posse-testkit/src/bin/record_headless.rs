//! Records what the real agents say without a terminal, for the tests of their readers:
//! `cargo run -p posse-testkit --bin record_headless [CASE…]`. Writes `crates/posse-agents/fixtures/AGENT/VERSION/headless`:
//! the two streams, and the events that posse reads in them (`.events`), which are to be reviewed.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use posse_agents::headless::command::Asked;
use posse_agents::headless::{Dialect, Sandbox};
use posse_sim::ModelServer;
use posse_sim::headless::HeadlessCase;
use posse_testkit::agents::{Agent, CLAUDE, CODEX, HomeOptions, Maker};
use posse_testkit::headless::{HeadlessSession, SessionOutput, SessionRequest, spawn};
use serde_json::Value;

/// Retries wait in between, and Claude Code likes to wait.
const PATIENCE: Duration = Duration::from_secs(90);

fn main() -> ExitCode {
    let only: Vec<String> = std::env::args().skip(1).collect();
    let mut failed = false;
    for (maker, dialect, versions) in [(Maker::Claude, Dialect::Claude, CLAUDE), (Maker::Codex, Dialect::Codex, CODEX)]
    {
        let fits = |case: &HeadlessCase| {
            (dialect == Dialect::Claude || case.max_turns.is_none()) && (only.is_empty() || only.contains(&case.name))
        };
        for version in versions {
            match Agent::installed(maker, version) {
                Ok(agent) => {
                    for case in HeadlessCase::all().into_iter().filter(fits) {
                        failed |= !record(maker.provider(), &agent, dialect, &case);
                    }
                }
                Err(error) => {
                    eprintln!("cannot {error}");
                    failed = true;
                }
            }
        }
    }
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

#[allow(clippy::unwrap_used)]
fn record(provider: &str, agent: &Agent, dialect: Dialect, case: &HeadlessCase) -> bool {
    let version = agent.version();
    let server = ModelServer::start([case.scenario()]).unwrap();
    let mut home = agent.home(&server, &HomeOptions { retries: Some(case.retries), ..HomeOptions::default() });
    if case.subscribed && dialect == Dialect::Claude {
        home.env.remove("ANTHROPIC_API_KEY");
        home.env.insert("CLAUDE_CODE_OAUTH_TOKEN".into(), "sk-ant-oat01-dummy".into());
    }
    let asked = Asked { prompt: "Do the task.", max_turns: case.max_turns, ..Asked::default() };
    let wanted = SessionRequest { dialect, sandbox: Sandbox::On, agent: &case.agent, asked };
    let session = HeadlessSession::start(&home, &spawn(&home, &wanted));
    if let Some(gate) = &case.killed_at {
        server.wait_for(|log| log.waits_at(gate), PATIENCE);
        session.kill();
    }
    let heard = session.hear(PATIENCE);
    let root = home.home().parent().unwrap().display().to_string();
    let plain = |text: &str| text.replace(&root, "/agent");
    let stdout: String = String::from_utf8_lossy(&heard.stdout).lines().map(|line| shortened(&plain(line))).collect();
    let kept = SessionOutput { stdout: stdout.into_bytes(), stderr: plain(&heard.stderr), ..heard };
    let events = kept.events(provider).into_iter().map(|event| serde_json::to_string(&event).unwrap() + "\n");
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("../posse-agents/fixtures");
    let place = place.join(provider).join(version).join("headless");
    std::fs::create_dir_all(&place).unwrap();
    std::fs::write(place.join(format!("{}.jsonl", case.name)), &kept.stdout).unwrap();
    std::fs::write(place.join(format!("{}.stderr", case.name)), &kept.stderr).unwrap();
    std::fs::write(place.join(format!("{}.events", case.name)), events.collect::<String>()).unwrap();
    println!("{provider}/{version}/{}: exit {:?}, by itself: {}", case.name, kept.code, kept.by_itself);
    kept.by_itself
}

/// A line without the long lists of everything that is installed.
fn shortened(line: &str) -> String {
    let Ok(mut value) = serde_json::from_str::<Value>(line) else { return format!("{line}\n") };
    for name in ["slash_commands", "terminal_slash_commands", "skills", "agents", "capabilities", "plugins"] {
        if let Some(list) = value.get_mut(name).and_then(Value::as_array_mut) {
            list.truncate(2);
        }
    }
    format!("{value}\n")
}

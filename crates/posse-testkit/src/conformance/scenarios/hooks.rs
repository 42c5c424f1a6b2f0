//! A Stop hook of the user's own, beside ours.

use super::{Act, Scenario, prompt, scenario, turn};
use crate::agents::AgentHome;
use crate::conformance::subject::Maker;
use crate::conformance::truth::{Fact, What};

/// The hook adds a line when it ends: the time in milliseconds, and whether it blocks.
const LOG: &str = "stop_hook.log";

pub(super) fn all(maker: Maker) -> Vec<Scenario> {
    match maker {
        Maker::Claude => vec![blocking(), slow(), slow_and_blocking(), slow_after_tool()],
        _ => Vec::new(),
    }
}

/// When the user's hooks ended, and how.
pub(in crate::conformance) fn facts(home: &AgentHome) -> Vec<Fact> {
    let log = std::fs::read_to_string(home.directory.join(LOG)).unwrap_or_default();
    let fact = |line: &str| {
        let (at, how) = line.split_once(' ')?;
        Some(Fact { at: at.parse().ok()?, what: What::HookEnded { blocks: how == "block" } })
    };
    log.lines().filter_map(fact).collect()
}

/// Writes a hook that takes so many seconds; the first call blocks the end of the turn if `blocks`.
fn install(home: &AgentHome, seconds: u32, blocks: bool) -> Vec<String> {
    let log = home.directory.join(LOG).display().to_string();
    let block = r#"echo "$(date +%s%3N) block" >> "$log"; echo '{"decision":"block","reason":"Say more."}'; exit 0"#;
    let first = if blocks { format!("if [ ! -e \"$log\" ]; then {block}; fi; ") } else { String::new() };
    let script = format!("#!/bin/sh\nlog='{log}'\nsleep {seconds}\n{first}echo \"$(date +%s%3N) pass\" >> \"$log\"\n");
    let path = home.home().join("stop_hook.sh");
    let hook = serde_json::json!({ "type": "command", "command": format!("sh {}", path.display()) });
    let settings = serde_json::json!({ "hooks": { "Stop": [{ "hooks": [hook] }] } });
    let written = std::fs::write(&path, script)
        .and_then(|()| std::fs::write(home.home().join(".claude/settings.json"), settings.to_string()));
    if let Err(error) = written {
        eprintln!("no Stop hook: {error}");
    }
    Vec::new()
}

/// The hook sends the agent back to work; the second answer ends the turn.
fn blocking() -> Scenario {
    let script = turn(r#"{ say = "It is " }, { wait_for = "half" }, { say = "half done." }"#)
        + &turn(r#"{ wait_for = "rest" }, { say = "Now it is " }, { wait_for = "more" }, { say = "done." }"#);
    let acts = vec![
        prompt("do it"),
        Act::Gate("half"),
        Act::Dwell(1_000),
        Act::Release("half"),
        Act::Gate("rest"),
        Act::Dwell(2_500),
        Act::Release("rest"),
        Act::Gate("more"),
        Act::Dwell(2_000),
        Act::Release("more"),
        Act::TurnOver(1),
        Act::File(LOG),
        Act::Dwell(2_500),
    ];
    Scenario { arguments: |home| install(home, 0, true), smoke: true, ..scenario("stop_hook_blocks", script, acts) }
}

/// The hook takes five seconds and lets the turn end.
fn slow() -> Scenario {
    let script = turn(r#"{ say = "It is " }, { wait_for = "half" }, { say = "done." }"#);
    let acts = vec![
        prompt("do it"),
        Act::Gate("half"),
        Act::Dwell(1_000),
        Act::Release("half"),
        Act::TurnOver(0),
        Act::File(LOG),
        Act::Dwell(2_500),
    ];
    Scenario { arguments: |home| install(home, 5, false), smoke: true, ..scenario("stop_hook_slow", script, acts) }
}

/// The hook takes three seconds, and blocks the first time.
fn slow_and_blocking() -> Scenario {
    let script = turn(r#"{ say = "It is half done." }"#) + &turn(r#"{ say = "Now it is done." }"#);
    // The last line of the log comes three seconds after the second answer.
    let acts = vec![prompt("do it"), Act::TurnOver(1), Act::Dwell(6_000)];
    Scenario { arguments: |home| install(home, 3, true), ..scenario("stop_hook_slow_blocks", script, acts) }
}

/// The same after a tool, whose hook says that the agent works.
fn slow_after_tool() -> Scenario {
    let script = turn(r#"{ tool = { name = "Read", input = { file_path = "README.md" } } }"#)
        + &turn(r#"{ say = "It is read." }"#);
    let acts = vec![prompt("read it"), Act::TurnOver(1), Act::File(LOG), Act::Dwell(2_500)];
    let arguments = |home: &AgentHome| install(home, 2, false);
    Scenario { arguments, free_tools: 1, ..scenario("stop_hook_after_tool", script, acts) }
}

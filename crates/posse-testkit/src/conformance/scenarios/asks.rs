//! How each agent is made to ask each question.

use super::{Act, Scenario, prompt, scenario, turn};
use crate::agents::AgentHome;
use crate::conformance::subject::{Ask, Maker};

/// A tool server with one tool. When the agent knows of the tool it makes the file that it is told. Python, because every machine that runs the tests has it.
const TOOL_SERVER: &str = r#"
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    method = asked["method"]
    if method == "initialize":
        version = asked["params"]["protocolVersion"]
        result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": {"name": "scripted", "version": "1"}}
    elif method == "tools/list":
        schema = {"type": "object", "properties": {"text": {"type": "string"}}}
        # Codex asks only for what says that it may do harm.
        hints = {"destructiveHint": True, "readOnlyHint": False, "openWorldHint": True}
        result = {"tools": [{"name": "note", "description": "Takes a note", "inputSchema": schema, "annotations": hints}]}
    elif method == "tools/call":
        result = {"content": [{"type": "text", "text": "noted"}]}
    else:
        result = {}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
    if method == "tools/list":
        open(sys.argv[1], "w").close()
"#;

/// Codex asks about a plan when the turn is over, and does so only in a mode of its own.
fn codex_plan() -> Scenario {
    let script = turn(r#"{ say = "<proposed_plan>\n# It\n\n1. Read it\n2. Write it\n</proposed_plan>" }"#);
    let acts = vec![prompt("/plan make it"), Act::Dialog(Ask::Plan), Act::Dwell(2_000), Act::Deny, Act::Dwell(2_000)];
    scenario("dialog_plan", script, acts)
}

/// One question, read for a while, and accepted.
pub(super) fn accepted(maker: Maker, ask: Ask) -> Option<Scenario> {
    ask.marker(maker)?;
    if (maker, ask) == (Maker::Codex, Ask::Plan) {
        return Some(codex_plan());
    }
    let steps = steps(maker, ask)?;
    let script: String = steps.iter().map(|steps| turn(steps)).collect();
    let script = script + &turn(r#"{ say = "It is done." }"#);
    let answer = match ask {
        // It has no option that only says yes.
        Ask::Question => Act::Approve(Some(1)),
        Ask::Plan => Act::AcceptByKey("1"),
        _ => Act::Approve(None),
    };
    // Codex asks questions of its own only while it plans.
    let plans = (maker, ask) == (Maker::Codex, Ask::Question);
    let mut acts = Vec::new();
    if ask == Ask::Mcp {
        // A little more: the agent has to read the answer.
        acts.extend([Act::File(TOOLS_KNOWN), Act::Dwell(500)]);
    }
    acts.extend([
        prompt(if plans { "/plan do what you have to" } else { "do what you have to" }),
        Act::Dialog(ask),
        Act::Dwell(1_500),
        answer,
        Act::TurnOver(steps.len()),
        Act::Dwell(1_500),
    ]);
    let name = format!("{ask:?}").to_lowercase();
    let arguments: fn(&AgentHome) -> Vec<String> = match (maker, ask) {
        (Maker::Claude | Maker::Qwen, Ask::Mcp) => mcp_config,
        (Maker::Codex, Ask::Mcp) => codex_tool_server,
        (Maker::Claude, Ask::Plan) => |_| vec!["--permission-mode".into(), "plan".into()],
        _ => |_| Vec::new(),
    };
    let free_tools = steps.len() - 1;
    let smoke = matches!(ask, Ask::Question | Ask::Write);
    Some(Scenario { arguments, free_tools, smoke, ..scenario(format!("dialog_{name}"), script, acts) })
}

fn steps(maker: Maker, ask: Ask) -> Option<Vec<&'static str>> {
    Some(match (maker, ask) {
        (_, Ask::Command) => {
            vec![
                r#"{ say = "I run it." }, { run = { command = "echo made > made.txt && cat made.txt", escalated = true } }"#,
            ]
        }
        (_, Ask::Write) => vec![r#"{ say = "I write it." }, { write = { path = "made.txt", text = "made\n" } }"#],
        (Maker::Claude, Ask::Edit) => vec![
            // It edits only what it has read.
            r#"{ tool = { name = "Read", input = { file_path = "README.md" } } }"#,
            r#"{ tool = { name = "Edit", input = { file_path = "README.md", old_string = "tests", new_string = "all" } } }"#,
        ],
        (Maker::Codex, Ask::Edit) => vec![
            r#"{ tool = { name = "apply_patch", input = "*** Begin Patch\n*** Update File: README.md\n@@\n-A project for tests.\n+A project for all.\n*** End Patch" } }"#,
        ],
        (Maker::Claude, Ask::Outside) => {
            vec![r#"{ tool = { name = "Read", input = { file_path = "/etc/hostname" } } }"#]
        }
        (Maker::Codex, Ask::Outside) => vec![r#"{ write = { path = "../outside.txt", text = "made\n" } }"#],
        (Maker::Claude | Maker::Codex | Maker::Qwen, Ask::Mcp) => {
            vec![r#"{ say = "I note it." }, { tool = { name = "mcp__scripted__note", input = { text = "it" } } }"#]
        }
        (Maker::Claude, Ask::Question) => vec![
            r#"{ tool = { name = "AskUserQuestion", input = { questions = [{ question = "Which colour do you like?", header = "Colour", multiSelect = false, options = [{ label = "Red", description = "Warm" }, { label = "Blue", description = "Cold" }] }] } } }"#,
        ],
        (Maker::Codex, Ask::Question) => vec![
            r#"{ tool = { name = "request_user_input", input = { questions = [{ id = "colour", question = "Which colour do you like?", header = "Colour", options = [{ label = "Red", description = "Warm" }, { label = "Blue", description = "Cold" }] }] } } }"#,
        ],
        (Maker::Opencode, Ask::Question) => vec![
            r#"{ tool = { name = "question", input = { questions = [{ question = "Which colour do you like?", header = "Colour", options = [{ label = "Red", description = "Warm" }, { label = "Blue", description = "Cold" }] }] } } }"#,
        ],
        (Maker::Qwen, Ask::Question) => vec![
            r#"{ tool = { name = "ask_user_question", input = { questions = [{ question = "Which colour do you like?", header = "Colour", multiSelect = false, options = [{ label = "Red", description = "Warm" }, { label = "Blue", description = "Cold" }] }] } } }"#,
        ],
        (Maker::Claude, Ask::Plan) => {
            vec![r#"{ tool = { name = "ExitPlanMode", input = { plan = "1. Read it\n2. Write it" } } }"#]
        }
        _ => return None,
    })
}

const TOOLS_KNOWN: &str = "tools_known";

/// Writes the server down, and gives the arguments it is started with.
fn tool_server(home: &AgentHome) -> [String; 2] {
    let path = home.home().join("tools.py");
    if let Err(error) = std::fs::write(&path, TOOL_SERVER) {
        eprintln!("no tool server: {error}");
    }
    [path.display().to_string(), home.directory.join(TOOLS_KNOWN).display().to_string()]
}

fn mcp_config(home: &AgentHome) -> Vec<String> {
    let server = serde_json::json!({ "command": "python3", "args": tool_server(home) });
    let config = serde_json::json!({ "mcpServers": { "scripted": server } });
    vec!["--mcp-config".into(), config.to_string()]
}

fn codex_tool_server(home: &AgentHome) -> Vec<String> {
    let arguments = tool_server(home);
    vec!["-c".into(), format!("mcp_servers.scripted={{command=\"python3\",args={arguments:?}}}")]
}

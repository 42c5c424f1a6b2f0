//! Prepares the home of an agent for a case.

use std::io;

use serde::Deserialize;
use serde_json::json;

use super::ConformanceCase;
use crate::home::{Maker, ScriptedHome};

/// The log of a Stop hook in the project: one line per end, with the time in milliseconds, and `block` or `pass`.
pub const STOP_HOOK_LOG: &str = "stop_hook.log";

/// A Stop hook of the user, beside the one of posse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StopHook {
    seconds: u32,
    /// Whether its first call sends the agent back to work.
    blocks: bool,
}

impl ConformanceCase {
    /// Writes the files of the case and returns the arguments for the agent.
    pub fn prepare(&self, maker: Maker, home: &ScriptedHome) -> io::Result<Vec<String>> {
        let mut arguments = self.arguments.clone();
        if let Some(hook) = self.stop_hook {
            hook.install(home)?;
        }
        if self.tool_server {
            arguments.extend(tool_server(maker, home)?);
        }
        Ok(arguments)
    }
}

impl StopHook {
    fn install(self, home: &ScriptedHome) -> io::Result<()> {
        let log = home.directory.join(STOP_HOOK_LOG).display().to_string();
        let block =
            r#"echo "$(date +%s%3N) block" >> "$log"; echo '{"decision":"block","reason":"Say more."}'; exit 0"#;
        let first = if self.blocks { format!("if [ ! -e \"$log\" ]; then {block}; fi; ") } else { String::new() };
        let seconds = self.seconds;
        let script =
            format!("#!/bin/sh\nlog='{log}'\nsleep {seconds}\n{first}echo \"$(date +%s%3N) pass\" >> \"$log\"\n");
        let path = home.home().join("stop_hook.sh");
        let hook = json!({ "type": "command", "command": format!("sh {}", path.display()) });
        let settings = json!({ "hooks": { "Stop": [{ "hooks": [hook] }] } });
        std::fs::write(&path, script)?;
        std::fs::write(home.home().join(".claude/settings.json"), settings.to_string())
    }
}

/// Writes the tool server and returns the arguments that make the agent start it.
fn tool_server(maker: Maker, home: &ScriptedHome) -> io::Result<[String; 2]> {
    let path = home.home().join("tools.py");
    std::fs::write(&path, include_str!("../../conformance/tool_server.py"))?;
    let server = [path.display().to_string(), home.directory.join("tools_known").display().to_string()];
    Ok(match maker {
        Maker::Codex => ["-c".into(), format!("mcp_servers.scripted={{command=\"python3\",args={server:?}}}")],
        _ => {
            let config = json!({ "mcpServers": { "scripted": { "command": "python3", "args": server } } });
            ["--mcp-config".into(), config.to_string()]
        }
    })
}

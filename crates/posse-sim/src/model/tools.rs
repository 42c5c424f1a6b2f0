//! Translates commands and file writes into the tools that an agent offers.

use std::path::Path;

use serde_json::{Value, json};

use crate::model::request::ModelRequest;
use crate::scenario::{CommandUse, FileWrite, ToolUse};

/// Codex requires a reason, and shows it.
const WHY: &str = "The scenario asks for it";

pub(crate) fn run(asked: &ModelRequest, wanted: &CommandUse) -> ToolUse {
    let command = wanted.command.as_str();
    let described = json!({ "command": command, "description": "Run the scripted command" });
    let known = [
        ("Bash", described.clone()),
        ("bash", described),
        ("run_shell_command", json!({ "command": command, "description": "Run it", "is_background": false })),
        ("shell_command", json!({ "command": command })),
        ("shell", json!({ "command": ["bash", "-lc", command] })),
    ];
    let offered = known.into_iter().find(|(name, _)| asked.offers(name).is_some());
    let (name, mut input) = offered.unwrap_or_else(|| ("exec_command", json!({ "cmd": command })));
    if wanted.escalated && matches!(name, "shell_command" | "shell" | "exec_command") {
        input["sandbox_permissions"] = "require_escalated".into();
        input["justification"] = WHY.into();
    }
    offered_way(asked, name, input)
}

pub(crate) fn write(asked: &ModelRequest, wanted: &FileWrite) -> ToolUse {
    let FileWrite { path, text } = wanted;
    let offers = |name| asked.offers(name).is_some();
    if offers("Write") {
        return offered_way(asked, "Write", json!({ "file_path": path, "content": text }));
    }
    if offers("write") {
        return offered_way(asked, "write", json!({ "filePath": path, "content": text }));
    }
    if offers("write_file") {
        // This tool requires an absolute path.
        let path = Path::new(asked.directory.as_deref().unwrap_or_default()).join(path);
        return offered_way(asked, "write_file", json!({ "file_path": path, "content": text }));
    }
    let lines: String = text.lines().map(|line| format!("+{line}\n")).collect();
    let patch = format!("*** Begin Patch\n*** Add File: {path}\n{lines}*** End Patch");
    if offers("apply_patch") || in_code_mode(asked) {
        return offered_way(asked, "apply_patch", patch.into());
    }
    // Codex detects a patch in a command.
    let command = format!("apply_patch <<'END_OF_PATCH'\n{patch}\nEND_OF_PATCH");
    run(asked, &CommandUse { command, ..CommandUse::default() })
}

/// Returns the call of the scenario, in the form that the agent offers.
pub(crate) fn as_written(asked: &ModelRequest, call: &ToolUse) -> ToolUse {
    offered_way(asked, &call.name, call.input.clone())
}

/// Returns whether the agent has only the tool `exec`, as newer models of Codex do. They call other tools from its JavaScript.
fn in_code_mode(asked: &ModelRequest) -> bool {
    asked.offers("exec").is_some_and(|tool| tool.freeform)
}

fn offered_way(asked: &ModelRequest, name: &str, input: Value) -> ToolUse {
    if asked.offers(name).is_some() || !in_code_mode(asked) {
        return ToolUse::new(name, input);
    }
    let script = format!(
        "const result = await tools.{name}({input});\ntext(typeof result === 'string' ? result : JSON.stringify(result));"
    );
    ToolUse::new("exec", script.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::request::OfferedTool;

    fn offering(tools: &[(&str, bool)]) -> ModelRequest {
        let of = |(name, freeform): &(&str, bool)| OfferedTool {
            name: (*name).into(),
            namespace: None,
            freeform: *freeform,
        };
        ModelRequest { offered: tools.iter().map(of).collect(), ..ModelRequest::default() }
    }

    #[test]
    fn command_uses_the_tool_that_is_offered() {
        let wish = CommandUse { command: "ls".into(), escalated: true, ..CommandUse::default() };
        for (offered, name, field) in [
            ("Bash", "Bash", "command"),
            ("bash", "bash", "command"),
            ("run_shell_command", "run_shell_command", "command"),
            ("exec_command", "exec_command", "cmd"),
        ] {
            let call = run(&offering(&[(offered, false)]), &wish);
            assert_eq!((call.name.as_str(), &call.input[field]), (name, &"ls".into()));
            assert_eq!(call.input["sandbox_permissions"].is_string(), name == "exec_command");
        }
        let scripted = run(&offering(&[("exec", true)]), &wish);
        assert!(scripted.input.as_str().unwrap().contains(r#"tools.exec_command({"cmd":"ls""#), "{scripted:?}");
    }

    #[test]
    fn file_uses_the_tool_that_is_offered() {
        let wish = FileWrite { path: "/a".into(), text: "b\nc\n".into() };
        assert_eq!(write(&offering(&[("Write", false)]), &wish).input["file_path"], "/a");
        let relative = FileWrite { path: "a".into(), ..wish.clone() };
        let there = ModelRequest { directory: Some("/project".into()), ..offering(&[("write_file", false)]) };
        assert_eq!(write(&there, &relative).input["file_path"], "/project/a");
        assert_eq!(write(&there, &wish).input["file_path"], "/a");
        let patch = write(&offering(&[("apply_patch", true)]), &wish);
        assert!(patch.input.as_str().unwrap().contains("*** Add File: /a\n+b\n+c\n***"), "{patch:?}");
        let command = write(&offering(&[("exec_command", false)]), &wish);
        assert!(command.input["cmd"].as_str().unwrap().starts_with("apply_patch <<"), "{command:?}");
    }
}

//! The same wish by different tools: a command to run, a file to write.

use std::path::Path;

use serde_json::{Value, json};

use crate::request::Asked;
use crate::scenario::{Command, NewFile, ToolCall};

/// Codex asks for a reason, and shows it.
const WHY: &str = "The scenario asks for it";

pub(crate) fn run(asked: &Asked, wish: &Command) -> ToolCall {
    let command = wish.command.as_str();
    let offers = |name| asked.offers(name).is_some();
    let described = || json!({ "command": command, "description": "Run the scripted command" });
    let (name, mut input) = if offers("Bash") {
        ("Bash", described())
    } else if offers("bash") {
        ("bash", described())
    } else if offers("run_shell_command") {
        ("run_shell_command", json!({ "command": command, "description": "Run it", "is_background": false }))
    } else if offers("shell_command") {
        ("shell_command", json!({ "command": command }))
    } else if offers("shell") {
        ("shell", json!({ "command": ["bash", "-lc", command] }))
    } else {
        ("exec_command", json!({ "cmd": command }))
    };
    if wish.escalated && matches!(name, "shell_command" | "shell" | "exec_command") {
        input["sandbox_permissions"] = "require_escalated".into();
        input["justification"] = WHY.into();
    }
    offered_way(asked, name, input)
}

pub(crate) fn write(asked: &Asked, wish: &NewFile) -> ToolCall {
    let NewFile { path, content } = wish;
    let offers = |name| asked.offers(name).is_some();
    if offers("Write") {
        return offered_way(asked, "Write", json!({ "file_path": path, "content": content }));
    }
    if offers("write") {
        return offered_way(asked, "write", json!({ "filePath": path, "content": content }));
    }
    if offers("write_file") {
        // It takes no path that does not begin at the root.
        let path = Path::new(asked.directory.as_deref().unwrap_or_default()).join(path);
        return offered_way(asked, "write_file", json!({ "file_path": path, "content": content }));
    }
    let lines: String = content.lines().map(|line| format!("+{line}\n")).collect();
    let patch = format!("*** Begin Patch\n*** Add File: {path}\n{lines}*** End Patch");
    if offers("apply_patch") || in_code_mode(asked) {
        return offered_way(asked, "apply_patch", patch.into());
    }
    // Codex finds a patch in a command, and asks for it as for any other.
    let command = format!("apply_patch <<'END_OF_PATCH'\n{patch}\nEND_OF_PATCH");
    run(asked, &Command { command, escalated: false })
}

/// A call as the scenario wrote it, in the way in which the agent offers it.
pub(crate) fn as_written(asked: &Asked, call: &ToolCall) -> ToolCall {
    offered_way(asked, &call.name, call.input.clone())
}

/// Newer models of Codex have one tool, `exec`, and call the others from the JavaScript that they hand to it.
fn in_code_mode(asked: &Asked) -> bool {
    asked.offers("exec").is_some_and(|tool| tool.freeform)
}

fn offered_way(asked: &Asked, name: &str, input: Value) -> ToolCall {
    if asked.offers(name).is_some() || !in_code_mode(asked) {
        return ToolCall { name: name.to_owned(), input };
    }
    let script = format!(
        "const result = await tools.{name}({input});\ntext(typeof result === 'string' ? result : JSON.stringify(result));"
    );
    ToolCall { name: "exec".into(), input: script.into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Offered;

    fn offering(tools: &[(&str, bool)]) -> Asked {
        let of =
            |(name, freeform): &(&str, bool)| Offered { name: (*name).into(), namespace: None, freeform: *freeform };
        Asked { offered: tools.iter().map(of).collect(), ..Asked::default() }
    }

    #[test]
    fn a_command_by_the_tool_that_is_there() {
        let wish = Command { command: "ls".into(), escalated: true };
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
    fn a_file_by_the_tool_that_is_there() {
        let wish = NewFile { path: "/a".into(), content: "b\nc\n".into() };
        assert_eq!(write(&offering(&[("Write", false)]), &wish).input["file_path"], "/a");
        let relative = NewFile { path: "a".into(), ..wish.clone() };
        let there = Asked { directory: Some("/project".into()), ..offering(&[("write_file", false)]) };
        assert_eq!(write(&there, &relative).input["file_path"], "/project/a");
        assert_eq!(write(&there, &wish).input["file_path"], "/a");
        let patch = write(&offering(&[("apply_patch", true)]), &wish);
        assert!(patch.input.as_str().unwrap().contains("*** Add File: /a\n+b\n+c\n***"), "{patch:?}");
        let command = write(&offering(&[("exec_command", false)]), &wish);
        assert!(command.input["cmd"].as_str().unwrap().starts_with("apply_patch <<"), "{command:?}");
    }
}

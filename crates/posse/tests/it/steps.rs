//! Commands of scripted sessions, which `claude.sh` of posse-testkit plays.

use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Value, json};

/// Reports that the work is done.
pub(crate) const DONE: &str = "report '\"status\":\"completed\",\"message\":\"done\"'\n";

/// Ends with the verdict of a validator that found nothing wrong.
pub(crate) const FINE: &str = "text='\"[PASS] it is good\\n**Verdict: PASS**\"'\n";

/// Quotes a text for the shell. `{number}` is the number of the session and `{nonce}` that of its report.
fn quoted(text: &str) -> String {
    let quoted = format!("'{}'", text.replace('\'', r"'\''"));
    quoted.replace("{number}", r#"'"$number"'"#).replace("{nonce}", r#"'"$POSSE_RUN_ID"'"#)
}

fn emit(event: &Value) -> String {
    format!("emit {}\n", quoted(&event.to_string()))
}

/// Writes a file of one line and commits it.
pub(crate) fn commit(path: &str, line: &str) -> String {
    format!("commit {} {}\n", quoted(path), quoted(line))
}

/// Reports these fields of a JSON object.
pub(crate) fn reports_fields(fields: &Value) -> String {
    let fields = fields.to_string();
    format!("report {}\n", quoted(&fields[1..fields.len() - 1]))
}

pub(crate) fn reports(status: &str, message: &str) -> String {
    reports_fields(&json!({ "status": status, "message": message }))
}

/// Reports a question to the user.
pub(crate) fn ask(question: &str) -> String {
    reports_fields(&json!({ "status": "suspended", "message": "I wonder", "question": question }))
}

pub(crate) fn say(text: &str) -> String {
    emit(&json!({ "type": "assistant", "message": {
        "id": "m", "content": [{ "type": "text", "text": text }], "usage": { "input_tokens": 10, "output_tokens": 5 },
    } }))
}

/// Runs a shell command with the prompt as its standard input. What it prints is in `$output`.
pub(crate) fn sh(command: &str) -> String {
    format!("output=$(exec <\"$session/prompt\"\n{command}\n)\n")
}

pub(crate) fn wait_for(gate: &str) -> String {
    format!("wait_for {gate}\n")
}

fn tool(name: &str, argument: &str, is_refused: bool) -> String {
    static CALLS: AtomicU32 = AtomicU32::new(1);
    let id = format!("t{}", CALLS.fetch_add(1, Ordering::Relaxed));
    let input = json!({ if name == "Bash" { "command" } else { "file_path" }: argument });
    let call = json!({ "type": "tool_use", "id": id, "name": name, "input": input });
    let output = if is_refused { "it is outside of the allowed directories" } else { "done" };
    let result = json!({ "type": "tool_result", "tool_use_id": id, "is_error": is_refused, "content": output });
    let mut commands = emit(&json!({ "type": "assistant", "message": { "id": format!("m{id}"), "content": [call] } }));
    commands += &emit(&json!({ "type": "user", "message": { "content": [result] } }));
    if is_refused {
        let denial = json!({ "tool_name": name, "tool_use_id": id, "tool_input": input });
        commands += &format!("denials=$denials,{}\n", quoted(&denial.to_string()));
    }
    commands
}

pub(crate) fn uses(name: &str, argument: &str) -> String {
    tool(name, argument, false)
}

/// Uses a tool that is not allowed.
pub(crate) fn refused(name: &str, argument: &str) -> String {
    tool(name, argument, true)
}

/// Ends with this last message.
pub(crate) fn end(text: &str) -> String {
    format!("text={}\n", quoted(&Value::from(text).to_string()))
}

/// Does one thing if a condition of the shell holds, and otherwise another.
pub(crate) fn either(condition: &str, then: &str, otherwise: &str) -> String {
    format!("if {condition}; then\n{then}else\n{otherwise}fi\n")
}

/// Ends because the quota is used up for this time.
pub(crate) fn limited(seconds: u32) -> String {
    format!(
        "emit '{{\"type\":\"rate_limit_event\",\"rate_limit_info\":{{\"status\":\"rejected\",\
         \"rateLimitType\":\"five_hour\",\"resetsAt\":'\"$(($(date +%s) + {seconds}))\"'}}}}'\n\
         error=true code=1\nfinish\n"
    )
}

//! Steps of scripted sessions, as text of their scenario.

/// Reports that the work is done.
pub(crate) const DONE: &str = "{ report = 'completed' },";

/// Ends with the verdict of a validator that found nothing wrong.
pub(crate) const FINE: &str = r#"{ result = { text = "[PASS] it is good\n**Verdict: PASS**" } },"#;

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Writes a file of one line and commits it.
pub(crate) fn commit(path: &str, line: &str) -> String {
    format!("{{ write = {{ path = {}, text = {}, commit = true }} }},", quoted(path), quoted(&format!("{line}\n")))
}

pub(crate) fn reports(status: &str, message: &str) -> String {
    format!("{{ report = {{ status = '{status}', message = {} }} }},", quoted(message))
}

/// Reports a question to the user.
pub(crate) fn ask(question: &str) -> String {
    format!("{{ report = {{ status = 'suspended', message = 'I wonder', question = {} }} }},", quoted(question))
}

pub(crate) fn say(text: &str) -> String {
    format!("{{ say = {} }},", quoted(text))
}

/// Runs a shell command, in which `$session` is the directory of the session.
pub(crate) fn sh(command: &str) -> String {
    format!("{{ run = {{ command = {} }} }},", quoted(command))
}

pub(crate) fn wait_for(gate: &str) -> String {
    format!("{{ wait_for = '{gate}' }},")
}

fn tool(name: &str, argument: &str, more: &str) -> String {
    let key = if name == "Bash" { "command" } else { "file_path" };
    format!("{{ tool = {{ name = '{name}', input = {{ {key} = {} }}{more} }} }},", quoted(argument))
}

pub(crate) fn uses(name: &str, argument: &str) -> String {
    tool(name, argument, "")
}

/// Uses a tool that is not allowed.
pub(crate) fn refused(name: &str, argument: &str) -> String {
    tool(name, argument, ", refused = true")
}

/// Ends with this last message.
pub(crate) fn end(text: &str) -> String {
    result(&format!("text = {}", quoted(text)))
}

/// Ends with these fields of the result.
pub(crate) fn result(fields: &str) -> String {
    format!("{{ result = {{ {fields} }} }},")
}

/// Ends because the quota is used up for this time.
pub(crate) fn limited(seconds: u32) -> String {
    format!("{{ fail = {{ status = 429, fields = {{ resetsAt = 'now+{seconds}' }} }} }},")
}

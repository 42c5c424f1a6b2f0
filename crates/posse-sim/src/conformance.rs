//! Conformance cases: a scenario that a scripted model plays to a real agent, with concurrent user actions. They
//! measure whether posse's statuses are right. The cases are in `conformance/*.toml`.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use posse_core::status::WaitingKind;
use serde::{Deserialize, Deserializer};
use serde_json::json;

use crate::home::{Maker, ScriptedHome};
use crate::scenario::{OneOrSeveral, Scenario, ScriptTurn, duration, word_or_table};

/// A user action or a wait.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UserAction {
    /// Leaves the agent alone, so that its status can be sampled.
    #[serde(deserialize_with = "duration")]
    Dwell(Duration),
    /// Sends a prompt and waits until the model gets it.
    #[serde(deserialize_with = "prompt")]
    Prompt(UserPrompt),
    /// Types a prompt while the agent works.
    PromptWhileBusy(String),
    /// Waits until the model waits at this gate.
    Gate(String),
    Release(String),
    /// Waits until the model has answered this turn.
    TurnOver(usize),
    /// Waits for the next dialog.
    Dialog(DialogTopic),
    Approve,
    /// Approves with this option.
    Choose(u32),
    Deny,
    /// Accepts the dialog by a key: posse itself accepts nothing for longer than once.
    AcceptByKey(String),
    /// Waits for a file in the project, which a tool creates.
    File(String),
    /// Creates a file in the project, for which a tool waits.
    Touch(String),
    ErrorShown,
    /// Types keys. A list dwells for a second after each entry.
    #[serde(deserialize_with = "keys")]
    Keys(TypedKeys),
    /// Waits until this text is on the screen, or not on the screen.
    Shown(String),
    NotShown(String),
    /// Presses the key that interrupts, and waits until the agent closes its connection.
    Interrupt,
    Kill,
    Exit,
}

/// A text that is sent this many times in one prompt.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UserPrompt {
    pub text: String,
    pub times: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypedKeys {
    pub keys: Vec<String>,
    pub dwell: Duration,
}

fn prompt<'de, D: Deserializer<'de>>(deserializer: D) -> Result<UserPrompt, D::Error> {
    word_or_table(deserializer, "a text, or a table { text, times }", |text| {
        Ok(UserPrompt { text: text.to_owned(), times: 1 })
    })
}

fn keys<'de, D: Deserializer<'de>>(deserializer: D) -> Result<TypedKeys, D::Error> {
    Ok(match OneOrSeveral::deserialize(deserializer)? {
        OneOrSeveral::One(keys) => TypedKeys { keys: vec![keys], dwell: Duration::ZERO },
        OneOrSeveral::Several(keys) => TypedKeys { keys, dwell: Duration::from_secs(1) },
    })
}

/// A dialog that an agent can be made to open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DialogTopic {
    Command,
    Edit,
    Write,
    Outside,
    Mcp,
    Question,
    Plan,
}

impl DialogTopic {
    pub fn kind(self) -> WaitingKind {
        match self {
            DialogTopic::Question => WaitingKind::Question,
            DialogTopic::Plan => WaitingKind::Plan,
            _ => WaitingKind::Permission,
        }
    }
}

/// The texts of an agent by which the run of a case knows what happens. They are not the patterns of our manifests.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConformanceAgent {
    /// Shown when the agent takes prompts.
    pub ready: String,
    /// Shown for an error. The case only continues then; the status is not judged by it.
    errors: Vec<String>,
    /// Shown beside an error while the agent repeats the request by itself.
    retrying: Option<String>,
    /// The request to press the interrupting key a second time.
    pub interrupt_again: Option<String>,
    /// Shown after an interrupt.
    pub interrupted: Option<String>,
    /// The longest time until the agent gives up on a failing request.
    #[serde(deserialize_with = "duration")]
    pub gives_up: Duration,
    /// A note for readers of the figures.
    pub about: Option<String>,
    /// For each dialog a text that is on the screen if and only if the dialog is.
    pub dialogs: BTreeMap<DialogTopic, String>,
}

impl ConformanceAgent {
    pub fn of(maker: Maker) -> ConformanceAgent {
        read(file(maker)).agent.unwrap_or_else(|| panic!("{maker:?} has no table `agent`"))
    }

    pub fn shows_error(&self, text: &str) -> bool {
        let retrying = self.retrying.as_ref().is_some_and(|retrying| text.contains(retrying));
        !retrying && self.errors.iter().any(|error| text.contains(error))
    }
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConformanceCase {
    pub name: String,
    /// Whether the case is also played in other terminal sizes.
    #[serde(default)]
    sizes: bool,
    #[serde(default = "usual_size")]
    pub size: (u16, u16),
    /// Number of times the agent repeats a failed request.
    pub retries: Option<u32>,
    /// The number of tool calls before the first that needs a permission.
    #[serde(default)]
    pub free_tools: usize,
    #[serde(default)]
    arguments: Vec<String>,
    /// Gives the agent a tool server, which creates the file `tools_known` when the agent has read its tools.
    #[serde(default)]
    tool_server: bool,
    /// Gives the agent a Stop hook of the user.
    stop_hook: Option<StopHook>,
    #[serde(rename = "do")]
    pub actions: Vec<UserAction>,
    #[serde(default, rename = "turn")]
    turns: Vec<ScriptTurn>,
}

fn usual_size() -> (u16, u16) {
    (120, 40)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CaseFile {
    agent: Option<ConformanceAgent>,
    scenario: Vec<ConformanceCase>,
}

impl ConformanceCase {
    pub fn scenario(&self) -> Scenario {
        Scenario::of(self.turns.clone())
    }

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

/// Returns the cases of an agent. A case in the agent's file replaces the common one with the same name.
pub fn cases(maker: Maker) -> Vec<ConformanceCase> {
    let mut cases = read(file(maker)).scenario;
    let mut all = read(include_str!("../conformance/common.toml")).scenario;
    all.retain(|case| !cases.iter().any(|own| own.name == case.name));
    all.append(&mut cases);
    let sized: Vec<ConformanceCase> = all.iter().filter(|case| case.sizes).cloned().collect();
    for (name, size) in [("narrow", (60, 20)), ("small", (80, 24)), ("wide", (160, 48))] {
        all.extend(sized.iter().map(|case| ConformanceCase {
            name: format!("{name}_{}", case.name.trim_end_matches("_running")),
            size,
            ..case.clone()
        }));
    }
    all
}

fn file(maker: Maker) -> &'static str {
    match maker {
        Maker::Claude => include_str!("../conformance/claude_code.toml"),
        Maker::Codex => include_str!("../conformance/codex.toml"),
        Maker::Opencode => include_str!("../conformance/opencode.toml"),
        Maker::Qwen => include_str!("../conformance/qwen.toml"),
    }
}

/// The files are part of the program, and a test reads them all.
fn read(text: &str) -> CaseFile {
    toml::from_str(text).unwrap_or_else(|error| panic!("{error}"))
}

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
    std::fs::write(&path, include_str!("../conformance/tool_server.py"))?;
    let server = [path.display().to_string(), home.directory.join("tools_known").display().to_string()];
    Ok(match maker {
        Maker::Codex => ["-c".into(), format!("mcp_servers.scripted={{command=\"python3\",args={server:?}}}")],
        _ => {
            let config = json!({ "mcpServers": { "scripted": { "command": "python3", "args": server } } });
            ["--mcp-config".into(), config.to_string()]
        }
    })
}

/// The number of rounds in one terminal, and of the turns in each. Each terminal has another size.
const ROUNDS: usize = 10;
const TURNS: usize = 5;
const SIZES: [(u16, u16); 3] = [(120, 40), (80, 24), (160, 48)];

/// Returns cases with at least this many turns altogether.
pub fn soak(turns: usize) -> Vec<ConformanceCase> {
    (0..turns.div_ceil(ROUNDS * TURNS)).map(conversation).collect()
}

fn conversation(terminal: usize) -> ConformanceCase {
    let round =
        |n: usize| read(&include_str!("../conformance/soak.toml").replace("{n}", &n.to_string())).scenario.remove(0);
    let mut all = round(0);
    for n in 1..ROUNDS {
        let (first, next) = (all.turns.len(), round(n));
        all.turns.extend(next.turns);
        all.actions.extend(next.actions.into_iter().map(|action| match action {
            UserAction::TurnOver(turn) => UserAction::TurnOver(first + turn),
            other => other,
        }));
    }
    ConformanceCase { name: format!("soak_{}", terminal + 1), size: SIZES[terminal % SIZES.len()], ..all }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::scenario::ScenarioPlayer;

    #[test]
    fn every_case_can_be_played() {
        for maker in Maker::ALL {
            let cases = cases(maker);
            let agent = ConformanceAgent::of(maker);
            let names: BTreeSet<&str> = cases.iter().map(|case| case.name.as_str()).collect();
            assert_eq!(names.len(), cases.len(), "{maker:?}: names are unique");
            assert!(["answer", "narrow_deny", "wide_tool", "api_401"].iter().all(|name| names.contains(name)));
            for case in cases.iter().chain(&soak(120)) {
                case.scenario().check_for(ScenarioPlayer::Model).unwrap();
                for action in &case.actions {
                    if let UserAction::Dialog(topic) = action {
                        assert!(agent.dialogs.contains_key(topic), "{maker:?} {}: {topic:?}", case.name);
                    }
                    if let UserAction::TurnOver(turn) = action {
                        assert!(*turn < case.turns.len(), "{maker:?} {}: turn {turn}", case.name);
                    }
                }
            }
        }
    }
}

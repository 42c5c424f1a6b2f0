//! Builds the command of an agent: program, flags and environment. Pure: the result is a command and variables, which
//! the caller runs. No shell is involved, so nothing is quoted.

use std::collections::BTreeMap;

use posse_core::placeholders::fill;
use posse_core::words;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::version::Version;

words! {
    /// What an agent may do without asking.
    #[derive(Default, PartialOrd, Ord, Hash, utoipa::ToSchema)]
    pub enum Mode ("launch mode") {
        /// It asks before it changes anything.
        #[default]
        Ask = "ask",
        /// Edits inside the directory are free; commands ask.
        Edits = "edits",
        /// It never asks.
        Bypass = "bypass",
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Additions {
    pub arguments: Vec<String>,
    pub environment: BTreeMap<String, String>,
}

/// The launch settings, as written. Arguments and values may contain `{model}`, `{profile}` (its text),
/// `{profile_quoted}`, `{profile_name}`, `{mcp}` and `{hooks}` (JSON), `{hook_command}`, `{hook_files}`, `{directory}`
/// and `{directory_quoted}`, and `{events}`: the file that `signals.events` reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Launch {
    pub program: String,
    pub install: String,
    #[serde(default)]
    pub always: Additions,
    #[serde(default)]
    pub since: Vec<Since>,
    #[serde(default)]
    pub unset: Vec<String>,
    pub modes: BTreeMap<Mode, Additions>,
    pub model: Option<Additions>,
    pub profile: Option<Additions>,
    #[serde(default)]
    pub profile_needed: bool,
    pub mcp: Option<Additions>,
    /// Additions if the operator has confirmed that the directory is trusted.
    pub trusted: Option<Additions>,
    pub hooks: Option<Hooks>,
}

/// Additions from this version on. An unknown version counts as the newest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Since {
    pub version: Version,
    pub add: Additions,
}

/// The tool's own hooks, configured per run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Hooks {
    /// The events at which `{hooks}` runs posse's command.
    pub events: Vec<String>,
    pub arguments: Vec<String>,
    /// Variables that configure the hooks. If the user has set one, it is left alone and there are no hooks.
    pub environment: BTreeMap<String, String>,
    /// Files that the agent reads or runs, by name. They are in `{hook_files}`.
    pub files: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Default)]
pub struct LaunchRequest<'a> {
    pub mode: Mode,
    pub version: Option<&'a Version>,
    pub model: Option<&'a str>,
    pub profile: Option<(&'a str, &'a str)>,
    pub mcp: Option<&'a str>,
    pub directory: &'a str,
    pub trusted: bool,
    /// The command that reports the tool's hooks to posse.
    pub hook_command: Option<&'a str>,
    /// The directory of the hook files. An agent that needs hook files gets no hooks without it.
    pub hook_files: Option<&'a str>,
    /// The file in which the agent may record its events.
    pub events: Option<&'a str>,
    pub more: &'a [String],
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LaunchPlan {
    pub command: Vec<String>,
    pub environment: BTreeMap<String, String>,
    pub unless_set: BTreeMap<String, String>,
    pub unset: Vec<String>,
}

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum LaunchError {
    #[error("{0} cannot be started in mode {1}")]
    Mode(String, Mode),
    #[error("{0} takes no model")]
    Model(String),
    #[error("{0} needs a profile")]
    ProfileNeeded(String),
    #[error("{0} takes no MCP servers")]
    Mcp(String),
    #[error("nothing is known about how {0} is started")]
    NotStartable(String),
}

impl Launch {
    /// Returns whether a profile is only a name for this agent: the text is the tool's own.
    pub fn knows_profiles(&self) -> bool {
        let texts = self.profile.iter().flat_map(|profile| &profile.arguments);
        self.profile.is_some()
            && !texts.clone().any(|text| text.contains("{profile}") || text.contains("{profile_quoted}"))
    }

    /// Builds the command for a request. `name` is the agent's name in errors.
    pub fn plan(&self, name: &str, wish: &LaunchRequest<'_>) -> Result<LaunchPlan, LaunchError> {
        let mode = self.modes.get(&wish.mode).ok_or_else(|| LaunchError::Mode(name.into(), wish.mode))?;
        if self.profile_needed && wish.profile.is_none() {
            return Err(LaunchError::ProfileNeeded(name.into()));
        }
        let newer = |since: &&Since| wish.version.is_none_or(|version| *version >= since.version);
        let mut additions = vec![&self.always];
        additions.extend(self.since.iter().filter(newer).map(|since| &since.add));
        additions.push(mode);
        if wish.trusted {
            additions.extend(&self.trusted);
        }
        if wish.model.is_some() {
            additions.push(self.model.as_ref().ok_or_else(|| LaunchError::Model(name.into()))?);
        }
        if wish.profile.is_some_and(|(_, text)| self.profile_needed || !text.trim().is_empty()) {
            additions.extend(&self.profile);
        }
        if wish.mcp.is_some() {
            additions.push(self.mcp.as_ref().ok_or_else(|| LaunchError::Mcp(name.into()))?);
        }
        let fill = |text: &str| fill(text, |name| value(name, wish, self.hooks.as_ref()));
        let mut command = vec![self.program.clone()];
        let mut environment = BTreeMap::new();
        for addition in additions {
            command.extend(addition.arguments.iter().map(|argument| fill(argument)));
            environment.extend(addition.environment.iter().map(|(name, value)| (name.clone(), fill(value))));
        }
        let has_files = |hooks: &&Hooks| hooks.files.is_empty() || wish.hook_files.is_some();
        let hooks = self.hooks.as_ref().filter(|_| wish.hook_command.is_some()).filter(has_files);
        let mut unless_set = BTreeMap::new();
        if let Some(hooks) = hooks {
            command.extend(hooks.arguments.iter().map(|argument| fill(argument)));
            for (name, value) in &hooks.environment {
                // posse's own variables are not the user's, and may come from an outer posse.
                let ours = name.starts_with("POSSE_");
                let to = if ours { &mut environment } else { &mut unless_set };
                to.insert(name.clone(), fill(value));
            }
        }
        command.extend_from_slice(wish.more);
        Ok(LaunchPlan { command, environment, unless_set, unset: self.unset.clone() })
    }
}

fn value(name: &str, wish: &LaunchRequest<'_>, hooks: Option<&Hooks>) -> Option<String> {
    let (profile_name, profile) = wish.profile.unwrap_or_default();
    Some(match name {
        "model" => wish.model.unwrap_or_default().to_owned(),
        "profile" => profile.to_owned(),
        "profile_quoted" => quoted(profile),
        "profile_name" => profile_name.to_owned(),
        "mcp" => wish.mcp.unwrap_or_default().to_owned(),
        "directory_quoted" => quoted(wish.directory),
        "directory" => wish.directory.to_owned(),
        "hooks" => {
            let hooks = hooks.zip(wish.hook_command);
            hooks.map(|(hooks, command)| hook_settings(&hooks.events, command)).unwrap_or_default()
        }
        "hook_command" => wish.hook_command.unwrap_or_default().to_owned(),
        "hook_files" => wish.hook_files.unwrap_or_default().to_owned(),
        "events" => wish.events.unwrap_or_default().to_owned(),
        _ => return None,
    })
}

/// Quotes a string as in TOML and JSON. TOML allows no raw DEL.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}

/// Returns settings that make the tool run posse's command at each of these events.
fn hook_settings(events: &[String], command: &str) -> String {
    let hook = json!([{ "hooks": [{ "type": "command", "command": command, "timeout": 5 }] }]);
    let hooks: Map<String, Value> = events.iter().map(|event| (event.clone(), hook.clone())).collect();
    json!({ "hooks": hooks }).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launch() -> Launch {
        let text = r#"
            program = "agent"
            install = "npm install agent"
            always = { arguments = ["--quiet"], environment = { TERM_PROGRAM = "x" } }
            unset = ["NESTED"]
            model = { arguments = ["--model", "{model}"] }
            profile = { arguments = ["--system", "{profile}"] }
            trusted = { arguments = ["-c", "trust={directory_quoted}"] }
            mcp = { arguments = ["--mcp", "{mcp}"] }
            hooks = { events = ["Stop"], arguments = ["--settings", "{hooks}"] }
            [modes]
            ask = {}
            bypass = { arguments = ["--yolo"], environment = { LOUD = "1" } }
        "#;
        toml::from_str(text).unwrap()
    }

    #[test]
    fn a_command_has_what_was_asked_for_and_nothing_else() {
        let command = |wish: LaunchRequest<'_>| launch().plan("Agent", &wish).map(|planned| planned.command.join(" "));
        assert_eq!(command(LaunchRequest::default()).unwrap(), "agent --quiet");
        let bypass = LaunchRequest { mode: Mode::Bypass, model: Some("big"), ..LaunchRequest::default() };
        assert_eq!(command(bypass).unwrap(), "agent --quiet --yolo --model big");
        let edits = LaunchRequest { mode: Mode::Edits, ..LaunchRequest::default() };
        assert_eq!(command(edits), Err(LaunchError::Mode("Agent".into(), Mode::Edits)));
        let trusted = LaunchRequest { trusted: true, directory: r#"/a "b"\c"#, ..LaunchRequest::default() };
        assert_eq!(command(trusted).unwrap(), r#"agent --quiet -c trust="/a \"b\"\\c""#);
        let hooked = LaunchRequest { hook_command: Some("posse hook"), ..LaunchRequest::default() };
        let settings = r#"{"hooks":{"Stop":[{"hooks":[{"command":"posse hook","timeout":5,"type":"command"}]}]}}"#;
        assert_eq!(command(hooked).unwrap(), format!("agent --quiet --settings {settings}"));
    }

    #[test]
    fn hooks_that_are_files_need_them() {
        let hooks = Hooks {
            events: Vec::new(),
            arguments: vec!["--plugin".into()],
            environment: [("TOOL_CONFIG", "{hook_files}/tool.json"), ("POSSE_HOOK", "{hook_command}")]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into(),
            files: [("tool.json".to_owned(), "{}".to_owned())].into(),
        };
        let launch = Launch { hooks: Some(hooks), ..launch() };
        let wish = LaunchRequest {
            hook_command: Some("'/p/posse' hook"),
            hook_files: Some("/h/agent"),
            ..LaunchRequest::default()
        };
        let planned = launch.plan("Agent", &wish).unwrap();
        assert_eq!(planned.command.join(" "), "agent --quiet --plugin");
        assert_eq!(planned.environment["POSSE_HOOK"], "'/p/posse' hook");
        assert_eq!(planned.unless_set, [("TOOL_CONFIG".to_owned(), "/h/agent/tool.json".to_owned())].into());
        for without in
            [LaunchRequest { hook_files: None, ..wish.clone() }, LaunchRequest { hook_command: None, ..wish }]
        {
            let planned = launch.plan("Agent", &without).unwrap();
            assert_eq!(planned.command.join(" "), "agent --quiet");
            assert!(planned.unless_set.is_empty() && !planned.environment.contains_key("POSSE_HOOK"));
        }
    }

    #[test]
    fn older_versions_do_not_get_what_they_do_not_know() {
        let add = Additions { arguments: vec!["--no-daemon".into()], ..Additions::default() };
        let launch = Launch { since: vec![Since { version: "0.156".parse().unwrap(), add }], ..launch() };
        for (version, command) in [
            (Some("0.145.0"), "agent --quiet"),
            (Some("0.156.0"), "agent --quiet --no-daemon"),
            (None, "agent --quiet --no-daemon"),
        ] {
            let version = version.map(|version| version.parse().unwrap());
            let wish = LaunchRequest { version: version.as_ref(), ..LaunchRequest::default() };
            assert_eq!(launch.plan("Agent", &wish).unwrap().command.join(" "), command, "{version:?}");
        }
    }

    #[test]
    fn it_is_told_where_to_write_what_it_does() {
        let add = Additions { arguments: vec!["--json-file".into(), "{events}".into()], ..Additions::default() };
        let launch = Launch { since: vec![Since { version: "0.15".parse().unwrap(), add }], ..launch() };
        let wish = LaunchRequest { events: Some("/state/events/0000000a"), ..LaunchRequest::default() };
        let command = launch.plan("Agent", &wish).unwrap().command.join(" ");
        assert_eq!(command, "agent --quiet --json-file /state/events/0000000a");
    }

    #[test]
    fn what_is_filled_in_is_not_looked_at_again() {
        let wish = LaunchRequest {
            profile: Some(("p", "be {model} and {unknown}")),
            model: Some("m"),
            ..LaunchRequest::default()
        };
        let command = launch().plan("Agent", &wish).unwrap().command;
        assert_eq!(command[2..], ["--model", "m", "--system", "be {model} and {unknown}"]);
    }
}

//! Homes for real agents: the files and variables with which an agent starts unattended, asks nothing on its own, and
//! talks to a scripted model. Measured on the versions that the manifests name. This module starts no process.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::json;
use tempfile::TempDir;

use crate::model::ModelServer;

/// An agent that can have a scripted home.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Maker {
    Claude,
    Codex,
    Opencode,
    Qwen,
}

/// The launch options of an agent. By default it asks nothing until the model uses a tool.
#[derive(Clone, Debug)]
pub struct HomeOptions {
    /// If not set, the agent asks for trust in its directory.
    pub trusted: bool,
    /// Number of times a failed request is repeated; `None` keeps the agent's default.
    pub retries: Option<u32>,
}

impl Default for HomeOptions {
    fn default() -> Self {
        Self { trusted: true, retries: None }
    }
}

impl Maker {
    pub const ALL: [Maker; 4] = [Maker::Claude, Maker::Codex, Maker::Opencode, Maker::Qwen];

    /// The provider id in posse.
    pub fn provider(self) -> &'static str {
        match self {
            Maker::Claude => "claude_code",
            Maker::Codex => "codex",
            Maker::Opencode => "opencode",
            Maker::Qwen => "qwen",
        }
    }

    pub fn of_provider(provider: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|maker| maker.provider() == provider)
    }

    /// Creates a home in which this version of the program talks to the server.
    pub fn home(
        self,
        program: &Path,
        version: &str,
        server: &ModelServer,
        options: &HomeOptions,
    ) -> io::Result<ScriptedHome> {
        let mut home = ScriptedHome::new(program)?;
        let arguments = self.move_in(&mut home, version, server, options)?;
        home.command.extend(arguments);
        Ok(home)
    }

    /// Adds an agent to a home. Returns the arguments it needs.
    pub fn move_in(
        self,
        home: &mut ScriptedHome,
        version: &str,
        server: &ModelServer,
        options: &HomeOptions,
    ) -> io::Result<Vec<String>> {
        match self {
            Maker::Claude => claude(home, server, options),
            Maker::Codex => codex(home, version, server, options),
            Maker::Opencode => opencode(home, server),
            Maker::Qwen => qwen(home, server, options),
        }
    }
}

/// The variable in the environment of every process of a home; its value is the home's root.
pub const MARK: &str = "POSSE_AGENT_HOME";

/// A temporary home for an agent, in which the agent starts unattended and fetches nothing. Dropping the value deletes
/// the files, so processes in the home must have ended before.
pub struct ScriptedHome {
    pub command: Vec<String>,
    /// Variables in addition to a usual environment.
    pub env: BTreeMap<String, String>,
    pub directory: PathBuf,
    root: TempDir,
}

impl ScriptedHome {
    fn new(program: &Path) -> io::Result<Self> {
        let root = tempfile::Builder::new().prefix("posse-agent-").tempdir()?;
        for name in ["home", "project", "tmp"] {
            std::fs::create_dir(root.path().join(name))?;
        }
        // Agents identify their project by its real path.
        let directory = root.path().join("project").canonicalize()?;
        make_repository(&directory)?;
        let mut home = Self { command: vec![program.display().to_string()], env: BTreeMap::new(), directory, root };
        home.set("HOME", &home.home().display().to_string());
        // Temporary files are deleted with the home. Codex also refuses a home inside the temporary directory.
        home.set("TMPDIR", &home.root.path().join("tmp").display().to_string());
        home.set("TERM", "xterm-256color");
        home.set(MARK, &home.root.path().display().to_string());
        Ok(home)
    }

    pub fn home(&self) -> PathBuf {
        self.root.path().join("home")
    }

    /// The directory that contains everything.
    pub fn root(&self) -> &Path {
        self.root.path()
    }

    fn set(&mut self, name: &str, value: &str) {
        self.env.insert(name.to_owned(), value.to_owned());
    }

    fn write(&self, path: &str, content: &str) -> io::Result<()> {
        let path = self.home().join(path);
        path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
        std::fs::write(path, content)
    }
}

/// Creates the minimum that git accepts as a repository. Codex does not ask for trust in an empty directory.
fn make_repository(directory: &Path) -> io::Result<()> {
    for name in ["objects", "refs"] {
        std::fs::create_dir_all(directory.join(".git").join(name))?;
    }
    std::fs::write(directory.join(".git/HEAD"), "ref: refs/heads/main\n")?;
    std::fs::write(directory.join("README.md"), "A project for tests.\n")
}

const KEY: &str = "sk-ant-dummy-0123456789-0123456789";

/// Measured on 2.1.197 and 2.1.325.
fn claude(home: &mut ScriptedHome, server: &ModelServer, options: &HomeOptions) -> io::Result<Vec<String>> {
    home.set("ANTHROPIC_BASE_URL", &server.url());
    home.set("ANTHROPIC_API_KEY", KEY);
    for switch in ["DISABLE_AUTOUPDATER", "DISABLE_TELEMETRY", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"] {
        home.set(switch, "1");
    }
    // Claude Code also has its own variable for temporary files.
    let temporary = home.env.get("TMPDIR").cloned().unwrap_or_default();
    home.set("CLAUDE_CODE_TMPDIR", &temporary);
    if let Some(retries) = options.retries {
        home.set("CLAUDE_CODE_MAX_RETRIES", &retries.to_string());
    }
    // Claude Code remembers keys by their last twenty characters.
    let remembered = &KEY[KEY.len() - 20..];
    let project = json!({ "hasTrustDialogAccepted": options.trusted, "hasCompletedProjectOnboarding": true });
    let state = json!({
        "hasCompletedOnboarding": true, "theme": "dark",
        "customApiKeyResponses": { "approved": [remembered], "rejected": [] },
        "projects": { home.directory.to_str().unwrap_or_default(): project },
    });
    home.write(".claude.json", &state.to_string())?;
    home.write(".claude/settings.json", "{}")?;
    Ok(vec!["--permission-mode".into(), "default".into()])
}

/// Measured on 0.130.0 to 0.166.0.
fn codex(
    home: &mut ScriptedHome,
    version: &str,
    server: &ModelServer,
    options: &HomeOptions,
) -> io::Result<Vec<String>> {
    // Codex warns about models that the version does not know.
    let old = minor(version).is_some_and(|minor| minor < 156);
    let model = if old { "gpt-5.5" } else { "gpt-6-sol" };
    let retries = options.retries.map(|count| format!("request_max_retries = {count}\nstream_max_retries = {count}\n"));
    let directory = home.directory.display();
    let trust = if options.trusted {
        format!("[projects.\"{directory}\"]\ntrust_level = \"trusted\"\n")
    } else {
        String::new()
    };
    let config = format!(
        r#"model = "{model}"
model_provider = "scripted"
check_for_update_on_startup = false

[analytics]
enabled = false

[model_providers.scripted]
name = "Scripted"
base_url = "{url}"
wire_api = "responses"
env_key = "SCRIPTED_API_KEY"
{retries}
{trust}"#,
        url = server.openai_url(),
        retries = retries.unwrap_or_default(),
    );
    home.write(".codex/config.toml", &config)?;
    let place = home.home().join(".codex").display().to_string();
    home.set("CODEX_HOME", &place);
    home.set("SCRIPTED_API_KEY", "dummy");
    // The daemon of Codex would outlive the terminal.
    let no_daemon = if old { None } else { Some("--no-daemon") };
    let mode = ["--ask-for-approval", "on-request", "--sandbox", "workspace-write"];
    Ok(no_daemon.into_iter().chain(mode).map(str::to_owned).collect())
}

fn minor(version: &str) -> Option<u32> {
    version.split('.').nth(1)?.parse().ok()
}

fn opencode(home: &mut ScriptedHome, server: &ModelServer) -> io::Result<Vec<String>> {
    let config = json!({
        "$schema": "https://opencode.ai/config.json",
        "model": "scripted/model", "small_model": "scripted/model",
        "autoupdate": false, "share": "disabled",
        "permission": { "edit": "ask", "bash": "ask" },
        "provider": { "scripted": {
            "npm": "@ai-sdk/openai-compatible", "name": "Scripted",
            "options": { "baseURL": server.openai_url(), "apiKey": "dummy" },
            "models": { "model": { "name": "Scripted" } },
        } },
    });
    home.write(".config/opencode/opencode.json", &config.to_string())?;
    for switch in ["OPENCODE_DISABLE_AUTOUPDATE", "OPENCODE_DISABLE_LSP_DOWNLOAD", "OPENCODE_DISABLE_MODELS_FETCH"] {
        home.set(switch, "1");
    }
    Ok(Vec::new())
}

fn qwen(home: &mut ScriptedHome, server: &ModelServer, options: &HomeOptions) -> io::Result<Vec<String>> {
    let mut settings = json!({
        "security": { "auth": { "selectedType": "openai" }, "folderTrust": { "enabled": !options.trusted } },
        "general": { "disableAutoUpdate": true, "disableUpdateNag": true, "enableAutoUpdate": false },
        "privacy": { "usageStatisticsEnabled": false }, "telemetry": { "enabled": false },
    });
    if options.retries.is_some() {
        // Qwen Code always tries seven times, for more than a minute; the setting adds attempts.
        settings["model"] = json!({ "generationConfig": { "maxRetries": 0 } });
    }
    home.write(".qwen/settings.json", &settings.to_string())?;
    home.set("OPENAI_API_KEY", "dummy");
    home.set("OPENAI_BASE_URL", &server.openai_url());
    home.set("OPENAI_MODEL", "scripted");
    Ok(vec!["--approval-mode".into(), "default".into()])
}

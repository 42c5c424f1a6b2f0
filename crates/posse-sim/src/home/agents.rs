//! What each agent needs in its home. opencode and Qwen Code use chat completions.

use std::io;

use serde_json::json;

use super::{HomeOptions, ScriptedHome};
use crate::model::ModelServer;

const KEY: &str = "sk-ant-dummy-0123456789-0123456789";

/// Measured on 2.1.197 and 2.1.325.
pub(super) fn claude(home: &mut ScriptedHome, server: &ModelServer, options: &HomeOptions) -> io::Result<Vec<String>> {
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
pub(super) fn codex(
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

pub(super) fn opencode(home: &mut ScriptedHome, server: &ModelServer) -> io::Result<Vec<String>> {
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

pub(super) fn qwen(home: &mut ScriptedHome, server: &ModelServer, options: &HomeOptions) -> io::Result<Vec<String>> {
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

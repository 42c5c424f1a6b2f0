//! The homes of opencode and Qwen Code. Both use chat completions.

use std::io;

use serde_json::json;

use super::{HomeOptions, ScriptedHome};
use crate::model::ModelServer;

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

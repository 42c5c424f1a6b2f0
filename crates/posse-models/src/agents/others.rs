//! opencode and Qwen Code, lightly: both speak chat completions.

use std::io;

use serde_json::json;

use super::{Home, Options, Permissions};
use crate::ModelServer;

pub(super) fn opencode(home: &mut Home, server: &ModelServer, options: &Options) -> io::Result<()> {
    let asks = if options.permissions == Permissions::Bypass { "allow" } else { "ask" };
    let config = json!({
        "$schema": "https://opencode.ai/config.json",
        "model": "scripted/model", "small_model": "scripted/model",
        "autoupdate": false, "share": "disabled",
        "permission": { "edit": asks, "bash": asks },
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
    Ok(())
}

pub(super) fn qwen(home: &mut Home, server: &ModelServer, options: &Options) -> io::Result<()> {
    let mut settings = json!({
        "security": { "auth": { "selectedType": "openai" }, "folderTrust": { "enabled": !options.trusted } },
        "general": { "disableAutoUpdate": true, "disableUpdateNag": true, "enableAutoUpdate": false },
        "privacy": { "usageStatisticsEnabled": false }, "telemetry": { "enabled": false },
    });
    if options.retries.is_some() {
        // It tries seven times whatever is set, and waits for more than a minute in all; what is set is tried on top of that.
        settings["model"] = json!({ "generationConfig": { "maxRetries": 0 } });
    }
    home.write(".qwen/settings.json", &settings.to_string())?;
    home.set("OPENAI_API_KEY", "dummy");
    home.set("OPENAI_BASE_URL", &server.openai_url());
    home.set("OPENAI_MODEL", "scripted");
    let mode = match options.permissions {
        Permissions::Ask => "default",
        Permissions::AcceptEdits | Permissions::Auto => "auto-edit",
        Permissions::Plan => "plan",
        Permissions::Bypass => "yolo",
    };
    home.add(["--approval-mode", mode]);
    Ok(())
}

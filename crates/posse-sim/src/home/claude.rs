//! The home of Claude Code, measured on 2.1.197 and 2.1.325.

use std::io;

use serde_json::json;

use super::{HomeOptions, ScriptedHome};
use crate::model::ModelServer;

const KEY: &str = "sk-ant-dummy-0123456789-0123456789";

pub(super) fn move_in(home: &mut ScriptedHome, server: &ModelServer, options: &HomeOptions) -> io::Result<Vec<String>> {
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

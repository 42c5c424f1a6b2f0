//! Codex: what it must find so that it starts without a person, measured on 0.130.0 to 0.166.0.

use std::io;

use super::{Home, Options, Permissions};
use crate::ModelServer;

pub(super) fn settle(home: &mut Home, version: &str, server: &ModelServer, options: &Options) -> io::Result<()> {
    // A model that this version knows by itself: about others it warns.
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
    if !old {
        // Its daemon would outlive the terminal.
        home.add(["--no-daemon"]);
    }
    match options.permissions {
        Permissions::Ask => home.add(["--ask-for-approval", "on-request", "--sandbox", "workspace-write"]),
        Permissions::Bypass => home.add(["--dangerously-bypass-approvals-and-sandbox"]),
        // Its own default: edits of the project need no question.
        Permissions::AcceptEdits | Permissions::Auto | Permissions::Plan => {}
    }
    Ok(())
}

/// The second number of a version.
fn minor(version: &str) -> Option<u32> {
    version.split('.').nth(1)?.parse().ok()
}

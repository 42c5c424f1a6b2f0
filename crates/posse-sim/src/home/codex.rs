//! The home of Codex, measured on 0.130.0 to 0.166.0.

use std::io;

use super::{HomeOptions, ScriptedHome};
use crate::model::ModelServer;

pub(super) fn move_in(
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

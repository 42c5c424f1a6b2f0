//! The configuration of plans: the project's file, the user's own, and `posse plan config`, which shows what comes of them.

use std::path::Path;

use posse_agents::headless::{LEGACY_VARIABLE, Sandbox, Switches, VARIABLE, legacy_warning};
use posse_core::plan::config::{Config, DEFAULT_FILE, FILE, Origin, Resolved};
use posse_server::plan_config;
use posse_server::plans::entry::ConfigFile;
use serde_json::json;

use crate::client;
use crate::error::{Error, Exit};
use crate::ui::{Colour, Ui, plain};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Every key with its default and what it does, as `posse plan init` writes it
    #[arg(long)]
    default: bool,
}

/// What is configured here.
pub(crate) struct Loaded {
    pub(crate) resolved: Resolved,
    /// The project's file, if there is one.
    pub(crate) file: Option<ConfigFile>,
    /// Of the project's file, by its name.
    pub(crate) warnings: Vec<String>,
}

impl Loaded {
    pub(crate) fn config(&self) -> &Config {
        &self.resolved.config
    }

    /// Decides whether sessions are confined: `--no-sandbox`, else the environment, else the configuration.
    pub(crate) fn sandbox(&self, no_sandbox: bool, ui: &Ui) -> Result<Sandbox, Error> {
        let value = |name: &str| std::env::var(name).ok();
        let variable = value(VARIABLE);
        let legacy_variable = value(LEGACY_VARIABLE);
        if let Some(warning) = legacy_variable.as_deref().and_then(legacy_warning) {
            ui.warn(&format!("warning: {warning}"));
        }
        let switches = Switches {
            no_sandbox,
            variable: variable.as_deref(),
            legacy_variable: legacy_variable.as_deref(),
            config: Some(self.config().sandbox.enabled),
        };
        Sandbox::decide(&switches).map_err(|error| Error::Usage(error.to_string()))
    }
}

/// What holds for plans of this project.
pub(crate) fn load(project: &Path) -> Result<Loaded, Error> {
    // Everything else in the user's file is looked at here.
    crate::config::Config::load()?;
    let loaded = plan_config::load(&client::paths()?, project).map_err(|error| Error::Usage(error.to_string()))?;
    Ok(Loaded { resolved: loaded.resolved, file: loaded.file, warnings: loaded.warnings })
}

pub(super) fn run(args: &Args, ui: &Ui) -> Result<Exit, Error> {
    if args.default {
        ui.answer(&json!({ "file": FILE, "text": DEFAULT_FILE }), || DEFAULT_FILE.to_owned());
        return Ok(Exit::Ok);
    }
    let loaded = load(Path::new("."))?;
    let rows = loaded.resolved.rows();
    let origins: serde_json::Map<String, serde_json::Value> =
        rows.iter().map(|(path, _, origin)| ((*path).to_owned(), json!(origin))).collect();
    ui.answer(&json!({ "file": loaded.file, "config": loaded.config(), "origins": origins }), || {
        let wide = rows.iter().map(|(path, ..)| path.len()).max().unwrap_or(0);
        let mut text = String::new();
        for (path, value, origin) in &rows {
            let (word, colour) = match origin {
                Origin::Default => ("", Colour::Dim),
                Origin::User => ("  yours", Colour::Blue),
                Origin::Project => ("  the project's", Colour::Green),
                Origin::Both => ("  yours and the project's", Colour::Green),
            };
            let value = if value.is_empty() { "unset".to_owned() } else { plain(value) };
            text.push_str(&format!("{path:<wide$}  {value}{}\n", ui.paint(word, colour)));
        }
        text
    });
    match &loaded.file {
        Some(file) => ui.say(&format!("from {}", file.path)),
        None => ui.say(&format!("there is no {FILE}; `posse plan init` writes one")),
    }
    loaded.warnings.iter().for_each(|warning| ui.warn(&format!("warning: {warning}")));
    Ok(Exit::Ok)
}

//! The configuration of plans for commands, and `posse plan config`, which shows it.

use std::path::{Path, PathBuf};

use posse_agents::headless::Sandbox;
use posse_api::ConfigFile;
use posse_core::audit::Hash;
use posse_core::config::{ConfigLayer, project_template};
use posse_core::plan::config::{FILE, PlanConfig, ResolvedPlans};
use posse_term::config_files::{PlanLayers, ProjectFile};
use serde_json::json;

use crate::client;
use crate::config;
use crate::error::{Error, Exit};
use crate::ui::Ui;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Every key with its default and what it does, as `posse plan init` writes it
    #[arg(long)]
    default: bool,
}

/// The configuration of a project's plans.
pub(crate) struct Loaded {
    layers: PlanLayers,
    /// The configuration of both files, and of `--state`.
    pub(crate) resolved: ResolvedPlans,
    /// The project's file, if there is one.
    pub(crate) file: Option<ConfigFile>,
}

impl Loaded {
    pub(crate) fn config(&self) -> &PlanConfig {
        &self.resolved.config
    }

    pub(crate) fn warnings(&self) -> &[String] {
        &self.layers.project.warnings
    }

    /// Puts the directory of `--state` over the files.
    pub(crate) fn set_state(&mut self, directory: &str) -> Result<(), Error> {
        let flags = ConfigLayer::flags(&[("plans.state_dir", directory)])?;
        self.resolved = self.layers.resolve(&[flags]);
        Ok(())
    }

    /// The configuration with the environment and `--no-sandbox` above the files.
    fn effective(&self, no_sandbox: bool, ui: &Ui) -> Result<ResolvedPlans, Error> {
        let plans = |key: &posse_core::config::ConfigKey| key.plan_name().is_some();
        let environment = ConfigLayer::environment(&config::variable, None, plans)?;
        environment.warnings.iter().for_each(|warning| ui.warn(&format!("warning: {warning}")));
        let given: &[(&str, &str)] = if no_sandbox { &[("plans.sandbox.enabled", "false")] } else { &[] };
        Ok(self.layers.resolve(&[environment, ConfigLayer::flags(given)?]))
    }

    /// Decides whether sessions are confined.
    pub(crate) fn sandbox(&self, no_sandbox: bool, ui: &Ui) -> Result<Sandbox, Error> {
        let enabled = self.effective(no_sandbox, ui)?.config.sandbox.enabled;
        Ok(if enabled { Sandbox::On } else { Sandbox::Off })
    }
}

pub(crate) fn load(project: &Path) -> Result<Loaded, Error> {
    let layers = PlanLayers::load(&client::paths()?, project)?;
    let file = layers.file.as_ref().map(config_file).transpose()?;
    Ok(Loaded { resolved: layers.resolve(&[]), layers, file })
}

fn config_file(file: &ProjectFile) -> Result<ConfigFile, Error> {
    let path = client::absolute(&PathBuf::from(&file.name))?;
    Ok(ConfigFile { path, sha256: Hash::of_text(&file.text).to_string() })
}

pub(super) fn run(args: &Args, ui: &Ui) -> Result<Exit, Error> {
    if args.default {
        let text = project_template();
        ui.answer(&json!({ "file": FILE, "text": text }), || text.clone());
        return Ok(Exit::Ok);
    }
    let loaded = load(Path::new("."))?;
    let effective = loaded.effective(false, ui)?;
    let answer = json!({ "file": loaded.file, "config": effective.config, "settings": effective.settings });
    ui.answer(&answer, || config::table(&effective.settings, ui));
    match &loaded.file {
        Some(file) => ui.say(&format!("from {}", file.path)),
        None => ui.say(&format!("there is no {FILE}; `posse plan init` writes one")),
    }
    loaded.warnings().iter().for_each(|warning| ui.warn(&format!("warning: {warning}")));
    Ok(Exit::Ok)
}

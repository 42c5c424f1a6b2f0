//! The configuration of plans: the project's file, the user's own, and `posse plan config`, which shows what comes of them.

use std::path::Path;

use posse_agents::headless::{LEGACY_VARIABLE, Sandbox, Switches, VARIABLE, legacy_warning};
use posse_core::audit::Hash;
use posse_core::plan::config::{
    Config, DEFAULT_FILE, FILE, Format, LEGACY_FILE, Layer, Origin, Resolved, Whose, resolve,
};
use posse_core::plan::{PlanProblems, Warning};
use posse_server::plans::entry::ConfigFile;
use posse_term::text_file;
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

/// The project's file, as it is written: its name, and what is in it.
pub(super) struct ProjectFile {
    pub(super) name: String,
    pub(super) text: String,
    format: Format,
}

impl ProjectFile {
    /// Ours, else the one of the original orchestrator.
    pub(super) fn find(project: &Path) -> Result<Option<Self>, Error> {
        for (name, format) in [(FILE, Format::Toml), (LEGACY_FILE, Format::Yaml)] {
            let path = project.join(name);
            match text_file::read(&path) {
                Ok(text) => return Ok(Some(Self { name: path.display().to_string(), text, format })),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                // One that cannot be read is not one that says nothing.
                Err(error) => return Err(Error::Usage(format!("cannot read {}: {error}", path.display()))),
            }
        }
        Ok(None)
    }

    pub(super) fn read(&self) -> Result<(Layer, Vec<Warning>), PlanProblems> {
        Layer::read(&self.name, &self.text, self.format, Whose::Project)
    }
}

/// What holds for plans of this project. A mistake in a file is an error: a default that nobody chose must not be run with.
pub(crate) fn load(project: &Path) -> Result<Loaded, Error> {
    let wrong = |problems: PlanProblems| Error::Usage(problems.to_string());
    let found = ProjectFile::find(project)?;
    let (layer, warnings) = match &found {
        Some(file) => file.read().map_err(wrong)?,
        None => (Layer::default(), Vec::new()),
    };
    let told = |warning: &Warning| format!("{}:{warning}", found.as_ref().map_or("", |file| &file.name));
    let warnings = warnings.iter().map(told).collect();
    let file = match &found {
        Some(file) => Some(ConfigFile {
            path: client::absolute(Path::new(&file.name))?,
            sha256: Hash::of_text(&file.text).to_string(),
        }),
        None => None,
    };
    Ok(Loaded { resolved: resolve(&user()?, &layer), file, warnings })
}

/// What the user says about plans, in their own configuration.
fn user() -> Result<Layer, Error> {
    // Everything else in the file is looked at here.
    crate::config::Config::load()?;
    let path = client::places()?.config.join("config.toml");
    let text = match text_file::read(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Layer::default()),
        Err(error) => return Err(Error::Usage(format!("cannot read {}: {error}", path.display()))),
    };
    let read = Layer::read(&path.display().to_string(), &text, Format::Toml, Whose::User);
    read.map(|(layer, _)| layer).map_err(|problems| Error::Usage(problems.to_string()))
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

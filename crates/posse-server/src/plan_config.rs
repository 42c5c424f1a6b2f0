//! The configuration of plans: the project's file, and the user's own over which it is laid.

#![expect(clippy::disallowed_methods, reason = "the command line uses it too; the daemon calls it through `Disk`")]

use std::io;
use std::path::{Path, PathBuf};

use posse_core::audit::Hash;
use posse_core::file_problem::{FileProblem, FileProblems};
use posse_core::plan::config::{FILE, Format, LEGACY_FILE, Layer, Resolved, Whose, resolve};
use posse_term::paths::Paths;
use posse_term::text_file;

use crate::plans::entry::ConfigFile;

/// What is configured for the plans of a project.
#[derive(Debug)]
pub struct PlanConfig {
    pub resolved: Resolved,
    /// The project's file, if there is one.
    pub file: Option<ConfigFile>,
    /// Warnings about the project's file, with its name.
    pub warnings: Vec<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum PlanConfigError {
    #[error("cannot read {path}: {error}")]
    Io { path: PathBuf, error: io::Error },
    #[error("{0}")]
    Invalid(FileProblems),
    #[error("the path {0} is not valid UTF-8, which posse needs")]
    NotUtf8(PathBuf),
}

/// The project's file, as it is written.
#[derive(Debug)]
pub struct ProjectFile {
    pub name: String,
    pub text: String,
    format: Format,
}

impl ProjectFile {
    /// Finds posse's own file, else the one of the original orchestrator.
    pub fn find(project: &Path) -> Result<Option<Self>, PlanConfigError> {
        for (name, format) in [(FILE, Format::Toml), (LEGACY_FILE, Format::Yaml)] {
            let path = project.join(name);
            match text_file::read(&path) {
                Ok(text) => return Ok(Some(Self { name: path.display().to_string(), text, format })),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                // A file that cannot be read is not a file that says nothing.
                Err(error) => return Err(PlanConfigError::Io { path, error }),
            }
        }
        Ok(None)
    }

    pub fn read(&self) -> Result<(Layer, Vec<FileProblem>), FileProblems> {
        Layer::read(&self.name, &self.text, self.format, Whose::Project)
    }
}

/// Reads what holds for plans of this project. A mistake in a file is an error: no run goes by defaults that nobody chose.
pub fn load(paths: &Paths, project: &Path) -> Result<PlanConfig, PlanConfigError> {
    let found = ProjectFile::find(project)?;
    let (layer, warnings) = match &found {
        Some(file) => file.read().map_err(PlanConfigError::Invalid)?,
        None => (Layer::default(), Vec::new()),
    };
    let name = found.as_ref().map_or("", |file| &file.name);
    let warnings = warnings.iter().map(|warning| format!("{name}:{warning}")).collect();
    let file = found.as_ref().map(config_file).transpose()?;
    Ok(PlanConfig { resolved: resolve(&user(paths)?, &layer), file, warnings })
}

fn config_file(file: &ProjectFile) -> Result<ConfigFile, PlanConfigError> {
    let name = PathBuf::from(&file.name);
    let path = std::path::absolute(&name).map_err(|error| PlanConfigError::Io { path: name, error })?;
    let path = path.into_os_string().into_string().map_err(|path| PlanConfigError::NotUtf8(path.into()))?;
    Ok(ConfigFile { path, sha256: Hash::of_text(&file.text).to_string() })
}

/// What the user says about plans in config.toml.
fn user(paths: &Paths) -> Result<Layer, PlanConfigError> {
    let path = paths.config.join("config.toml");
    let text = match text_file::read(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Layer::default()),
        Err(error) => return Err(PlanConfigError::Io { path, error }),
    };
    let read = Layer::read(&path.display().to_string(), &text, Format::Toml, Whose::User);
    read.map(|(layer, _)| layer).map_err(PlanConfigError::Invalid)
}

//! Reads configuration files: the user's config.toml and the project's file.

use std::io;
use std::path::{Path, PathBuf};

use posse_core::config::{ConfigError, ConfigFormat, ConfigLayer, LayerSource};
use posse_core::file_problem::{FileProblem, FileProblems};
use posse_core::plan::config::{FILE, LEGACY_FILE, ResolvedPlans};

use crate::paths::Paths;
use crate::text_file;

#[derive(Debug, thiserror::Error)]
pub enum ConfigFileError {
    #[error("cannot read {path}: {error}")]
    Io { path: PathBuf, error: io::Error },
    #[error(transparent)]
    Config(#[from] ConfigError),
}

fn read(path: &Path) -> Result<Option<String>, ConfigFileError> {
    match text_file::read(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        // An unreadable file must not count as an empty one.
        Err(error) => Err(ConfigFileError::Io { path: path.to_owned(), error }),
    }
}

/// Reads the user's config.toml, or returns an empty layer. With `providers`, the names of agents are checked.
pub fn user(paths: &Paths, providers: Option<&[&str]>) -> Result<ConfigLayer, ConfigFileError> {
    let path = paths.config_file();
    let Some(text) = read(&path)? else { return Ok(ConfigLayer::empty(LayerSource::User)) };
    let name = path.display().to_string();
    let layer = ConfigLayer::read(LayerSource::User, ConfigFormat::Toml, &name, &text, providers);
    layer.map(|(layer, _)| layer).map_err(|problems| ConfigError::File { problems, text }.into())
}

#[derive(Debug)]
pub struct ProjectFile {
    pub name: String,
    pub text: String,
    format: ConfigFormat,
}

impl ProjectFile {
    /// Finds posse's own file, else the one of the original orchestrator.
    pub fn find(project: &Path) -> Result<Option<Self>, ConfigFileError> {
        for (name, format) in [(FILE, ConfigFormat::Toml), (LEGACY_FILE, ConfigFormat::Yaml)] {
            let path = project.join(name);
            if let Some(text) = read(&path)? {
                return Ok(Some(Self { name: path.display().to_string(), text, format }));
            }
        }
        Ok(None)
    }

    pub fn read(&self) -> Result<(ConfigLayer, Vec<FileProblem>), FileProblems> {
        ConfigLayer::read(LayerSource::Project, self.format, &self.name, &self.text, None)
    }
}

#[derive(Debug)]
pub struct PlanLayers {
    pub user: ConfigLayer,
    pub project: ConfigLayer,
    pub file: Option<ProjectFile>,
}

impl PlanLayers {
    /// Reads both files. A mistake in one of them is an error: no run may use defaults by accident.
    pub fn load(paths: &Paths, directory: &Path) -> Result<Self, ConfigFileError> {
        let file = ProjectFile::find(directory)?;
        let project = match &file {
            None => ConfigLayer::empty(LayerSource::Project),
            Some(file) => {
                let read = file.read().map_err(|problems| ConfigError::File { problems, text: file.text.clone() });
                read?.0
            }
        };
        Ok(Self { user: user(paths, None)?, project, file })
    }

    pub fn resolve(&self, above: &[ConfigLayer]) -> ResolvedPlans {
        ResolvedPlans::new(self.user.clone(), self.project.clone(), above)
    }
}

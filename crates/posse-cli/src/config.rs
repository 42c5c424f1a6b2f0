//! The user's config.toml for commands, and the table of settings.

use posse_core::config::{ConfigError, ConfigLayer, Setting, ValueOrigin, shown_value};
use posse_core::review_loop::config::{Notifications, ResolvedRun};
use posse_term::config_files::{self, ConfigFileError};

use crate::client;
use crate::error::Error;
use crate::ui::{Cell, Colour, Ui, plain};

/// The user's config.toml; an empty layer if there is none.
pub(crate) fn load() -> Result<ConfigLayer, Error> {
    Ok(config_files::user(&client::paths()?, None)?)
}

pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// The channels that the user and the environment have set.
pub(crate) fn notifications() -> Result<Notifications, Error> {
    let providers: Vec<&str> = posse_agents::manifest::BUILT_IN.iter().map(|(name, _)| *name).collect();
    let resolved = ResolvedRun::new(None, &variable, &load()?, &providers);
    resolved.map(|resolved| resolved.config.notifications).map_err(|error| Error::failed(error.to_string()))
}

/// Settings in rows: key, value, origin.
pub(crate) fn table(settings: &[Setting], ui: &Ui) -> String {
    let row = |setting: &Setting| {
        let colour = match setting.origin {
            ValueOrigin::Default => Colour::Dim,
            ValueOrigin::Variable(_) | ValueOrigin::Flag(_) => Colour::Yellow,
            ValueOrigin::User(_) => Colour::Blue,
            ValueOrigin::Project(_) | ValueOrigin::UserAndProject | ValueOrigin::RunFile(_) => Colour::Green,
        };
        let value = plain(&shown_value(&setting.value));
        vec![Cell::new(setting.key, None), Cell::new(value, None), Cell::new(setting.origin.to_string(), Some(colour))]
    };
    ui.table(&["KEY", "VALUE", "FROM"], settings.iter().map(row))
}

impl From<ConfigFileError> for Error {
    fn from(error: ConfigFileError) -> Self {
        match error {
            ConfigFileError::Io { .. } => Error::usage(error.to_string()),
            ConfigFileError::Config(error) => error.into(),
        }
    }
}

impl From<ConfigError> for Error {
    fn from(error: ConfigError) -> Self {
        Error::usage(error.report())
    }
}

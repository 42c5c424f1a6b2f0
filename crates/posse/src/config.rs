//! What the user has written down for good: `config.toml` in the configuration directory. A flag or a variable wins over
//! it. Never read from a project.

use posse_server::record::Backend;
use serde::Deserialize;

use crate::client;
use crate::error::Error;

#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Config {
    /// Where terminals live: `embedded` or `tmux`.
    pub(crate) backend: Option<Backend>,
    /// Which tmux server they live on: `private`, `default` or a name.
    pub(crate) tmux_server: Option<String>,
}

impl Config {
    /// What is written there; nothing, if there is no file.
    pub(crate) fn load() -> Result<Self, Error> {
        let path = client::places()?.config.join("config.toml");
        match std::fs::read_to_string(&path) {
            Ok(text) => Self::parse(&text).map_err(|error| Error::Usage(format!("{}: {error}", path.display()))),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(Error::Usage(format!("cannot read {}: {error}", path.display()))),
        }
    }

    fn parse(text: &str) -> Result<Self, toml::de::Error> {
        toml::from_str(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_key_is_an_error() {
        let config = Config::parse("backend = 'tmux'\ntmux_server = 'default'").unwrap();
        assert_eq!(config, Config { backend: Some(Backend::Tmux), tmux_server: Some("default".into()) });
        assert!(Config::parse("backned = 'tmux'").unwrap_err().to_string().contains("backned"));
        assert!(Config::parse("backend = 'screen'").is_err());
    }
}

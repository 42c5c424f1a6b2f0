//! What is written in a manifest, and how it is loaded.

use posse_core::detect::rules::Rules;
use posse_core::detect::{BadRules, Detector};
use serde::{Deserialize, Serialize};

use crate::launch::Launch;
use crate::start::Start;

/// One agent, as written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The word that stands for it in commands and in the API.
    pub id: String,
    /// What people call it.
    pub name: String,
    /// How it is started. Without this its screen can be read, and nothing more.
    pub launch: Option<Launch>,
    pub start: Option<Start>,
    /// What is said to it so that it leaves.
    pub exit: Option<String>,
    /// How its screen is read.
    pub screen: Rules,
}

#[derive(Debug, thiserror::Error)]
pub enum BadManifest {
    #[error("{0}")]
    Toml(#[from] Box<toml::de::Error>),
    #[error("{0}")]
    Rules(#[from] BadRules),
}

/// An agent, ready for use.
#[derive(Debug)]
pub struct Provider {
    pub manifest: Manifest,
    pub detector: Detector,
}

impl Provider {
    pub fn parse(text: &str) -> Result<Self, BadManifest> {
        Self::from_table(text.parse().map_err(Box::new)?)
    }

    pub fn from_table(table: toml::Table) -> Result<Self, BadManifest> {
        let manifest: Manifest = table.try_into().map_err(Box::new)?;
        let detector = Detector::new(manifest.screen.clone(), crate::classify::by_name)?;
        Ok(Self { manifest, detector })
    }
}

/// The manifests we ship.
pub const BUILT_IN: [(&str, &str); 1] = [("claude_code", include_str!("../manifests/claude_code.toml"))];

/// A provider we ship.
pub fn built_in(id: &str) -> Option<Result<Provider, BadManifest>> {
    BUILT_IN.iter().find(|(known, _)| *known == id).map(|(_, text)| Provider::parse(text))
}

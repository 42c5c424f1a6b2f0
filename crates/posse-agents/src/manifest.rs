//! The contents of a manifest, and its loading.

use std::sync::Arc;

use posse_core::delivery::{DialogKeys, Submit};
use posse_core::detect::rules::Rules;
use posse_core::detect::{BadRules, Detector};
use posse_core::signal::SignalRules;
use serde::Deserialize;

use crate::account::Account;
use crate::headless::HeadlessRules;
use crate::launch::Launch;
use crate::start::Start;
use crate::version::Version;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The agent's id in commands and in the API.
    pub id: String,
    pub name: String,
    /// The versions that the manifest was written for and is tested with. Other versions are started as well.
    #[serde(default)]
    pub versions: Vec<Version>,
    /// The launch settings. Without them only the agent's screen can be read.
    pub launch: Option<Launch>,
    pub start: Option<Start>,
    /// The evidence of an account. Without it the account state is unknown.
    pub account: Option<Account>,
    /// The rules for headless sessions. Without them the agent cannot execute plans.
    pub headless: Option<Arc<HeadlessRules>>,
    /// The input that makes the agent exit.
    pub exit: Option<String>,
    #[serde(default)]
    pub submit: Submit,
    #[serde(default)]
    pub answer: DialogKeys,
    #[serde(default)]
    pub signals: SignalRules,
    /// The file in which the agent records its events: `{pid}`, and `{NAME}` for a variable of its environment. Of
    /// several the first that can be filled in counts.
    #[serde(default)]
    pub session_file: Vec<String>,
    pub screen: Rules,
}

#[derive(Debug, thiserror::Error)]
pub enum BadManifest {
    #[error("{0}")]
    Toml(#[from] Box<toml::de::Error>),
    #[error("{0}")]
    Rules(#[from] BadRules),
}

#[derive(Debug)]
pub struct Provider {
    pub manifest: Manifest,
    pub detector: Arc<Detector>,
}

impl Manifest {
    pub fn unset_for_sessions(&self) -> Vec<String> {
        let launch = self.launch.iter().flat_map(|launch| &launch.unset);
        launch.chain(self.headless.iter().flat_map(|headless| &headless.unset)).cloned().collect()
    }
}

/// The placeholder for the terminal's profile name, in named patterns and in examples.
const PROFILE: &str = "{profile}";
const ANY_PROFILE: &str = r"[^\[\]]+";

impl Provider {
    /// Returns whether the agent records its events in a file of posse's, in a known format.
    pub fn writes_events(&self) -> bool {
        !self.manifest.signals.events.is_empty()
    }

    pub fn parse(text: &str) -> Result<Self, BadManifest> {
        Self::from_table(text.parse().map_err(Box::new)?)
    }

    pub fn from_table(table: toml::Table) -> Result<Self, BadManifest> {
        let manifest: Manifest = table.try_into().map_err(Box::new)?;
        let detector = Arc::new(detector(&manifest, None)?);
        Ok(Self { manifest, detector })
    }

    /// Returns the detector for one terminal. Some agents show the profile in their prompt; for all others it is the
    /// same for every terminal.
    pub fn for_profile(&self, profile: Option<&str>) -> Result<Arc<Detector>, BadManifest> {
        let shows_profile = self.manifest.screen.patterns.values().flatten().any(|pattern| pattern.contains(PROFILE));
        match profile.filter(|_| shows_profile) {
            Some(profile) => Ok(Arc::new(detector(&self.manifest, Some(profile))?)),
            None => Ok(Arc::clone(&self.detector)),
        }
    }
}

fn detector(manifest: &Manifest, profile: Option<&str>) -> Result<Detector, BadRules> {
    let pattern = profile.map_or_else(|| ANY_PROFILE.to_owned(), regex::escape);
    let mut rules = manifest.screen.clone();
    for named in rules.patterns.values_mut().flatten() {
        *named = named.replace(PROFILE, &pattern);
    }
    let examples = rules.rules.iter_mut().flat_map(|rule| rule.holds.iter_mut().chain(&mut rule.fails));
    for example in examples {
        *example = example.replace(PROFILE, profile.unwrap_or("any"));
    }
    Detector::new(rules, crate::classify::by_name)
}

pub const BUILT_IN: [(&str, &str); 6] = [
    ("claude_code", include_str!("../manifests/claude_code.toml")),
    ("codex", include_str!("../manifests/codex.toml")),
    ("opencode", include_str!("../manifests/opencode.toml")),
    ("qwen", include_str!("../manifests/qwen.toml")),
    ("q_cli", include_str!("../manifests/q_cli.toml")),
    ("kiro_cli", include_str!("../manifests/kiro_cli.toml")),
];

pub fn built_in(id: &str) -> Option<Result<Provider, BadManifest>> {
    BUILT_IN.iter().find(|(known, _)| *known == id).map(|(_, text)| Provider::parse(text))
}

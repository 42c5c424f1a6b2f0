//! What the journal of a pipeline is made of.

use std::collections::BTreeMap;

use posse_agents::headless::{Policy, Sandbox};
use posse_core::auto::words::{DeedId, Event};
use posse_core::auto::{Carried, Settings};
use posse_core::backlog::Slug;
use posse_core::ids::RunId;
use posse_core::plan::config::PlanConfig;
use posse_core::prompts::PromptTemplates;
use posse_core::rounds::config::Notifications;
use posse_core::time::Wall;
use posse_core::turn::Level;
use serde::{Deserialize, Serialize};

use crate::backlog::Shelves;
use crate::plans::entry::{ConfigFile, UNSPEAKABLE, without_secrets};

/// Everything a pipeline was begun with. It goes by this and not by what files say later: a session must not be able to
/// change how it is guarded.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Spec {
    pub id: RunId,
    /// The project. Absolute, without links.
    pub directory: String,
    pub shelves: Shelves,
    /// What the user and the project had configured.
    pub config: PlanConfig,
    /// The project's file of it, if there was one.
    pub config_file: Option<ConfigFile>,
    /// When the operator asked for it. A stop file from before that is not meant for this pipeline.
    pub asked: Wall,
    pub settings: Settings,
    /// What the pipelines before knew of this project.
    pub carried: Carried,
    /// Items that are to be tried again.
    #[serde(default)]
    pub retry: Vec<Slug>,
    /// Whose sessions they are: `claude_code`, `codex`.
    pub provider: String,
    /// The program. Absolute.
    pub program: String,
    pub sandbox: Sandbox,
    /// The branch that gathers the results; the one that is checked out unless given.
    pub branch: Option<String>,
    /// The branch that was checked out when it began: items are read there, and archived there.
    #[serde(default)]
    pub home: Option<String>,
    /// The project's own agents, as they were written then: name, text.
    pub agents: BTreeMap<String, String>,
    /// The user's prompt templates when the pipeline began.
    #[serde(default)]
    pub prompts: PromptTemplates,
    /// Files of the project that say how things are done there.
    pub conventions: Vec<String>,
    pub notifications: Notifications,
}

impl Spec {
    /// Commands that check the work of every task: name, command.
    pub(crate) fn gates(&self) -> Vec<(String, String)> {
        self.config.checks().into_iter().map(|gate| (gate.name, gate.command)).collect()
    }

    /// What sessions may do at most.
    pub(crate) fn policy(&self) -> Policy {
        Policy::configured(&self.config.sandbox)
    }
}

/// One entry.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "entry", rename_all = "snake_case")]
pub enum Entry {
    Created {
        spec: Box<Spec>,
    },
    /// What the machine was told. A pipeline is read back from these.
    Happened {
        event: Box<Event>,
    },
    /// A session was started, and what it may do.
    Launched {
        id: DeedId,
        agent: String,
        profile: String,
        model: Option<String>,
        /// Without the prompt.
        flags: Vec<String>,
    },
    /// For people.
    Said {
        level: Level,
        item: Option<Slug>,
        text: String,
    },
    /// Nothing follows.
    Closed,
}

impl Entry {
    /// Without what looks like a secret, before anybody writes it down or tells it. What people wrote themselves stays: an item
    /// is called what it is called.
    pub(super) fn masked(self) -> Self {
        let by_people = match &self {
            Self::Created { .. } => true,
            Self::Happened { event } => matches!(**event, Event::Scanned { .. } | Event::Retry { .. }),
            _ => false,
        };
        if by_people {
            return self;
        }
        without_secrets(self).unwrap_or_else(|error| {
            tracing::error!("an entry of a pipeline's journal cannot be masked: {error}");
            Self::Said { level: Level::Warning, item: None, text: UNSPEAKABLE.into() }
        })
    }
}

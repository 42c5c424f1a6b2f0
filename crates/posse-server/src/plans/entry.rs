//! What the journal of a plan's run is made of.

use std::collections::BTreeMap;

use posse_agents::headless::{Policy, Sandbox};
use posse_core::ids::RunId;
use posse_core::plan::config::PlanConfig;
use posse_core::plan::file::{Gate, Isolation};
use posse_core::plan::machine::{self, Event, Left};
use posse_core::plan::outcome::Denial;
use posse_core::plan::settings::Settings;
use posse_core::plan::{Plan, State, TaskId};
use posse_core::prompts::PromptTemplates;
use posse_core::rounds::config::Notifications;
use posse_core::secrets::mask_json;
use posse_core::time::Wall;
use posse_core::turn::Level;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Everything a run was begun with. It goes by this and not by what files say later: a session must not be able to change
/// how it is guarded.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Spec {
    pub id: RunId,
    /// The plan. Absolute.
    pub file: String,
    /// As it was read.
    pub text: String,
    pub state: State,
    pub settings: Settings,
    /// How often tasks were started in earlier runs.
    pub starts: BTreeMap<TaskId, u32>,
    /// Tasks whose work an earlier run has done, and what is left of them.
    #[serde(default)]
    pub left: BTreeMap<TaskId, Left>,
    /// The project. Absolute, without links.
    pub directory: String,
    /// Whose sessions they are: `claude_code`, `codex`.
    pub provider: String,
    /// The program. Absolute.
    pub program: String,
    pub sandbox: Sandbox,
    /// The branch that gathers the results; the one that is checked out unless given.
    pub branch: Option<String>,
    /// Where tasks are worked on, as it was found out when the run began.
    #[serde(default)]
    pub git: GitRules,
    /// The project's own agents, as they were written then: name, text.
    pub agents: BTreeMap<String, String>,
    /// The user's prompt templates when the run began.
    #[serde(default)]
    pub prompts: PromptTemplates,
    pub notifications: Notifications,
    /// What the user and the project had configured.
    #[serde(default)]
    pub config: PlanConfig,
    /// The project's file of it, if there was one.
    #[serde(default)]
    pub config_file: Option<ConfigFile>,
    /// The backlog item that the plan is for.
    #[serde(default)]
    pub item: Option<String>,
    /// When the operator asked for it. A stop file from before that is not meant for this run.
    #[serde(default)]
    pub asked: Wall,
    /// What is special about it, in the operator's words.
    #[serde(default)]
    pub wishes: Vec<String>,
    /// What people should know before it begins.
    #[serde(default)]
    pub remarks: Vec<String>,
}

/// A file as it was when a run began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ConfigFile {
    pub path: String,
    /// In hexadecimal digits.
    pub sha256: String,
}

impl Spec {
    /// Every command that checks work in this run.
    pub fn gates(&self, plan: &Plan) -> Vec<Gate> {
        match self.item {
            // Planned by a session: what it names is not run.
            Some(_) => self.config.checks(),
            None => self.config.gates(plan),
        }
    }

    /// What sessions may do at most.
    pub fn policy(&self) -> Policy {
        Policy::configured(&self.config.sandbox)
    }
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct GitRules {
    pub isolation: Isolation,
    /// Sessions may begin in a checkout with uncommitted changes.
    pub allow_dirty: bool,
    /// The commit that the plan began with, in this run or an earlier one.
    pub base: Option<String>,
}

/// One entry.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "entry", rename_all = "snake_case")]
pub enum Entry {
    Created {
        spec: Box<Spec>,
    },
    /// What the machine was told. A run is read back from these.
    Happened {
        event: Box<Event>,
    },
    /// A session was started, and what it may do.
    Launched {
        run: machine::RunId,
        agent: String,
        profile: String,
        model: Option<String>,
        attempt: u32,
        /// Without the prompt.
        flags: Vec<String>,
    },
    /// What a session wanted to do and was not allowed to.
    Refused {
        run: machine::RunId,
        denials: Vec<Denial>,
    },
    /// For people.
    Said {
        level: Level,
        text: String,
    },
    /// Its end is written into the plan, and the report is there. Nothing follows.
    Closed {
        /// Where the report is.
        report: Option<String>,
    },
}

impl Entry {
    /// Without what looks like a secret, before anybody writes it down or tells it. What people wrote themselves stays: their
    /// plan has to say what it says, and an answer has to arrive.
    pub(super) fn masked(self) -> Self {
        let by_people = match &self {
            Self::Created { .. } => true,
            Self::Happened { event } => matches!(**event, Event::PlanEdited { .. } | Event::Answered { .. }),
            _ => false,
        };
        if by_people {
            return self;
        }
        without_secrets(self).unwrap_or_else(|error| {
            tracing::error!("an entry of a plan's journal cannot be masked: {error}");
            Self::Said { level: Level::Warning, text: UNSPEAKABLE.into() }
        })
    }
}

/// Said instead of what cannot be masked.
pub(crate) const UNSPEAKABLE: &str = "something happened that cannot be told without a secret in it";

/// An entry of a journal, every text in it without what looks like a secret.
pub(crate) fn without_secrets<E: Serialize + DeserializeOwned>(entry: E) -> Result<E, serde_json::Error> {
    let Ok(told) = serde_json::to_value(&entry) else { return Ok(entry) };
    let mut masked = told.clone();
    mask_json(&mut masked);
    if masked == told { Ok(entry) } else { serde_json::from_value(masked) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gates_of_a_plan_for_a_backlog_item_are_not_run() {
        let text =
            "meta: {name: p, gates: [{name: evil, cmd: touch x}]}\nsections: [{id: s, tasks: [{id: t, name: T}]}]\n";
        let (plan, _) = Plan::read("p", text).unwrap();
        let config = PlanConfig { test_command: Some("make test".into()), ..PlanConfig::default() };
        let mut spec = Spec {
            id: RunId::from_random(1),
            file: "/p".into(),
            text: text.into(),
            state: State::default(),
            settings: Settings::of(&plan),
            starts: BTreeMap::new(),
            left: BTreeMap::new(),
            directory: "/".into(),
            provider: "claude_code".into(),
            program: "/bin/true".into(),
            sandbox: Sandbox::On,
            branch: None,
            git: GitRules::default(),
            agents: BTreeMap::new(),
            prompts: Default::default(),
            notifications: Notifications::default(),
            config,
            config_file: None,
            item: None,
            asked: Wall(0),
            wishes: Vec::new(),
            remarks: Vec::new(),
        };
        let commands = |spec: &Spec| spec.gates(&plan).into_iter().map(|gate| gate.command).collect::<Vec<_>>();
        assert_eq!(commands(&spec), ["make test", "touch x"], "a plan that a person runs");
        spec.item = Some("1-more".into());
        assert_eq!(commands(&spec), ["make test"], "a plan that a session may have written");
    }
}

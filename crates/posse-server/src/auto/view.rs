//! A pipeline as the world sees it.

use std::collections::BTreeMap;

use posse_agents::headless::Sandbox;
use posse_core::auto::machine::Doing;
use posse_core::auto::memory::Standing;
use posse_core::auto::settings::Mode;
use posse_core::backlog::{Kind, Priority, Slug};
use posse_core::ids::RunId;
use posse_core::plan::budget::Total;
use posse_core::plan::machine::RunOutcome;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::entry::Entry;
use super::ledger::Ledger;
use crate::plans::view::{HoldView, LimitView, PlanRunStatus};

/// A pipeline.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct AutoView {
    #[schema(value_type = String)]
    pub id: RunId,
    /// `running` or `over`.
    #[schema(value_type = String)]
    pub status: PlanRunStatus,
    /// The project.
    pub directory: String,
    /// `watch`, `drain` or `once`.
    #[schema(value_type = String)]
    pub mode: Mode,
    /// How it ended; the words are those of a run of a plan.
    #[schema(value_type = Option<String>)]
    pub outcome: Option<RunOutcome>,
    pub reason: Option<String>,
    /// What is done now, for each item that is worked on. Nothing: it waits for something to do.
    pub doing: Vec<DoingView>,
    /// What is in the backlog, those that can be begun first and in their order; then what this pipeline has done.
    pub items: Vec<ItemView>,
    /// No session is started before then: the quota is used up.
    pub hold: Option<HoldView>,
    /// It must start something and nobody is there who knows the environment: `posse auto` again.
    pub waits: bool,
    /// Something else is checked out, and everything waits: what to do about it.
    #[serde(default)]
    pub away: Option<String>,
    /// What its sessions have used.
    #[schema(value_type = Object)]
    pub used: Total,
    /// Limits on money that hold for all items, and what is spent of them, by this pipeline and by all others that count.
    #[serde(default)]
    pub limits: Vec<LimitView>,
    /// Whose sessions they are.
    pub provider: String,
    /// Whether sessions are confined: `on` or `off`.
    #[schema(value_type = String)]
    pub sandbox: Sandbox,
    pub created: jiff::Timestamp,
    pub changed: jiff::Timestamp,
    /// Where prompts, streams and work areas are kept.
    pub files: String,
}

#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct DoingView {
    #[schema(value_type = String)]
    pub item: Slug,
    /// `planning`, `executing`, `verifying`, …
    pub step: String,
    /// When work on the item began.
    pub since: jiff::Timestamp,
    /// The run of its plan, while that is carried out (`GET /plans/{id}`).
    #[schema(value_type = Option<String>)]
    pub plan_run: Option<RunId>,
    pub session: Option<AutoSessionView>,
}

/// A planner or verifier that runs.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct AutoSessionView {
    pub agent: String,
    pub model: Option<String>,
    pub since: jiff::Timestamp,
    /// In a few words. Nothing if nobody has heard of it yet.
    pub doing: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ItemView {
    #[schema(value_type = String)]
    pub item: Slug,
    /// Within the project. Nothing if it is not in the backlog any more.
    pub path: Option<String>,
    pub title: Option<String>,
    /// `defect` or `feature`.
    #[schema(value_type = Option<String>)]
    pub kind: Option<Kind>,
    /// `critical`, `high`, `medium` or `low`.
    #[schema(value_type = Option<String>)]
    pub priority: Option<Priority>,
    /// `waiting`, `held`, `in_progress`, `parked`, `ended` or `gone`.
    #[schema(value_type = String)]
    pub standing: Standing,
    pub reason: String,
    /// Attempts that failed, and verifications that found it wanting.
    pub attempts: u32,
    pub verifications_failed: u32,
    /// What its sessions have used, in words.
    pub cost: String,
}

/// Why an item stands as it does, and how it came to that.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct WhyView {
    /// The pipeline that knows it.
    #[schema(value_type = String)]
    pub run: RunId,
    pub item: ItemView,
    /// Every decision, oldest first.
    pub history: Vec<WhyLine>,
}

#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct WhyLine {
    pub at: jiff::Timestamp,
    pub text: String,
}

impl AutoView {
    pub(super) fn new(ledger: &Ledger, files: &str) -> Self {
        let pipeline = &ledger.pipeline;
        let of_this_run = |item: &Slug| {
            let begun = pipeline.carried().items.get(item).and_then(|memory| memory.begun);
            pipeline.candidate(item).is_some() || begun.is_some_and(|begun| begun >= ledger.begun)
        };
        let outcome = pipeline.outcome();
        Self {
            id: ledger.spec.id,
            status: if ledger.closed { PlanRunStatus::Over } else { PlanRunStatus::Running },
            directory: ledger.spec.directory.clone(),
            mode: ledger.spec.settings.mode,
            outcome: outcome.map(|(outcome, _)| outcome),
            reason: outcome.map(|(_, reason)| reason.to_owned()),
            doing: doing(ledger),
            items: pipeline
                .standings()
                .into_iter()
                .filter(|(item, ..)| of_this_run(item))
                .map(|(slug, standing, reason)| item(ledger, slug, standing, reason))
                .collect(),
            hold: pipeline
                .hold()
                .map(|hold| HoldView { until: crate::timestamp(hold.until), reason: hold.reason.clone() }),
            waits: ledger.waits,
            away: pipeline.away().map(str::to_owned),
            used: pipeline.total().clone(),
            limits: pipeline
                .levels()
                .iter()
                .filter_map(|level| {
                    let (name, spent) = (level.name.clone(), level.spent.clone());
                    Some(LimitView { name, limit_usd: level.limit_usd?, spent })
                })
                .collect(),
            provider: ledger.spec.provider.clone(),
            sandbox: ledger.spec.sandbox,
            created: crate::timestamp(ledger.begun),
            changed: crate::timestamp(ledger.changed),
            files: files.to_owned(),
        }
    }

    /// With what sessions are heard to do.
    pub(super) fn hearing(mut self, heard: &BTreeMap<Slug, String>) -> Self {
        for doing in &mut self.doing {
            if let Some(session) = &mut doing.session {
                session.doing = heard.get(&doing.item).cloned();
            }
        }
        self
    }
}

fn doing(ledger: &Ledger) -> Vec<DoingView> {
    let view = |doing: Doing| DoingView {
        session: ledger.launched.get(&doing.id).map(|launched| AutoSessionView {
            agent: launched.agent.clone(),
            model: launched.model.clone(),
            since: crate::timestamp(launched.at),
            doing: None,
        }),
        item: doing.id.item,
        step: doing.step.to_owned(),
        since: crate::timestamp(doing.since),
        plan_run: doing.run,
    };
    ledger.pipeline.doing().into_iter().map(view).collect()
}

fn item(ledger: &Ledger, item: Slug, standing: Standing, reason: String) -> ItemView {
    let candidate = ledger.pipeline.candidate(&item);
    let memory = ledger.pipeline.carried().items.get(&item);
    ItemView {
        path: candidate.map(|candidate| candidate.path.clone()),
        title: candidate.map(|candidate| candidate.title.clone()),
        kind: candidate.map(|candidate| candidate.kind),
        priority: candidate.map(|candidate| candidate.priority),
        standing,
        reason,
        attempts: memory.map_or(0, |memory| memory.attempts),
        verifications_failed: memory.map_or(0, |memory| memory.wanting),
        cost: memory.map_or_else(String::new, |memory| memory.spent.cost()),
        item,
    }
}

pub(super) fn why(ledger: &Ledger, slug: &Slug) -> Option<WhyView> {
    let why = ledger.pipeline.why(slug)?;
    let line = |line: posse_core::auto::memory::Line| WhyLine { at: crate::timestamp(line.at), text: line.text };
    let item = item(ledger, slug.clone(), why.standing, why.reason);
    Some(WhyView { run: ledger.spec.id, item, history: why.history.into_iter().map(line).collect() })
}

/// What everyone is told of an entry. What a pipeline was begun with stays in its journal.
pub(super) fn told(run: RunId, seq: i64, entry: &Entry) -> serde_json::Value {
    let mut told = match entry {
        Entry::Created { spec } => serde_json::json!({ "entry": "created", "directory": spec.directory }),
        entry => serde_json::to_value(entry).unwrap_or_default(),
    };
    if let Some(told) = told.as_object_mut() {
        told.insert("auto_run".into(), run.as_str().into());
        told.insert("run_seq".into(), seq.into());
    }
    told
}

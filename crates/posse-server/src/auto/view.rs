//! Makes the view of a pipeline.

use std::collections::BTreeMap;

use posse_api::{
    AutoEntry, AutoJournalView, AutoSessionView, AutoView, DoingView, EventBody, HoldView, ItemView, LimitView,
    PlanRunStatus, WhyLine, WhyView,
};
use posse_core::auto::machine::Doing;
use posse_core::auto::memory::Standing;
use posse_core::backlog::Slug;
use posse_core::ids::RunId;
use posse_core::time::Wall;

use super::ledger::Ledger;

pub(super) fn auto_view(ledger: &Ledger, files: &str) -> AutoView {
    let pipeline = &ledger.pipeline;
    let of_this_run = |item: &Slug| {
        let begun = pipeline.carried().items.get(item).and_then(|memory| memory.begun);
        pipeline.candidate(item).is_some() || begun.is_some_and(|begun| begun >= ledger.begun)
    };
    let outcome = pipeline.outcome();
    AutoView {
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
        hold: pipeline.hold().map(|hold| HoldView { until: hold.until.timestamp(), reason: hold.reason.clone() }),
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
        created: ledger.begun.timestamp(),
        changed: ledger.changed.timestamp(),
        files: files.to_owned(),
    }
}

/// Adds what the sessions are doing.
pub(super) fn with_activity(mut view: AutoView, heard: &BTreeMap<Slug, String>) -> AutoView {
    for doing in &mut view.doing {
        if let Some(session) = &mut doing.session {
            session.doing = heard.get(&doing.item).cloned();
        }
    }
    view
}

fn doing(ledger: &Ledger) -> Vec<DoingView> {
    let view = |doing: Doing| DoingView {
        session: ledger.launched.get(&doing.id).map(|launched| AutoSessionView {
            agent: launched.agent.clone(),
            model: launched.model.clone(),
            since: launched.at.timestamp(),
            doing: None,
        }),
        item: doing.id.item,
        step: doing.step.to_owned(),
        since: doing.since.timestamp(),
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
    let line = |line: posse_core::auto::memory::Line| WhyLine { at: line.at.timestamp(), text: line.text };
    let item = item(ledger, slug.clone(), why.standing, why.reason);
    Some(WhyView { run: ledger.spec.id, item, history: why.history.into_iter().map(line).collect() })
}

/// The event for a new entry.
pub(super) fn entry_event(run_id: RunId, run_seq: i64, at: Wall, entry: &AutoEntry) -> EventBody {
    let view = AutoJournalView { seq: run_seq, at: at.timestamp(), entry: entry.clone() };
    EventBody::AutoEntry { run_id, run_seq, view: Some(Box::new(view)) }
}

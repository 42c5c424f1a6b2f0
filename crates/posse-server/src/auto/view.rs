//! Makes the view of a pipeline.

use posse_api::{AutoSessionView, BacklogView, DoingView, ItemView, WhyLine, WhyView};
use posse_core::auto::machine::Job;
use posse_core::auto::memory::Standing;
use posse_core::backlog::Slug;

use super::AutoLedger;
use crate::run::view::summary;

pub(super) fn auto_view(ledger: &AutoLedger, files: &str) -> BacklogView {
    let pipeline = &ledger.machine;
    let of_this_run = |item: &Slug| {
        let begun = pipeline.carried().items.get(item).and_then(|memory| memory.begun);
        pipeline.candidate(item).is_some() || begun.is_some_and(|begun| begun >= ledger.begun)
    };
    BacklogView {
        run: summary(ledger, files),
        mode: ledger.spec.settings.mode,
        doing: doing(ledger),
        items: pipeline
            .standings()
            .into_iter()
            .filter(|(item, ..)| of_this_run(item))
            .map(|(slug, standing, reason)| item(ledger, slug, standing, reason))
            .collect(),
        away: pipeline.away().map(str::to_owned),
        sandbox: ledger.spec.sandbox,
    }
}

fn doing(ledger: &AutoLedger) -> Vec<DoingView> {
    let view = |job: &Job| DoingView {
        session: ledger.launched.get(&job.id()).map(|launched| AutoSessionView {
            agent: launched.agent.clone(),
            model: launched.model.clone(),
            since: launched.at.timestamp(),
            doing: ledger.activity.get(&job.id()).cloned(),
        }),
        item: job.item.clone(),
        step: job.step.word().to_owned(),
        since: job.since.timestamp(),
        plan_run: job.run,
    };
    ledger.machine.jobs().values().map(view).collect()
}

fn item(ledger: &AutoLedger, item: Slug, standing: Standing, reason: String) -> ItemView {
    let candidate = ledger.machine.candidate(&item);
    let memory = ledger.machine.carried().items.get(&item);
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

pub(super) fn why(ledger: &AutoLedger, slug: &Slug) -> Option<WhyView> {
    let (standing, reason) = ledger.machine.why(slug)?;
    let memory = ledger.machine.carried().items.get(slug);
    let lines = memory.into_iter().flat_map(|memory| &memory.history);
    let history = lines.map(|line| WhyLine { at: line.at.timestamp(), text: line.text.clone() }).collect();
    Some(WhyView { run: Some(ledger.spec.id), item: item(ledger, slug.clone(), standing, reason), history })
}

//! Why an item of a backlog stands as it does, with every decision about it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use posse_api::{ItemView, ProblemKind, WhyView};
use posse_core::auto::Standing;
use posse_core::backlog::Slug;

use super::{Where, draw, no_item, slug};
use crate::client::{self, Client};
use crate::cmd::audit::encoded;
use crate::error::{Error, Exit};
use crate::ui::Ui;

pub(in crate::cmd) async fn run(project: &Path, item: &str, ui: &Ui) -> Result<Exit, Error> {
    let (place, slug) = (Where::of(project), slug(item)?);
    let known = match Client::connect_if_running().await? {
        Some(mut client) => known(&mut client, &slug, &place).await?,
        None => None,
    };
    let why = match known {
        Some(why) => why,
        None => WhyView { run: None, item: in_files(&slug, &place)?, history: Vec::new() },
    };
    ui.answer(&why, || draw::why(&why, ui));
    if why.run.is_none() && why.item.standing == Standing::Waiting {
        ui.say("nothing is in its way; no pipeline has worked on it yet");
    }
    Ok(Exit::Ok)
}

/// Asks pipelines for an item; `None` if none has seen it.
async fn known(client: &mut Client, slug: &Slug, place: &Where) -> Result<Option<WhyView>, Error> {
    let directory = encoded(&client::absolute(&place.project()?)?);
    match client.get(&format!("/runs/why?of={directory}&part={slug}")).await {
        Ok(view) => Ok(Some(view)),
        Err(Error::Refused(problem)) if matches!(problem.kind, ProblemKind::NoRun | ProblemKind::NoItem) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns what the files say of an item.
fn in_files(slug: &Slug, place: &Where) -> Result<ItemView, Error> {
    let scan = place.scan()?;
    let found = scan.find(slug);
    let other = scan.others.iter().find(|other| other.slug.as_ref() == Some(slug));
    let queue = scan.queue(&BTreeSet::new(), &BTreeMap::new());
    let held = queue.into_iter().find(|entry| entry.slug == *slug).and_then(|entry| entry.held);
    let held = held.or(other.map(|other| other.why.clone()));
    if found.is_none() && other.is_none() {
        return Err(no_item(slug));
    }
    Ok(ItemView {
        item: slug.clone(),
        path: found.map(|found| &found.path).or(other.map(|other| &other.path)).cloned(),
        title: found.map(|found| found.item.title.clone()),
        kind: found.map(|found| found.item.kind).or(other.map(|other| other.kind)),
        priority: found.map(|found| found.item.priority),
        standing: if held.is_some() { Standing::Held } else { Standing::Waiting },
        reason: held.unwrap_or_else(|| "it may be begun".into()),
        attempts: 0,
        verifications_failed: 0,
        cost: String::new(),
    })
}

//! Explains the state of an item of a backlog, with every decision about it.

use std::path::Path;

use posse_api::{ItemView, ProblemKind, WhyView};
use posse_core::auto::Standing;
use posse_core::backlog::Slug;

use super::items::{rows, unread};
use super::{Where, no_item, slug};
use crate::client::{self, Client};
use crate::cmd::audit::encoded;
use crate::cmd::run::rows::item_mark;
use crate::error::{Error, Exit};
use crate::ui::{Colour, Ui, date_time, plain};

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
    ui.answer(&why, || text(&why, ui));
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
        Err(error) if matches!(error.kind(), ProblemKind::NoRun | ProblemKind::NoItem) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns the state of an item according to the files.
fn in_files(slug: &Slug, place: &Where) -> Result<ItemView, Error> {
    let scan = place.scan()?;
    if let Some(row) = rows(&scan, &[]).into_iter().find(|row| row.view.item == *slug) {
        return Ok(row.view);
    }
    let other = scan.others.iter().find(|other| other.slug.as_ref() == Some(slug)).ok_or_else(|| no_item(slug))?;
    Ok(unread(slug.clone(), &other.path, other.kind, Standing::Held, other.why.clone()))
}

/// An item, with every decision about it.
fn text(why: &WhyView, ui: &Ui) -> String {
    let item = &why.item;
    let (sign, colour) = item_mark(item);
    let counted = |count: u32, what: &str| (count > 0).then(|| format!("{count} {what}"));
    let facts = [
        ("title", item.title.clone()),
        ("file", item.path.clone()),
        ("cost", Some(item.cost.clone()).filter(|cost| !cost.is_empty())),
        ("attempts", counted(item.attempts, "failed")),
        ("verified", counted(item.verifications_failed, "found it wanting")),
    ];
    let mut text = format!("{} {}: {}\n", ui.paint(sign, colour), item.item, plain(&item.reason));
    text.extend(facts.iter().filter_map(|(name, fact)| Some(format!("  {name:<9} {}\n", plain(fact.as_ref()?)))));
    let line =
        |line: &posse_api::WhyLine| format!("{}  {}\n", ui.paint(&date_time(line.at), Colour::Dim), plain(&line.text));
    text.extend(why.history.iter().map(line));
    text
}

//! `posse auto status`, `why`, `follow`, `stop` and `retry`: show and control a pipeline.

use std::collections::{BTreeMap, BTreeSet};

use posse_api::{AutoRetryIn, ItemView, ProblemKind, WhyLine, WhyView};
use posse_core::auto::Standing;
use posse_core::backlog::{Slug, queue};
use posse_core::ids::RunId;
use posse_files::backlog::scan;
use posse_files::disk::Disk;
use serde::Serialize;
use serde_json::json;

use super::{Where, draw, no_item, plans_of, slug};
use crate::client::{self, Client, Repeat};
use crate::cmd::audit::encoded;
use crate::cmd::run::follow::Follower;
use crate::cmd::run::followed::{FollowedRun, OnSignal};
use crate::cmd::run::kind::{RunKind, StopHowArgs};
use crate::cmd::run::sessions;
use crate::cmd::tmux::RunWindows;
use crate::error::{Error, Exit};
use crate::ui::Ui;

/// Explain the state of an item, with every decision about it
#[derive(Debug, clap::Args)]
pub(crate) struct WhyArgs {
    /// The item, by name or file
    item: String,
    #[command(flatten)]
    place: Where,
}

/// Stop the pipeline; `posse auto` continues it
#[derive(Debug, clap::Args)]
pub(crate) struct StopArgs {
    #[command(flatten)]
    how: StopHowArgs,
    #[command(flatten)]
    place: Where,
}

/// Retry an item from the beginning
#[derive(Debug, clap::Args)]
pub(crate) struct RetryArgs {
    /// The item, by name or file
    item: String,
    #[command(flatten)]
    place: Where,
}

fn nothing_runs() -> Error {
    Error::failed("no pipeline works in this project")
        .with_hint("`posse auto` begins one, or goes on with what was left")
}

pub(super) async fn status(place: Where, ui: &Ui) -> Result<Exit, Error> {
    let newest = match Client::connect_if_running().await? {
        Some(mut client) => {
            let newest = place.pipelines(&mut client).await?.into_iter().next();
            newest.map(|view| (client, view))
        }
        None => None,
    };
    let Some((mut client, view)) = newest else {
        ui.answer(&json!({ "pipeline": null, "plans": [] }), String::new);
        ui.say("no pipeline has run in this project; `posse auto items` shows what is in the backlog");
        return Ok(Exit::Ok);
    };
    let plans = plans_of(&view, &mut client).await?;
    ui.answer(&json!({ "pipeline": view, "plans": plans }), || draw::status(&view, &plans, ui));
    Ok(Exit::Ok)
}

/// The state of an item, and its history.
#[derive(Serialize)]
pub(super) struct Why {
    /// The pipeline that knows it. Without one the files say what there is to say.
    run: Option<RunId>,
    pub(super) item: ItemView,
    pub(super) history: Vec<WhyLine>,
}

pub(super) async fn why(args: WhyArgs, ui: &Ui) -> Result<Exit, Error> {
    let slug = slug(&args.item)?;
    let known = match Client::connect_if_running().await? {
        Some(mut client) => known(&mut client, &slug, &args.place).await?,
        None => None,
    };
    let why = match known {
        Some(WhyView { run, item, history }) => Why { run: Some(run), item, history },
        None => Why { run: None, item: in_files(&slug, &args.place)?, history: Vec::new() },
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
    match client.get(&format!("/auto/why?directory={directory}&item={slug}")).await {
        Ok(view) => Ok(Some(view)),
        Err(Error::Refused(problem)) if matches!(problem.kind, ProblemKind::NoRun | ProblemKind::NoItem) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns what the files say of an item.
fn in_files(slug: &Slug, place: &Where) -> Result<ItemView, Error> {
    let scan = scan(&Disk::of_this_thread(), &place.project()?, &place.shelves()?);
    let found = scan.find(slug);
    let other = scan.others.iter().find(|other| other.slug.as_ref() == Some(slug));
    let held = match scan.queue(&BTreeSet::new(), &BTreeMap::new()).standing(slug) {
        Some(queue::Standing::Held(held)) => Some(held.to_string()),
        _ => other.map(|other| other.why.clone()),
    };
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

pub(super) async fn follow(place: Where, ui: &Ui) -> Result<Exit, Error> {
    let (client, view) = place.running().await?.ok_or_else(nothing_runs)?;
    let followed = FollowedRun::of_backlog(view.id, OnSignal::Leave);
    let ended = Follower::new(client, followed, None::<RunWindows>, ui).until_over_or_signal().await?;
    sessions::print_end(&ended, ui)
}

pub(super) async fn stop(args: StopArgs, ui: &Ui) -> Result<Exit, Error> {
    let (mut client, view) = args.place.running().await?.ok_or_else(nothing_runs)?;
    let how_to_continue = "`posse auto` goes on with it";
    RunKind::Backlog.stop(view.id, &args.how.request(), how_to_continue, (&mut client, ui)).await
}

pub(super) async fn retry(args: RetryArgs, ui: &Ui) -> Result<Exit, Error> {
    let item = slug(&args.item)?;
    let Some((mut client, view)) = args.place.running().await? else {
        let hint = format!("`posse auto --retry {item}` begins one that takes it up again");
        return Err(nothing_runs().with_hint(hint));
    };
    let body = AutoRetryIn { item: item.to_string() };
    client.act(&format!("/auto/{}/retry", view.id), &body, Repeat::Safe, ui).await?;
    Ok(Exit::Ok)
}

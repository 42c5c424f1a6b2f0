//! `posse auto status`, `why`, `follow`, `stop` and `retry`: pipelines that were begun.

use std::collections::{BTreeMap, BTreeSet};

use posse_api::{AutoRetryIn, AutoView, ItemView, PlanRunStatus, ProblemKind, StopPlan, Success, WhyLine, WhyView};
use posse_core::auto::Standing;
use posse_core::backlog::{Slug, queue};
use posse_core::ids::RunId;
use posse_core::plan::machine::StopHow;
use posse_files::backlog::scan;
use posse_files::disk::Disk;
use serde::Serialize;
use serde_json::json;

use super::follow::Pipeline;
use super::{Where, draw, no_item, plans_of, run, slug};
use crate::client::{self, Client, Repeat};
use crate::cmd::audit::encoded;
use crate::cmd::follow::{Follower, NoOnlooker, OnSignal};
use crate::cmd::tail::{RunKind, RunTail};
use crate::error::{Error, Exit};
use crate::ui::Ui;

/// How an item stands, and everything that was decided about it
#[derive(Debug, clap::Args)]
pub(crate) struct WhyArgs {
    /// The item, by name or file
    item: String,
    #[command(flatten)]
    place: Where,
}

/// Stop the pipeline; `posse auto` goes on where it was
#[derive(Debug, clap::Args)]
pub(crate) struct StopArgs {
    /// `now` ends what runs; otherwise it may finish
    #[arg(value_parser = ["now"])]
    now: Option<String>,
    #[command(flatten)]
    place: Where,
}

/// Have an item taken up again, as if nothing had happened to it
#[derive(Debug, clap::Args)]
pub(crate) struct RetryArgs {
    /// The item, by name or file
    item: String,
    #[command(flatten)]
    place: Where,
}

/// The pipelines of this project, newest first.
pub(super) async fn of_project(client: &mut Client, place: &Where) -> Result<Vec<AutoView>, Error> {
    let project = client::absolute(&place.project()?)?;
    let all: Vec<AutoView> = client.get("/auto?limit=10000").await?;
    Ok(all.into_iter().filter(|view| view.directory == project).collect())
}

/// The one that goes on.
async fn running(place: &Where) -> Result<Option<(Client, AutoView)>, Error> {
    let Some(mut client) = Client::connect_if_running().await? else { return Ok(None) };
    let found = of_project(&mut client, place).await?.into_iter().find(|view| view.status == PlanRunStatus::Running);
    Ok(found.map(|view| (client, view)))
}

fn nothing_runs() -> Error {
    Error::Failed {
        message: "no pipeline works in this project".into(),
        hint: Some("`posse auto` begins one, or goes on with what was left".into()),
    }
}

pub(super) async fn status(place: Where, ui: &Ui) -> Result<Exit, Error> {
    let newest = match Client::connect_if_running().await? {
        Some(mut client) => {
            let newest = of_project(&mut client, &place).await?.into_iter().next();
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

/// How an item stands, and how it came to that.
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

/// What pipelines know of an item, if one has ever seen it.
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
    let Some((client, view)) = running(&place).await? else { return Err(nothing_runs()) };
    let pipeline = Pipeline::new(view.id, run::means(), OnSignal::Leave);
    let tail = RunTail::new(RunKind::Backlog, view.id);
    let view = Follower::new(client, pipeline, tail, None::<NoOnlooker>, ui).run_its_course().await?;
    Ok(run::over(&view, ui))
}

pub(super) async fn stop(args: StopArgs, ui: &Ui) -> Result<Exit, Error> {
    let Some((mut client, view)) = running(&args.place).await? else { return Err(nothing_runs()) };
    let how = Some(if args.now.is_some() { StopHow::Now } else { StopHow::AfterTask });
    let stopped: Success = client.post(&format!("/auto/{}/stop", view.id), &StopPlan { how }, Repeat::Safe).await?;
    ui.done(&stopped, String::new);
    ui.say("`posse auto` goes on with it");
    Ok(Exit::Ok)
}

pub(super) async fn retry(args: RetryArgs, ui: &Ui) -> Result<Exit, Error> {
    let item = slug(&args.item)?;
    let Some((mut client, view)) = running(&args.place).await? else {
        return Err(Error::Failed {
            message: "no pipeline works in this project".into(),
            hint: Some(format!("`posse auto --retry {item}` begins one that takes it up again")),
        });
    };
    let body = AutoRetryIn { item: item.into() };
    let taken: Success = client.post(&format!("/auto/{}/retry", view.id), &body, Repeat::Safe).await?;
    ui.done(&taken, String::new);
    Ok(Exit::Ok)
}

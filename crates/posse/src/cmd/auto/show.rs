//! `posse auto status`, `why`, `follow`, `stop` and `retry`: pipelines that were begun.

use std::collections::{BTreeMap, BTreeSet};

use posse_core::backlog::queue::Standing;
use posse_core::plan::machine::StopHow;
use posse_server::api::types::{AutoRetryIn, StopPlan, Success};
use posse_server::auto::view::{AutoView, WhyView};
use posse_server::backlog::scan;
use posse_server::plans::view::{PlanRunStatus, PlanView};
use serde_json::json;

use super::{Where, draw, follow, items, no_item, run, slug};
use crate::client::{self, Client, Repeat};
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
        ui.answer(&json!(null), String::new);
        ui.say("no pipeline has run in this project; `posse auto items` shows what is in the backlog");
        return Ok(Exit::Ok);
    };
    let plans = plans(&mut client, &view).await?;
    ui.answer(&json!({ "pipeline": view, "plans": plans }), || draw::status(&view, &plans, ui));
    Ok(Exit::Ok)
}

/// The plans that are carried out now.
pub(super) async fn plans(client: &mut Client, view: &AutoView) -> Result<Vec<PlanView>, Error> {
    let mut plans = Vec::new();
    for run in view.doing.iter().filter_map(|doing| doing.plan_run) {
        plans.push(client.get(&format!("/plans/{run}")).await?);
    }
    Ok(plans)
}

pub(super) async fn why(args: WhyArgs, ui: &Ui) -> Result<Exit, Error> {
    let slug = slug(&args.item)?;
    let project = args.place.project()?;
    if let Some(mut client) = Client::connect_if_running().await? {
        let directory: String = percent(&client::absolute(&project)?);
        match client.get::<WhyView>(&format!("/auto/why?directory={directory}&item={slug}")).await {
            Ok(view) => {
                ui.answer(&view, || draw::why(&view, ui));
                return Ok(Exit::Ok);
            }
            // No pipeline has ever seen it: the files say what there is to say.
            Err(Error::Refused(problem)) if matches!(problem.kind.as_str(), "no_run" | "no_item") => {}
            Err(error) => return Err(error),
        }
    }
    let found = scan(&project, &args.place.shelves()?);
    let queue = found.queue(&BTreeSet::new(), &BTreeMap::new());
    let other = found.others.iter().find(|other| other.slug.as_ref() == Some(&slug));
    if let Some(other) = other {
        ui.answer(other, || draw::items(&[], std::slice::from_ref(other), ui));
        return Ok(Exit::Ok);
    }
    let rows = items::rows(&found, &queue);
    let row = rows.into_iter().find(|row| *row.item == slug).ok_or_else(|| no_item(&slug))?;
    ui.answer(&row, || draw::items(std::slice::from_ref(&row), &[], ui));
    if queue.standing(&slug) == Some(&Standing::Eligible) {
        ui.say("nothing is in its way; no pipeline has worked on it yet");
    }
    Ok(Exit::Ok)
}

/// As part of a query: everything that is not plainly a letter, as bytes.
fn percent(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    text.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

pub(super) async fn follow(place: Where, ui: &Ui) -> Result<Exit, Error> {
    let Some((client, view)) = running(&place).await? else { return Err(nothing_runs()) };
    let view = follow::to_the_end(client, view.id, run::means(), ui).await?;
    Ok(run::over(&view, ui))
}

pub(super) async fn stop(args: StopArgs, ui: &Ui) -> Result<Exit, Error> {
    let Some((mut client, view)) = running(&args.place).await? else { return Err(nothing_runs()) };
    let how = Some(if args.now.is_some() { StopHow::Now } else { StopHow::AfterTask });
    let stopped: Success = client.post(&format!("/auto/{}/stop", view.id), &StopPlan { how }, Repeat::Safe).await?;
    ui.answer(&stopped, String::new);
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
    ui.answer(&taken, String::new);
    Ok(Exit::Ok)
}

#[cfg(test)]
mod tests {
    #[test]
    fn queries_carry_any_path() {
        assert_eq!(super::percent("/a b/ü&x=1"), "/a%20b/%C3%BC%26x%3D1");
    }
}

//! `posse auto log`: prints what was done for the items of a backlog.

use posse_api::{AutoView, PlanRunStatus};
use posse_core::backlog::Slug;
use posse_files::backlog::scan;
use posse_files::disk::Disk;

use super::{Where, no_item, slug};
use crate::client::Client;
use crate::cmd::run::kind::RunKind;
use crate::cmd::run::log::{self, LogArgs, LogRequest};
use crate::error::{Error, Exit};
use crate::ui::Ui;

/// Show what was done for items, with the prompts, actions and texts of sessions
///
/// Of the newest pipeline, each session in short, those that carry out plans among them. Of one item everything, in all pipelines of
/// the project: what planners and verifiers were asked and said in full; of a task that is in `posse plan log`. Tokens of well-known
/// shapes are masked.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  posse auto log                        the newest pipeline
  posse auto log 7-empty-export         one item, with the prompts of its planners and verifiers
  posse auto log -f                     go on with what happens from now on
  posse auto log 7-empty-export --raw   the streams as the agent printed them
  posse auto log --json                 for programs: one value a line")]
pub(crate) struct Args {
    /// One item, by name or file
    item: Option<String>,
    #[command(flatten)]
    log: LogArgs,
    #[command(flatten)]
    place: Where,
}

pub(super) async fn run(args: Args, ui: &Ui) -> Result<Exit, Error> {
    let item = args.item.as_deref().map(slug).transpose()?;
    let mut client = Client::connect().await?;
    let mut pipelines: Vec<AutoView> = args.place.pipelines(&mut client).await?;
    match &item {
        None => pipelines.truncate(1),
        // It may have been done long before the newest.
        Some(item) => {
            let knows = |view: &AutoView| view.items.iter().any(|known| known.item == *item);
            let follows = |view: &AutoView| args.log.follow && view.status == PlanRunStatus::Running;
            pipelines.retain(|view| knows(view) || follows(view));
            pipelines.reverse();
        }
    }
    if pipelines.is_empty() {
        return nothing(item.as_ref(), &args.place, ui);
    }
    let runs = pipelines.iter().map(|pipeline| pipeline.id).collect();
    let request = LogRequest { kind: RunKind::Backlog, runs, about: item.as_ref().map(Slug::to_string), log: args.log };
    if !log::print(client, request, ui).await?
        && let Some(item) = &item
    {
        ui.say(&not_yet(item));
    }
    Ok(Exit::Ok)
}

fn nothing(item: Option<&Slug>, place: &Where, ui: &Ui) -> Result<Exit, Error> {
    if let Some(item) = item {
        if scan(&Disk::of_this_thread(), &place.project()?, &place.shelves()?).find(item).is_none() {
            return Err(no_item(item));
        }
        ui.say(&not_yet(item));
        return Ok(Exit::Ok);
    }
    Err(Error::failed("no pipeline has run in this project")
        .with_hint("`posse auto` begins one; `posse auto items` shows what is in the backlog"))
}

fn not_yet(item: &Slug) -> String {
    format!("nothing has been done for {item} yet; `posse auto why {item}` says how it stands")
}

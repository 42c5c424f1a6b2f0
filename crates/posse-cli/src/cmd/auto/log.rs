//! `posse auto log`: what was done for the items of a backlog, and what sessions were asked, did and said.

use posse_api::{AutoEntry, AutoView, PlanEntry, PlanRunStatus};
use posse_core::backlog::Slug;
use posse_core::ids::RunId;
use posse_files::backlog::scan;
use posse_files::disk::Disk;
use tokio::time::sleep;

use super::news::{Hears, Item, News, OfPlan, Telling};
use super::{Where, no_item, show, slug};
use crate::client::Client;
use crate::cmd::plan::log::{files, indented, stream};
use crate::cmd::plan::news as plan;
use crate::cmd::plan::said::Extent;
use crate::cmd::plan::words as plan_words;
use crate::error::{Error, Exit};
use crate::event_stream::AGAIN;
use crate::ui::{Colour, Ui};

/// What was done for the items, and what sessions were asked, did and said
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
    /// The lines as the agent printed them
    #[arg(long)]
    raw: bool,
    /// Go on with what happens from now on, until the pipeline is over
    #[arg(long, short)]
    follow: bool,
    #[command(flatten)]
    place: Where,
}

pub(super) async fn run(args: Args, ui: &Ui) -> Result<Exit, Error> {
    let item = args.item.as_deref().map(slug).transpose()?;
    let mut client = Client::connect().await?;
    let mut pipelines = show::of_project(&mut client, &args.place).await?;
    let follow = pipelines.first().filter(|newest| args.follow && newest.status == PlanRunStatus::Running);
    let follow = follow.map(|newest| newest.id);
    match &item {
        None => pipelines.truncate(1),
        // It may have been done long before the newest.
        Some(item) => {
            let knows = |view: &AutoView| view.items.iter().any(|known| known.item == *item);
            pipelines.retain(|view| knows(view) || follow == Some(view.id));
            pipelines.reverse();
        }
    }
    if pipelines.is_empty() {
        return nothing(item.as_ref(), &args.place, ui);
    }
    client.only_running();
    let extent = if item.is_some() { Extent::All } else { Extent::Lines };
    let log = Log { client, item, raw: args.raw, telling: Telling::new(extent), day: String::new(), ui };
    tokio::select! {
        told = log.tell(&pipelines, follow) => told.map(|()| Exit::Ok),
        () = ui.unread() => Ok(Exit::Ok),
    }
}

fn nothing(item: Option<&Slug>, place: &Where, ui: &Ui) -> Result<Exit, Error> {
    if let Some(item) = item {
        if scan(&Disk::of_this_thread(), &place.project()?, &place.shelves()?).find(item).is_none() {
            return Err(no_item(item));
        }
        ui.say(&not_yet(item));
        return Ok(Exit::Ok);
    }
    Err(Error::Failed {
        message: "no pipeline has run in this project".into(),
        hint: Some("`posse auto` begins one; `posse auto items` shows what is in the backlog".into()),
    })
}

fn not_yet(item: &Slug) -> String {
    format!("nothing has been done for {item} yet; `posse auto why {item}` says how it stands")
}

struct Log<'a> {
    client: Client,
    item: Option<Slug>,
    raw: bool,
    telling: Telling,
    /// The day of what was told last: lines only have the time.
    day: String,
    ui: &'a Ui,
}

impl Log<'_> {
    async fn tell(mut self, pipelines: &[AutoView], follow: Option<RunId>) -> Result<(), Error> {
        let mut told = false;
        for pipeline in pipelines {
            let mut news = News::new(pipeline.id, self.item.clone(), Hears::Everything);
            loop {
                // Listening before looking: what changes in between is heard.
                let mut events = self.client.listen(None).await?;
                let mut event = None;
                let over = loop {
                    // In this order: of one that is seen to have ended, everything is seen.
                    let view: AutoView = self.client.get(&format!("/auto/{}", pipeline.id)).await?;
                    let event_now = event.as_ref().filter(|_| view.status == PlanRunStatus::Running);
                    let items = news.next(event_now, &mut self.client).await?;
                    told |= !items.is_empty();
                    for item in &items {
                        self.one(pipeline.id, item).await?;
                    }
                    if follow != Some(pipeline.id) || view.status == PlanRunStatus::Over {
                        break true;
                    }
                    event = events.until(|event| news.concerns(event)).await;
                    if event.is_none() {
                        break false;
                    }
                };
                if over {
                    break;
                }
                sleep(AGAIN).await;
            }
        }
        if let (false, Some(item)) = (told, &self.item) {
            self.ui.say(&not_yet(item));
        }
        Ok(())
    }

    fn print(&mut self, item: &Item) {
        let Some(lines) = self.telling.tell(item, self.ui) else { return };
        let day = item.at().to_zoned(jiff::tz::TimeZone::system()).strftime("%F").to_string();
        if day != self.day {
            self.ui.line(&self.ui.paint(&day, Colour::Bold));
            self.day = day;
        }
        self.ui.print(&lines);
    }

    async fn one(&mut self, id: RunId, item: &Item) -> Result<(), Error> {
        if self.raw {
            return match session(id, item) {
                Some((path, _)) => stream(&mut self.client, &path, self.ui).await,
                None => Ok(()),
            };
        }
        let ui = self.ui;
        match ui.json() {
            true => ui.item(item, String::new),
            false => self.print(item),
        }
        // Of one item everything.
        let (Some(_), Item::Entry(entry)) = (&self.item, item) else { return Ok(()) };
        if let (false, AutoEntry::Launched { flags, agent, .. }) = (ui.json(), &entry.entry) {
            ui.print(&indented(&format!("flags: {}", plan_words::flags(flags, agent)), ui));
        }
        match session(id, item) {
            Some((path, name)) => files(&mut self.client, &path, &name, ui).await,
            None => Ok(()),
        }
    }
}

/// The session that begins here: its path in the API, and its name.
fn session(id: RunId, item: &Item) -> Option<(String, String)> {
    match item {
        Item::Entry(entry) => match &entry.entry {
            AutoEntry::Launched { id: deed, .. } => Some((format!("/auto/{id}/sessions/{deed}"), deed.to_string())),
            _ => None,
        },
        Item::Plan(OfPlan { plan_run, news: plan::Item::Entry(entry), .. }) => match &entry.entry {
            PlanEntry::Launched { run, .. } => Some((format!("/plans/{plan_run}/sessions/{run}"), run.to_string())),
            _ => None,
        },
        _ => None,
    }
}

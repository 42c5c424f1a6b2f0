//! `posse auto items`: lists the backlog, and the reasons why items are held.

use std::collections::{BTreeMap, BTreeSet};

use posse_core::auto;
use posse_core::backlog::queue::QueueEntry;
use posse_core::backlog::{BacklogDirs, Dependency, Item, Slug, Status, intake};
use posse_core::file_problem::FileProblem;
use posse_files::backlog::{FoundItem, Scan};
use serde::Serialize;
use serde_json::json;

use super::{Where, draw};
use crate::error::{Error, Exit};
use crate::ui::Ui;

/// List the backlog in the order of work, with the reasons why items are held
///
/// Looks at the files, and at what the last pipeline knows of them; nothing is started and nothing is written.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    place: Where,
}

/// A file of the backlog, for programs and for people.
#[derive(Debug, Serialize)]
pub(super) struct ItemRow<'a> {
    pub(super) item: &'a Slug,
    pub(super) path: &'a str,
    pub(super) title: &'a str,
    pub(super) kind: &'static str,
    pub(super) priority: &'static str,
    pub(super) status: &'a str,
    /// Its place among those that may be begun, from 1.
    pub(super) place: Option<usize>,
    /// The reason why it is not begun.
    pub(super) why: Option<String>,
    /// The step that is carried out now.
    pub(super) doing: Option<String>,
    /// The question that will be asked when it is begun.
    pub(super) question: Option<&'static str>,
    pub(super) waits_for: Vec<&'a Dependency>,
    pub(super) warnings: &'a [FileProblem],
}

/// The state of items that only a pipeline knows.
#[derive(Default)]
pub(super) struct PipelineKnowledge {
    /// The items that are worked on, and how far each is.
    doing: BTreeMap<Slug, String>,
    /// The items that wait for a person, and why.
    parked: BTreeMap<Slug, String>,
}

impl PipelineKnowledge {
    /// Asks the newest pipeline of the project. Without a daemon nothing is known.
    async fn of(place: &Where) -> Result<Self, Error> {
        let items = place.newest().await?.map(|view| view.items).unwrap_or_default();
        let of = |standing| items.iter().filter(move |item| item.standing == standing);
        let said = |item: &posse_api::ItemView| (item.item.clone(), item.reason.clone());
        Ok(Self {
            doing: of(auto::Standing::InProgress).map(said).collect(),
            parked: of(auto::Standing::Parked).map(said).collect(),
        })
    }

    pub(super) fn queue(&self, scan: &Scan) -> Vec<QueueEntry> {
        let unfinished: BTreeSet<Slug> = self.doing.keys().cloned().collect();
        // The file of an item is newer than the pipeline's knowledge: the item may be asked about, or answered.
        let asked = |slug: &Slug| scan.find(slug).is_some_and(|found| found.item.status != Some(Status::Open));
        let was_asked = |why: &str| why.starts_with(Status::NeedsClarification.as_str());
        let parked = self.parked.iter().filter(|(slug, why)| !asked(slug) && !was_asked(why));
        scan.queue(&unfinished, &parked.map(|(slug, why)| (slug.clone(), why.clone())).collect())
    }
}

pub(crate) async fn run(args: Args, ui: &Ui) -> Result<Exit, Error> {
    let found = args.place.scan()?;
    let known = PipelineKnowledge::of(&args.place).await?;
    let queue = known.queue(&found);
    let mut rows = rows(&found, &queue);
    rows.iter_mut().for_each(|row| row.doing = known.doing.get(row.item).cloned());
    let archived = found.archived.len();
    let answer = json!({ "items": rows, "others": found.others, "archived": archived });
    ui.answer(&answer, || draw::items(&rows, &found.others, ui));
    if rows.is_empty() && found.others.is_empty() {
        let BacklogDirs { defects, features, .. } = args.place.shelves()?;
        ui.say(&format!("no items in {defects} and {features}; `posse auto new defect TITLE` makes one"));
    }
    Ok(Exit::Ok)
}

/// In the order of the queue.
pub(super) fn rows<'a>(scan: &'a Scan, queue: &[QueueEntry]) -> Vec<ItemRow<'a>> {
    let mut left: Vec<&FoundItem> = scan.items.iter().collect();
    let mut place = 0;
    let mut rows = Vec::new();
    for entry in queue {
        // Two files may have one name.
        let Some(at) = left.iter().position(|found| found.item.slug == entry.slug && found.item.kind == entry.kind)
        else {
            continue;
        };
        let found = left.remove(at);
        let why = entry.held.clone();
        place += usize::from(why.is_none());
        rows.push(row(found, why.is_none().then_some(place), why));
    }
    rows
}

fn row(found: &FoundItem, place: Option<usize>, why: Option<String>) -> ItemRow<'_> {
    let item: &Item = &found.item;
    let question = intake::question(item).filter(|_| why.is_none());
    ItemRow {
        item: &item.slug,
        path: &found.path,
        title: &item.title,
        kind: item.kind.as_str(),
        priority: item.priority.as_str(),
        status: item.status.map_or("unknown", Status::as_str),
        place,
        why,
        doing: None,
        question,
        waits_for: item.depends_on.iter().collect(),
        warnings: &found.warnings,
    }
}

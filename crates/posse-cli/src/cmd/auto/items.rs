//! `posse auto items`: lists the backlog, and the reasons why items are held.

use posse_api::{ItemView, RunView};
use posse_core::auto::Standing;
use posse_core::backlog::queue::QueueEntry;
use posse_core::backlog::{BacklogDirs, Kind, Slug, Status, intake};
use posse_core::file_problem::FileProblem;
use posse_files::backlog::{FoundItem, Other, Scan};
use serde::Serialize;
use serde_json::{Value, json};

use super::Where;
use crate::client::Client;
use crate::cmd::run::find::runs_of;
use crate::error::{Error, Exit};
use crate::ui::{Cell, Colour, Ui, plain};

/// List the backlog in the order of work, with the reasons why items are held
///
/// Looks at the files, and at what the last pipeline knows of them; nothing is started and nothing is written.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    place: Where,
}

/// A file of the backlog.
#[derive(Debug, Serialize)]
pub(super) struct ItemRow {
    #[serde(flatten)]
    pub(super) view: ItemView,
    /// Its place among those that may be begun, from 1.
    pub(super) place: Option<usize>,
    /// The question that will be asked when it is begun.
    pub(super) question: Option<&'static str>,
    warnings: Vec<FileProblem>,
    /// A pipeline has worked on it, or looked at it.
    #[serde(skip)]
    known: bool,
}

impl ItemRow {
    /// Returns the item for programs. What only a pipeline knows is null without one.
    pub(super) fn json(&self) -> Value {
        let mut json = json!(self);
        for key in ["attempts", "verifications_failed", "cost"] {
            json[key] = if self.known { json[key].take() } else { Value::Null };
        }
        json
    }
}

pub(crate) async fn run(args: Args, ui: &Ui) -> Result<Exit, Error> {
    let found = args.place.scan()?;
    let rows = rows(&found, &known(&args.place).await?);
    let items: Vec<Value> = rows.iter().map(ItemRow::json).collect();
    ui.answer(&json!({ "items": items, "others": found.others }), || text(&rows, ui) + &others(&found.others, ui));
    if rows.is_empty() && found.others.is_empty() {
        let BacklogDirs { defects, features, .. } = args.place.shelves()?;
        ui.say(&format!("no items in {defects} and {features}; `posse auto new defect TITLE` makes one"));
    }
    Ok(Exit::Ok)
}

/// Returns the items of the project's newest pipeline. Without a daemon there are none.
async fn known(place: &Where) -> Result<Vec<ItemView>, Error> {
    let Some(mut client) = Client::connect_if_running().await? else { return Ok(Vec::new()) };
    let newest = runs_of(&mut client, &place.directory, "&kind=backlog").await?.into_iter().next();
    Ok(newest
        .and_then(|run| if let RunView::Backlog(view) = run { Some(view.items) } else { None })
        .unwrap_or_default())
}

/// Returns the queue as the files have it, and as a pipeline knows it.
fn queue(scan: &Scan, known: &[ItemView]) -> Vec<QueueEntry> {
    let of = |standing| known.iter().filter(move |item| item.standing == standing);
    // The file of an item is newer than the pipeline's knowledge: the item may be asked about, or answered.
    let asked = |slug: &Slug| scan.find(slug).is_some_and(|found| found.item.status != Some(Status::Open));
    let was_asked = |why: &str| why.starts_with(Status::NeedsClarification.as_str());
    let parked = of(Standing::Parked).filter(|item| !asked(&item.item) && !was_asked(&item.reason));
    let unfinished = of(Standing::InProgress).map(|item| item.item.clone()).collect();
    scan.queue(&unfinished, &parked.map(|item| (item.item.clone(), item.reason.clone())).collect())
}

/// Returns the items in the order of work. `known` holds the pipeline's facts about them.
pub(super) fn rows(scan: &Scan, known: &[ItemView]) -> Vec<ItemRow> {
    let mut left: Vec<&FoundItem> = scan.items.iter().collect();
    let mut place = 0;
    let mut rows = Vec::new();
    for entry in queue(scan, known) {
        // Two files may have one name.
        let Some(at) = left.iter().position(|found| found.item.slug == entry.slug && found.item.kind == entry.kind)
        else {
            continue;
        };
        let found = left.remove(at);
        let known = known.iter().find(|item| item.item == entry.slug);
        let doing = known.filter(|item| item.standing == Standing::InProgress);
        let eligible = entry.held.is_none();
        place += usize::from(eligible);
        let (standing, reason) = match (entry.held, doing) {
            (_, Some(doing)) => (Standing::InProgress, doing.reason.clone()),
            (Some(held), None) => (Standing::Held, held),
            (None, None) => (Standing::Waiting, "it may be begun".into()),
        };
        let unread = unread(entry.slug, &found.path, entry.kind, standing, reason);
        rows.push(ItemRow {
            known: known.is_some(),
            place: eligible.then_some(place),
            question: intake::question(&found.item).filter(|_| eligible),
            warnings: found.warnings.clone(),
            view: ItemView {
                title: Some(found.item.title.clone()),
                priority: Some(found.item.priority),
                attempts: known.map_or(0, |known| known.attempts),
                verifications_failed: known.map_or(0, |known| known.verifications_failed),
                cost: known.map(|known| known.cost.clone()).unwrap_or_default(),
                ..unread
            },
        });
    }
    rows
}

/// An item of which only the file is known.
pub(super) fn unread(item: Slug, path: &str, kind: Kind, standing: Standing, reason: String) -> ItemView {
    ItemView {
        item,
        path: Some(path.to_owned()),
        title: None,
        kind: Some(kind),
        priority: None,
        standing,
        reason,
        attempts: 0,
        verifications_failed: 0,
        cost: String::new(),
    }
}

fn text(rows: &[ItemRow], ui: &Ui) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let mut text = ui.table(&["", "ITEM", "KIND", "PRIORITY", "TITLE"], rows.iter().map(cells));
    for row in rows {
        let place = ui.paint(&format!("{}:", row.view.path.as_deref().unwrap_or_default()), Colour::Yellow);
        text.extend(row.warnings.iter().map(|warning| format!("{place}{}\n", plain(&warning.to_string()))));
    }
    text
}

fn cells(row: &ItemRow) -> Vec<Cell> {
    let ItemView { item, title, kind, priority, standing, reason, .. } = &row.view;
    let (mark, colour, note) = match (standing, row.question) {
        (Standing::InProgress, _) => ("▸".to_owned(), Colour::Blue, Some(reason.as_str())),
        (Standing::Waiting, None) => (row.place.unwrap_or_default().to_string(), Colour::Green, None),
        (Standing::Waiting, Some(_)) => ("?".to_owned(), Colour::Yellow, Some("too vague: it will be asked about")),
        _ => ("–".to_owned(), Colour::Dim, Some(reason.as_str())),
    };
    let note = note.map(|note| format!(" ({note})")).unwrap_or_default();
    let held = row.place.is_none().then_some(Colour::Dim);
    let words = [
        item.to_string(),
        kind.map(Kind::as_str).unwrap_or_default().to_owned(),
        priority.map(|priority| priority.as_str().to_owned()).unwrap_or_default(),
        title.clone().unwrap_or_default() + &note,
    ];
    std::iter::once(Cell::new(mark, colour)).chain(words.map(|word| Cell::new(word, held))).collect()
}

/// Files that are no items, and the reasons.
pub(super) fn others(others: &[Other], ui: &Ui) -> String {
    let mut text = String::new();
    for other in others {
        let path = ui.paint(&plain(&other.path), Colour::Red);
        for line in other.why.lines() {
            // Problems in a file begin with its name and the place.
            let line = line.strip_prefix(other.path.as_str()).map_or_else(|| format!(": {line}"), str::to_owned);
            text.push_str(&format!("{path}{}\n", plain(&line)));
        }
    }
    text
}

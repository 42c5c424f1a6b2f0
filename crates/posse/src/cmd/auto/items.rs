//! `posse auto items`: everything that lies in the backlog, and what stands in its way.

use std::collections::{BTreeMap, BTreeSet};

use posse_core::backlog::queue::{Queue, Standing};
use posse_core::backlog::{Dependency, Item, Slug, intake};
use posse_core::plan::Warning;
use posse_server::backlog::{Found, Other, Scan, scan};
use serde::Serialize;

use super::{Where, draw};
use crate::error::{Error, Exit};
use crate::ui::Ui;

/// Everything in the backlog: in which order it is worked on, and why something is not
///
/// Looks at the files only; nothing is started and nothing is written.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    place: Where,
}

/// A file of the backlog, for programs and for people.
#[derive(Debug, Serialize)]
pub(super) struct Row<'a> {
    pub(super) item: &'a Slug,
    pub(super) path: &'a str,
    pub(super) title: &'a str,
    pub(super) kind: &'static str,
    pub(super) priority: &'static str,
    pub(super) status: &'a str,
    /// Its place among those that may be begun, from 1.
    pub(super) place: Option<usize>,
    /// Why it is not begun.
    pub(super) why: Option<String>,
    /// What will be asked about it when it is begun.
    pub(super) question: Option<String>,
    pub(super) waits_for: Vec<&'a Dependency>,
    pub(super) warnings: &'a [Warning],
}

#[derive(Serialize)]
struct Everything<'a> {
    items: &'a [Row<'a>],
    others: &'a [Other],
    circles: &'a [Vec<Slug>],
    archived: usize,
}

pub(crate) fn run(args: &Args, ui: &Ui) -> Result<Exit, Error> {
    let shelves = args.place.shelves();
    let found = scan(&args.place.project()?, &shelves);
    let queue = found.queue(&BTreeSet::new(), &BTreeMap::new());
    let rows = rows(&found, &queue);
    let everything =
        Everything { items: &rows, others: &found.others, circles: &queue.circles, archived: found.archived.len() };
    ui.answer(&everything, || draw::items(&rows, &found.others, ui));
    if rows.is_empty() && found.others.is_empty() {
        ui.say(&format!(
            "no items in {} and {}; `posse auto new defect TITLE` makes one",
            shelves.defects, shelves.features
        ));
    }
    Ok(Exit::Ok)
}

/// In the order of the queue.
pub(super) fn rows<'a>(scan: &'a Scan, queue: &Queue) -> Vec<Row<'a>> {
    let mut left: Vec<&Found> = scan.items.iter().collect();
    let mut place = 0;
    let mut rows = Vec::new();
    for entry in &queue.entries {
        // Two files may have one name.
        let Some(at) = left.iter().position(|found| found.item.slug == entry.slug && found.item.kind == entry.kind)
        else {
            continue;
        };
        let found = left.remove(at);
        let why = match &entry.standing {
            Standing::Eligible => None,
            Standing::Held(held) => Some(held.to_string()),
        };
        place += usize::from(why.is_none());
        rows.push(row(found, why.is_none().then_some(place), why));
    }
    rows
}

fn row(found: &Found, place: Option<usize>, why: Option<String>) -> Row<'_> {
    let item: &Item = &found.item;
    let question = match intake::check(item) {
        intake::Intake::Ask(question) if why.is_none() => Some(question),
        _ => None,
    };
    Row {
        item: &item.slug,
        path: &found.path,
        title: &item.title,
        kind: item.kind.as_str(),
        priority: item.priority.as_str(),
        status: item.status.as_str(),
        place,
        why,
        question,
        waits_for: item.depends_on.iter().collect(),
        warnings: &found.warnings,
    }
}

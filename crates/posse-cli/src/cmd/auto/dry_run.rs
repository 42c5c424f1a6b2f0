//! `posse auto --dry-run`: what would be done, in which order, by whom. Starts and writes nothing.

use std::collections::{BTreeMap, BTreeSet};

use posse_core::backlog::queue::Shelf;
use posse_core::backlog::{Kind, Slug};
use serde::Serialize;
use serde_json::json;

use super::run::RunArgs;
use super::{draw, items, no_item, slug};
use crate::error::{Error, Exit};
use crate::ui::{Ui, plain};

/// The steps that would be taken for an item.
#[derive(Serialize)]
struct Would<'a> {
    item: &'a Slug,
    path: &'a str,
    title: &'a str,
    phases: Vec<&'static str>,
    /// The path of the item when it is done.
    archive: String,
}

pub(super) fn run(args: &RunArgs, ui: &Ui) -> Result<Exit, Error> {
    let shelves = args.place.shelves()?;
    let only = args.item.as_deref().map(slug).transpose()?;
    let found = args.place.scan()?;
    let queue = found.queue(&BTreeSet::new(), &BTreeMap::new());
    let rows = items::rows(&found, &queue);
    if let Some(only) = &only
        && !rows.iter().any(|row| row.item == only)
    {
        return Err(no_item(only));
    }
    let most = args.most();
    let wanted = |row: &&items::ItemRow<'_>| only.as_ref().is_none_or(|only| row.item == only);
    let begun = rows.iter().filter(|row| row.place.is_some()).filter(wanted).take(most);
    let would: Vec<Would<'_>> = begun
        .map(|row| {
            let kind = if row.kind == Kind::Defect.as_str() { Kind::Defect } else { Kind::Feature };
            let phases = match (&row.question, kind) {
                (Some(_), _) => vec!["intake", "ask"],
                (None, Kind::Defect) => vec!["intake", "plan", "execute", "verify", "archive"],
                (None, Kind::Feature) => vec!["intake", "plan", "execute", "archive"],
            };
            let archive = format!("{}/{}", shelves.archive(kind, Shelf::Completed), row.item.file_name());
            Would { item: row.item, path: row.path, title: row.title, phases, archive }
        })
        .collect();
    ui.answer(&json!({ "items": would, "others": found.others }), || {
        let mut text = String::new();
        for (i, would) in would.iter().enumerate() {
            text.push_str(&format!("{}  {}  {}\n", i + 1, would.item, plain(would.title)));
            text.push_str(&format!("   {}\n", would.phases.join(" → ")));
        }
        let held: Vec<&items::ItemRow<'_>> = rows.iter().filter(|row| row.place.is_none()).filter(wanted).collect();
        for row in held {
            text.push_str(&format!("–  {}  {}\n", row.item, plain(row.why.as_deref().unwrap_or_default())));
        }
        text.push_str(&draw::items(&[], &found.others, ui));
        text.push_str("nothing was started, nothing was written\n");
        text
    });
    ui.say("`posse plan flags planner` and `posse plan flags verifier` show what their sessions may do");
    Ok(Exit::Ok)
}

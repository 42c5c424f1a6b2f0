//! `posse auto --dry-run`: what would be done, in which order. Starts and writes nothing.

use posse_core::backlog::Kind;
use serde_json::{Value, json};

use super::items::{ItemRow, others, rows};
use super::run::RunArgs;
use super::{no_item, slug};
use crate::error::{Error, Exit};
use crate::ui::{Ui, plain};

/// The steps that would be taken for an item.
struct Would<'a> {
    row: &'a ItemRow,
    phases: &'static [&'static str],
}

pub(super) fn run(args: &RunArgs, ui: &Ui) -> Result<Exit, Error> {
    let found = args.place.scan()?;
    let mut rows = rows(&found, &[]);
    if let Some(only) = args.item.as_deref().map(slug).transpose()? {
        rows.retain(|row| row.view.item == only);
        if rows.is_empty() {
            return Err(no_item(&only));
        }
    }
    let phases = |row: &ItemRow| -> &[&str] {
        match (row.question, row.view.kind) {
            (Some(_), _) => &["intake", "ask"],
            (None, Some(Kind::Defect)) => &["intake", "plan", "execute", "verify", "archive"],
            (None, _) => &["intake", "plan", "execute", "archive"],
        }
    };
    let begun = rows.iter().filter(|row| row.place.is_some()).take(args.most());
    let would: Vec<Would<'_>> = begun.map(|row| Would { row, phases: phases(row) }).collect();
    let json = |Would { row, phases }: &Would<'_>| {
        let mut json = row.json();
        json["phases"] = json!(phases);
        json
    };
    let items: Vec<Value> = would.iter().map(json).collect();
    ui.answer(&json!({ "items": items, "others": found.others }), || {
        let line = |mark: &str, row: &ItemRow, what: &str| format!("{mark}  {}  {}\n", row.view.item, plain(what));
        let mut text = String::new();
        for (i, Would { row, phases }) in (1..).zip(&would) {
            text += &line(&i.to_string(), row, row.view.title.as_deref().unwrap_or_default());
            text += &format!("   {}\n", phases.join(" → "));
        }
        text.extend(rows.iter().filter(|row| row.place.is_none()).map(|row| line("–", row, &row.view.reason)));
        text + &others(&found.others, ui) + "nothing was started, nothing was written\n"
    });
    ui.say("`posse plan flags planner` and `posse plan flags verifier` show what their sessions may do");
    Ok(Exit::Ok)
}

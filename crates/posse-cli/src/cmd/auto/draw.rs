//! A backlog for people to look at.

use posse_api::WhyView;
use posse_files::backlog::Other;

use super::items::ItemRow;
use crate::cmd::run::rows::item_mark;
use crate::ui::{Cell, Colour, Ui, date_time, plain};

pub(super) fn items(rows: &[ItemRow<'_>], others: &[Other], ui: &Ui) -> String {
    let mut text = String::new();
    if !rows.is_empty() {
        text.push_str(&ui.table(&["", "ITEM", "KIND", "PRIORITY", "TITLE"], rows.iter().map(cells)));
    }
    for row in rows {
        for warning in row.warnings {
            let place = ui.paint(&format!("{}:", row.path), Colour::Yellow);
            text.push_str(&format!("{place}{}\n", plain(&warning.to_string())));
        }
    }
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

fn cells(row: &ItemRow<'_>) -> Vec<Cell> {
    let (mark, colour, note) = match (&row.doing, &row.why, &row.question) {
        (Some(doing), ..) => ("▸".to_owned(), Colour::Blue, Some(doing.as_str())),
        (None, Some(why), _) => ("–".to_owned(), Colour::Dim, Some(why.as_str())),
        (None, None, Some(_)) => ("?".to_owned(), Colour::Yellow, Some("too vague: it will be asked about")),
        (None, None, None) => (row.place.unwrap_or_default().to_string(), Colour::Green, None),
    };
    let said = note.map_or_else(|| row.title.to_owned(), |note| format!("{} ({note})", row.title));
    let held = row.place.is_none().then_some(Colour::Dim);
    vec![
        Cell::new(mark, Some(colour)),
        Cell::new(row.item.as_str(), held),
        Cell::new(row.kind, held),
        Cell::new(row.priority, held),
        Cell::new(said, held),
    ]
}

/// An item, with every decision about it.
pub(super) fn why(why: &WhyView, ui: &Ui) -> String {
    let item = &why.item;
    let (sign, colour) = item_mark(item);
    let sign = ui.paint(sign, colour);
    let mut text = format!("{sign} {}: {}\n", item.item, plain(&item.reason));
    for (name, value) in [("title", &item.title), ("file", &item.path)] {
        text.extend(value.as_ref().map(|value| format!("  {name:<9} {}\n", plain(value))));
    }
    if !item.cost.is_empty() {
        text.push_str(&format!("  {:<9} {}\n", "cost", plain(&item.cost)));
    }
    if item.attempts > 0 {
        text.push_str(&format!("  {:<9} {} failed\n", "attempts", item.attempts));
    }
    if item.verifications_failed > 0 {
        text.push_str(&format!("  {:<9} {} found it wanting\n", "verified", item.verifications_failed));
    }
    for line in &why.history {
        let at = date_time(line.at);
        text.push_str(&format!("{}  {}\n", ui.paint(&at, Colour::Dim), plain(&line.text)));
    }
    text
}

//! A backlog for people to look at.

use posse_server::backlog::Other;

use super::items::Row;
use crate::ui::{Cell, Colour, Ui, plain};

pub(super) fn items(rows: &[Row<'_>], others: &[Other], ui: &Ui) -> String {
    let mut text = String::new();
    if !rows.is_empty() {
        let table: Vec<Vec<Cell>> = rows.iter().map(cells).collect();
        text.push_str(&ui.table(&["", "ITEM", "KIND", "PRIORITY", "TITLE"], &table));
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

fn cells(row: &Row<'_>) -> Vec<Cell> {
    let (mark, colour) = match (row.place, &row.question) {
        (Some(_), Some(_)) => ("?".to_owned(), Some(Colour::Yellow)),
        (Some(place), None) => (place.to_string(), Some(Colour::Green)),
        (None, _) => ("–".to_owned(), Some(Colour::Dim)),
    };
    let said = match (&row.why, &row.question) {
        (Some(why), _) => format!("{} ({why})", row.title),
        (None, Some(_)) => format!("{} (too vague: it will be asked about)", row.title),
        (None, None) => row.title.to_owned(),
    };
    let held = row.place.is_none().then_some(Colour::Dim);
    vec![
        Cell::new(mark, colour),
        Cell::new(row.item.as_str(), held),
        Cell::new(row.kind, held),
        Cell::new(row.priority, held),
        Cell::new(said, held),
    ]
}

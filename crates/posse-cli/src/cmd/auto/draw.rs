//! A backlog for people to look at.

use posse_api::{BacklogView, DoingView, ItemView, PlanView, WhyView};
use posse_core::auto::Standing;
use posse_core::auto::settings::Mode;
use posse_core::backlog::ItemOutcome;
use posse_files::backlog::Other;

use super::items::ItemRow;
use crate::cmd::plan;
use crate::cmd::run::picture::{self, holds, is_done};
use crate::status_area::Row;
use crate::ui::{Cell, Colour, Ui, age, date_time, plain};

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

/// A sign for how an item stands.
fn mark(item: &ItemView) -> (&'static str, Option<Colour>) {
    match item.standing {
        Standing::Ended if failed(item) => ("✗", Some(Colour::Red)),
        Standing::Waiting => ("○", None),
        Standing::Held => ("–", Some(Colour::Dim)),
        Standing::InProgress => ("▸", Some(Colour::Blue)),
        Standing::Parked => ("?", Some(Colour::Yellow)),
        Standing::Ended => ("■", Some(Colour::Green)),
        Standing::Gone => ("·", Some(Colour::Dim)),
    }
}

/// Returns whether an item was given up.
pub(in crate::cmd) fn failed(item: &ItemView) -> bool {
    let outcome = item.reason.parse::<ItemOutcome>().ok();
    item.standing == Standing::Ended && outcome.is_some_and(|outcome| !outcome.is_success())
}

/// The number of items in each state.
pub(in crate::cmd) fn counts(view: &BacklogView) -> String {
    let words = [
        (Standing::Ended, "ended"),
        (Standing::Waiting, "to do"),
        (Standing::Parked, "for you"),
        (Standing::Held, "held"),
    ];
    let count = |standing| view.items.iter().filter(|item| item.standing == standing).count();
    let parts = words.map(|(standing, word)| (count(standing), word));
    parts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| format!("{count} {word}"))
        .collect::<Vec<_>>()
        .join(", ")
}

pub(in crate::cmd) fn mode(mode: Mode) -> &'static str {
    match mode {
        Mode::Watch => "watches the backlog",
        Mode::Drain => "works through the backlog",
        Mode::Once => "works on one item",
    }
}

/// The current step of an item, and how far its plan is.
fn doing(doing: &DoingView, plans: &[PlanView]) -> String {
    let session = doing.session.as_ref().map(|session| {
        let heard = session.doing.as_deref().map(|heard| format!("  {}", plain(heard))).unwrap_or_default();
        format!("  {} {}{heard}", session.agent, age(session.since))
    });
    let plan = plans.iter().find(|plan| Some(plan.id) == doing.plan_run);
    let tasks = plan.map(|plan| {
        let done = plan.tasks.iter().filter(|task| is_done(task.status)).count();
        format!("  {done} of {} tasks", plan.tasks.len())
    });
    let more = [tasks, session].map(Option::unwrap_or_default).concat();
    format!("{}  {}  {}{more}", doing.item, doing.step, age(doing.since))
}

/// The reasons why nothing is begun.
fn obstacles(view: &BacklogView) -> Vec<String> {
    holds(view.hold.as_ref(), None).into_iter().chain(view.away.as_deref().map(plain)).collect()
}

/// For the foot of a window: what is done now, the plan that is carried out if it is the only one, what comes next.
pub(in crate::cmd) fn progress(view: &BacklogView, plans: &[PlanView], rows: usize, columns: usize) -> Vec<Row> {
    let empty = view.items.is_empty() && view.doing.is_empty();
    let counts = if empty { "nothing in it yet".to_owned() } else { counts(view) };
    let head = format!("{}  {counts}  {}  {}", mode(view.mode), age(view.created), view.used.cost());
    let mut picture = picture::head("═", columns, vec![(head, Some(Colour::Bold))]);
    picture.extend(obstacles(view).into_iter().map(|text| vec![(text, Some(Colour::Yellow))]));
    if empty {
        picture.push(vec![("`posse auto new defect TITLE` makes an item".to_owned(), Some(Colour::Dim))]);
    }
    for now in &view.doing {
        picture.push(vec![("▸ ".into(), Some(Colour::Blue)), (doing(now, plans), None)]);
    }
    // One row stays free for the cursor.
    let room = rows.saturating_sub(picture.len() + 1);
    picture.truncate(rows.saturating_sub(1).max(2));
    if let ([plan], [_]) = (plans, view.doing.as_slice()) {
        // It leaves a row for the cursor itself.
        picture.extend(plan::live::picture(plan, jiff::Timestamp::now(), room + 1, columns));
        return picture;
    }
    let first = |standing| view.items.iter().filter(move |item| item.standing == standing);
    for item in first(Standing::Parked).chain(first(Standing::Waiting)).chain(first(Standing::Held)).take(room) {
        let (sign, colour) = mark(item);
        let text = format!("{}  {}", item.item, plain(item.title.as_deref().unwrap_or_default()));
        let why = if item.standing == Standing::Waiting { String::new() } else { format!("  {}", plain(&item.reason)) };
        picture.push(vec![(format!("{sign} "), colour), (text, None), (why, Some(Colour::Dim))]);
    }
    picture
}

/// The state of a backlog: what is done now, and its items.
pub(in crate::cmd) fn status(view: &BacklogView, plans: &[PlanView], ui: &Ui) -> String {
    let mut text = String::new();
    text.extend(view.away.iter().map(|away| format!("{}\n", ui.paint(&plain(away), Colour::Yellow))));
    for now in &view.doing {
        text.push_str(&format!("now: {}\n", doing(now, plans)));
        let plan = plans.iter().find(|plan| Some(plan.id) == now.plan_run);
        text.extend(plan.map(|plan| format!("     `posse run show {}`\n", plan.file)));
    }
    if !view.items.is_empty() {
        text.push_str(&ui.table(&["", "ITEM", "COST", ""], view.items.iter().map(item_cells)));
    }
    text
}

fn item_cells(item: &ItemView) -> Vec<Cell> {
    let (sign, colour) = mark(item);
    vec![
        Cell::new(sign, colour),
        Cell::new(item.item.as_str(), None),
        Cell::new(item.cost.as_str(), None),
        Cell::new(item.reason.as_str(), colour.filter(|_| item.standing != Standing::InProgress)),
    ]
}

/// An item, with every decision about it.
pub(super) fn why(why: &WhyView, ui: &Ui) -> String {
    let item = &why.item;
    let (sign, colour) = mark(item);
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

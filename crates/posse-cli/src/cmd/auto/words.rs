//! The journal of a pipeline in words.

use posse_api::{AutoEntry, AutoJournalView};
use posse_core::auto::words::Event;
use posse_core::plan::machine::StopHow;
use posse_core::turn::Level;

use crate::ui::{Colour, Ui, plain};

/// One entry as a line, with its end; `None` for what only posse itself needs to know.
pub(super) fn line(entry: &AutoJournalView, ui: &Ui) -> Option<String> {
    let (text, colour) = text(&entry.entry)?;
    let time = entry.at.to_zoned(jiff::tz::TimeZone::system()).strftime("%T").to_string();
    let text: Vec<String> = text.lines().map(plain).collect();
    let text = text.join(&format!("\n{}", " ".repeat(10)));
    let text = colour.map_or_else(|| text.clone(), |colour| ui.paint(&text, colour));
    Some(format!("{}  {text}\n", ui.paint(&time, Colour::Dim)))
}

fn text(entry: &AutoEntry) -> Option<(String, Option<Colour>)> {
    match entry {
        AutoEntry::Created { spec } => Some((format!("pipeline {} in {}", spec.id, spec.directory), None)),
        AutoEntry::Launched { id, agent, profile, model, .. } => {
            let model = model.as_ref().map(|model| format!(", {model}")).unwrap_or_default();
            Some((format!("{}: {agent} ({profile}{model})", id.item), None))
        }
        AutoEntry::Said { level, item, text } => {
            let about = item.as_ref().map(|item| format!("{item}: ")).unwrap_or_default();
            let colour = match level {
                Level::Detail => None,
                Level::Info => Some(Colour::Green),
                Level::Warning => Some(Colour::Yellow),
            };
            Some((format!("{about}{text}"), colour))
        }
        AutoEntry::Happened { event } => match event.as_ref() {
            Event::Stop(StopHow::AfterTask) => Some(("stopping when what runs is done".into(), Some(Colour::Yellow))),
            Event::Stop(StopHow::Now) => Some(("stopping now".into(), Some(Colour::Yellow))),
            Event::Retry { item } => Some((format!("{item}: from the beginning"), None)),
            // The rest is told by the notices that follow from it.
            _ => None,
        },
        AutoEntry::Closed => None,
    }
}

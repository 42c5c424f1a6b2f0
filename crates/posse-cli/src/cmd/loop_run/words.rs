//! A run in words.

use posse_api::{LoopJournalView, RunView};
use posse_core::run::{Entry, RunStatus, Step, StepOutcome, Stop};
use posse_core::turn::Level;

use crate::ui::{Colour, Ui, plain};

/// One entry of the journal, as a line with its end; `None` for what only posse itself needs to know.
pub(crate) fn line(entry: &LoopJournalView, ui: &Ui) -> Option<String> {
    let (text, colour) = text(&entry.entry)?;
    let time = entry.at.to_zoned(jiff::tz::TimeZone::system()).strftime("%T").to_string();
    let text: Vec<String> = text.lines().map(plain).collect();
    let text = text.join(&format!("\n{}", " ".repeat(10)));
    let text = colour.map_or_else(|| text.clone(), |colour| ui.paint(&text, colour));
    Some(format!("{}  {text}\n", ui.paint(&time, Colour::Dim)))
}

fn text(entry: &Entry) -> Option<(String, Option<Colour>)> {
    let plain = |text: String| Some((text, None));
    let coloured = |text: String, colour| Some((text, Some(colour)));
    match entry {
        Entry::Created { spec } => plain(format!("run {} in {}", spec.id, spec.directory)),
        Entry::TerminalReady { role, terminal } => plain(format!("{role} is terminal {terminal}")),
        Entry::TerminalLost { role, why } => coloured(format!("the {role} is not there: {why}"), Colour::Yellow),
        Entry::TurnBegun { turn, key, attempt, .. } if *attempt > 1 => {
            plain(format!("turn {turn}: {key} (try {attempt})"))
        }
        Entry::TurnBegun { turn, key, .. } => plain(format!("turn {turn}: {key}")),
        Entry::Dispatching { stale: Some(stale), .. } => {
            plain(format!("an older answer was in the way: kept as {stale}"))
        }
        Entry::Accepting { n, cap, role, terminal, shown, .. } => {
            let shown: String = shown.iter().map(|line| format!("\n| {line}")).collect();
            coloured(
                format!("accepting a permission of {role} (terminal {terminal}), {n}/{cap}:{shown}"),
                Colour::Yellow,
            )
        }
        Entry::Accepted { why: Some(why), .. } => coloured(format!("not accepted: {why}"), Colour::Yellow),
        Entry::Answered { turn, text, .. } => plain(format!("turn {turn}: answered, {} lines", text.lines().count())),
        Entry::TurnFailed { turn, message, .. } => coloured(format!("turn {turn} failed: {message}"), Colour::Red),
        Entry::KeptLate { name } => plain(format!("an answer that came too late is kept as {name}")),
        Entry::Said { level: Level::Info, text } if text.starts_with("PASS") => coloured(text.clone(), Colour::Green),
        Entry::Said { level: Level::Info, text } if text.starts_with("FAIL") => coloured(text.clone(), Colour::Red),
        Entry::Said { level: Level::Info, text } => plain(text.clone()),
        Entry::Said { level: Level::Warning, text } => coloured(text.clone(), Colour::Yellow),
        // The turn that failed has said why.
        Entry::Stopped { stop: Stop::Turn, .. } => coloured("stopped".into(), Colour::Yellow),
        Entry::Stopped { why, .. } => coloured(format!("stopped: {why}"), Colour::Yellow),
        Entry::Resumed => plain("going on".into()),
        Entry::StepDone { step: done, outcome } => {
            let name = step(*done);
            match outcome {
                StepOutcome::Done(text) => plain(format!("{name}: done: {text}")),
                StepOutcome::Skipped(text) => coloured(format!("{name}: skipped: {text}"), Colour::Yellow),
                StepOutcome::Failed(text) => coloured(format!("{name}: failed: {text}"), Colour::Red),
            }
        }
        _ => None,
    }
}

/// What comes after PASS, as people call it.
pub(crate) fn step(step: Step) -> &'static str {
    match step {
        Step::OpenspecArchive => "openspec archive",
        Step::GitCommit => "git commit",
    }
}

/// How it ended, or stands.
pub(crate) fn ending(view: &RunView) -> String {
    let took = view.changed.duration_since(view.created).as_secs().max(0);
    let took = format!("{}:{:02} min", took / 60, took % 60);
    let word = match view.status {
        RunStatus::Passed => "PASS",
        RunStatus::Failed => "FAIL",
        status => status.as_str(),
    };
    let turns = view.turns;
    format!("{word} in round {}, {turns} turns, {took}. Answers are in {}", view.round, view.archive)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What happened after PASS is told with its text, and a failure is seen.
    #[test]
    fn what_came_after_pass_is_told() {
        let rows = [
            (Step::GitCommit, StepOutcome::Done("committed".into()), "git commit: done: committed", None),
            (Step::GitCommit, StepOutcome::Failed("no".into()), "git commit: failed: no", Some(Colour::Red)),
            (
                Step::OpenspecArchive,
                StepOutcome::Skipped("none".into()),
                "openspec archive: skipped: none",
                Some(Colour::Yellow),
            ),
        ];
        for (step, outcome, words, colour) in rows {
            assert_eq!(text(&Entry::StepDone { step, outcome }), Some((words.to_owned(), colour)));
        }
    }
}

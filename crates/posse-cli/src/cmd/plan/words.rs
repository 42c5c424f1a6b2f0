//! The journal of a plan's run in words.

use posse_api::{PlanEntry, PlanJournalView};
use posse_core::plan::budget::Total;
use posse_core::plan::gates::GateVerdict;
use posse_core::plan::machine::{Event, MergeResult, Part, PlanCheck, RunId, StopHow};
use posse_core::plan::outcome::Outcome;
use posse_core::plan::verdict::Verdict;
use posse_core::turn::Level;

use crate::ui::{Colour, Ui, plain};

/// So many values of a flag are shown.
const VALUES: usize = 8;

/// One entry as a line, with its end; `None` for what only posse itself needs to know.
/// `used` is what all sessions so far have used.
pub(in crate::cmd) fn line(entry: &PlanJournalView, used: &mut Total, ui: &Ui) -> Option<String> {
    let cost = cost(&entry.entry, used);
    let (text, colour) = text(&entry.entry)?;
    let text = format!("{text}{}", cost.unwrap_or_default());
    let time = entry.at.to_zoned(jiff::tz::TimeZone::system()).strftime("%T").to_string();
    let text: Vec<String> = text.lines().map(plain).collect();
    let text = text.join(&format!("\n{}", " ".repeat(10)));
    let text = colour.map_or_else(|| text.clone(), |colour| ui.paint(&text, colour));
    Some(format!("{}  {text}\n", ui.paint(&time, Colour::Dim)))
}

fn text(entry: &PlanEntry) -> Option<(String, Option<Colour>)> {
    match entry {
        PlanEntry::Created { spec } => Some((format!("run {} of {}", spec.id, spec.file), None)),
        PlanEntry::Launched { run, agent, profile, model, attempt, .. } => {
            let model = model.as_ref().map(|model| format!(", {model}")).unwrap_or_default();
            let more = match (run.part, attempt) {
                (Part::Validation { .. }, _) => " looks at it".to_owned(),
                (Part::Work, 2..) => format!(", attempt {attempt}"),
                (Part::Work, _) => String::new(),
            };
            Some((format!("{}: {agent} ({profile}{model}){more}", task(run)), None))
        }
        PlanEntry::Refused { run, denials } => {
            let denials: Vec<String> = denials.iter().map(ToString::to_string).collect();
            Some((format!("{}: refused: {}", task(run), denials.join(", ")), Some(Colour::Yellow)))
        }
        PlanEntry::Happened { event } => happened(event),
        PlanEntry::Said { level: Level::Detail, .. } => None,
        PlanEntry::Said { level: Level::Info, text } => Some((text.clone(), Some(Colour::Green))),
        PlanEntry::Said { level: Level::Warning, text } => Some((text.clone(), Some(Colour::Yellow))),
        PlanEntry::Closed { .. } => None,
    }
}

/// Flags as far as somebody wants to read them: of long lists the beginning.
pub(in crate::cmd) fn flags(flags: &[String], agent: &str) -> String {
    let (mut shown, mut values, mut left_out) = (Vec::new(), 0, 0);
    for flag in flags {
        values = if flag.starts_with("--") { 0 } else { values + 1 };
        match values > VALUES {
            true => left_out += 1,
            false => shown.push(flag.as_str()),
        }
    }
    let more = format!(" … and {left_out} more; `posse plan flags {agent}` explains all");
    format!("{}{}", shown.join(" "), if left_out > 0 { &more } else { "" })
}

/// What a session cost, and all of them so far.
fn cost(entry: &PlanEntry, used: &mut Total) -> Option<String> {
    let PlanEntry::Happened { event } = entry else { return None };
    let (Event::SessionEnded { usage, .. } | Event::ValidatorEnded { usage, .. }) = &**event else { return None };
    if usage.no_session {
        return None;
    }
    used.add_usage(usage);
    let mut one = Total::default();
    one.add_usage(usage);
    Some(format!(" ({}; {} so far)", one.cost(), used.cost()))
}

fn task(run: &RunId) -> String {
    format!("task {}", run.task)
}

fn happened(event: &Event) -> Option<(String, Option<Colour>)> {
    let yellow = |text: String| Some((text, Some(Colour::Yellow)));
    match event {
        Event::AreaFailed { run, why } => yellow(format!("{}: no work area: {why}", task(run))),
        Event::SessionEnded { run, outcome, .. } => {
            let task = task(run);
            match outcome {
                Outcome::Done(report) => Some((format!("{task}: says it is done: {}", report.message), None)),
                Outcome::Interrupted => yellow(format!("{task}: its session was ended")),
                Outcome::Limited(hold) => yellow(format!("{task}: {}", hold.reason)),
                Outcome::Infra(failure) => yellow(format!("{task}: {} (costs no attempt)", failure.message)),
                Outcome::Failed(failure) => yellow(format!("{task}: {}", failure.message)),
                // The notice says what it asks.
                Outcome::Suspended { .. } => None,
            }
        }
        Event::ValidatorEnded { run, judgement, .. } => {
            let word = match judgement.verdict {
                Verdict::Pass => "PASS",
                Verdict::Warn => "WARN",
                Verdict::Fail => "FAIL",
                Verdict::Error => "no verdict",
            };
            Some((format!("{}: {word}", task(run)), None))
        }
        Event::GatesEnded { run, failed: None } => Some((format!("{}: checks pass", task(run)), None)),
        Event::GatesEnded { run, failed: Some(gate) } => {
            yellow(format!("{}: check {} failed: {}", task(run), gate.gate, gate.message))
        }
        Event::GatesNotRun { run, why } => yellow(format!("{}: its work could not be checked: {why}", task(run))),
        Event::GatesStopped { run } => yellow(format!("{}: its checks were ended", task(run))),
        Event::MergeEnded { run, result } => match result {
            MergeResult::Merged { commits } => {
                let what =
                    if commits.len() == 1 { "1 commit".to_owned() } else { format!("{} commits", commits.len()) };
                Some((format!("{}: merged, {what}", task(run)), None))
            }
            MergeResult::Conflict { paths } => yellow(format!("{}: conflicts in {}", task(run), paths.join(", "))),
            MergeResult::RedTogether(gate) => {
                yellow(format!("{}: check {} fails on the merged result: {}", task(run), gate.gate, gate.message))
            }
            MergeResult::Stopped => yellow(format!("{}: the checks of the merged result were ended", task(run))),
            // The notice says it.
            MergeResult::NotNow { .. } => None,
        },
        Event::PlanChecked { checks } => {
            let said = checks.iter().map(|check| format!("check {} of the whole plan: {}", check.gate, check.verdict));
            let green = |check: &PlanCheck| matches!(check.verdict, GateVerdict::Green);
            let colour = (!checks.iter().all(green)).then_some(Colour::Yellow);
            Some((said.collect::<Vec<_>>().join("; "), colour))
        }
        Event::PlanCheckStopped => yellow("the checks of the whole plan were ended".into()),
        Event::PlanEdited { .. } => Some(("the plan was edited".into(), None)),
        Event::Stop(StopHow::AfterTask) => yellow("stopping when what runs is done".into()),
        Event::Stop(StopHow::Now) => yellow("stopping now".into()),
        Event::Answered { task, .. } => Some((format!("task {task}: answered"), None)),
        Event::Retry { task } => Some((format!("task {task}: from the beginning"), None)),
        Event::Taken { run, name, held_by } => yellow(format!("{}: waits for {name}, which {held_by} has", task(run))),
        Event::Started | Event::AreaReady { .. } | Event::Time | Event::Others(_) | Event::TryNow => None,
    }
}

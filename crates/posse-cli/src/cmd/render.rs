//! The journals of runs as lines, for the loop, plans and backlogs.

use jiff::Timestamp;
use posse_api::{AutoEntry, PlanEntry, RunView};
use posse_core::auto::words::Event as BacklogEvent;
use posse_core::plan::budget::Total;
use posse_core::plan::gates::GateVerdict;
use posse_core::plan::machine::{Event, GateFailure, MergeResult, Part, PlanCheck, RunId, StopHow};
use posse_core::plan::outcome::Outcome;
use posse_core::plan::verdict::Verdict;
use posse_core::run::{Entry, RunStatus, Step, StepOutcome, Stop};
use posse_core::turn::Level;

use super::tail::{RunEntry, TailItem, TailNews};
use super::transcript::{Extent, SessionTranscript};
use crate::ui::{Colour, Ui, plain};

/// The maximum number of values of a flag that are shown.
const VALUES: usize = 8;

/// A text and its colour.
type Painted = (String, Option<Colour>);

/// Renders what is new in a run.
pub(super) struct RunRenderer {
    own: SessionTranscript,
    /// The sessions of an item's plans, one line per event: `posse plan log` has the rest.
    of_plans: SessionTranscript,
    /// What the sessions shown so far have used.
    used: Total,
}

impl RunRenderer {
    pub(super) fn new(extent: Extent) -> Self {
        let own = SessionTranscript::new(extent);
        Self { own, of_plans: SessionTranscript::new(Extent::Lines), used: Total::default() }
    }

    /// Returns whole lines; `None` for what only posse itself needs.
    pub(super) fn render(&mut self, item: &TailItem, ui: &Ui) -> Option<String> {
        let entry = match &item.news {
            TailNews::Said(said) if item.plan_run.is_some() => {
                return self.of_plans.render(&said.session, &said.line, ui);
            }
            TailNews::Said(said) => return self.own.render(&said.session, &said.line, ui),
            TailNews::Entry(entry) => entry,
        };
        let (text, colour) = match entry {
            RunEntry::Loop(entry) => loop_text(&entry.entry)?,
            RunEntry::Backlog(entry) => backlog_text(&entry.entry)?,
            RunEntry::Plan(entry) => {
                let cost = cost(&entry.entry, &mut self.used).unwrap_or_default();
                let (text, colour) = plan_text(&entry.entry)?;
                (text + &cost, colour)
            }
        };
        Some(line(entry.at(), &text, colour, ui))
    }
}

fn line(at: Timestamp, text: &str, colour: Option<Colour>, ui: &Ui) -> String {
    let time = at.to_zoned(jiff::tz::TimeZone::system()).strftime("%T").to_string();
    let text: Vec<String> = text.lines().map(plain).collect();
    let text = text.join(&format!("\n{}", " ".repeat(10)));
    let text = colour.map_or_else(|| text.clone(), |colour| ui.paint(&text, colour));
    format!("{}  {text}\n", ui.paint(&time, Colour::Dim))
}

fn plan_text(entry: &PlanEntry) -> Option<Painted> {
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
        PlanEntry::Happened { event } => plan_event_text(event),
        PlanEntry::Said { level: Level::Detail, .. } => None,
        PlanEntry::Said { level: Level::Info, text } => Some((text.clone(), Some(Colour::Green))),
        PlanEntry::Said { level: Level::Warning, text } => Some((text.clone(), Some(Colour::Yellow))),
        PlanEntry::Closed { .. } => None,
    }
}

/// Returns flags for people; long lists are cut.
pub(super) fn flags(flags: &[String], agent: &str) -> String {
    let (mut shown, mut values, mut left_out) = (Vec::new(), 0, 0);
    for flag in flags {
        values = if flag.starts_with("--") { 0 } else { values + 1 };
        if values > VALUES {
            left_out += 1;
        } else {
            shown.push(flag.as_str());
        }
    }
    let more = format!(" … and {left_out} more; `posse plan flags {agent}` explains all");
    format!("{}{}", shown.join(" "), if left_out > 0 { &more } else { "" })
}

/// Returns the cost of the session that ended here, and of all so far.
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

fn plan_event_text(event: &Event) -> Option<Painted> {
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

fn backlog_text(entry: &AutoEntry) -> Option<Painted> {
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
            BacklogEvent::Stop(StopHow::AfterTask) => {
                Some(("stopping when what runs is done".into(), Some(Colour::Yellow)))
            }
            BacklogEvent::Stop(StopHow::Now) => Some(("stopping now".into(), Some(Colour::Yellow))),
            BacklogEvent::Retry { item } => Some((format!("{item}: from the beginning"), None)),
            // The rest is told by the notices that follow from it.
            _ => None,
        },
        AutoEntry::Closed => None,
    }
}

fn loop_text(entry: &Entry) -> Option<Painted> {
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

/// The name of a step after PASS.
pub(super) fn step(step: Step) -> &'static str {
    match step {
        Step::OpenspecArchive => "openspec archive",
        Step::GitCommit => "git commit",
    }
}

/// How a run of the loop ended, or stands.
pub(super) fn ending(view: &RunView) -> String {
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

/// Returns what an entry has beyond its line.
pub(super) fn details(entry: &RunEntry) -> String {
    if let Some(session) = entry.session() {
        return format!("flags: {}", flags(session.flags, session.agent));
    }
    let RunEntry::Plan(entry) = entry else { return String::new() };
    let output = |gate: &GateFailure| gate.output.trim_end().to_owned();
    match &entry.entry {
        PlanEntry::Happened { event } => match &**event {
            Event::SessionEnded { outcome: Outcome::Failed(failure) | Outcome::Infra(failure), .. } => {
                failure.output.clone().unwrap_or_default()
            }
            Event::ValidatorEnded { judgement, .. } => judgement.findings.join("\n"),
            Event::GatesEnded { failed: Some(gate), .. } => output(gate),
            Event::MergeEnded { result: MergeResult::RedTogether(gate), .. } => output(gate),
            Event::MergeEnded { result: MergeResult::Merged { commits }, .. } => commits.join("\n"),
            _ => String::new(),
        },
        _ => String::new(),
    }
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
            assert_eq!(loop_text(&Entry::StepDone { step, outcome }), Some((words.to_owned(), colour)));
        }
    }
}

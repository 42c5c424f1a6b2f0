//! The journals of runs as lines, for the loop, plans and backlogs.

use posse_api::{AutoSpec, EntryView, LoopView, RunEntry};
use posse_core::auto::messages::Event as BacklogEvent;
use posse_core::engine::StopHow;
use posse_core::plan::budget::Total;
use posse_core::plan::gates::GateVerdict;
use posse_core::plan::machine::{self, Event, GateFailure, MergeResult, Part, PlanCheck};
use posse_core::plan::outcome::Outcome;
use posse_core::plan::verdict::Verdict;
use posse_core::run::{Entry, RunStatus, Step, StepOutcome, Stop};
use posse_core::turn::Level;

use super::tail::{TailItem, TailNews, about};
use super::transcript::{Extent, SessionTranscript};
use crate::ui::{Colour, Ui, clock, plain, took};

/// The maximum number of values of a flag that are shown.
const VALUES: usize = 8;

type ColouredText = (String, Option<Colour>);

/// Renders what is new in a run.
pub(super) struct RunRenderer {
    own: SessionTranscript,
    /// The sessions of an item's plans, one line per event: `posse run log` has the rest.
    of_plans: SessionTranscript,
    /// The usage of the sessions shown so far.
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
            TailNews::Said { session, line, .. } => {
                let transcript = if item.plan_run.is_some() { &mut self.of_plans } else { &mut self.own };
                return transcript.render(session, line, ui);
            }
            TailNews::Entry(entry) => entry,
        };
        let (text, colour) = match &entry.entry {
            EntryView::Loop(entry) => loop_text(entry)?,
            EntryView::Plan(RunEntry::Happened { event }) => {
                let cost = cost(event, &mut self.used).unwrap_or_default();
                let (text, colour) = plan_event_text(event)?;
                (text + &cost, colour)
            }
            EntryView::Plan(entry) => {
                entry_text(entry, |spec| format!("run {} of {}", spec.id, spec.file), attempt_text)?
            }
            EntryView::Backlog(RunEntry::Happened { event }) => match &**event {
                BacklogEvent::Stop(how) => stop_text(*how)?,
                BacklogEvent::Retry { .. } => say("from the beginning")?,
                // Notices report all other events.
                _ => return None,
            },
            EntryView::Backlog(entry) => {
                let begun = |spec: &AutoSpec| format!("pipeline {} in {}", spec.id, spec.directory);
                entry_text(entry, begun, |_, _| String::new())?
            }
        };
        let about = match (&entry.entry, about(&entry.entry)) {
            (_, None) => String::new(),
            (EntryView::Plan(_), Some(task)) => format!("task {task}: "),
            (_, Some(item)) => format!("{item}: "),
        };
        let text: Vec<String> = format!("{about}{text}").lines().map(plain).collect();
        let text = ui.paint(&text.join("\n          "), colour);
        Some(format!("{}  {text}\n", ui.paint(&clock(entry.at), Colour::Dim)))
    }
}

fn say(text: impl Into<String>) -> Option<ColouredText> {
    Some((text.into(), None))
}

fn warn(text: impl Into<String>) -> Option<ColouredText> {
    Some((text.into(), Some(Colour::Yellow)))
}

/// Returns the text of an entry that is no event. `begun` formats a start, `more` the details of a session.
fn entry_text<S, I, N>(
    entry: &RunEntry<S, I, N>,
    begun: impl Fn(&S) -> String,
    more: impl Fn(&N, Option<u32>) -> String,
) -> Option<ColouredText> {
    match entry {
        RunEntry::Created { spec } => say(begun(spec)),
        RunEntry::Launched { id, agent, profile, model, attempt, .. } => {
            let model = model.as_ref().map(|model| format!(", {model}")).unwrap_or_default();
            say(format!("{agent} ({profile}{model}){}", more(id, *attempt)))
        }
        RunEntry::Refused { denials, .. } => {
            let denials: Vec<String> = denials.iter().map(ToString::to_string).collect();
            warn(format!("refused: {}", denials.join(", ")))
        }
        RunEntry::Said { level: Level::Detail, .. } | RunEntry::Happened { .. } | RunEntry::Closed { .. } => None,
        RunEntry::Said { level: Level::Info, text, .. } => Some((text.clone(), Some(Colour::Green))),
        RunEntry::Said { level: Level::Warning, text, .. } => warn(text),
    }
}

fn attempt_text(id: &machine::RunId, attempt: Option<u32>) -> String {
    match (id.part, attempt) {
        (Part::Validation { .. }, _) => " looks at it".to_owned(),
        (Part::Work, Some(attempt @ 2..)) => format!(", attempt {attempt}"),
        (Part::Work, _) => String::new(),
    }
}

/// Returns flags for people; long lists are cut.
pub(in crate::cmd) fn flags(flags: &[String], agent: &str) -> String {
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
fn cost(event: &Event, used: &mut Total) -> Option<String> {
    let (Event::SessionEnded { usage, .. } | Event::ValidatorEnded { usage, .. }) = event else { return None };
    if usage.no_session {
        return None;
    }
    used.add_usage(usage);
    let mut one = Total::default();
    one.add_usage(usage);
    Some(format!(" ({}; {} so far)", one.cost(), used.cost()))
}

fn plan_event_text(event: &Event) -> Option<ColouredText> {
    match event {
        Event::AreaFailed { why, .. } => warn(format!("no work area: {why}")),
        Event::SessionEnded { outcome, .. } => match outcome {
            Outcome::Done(report) => say(format!("says it is done: {}", report.message)),
            Outcome::Interrupted => warn("its session was ended"),
            Outcome::Limited(hold) => warn(&hold.reason),
            Outcome::Infra(failure) => warn(format!("{} (costs no attempt)", failure.message)),
            Outcome::Failed(failure) => warn(&failure.message),
            // The notice contains the question.
            Outcome::Suspended { .. } => None,
        },
        Event::ValidatorEnded { judgement, .. } => say(match judgement.verdict {
            Verdict::Pass => "PASS",
            Verdict::Warn => "WARN",
            Verdict::Fail => "FAIL",
            Verdict::Error => "no verdict",
        }),
        Event::GatesEnded { failed: None, .. } => say("checks pass"),
        Event::GatesEnded { failed: Some(gate), .. } => warn(format!("check {} failed: {}", gate.gate, gate.message)),
        Event::GatesNotRun { why, .. } => warn(format!("its work could not be checked: {why}")),
        Event::GatesStopped { .. } => warn("its checks were ended"),
        Event::MergeEnded { result, .. } => match result {
            MergeResult::Merged { commits } if commits.len() == 1 => say("merged, 1 commit"),
            MergeResult::Merged { commits } => say(format!("merged, {} commits", commits.len())),
            MergeResult::Conflict { paths } => warn(format!("conflicts in {}", paths.join(", "))),
            MergeResult::RedTogether(gate) => {
                warn(format!("check {} fails on the merged result: {}", gate.gate, gate.message))
            }
            MergeResult::Stopped => warn("the checks of the merged result were ended"),
            // The notice reports it.
            MergeResult::NotNow { .. } => None,
        },
        Event::PlanChecked { checks } => {
            let said = checks.iter().map(|check| format!("check {} of the whole plan: {}", check.gate, check.verdict));
            let said = said.collect::<Vec<_>>().join("; ");
            let green = |check: &PlanCheck| matches!(check.verdict, GateVerdict::Green);
            if checks.iter().all(green) { say(said) } else { warn(said) }
        }
        Event::PlanCheckStopped => warn("the checks of the whole plan were ended"),
        Event::PlanEdited { .. } => say("the plan was edited"),
        Event::Stop(how) => stop_text(*how),
        Event::Answered { .. } => say("answered"),
        Event::Retry { .. } => say("from the beginning"),
        Event::Taken { name, held_by, .. } => warn(format!("waits for {name}, which {held_by} has")),
        Event::Started
        | Event::AreaReady { .. }
        | Event::Time
        | Event::Others(_)
        | Event::TryNow
        | Event::FileBehind { .. } => None,
    }
}

fn stop_text(how: StopHow) -> Option<ColouredText> {
    warn(match how {
        StopHow::AfterTask => "stopping when what runs is done",
        StopHow::Now => "stopping now",
    })
}

fn loop_text(entry: &Entry) -> Option<ColouredText> {
    let red = |text: String| Some((text, Some(Colour::Red)));
    match entry {
        Entry::Created { spec } => say(format!("run {} in {}", spec.id, spec.directory)),
        Entry::TerminalReady { role, terminal } => say(format!("{role} is terminal {terminal}")),
        Entry::TerminalLost { role, why } => warn(format!("the {role} is not there: {why}")),
        Entry::TurnBegun { turn, key, attempt, .. } if *attempt > 1 => {
            say(format!("turn {turn}: {key} (try {attempt})"))
        }
        Entry::TurnBegun { turn, key, .. } => say(format!("turn {turn}: {key}")),
        Entry::Dispatching { stale: Some(stale), .. } => {
            say(format!("an older answer was in the way: kept as {stale}"))
        }
        Entry::Accepting { n, cap, role, terminal, shown, .. } => {
            let shown: String = shown.iter().map(|line| format!("\n| {line}")).collect();
            warn(format!("accepting a permission of {role} (terminal {terminal}), {n}/{cap}:{shown}"))
        }
        Entry::Accepted { why: Some(why), .. } => warn(format!("not accepted: {why}")),
        Entry::Answered { turn, text, .. } => say(format!("turn {turn}: answered, {} lines", text.lines().count())),
        Entry::TurnFailed { turn, message, .. } => red(format!("turn {turn} failed: {message}")),
        Entry::KeptLate { name } => say(format!("an answer that came too late is kept as {name}")),
        Entry::Said { level: Level::Info, text } if text.starts_with("PASS") => {
            Some((text.clone(), Some(Colour::Green)))
        }
        Entry::Said { level: Level::Info, text } if text.starts_with("FAIL") => red(text.clone()),
        Entry::Said { level: Level::Info, text } => say(text),
        Entry::Said { level: Level::Warning, text } => warn(text),
        // The failed turn has reported the reason.
        Entry::Stopped { stop: Stop::Turn, .. } => warn("stopped"),
        Entry::Stopped { why, .. } => warn(format!("stopped: {why}")),
        Entry::Resumed => say("going on"),
        Entry::StepDone { step: done, outcome } => {
            let name = step(*done);
            match outcome {
                StepOutcome::Done(text) => say(format!("{name}: done: {text}")),
                StepOutcome::Skipped(text) => warn(format!("{name}: skipped: {text}")),
                StepOutcome::Failed(text) => red(format!("{name}: failed: {text}")),
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

/// The last line about a run of the loop.
pub(in crate::cmd) fn ending(view: &LoopView) -> String {
    let took = took(view.changed.duration_since(view.created).as_secs());
    let word = match view.status {
        RunStatus::Passed => "PASS",
        RunStatus::Failed => "FAIL",
        status => status.as_str(),
    };
    let turns = view.turns;
    format!("{word} in round {}, {turns} turns, {took}. Answers are in {}", view.round, view.files)
}

/// Returns what an entry has beyond its line.
pub(super) fn details(entry: &EntryView) -> String {
    let event = match entry {
        EntryView::Plan(RunEntry::Launched { agent, flags: given, .. })
        | EntryView::Backlog(RunEntry::Launched { agent, flags: given, .. }) => {
            return format!("flags: {}", flags(given, agent));
        }
        EntryView::Plan(RunEntry::Happened { event }) => event,
        _ => return String::new(),
    };
    let output = |gate: &GateFailure| gate.output.trim_end().to_owned();
    match &**event {
        Event::SessionEnded { outcome: Outcome::Failed(failure) | Outcome::Infra(failure), .. } => {
            failure.output.clone().unwrap_or_default()
        }
        Event::ValidatorEnded { judgement, .. } => judgement.findings.join("\n"),
        Event::GatesEnded { failed: Some(gate), .. } => output(gate),
        Event::MergeEnded { result: MergeResult::RedTogether(gate), .. } => output(gate),
        Event::MergeEnded { result: MergeResult::Merged { commits }, .. } => commits.join("\n"),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Steps after PASS are shown with their texts, failures in red.
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

//! What was measured, for people: docs/conformance.md.

use std::fmt::Write as _;
use std::path::Path;

use posse_sim::conformance::{ConformanceAgent, cases};

use super::run::{ConformanceOutcome, artefact_name};
use super::score::{DIALOG_LAG, GUARD, Lag, NEAR, RIGHT, RIGHT_NEAR};
use super::subject::SUBJECTS;
use super::truth::Millis;
use crate::bench::report::Samples;

const COMMAND: &str = "cargo run --release -p posse-testkit --bin conformance -- --write";

/// The runs that were kept, in the order of the report. Those of scenarios that are gone are left out.
pub fn kept(artefacts: &Path) -> std::io::Result<Vec<ConformanceOutcome>> {
    let mut outcomes = Vec::new();
    for subject in SUBJECTS {
        for scenario in cases(subject.maker) {
            match std::fs::read(artefacts.join(artefact_name(subject, &scenario, "json"))) {
                Ok(json) => outcomes.extend(serde_json::from_slice::<ConformanceOutcome>(&json).ok()),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(outcomes)
}

pub fn line(outcome: &ConformanceOutcome) -> String {
    let score = &outcome.score;
    let mark = if outcome.is_green() { "ok  " } else { "FAIL" };
    let name = format!("{} {}", outcome.subject.name(), outcome.scenario);
    let lags: Vec<Millis> = score.lags.iter().map(|lag| lag.ms).collect();
    let most = lags.iter().max().copied().unwrap_or_default();
    let near = format!("{}/{} near changes", score.right_near, score.total_near);
    let line = format!("{mark} {name:<48} {}/{}, {near}, lag ≤ {most} ms", score.right, score.total);
    std::iter::once(line).chain(outcome.problems()).collect::<Vec<_>>().join("; ")
}

/// The whole document.
///
/// `note` is what else there is to say about the machine.
pub fn document(outcomes: &[ConformanceOutcome], machine: &str, date: &str, note: &str) -> String {
    let mut text = format!(
        "# Conformance\n\n\
         Is the status right? Real agents, talking to scripted models, and what posse told about them. The truth comes from\n\
         the model server's log, the keys sent, processes, and a plain text per dialog; never from our own rules.\n\n\
         - **right**: of the statuses sampled 20 times a second, except {GUARD} ms around each change of the truth.\n\
         - **near**: the share of right samples at most {} s away from a change of the truth, so that quiet time does not count.\n\
         - **false**: statuses told when nothing within {GUARD} ms made them right, however short; false ends (idle or\n  \
           completed in the middle of a turn) in brackets.\n\
         - **lag**: from a change of the truth to a right status; **dialog**: from a dialog's text on the screen to its\n  \
           options in the status. Who looks for the text does so some milliseconds after it was drawn, as posse does.\n\n\
         A scenario is green (✓) with at least {:.1} % right, {:.0} % near changes, no false end, every dialog seen within {DIALOG_LAG} ms, every error seen.\n\n\
         `{COMMAND}` plays everything (an hour and\n\
         a half; `--agent` and `--scenario` choose, `--no-run` only writes) and makes this page of all runs that\n\
         are kept in `target/conformance`, with their recordings and timelines. `./test --full` plays it too.\n\n\
         Measured {date} on {machine}. {note}\n\n{}",
        NEAR / 1000,
        RIGHT * 100.0,
        RIGHT_NEAR * 100.0,
        replays(outcomes),
    );
    text.push_str("## In all\n\n| agent | played | green | right | near | false (ends) | lag p50 / p99 | dialog p50 / p99 |\n|---|---|---|---|---|---|---|---|\n");
    for group in groups(outcomes) {
        let green = group.iter().filter(|outcome| outcome.is_green()).count();
        let (name, total) = (group[0].subject.name(), group.len());
        let _ = writeln!(text, "| {name} | {} | {green}/{total} | {} |", played(&group), figures(&group));
    }
    for group in groups(outcomes) {
        let required = if group[0].subject.required { "" } else { " (reported only)" };
        let _ = write!(
            text,
            "\n## {}{required}\n\n| scenario | | right | near | false (ends) | lag p50 / p99 | dialog p50 / p99 |\n|---|---|---|---|---|---|---|\n",
            group[0].subject.name(),
        );
        for outcome in &group {
            let mark = if outcome.is_green() { "✓" } else { "✗" };
            let _ = writeln!(text, "| {} | {mark} | {} |", outcome.scenario, figures(&[outcome]));
        }
        if let Some(about) = ConformanceAgent::of(group[0].subject.maker).about {
            let _ = writeln!(text, "\n{about}");
        }
        for outcome in group.iter().filter(|outcome| !outcome.is_green()) {
            let _ = write!(text, "\n- `{}`: {}", outcome.scenario, outcome.problems().join("; "));
        }
        text.push('\n');
    }
    while text.ends_with("\n\n") {
        text.pop();
    }
    text
}

fn played(outcomes: &[&ConformanceOutcome]) -> String {
    let times = || outcomes.iter().map(|outcome| outcome.at);
    let text = |at: jiff::Timestamp| at.strftime("%d %b %H:%M").to_string();
    match (times().min(), times().max()) {
        (Some(first), Some(last)) => format!("{} – {}", text(first), last.strftime("%H:%M")),
        _ => "–".into(),
    }
}

fn replays(outcomes: &[ConformanceOutcome]) -> String {
    let replayed = outcomes.iter().filter_map(|outcome| outcome.replayed.as_ref());
    format!(
        "Every run is recorded, and every recording was replayed with `posse explain --recording`: {} of {} gave the same statuses\n\
         in the same order as live. The end of the process is not in a recording and is left out of the comparison.\n\n",
        replayed.clone().filter(|replayed| replayed.is_alike()).count(),
        replayed.count()
    )
}

/// By agent, in the order in which they came.
fn groups(outcomes: &[ConformanceOutcome]) -> Vec<Vec<&ConformanceOutcome>> {
    let mut groups: Vec<Vec<&ConformanceOutcome>> = Vec::new();
    for outcome in outcomes {
        match groups.iter_mut().find(|group| group[0].subject.name() == outcome.subject.name()) {
            Some(group) => group.push(outcome),
            None => groups.push(vec![outcome]),
        }
    }
    groups
}

fn figures(outcomes: &[&ConformanceOutcome]) -> String {
    let scores = || outcomes.iter().map(|outcome| &outcome.score);
    let (right, total) = (scores().map(|score| score.right).sum::<usize>(), scores().map(|s| s.total).sum::<usize>());
    let share = if total == 0 { 0.0 } else { right as f64 / total as f64 * 100.0 };
    let near = scores().map(|score| score.right_near).sum::<usize>() as f64
        / scores().map(|score| score.total_near).sum::<usize>().max(1) as f64;
    let wrong = scores().map(|score| score.wrong.len()).sum::<usize>();
    let ends = scores().flat_map(|score| &score.wrong).filter(|wrong| wrong.is_end()).count();
    let lags = |dialog: bool| {
        let fits = |lag: &&Lag| lag.dialog == dialog;
        let lags = scores().flat_map(|score| &score.lags).filter(fits).map(|lag| lag.ms as f64);
        let text = |lags: Samples| format!("{} / {} ms", lags.median(), lags.percentile(99.0));
        Samples::new(lags.collect()).map_or_else(|| "–".to_owned(), text)
    };
    format!(
        "{right}/{total} ({share:.1} %) | {:.1} % | {wrong} ({ends}) | {} | {}",
        near * 100.0,
        lags(false),
        lags(true)
    )
}

//! What was measured, for people: docs/conformance.md.

use std::fmt::Write as _;
use std::path::Path;

use posse_sim::conformance::{ConformanceAgent, cases};

use super::run::ConformanceOutcome;
use super::score::{DIALOG_LAG, GUARD, Lag, NEAR, RIGHT, RIGHT_NEAR};
use super::subject::{ConformanceSubject, SUBJECTS};
use crate::bench::report::Samples;

const COMMAND: &str = "cargo run --release -p posse-testkit --bin conformance -- --write";

/// The runs of a subject.
type PlayedRuns = (ConformanceSubject, Vec<ConformanceOutcome>);

/// Returns the runs that were kept, in the order of the report. Runs of scenarios that no longer exist are left out.
pub fn kept(artefacts: &Path) -> std::io::Result<Vec<PlayedRuns>> {
    let mut runs = Vec::new();
    for subject in SUBJECTS {
        let mut outcomes = Vec::new();
        for scenario in cases(subject.maker) {
            match std::fs::read(artefacts.join(subject.artefact_name(&scenario, "json"))) {
                Ok(json) => outcomes.extend(serde_json::from_slice::<ConformanceOutcome>(&json).ok()),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        if !outcomes.is_empty() {
            runs.push((subject, outcomes));
        }
    }
    Ok(runs)
}

pub fn line(outcome: &ConformanceOutcome) -> String {
    let score = &outcome.score;
    let mark = if outcome.is_green() { "ok  " } else { "FAIL" };
    let name = format!("{} {}", outcome.subject, outcome.scenario);
    let most = score.lags.iter().map(|lag| lag.ms).max().unwrap_or_default();
    let near = format!("{}/{} near changes", score.right_near, score.total_near);
    let line = format!("{mark} {name:<48} {}/{}, {near}, lag ≤ {most} ms", score.right, score.total);
    std::iter::once(line).chain(outcome.problems()).collect::<Vec<_>>().join("; ")
}

/// The whole document.
///
/// `note` is what else there is to say about the machine.
pub fn document(runs: &[PlayedRuns], machine: &str, date: &str, note: &str) -> String {
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
        replays(runs),
    );
    text.push_str("## In all\n\n| agent | played | green | right | near | false (ends) | lag p50 / p99 | dialog p50 / p99 |\n|---|---|---|---|---|---|---|---|\n");
    for (subject, outcomes) in runs {
        let green = outcomes.iter().filter(|outcome| outcome.is_green()).count();
        let (name, total, played) = (subject.name(), outcomes.len(), played(outcomes));
        let _ = writeln!(text, "| {name} | {played} | {green}/{total} | {} |", figures(outcomes));
    }
    for (subject, outcomes) in runs {
        let required = if subject.required { "" } else { " (reported only)" };
        let _ = write!(
            text,
            "\n## {}{required}\n\n| scenario | | right | near | false (ends) | lag p50 / p99 | dialog p50 / p99 |\n|---|---|---|---|---|---|---|\n",
            subject.name(),
        );
        for outcome in outcomes {
            let mark = if outcome.is_green() { "✓" } else { "✗" };
            let _ = writeln!(text, "| {} | {mark} | {} |", outcome.scenario, figures(std::slice::from_ref(outcome)));
        }
        if let Some(about) = ConformanceAgent::of(subject.maker).about {
            let _ = writeln!(text, "\n{about}");
        }
        for outcome in outcomes.iter().filter(|outcome| !outcome.is_green()) {
            let _ = write!(text, "\n- `{}`: {}", outcome.scenario, outcome.problems().join("; "));
        }
        text.push('\n');
    }
    while text.ends_with("\n\n") {
        text.pop();
    }
    text
}

fn played(outcomes: &[ConformanceOutcome]) -> String {
    let times = || outcomes.iter().map(|outcome| outcome.at);
    let text = |at: jiff::Timestamp| at.strftime("%d %b %H:%M").to_string();
    match (times().min(), times().max()) {
        (Some(first), Some(last)) => format!("{} – {}", text(first), last.strftime("%H:%M")),
        _ => "–".into(),
    }
}

fn replays(runs: &[PlayedRuns]) -> String {
    let replayed = runs.iter().flat_map(|(_, outcomes)| outcomes).filter_map(|outcome| outcome.replayed.as_ref());
    format!(
        "Every run is recorded, and every recording was replayed with `posse explain --recording`: {} of {} gave the same statuses\n\
         in the same order as live. The end of the process is not in a recording and is left out of the comparison.\n\n",
        replayed.clone().filter(|replayed| replayed.is_alike()).count(),
        replayed.count()
    )
}

fn figures(outcomes: &[ConformanceOutcome]) -> String {
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
        let lags = Samples::new(lags.collect());
        if lags.median().is_nan() {
            "–".to_owned()
        } else {
            format!("{} / {} ms", lags.median(), lags.percentile(99.0))
        }
    };
    format!(
        "{right}/{total} ({share:.1} %) | {:.1} % | {wrong} ({ends}) | {} | {}",
        near * 100.0,
        lags(false),
        lags(true)
    )
}

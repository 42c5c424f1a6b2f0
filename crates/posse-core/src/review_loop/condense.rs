//! Shortens one agent's answer for the next agent. An agent that receives every answer in full loses focus and costs
//! more.

use super::config::Condensation;
use super::lines::{section, value_of};

/// Placeholder for blank feedback, which would read as if there were nothing to do.
const NOTHING: &str = "(It wrote nothing.)";

/// Returns feedback that is passed on whole, or its placeholder.
fn uncondensed(text: &str, rules: &Condensation) -> Option<String> {
    let is_blank = text.trim().is_empty();
    let whole = if is_blank { NOTHING } else { text };
    (is_blank || !rules.condense_review_feedback).then(|| whole.to_owned())
}

/// Returns the notes of a review for the agent that acts on them.
pub(super) fn review_notes(text: &str, rules: &Condensation) -> String {
    if let Some(whole) = uncondensed(text, rules) {
        return whole;
    }
    let lines: Vec<&str> = text.split('\n').collect();
    or_head(&lines, &section(&lines, &["REVIEW_NOTES"], &[]), rules.max_feedback_lines)
}

/// Returns the tester's observations for the programmer of the next round.
pub(super) fn test_evidence(text: &str, rules: &Condensation) -> String {
    if let Some(whole) = uncondensed(text, rules) {
        return whole;
    }
    let lines: Vec<&str> = text.split('\n').collect();
    let evidence = section(&lines, &["EVIDENCE"], &[]);
    let outside = &lines[..lines.len() - evidence.len()];
    let mut found: Vec<&str> = outside.iter().copied().filter(|line| value_of(line, "RESULT").is_some()).collect();
    found.extend(evidence);
    or_head(&lines, &found, rules.max_test_evidence_lines)
}

/// Returns the parts of the analyst's summary that the programmer needs.
pub(super) fn analyst_handoff(text: &str, rules: &Condensation) -> String {
    let wanted: [&[&str]; 3] = [&["OpenSpec artifacts", "Artifacts"], &["Implementation notes"], &["Risks"]];
    cross_phase(text, &wanted, &["Downstream impact"], rules)
}

/// Returns the parts of the programmer's summary that the tester, or the programmer of the next round, needs.
pub(super) fn programmer_handoff(text: &str, rules: &Condensation) -> String {
    let wanted: [&[&str]; 2] = [&["Files changed"], &["Behavior implemented", "Behaviour implemented"]];
    cross_phase(text, &wanted, &["Known limitations"], rules)
}

/// Returns the wanted sections in this order. Each ends at the next known heading, wanted or not.
fn cross_phase(text: &str, wanted: &[&[&str]], unwanted: &[&str], rules: &Condensation) -> String {
    if !rules.condense_cross_phase {
        return text.to_owned();
    }
    let lines: Vec<&str> = text.split('\n').collect();
    let one = |titles: &&[&str]| {
        let others = wanted.iter().filter(|other| other != &titles).copied().flatten();
        let until: Vec<&str> = others.chain(unwanted).copied().collect();
        section(&lines, titles, &until)
    };
    let found: Vec<&str> = wanted.iter().flat_map(one).collect();
    or_head(&lines, &found, rules.max_cross_phase_lines)
}

/// Returns the beginning of the sections found or, if they are blank, of the whole text.
fn or_head(whole: &[&str], found: &[&str], max: u32) -> String {
    let blank = found.iter().all(|line| line.trim().is_empty());
    head(if blank { whole } else { found }, max)
}

fn head(lines: &[&str], max: u32) -> String {
    let filled = lines.iter().rposition(|line| !line.trim().is_empty()).map_or(0, |last| last + 1);
    let max = max as usize;
    if filled <= max {
        return lines[..filled].join("\n");
    }
    let cut = filled - max;
    let note = format!("[{cut} {} cut]", if cut == 1 { "line" } else { "lines" });
    lines[..max].iter().copied().chain([note.as_str()]).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests;

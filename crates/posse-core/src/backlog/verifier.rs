//! What the session is told that verifies an item after its plan was carried out, and what its verdict means.

use std::fmt::Write as _;

use super::edit::Verification;
use super::planner::{item_block, numbered};
use super::{Item, Kind};
use crate::plan::prompt::{data, heading, role};
use crate::plan::report::Report;
use crate::plan::verdict::{self, Judgement, Verdict};

/// What the verifier's report calls its task.
pub const TASK: &str = "verify";

#[derive(Clone, Copy, Debug)]
pub struct VerifierBrief<'a> {
    pub role: &'a str,
    pub item: &'a Item,
    pub item_path: &'a str,
    pub item_text: &'a str,
    /// Which files changed, and how much.
    pub diff: &'a str,
    /// Commands with which posse checked the work: name, command.
    pub gates: &'a [(String, String)],
    pub nonce: &'a str,
}

pub fn build(brief: &VerifierBrief<'_>) -> String {
    let mut out = String::new();
    role(&mut out, brief.role);
    item_block(&mut out, brief.item, brief.item_path, brief.item_text, "Verify this");
    points_block(&mut out, brief.item);
    if !brief.item.log.is_empty() {
        heading(&mut out, "What verifications before found");
        out.push_str("Look at each of these again (data):\n\n");
        for entry in &brief.item.log {
            out.push_str(&data(&format!("Verification #{}\n{}", entry.number, entry.text)));
        }
    }
    heading(&mut out, "What was changed");
    out.push_str("By others, to get it done (data; that something was changed does not mean that it works):\n\n");
    out.push_str(&data(brief.diff));
    steps(&mut out, brief);
    report(&mut out, brief.nonce);
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

/// What is to be looked at, point by point: symptoms that must be gone, criteria that must hold.
pub fn points(item: &Item) -> Vec<(String, String)> {
    let mut points = Vec::new();
    if item.kind == Kind::Defect {
        let symptoms = item.symptoms();
        let told = if symptoms.is_empty() { vec![item.section("summary").unwrap_or(&item.lead)] } else { symptoms };
        for (i, text) in told.into_iter().filter(|text| !text.trim().is_empty()).enumerate() {
            points.push((
                format!("S{}", i + 1),
                format!("gone: {}", text.split_whitespace().collect::<Vec<_>>().join(" ")),
            ));
        }
    }
    points.extend(numbered(item));
    points
}

fn points_block(out: &mut String, item: &Item) {
    heading(out, "What to look at");
    out.push_str("Symptoms that must be gone and criteria that must hold, each with the id to use for it (data):\n\n");
    let lines: Vec<String> = points(item).iter().map(|(id, text)| format!("{id}: {text}")).collect();
    out.push_str(&data(&lines.join("\n")));
}

fn steps(out: &mut String, brief: &VerifierBrief<'_>) {
    heading(out, "What to do");
    out.push_str(
        "Check every point yourself: read the code it depends on and the tests that cover it, and write down what you read and \
         what follows from it. Change nothing and repair nothing, even if it looks easy. You can run commands that only read, and \
         no others.\n\n",
    );
    if !brief.gates.is_empty() {
        let gates: Vec<String> = brief.gates.iter().map(|(name, command)| format!("`{command}` ({name})")).collect();
        let _ = writeln!(
            out,
            "posse ran the project's checks on this work. Each passed, or fails just as it did before the work: {}.\n",
            gates.join(", ")
        );
    }
}

fn report(out: &mut String, nonce: &str) {
    heading(out, "How to report");
    out.push_str(
        "For every point write one finding: `[PASS]`, `[WARN]` or `[FAIL]`, the id, what you read, what follows. What you could not check \
         is a `[WARN]`. End your last message with this JSON, in a fence of its own:\n\n",
    );
    let _ = writeln!(
        out,
        "```json\n{{\"task_id\": \"{TASK}\", \"nonce\": \"{nonce}\", \"status\": \"completed\", \"message\": \"…\", \"verdict\": \"PASS\", \
         \"findings\": [\"[PASS] S1: …\"], \"evidence\": \"what you read and saw\", \"requirements_checked\": 0, \"requirements_met\": 0}}\n```\n"
    );
    out.push_str(
        "`verdict` is PASS only if no symptom is left and every criterion holds, FAIL if one is left or does not hold, WARN if \
         everything you could check is right but something could not be checked. Without a verdict the verification counts as not done.\n",
    );
}

/// The verdict of a verifier, as far as its own findings bear it out. A PASS that leaves points out is none.
pub fn judge(report: Option<&Report>, last_message: &str, item: &Item) -> Judgement {
    let mut judgement = verdict::judge(report, last_message);
    let missing: Vec<String> = points(item)
        .into_iter()
        .map(|(id, _)| id)
        .filter(|id| !judgement.findings.iter().any(|finding| mentions(finding, id)))
        .collect();
    if judgement.verdict == Verdict::Pass && !missing.is_empty() {
        judgement.verdict = Verdict::Warn;
        judgement.findings.push(format!("[WARN] nothing is said about {}", missing.join(", ")));
    }
    judgement
}

/// `AC1` is not in `AC12`.
fn mentions(text: &str, id: &str) -> bool {
    text.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| word.eq_ignore_ascii_case(id))
}

/// The entry for the log of the item.
pub fn entry(number: u32, at: &str, judgement: &Judgement) -> Verification {
    let mark = |finding: &String| {
        ["[PASS]", "[WARN]", "[FAIL]"]
            .iter()
            .find_map(|mark| Some((*mark == "[PASS]", finding.trim().strip_prefix(mark)?.trim().to_owned())))
    };
    let open = |finding: &&String| !finding.trim_start().starts_with("[PASS]");
    Verification {
        number,
        at: at.to_owned(),
        verdict: judgement.verdict,
        checks: judgement.findings.iter().filter_map(mark).collect(),
        findings: judgement.findings.iter().filter(open).cloned().collect(),
    }
}

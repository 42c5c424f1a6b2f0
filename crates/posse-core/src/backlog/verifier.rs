//! The prompt of the session that verifies an item after its plan was carried out, and the meaning of its verdict.

use minijinja::{Value, context};
use serde::Serialize;

use super::planner::{item_values, lines, numbered};
use super::{Item, Kind};
use crate::plan::report::Report;
use crate::plan::verdict::{self, Judgement, Verdict};
use crate::prompts::PromptTemplates;
use crate::visible::words_of;

/// The task id in the verifier's report.
pub const TASK: &str = "verify";

#[derive(Clone, Copy, Debug, Serialize)]
pub struct VerifierBrief<'a> {
    pub role: &'a str,
    pub item: &'a Item,
    pub item_path: &'a str,
    pub item_text: &'a str,
    /// The changed files, and the size of each change.
    pub diff: &'a str,
    /// Commands with which posse checked the work: name, command.
    pub gates: &'a [(String, String)],
    pub nonce: &'a str,
}

impl VerifierBrief<'_> {
    pub fn render(&self, prompts: &PromptTemplates) -> String {
        let values = context! {
            role => self.role.trim(),
            item => item_values(self.item, self.item_path, self.item_text),
            points => lines(points(self.item)),
            ..Value::from_serialize(self)
        };
        prompts.render("verifier", &values) + "\n"
    }
}

/// Returns the points to check: symptoms that must be gone, criteria that must hold.
pub fn points(item: &Item) -> Vec<(String, String)> {
    let mut points = Vec::new();
    if item.kind == Kind::Defect {
        let symptoms = item.symptoms();
        let told = if symptoms.is_empty() { vec![item.section("summary").unwrap_or(&item.lead)] } else { symptoms };
        for (i, text) in told.into_iter().filter(|text| !text.trim().is_empty()).enumerate() {
            points.push((format!("S{}", i + 1), format!("gone: {}", words_of(text))));
        }
    }
    points.extend(numbered(item));
    points
}

/// Returns a verifier's verdict, as far as its findings support it. A PASS that leaves points out does not count.
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

/// Returns whether a text names this id. `AC1` is not in `AC12`.
fn mentions(text: &str, id: &str) -> bool {
    text.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| word.eq_ignore_ascii_case(id))
}

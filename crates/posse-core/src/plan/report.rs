//! A session's report on its own work: a JSON file at its own path, or the last JSON block of its last message.
//!
//! Each run has a nonce. A report without the current nonce is ignored.

use serde::{Deserialize, Serialize};

use super::TaskId;

/// The status in a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Said {
    #[default]
    Completed,
    Failed,
    Suspended,
    /// The required state existed already.
    NoChangeNeeded,
}

/// A report as written.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    pub task_id: String,
    pub nonce: Option<String>,
    pub status: Said,
    pub message: String,
    pub question: Option<String>,
    pub question_context: Option<String>,
    /// Findings outside the task. `slack_messages` in old reports.
    #[serde(default, alias = "slack_messages")]
    pub reports: Vec<Aside>,
    /// From here on: fields of validators only.
    pub verdict: Option<String>,
    #[serde(default)]
    pub findings: Vec<String>,
    pub evidence: Option<serde_json::Value>,
    pub requirements_checked: Option<u32>,
    pub requirements_met: Option<u32>,
}

impl Report {
    /// Returns a report of completed work.
    pub fn completed(task_id: impl Into<String>, message: impl Into<String>) -> Self {
        Self { task_id: task_id.into(), message: message.into(), ..Self::default() }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Aside {
    #[serde(rename = "type")]
    pub kind: String,
    pub title: String,
    #[serde(default)]
    pub description: String,
    pub file_path: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoReport {
    #[error("no report: the session wrote no result")]
    Missing,
    #[error("bad report: {0}")]
    Bad(String),
}

/// Returns the report of a session: from its report file, or else from its last message.
pub fn find(file: Option<&str>, last_message: Option<&str>, task: &TaskId, nonce: &str) -> Result<Report, NoReport> {
    match file.map(|text| read(text, task, nonce)) {
        Some(found) if found != Err(NoReport::Missing) => found,
        _ => read(last_message.and_then(last_block).ok_or(NoReport::Missing)?, task, nonce),
    }
}

fn read(text: &str, task: &TaskId, nonce: &str) -> Result<Report, NoReport> {
    #[derive(Deserialize)]
    struct Whose {
        nonce: Option<String>,
    }
    let whose: Whose = serde_json::from_str(text).map_err(|error| NoReport::Bad(format!("it is not JSON: {error}")))?;
    if whose.nonce.is_some_and(|other| other != nonce) {
        return Err(NoReport::Missing);
    }
    let report: Report = serde_json::from_str(text).map_err(|error| NoReport::Bad(error.to_string()))?;
    if report.task_id != task.as_str() {
        return Err(NoReport::Bad(format!("it is about task {}, not {task}", report.task_id)));
    }
    let asks = report.question.as_deref().is_some_and(|question| !question.trim().is_empty());
    if report.status == Said::Suspended && !asks {
        return Err(NoReport::Bad("it says suspended and asks nothing".into()));
    }
    Ok(report)
}

/// Returns the last fenced JSON object of a message, or the message itself if it is one.
fn last_block(message: &str) -> Option<&str> {
    let mut last = None;
    let mut open: Option<usize> = None;
    let mut at = 0;
    for line in message.split_inclusive('\n') {
        if line.trim_start().starts_with("```") {
            match open.take() {
                Some(start) => last = Some(message[start..at].trim()).filter(|block| block.starts_with('{')).or(last),
                None => open = Some(at + line.len()),
            }
        }
        at += line.len();
    }
    last.or_else(|| Some(message.trim()).filter(|whole| whole.starts_with('{') && whole.ends_with('}')))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"{"task_id":"1.1","nonce":"N","status":"completed","message":"done","plan_modified":true}"#;

    fn found(file: Option<&str>, message: Option<&str>) -> Result<Said, NoReport> {
        find(file, message, &"1.1".parse().unwrap(), "N").map(|report| report.status)
    }

    #[test]
    fn whose_report_it_is() {
        let fenced = format!("All done.\n```json\n{{\"a\": 1}}\n```\nand\n```json\n{GOOD}\n```\n");
        let (old, of_nobody) = (GOOD.replace("N", "OLD"), GOOD.replace(r#""nonce":"N","#, ""));
        for (name, file, message, expected) in [
            ("the file", Some(GOOD), None, Ok(Said::Completed)),
            ("T11: a read-only agent's last message", None, Some(fenced.as_str()), Ok(Said::Completed)),
            ("the message is the report", None, Some(GOOD), Ok(Said::Completed)),
            ("T40: a file of an older run", Some(old.as_str()), None, Err(NoReport::Missing)),
            ("a file of an older run, and a message", Some(old.as_str()), Some(GOOD), Ok(Said::Completed)),
            ("a file without nonce", Some(of_nobody.as_str()), None, Ok(Said::Completed)),
            ("nothing at all", None, Some("All PASS, done."), Err(NoReport::Missing)),
            ("only a quoted example", None, Some("```\nnot json\n```"), Err(NoReport::Missing)),
        ] {
            assert_eq!(found(file, message), expected, "{name}");
        }
        for (name, text, why) in [
            ("T41: another task", GOOD.replace("1.1", "1.2"), "it is about task 1.2, not 1.1"),
            ("no status", r#"{"task_id":"1.1","nonce":"N","message":"x"}"#.into(), "missing field `status`"),
            ("an unknown status", GOOD.replace("completed", "great"), "unknown variant `great`"),
            ("cut off", GOOD[..40].to_owned(), "it is not JSON"),
            ("a question that is none", GOOD.replace("completed", "suspended"), "asks nothing"),
        ] {
            let error = found(Some(&text), None).unwrap_err().to_string();
            assert!(error.starts_with("bad report: ") && error.contains(why), "{name}: {error}");
        }
    }
}

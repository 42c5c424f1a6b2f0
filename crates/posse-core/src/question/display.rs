//! Describes a question: the subject comes from the report if there is one, and the model's own words are marked.

use super::{QuestionEvidence, REPORT_TEXT};
use crate::audit::TAIL_LINES;
use crate::detect::Dialog;

/// The maximum number of characters of a command in a single line.
const ONE_LINE: usize = 160;

impl Dialog {
    /// Returns the tool and the command, path or change, as far as known.
    fn asked(&self) -> Option<(&str, &str)> {
        match &self.report {
            Some(report) => Some((&report.tool, &report.text)),
            None => self.tool.as_deref().zip(self.subject.as_deref()),
        }
    }

    /// Returns the subject in one line: the tool and the start of the command, with a mark if there is more.
    pub fn about(&self) -> String {
        let about = match self.asked() {
            Some((tool, text)) => format!("{tool} {}", one_line(text)),
            None => self.question.clone(),
        };
        match self.warning() {
            Some(warning) => format!("{about} ({warning})"),
            None => about,
        }
    }

    /// Returns a short warning about the evidence, or `None` if there is no objection.
    pub fn warning(&self) -> Option<&'static str> {
        match self.evidence {
            QuestionEvidence::ScreenOnly | QuestionEvidence::Confirmed | QuestionEvidence::ConfirmedPart => None,
            QuestionEvidence::ScreenCut => Some("the screen shows only a part of it"),
            QuestionEvidence::Differs(_) => Some("the agent's report and its screen differ"),
            QuestionEvidence::Silent(_) => Some("the agent did not report it"),
        }
    }

    /// Returns all known facts: the whole command or change, then the model's words, marked, then the objections.
    pub fn in_full(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if let Some((tool, text)) = self.asked() {
            lines.push(format!("{tool}:"));
            lines.extend(text.lines().map(|line| format!("  {line}")));
        }
        if let Some(words) = self.report.as_ref().map_or(&self.caption, |report| &report.caption) {
            let words: Vec<&str> = words.lines().collect();
            lines.push(format!("the agent calls it: \"{}\"", words.join(" ")));
        }
        if let Some(report) = self.report.as_ref().filter(|report| report.text.len() > REPORT_TEXT) {
            lines.push(format!("{} bytes in all, SHA-256 {}", report.input_bytes, report.input_sha256));
        }
        lines.extend(self.evidence.allows_automatic_yes().err().map(|why| format!("warning: {why}")));
        if let (QuestionEvidence::Differs(_), Some(_)) = (self.evidence, &self.report) {
            lines.push("its screen shows:".to_owned());
            let shown = std::iter::once(&self.title).chain(&self.detail).chain([&self.question]);
            lines.extend(shown.filter(|row| !row.is_empty()).map(|row| format!("  {row}")));
        }
        lines
    }

    /// Returns a few lines that show what is accepted: the command rather than the options.
    pub fn snippet(&self) -> Vec<String> {
        let Some((tool, text)) = self.asked() else { return Vec::new() };
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        let room = TAIL_LINES - 1;
        let shown = if lines.len() > room { room - 1 } else { lines.len() };
        let mut snippet: Vec<String> = lines[..shown].iter().map(|line| cut(line)).collect();
        match snippet.first_mut() {
            Some(first) => *first = format!("{tool} {first}"),
            None => snippet.push(tool.to_owned()),
        }
        if lines.len() > shown {
            snippet.push(format!("… {} more lines, {} characters in all", lines.len() - shown, text.chars().count()));
        }
        snippet.push(self.question.clone());
        snippet
    }
}

fn cut(line: &str) -> String {
    let length = line.chars().count();
    if length <= ONE_LINE {
        return line.to_owned();
    }
    let beginning: String = line.chars().take(ONE_LINE).collect();
    format!("{beginning}… ({length} characters)")
}

fn one_line(text: &str) -> String {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let first = cut(lines.next().unwrap_or_default());
    match lines.count() {
        0 => first,
        1 => format!("{first} … (+1 line, {} characters)", text.chars().count()),
        more => format!("{first} … (+{more} lines, {} characters)", text.chars().count()),
    }
}

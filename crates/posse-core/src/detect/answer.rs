//! The last answer of the agent, taken out of the text above its input field.

use regex::Regex;

use super::compile::Detector;

/// Why there is no answer in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoAnswer {
    #[error("no response from the agent is on the screen")]
    NoResponse,
    #[error("the response is empty")]
    Empty,
    #[error("no prompt follows the response: it has not ended")]
    MissingPrompt,
}

#[derive(Debug)]
pub(super) struct Answer {
    pub(super) marker: Regex,
    pub(super) marker_not: Option<Regex>,
    pub(super) followed_by: Option<Regex>,
    pub(super) stop: Option<Regex>,
    pub(super) skip_question: bool,
    pub(super) needs_stop: bool,
    pub(super) indent: usize,
}

impl Detector {
    /// The last answer in lines without escapes: history first, then the screen.
    pub fn last_answer(&self, lines: &[String]) -> Result<String, NoAnswer> {
        // The first rule that found something says what is wrong with it.
        let mut failure = NoAnswer::NoResponse;
        for rule in &self.answers {
            match rule.find(lines) {
                Ok(answer) => return Ok(answer),
                Err(NoAnswer::NoResponse) => {}
                Err(other) if failure == NoAnswer::NoResponse => failure = other,
                Err(_) => {}
            }
        }
        Err(failure)
    }
}

impl Answer {
    fn find(&self, lines: &[String]) -> Result<String, NoAnswer> {
        let start = self.start(lines).ok_or(NoAnswer::NoResponse)?;
        let stops = |line: &String| self.stop.as_ref().is_some_and(|stop| stop.is_match(line));
        let stop = (start + 1..lines.len()).find(|at| stops(&lines[*at]));
        if self.needs_stop && stop.is_none() {
            return Err(NoAnswer::MissingPrompt);
        }
        let lines = &lines[start..stop.unwrap_or(lines.len())];
        let (first, rest) = lines.split_first().ok_or(NoAnswer::NoResponse)?;
        let cut = self.marker.find(first).map_or(0, |found| found.end());
        let rest = if self.skip_question { after_paragraph(rest) } else { rest };
        let first = if self.skip_question { "" } else { first[cut..].trim() };
        let mut answer = first.to_owned();
        for line in rest {
            answer.push('\n');
            answer.push_str(self.without_indent(line).trim_end());
        }
        let answer = answer.trim_matches('\n').trim_end();
        if answer.trim().is_empty() { Err(NoAnswer::Empty) } else { Ok(answer.to_owned()) }
    }

    /// The last marker; one of a tool only where there is no other.
    fn start(&self, lines: &[String]) -> Option<usize> {
        let end = match &self.followed_by {
            Some(pattern) => lines.iter().rposition(|line| pattern.is_match(line))?,
            None => lines.len(),
        };
        let lines = &lines[..end];
        let marks = |line: &String| self.marker.is_match(line);
        let is_tool = |line: &String| self.marker_not.as_ref().is_some_and(|not| not.is_match(line));
        let spoken = lines.iter().rposition(|line| marks(line) && !is_tool(line));
        spoken.or_else(|| lines.iter().rposition(marks))
    }

    fn without_indent<'l>(&self, line: &'l str) -> &'l str {
        let blanks = line.bytes().take(self.indent).take_while(|byte| *byte == b' ').count();
        &line[blanks..]
    }
}

/// What comes after the first paragraph.
fn after_paragraph(lines: &[String]) -> &[String] {
    let filled = |line: &String| !line.trim().is_empty();
    let start = lines.iter().position(filled).unwrap_or(lines.len());
    let length = lines[start..].iter().take_while(|line| filled(line)).count();
    &lines[start + length..]
}

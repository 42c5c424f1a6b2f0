//! Extracts the agent's last answer from the text above its input field.

use super::compile::Detector;
use super::rules::AnswerRule;

impl Detector {
    /// Returns the last answer, by the first matching rule. `lines` are without escapes: history first, then the
    /// screen.
    pub fn last_answer(&self, lines: &[String]) -> Option<String> {
        let lines = self.without_scrollbar(lines);
        self.rules.answer.iter().find_map(|rule| rule.find(&lines))
    }
}

impl AnswerRule {
    fn find(&self, lines: &[String]) -> Option<String> {
        let (first, rest) = lines[self.start(lines)?..].split_first()?;
        let cut = self.marker.find(first).map_or(0, |found| found.end);
        let (first, rest) = if self.skip_question { ("", after_paragraph(rest)) } else { (&first[cut..], rest) };
        let mut answer = String::new();
        let mut ended = false;
        for (nth, line) in std::iter::once(first).chain(rest.iter().map(String::as_str)).enumerate() {
            // The row of the marker is always kept; only a prompt can follow the answer on one row.
            let stop = self.stop.as_ref().filter(|_| nth > 0 || self.needs_stop).and_then(|stop| stop.find(line));
            let text = stop.as_ref().map_or(line, |stop| if self.needs_stop { &line[..stop.start] } else { "" });
            let text = if nth == 0 { text.trim_start() } else { self.without_indent(text) };
            answer.push_str(text.trim_end());
            answer.push('\n');
            if stop.is_some() {
                ended = true;
                break;
            }
        }
        if self.needs_stop && !ended {
            return None;
        }
        let answer = answer.trim_start_matches('\n').trim_end();
        (!answer.is_empty()).then(|| answer.to_owned())
    }

    /// Returns the last marker that does not belong to a tool, which only the row below may show.
    fn start(&self, lines: &[String]) -> Option<usize> {
        let end = match &self.followed_by {
            Some(pattern) => lines.iter().rposition(|line| pattern.is_match(line))?,
            None => lines.len(),
        };
        (0..end).rev().filter(|at| self.marker.is_match(&lines[*at])).find(|at| {
            let Some(not) = &self.marker_not else { return true };
            let below = lines.get(at + 1).map_or("", String::as_str);
            !not.is_match(&format!("{}\n{below}", lines[*at]))
        })
    }

    fn without_indent<'l>(&self, line: &'l str) -> &'l str {
        let blanks = line.bytes().take(self.indent).take_while(|byte| *byte == b' ').count();
        &line[blanks..]
    }
}

/// Returns the lines after the first paragraph.
fn after_paragraph(lines: &[String]) -> &[String] {
    let filled = |line: &String| !line.trim().is_empty();
    let start = lines.iter().position(filled).unwrap_or(lines.len());
    let length = lines[start..].iter().take_while(|line| filled(line)).count();
    &lines[start + length..]
}

//! Problems in a file that a person wrote (a plan, a configuration, a prompt template), each with its span in the text.

use std::fmt;

use miette::{GraphicalReportHandler, GraphicalTheme, LabeledSpan, MietteDiagnostic, NamedSource, Report, Severity};
use serde::Serialize;
use textwrap::{WordSeparator, WordSplitter};

use crate::visible;

/// A part of a text: its bytes, and the line and column (in characters, both from 1) where it starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
pub struct TextSpan {
    pub start: usize,
    pub end: usize,
    pub line: usize,
    pub column: usize,
}

impl TextSpan {
    /// The span of these bytes of `text`.
    pub fn of_bytes(text: &str, bytes: std::ops::Range<usize>) -> Self {
        let before = text.get(..bytes.start).unwrap_or(text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        Self { start: bytes.start, end: bytes.end, line, column }
    }

    pub(crate) fn of_yaml(span: granit_parser::Span) -> Self {
        // YAML is parsed from a string, so the parser knows the bytes. It counts columns from 0.
        let bytes = span.byte_range().unwrap_or(0..0);
        Self { start: bytes.start, end: bytes.end, line: span.start.line(), column: span.start.col() + 1 }
    }
}

impl fmt::Display for TextSpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// A single error or warning.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FileProblem {
    pub at: TextSpan,
    pub message: String,
    /// How to fix it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Related spans, each with its label: the first of two equal ids, for example.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<(TextSpan, String)>,
}

impl FileProblem {
    pub fn new(at: TextSpan, message: impl Into<String>) -> Self {
        Self { at, message: message.into(), hint: None, also: Vec::new() }
    }

    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.add_hint(hint);
        self
    }

    pub(crate) fn add_hint(&mut self, hint: impl Into<String>) -> &mut Self {
        self.hint = Some(hint.into());
        self
    }

    pub(crate) fn add_span(&mut self, at: TextSpan, label: impl Into<String>) -> &mut Self {
        self.also.push((at, label.into()));
        self
    }

    /// Renders the problem as an error with an excerpt of `text`.
    pub fn error(&self, file: &str, text: &str, look: ExcerptLook) -> String {
        self.render(file, text, look, Severity::Error)
    }

    /// Renders the problem as a warning with an excerpt of `text`.
    pub fn warning(&self, file: &str, text: &str, look: ExcerptLook) -> String {
        self.render(file, text, look, Severity::Warning)
    }

    fn render(&self, file: &str, text: &str, look: ExcerptLook, severity: Severity) -> String {
        // Agents write files too. Escape sequences in them must not reach the terminal, and offsets must stay valid.
        let text = visible::same_bytes(text);
        let in_one_line = |at: &TextSpan| {
            let start = text.floor_char_boundary(at.start);
            let line = text[start..].find('\n').unwrap_or(text.len() - start);
            (start, at.end.saturating_sub(at.start).min(line))
        };
        let label = |(at, label): &(TextSpan, String)| {
            LabeledSpan::new_with_span(Some(visible::one_line(label)), in_one_line(at))
        };
        let mut labels = vec![LabeledSpan::new_primary_with_span(None, in_one_line(&self.at))];
        labels.extend(self.also.iter().map(label));
        let word = if severity == Severity::Error { "error" } else { "warning" };
        let mut excerpt = MietteDiagnostic::new(format!("{word}: {}", visible::one_line(&self.message)));
        excerpt.help = self.hint.as_deref().map(visible::one_line);
        let excerpt = excerpt.with_severity(severity).with_labels(labels);
        let excerpt = Report::new(excerpt).with_source_code(NamedSource::new(visible::one_line(file), text));
        let theme = if look.colour { GraphicalTheme::unicode() } else { GraphicalTheme::unicode_nocolor() };
        let handler = GraphicalReportHandler::new_themed(theme).with_width(look.width).with_context_lines(1);
        // A line breaks at spaces only: options and paths stay in one piece.
        let handler =
            handler.with_word_separator(WordSeparator::AsciiSpace).with_word_splitter(WordSplitter::NoHyphenation);
        let mut shown = String::new();
        // Writing to a string cannot fail, but a span outside of the text can; then only the message is shown.
        if handler.with_links(false).render_report(&mut shown, excerpt.as_ref()).is_err() {
            shown = format!("{file}:{self}\n");
        }
        shown
    }
}

impl fmt::Display for FileProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.at, self.message)?;
        for (at, label) in &self.also {
            write!(f, "; {label} at {at}")?;
        }
        match &self.hint {
            Some(hint) => write!(f, " ({hint})"),
            None => Ok(()),
        }
    }
}

/// How excerpts are rendered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExcerptLook {
    pub width: usize,
    pub colour: bool,
}

impl ExcerptLook {
    /// For messages with an unknown reader: 80 columns without colour.
    pub const PLAIN: Self = Self { width: 80, colour: false };
}

/// The errors of a file, at least one, and its warnings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
pub struct FileProblems {
    /// The name under which the file was read.
    pub file: String,
    pub problems: Vec<FileProblem>,
    pub warnings: Vec<FileProblem>,
}

impl FileProblems {
    /// Renders every error with an excerpt of the file's text.
    pub fn errors(&self, text: &str, look: ExcerptLook) -> String {
        self.problems.iter().map(|problem| problem.error(&self.file, text, look)).collect()
    }
}

impl fmt::Display for FileProblems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, problem) in self.problems.iter().enumerate() {
            if i > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{}:{problem}", self.file)?;
        }
        Ok(())
    }
}

/// The errors and warnings that were found in a file so far.
#[derive(Debug, Default)]
pub(crate) struct ProblemList {
    pub(crate) errors: Vec<FileProblem>,
    pub(crate) warnings: Vec<FileProblem>,
}

impl ProblemList {
    pub(crate) fn error(&mut self, at: TextSpan, message: impl Into<String>) -> &mut FileProblem {
        added(&mut self.errors, FileProblem::new(at, message))
    }

    pub(crate) fn warning(&mut self, at: TextSpan, message: impl Into<String>) -> &mut FileProblem {
        added(&mut self.warnings, FileProblem::new(at, message))
    }

    /// Returns what was read and the warnings, or else the errors. Both are in the order of the file.
    pub(crate) fn finish<T>(mut self, file: &str, value: Option<T>) -> Result<(T, Vec<FileProblem>), FileProblems> {
        self.errors.sort_by_key(|error| error.at.start);
        self.warnings.sort_by_key(|warning| warning.at.start);
        match value {
            Some(value) if self.errors.is_empty() => Ok((value, self.warnings)),
            _ => Err(FileProblems { file: file.to_owned(), problems: self.errors, warnings: self.warnings }),
        }
    }
}

fn added(list: &mut Vec<FileProblem>, problem: FileProblem) -> &mut FileProblem {
    list.push(problem);
    let last = list.len() - 1;
    &mut list[last]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excerpt_fits_into_80_columns_without_colour() {
        let text = format!("meta:\n  name: x\ntasks:\n  - id: 1 # {}\n  - id: 1\n", "words ".repeat(8));
        let at = |needle: &str, from: usize| {
            let start = from + text[from..].find(needle).unwrap();
            TextSpan::of_bytes(&text, start..start + needle.len())
        };
        let first = at("id: 1", 0);
        let mut problem = FileProblem::new(at("id: 1", first.end), "there are two tasks 1");
        problem.add_span(first, "first");
        problem.add_hint("give one of them another id, or run it with `--no-validation-of-ids-and-so-on`");
        let shown = problem.error("plan.yaml", &text, ExcerptLook::PLAIN);
        insta::assert_snapshot!("excerpt", shown);
        assert!(!shown.contains('\u{1b}') && shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
        assert!(problem.error("plan.yaml", &text, ExcerptLook { width: 80, colour: true }).contains('\u{1b}'));
    }

    #[test]
    fn excerpt_shows_no_control_characters_of_the_file() {
        let text = "a: \u{1b}]0;owned\u{7}\u{202e}x\n";
        let problem = FileProblem::new(TextSpan::of_bytes(text, 3..4), "no \u{1b}[31mtext").hint("\u{9b}2J");
        let shown = problem.warning("\u{1b}c.toml", text, ExcerptLook::PLAIN);
        assert!(shown.chars().all(|c| c == '\n' || !c.is_control()) && !shown.contains('\u{202e}'), "{shown:?}");
        assert!(shown.contains("owned"), "{shown}");
    }

    #[test]
    fn span_outside_of_the_text_is_no_panic() {
        for (start, end) in [(0, 0), (2, 3), (5, 900), (900, 901)] {
            let span = TextSpan { start, end, line: 1, column: 1 };
            let shown = FileProblem::new(span, "odd").error("f", "näh\n", ExcerptLook::PLAIN);
            assert!(shown.contains("odd"), "{shown}");
        }
    }
}

//! Compares a report with the screen.
//!
//! Screens wrap rows anywhere, indent them, draw borders, turn tabs into spaces and drop zero-width characters.
//! Therefore only the ink of texts is compared: the characters that leave a mark. A reported command must be complete,
//! consecutive rows of the dialog: rows of a caption, or a row that merely contains the command, do not count. If the
//! top of the dialog has scrolled off, the rows from the top on must be the end of the command.

use super::{QuestionEvidence, QuestionReport, ReportDifference};
use crate::detect::Dialog;
use crate::visible::is_unseen;

/// The minimum length of a visible part; shorter parts are ambiguous.
const PART: usize = 24;
/// The maximum number of places at which a program omits rows.
const MARKS: usize = 2;
/// The maximum number of rows of a wrapped path.
const PATH_ROWS: usize = 4;

/// Compares a report with the question on the screen.
pub fn compare(report: &QuestionReport, dialog: &Dialog) -> QuestionEvidence {
    let parts = &report.parts;
    if report.kind.is_some_and(|kind| kind != dialog.kind) {
        return QuestionEvidence::Differs(ReportDifference::Kind);
    }
    if parts.too_large {
        return QuestionEvidence::Differs(ReportDifference::TooLarge);
    }
    let tools = &parts.screen_tools;
    let tool_fits = match &dialog.tool {
        Some(tool) => tools.is_empty() || tools.contains(tool),
        // The row with its name may have scrolled off.
        None => tools.is_empty() || dialog.cut,
    };
    if !tool_fits {
        return QuestionEvidence::Differs(ReportDifference::Tool);
    }
    // Agents draw the plain yes first, as number 1. A process that draws over the dialog could swap it with an option
    // that allows more, or give it that option's number: its key would then choose that option.
    let number = |at: usize| dialog.options[at].key.as_ref().and_then(|key| key.parse::<u32>().ok());
    if dialog.accepting().is_some_and(|at| at != 0 || number(at).is_some_and(|number| number != 1)) {
        return QuestionEvidence::Differs(ReportDifference::Options);
    }
    let shown = ShownDialog::of(dialog);
    if !parts.paths.iter().all(|path| shown.has_path(path)) {
        return QuestionEvidence::Differs(ReportDifference::Path);
    }
    let mut fit = Fit::Whole;
    for text in &parts.text {
        fit = fit.min(shown.text(text));
    }
    for (before, after) in &parts.changes {
        fit = fit.min(shown.change(before, after));
    }
    let has_value = |(plain, quoted): &(String, String)| shown.all.contains(plain) || shown.all.contains(quoted);
    if !parts.values.iter().all(has_value) {
        fit = Fit::No;
    }
    // A report without comparable text proves nothing.
    let nothing =
        parts.text.is_empty() && parts.changes.is_empty() && parts.values.is_empty() && parts.paths.is_empty();
    match fit {
        _ if nothing => QuestionEvidence::Differs(ReportDifference::Input),
        Fit::Whole => QuestionEvidence::Confirmed,
        Fit::Part => QuestionEvidence::ConfirmedPart,
        Fit::No => QuestionEvidence::Differs(ReportDifference::Input),
    }
}

/// The visible share of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fit {
    No,
    Part,
    Whole,
}

/// Returns the characters of a text that leave a mark on a screen.
pub(super) fn ink(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace() && !c.is_control() && !is_unseen(*c)).collect()
}

/// Returns whether a row replaces omitted rows.
pub(crate) fn stands_for_others(row: &str) -> bool {
    let row = row.trim();
    let counts = |word: &str| {
        row.split(word)
            .next()
            .is_some_and(|before| before.len() < row.len() && before.chars().any(|c| c.is_ascii_digit()))
    };
    let marked = row.starts_with('…') || row.starts_with("...");
    (marked && (counts(" line") || counts(" more") || counts(" char")))
        || row.contains("lines hidden")
        || row.ends_with('…')
}

/// The text of a dialog, prepared for comparison.
struct ShownDialog {
    rows: Vec<String>,
    /// Rows that replace omitted ones.
    marks: Vec<usize>,
    /// The rows from the first numbered one on, without the line numbers of file views.
    lines: Vec<NumberedRow>,
    question: String,
    all: String,
    cut: bool,
}

struct NumberedRow {
    sign: RowSign,
    /// Without the number, with the sign.
    plain: String,
    /// Without both.
    text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RowSign {
    Plus,
    Minus,
    Neither,
}

impl ShownDialog {
    fn of(dialog: &Dialog) -> Self {
        let texts: Vec<&str> = std::iter::once(&dialog.title).chain(&dialog.detail).map(String::as_str).collect();
        let rows: Vec<String> = texts.iter().map(|row| ink(row)).collect();
        let marks = (0..texts.len()).filter(|at| stands_for_others(texts[*at])).collect();
        let question = ink(&dialog.question);
        let all = rows.concat() + &question;
        Self { rows, marks, lines: lines(&texts), question, all, cut: dialog.cut }
    }

    fn is_difference(&self) -> bool {
        self.lines.iter().any(|line| line.sign != RowSign::Neither)
    }

    /// Compares a text that is shown verbatim in rows of its own, with or without line numbers.
    fn text(&self, text: &str) -> Fit {
        let numbered: Vec<String> = self.lines.iter().map(|line| line.plain.clone()).collect();
        let fit = in_rows(text, &self.rows, &self.marks, self.cut).max(in_rows(text, &numbered, &[], self.cut));
        if fit == Fit::No && self.is_difference() { self.replaced(text) } else { fit }
    }

    /// Compares a replaced file, shown as a difference: remaining and added rows must be parts of the new content, in
    /// order.
    fn replaced(&self, text: &str) -> Fit {
        let mut rest = text;
        let mut added = 0;
        for line in self.lines.iter().filter(|line| line.sign != RowSign::Minus) {
            let Some(at) = rest.find(line.text.as_str()) else { return Fit::No };
            rest = &rest[at + line.text.len()..];
            added += if line.sign == RowSign::Plus { line.text.len() } else { 0 };
        }
        match added {
            0 => Fit::No,
            all if all == text.len() => Fit::Whole,
            _ => Fit::Part,
        }
    }

    /// Compares a change that is shown as a difference.
    fn change(&self, before: &str, after: &str) -> Fit {
        if !self.is_difference() || (before.is_empty() && after.is_empty()) {
            return Fit::No;
        }
        let one = |text: &str, left_out: RowSign| {
            let kept = self.lines.iter().filter(|line| line.sign != left_out);
            let shown: String = kept.map(|line| line.text.as_str()).collect();
            match () {
                () if text.is_empty() || shown.contains(text) => Fit::Whole,
                () if self.cut && starts_with_end_of(&shown, text) => Fit::Part,
                () => Fit::No,
            }
        };
        one(after, RowSign::Minus).min(one(before, RowSign::Plus))
    }

    /// Returns whether a path is shown, perhaps relative to the agent's directory or to the user's home.
    fn has_path(&self, path: &str) -> bool {
        let name = path.rsplit('/').next().unwrap_or_default().to_owned();
        if name.is_empty() {
            return false;
        }
        let fits = |shown: &str| {
            let shown = shown.trim_start_matches("../").trim_start_matches("./").trim_start_matches("~/");
            shown.ends_with(&name) && (path == shown || path.ends_with(&format!("/{shown}")))
        };
        let called = |shown: &str| shown.strip_suffix(')').and_then(|shown| Some(shown.split_once('(')?.1.to_owned()));
        let joined = |at: usize| (at..self.rows.len().min(at + PATH_ROWS)).map(move |to| self.rows[at..=to].concat());
        let mut candidates = (0..self.rows.len()).flat_map(joined);
        candidates.any(|shown| fits(&shown) || called(&shown).is_some_and(|shown| fits(&shown)))
            || (self.cut && self.question.contains(&name))
    }
}

/// Compares a text with whole consecutive rows, or with the rest of it if the dialog is cut off.
fn in_rows(text: &str, rows: &[String], marks: &[usize], cut: bool) -> Fit {
    if text.is_empty() {
        return Fit::No;
    }
    let is_text = |from: usize| {
        let mut rest = text;
        for row in &rows[from..] {
            let Some(left) = rest.strip_prefix(row.as_str()) else { return false };
            rest = left;
            if rest.is_empty() {
                return true;
            }
        }
        false
    };
    if (0..rows.len()).any(is_text) {
        return Fit::Whole;
    }
    if !cut {
        return Fit::No;
    }
    // Rows from the top on are the end of the text.
    let ends = |rows: &[String]| (1..=rows.len()).map(|to| rows[..to].concat()).rfind(|seen| text.ends_with(seen));
    let mut longest = ends(rows).map_or(0, |seen| seen.len());
    // Rows before an omission are the start of the text, rows after it the end.
    for &mark in marks.iter().filter(|mark| **mark < rows.len()).take(MARKS) {
        let begins = (0..mark).map(|from| rows[from..mark].concat()).find(|seen| text.starts_with(seen.as_str()));
        let end = ends(&rows[mark + 1..]).unwrap_or_default();
        if let Some(begins) = begins.filter(|begins| begins.len() + end.len() < text.len()) {
            longest = longest.max(begins.len() + end.len());
        }
    }
    if longest >= PART { Fit::Part } else { Fit::No }
}

/// Returns whether a view with its top cut off starts with the end of this text, or lies inside it.
fn starts_with_end_of(shown: &str, text: &str) -> bool {
    (shown.len() >= PART && text.contains(shown)) || overlap(shown.as_bytes(), text.as_bytes()) >= PART
}

/// Returns the length of the longest suffix of `text` that is a prefix of `shown`, by Knuth, Morris and Pratt: an
/// attacker may send long repetitive texts.
fn overlap(shown: &[u8], text: &[u8]) -> usize {
    let mut borders = vec![0; shown.len()];
    let step = |borders: &[usize], mut matched: usize, byte: u8| {
        while matched > 0 && (matched == shown.len() || shown[matched] != byte) {
            matched = borders[matched - 1];
        }
        matched + usize::from(shown.get(matched) == Some(&byte))
    };
    for at in 1..shown.len() {
        borders[at] = step(&borders, borders[at - 1], shown[at]);
    }
    text.iter().fold(0, |matched, byte| step(&borders, matched, *byte))
}

/// Returns the rows from the first numbered one on. Numbers count up, and some occur twice in a difference; a row
/// without a number continues the row before it.
fn lines(rows: &[&str]) -> Vec<NumberedRow> {
    let mut last: Option<u64> = None;
    let mut sign = RowSign::Neither;
    let mut lines = Vec::new();
    for row in rows {
        let row = row.trim_start();
        let digits = row.bytes().take_while(u8::is_ascii_digit).count();
        let rest = &row[digits..];
        let counts = |number: &u64| last.is_none_or(|last| *number + 1 >= last);
        let number = row[..digits].parse().ok().filter(counts);
        let Some(number) = number.filter(|_| rest.is_empty() || rest.starts_with([' ', '\t', '+', '-'])) else {
            if last.is_some() {
                lines.push(NumberedRow { sign, plain: ink(row), text: ink(row) });
            }
            continue;
        };
        last = Some(number);
        let signed = rest.strip_prefix(' ').unwrap_or(rest);
        let text;
        (sign, text) = match signed.chars().next() {
            Some('+') => (RowSign::Plus, &signed[1..]),
            Some('-') => (RowSign::Minus, &signed[1..]),
            _ => (RowSign::Neither, signed),
        };
        lines.push(NumberedRow { sign, plain: ink(signed), text: ink(text) });
    }
    lines
}

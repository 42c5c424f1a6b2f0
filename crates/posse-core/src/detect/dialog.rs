//! Dialogs: a menu with a cursor on one of its options, and its question. The meaning of an option (allow once, allow
//! more, refuse) is read from its label, never from its position.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::compile::{Detector, Pattern};
use super::engine::Sight;
use super::layout::Found;
use super::option_row;
use crate::question::{QuestionEvidence, QuestionReport, stands_for_others};
use crate::status::WaitingKind;

/// The maximum number of rows of a dialog above a menu without a frame.
const REACH: usize = 30;
/// A dialog that was cut off at the top fills the screen, with at most this many rows below it.
const ROOM_BELOW: usize = 3;
/// The maximum distance between the columns of numbered labels. Claude Code 2.1.120 with 40 columns draws ` ❯ 1. Yes`
/// above `  2.Yes, and don't ask again for`.
const AWRY: usize = 2;
/// The maximum number of rows of one option and its description.
const OPTION_ROWS: usize = 8;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Menu {
    pub rows: Range<usize>,
    /// The rows from the frame down to the first option.
    pub above: Range<usize>,
    /// The top has scrolled off: the dialog has a frame, which is not on the screen.
    pub cut: bool,
    pub options: Vec<Choice>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    pub number: Option<u32>,
    pub label: String,
    pub selected: bool,
}

/// The effect of an option.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = OptionMeaning)]
pub enum Meaning {
    /// Allows the action once.
    Accept,
    /// Allows more than this one action.
    Widen,
    Deny,
    #[default]
    Other,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = DialogOption)]
pub struct Choosable {
    pub label: String,
    pub meaning: Meaning,
    /// The key that chooses the option at once; without one the arrow keys select it.
    pub key: Option<String>,
    /// The key is only typed; Enter must follow when it is visible.
    pub then_enter: bool,
    /// True if the cursor is on the option.
    pub selected: bool,
}

/// A question on the screen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Dialog {
    /// Identifies the question, independent of the cursor.
    pub id: String,
    pub kind: WaitingKind,
    pub title: String,
    pub question: String,
    /// The subject of the question, as shown.
    pub detail: Vec<String>,
    pub tool: Option<String>,
    /// The command or the path.
    pub subject: Option<String>,
    /// The model's own words about it, if the screen shows them separately.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caption: Option<String>,
    pub options: Vec<Choosable>,
    /// The screen visibly shows only a part of the question.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
    /// The agent's report of this question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<Box<QuestionReport>>,
    /// The result of comparing the report with the screen.
    pub evidence: QuestionEvidence,
}

impl Dialog {
    /// Returns the option that allows the action once, unless there are several.
    pub fn accepting(&self) -> Option<usize> {
        self.only(Meaning::Accept)
    }

    pub fn denying(&self) -> Option<usize> {
        self.only(Meaning::Deny)
    }

    /// Returns whether the dialog has a tool but no subject. opencode draws the frame of a question before the command.
    pub fn is_half_drawn(&self) -> bool {
        self.tool.is_some() && self.subject.is_none()
    }

    pub fn selected(&self) -> Option<usize> {
        self.options.iter().position(|option| option.selected)
    }

    fn only(&self, meaning: Meaning) -> Option<usize> {
        let mut found = (0..self.options.len()).filter(|at| self.options[*at].meaning == meaning);
        found.next().filter(|_| found.next().is_none())
    }
}

/// Returns the lowest menu at or below `from`.
pub(super) fn menu(detector: &Detector, sight: &Sight<'_>, from: usize) -> Option<Menu> {
    let rules = &detector.rules.dialog;
    (from..sight.len()).rev().find_map(|row| {
        let (first, last, options) =
            column(detector, sight, row).or_else(|| Some((row, row + 1, option_row::read(detector, sight, row)?)))?;
        let frame = sight.last(from..first, &rules.frame);
        let full = from == 0 && sight.len() + ROOM_BELOW >= sight.height && !sight.row(0).trim().is_empty();
        let unframed = rules.frame.is_some() && frame.is_none() && full;
        let reach = if unframed { from } else { first.saturating_sub(REACH).max(from) };
        let top = frame.map_or(reach, |row| row + 1);
        let start = sight.last(top..first, &rules.start);
        let cut = unframed && start.is_none() && first > from;
        Some(Menu { rows: first..last, above: start.unwrap_or(top)..first, cut, options })
    })
}

/// Reads options in adjacent rows, if `row` has the cursor, or is the first option of a menu without a cursor.
fn column(detector: &Detector, sight: &Sight<'_>, row: usize) -> Option<Options> {
    let rules = &detector.rules;
    let marked = sight.hit(row, &rules.dialog.cursor);
    if !marked && !sight.hit(row, &rules.dialog.first) {
        return None;
    }
    let here = line(detector, sight.row(row))?;
    match here.choice.number {
        number if !marked && number != Some(1) => None,
        Some(number) => numbered(detector, sight, row, &here, number),
        None if sight.hit(row, &rules.layout.prompt_echo) => None,
        None => unnumbered(detector, sight, row, &here),
    }
}

/// The parts of an option's row: the mark, the number, the label, the label's column, and the column it would have with
/// a space after the number, as in the other rows.
struct Line {
    choice: Choice,
    indent: usize,
    column: usize,
}

fn line(detector: &Detector, row: &str) -> Option<Line> {
    let mut rest = row.char_indices().peekable();
    let is_space = |c: char| c == ' ' || c == '\u{a0}';
    while rest.next_if(|(_, c)| is_space(*c) || matches!(c, '│' | '┃')).is_some() {}
    let selected = rest.next_if(|(_, c)| detector.rules.dialog.cursors.contains(*c)).is_some();
    while rest.next_if(|(_, c)| is_space(*c)).is_some() {}
    let (start, _) = rest.peek().copied()?;
    let text = row[start..].trim_end_matches(|c: char| is_space(c) || matches!(c, '│' | '┃'));
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    // On narrow screens Claude Code omits the space after the number of a label that needs two rows.
    let follows = |rest: &str| rest.starts_with(|c: char| c == ' ' || c.is_uppercase());
    let number = text[..digits].parse().ok().filter(|_| text[digits..].strip_prefix('.').is_some_and(follows));
    let label = if number.is_some() { text[digits + 1..].trim_start() } else { text };
    let indent = row[..start].chars().count() + text[..text.len() - label.len()].chars().count();
    let column = indent + usize::from(number.is_some() && text.len() - label.len() == digits + 1);
    (!label.is_empty()).then(|| Line { choice: Choice { number, label: label.to_owned(), selected }, indent, column })
}

type Options = (usize, usize, Vec<Choice>);

fn numbered(detector: &Detector, sight: &Sight<'_>, row: usize, here: &Line, number: u32) -> Option<Options> {
    let same = |at: usize, wanted: u32| {
        let line = line(detector, sight.row(at))?;
        (line.choice.number == Some(wanted) && line.column.abs_diff(here.column) <= AWRY).then_some(at)
    };
    let mut starts = vec![row];
    let (mut up, mut wanted) = (row, number);
    while wanted > 1 {
        let reach = up.saturating_sub(OPTION_ROWS);
        let Some(at) = (reach..up).rev().find_map(|at| same(at, wanted - 1)) else { break };
        starts.insert(0, at);
        (up, wanted) = (at, wanted - 1);
    }
    let (mut down, mut wanted) = (row, number);
    while let Some(at) = (down + 1..sight.len().min(down + 1 + OPTION_ROWS)).find_map(|at| same(at, wanted + 1)) {
        starts.push(at);
        (down, wanted) = (at, wanted + 1);
    }
    (starts.len() >= 2).then(|| collect(detector, sight, &starts))
}

/// Reads options without numbers: they stand in adjacent rows, with their labels in one column.
fn unnumbered(detector: &Detector, sight: &Sight<'_>, row: usize, here: &Line) -> Option<Options> {
    let is_option = |at: usize| {
        line(detector, sight.row(at)).is_some_and(|line| line.column == here.column && !line.choice.selected)
    };
    let first = (0..row).rev().take_while(|at| is_option(*at)).last().unwrap_or(row);
    let last = (row + 1..sight.len()).take_while(|at| is_option(*at)).last().unwrap_or(row);
    let starts: Vec<usize> = (first..=last).collect();
    (2..=9).contains(&starts.len()).then(|| collect(detector, sight, &starts))
}

fn collect(detector: &Detector, sight: &Sight<'_>, starts: &[usize]) -> Options {
    let mut end = starts[0];
    let options = starts.iter().enumerate().filter_map(|(nth, start)| {
        let limit = starts.get(nth + 1).copied().unwrap_or_else(|| sight.len().min(start + OPTION_ROWS));
        let Line { mut choice, indent, .. } = line(detector, sight.row(*start))?;
        end = start + 1;
        // Rows indented as far as the label belong to it: a wrapped label, or a description.
        for at in start + 1..limit {
            match line(detector, sight.row(at)) {
                Some(more) if more.indent >= indent && !more.choice.selected && more.choice.number.is_none() => {
                    choice.label.push(' ');
                    choice.label.push_str(&more.choice.label);
                    end = at + 1;
                }
                _ => break,
            }
        }
        Some(choice)
    });
    let options = options.collect();
    (starts[0], end, options)
}

/// The number of rows above a question in text that describe its subject.
const TEXT_REACH: usize = 10;

/// Reads a question that is a row of text. The rows above distinguish it from the same question about something else.
pub(super) fn read_text(detector: &Detector, sight: &Sight<'_>, row: usize, kind: WaitingKind) -> Option<Dialog> {
    let rules = &detector.rules.dialog;
    let asked = rules.text.iter().find(|asked| sight.hit(row, [&asked.row]))?;
    // If dialogs start with their question, nothing above belongs to it.
    let reach = if sight.hit(row, &rules.start) { row } else { row.saturating_sub(TEXT_REACH) };
    let above = (reach..row).map(|row| sight.row(row).trim().to_owned());
    let detail: Vec<String> = above.filter(|text| !text.is_empty()).collect();
    let options = asked.options.iter().map(|option| Choosable {
        label: option.label.clone(),
        meaning: option.meaning,
        key: Some(option.key.clone()),
        then_enter: option.then_enter,
        selected: false,
    });
    let options: Vec<Choosable> = options.collect();
    // The text after the question may be an answer being typed.
    let end = asked.row.find(sight.row(row)).map_or(sight.row(row).len(), |found| found.end);
    let title = inside(&sight.row(row)[..end]).to_owned();
    let id = identity(&title, "", &detail, &options);
    Some(Dialog { id, kind, question: title.clone(), title, detail, options, ..Dialog::default() })
}

/// Reads the dialog around a menu.
pub(super) fn read(detector: &Detector, sight: &Sight<'_>, found: &Found, kind: WaitingKind) -> Option<Dialog> {
    let menu = found.menu.as_ref()?;
    let rules = &detector.rules.dialog;
    let clean = |row: usize| inside(sight.row(row)).to_owned();
    let is_text = |row: &usize| !sight.hit(*row, &rules.decoration) && !clean(*row).is_empty();
    let rows: Vec<usize> = menu.above.clone().filter(is_text).collect();
    let texts = |rows: &[usize]| rows.iter().map(|row| clean(*row)).collect::<Vec<String>>();
    let title = rows.first().map(|row| clean(*row)).unwrap_or_default();
    let begins = |row: &usize| *row == menu.above.start || !is_text(&(row - 1));
    let (question, detail) = if rows.first().is_some_and(|row| sight.hit(*row, &rules.start)) {
        let end = rows.iter().skip(1).position(begins).map_or(rows.len(), |after| after + 1);
        (texts(&rows[..end]).join(" "), texts(&rows[end..]))
    } else {
        // The question is the paragraph right above the options.
        let start = rows.iter().rposition(begins).unwrap_or(0);
        (texts(&rows[start..]).join(" "), texts(rows[..start].get(1..).unwrap_or_default()))
    };
    let (tool, subject, caption) = detector.subject(sight, &rows, &detail, menu);
    let options: Vec<Choosable> = menu.options.iter().map(|choice| detector.choosable(choice)).collect();
    let id = identity(&title, &question, &detail, &options);
    let cut = menu.cut || detail.iter().any(|row| stands_for_others(row));
    let dialog =
        Dialog { id, kind, title, question, detail, tool, subject, caption, options, cut, ..Dialog::default() };
    Some(Dialog { cut: cut || dialog.is_half_drawn(), ..dialog })
}

fn inside(row: &str) -> &str {
    row.trim_matches(|c: char| c.is_whitespace() || matches!(c, '│' | '┃'))
}

type Subject = (Option<String>, Option<String>, Option<String>);

impl Detector {
    /// Returns the tool, the command or path, and the model's words.
    fn subject(&self, sight: &Sight<'_>, rows: &[usize], detail: &[String], menu: &Menu) -> Subject {
        for rule in &self.rules.dialog.tool {
            let Some(_) = rows.iter().find(|row| rule.row.is_match(sight.row(**row))) else { continue };
            let named = rule.subject.as_ref().and_then(|pattern| {
                let capture =
                    |row: &usize| Some(pattern.captures(sight.row(*row))?.name("subject")?.as_str().trim().to_owned());
                let (at, first) = rows.iter().enumerate().find_map(|(at, row)| Some((at, capture(row)?)))?;
                // A long subject continues in the rows right below.
                let more = rows[at..].windows(2).take_while(|two| two[1] == two[0] + 1);
                let more = more.map(|two| inside(sight.row(two[1])).to_owned());
                Some(std::iter::once(first).chain(more).collect::<Vec<_>>().join("\n"))
            });
            let (fenced, caption) = if rule.fenced { self.fenced(sight, rows, menu) } else { (None, None) };
            let subject = fenced.or(named).or_else(|| (!detail.is_empty()).then(|| detail.join("\n")));
            return (Some(rule.tool.clone()), subject, caption);
        }
        (None, None, None)
    }

    /// Returns the text between two fences, and the text between the title and the first fence. More than two fences
    /// are ambiguous, because some are part of the text.
    fn fenced(&self, sight: &Sight<'_>, rows: &[usize], menu: &Menu) -> (Option<String>, Option<String>) {
        let is_fence = |row: &usize| sight.hit(*row, &self.rules.dialog.fence);
        let fences: Vec<usize> = menu.above.clone().filter(is_fence).collect();
        let &[first, last] = &fences[..] else { return (None, None) };
        let between = |from: usize, to: usize| {
            let texts = rows.iter().filter(|row| (from..to).contains(row)).map(|row| inside(sight.row(*row)));
            let texts: Vec<&str> = texts.collect();
            (!texts.is_empty()).then(|| texts.join("\n"))
        };
        (between(first + 1, last), rows.first().and_then(|title| between(title + 1, first)))
    }

    fn choosable(&self, choice: &Choice) -> Choosable {
        let rules = &self.rules.dialog;
        let (label, hinted) = match (rules.key_in_label, choice.label.rsplit_once(" (")) {
            (true, Some((label, key))) => match key.strip_suffix(')').filter(|key| crate::keys::key(key).is_some()) {
                Some(key) => (label, Some(key.to_owned())),
                None => (choice.label.as_str(), None),
            },
            _ => (choice.label.as_str(), None),
        };
        let is = |pattern: &Option<Pattern>| pattern.as_ref().is_some_and(|pattern| pattern.is_match(label));
        let meaning = match () {
            () if is(&rules.widen) => Meaning::Widen,
            () if is(&rules.accept) => Meaning::Accept,
            () if is(&rules.deny) => Meaning::Deny,
            () => Meaning::Other,
        };
        let digit = choice.number.filter(|number| rules.digits && (1..=9).contains(number));
        let key = hinted.or_else(|| digit.map(|number| number.to_string()));
        Choosable { label: label.to_owned(), meaning, key, then_enter: false, selected: choice.selected }
    }
}

/// Returns the part of a question's id that people need to name it: other ids start alike once in 65,536 times.
pub fn short(id: &str) -> &str {
    id.get(..4).unwrap_or(id)
}

/// Hashes a question with FNV-1a. The hash need not resist an attacker, only distinguish questions.
pub(crate) fn identity(title: &str, question: &str, detail: &[String], options: &[Choosable]) -> String {
    let texts = [title, question].into_iter().chain(detail.iter().map(String::as_str));
    let texts = texts.chain(options.iter().map(|option| option.label.as_str()));
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in texts.flat_map(|text| text.bytes().chain([0])) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    format!("{hash:016x}")
}

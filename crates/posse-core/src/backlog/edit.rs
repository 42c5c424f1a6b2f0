//! All that we ever change in the file of an item: its status, the verification log, our question, the outcome.
//!
//! Every change can be made again: what is there already is not written twice. After each the text is read again; it must be
//! the same item but for what was changed. If it is not, nothing is written.

use std::fmt::Write as _;

use super::read::{Parts, take_apart};
use super::{Clarification, Item, ItemEnd, ItemOutcome, Kind, Status, read};
use crate::file_problem::{FileProblems, ProblemList};
use crate::plan::edit::Edits;
use crate::plan::verdict::Verdict;
use crate::visible::{capitalised, shortened, words_of};

/// Titles of the sections that are ours, in small letters.
pub(super) const LOG: &str = "verification log";
pub(super) const CLARIFICATION: &str = "clarification";
pub(super) const OUTCOME: &str = "outcome (posse)";

/// The longest line that we write, in characters. Verifiers can be wordy; the whole is in their reports.
const LINE_MAX: usize = 500;
/// So many lines of each kind go into an entry.
const LINES_MAX: usize = 50;

const QUESTION_MARK: &str = "**Question:**";
const ANSWER_MARK: &str = "**Answer:**";

#[derive(Debug, PartialEq, thiserror::Error)]
pub enum NotEdited {
    #[error("the item cannot be read:\n{0}")]
    Unreadable(#[source] FileProblems),
    #[error("the item is not changed: {0} would change more than itself; put its sections in order by hand")]
    WouldChangeMore(&'static str),
    #[error("nothing is asked about this item that has no answer yet")]
    NotAsked,
}

/// What a verification came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verification {
    /// From 1; `Item::next_verification` says it.
    pub number: u32,
    /// As people read it: `2026-02-10 14:05`.
    pub at: String,
    pub verdict: Verdict,
    /// What was tried, and whether it held.
    pub checks: Vec<(bool, String)>,
    pub findings: Vec<String>,
}

/// What is written when the work on an item is over.
#[derive(Clone, Debug, PartialEq)]
pub struct OutcomeBlock {
    pub outcome: ItemOutcome,
    /// Which work it was: a word that is used only once.
    pub run: String,
    /// Why, if it is no success.
    pub reason: Option<String>,
    pub finished: String,
    /// In words: unknown is not zero.
    pub cost: String,
    pub duration: String,
    pub commits: Vec<String>,
    pub plan: Option<String>,
}

/// Gives the item another status.
pub fn set_status(text: &str, status: &Status) -> Result<String, NotEdited> {
    let edited = with_status(text, status)?;
    proven(text, edited, "the status", |before, after| {
        before.status = status.clone();
        after.status == *status
    })
}

fn with_status(text: &str, status: &Status) -> Result<String, NotEdited> {
    let parts = parts(text)?;
    let mut edits = Edits { text, splices: Vec::new() };
    if let Some(value) = parts.status() {
        edits.splices.push((value.at.start..value.at.end, heading_word(status)));
    }
    if let Some((node, fence)) = &parts.front {
        match node.get("status") {
            Some(entry) => {
                let replaced = edits.replace(entry, status.as_str());
                replaced.ok_or(NotEdited::WouldChangeMore("the status"))?;
            }
            None if parts.status().is_some() => {}
            None => {
                let line = format!("status: {}{}", status.as_str(), line_end(text));
                edits.splices.push((fence.start..fence.start, line));
            }
        }
    } else if parts.status().is_none() {
        let end = line_end(text);
        let line = format!("## Status: {}", heading_word(status));
        match parts.title.map(|title| parts.lines[title].at.end) {
            Some(at) => edits.splices.push((at..at, format!("{end}{end}{line}"))),
            None => edits.splices.push((0..0, format!("{line}{end}{end}"))),
        }
    }
    Ok(edits.apply())
}

/// `In Progress`, as headings have it.
fn heading_word(status: &Status) -> String {
    status.as_str().split('_').map(capitalised).collect::<Vec<_>>().join(" ")
}

/// Writes an entry into the verification log. One of this number that is there already stays as it is.
pub fn append_verification(text: &str, verification: &Verification) -> Result<String, NotEdited> {
    let item = item(text)?;
    if item.log.iter().any(|entry| entry.number == verification.number) {
        return Ok(text.to_owned());
    }
    let mut entry = format!("### Verification #{} - {}\n\n", verification.number, one_line(&verification.at));
    let _ = writeln!(entry, "**Verdict: {}**\n", verification.verdict);
    let mut list = |title: &str, lines: Vec<String>| {
        if !lines.is_empty() {
            let left = lines.len().saturating_sub(LINES_MAX);
            let _ = writeln!(entry, "{title}\n");
            lines.iter().take(LINES_MAX).for_each(|line| entry.push_str(line));
            if left > 0 {
                let _ = writeln!(entry, "- … and {left} more");
            }
            entry.push('\n');
        }
    };
    let check = |(held, what): &(bool, String)| format!("- [{}] {}\n", if *held { "x" } else { " " }, one_line(what));
    list("Checks performed:", verification.checks.iter().map(check).collect());
    list("Findings:", verification.findings.iter().map(|finding| format!("- {}\n", one_line(finding))).collect());
    let edited = appended(text, LOG, "Verification Log", entry.trim_end())?;
    proven(text, edited, "the verification log", |before, after| {
        let added =
            after.log.last().filter(|last| last.number == verification.number && last.verdict == verification.verdict);
        let added = added.cloned();
        let grown = added.is_some();
        before.log.extend(added);
        grown
    })
}

/// Asks the author, and holds the item until there is an answer.
pub fn ask(text: &str, question: &str) -> Result<String, NotEdited> {
    let question = one_line(question);
    let open = item(text)?.clarification.is_some_and(|asked| asked.question == question && asked.answer.is_none());
    let asked = if open {
        text.to_owned()
    } else {
        appended(text, CLARIFICATION, "Clarification", &format!("{QUESTION_MARK} {question}\n\n{ANSWER_MARK}"))?
    };
    let edited = with_status(&asked, &Status::NeedsClarification)?;
    proven(text, edited, "the question", |before, after| {
        before.status = Status::NeedsClarification;
        before.clarification = Some(Clarification { question: question.clone(), answer: None });
        // An older answer is not the last one any more.
        before.hash = after.hash.clone();
        true
    })
}

/// Puts the answer to our question into the item, and opens it.
pub fn answer(text: &str, answer: &str) -> Result<String, NotEdited> {
    let answer = one_line(answer);
    if item(text)?.clarification.is_none_or(|asked| asked.answer.is_some()) {
        return Err(NotEdited::NotAsked);
    }
    let parts = parts(text)?;
    let section = parts.sections.iter().rfind(|(_, words, _)| super::item::plain_title(words) == CLARIFICATION);
    let (head, _, end) = section.ok_or(NotEdited::NotAsked)?;
    let lines = &parts.lines[head + 1..*end];
    let mark = lines.iter().rfind(|line| line.prose && line.text.trim_start().starts_with(ANSWER_MARK));
    let mark = mark.ok_or(NotEdited::NotAsked)?;
    let mut edits = Edits { text, splices: Vec::new() };
    edits.splices.push((mark.at.start..mark.at.end, format!("{ANSWER_MARK} {answer}")));
    let edited = with_status(&edits.apply(), &Status::Open)?;
    proven(text, edited, "the answer", |before, after| {
        before.status = Status::Open;
        before.hash = after.hash.clone();
        let Some(asked) = &mut before.clarification else { return false };
        asked.answer = Some(answer.clone());
        true
    })
}

/// The last question of a section, and the answer below it.
pub(super) fn asked(section: &str) -> Option<Clarification> {
    let at = section.rfind(QUESTION_MARK)?;
    let rest = &section[at + QUESTION_MARK.len()..];
    let (question, answer) = rest.split_once(ANSWER_MARK).unwrap_or((rest, ""));
    let answer = Some(words_of(answer)).filter(|answer| super::item::says_something(answer));
    Some(Clarification { question: words_of(question), answer })
}

/// Writes how the work on the item ended, and the status that goes with it. An older block is replaced.
pub fn set_outcome(text: &str, kind: Kind, block: &OutcomeBlock) -> Result<String, NotEdited> {
    let status = block.outcome.status(kind);
    let without = without_outcome(text)?;
    let edited = appended(&without, OUTCOME, "Outcome (posse)", block.text().trim_end())?;
    let edited = with_status(&edited, &status)?;
    proven(text, edited, "the outcome", |before, _| {
        before.status = status.clone();
        before.ended = Some(ItemEnd { outcome: block.outcome, run: Some(one_line(&block.run)) });
        true
    })
}

impl OutcomeBlock {
    fn text(&self) -> String {
        let mut out = format!("- Outcome: {}\n", self.outcome.as_str());
        let commits: Vec<String> = self.commits.iter().map(|commit| one_line(commit)).collect();
        let rows = [
            ("Reason", self.reason.as_deref().map(one_line)),
            ("Finished", Some(one_line(&self.finished))),
            ("Duration", Some(one_line(&self.duration))),
            ("Cost", Some(one_line(&self.cost))),
            ("Commits", (!commits.is_empty()).then(|| commits.join(", "))),
            ("Plan", self.plan.as_deref().map(one_line)),
            ("Run", Some(one_line(&self.run))),
        ];
        for (name, value) in rows {
            if let Some(value) = value.filter(|value| !value.is_empty()) {
                let _ = writeln!(out, "- {name}: {value}");
            }
        }
        out
    }
}

/// What the block says.
pub(super) fn ended_in(section: &str) -> Option<ItemEnd> {
    let row = |name: &str| {
        section
            .lines()
            .find_map(|line| Some(line.trim().strip_prefix("- ")?.strip_prefix(name)?.strip_prefix(':')?.trim()))
    };
    Some(ItemEnd { outcome: row("Outcome")?.parse().ok()?, run: row("Run").map(str::to_owned) })
}

fn without_outcome(text: &str) -> Result<String, NotEdited> {
    let parts = parts(text)?;
    let mut edits = Edits { text, splices: Vec::new() };
    for (head, words, end) in &parts.sections {
        if super::item::plain_title(words) == OUTCOME {
            let to = parts.lines.get(*end).map_or(text.len(), |line| line.at.start);
            edits.splices.push((parts.lines[*head].at.start..to, String::new()));
        }
    }
    Ok(edits.apply())
}

/// Puts a text at the end of a section; of a new one, if there is none yet: at the end of the file, but before the outcome.
fn appended(text: &str, section: &str, title: &str, addition: &str) -> Result<String, NotEdited> {
    let parts = parts(text)?;
    let named = |name: &str| parts.sections.iter().rfind(|(_, words, _)| super::item::plain_title(words) == name);
    let (before, heading) = match (named(section), named(OUTCOME).filter(|_| section != OUTCOME)) {
        (Some((_, _, end)), _) => (*end, None),
        (None, Some((head, ..))) => (*head, Some(title)),
        (None, None) => (parts.lines.len(), Some(title)),
    };
    let last = parts.lines[..before].iter().rfind(|line| !line.is_blank());
    let from = last.map_or_else(|| parts.lines.first().map_or(text.len(), |line| line.at.start), |line| line.at.end);
    let to = parts.lines.get(before).map_or(text.len(), |line| line.at.start);
    let mut new = String::new();
    if last.is_some() {
        new.push_str("\n\n");
    }
    if let Some(title) = heading {
        let _ = write!(new, "## {title}\n\n");
    }
    new.push_str(addition);
    new.push_str(if to < text.len() { "\n\n" } else { "\n" });
    let new = if line_end(text) == "\r\n" { new.replace('\n', "\r\n") } else { new };
    Ok([&text[..from], &new, &text[to..]].concat())
}

/// How the lines of this text end.
fn line_end(text: &str) -> &'static str {
    match text.find('\n') {
        Some(at) if text[..at].ends_with('\r') => "\r\n",
        _ => "\n",
    }
}

/// A text of others as one line of a list: it can neither begin a heading nor open a fence or a comment.
fn one_line(text: &str) -> String {
    let line = words_of(text).replace("```", "'''").replace("~~~", "---").replace("<!--", "<--").replace("-->", "->");
    let line =
        line.replace(QUESTION_MARK, "Question:").replace(ANSWER_MARK, "Answer:").replace("**Verdict:", "Verdict:");
    let line: String = line.chars().filter(|c| !c.is_control()).collect();
    shortened(&line, LINE_MAX)
}

fn parts(text: &str) -> Result<Parts<'_>, NotEdited> {
    let mut found = ProblemList::default();
    let parts = take_apart(text, &mut found);
    found.finish("item", parts).map(|(parts, _)| parts).map_err(NotEdited::Unreadable)
}

/// The item as it is. Its name and kind are of no interest here.
fn item(text: &str) -> Result<Item, NotEdited> {
    let any = super::names::new_slug(0, "");
    read(&any, Kind::Defect, "item", text).map(|(item, _)| item).map_err(NotEdited::Unreadable)
}

/// The edited text, if it is the old item after `expected` was done to it. `expected` is also told the new one, and may
/// refuse it.
fn proven(
    text: &str,
    edited: String,
    what: &'static str,
    expected: impl FnOnce(&mut Item, &Item) -> bool,
) -> Result<String, NotEdited> {
    let mut before = item(text)?;
    let after = item(&edited).map_err(|_| NotEdited::WouldChangeMore(what))?;
    let fits = expected(&mut before, &after) && before == after;
    if fits { Ok(edited) } else { Err(NotEdited::WouldChangeMore(what)) }
}

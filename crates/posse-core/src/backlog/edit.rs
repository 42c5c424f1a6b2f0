//! Every change that posse makes to the file of an item: its status, the verification log, questions, the outcome.
//!
//! Changes are idempotent. After each change the text is parsed again, and must be the same item apart from the change.
//! Otherwise nothing is written.

use std::fmt::Write as _;

use super::item::{plain_title, says_something};
use super::read::{Parts, STATUS, take_apart};
use super::{Clarification, Item, ItemEnd, ItemOutcome, Kind, LogEntry, Status, read};
use crate::file_problem::{FileProblems, ProblemList};
use crate::plan::edit::Edits;
use crate::plan::verdict::Judgement;
use crate::visible::{capitalised, shortened, words_of};

/// Lowercase titles of the sections that posse writes.
pub(super) const LOG: &str = "verification log";
pub(super) const CLARIFICATION: &str = "clarification";
pub(super) const OUTCOME: &str = "outcome (posse)";

/// The maximum length of a written line, in characters. The full findings are in the verifier's report.
const LINE_MAX: usize = 500;
/// The maximum number of lines of each kind in an entry.
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

/// The outcome that is written when the work on an item ends.
#[derive(Clone, Debug, PartialEq)]
pub struct OutcomeBlock {
    pub outcome: ItemOutcome,
    /// The unique name of the run.
    pub run: String,
    /// The reason, unless the outcome is success.
    pub reason: Option<String>,
    pub finished: String,
    /// The cost in words, because an unknown cost is not zero.
    pub cost: String,
    pub duration: String,
    pub commits: Vec<String>,
    pub plan: Option<String>,
}

/// Sets the status of the item.
pub fn set_status(text: &str, status: Status) -> Result<String, NotEdited> {
    let edited = with_status(text, status)?;
    proven(text, edited, "the status", |before, _| before.status = Some(status))
}

fn with_status(text: &str, status: Status) -> Result<String, NotEdited> {
    let parts = parts(text)?;
    let mut edits = Edits { text, splices: Vec::new() };
    let headings = &parts.values[STATUS];
    edits.splices.extend(headings.iter().map(|value| (value.at.start..value.at.end, heading_word(status))));
    match &parts.front {
        Some((node, fence)) => match node.get("status") {
            Some(entry) => {
                let replaced = edits.replace(entry, status.as_str());
                replaced.ok_or(NotEdited::WouldChangeMore("the status"))?;
            }
            None if !headings.is_empty() => {}
            None => {
                let line = format!("status: {status}{}", line_end(text));
                edits.splices.push((fence.start..fence.start, line));
            }
        },
        None if !headings.is_empty() => {}
        None => {
            let end = line_end(text);
            let line = format!("## Status: {}", heading_word(status));
            match parts.title.map(|title| parts.lines[title].at.end) {
                Some(at) => edits.splices.push((at..at, format!("{end}{end}{line}"))),
                None => edits.splices.push((0..0, format!("{line}{end}{end}"))),
            }
        }
    }
    Ok(edits.apply())
}

/// `In Progress`, as headings have it.
fn heading_word(status: Status) -> String {
    status.as_str().split('_').map(capitalised).collect::<Vec<_>>().join(" ")
}

/// Appends a judgement to the verification log, unless the log has an entry of this number. `at` is the time as people
/// read it; `Item::next_verification` returns the number.
pub fn append_verification(text: &str, number: u32, at: &str, judgement: &Judgement) -> Result<String, NotEdited> {
    if item(text)?.log.iter().any(|entry| entry.number == number) {
        return Ok(text.to_owned());
    }
    let verdict = judgement.verdict;
    let mut entry = format!("### Verification #{number} - {}\n\n**Verdict: {verdict}**\n\n", one_line(at));
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
    let check = |finding: &String| {
        ["[PASS]", "[WARN]", "[FAIL]"].into_iter().find_map(|mark| {
            let what = finding.trim().strip_prefix(mark)?;
            Some(format!("- [{}] {}\n", if mark == "[PASS]" { "x" } else { " " }, one_line(what)))
        })
    };
    list("Checks performed:", judgement.findings.iter().filter_map(check).collect());
    let open = judgement.findings.iter().filter(|finding| !finding.trim_start().starts_with("[PASS]"));
    list("Findings:", open.map(|finding| format!("- {}\n", one_line(finding))).collect());
    let edited = appended(text, LOG, "Verification Log", entry.trim_end())?;
    proven(text, edited, "the verification log", |before, after| {
        let text = after.log.last().map(|last| last.text.clone()).unwrap_or_default();
        before.log.push(LogEntry { number, verdict, text });
    })
}

/// Asks the author a question, and holds the item until it is answered.
pub fn ask(text: &str, question: &str) -> Result<String, NotEdited> {
    let question = one_line(question);
    let open = item(text)?.clarification.is_some_and(|asked| asked.question == question && asked.answer.is_none());
    let asked = if open {
        text.to_owned()
    } else {
        appended(text, CLARIFICATION, "Clarification", &format!("{QUESTION_MARK} {question}\n\n{ANSWER_MARK}"))?
    };
    let edited = with_status(&asked, Status::NeedsClarification)?;
    proven(text, edited, "the question", |before, after| {
        before.status = Some(Status::NeedsClarification);
        before.clarification = Some(Clarification { question, answer: None });
        // An older answer is no longer the last one.
        before.hash.clone_from(&after.hash);
    })
}

/// Writes the answer to the question into the item, and opens the item.
pub fn answer(text: &str, answer: &str) -> Result<String, NotEdited> {
    let answer = one_line(answer);
    if item(text)?.clarification.is_none_or(|asked| asked.answer.is_some()) {
        return Err(NotEdited::NotAsked);
    }
    let parts = parts(text)?;
    let section = parts.section(CLARIFICATION).ok_or(NotEdited::NotAsked)?;
    let lines = &parts.lines[section.head + 1..section.end];
    let mark = lines.iter().rfind(|line| line.prose && line.text.trim_start().starts_with(ANSWER_MARK));
    let mark = mark.ok_or(NotEdited::NotAsked)?;
    let mut edits = Edits { text, splices: Vec::new() };
    edits.splices.push((mark.at.start..mark.at.end, format!("{ANSWER_MARK} {answer}")));
    let edited = with_status(&edits.apply(), Status::Open)?;
    proven(text, edited, "the answer", |before, after| {
        before.status = Some(Status::Open);
        before.hash.clone_from(&after.hash);
        before.clarification.iter_mut().for_each(|asked| asked.answer = Some(answer.clone()));
    })
}

/// Returns the last question of a section, and the answer below it.
pub(super) fn asked(section: &str) -> Option<Clarification> {
    let at = section.rfind(QUESTION_MARK)?;
    let rest = &section[at + QUESTION_MARK.len()..];
    let (question, answer) = rest.split_once(ANSWER_MARK).unwrap_or((rest, ""));
    let answer = Some(words_of(answer)).filter(|answer| says_something(answer));
    Some(Clarification { question: words_of(question), answer })
}

/// Writes the outcome of the item and the matching status. An older block is replaced.
pub fn set_outcome(text: &str, kind: Kind, block: &OutcomeBlock) -> Result<String, NotEdited> {
    let status = block.outcome.status(kind);
    let without = without_outcome(text)?;
    let edited = appended(&without, OUTCOME, "Outcome (posse)", block.text().trim_end())?;
    let edited = with_status(&edited, status)?;
    proven(text, edited, "the outcome", |before, _| {
        before.status = Some(status);
        before.ended = Some(ItemEnd { outcome: block.outcome, run: Some(one_line(&block.run)) });
    })
}

impl OutcomeBlock {
    /// Returns name and value of everything that is known. `shown` escapes the values for their destination.
    pub(super) fn rows(&self, shown: fn(&str) -> String) -> impl Iterator<Item = (&'static str, String)> {
        let commits: Vec<String> = self.commits.iter().map(|commit| shown(commit)).collect();
        let rows = [
            ("Outcome", self.outcome.to_string()),
            ("Reason", self.reason.as_deref().map(shown).unwrap_or_default()),
            ("Finished", shown(&self.finished)),
            ("Duration", shown(&self.duration)),
            ("Cost", shown(&self.cost)),
            ("Commits", commits.join(", ")),
            ("Plan", self.plan.as_deref().map(shown).unwrap_or_default()),
        ];
        rows.into_iter().filter(|(_, value)| !value.is_empty())
    }

    fn text(&self) -> String {
        let run = Some(("Run", one_line(&self.run))).filter(|(_, run)| !run.is_empty());
        self.rows(one_line).chain(run).map(|(name, value)| format!("- {name}: {value}\n")).collect()
    }
}

/// Reads the outcome block.
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
    for section in parts.sections.iter().filter(|section| plain_title(section.words) == OUTCOME) {
        let to = parts.lines.get(section.end).map_or(text.len(), |line| line.at.start);
        edits.splices.push((parts.lines[section.head].at.start..to, String::new()));
    }
    Ok(edits.apply())
}

/// Appends a text to a section. A new section goes to the end of the file, before the outcome.
fn appended(text: &str, section: &str, title: &str, addition: &str) -> Result<String, NotEdited> {
    let parts = parts(text)?;
    let (before, heading) = match (parts.section(section), parts.section(OUTCOME)) {
        (Some(section), _) => (section.end, None),
        (None, Some(outcome)) => (outcome.head, Some(title)),
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

fn line_end(text: &str) -> &'static str {
    match text.find('\n') {
        Some(at) if text[..at].ends_with('\r') => "\r\n",
        _ => "\n",
    }
}

/// Returns an untrusted text as one line of a list: it cannot begin a heading or open a fence or a comment.
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

/// Reads the item. Its name and kind do not matter here.
fn item(text: &str) -> Result<Item, NotEdited> {
    let any = super::names::new_slug(0, "");
    read(&any, Kind::Defect, "item", text).map(|(item, _)| item).map_err(NotEdited::Unreadable)
}

/// Returns the edited text if it is the old item with `expected` applied. `expected` also gets the new item.
fn proven(
    text: &str,
    edited: String,
    what: &'static str,
    expected: impl FnOnce(&mut Item, &Item),
) -> Result<String, NotEdited> {
    let mut before = item(text)?;
    let after = item(&edited).map_err(|_| NotEdited::WouldChangeMore(what))?;
    expected(&mut before, &after);
    if before == after { Ok(edited) } else { Err(NotEdited::WouldChangeMore(what)) }
}

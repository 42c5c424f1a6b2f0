//! Parses an item.
//!
//! Two styles of header are supported, also mixed: YAML between `---`, and headings (`## Status: Open`). Everything
//! below the header is prose: a status in a quote or a code fence does not count.

use std::str::FromStr;

use sha2::{Digest, Sha256};

use super::item::{Dependency, Item, ItemSection, Kind, LogEntry, Status, plain_title};
use super::markdown::{MarkdownLine, lines, list_item};
use super::{Slug, edit};
use crate::config::ValueKind::{Amount, Scalar, Scalars};
use crate::file_problem::{FileProblem, FileProblems, ProblemList, TextSpan};
use crate::plan::fields::{Keys, MapFields};
use crate::plan::verdict::{self, Verdict};
use crate::plan::yaml::{self, Node};
use crate::visible::capitalised;
use crate::words::UnknownWord;

const FRONT: Keys = Keys {
    of: "the header of an item",
    fields: &[
        ("title", Scalar),
        ("status", Scalar),
        ("priority", Scalar),
        ("type", Scalar),
        ("depends_on", Scalars),
        ("budget_limit_usd", Amount),
        ("agent", Scalar),
    ],
    others: &["created", "source", "tags", "step_notifications"],
    aliases: &[("dependencies", "depends_on")],
    elsewhere: &[("kind", "type"), ("needs", "depends_on"), ("state", "status"), ("budget", "budget_limit_usd")],
    ..Keys::NONE
};

/// The maximum length of an item, because the whole text goes into prompts.
const TEXT_MAX: usize = 1 << 20;

/// The fields that both header styles share.
const VALUES: [&str; 3] = ["status", "priority", "type"];
pub(super) const STATUS: usize = 0;
const DEPENDENCIES: &str = "dependencies";

/// A value in the header, and its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HeaderValue {
    text: String,
    pub(super) at: TextSpan,
}

/// A section: its first line, its end, and its title.
pub(super) struct Section<'t> {
    pub(super) head: usize,
    pub(super) end: usize,
    pub(super) words: &'t str,
}

/// The YAML front matter and its closing `---`.
type FrontMatter = (Node, TextSpan);

/// The parts of a text.
#[derive(Default)]
pub(super) struct Parts<'t> {
    pub(super) front: Option<FrontMatter>,
    pub(super) lines: Vec<MarkdownLine<'t>>,
    pub(super) title: Option<usize>,
    /// Header headings that have a value, as in `VALUES`.
    pub(super) values: [Vec<HeaderValue>; 3],
    pub(super) sections: Vec<Section<'t>>,
    /// The lines between the title and the first section that is not a field.
    lead: (usize, usize),
}

impl Parts<'_> {
    /// Returns the last section with this title.
    pub(super) fn section(&self, title: &str) -> Option<&Section<'_>> {
        self.sections.iter().rfind(|section| plain_title(section.words) == title)
    }
}

/// Parses an item. `file` is its name for messages; `kind` is the kind of its directory. All problems are reported at
/// once where possible.
pub fn read(slug: &Slug, kind: Kind, file: &str, text: &str) -> Result<(Item, Vec<FileProblem>), FileProblems> {
    let mut found = ProblemList::default();
    let item = take_apart(text, &mut found).and_then(|parts| item(slug, kind, &parts, &mut found));
    found.finish(file, item)
}

pub(super) fn take_apart<'t>(text: &'t str, found: &mut ProblemList) -> Option<Parts<'t>> {
    let (front, body, line) = header(text).map_err(|problem| found.errors.push(problem)).ok()?;
    let (lines, open) = lines(text, body, line);
    if let Some(at) = open {
        let problem = found.error(at, "this code fence or comment does not end");
        problem.add_hint("close it: all below counts as part of it");
    }
    let parts = structure(front, lines, found);
    refuse_other_forms(&parts, found);
    Some(parts)
}

/// Returns the YAML front matter, and the byte and line where the rest begins.
fn header(text: &str) -> Result<(Option<FrontMatter>, usize, usize), FileProblem> {
    let first = TextSpan { line: 1, column: 1, ..TextSpan::default() };
    if text.len() > TEXT_MAX {
        let problem = FileProblem::new(first, "it is longer than 1 MiB");
        return Err(problem.hint("an item says what is wanted; put data into files of its own"));
    }
    if text.contains('\0') {
        return Err(FileProblem::new(first, "it is not a text"));
    }
    let Some((end, body, line)) = front_matter(text)? else { return Ok((None, 0, 1)) };
    // Parsed from the start of the text, so that positions are right: `---` begins a document.
    let front = yaml::parse(&text[..end])?.root;
    Ok((Some((front, TextSpan { start: end, end: body, line: line - 1, column: 1 })), body, line))
}

/// Returns the end of the YAML, and the byte and line where the rest begins.
fn front_matter(text: &str) -> Result<Option<(usize, usize, usize)>, FileProblem> {
    let mut start = 0;
    for (i, line) in text.split_inclusive('\n').enumerate() {
        let fence = line.trim_end_matches(['\n', '\r']) == "---";
        match (i, fence) {
            (0, false) => return Ok(None),
            (0, true) => {}
            (_, true) => return Ok(Some((start, start + line.len(), i + 2))),
            _ => {}
        }
        start += line.len();
    }
    if start == 0 {
        return Ok(None);
    }
    let at = TextSpan { start: 0, end: 3, line: 1, column: 1 };
    Err(FileProblem::new(at, "the header that begins here does not end").hint("it ends at a line `---`"))
}

/// Returns the field and the value of a heading.
fn key(words: &str) -> Option<(&'static str, &str)> {
    let (name, value) = words.split_once(':').unwrap_or((words, ""));
    let name = name.trim().trim_matches('*').trim();
    let known =
        VALUES.into_iter().chain([DEPENDENCIES, "depends on"]).find(|known| known.eq_ignore_ascii_case(name))?;
    let value = value.trim().trim_start_matches('*').trim();
    Some((if known == "depends on" { DEPENDENCIES } else { known }, value))
}

fn is_dependencies(words: &str) -> bool {
    key(words).is_some_and(|(name, _)| name == DEPENDENCIES)
}

/// Finds the header, the lead and the sections.
fn structure<'t>(front: Option<FrontMatter>, lines: Vec<MarkdownLine<'t>>, found: &mut ProblemList) -> Parts<'t> {
    let mut parts = Parts { front, ..Parts::default() };
    let headings =
        lines.iter().enumerate().filter_map(|(at, line)| line.heading().map(|(level, words)| (at, level, words)));
    let heads: Vec<(usize, usize, &'t str)> = headings.collect();
    parts.title = heads.iter().find(|(_, level, _)| *level == 1).map(|(at, ..)| *at);
    let mut header_end = None;
    for (n, (at, level, words)) in heads.iter().copied().enumerate() {
        if level == 1 || (level > 2 && header_end.is_some()) {
            continue;
        }
        let end_of = |most: usize| {
            let next = heads[n + 1..].iter().find(|(_, level, _)| *level <= most);
            next.map_or(lines.len(), |(line, ..)| *line)
        };
        let (name, value) = key(words).unwrap_or_default();
        match VALUES.iter().position(|known| *known == name) {
            Some(place) if header_end.is_none() => {
                let line = &lines[at];
                let below = || lines[at + 1..end_of(6)].iter().find(|line| line.prose && !line.is_blank());
                // `## Status` and the value below it.
                let value =
                    if value.is_empty() { below().map(|line| (line, line.text.trim())) } else { Some((line, value)) };
                match value {
                    Some((line, value)) => {
                        parts.values[place].push(HeaderValue { text: value.to_owned(), at: line.place_of(value) });
                    }
                    None => drop(found.warning(line.at, format!("`{words}` says nothing"))),
                }
            }
            Some(STATUS) if level == 2 => {
                let problem = found.warning(lines[at].at, "a status below the header is not read");
                problem.add_hint("move it to the top, below the title");
            }
            _ if level == 2 => {
                if !is_dependencies(words) {
                    header_end.get_or_insert(at);
                }
                parts.sections.push(Section { head: at, end: end_of(2), words });
            }
            _ => {}
        }
    }
    let end = header_end.unwrap_or(lines.len());
    let begin = parts.title.filter(|title| *title < end).map_or(0, |title| title + 1);
    parts.lead = (begin, end);
    parts.lines = lines;
    parts
}

/// Refuses a header in another form, such as `**Status:** Fixed`. Unread, it would make the item open.
fn refuse_other_forms(parts: &Parts<'_>, found: &mut ProblemList) {
    let header = &parts.lines[..parts.lead.1];
    for line in header.iter().filter(|line| line.prose && line.heading().is_none() && line.text.contains(':')) {
        let bare = line.text.trim().trim_start_matches(['-', '*', ' ']);
        if let Some((name, value)) = key(bare).filter(|(name, value)| VALUES.contains(name) && !value.is_empty()) {
            let heading = format!("## {}: {}", capitalised(name), value.trim_matches('*').trim());
            let problem = found.error(line.at, format!("a {name} is not read in this form"));
            problem.add_hint(format!("write it as a heading: `{heading}`"));
        }
    }
}

/// Returns a value as one word, without markup and trailing brackets. `In Progress`, `in-progress` and `in_progress`
/// are the same.
fn bare(value: &str) -> String {
    let value = value.split(" (").next().unwrap_or(value);
    let value = value.trim().trim_matches(['*', '`', '"']).trim().trim_end_matches('.');
    value.chars().map(|c| if matches!(c, ' ' | '-') { '_' } else { c.to_ascii_lowercase() }).collect()
}

/// Returns the value of a field. Repetitions must agree.
fn value_of<'v>(
    name: &str,
    mut values: impl Iterator<Item = &'v HeaderValue>,
    found: &mut ProblemList,
) -> Option<&'v HeaderValue> {
    let first = values.next()?;
    for other in values.filter(|other| bare(&other.text) != bare(&first.text)) {
        let problem = found.error(other.at, format!("the {name} is given twice, and differently"));
        problem.add_span(first.at, "first").add_hint("keep one of them");
    }
    Some(first)
}

fn item(slug: &Slug, kind: Kind, parts: &Parts<'_>, found: &mut ProblemList) -> Option<Item> {
    let front = parts.front.as_ref().filter(|(node, _)| !node.is_null());
    let front = front.and_then(|(node, _)| MapFields::read(node, &FRONT, found));
    let front = front.as_ref();
    let value = |node: &Node| Some(HeaderValue { text: node.as_scalar()?.to_owned(), at: node.at });
    let on_top = VALUES.map(|key| front.and_then(|front| front.node(key)).and_then(value));
    let [status, priority, kind_of] =
        std::array::from_fn(|place| value_of(VALUES[place], on_top[place].iter().chain(&parts.values[place]), found));
    let status = match status {
        None => Some(Status::Open),
        Some(value) => word(value, found, |found, at, word| {
            found.warning(at, format!("`{word}` is no status: the item is not worked on"))
        }),
    };
    let priority = priority.and_then(|value| {
        word(value, found, |found, at, word| found.warning(at, format!("`{word}` is no priority: medium is taken")))
    });
    let kind = match kind_of {
        None => kind,
        Some(value) => word(value, found, |found, at, word| found.error(at, format!("`{word}` is no type")))?,
    };

    let text = |key| front.and_then(|front| front.text(key));
    let title = text("title")
        .or_else(|| Some(parts.lines[parts.title?].heading()?.1.to_owned()))
        .filter(|title| !title.trim().is_empty());
    let title = title.unwrap_or_else(|| capitalised(&slug.words().replace(['-', '_'], " ")));
    let needs = front.into_iter().flat_map(|front| front.words("depends_on"));
    let mut depends_on: Vec<Dependency> = needs.filter_map(|node| dependency(node.as_scalar()?)).collect();
    let mut sections = Vec::new();
    let (mut log, mut clarification, mut ended) = (Vec::new(), None, None);
    for Section { head, end, words } in &parts.sections {
        let body = &parts.lines[head + 1..*end];
        match plain_title(words).as_str() {
            _ if is_dependencies(words) => {
                let inline = key(words).into_iter().flat_map(|(_, value)| value.split(','));
                let listed = body.iter().filter(|line| line.prose).filter_map(|line| list_item(line.text));
                depends_on.extend(inline.chain(listed).filter_map(dependency));
            }
            edit::LOG => log.extend(log_entries(body)),
            edit::CLARIFICATION => clarification = edit::asked(&joined(body)),
            edit::OUTCOME => ended = edit::ended_in(&joined(body)),
            _ => sections.push(ItemSection { title: (*words).to_owned(), text: joined(body) }),
        }
    }
    let mut seen: Vec<Dependency> = Vec::new();
    for dependency in depends_on {
        if !seen.contains(&dependency) {
            seen.push(dependency);
        }
    }
    let mut item = Item {
        slug: slug.clone(),
        kind,
        title,
        status,
        priority: priority.unwrap_or_default(),
        depends_on: seen,
        budget_usd: front.and_then(|front| front.values.get("budget_limit_usd")?.as_f64()),
        agent: text("agent"),
        lead: lead(parts),
        sections,
        clarification,
        log,
        ended,
        hash: String::new(),
    };
    item.hash = hash(&item);
    Some(item)
}

/// Returns the known word for a value. If the value is unknown, `told` describes the consequence.
fn word<T: FromStr<Err = UnknownWord>>(
    value: &HeaderValue,
    found: &mut ProblemList,
    told: impl for<'f> FnOnce(&'f mut ProblemList, TextSpan, &str) -> &'f mut FileProblem,
) -> Option<T> {
    let word = bare(&value.text);
    let unknown = |error: UnknownWord| {
        told(found, value.at, &word).add_hint(error.hint());
    };
    word.parse().map_err(unknown).ok()
}

/// Parses a dependency. `03-parser.md (needed first)`, `[03-parser](../03-parser.md)`,
/// `docs/feature-backlog/03-parser.md` are the same.
fn dependency(written: &str) -> Option<Dependency> {
    let mut text = written.trim();
    if let Some((label, rest)) = text.strip_prefix('[').and_then(|text| text.split_once("](")) {
        text = rest.split_once(')').map(|(path, _)| path).filter(|path| path.ends_with(".md")).unwrap_or(label);
    }
    let text = text.split(" (").next().unwrap_or(text).trim().trim_matches(['`', '*', '"']).trim();
    if matches!(text.trim_end_matches('.').to_ascii_lowercase().as_str(), "" | "none" | "nothing" | "n/a" | "-") {
        return None;
    }
    let name = text.rsplit('/').next().unwrap_or(text);
    let name = name.strip_suffix(".md").unwrap_or(name);
    Some(name.parse().map_or_else(|_| Dependency::Words(written.trim().to_owned()), Dependency::On))
}

fn log_entries(body: &[MarkdownLine<'_>]) -> Vec<LogEntry> {
    let heads: Vec<(usize, u32)> = body
        .iter()
        .enumerate()
        .filter_map(|(i, line)| {
            let number = line.heading().filter(|(level, _)| *level == 3)?.1.strip_prefix("Verification #")?;
            let digits = number.bytes().take_while(u8::is_ascii_digit).count();
            Some((i, number[..digits].parse().ok()?))
        })
        .collect();
    let ends = heads.iter().skip(1).map(|(i, _)| *i).chain([body.len()]);
    let entry = |((head, number), end): (&(usize, u32), usize)| {
        let text = joined(&body[head + 1..end]);
        // An entry without a verdict proves nothing.
        LogEntry { number: *number, verdict: verdict::last_line(&text).unwrap_or(Verdict::Error), text }
    };
    heads.iter().zip(ends).map(entry).collect()
}

/// Returns the text between the title and the sections, without the fields.
fn lead(parts: &Parts<'_>) -> String {
    let (begin, end) = parts.lead;
    let depends = |i: usize| {
        let mut lists = parts.sections.iter().filter(|section| is_dependencies(section.words));
        lists.any(|section| (section.head..section.end).contains(&i))
    };
    let is_value = |line: &MarkdownLine<'_>| parts.values.iter().flatten().any(|value| value.at.line == line.at.line);
    let ours = |i: usize, line: &MarkdownLine<'_>| line.heading().is_some() || depends(i) || is_value(line);
    let kept = (begin..end).filter(|i| !ours(*i, &parts.lines[*i]));
    let text: Vec<&str> = kept.map(|i| parts.lines[i].text.trim_end()).collect();
    text.join("\n").trim().to_owned()
}

fn joined(lines: &[MarkdownLine<'_>]) -> String {
    let text: Vec<&str> = lines.iter().map(|line| line.text.trim_end()).collect();
    text.join("\n").trim_matches('\n').to_owned()
}

fn hash(item: &Item) -> String {
    let mut hash = Sha256::new();
    // Hashes lengths, too, so that different texts cannot collide by concatenation.
    let mut add = |text: &str| {
        hash.update((text.len() as u64).to_be_bytes());
        hash.update(text);
    };
    for text in [item.title.as_str(), item.kind.as_str(), item.agent.as_deref().unwrap_or_default(), &item.lead] {
        add(text);
    }
    for section in &item.sections {
        add(&section.title);
        add(&section.text);
    }
    if let Some(answer) = item.clarification.as_ref().and_then(|clarification| clarification.answer.as_deref()) {
        add(answer);
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

//! From the text of an item to the item.
//!
//! Two styles of header are read, also mixed: YAML between `---`, and headings (`## Status: Open`). What stands below the
//! header is prose: a status that is quoted there, or stands in a code fence, is none.

use sha2::{Digest, Sha256};

use super::item::{
    Clarification, Dependency, Item, ItemSection, Kind, LogEntry, Priority, Status, plain_title, plain_word,
};
use super::markdown::{MarkdownLine, lines, list_item};
use super::{Slug, edit};
use crate::config::ValueKind::{Amount, Scalar, Scalars};
use crate::file_problem::{FileProblem, FileProblems, ProblemList, TextSpan};
use crate::nearest::did_you_mean;
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

/// The longest item that is read. People write pages, not books; and it all goes into prompts.
const TEXT_MAX: usize = 1 << 20;

/// The fields that both styles of header have.
const VALUES: [&str; 3] = ["status", "priority", "type"];

/// A value in the header, and its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HeaderValue {
    pub(super) text: String,
    pub(super) at: TextSpan,
}

/// A text taken apart.
#[derive(Default)]
pub(super) struct Parts<'t> {
    /// The YAML on top, with the `---` before it.
    pub(super) front: Option<(Node, TextSpan)>,
    pub(super) lines: Vec<MarkdownLine<'t>>,
    /// The line of the title.
    pub(super) title: Option<usize>,
    /// Headings of the header that have a value, as in `VALUES`.
    values: [Option<HeaderValue>; 3],
    /// Sections: the line of the heading, its words, and the line where it ends.
    pub(super) sections: Vec<(usize, &'t str, usize)>,
    lead: (usize, usize),
}

impl Parts<'_> {
    pub(super) fn status(&self) -> Option<&HeaderValue> {
        self.values[0].as_ref()
    }
}

/// Reads an item. `file` is its name for messages; `kind` is what its directory is for. All problems that can be found at
/// once are reported at once.
pub fn read(slug: &Slug, kind: Kind, file: &str, text: &str) -> Result<(Item, Vec<FileProblem>), FileProblems> {
    let mut found = ProblemList::default();
    let item = take_apart(text, &mut found).and_then(|parts| item(slug, kind, &parts, &mut found));
    found.finish(file, item)
}

pub(super) fn take_apart<'t>(text: &'t str, found: &mut ProblemList) -> Option<Parts<'t>> {
    let ItemHeader { front, body, line } = header(text).map_err(|problem| found.errors.push(problem)).ok()?;
    let (lines, open) = lines(text, body, line);
    if let Some(at) = open {
        let problem = found.error(at, "this code fence or comment does not end");
        problem.add_hint("close it: all below counts as part of it");
    }
    Some(structure(front, lines, found))
}

/// The head of an item, and the place where the rest begins.
struct ItemHeader {
    /// The YAML on top, with the `---` behind it.
    front: Option<(Node, TextSpan)>,
    body: usize,
    line: usize,
}

fn header(text: &str) -> Result<ItemHeader, FileProblem> {
    let first = TextSpan { line: 1, column: 1, ..TextSpan::default() };
    if text.len() > TEXT_MAX {
        let problem = FileProblem::new(first, "it is longer than 1 MiB");
        return Err(problem.hint("an item says what is wanted; put data into files of its own"));
    }
    if text.contains('\0') {
        return Err(FileProblem::new(first, "it is not a text"));
    }
    let Some((end, body, line)) = front_matter(text)? else {
        return Ok(ItemHeader { front: None, body: 0, line: 1 });
    };
    // From the beginning, so that places are right: `---` begins a document.
    let front = yaml::parse(&text[..end])?.root;
    let fence = TextSpan { start: end, end: body, line: line - 1, column: 1 };
    Ok(ItemHeader { front: Some((front, fence)), body, line })
}

/// Where the YAML ends, where the rest begins, and its line.
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

/// The fields that a heading can have.
fn key(words: &str) -> Option<(&'static str, &str)> {
    let (name, value) = words.split_once(':').unwrap_or((words, ""));
    let name = name.trim().trim_matches('*').trim();
    let known = ["status", "priority", "type", "dependencies", "depends on"];
    let known = known.into_iter().find(|known| known.eq_ignore_ascii_case(name))?;
    Some((if known == "depends on" { "dependencies" } else { known }, value.trim().trim_start_matches('*').trim()))
}

/// Finds header, lead and sections.
fn structure<'t>(front: Option<(Node, TextSpan)>, lines: Vec<MarkdownLine<'t>>, found: &mut ProblemList) -> Parts<'t> {
    let mut parts = Parts { front, ..Parts::default() };
    let heads: Vec<(usize, usize, &'t str)> = lines
        .iter()
        .enumerate()
        .filter_map(|(i, line)| line.heading().map(|(level, words)| (i, level, words)))
        .collect();
    let next_head = |i: usize| heads.iter().map(|(line, ..)| *line).find(|line| *line > i).unwrap_or(lines.len());
    parts.title = heads.iter().find(|(_, level, _)| *level == 1).map(|(i, ..)| *i);
    let mut header = true;
    let mut header_end = lines.len();
    for (i, level, words) in &heads {
        let field = key(words).filter(|_| *level >= 2);
        let depends = matches!(field, Some(("dependencies", _)));
        if *level == 1 || (*level > 2 && !header) {
            continue;
        }
        match field {
            Some((name, value)) if header && !depends => {
                let line = &lines[*i];
                // `## Status` and the value below it.
                let value = match value {
                    "" => lines[*i + 1..next_head(*i)].iter().find(|line| line.prose && !line.is_blank()).map(|line| {
                        HeaderValue { text: line.text.trim().to_owned(), at: line.place_of(line.text.trim()) }
                    }),
                    value => Some(HeaderValue { text: value.to_owned(), at: line.place_of(value) }),
                };
                let Some(place) = VALUES.iter().position(|known| *known == name) else { continue };
                let slot = &mut parts.values[place];
                match (&slot, value) {
                    (_, None) => drop(found.warning(line.at, format!("`{words}` says nothing"))),
                    (Some(first), Some(value)) => {
                        let problem = found.error(value.at, format!("the {name} is given twice"));
                        problem.add_span(first.at, "first").add_hint("keep one of them");
                    }
                    (None, Some(value)) => *slot = Some(value),
                }
            }
            Some((name, _)) if !depends && *level == 2 && name == "status" => {
                let problem = found.warning(lines[*i].at, "a status below the header is not read");
                problem.add_hint("move it to the top, below the title");
            }
            _ if *level == 2 => {
                if !depends && header {
                    header = false;
                    header_end = *i;
                }
                let end = heads
                    .iter()
                    .find(|(line, level, _)| line > i && *level <= 2)
                    .map_or(lines.len(), |(line, ..)| *line);
                parts.sections.push((*i, words, end));
            }
            _ => {}
        }
    }
    let begin = parts.title.filter(|title| *title < header_end).map_or(0, |title| title + 1);
    for line in lines[..header_end].iter().filter(|line| line.prose && line.heading().is_none()) {
        let bare = line.text.trim().trim_start_matches(['-', '*', ' ']);
        if line.text.contains(':')
            && let Some((name, value)) = key(bare).filter(|(name, value)| VALUES.contains(name) && !value.is_empty())
        {
            let heading = format!("## {}: {}", capitalised(name), value.trim_matches('*').trim());
            let problem = found.error(line.at, format!("a {name} is not read in this form"));
            problem.add_hint(format!("write it as a heading: `{heading}`"));
        }
    }
    parts.lead = (begin, header_end);
    parts.lines = lines;
    parts
}

/// A value without marks and without what is said in brackets behind it.
fn bare(value: &str) -> &str {
    let value = value.split(" (").next().unwrap_or(value);
    value.trim().trim_matches(['*', '`', '"']).trim().trim_end_matches('.')
}

fn item(slug: &Slug, kind: Kind, parts: &Parts<'_>, found: &mut ProblemList) -> Option<Item> {
    let front = front_fields(parts, found);
    for (name, (front, heading)) in VALUES.iter().zip(front.values.iter().zip(&parts.values)) {
        if let (Some(front), Some(heading)) = (front, heading)
            && plain_word(bare(&front.text)) != plain_word(bare(&heading.text))
        {
            let problem = found.error(heading.at, format!("the {name} is given twice, and differently"));
            problem.add_span(front.at, "first").add_hint("keep one of them");
        }
    }
    let value = |place: usize| front.values[place].as_ref().or(parts.values[place].as_ref());
    let status = value(0).map_or(Status::Open, |value| status(value, found));
    let priority = value(1).map_or(Priority::Medium, |value| priority(value, found));
    let kind = value(2).map_or(Some(kind), |value| kind_of(value, found))?;

    let title = front
        .title
        .or_else(|| Some(parts.lines[parts.title?].heading()?.1.to_owned()))
        .filter(|title| !title.trim().is_empty());
    let title = title.unwrap_or_else(|| capitalised(&slug.words().replace(['-', '_'], " ")));
    let mut depends_on = front.depends_on;
    let mut sections = Vec::new();
    let (mut log, mut clarification, mut ended) = (Vec::new(), None, None);
    for (head, words, end) in &parts.sections {
        let body = &parts.lines[head + 1..*end];
        match plain_title(words).as_str() {
            _ if matches!(key(words), Some(("dependencies", _))) => {
                let behind = key(words).map(|(_, value)| value).filter(|value| !value.is_empty());
                let listed = body.iter().filter(|line| line.prose).filter_map(|line| list_item(line.text));
                let inline = behind.into_iter().flat_map(|value| value.split(','));
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
    let lead = lead(parts);
    let hash = hash(&title, kind, front.agent.as_deref(), &lead, &sections, clarification.as_ref());
    Some(Item {
        slug: slug.clone(),
        kind,
        title,
        status,
        priority,
        depends_on: seen,
        budget_usd: front.budget_usd,
        agent: front.agent,
        lead,
        sections,
        clarification,
        log,
        ended,
        hash,
    })
}

#[derive(Default)]
struct Front {
    title: Option<String>,
    values: [Option<HeaderValue>; 3],
    depends_on: Vec<Dependency>,
    budget_usd: Option<f64>,
    agent: Option<String>,
}

fn front_fields(parts: &Parts<'_>, found: &mut ProblemList) -> Front {
    let Some((node, _)) = parts.front.as_ref().filter(|(node, _)| !node.is_null()) else { return Front::default() };
    let Some(fields) = MapFields::read(node, &FRONT, found) else { return Front::default() };
    let value = |node: &Node| Some(HeaderValue { text: node.as_scalar()?.to_owned(), at: node.at });
    Front {
        title: fields.text("title"),
        values: VALUES.map(|key| fields.words(key).next().and_then(value)),
        depends_on: fields.words("depends_on").filter_map(|node| dependency(node.as_scalar()?)).collect(),
        budget_usd: fields.values.get("budget_limit_usd").and_then(serde_json::Value::as_f64),
        agent: fields.text("agent"),
    }
}

fn status(value: &HeaderValue, found: &mut ProblemList) -> Status {
    let status = Status::of(bare(&value.text));
    if let Status::Unknown(word) = &status {
        let known = Status::KNOWN.each_ref().map(Status::as_str);
        let hint = did_you_mean(word, known).unwrap_or_else(|| format!("one of {}", known.join(", ")));
        found.warning(value.at, format!("`{word}` is no status: the item is not worked on")).add_hint(hint);
    }
    status
}

fn priority(value: &HeaderValue, found: &mut ProblemList) -> Priority {
    let word = bare(&value.text).to_ascii_lowercase();
    word.parse().unwrap_or_else(|error: UnknownWord| {
        found.warning(value.at, format!("`{word}` is no priority: medium is taken")).add_hint(error.hint());
        Priority::Medium
    })
}

fn kind_of(value: &HeaderValue, found: &mut ProblemList) -> Option<Kind> {
    let word = bare(&value.text).to_ascii_lowercase();
    let kind = word.parse().ok();
    if kind.is_none() {
        found.error(value.at, format!("`{word}` is no type")).add_hint("defect or feature");
    }
    kind
}

/// `03-parser.md (needed first)`, `[03-parser](../03-parser.md)`, `docs/feature-backlog/03-parser.md` are one.
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
        // An entry without a verdict is no proof of anything.
        LogEntry { number: *number, verdict: verdict::last_line(&text).unwrap_or(Verdict::Error), text }
    };
    heads.iter().zip(ends).map(entry).collect()
}

/// What stands between title and sections, without the fields.
fn lead(parts: &Parts<'_>) -> String {
    let (begin, end) = parts.lead;
    let depends: Vec<(usize, usize)> = parts
        .sections
        .iter()
        .filter(|(_, words, _)| matches!(key(words), Some(("dependencies", _))))
        .map(|(head, _, end)| (*head, *end))
        .collect();
    let ours = |i: usize, line: &MarkdownLine<'_>| {
        line.heading().is_some()
            || depends.iter().any(|(from, to)| (*from..*to).contains(&i))
            || parts.values.iter().any(|value| value.as_ref().is_some_and(|value| value.at.line == line.at.line))
    };
    let kept = (begin..end).filter(|i| !ours(*i, &parts.lines[*i]));
    let text: Vec<&str> = kept.map(|i| parts.lines[i].text.trim_end()).collect();
    text.join("\n").trim().to_owned()
}

fn joined(lines: &[MarkdownLine<'_>]) -> String {
    let text: Vec<&str> = lines.iter().map(|line| line.text.trim_end()).collect();
    text.join("\n").trim_matches('\n').to_owned()
}

fn hash(
    title: &str,
    kind: Kind,
    agent: Option<&str>,
    lead: &str,
    sections: &[ItemSection],
    clarification: Option<&Clarification>,
) -> String {
    let mut hash = Sha256::new();
    // Lengths, so that no text can pass for two.
    let mut add = |text: &str| {
        hash.update((text.len() as u64).to_be_bytes());
        hash.update(text);
    };
    for text in [title, kind.as_str(), agent.unwrap_or_default(), lead] {
        add(text);
    }
    for section in sections {
        add(&section.title);
        add(&section.text);
    }
    if let Some(answer) = clarification.and_then(|clarification| clarification.answer.as_deref()) {
        add(answer);
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

//! Writing statuses into a plan file without touching anything else in it: comments, order, quotes and unknown keys stay.
//!
//! The bytes of single values are replaced where they stand; a missing field gets a line of its own. Then the new text is
//! read again, and it must be the old plan with the new statuses and every comment. If it is not, nothing is written: the
//! journal has the truth, and the file is only its mirror.

use std::ops::Range;

use super::file::{PlanStatus, section_status};
use super::record::RECORD_KEYS;
use super::yaml::{self, Entry, Node, Notation, Tree, Value};
use super::{Plan, PlanProblems, Record, State, TaskId, read};

/// What is written on top of a plan when a run ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    pub status: Option<PlanStatus>,
    pub pause_reason: Option<String>,
    pub failure_reason: Option<String>,
}

const MARK_KEYS: [&str; 3] = ["status", "pause_reason", "failure_reason"];

#[derive(Debug, PartialEq, thiserror::Error)]
pub enum NotWritten {
    #[error("the plan cannot be read:\n{0}")]
    Unreadable(#[source] PlanProblems),
    #[error("the status of {0} is not written: the file leaves no place for it; give it a line `status: pending`")]
    NoPlace(String),
    #[error(
        "statuses are not written into the plan: they would change more than themselves; the run has them all the same"
    )]
    WouldChangeMore,
}

/// The longest text that is written into a plan, in characters. Errors can be long; the whole is in the journal.
const TEXT_MAX: usize = 2000;

/// The text of a plan with the given statuses in it. Tasks that the state does not know stay as they are.
pub fn write(text: &str, state: &State, mark: &Mark) -> Result<String, NotWritten> {
    Original::read(text).map_err(NotWritten::Unreadable)?.write(state, mark)
}

/// A plan's text as its authors left it. Read once, and written over again and again.
#[derive(Debug)]
pub struct Original {
    text: String,
    tree: Tree,
    plan: Plan,
    bare: Node,
}

impl Original {
    pub fn read(text: &str) -> Result<Self, PlanProblems> {
        let unreadable = |problem| PlanProblems { file: "plan".into(), problems: vec![problem], warnings: Vec::new() };
        let tree = yaml::parse(text).map_err(unreadable)?;
        let (plan, _) = read::from_tree("plan", &tree.root)?;
        let bare = without_statuses(tree.root.clone());
        Ok(Self { text: text.to_owned(), tree, plan, bare })
    }

    /// The text with the given statuses in it.
    pub fn write(&self, state: &State, mark: &Mark) -> Result<String, NotWritten> {
        let Self { text, tree, plan, .. } = self;
        let mut edits = Edits { text, splices: Vec::new() };
        if let Some(meta) = tree.root.get("meta") {
            let was = Mark::of(plan).values();
            edits
                .set(&meta.value, &was, &mark.values(), &["name"])
                .ok_or_else(|| NotWritten::NoPlace("the plan".into()))?;
        }
        for (section, node) in plan.sections.iter().zip(list(&tree.root, "sections")) {
            for (task, node) in section.tasks.iter().zip(list(node, "tasks")) {
                let Some(wanted) = state.get(&task.id) else { continue };
                edits
                    .set(node, &values(&task.record), &values(wanted), &["name", "id"])
                    .ok_or_else(|| NotWritten::NoPlace(format!("task {}", task.id)))?;
            }
            // What a section says of itself follows from its tasks. Where it says nothing, nothing is added.
            if let Some(entry) = node.get("status") {
                let status = section_status(section.tasks.iter().map(|task| match state.get(&task.id) {
                    Some(record) => record.status,
                    None => task.record.status,
                }));
                if !matches!(&entry.value.value, Value::Scalar { text, .. } if text == status.as_str()) {
                    edits
                        .replace(entry, status.as_str())
                        .ok_or_else(|| NotWritten::NoPlace(format!("section {}", section.id)))?;
                }
            }
        }
        let edited = edits.apply();
        if edited == *text || self.proves(&edited, state, mark) { Ok(edited) } else { Err(NotWritten::WouldChangeMore) }
    }

    /// Whether `edited` is this plan with these statuses, and with nothing else changed or lost.
    fn proves(&self, edited: &str, state: &State, mark: &Mark) -> bool {
        let Ok(new) = yaml::parse(edited) else { return false };
        let Ok((plan, _)) = read::from_tree("plan", &new.root) else { return false };
        let records = plan
            .tasks()
            .zip(self.plan.tasks())
            .all(|(task, before)| values(&task.record) == values(state.get(&task.id).unwrap_or(&before.record)));
        records
            && Mark::of(&plan).values() == mark.values()
            && self.tree.comments == new.comments
            && self.bare == without_statuses(new.root)
    }
}

/// Whether two texts of a plan say the same but for what has become of it, which is ours to write.
pub fn same_but_for_statuses(one: &str, other: &str) -> bool {
    match (yaml::parse(one), yaml::parse(other)) {
        (Ok(one), Ok(other)) => {
            one.comments == other.comments && without_statuses(one.root) == without_statuses(other.root)
        }
        _ => false,
    }
}

fn without_statuses(mut root: Node) -> Node {
    fn drop_keys(node: &mut Node, keys: &[&str]) {
        if let Value::Map(entries, _) = &mut node.value {
            entries.retain(|entry| !entry.name().is_some_and(|name| keys.contains(&name)));
        }
    }
    fn each<'n>(node: &'n mut Node, key: &str) -> Vec<&'n mut Node> {
        let Value::Map(entries, _) = &mut node.value else { return Vec::new() };
        let Some(entry) = entries.iter_mut().find(|entry| entry.name() == Some(key)) else { return Vec::new() };
        if matches!(entry.value.value, Value::Map(..)) {
            return vec![&mut entry.value];
        }
        match &mut entry.value.value {
            Value::List(items) => items.iter_mut().collect(),
            _ => Vec::new(),
        }
    }
    for meta in each(&mut root, "meta") {
        drop_keys(meta, &MARK_KEYS);
    }
    for section in each(&mut root, "sections") {
        drop_keys(section, &["status"]);
        for task in each(section, "tasks") {
            drop_keys(task, &RECORD_KEYS);
        }
    }
    root
}

fn list<'n>(node: &'n Node, key: &str) -> &'n [Node] {
    node.get(key).map_or(&[], |entry| entry.value.items())
}

/// A field and what is to stand behind it. Nothing is written as `null`, and only where something stood.
type Written = (&'static str, Option<String>);

impl Mark {
    /// What the file says.
    pub fn of(plan: &Plan) -> Self {
        Self {
            status: plan.meta.status,
            pause_reason: plan.meta.pause_reason.clone(),
            failure_reason: plan.meta.failure_reason.clone(),
        }
    }

    fn values(&self) -> Vec<Written> {
        vec![
            ("status", self.status.map(|status| status.as_str().to_owned())),
            ("pause_reason", self.pause_reason.as_deref().and_then(quoted)),
            ("failure_reason", self.failure_reason.as_deref().and_then(quoted)),
        ]
    }
}

/// A record as it is written, in the order of `RECORD_KEYS`.
fn values(record: &Record) -> Vec<Written> {
    let text = |text: &Option<String>| text.as_deref().and_then(quoted);
    let count = |count: u32| (count > 0).then(|| count.to_string());
    let all = |items: &[String]| {
        let items: Vec<String> = items.iter().filter_map(|item| quoted(item)).collect();
        (!items.is_empty()).then(|| format!("[{}]", items.join(", ")))
    };
    vec![
        ("status", Some(record.status.as_str().to_owned())),
        ("attempts", count(record.attempts)),
        ("last_attempt", text(&record.last_attempt)),
        ("model_used", text(&record.model_used)),
        ("completed_at", text(&record.completed_at)),
        ("result_message", text(&record.result_message)),
        ("last_error", text(&record.last_error)),
        ("failure_kind", record.failure_kind.map(|kind| kind.as_str().to_owned())),
        ("validation_attempts", count(record.validation_attempts)),
        ("validation_findings", all(&record.validation_findings)),
        ("suspended_at", text(&record.suspended_at)),
        ("question", text(&record.question)),
        ("answer", text(&record.answer)),
        ("skip_reason", text(&record.skip_reason)),
        ("cost_usd", record.cost_usd.map(|usd| usd.to_string())),
        ("commits", all(&record.commits)),
    ]
}

/// Text in double quotes, on one line, whatever is in it.
fn quoted(text: &str) -> Option<String> {
    if text.trim().is_empty() {
        return None;
    }
    let mut out = String::from("\"");
    for (i, c) in text.chars().enumerate() {
        if i == TEXT_MAX {
            out.push('…');
            break;
        }
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}') => {
                out.push_str(&format!("\\u{:04x}", c as u32));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    Some(out)
}

/// Changes to a text, collected first and made at once.
pub(crate) struct Edits<'t> {
    pub(crate) text: &'t str,
    pub(crate) splices: Vec<(Range<usize>, String)>,
}

impl Edits<'_> {
    /// Changes fields of a map from what they were to what they shall be. New ones are put behind the last of these
    /// fields that is there, else behind one of `anchors`. Nothing if there is no place.
    fn set(&mut self, map: &Node, was: &[Written], wanted: &[Written], anchors: &[&str]) -> Option<()> {
        for ((key, before), (_, wanted)) in was.iter().zip(wanted) {
            let entry = map.get(key);
            // `status: pending` and no status are the same.
            let same =
                before == wanted && (entry.is_some() || *key != "status" || wanted.as_deref() == Some("pending"));
            match (entry, wanted) {
                _ if same => {}
                (Some(entry), wanted) => self.replace(entry, wanted.as_deref().unwrap_or("null"))?,
                (None, None) => {}
                (None, Some(wanted)) => {
                    let ours = map
                        .entries()
                        .iter()
                        .rev()
                        .filter(|entry| entry.name().is_some_and(|name| was.iter().any(|(key, _)| *key == name)));
                    let anchor = ours
                        .chain(anchors.iter().filter_map(|anchor| map.get(anchor)))
                        .chain(map.entries())
                        .find(|entry| self.on_one_line(entry))?;
                    self.insert_behind(map, anchor, key, wanted);
                }
            }
        }
        Some(())
    }

    fn on_one_line(&self, entry: &Entry) -> bool {
        let end = self.end(&entry.value).max(entry.key.at.end);
        !self.text[entry.key.at.start..end].contains('\n')
    }

    /// Puts other text behind the colon of a field.
    pub(crate) fn replace(&mut self, entry: &Entry, with: &str) -> Option<()> {
        let behind_key = self.text.get(entry.key.at.end..)?;
        let colon = behind_key.len() - behind_key.trim_start_matches([' ', '\t']).len();
        if !behind_key[colon..].starts_with(':') {
            return None;
        }
        let from = entry.key.at.end + colon + 1;
        let to = self.end(&entry.value).max(from);
        self.splices.push((from..to, format!(" {with}")));
        Some(())
    }

    pub(crate) fn insert_behind(&mut self, map: &Node, anchor: &Entry, key: &str, value: &str) {
        let end = self.end(&anchor.value).max(anchor.key.at.end);
        match map.value {
            Value::Map(_, Notation::Flow) => self.splices.push((end..end, format!(", {key}: {value}"))),
            _ => {
                let line_end = self.text[end..].find('\n').map_or(self.text.len(), |at| end + at);
                let (at, line) = match self.text[..line_end].strip_suffix('\r') {
                    Some(line) => (line.len(), "\r\n"),
                    None => (line_end, "\n"),
                };
                let indent = " ".repeat(anchor.key.at.column - 1);
                self.splices.push((at..at, format!("{line}{indent}{key}: {value}")));
            }
        }
    }

    /// Where a value ends. Block scalars reach into the empty lines behind them, and of nothing the parser says that it
    /// stands at the next thing.
    pub(crate) fn end(&self, node: &Node) -> usize {
        match &node.value {
            Value::Scalar { text, plain: true } if text.is_empty() => 0,
            _ => {
                let value = &self.text[node.at.start..node.at.end];
                node.at.start + value.trim_end().len()
            }
        }
    }

    pub(crate) fn apply(mut self) -> String {
        // Stable: several lines inserted in one place keep their order.
        self.splices.sort_by_key(|(range, _)| range.start);
        let mut out = String::with_capacity(self.text.len() + 256);
        let mut at = 0;
        for (range, with) in &self.splices {
            // Overlapping edits cannot both be right; the proof will refuse what comes out.
            if range.start < at {
                continue;
            }
            out.push_str(&self.text[at..range.start]);
            out.push_str(with);
            at = range.end;
        }
        out.push_str(&self.text[at..]);
        out
    }
}

/// The map of a task.
pub(crate) fn task_node<'n>(root: &'n Node, id: &TaskId) -> Option<&'n Node> {
    list(root, "sections").iter().flat_map(|section| list(section, "tasks")).find(|task| {
        matches!(task.get("id").map(|entry| &entry.value.value), Some(Value::Scalar { text, .. }) if text == id.as_str())
    })
}

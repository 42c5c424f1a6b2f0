//! Writing statuses into a plan file without touching anything else in it: comments, order, quotes and unknown keys stay.
//!
//! The bytes of single values are replaced where they stand; a missing field gets a line of its own. Then the new text is
//! read again, and it must be the old plan with the new statuses and every comment. If it is not, nothing is written: the
//! journal has the truth, and the file is only its mirror.
//!
//! A run writes one task after the other, and to read a long plan again for each of them would take longer than everything
//! else. So tasks are proven one by one where that is possible (`alone`), and what was proven is remembered.

mod alone;
mod splices;

use std::sync::{Arc, Mutex, PoisonError};

pub(crate) use splices::{Edits, Splice};

use super::file::{PlanStatus, Task, section_status};
use super::record::RECORD_KEYS;
use super::yaml::{self, Node, Tree, Value};
use super::{Plan, Record, State, TaskId, read};
use crate::file_problem::FileProblems;

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
    Unreadable(#[source] FileProblems),
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
    proven: Mutex<Proven>,
}

/// What need not be proven again.
#[derive(Debug)]
struct Proven {
    /// Changes outside of tasks.
    around: Vec<Splice>,
    /// Every task as it was written last, and the text for that. Nothing if it is not proven.
    tasks: Vec<Option<(Arc<Record>, Splice)>>,
}

impl Original {
    pub fn read(text: &str) -> Result<Self, FileProblems> {
        let unreadable = |problem| FileProblems { file: "plan".into(), problems: vec![problem], warnings: Vec::new() };
        let tree = yaml::parse(text).map_err(unreadable)?;
        let (plan, _) = read::from_tree("plan", &tree.root)?;
        let bare = without_statuses(tree.root.clone());
        let proven = Mutex::new(Proven { around: Vec::new(), tasks: vec![None; plan.tasks().count()] });
        Ok(Self { text: text.to_owned(), tree, plan, bare, proven })
    }

    /// The text with the given statuses in it.
    pub fn write(&self, state: &State, mark: &Mark) -> Result<String, NotWritten> {
        let mut proven = self.proven.lock().unwrap_or_else(PoisonError::into_inner);
        let around = self.around(state, mark)?;
        let mut edits = Edits { text: &self.text, splices: around.clone() };
        let mut all_proven = around == proven.around;
        for ((task, node), last) in self.tasks().zip(&mut proven.tasks) {
            let Some(wanted) = state.shared(&task.id).filter(|wanted| ***wanted != task.record) else { continue };
            if !last.as_ref().is_some_and(|(record, _)| record == wanted) {
                let changes = self.changes(task, node, wanted)?;
                let piece = alone::prove(&self.text, &self.tree, node, &changes, wanted);
                *last = piece.map(|piece| (wanted.clone(), piece));
                if last.is_none() {
                    all_proven = false;
                    edits.splices.extend(changes);
                }
            }
            edits.splices.extend(last.iter().map(|(_, piece)| piece.clone()));
        }
        all_proven &= !edits.overlap();
        let edited = edits.apply();
        debug_assert!(!all_proven || self.proves(&edited, state, mark), "the parts were proven, and the whole is not");
        if edited != self.text && !all_proven && !self.proves(&edited, state, mark) {
            return Err(NotWritten::WouldChangeMore);
        }
        proven.around = around;
        Ok(edited)
    }

    /// The tasks, and where they stand.
    fn tasks(&self) -> impl Iterator<Item = (&Task, &Node)> {
        self.plan.tasks().zip(task_nodes(&self.tree.root))
    }

    /// What changes in a task.
    fn changes(&self, task: &Task, node: &Node, wanted: &Record) -> Result<Vec<Splice>, NotWritten> {
        let mut edits = Edits { text: &self.text, splices: Vec::new() };
        edits
            .set(node, &values(&task.record), &values(wanted), &["name", "id"])
            .ok_or_else(|| NotWritten::NoPlace(format!("task {}", task.id)))?;
        Ok(edits.splices)
    }

    /// What changes outside of tasks.
    fn around(&self, state: &State, mark: &Mark) -> Result<Vec<Splice>, NotWritten> {
        let Self { text, tree, plan, .. } = self;
        let mut edits = Edits { text, splices: Vec::new() };
        if let Some(meta) = tree.root.get("meta") {
            let was = Mark::of(plan).values();
            edits
                .set(&meta.value, &was, &mark.values(), &["name"])
                .ok_or_else(|| NotWritten::NoPlace("the plan".into()))?;
        }
        for (section, node) in plan.sections.iter().zip(list(&tree.root, "sections")) {
            // What a section says of itself follows from its tasks. Where it says nothing, nothing is added.
            let Some(entry) = node.get("status") else { continue };
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
        Ok(edits.splices)
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

fn drop_keys(node: &mut Node, keys: &[&str]) {
    if let Value::Map(entries, _) = &mut node.value {
        entries.retain(|entry| !entry.name().is_some_and(|name| keys.contains(&name)));
    }
}

fn without_statuses(mut root: Node) -> Node {
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

/// Whether two texts are the same in a plan's file, where long ones are cut.
pub(super) fn reads_the_same(one: Option<&str>, other: Option<&str>) -> bool {
    one.and_then(quoted) == other.and_then(quoted)
}

/// The maps of all tasks.
fn task_nodes(root: &Node) -> impl Iterator<Item = &Node> {
    list(root, "sections").iter().flat_map(|section| list(section, "tasks"))
}

/// The map of a task.
pub(crate) fn task_node<'n>(root: &'n Node, id: &TaskId) -> Option<&'n Node> {
    task_nodes(root).find(|task| {
        matches!(task.get("id").map(|entry| &entry.value.value), Some(Value::Scalar { text, .. }) if text == id.as_str())
    })
}

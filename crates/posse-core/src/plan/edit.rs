//! Writes statuses into a plan file and keeps everything else: comments, order, quotes and unknown keys.
//!
//! The status of a task is replaced in place; a task without one gets a new line. Then the new text is parsed. It must
//! be the old plan with the new statuses and every comment. Otherwise nothing is written, and only the journal has the
//! statuses.

use std::ops::Range;
use std::sync::Arc;

use super::yaml::{self, Node, Notation, Value, YamlEntry, YamlTree};
use super::{State, TaskId, TaskStatus};
use crate::file_problem::FileProblem;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotWritten {
    #[error("there is no place for the status of task {0}; give the task a line `status: pending`")]
    NoPlace(String),
    #[error("a status cannot be written without changing something else")]
    WouldChangeMore,
}

/// The text of a plan, parsed once so that statuses can be written into it again and again.
#[derive(Debug)]
pub struct PlanText {
    text: Arc<str>,
    tree: YamlTree,
    /// The tree without the statuses of tasks.
    authored: Node,
}

impl PlanText {
    pub fn parse(text: &str) -> Result<Self, FileProblem> {
        let tree = yaml::parse(text)?;
        Ok(Self { text: text.into(), authored: without_statuses(tree.root.clone()), tree })
    }

    pub fn text(&self) -> &Arc<str> {
        &self.text
    }

    /// Returns the text with these statuses. Tasks that the state does not know keep theirs.
    pub fn with_statuses(&self, state: &State) -> Result<String, NotWritten> {
        let mut edits = Edits { text: &self.text, splices: Vec::new() };
        for task in task_nodes(&self.tree.root) {
            let Some(id) = id_of(task) else { continue };
            if let Some(wanted) = state.known_status(id).filter(|wanted| wanted.as_str() != status_of(task)) {
                edits.set_status(task, wanted).ok_or_else(|| NotWritten::NoPlace(id.to_owned()))?;
            }
        }
        let edited = edits.apply();
        if *edited == *self.text || self.proves(&edited, state) { Ok(edited) } else { Err(NotWritten::WouldChangeMore) }
    }

    /// Reports whether another text is this plan, apart from the statuses of tasks.
    pub fn is_same_plan(&self, other: &str) -> bool {
        yaml::parse(other).is_ok_and(|other| self.is_same_tree(other))
    }

    fn is_same_tree(&self, other: YamlTree) -> bool {
        self.tree.comments == other.comments && self.authored == without_statuses(other.root)
    }

    /// Reports whether `edited` is this plan with these statuses, and nothing else is changed or lost.
    fn proves(&self, edited: &str, state: &State) -> bool {
        let Ok(new) = yaml::parse(edited) else { return false };
        let written = task_nodes(&self.tree.root).zip(task_nodes(&new.root)).all(|(old, new)| {
            let wanted = id_of(old).and_then(|id| state.known_status(id));
            status_of(new) == wanted.map_or(status_of(old), |wanted| wanted.as_str())
        });
        written && self.is_same_tree(new)
    }
}

fn without_statuses(mut root: Node) -> Node {
    let sections = root.get_mut("sections").into_iter().flat_map(Node::items_mut);
    for task in sections.filter_map(|section| section.get_mut("tasks")).flat_map(Node::items_mut) {
        if let Value::Map(entries, _) = &mut task.value {
            entries.retain(|entry| entry.name() != Some("status"));
        }
    }
    root
}

fn task_nodes(root: &Node) -> impl Iterator<Item = &Node> {
    list(root, "sections").iter().flat_map(|section| list(section, "tasks"))
}

fn list<'n>(node: &'n Node, key: &str) -> &'n [Node] {
    node.get(key).map_or(&[], |entry| entry.value.items())
}

pub(super) fn task_node<'n>(root: &'n Node, id: &TaskId) -> Option<&'n Node> {
    task_nodes(root).find(|task| id_of(task) == Some(id.as_str()))
}

fn id_of(task: &Node) -> Option<&str> {
    task.get("id").and_then(|entry| entry.value.as_scalar())
}

/// Returns the status of a task. A task without a status is pending.
fn status_of(task: &Node) -> &str {
    let written = task.get("status").filter(|entry| !entry.value.is_null());
    written.map_or(TaskStatus::Pending.as_str(), |entry| entry.value.as_scalar().unwrap_or_default())
}

/// Edits of a text, collected first and applied at once.
pub(crate) struct Edits<'t> {
    pub(crate) text: &'t str,
    /// The bytes to remove, and the text to put in their place.
    pub(crate) splices: Vec<(Range<usize>, String)>,
}

impl Edits<'_> {
    /// Writes the status of a task. Returns nothing if there is no place for it.
    fn set_status(&mut self, task: &Node, status: TaskStatus) -> Option<()> {
        if let Some(entry) = task.get("status") {
            return self.replace(entry, status.as_str());
        }
        let anchors = ["name", "id"].into_iter().filter_map(|key| task.get(key)).chain(task.entries());
        let anchor = anchors.into_iter().find(|entry| self.on_one_line(entry))?;
        self.insert_behind(task, anchor, "status", status.as_str());
        Some(())
    }

    fn on_one_line(&self, entry: &YamlEntry) -> bool {
        let end = self.end(&entry.value).max(entry.key.at.end);
        !self.text[entry.key.at.start..end].contains('\n')
    }

    /// Replaces the text after the colon of a field.
    pub(crate) fn replace(&mut self, entry: &YamlEntry, with: &str) -> Option<()> {
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

    pub(super) fn insert_behind(&mut self, map: &Node, anchor: &YamlEntry, key: &str, value: &str) {
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

    /// Returns the end of a value. Block scalars include trailing empty lines, and the parser places an empty value at
    /// the next token.
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
            // Only the first of overlapping edits is applied. The caller's check refuses the result.
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

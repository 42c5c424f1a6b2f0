//! Proving the text of one task without reading the rest of its plan.
//!
//! What stands in a task is read the same whatever stands in the others, as long as nothing in the plan stands for something
//! elsewhere (`&x`, `*x`), and it stands alone in its lines or on one. So if a task's piece of the text, taken out and read on its own, is what it is in the plan, then
//! another piece in its place that is this task with other statuses makes the plan with these statuses.

use std::ops::Range;

use super::{Edits, RECORD_KEYS, Splice, drop_keys, values};
use crate::plan::yaml::{self, Node, Notation, Tree, Value};
use crate::plan::{Record, read};

/// A plan of more values is looked at as a whole, which must stay below a limit: what is written can make it several times as
/// long, and a task alone does not show that.
const MANY: usize = yaml::MAX_NODES / 10;

/// The text of the task that stands at `node` after these changes; nothing unless it is the task with this record, and
/// nothing else is changed or lost.
pub(super) fn prove(text: &str, tree: &Tree, node: &Node, changes: &[Splice], wanted: &Record) -> Option<Splice> {
    if tree.has_anchors || tree.nodes > MANY {
        return None;
    }
    let piece = piece(text, node);
    let before = &text[piece.clone()];
    // How far to the right the lines of a `{…}` must stand depends on what is around it.
    if !is_block(node) && before.contains(['\n', '\r']) {
        return None;
    }
    let moved = changes.iter().map(|(at, with)| {
        let inside = piece.start <= at.start && at.end <= piece.end;
        inside.then(|| (at.start - piece.start..at.end - piece.start, with.clone()))
    });
    let after = Edits { text: before, splices: moved.collect::<Option<_>>()? }.apply();
    // As far to the right as it stands in its line.
    let indent = if is_block(node) { " ".repeat(node.at.column - 1) } else { String::new() };
    let alone = |piece: &str| yaml::parse(&format!("{indent}{piece}")).ok();
    let (was, is) = (alone(before)?, alone(&after)?);
    let (mut old, mut new) = (was.root, is.root);
    if old != *node || was.comments != is.comments || values(&read::record_of(&new)?) != values(wanted) {
        return None;
    }
    drop_keys(&mut old, &RECORD_KEYS);
    drop_keys(&mut new, &RECORD_KEYS);
    (old == new).then_some((piece, after))
}

/// The bytes of a task. A block goes to the end of its last line, where a comment may stand; texts in it reach into the empty
/// lines behind them.
fn piece(text: &str, node: &Node) -> Range<usize> {
    let Range { start, end } = node.at.start..node.at.end;
    if !is_block(node) {
        return start..end;
    }
    let end = start + text[start..end].trim_end().len();
    start..text[end..].find('\n').map_or(text.len(), |line| end + line)
}

fn is_block(node: &Node) -> bool {
    matches!(node.value, Value::Map(_, Notation::Block))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::edit::task_nodes;
    use crate::plan::{Plan, TaskStatus};

    /// Whether the second of three tasks can be proven on its own when it is done.
    fn alone(task: &str) -> bool {
        let text = format!(
            "meta: {{name: p}}\nsections:\n  - id: s\n    tasks:\n      - {{id: z, name: Z}}\n{task}\n      - id: b\n        name: B\n"
        );
        let tree = yaml::parse(&text).unwrap();
        let (plan, _) = Plan::read("p", &text).unwrap();
        let (node, task) = (task_nodes(&tree.root).nth(1).unwrap(), plan.tasks().nth(1).unwrap());
        let wanted = Record { status: TaskStatus::Verified, attempts: 1, ..Record::default() };
        let mut edits = Edits { text: &text, splices: Vec::new() };
        edits.set(node, &values(&task.record), &values(&wanted), &["name", "id"]).unwrap();
        prove(&text, &tree, node, &edits.splices, &wanted).is_some()
    }

    #[test]
    fn tasks_that_mean_the_same_on_their_own() {
        for task in [
            "      - {id: a, name: A}",
            "      - id: a\n        name: A # why\n        # on its own line\n        files: [x]",
            "      - id: a\n        name: A\n        description: |\n          x\n\n            y\n\n",
            "      - id: a\n        name: A\n        status:\n        attempts: 3",
            "      - name: >\n          long\n          name\n        id: a",
            "      -\n        id: a\r\n        name: A\r\n        last_error: old\r\n",
            "      - \"id\": a\n        'name': \"é: A\"",
            "      - id: a\n        name: A\n        agent:\n\n\n",
        ] {
            assert!(alone(task), "{task}");
        }
    }

    #[test]
    fn tasks_that_are_proven_with_the_rest() {
        for task in [
            // What stands here may stand elsewhere.
            "      - {id: a, name: &n A}",
            "      - id: a\n        name: &n A\n        description: *n",
            "      - ? id\n        : a\n        name: A",
            // Shorter, its last line would stand too far to the left for what is around it.
            "      - {id: a, name: A,\n answer: \"xxxxxxxxxxxxxxxx\", \"some remark of\n        mine\": v}",
        ] {
            assert!(!alone(task), "{task}");
        }
    }
}

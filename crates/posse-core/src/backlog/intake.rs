//! Decides whether an item is precise enough to begin. Questions are asked before anything is spent.

use super::item::says_something;
use super::{Item, Kind};

/// The minimum length of a summary. A shorter one does not describe the problem.
const SUMMARY_WORDS: usize = 8;
/// The minimum length of a symptom.
const SYMPTOM_WORDS: usize = 3;

/// Returns the question about an item that is too vague. A defect needs an observable symptom, a feature at least one
/// acceptance criterion.
pub fn question(item: &Item) -> Option<&'static str> {
    let enough = match item.kind {
        Kind::Defect => observable(item),
        Kind::Feature => !item.criteria().is_empty(),
    };
    // If the author has answered a question, the answer counts wherever it stands.
    let answered = item.clarification.as_ref().and_then(|asked| asked.answer.as_deref()).is_some_and(says_something);
    if enough || answered {
        return None;
    }
    Some(match item.kind {
        Kind::Defect => {
            "What exactly goes wrong, and where is it seen? Describe what you did, what happened and what you expected, \
             so that others can reproduce it and later confirm that it is gone (sections Actual Behavior and Expected Behavior)."
        }
        Kind::Feature => {
            "How will one see that it is done? Name at least one thing that can be checked (a list in a section \
             Acceptance Criteria)."
        }
    })
}

fn observable(item: &Item) -> bool {
    let words = |text: &str| if says_something(text) { text.split_whitespace().count() } else { 0 };
    let summary = item.section("summary").or_else(|| item.section("description")).unwrap_or_default();
    item.symptoms().iter().any(|symptom| words(symptom) >= SYMPTOM_WORDS)
        || words(summary) >= SUMMARY_WORDS
        || words(&item.lead) >= SUMMARY_WORDS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backlog::read;

    fn asks(kind: Kind, text: &str) -> bool {
        let (item, _) = read(&"1-x".parse().unwrap(), kind, "1-x.md", text).unwrap();
        question(&item).is_some()
    }

    #[test]
    fn a_defect_needs_something_that_can_be_seen() {
        for (vague, text) in [
            (true, ""),
            (true, "# Export is broken\n\nPlease fix.\n"),
            (true, "# X\n## Summary\nTBD\n## Actual Behavior\n\n_TODO_\n"),
            (true, "# X\n## Fix Required\n- rewrite the exporter from scratch so that it becomes much better\n"),
            (false, "# X\n## Actual Behavior\nThe file is empty.\n"),
            (false, "# X\n## Actual behaviour:\nThe file is empty.\n"),
            (false, "# X\n## Summary\nWhen I export more than ten rows, the file is empty.\n"),
            (false, "# X\n\nWhen I export more than ten rows, the file is empty.\n"),
            (false, "---\ntitle: X\n---\n## Steps to Reproduce\n1. export ten rows\n"),
            (
                false,
                "# X\n## Status: needs_clarification\n## Clarification\n\n**Question:** What?\n\n**Answer:** See it.\n",
            ),
        ] {
            assert_eq!(asks(Kind::Defect, text), vague, "{text:?}");
        }
    }

    #[test]
    fn a_feature_needs_a_criterion() {
        for (vague, text) in [
            (true, "# X\n## Summary\nIt should be possible to export all the rows at once.\n"),
            (true, "# X\n## Acceptance Criteria\n- [ ] TBD\n"),
            (true, "# X\n## Acceptance Criteria\n<!-- at least one -->\n"),
            (false, "# X\n## Acceptance Criteria\n- [ ] all rows are in the file\n"),
            (false, "# X\n## Verification\nExport a hundred rows and count them.\n"),
            (false, "# X\n## Expected Behavior\nAll rows are in the file.\n"),
        ] {
            assert_eq!(asks(Kind::Feature, text), vague, "{text:?}");
        }
    }

    #[test]
    fn criteria_are_read_point_by_point() {
        let text = "# X\n## Acceptance Criteria\n- [ ] one\n  goes on\n2. two\n\n## Verification\n- three\n";
        let (item, _) = read(&"1-x".parse().unwrap(), Kind::Feature, "1-x.md", text).unwrap();
        assert_eq!(item.criteria(), ["one goes on", "two", "three"]);
    }
}

//! The order of items, and their dependencies.

use std::collections::{BTreeMap, BTreeSet};

use super::queue::{Archived, Backlog, Shelf, queue};
use super::{Item, Kind, Slug, Status, read};

fn item(name: &str, kind: Kind, header: &str) -> Item {
    let text = format!("---\n{header}\n---\n");
    read(&name.parse().unwrap(), kind, name, &text).unwrap_or_else(|problems| panic!("{problems}")).0
}

fn defect(name: &str, header: &str) -> Item {
    item(name, Kind::Defect, header)
}

fn archived(name: &str, status: Status, shelf: Shelf) -> Archived {
    Archived { slug: name.parse().unwrap(), status: Some(status), shelf }
}

fn shown(items: &[Item], archived: &[Archived], unfinished: &[&str]) -> Vec<String> {
    let unfinished: BTreeSet<Slug> = unfinished.iter().map(|slug| slug.parse().unwrap()).collect();
    let parked = BTreeMap::from([("parked".parse().unwrap(), "archive_failed: disk full".to_owned())]);
    let unreadable = ["broken".parse().unwrap()];
    let queue = queue(&Backlog { items, unreadable: &unreadable, archived, unfinished: &unfinished, parked: &parked });
    let entries = queue.into_iter().map(|entry| match entry.held {
        None => entry.slug.to_string(),
        Some(held) => format!("({}: {held})", entry.slug),
    });
    entries.collect()
}

#[test]
fn the_order_is_begun_then_priority_then_kind_then_name() {
    let items = [
        item("2-feature", Kind::Feature, "priority: high"),
        defect("prose-name", ""),
        defect("10-late", ""),
        defect("9-foo", ""),
        item("1-feature", Kind::Feature, ""),
        defect("4-low", "priority: low"),
        item("5-now", Kind::Feature, "priority: critical"),
        defect("3-high", "priority: high"),
        defect("6-begun", "priority: low\nstatus: in_progress"),
    ];
    assert_eq!(
        shown(&items, &[], &["6-begun"]),
        ["6-begun", "5-now", "3-high", "2-feature", "9-foo", "10-late", "prose-name", "1-feature", "4-low"]
    );
}

#[test]
fn every_item_that_is_not_worked_on_says_why() {
    let hold = |name: &str, header: &str| shown(&[defect(name, header)], &[], &[]).remove(0);
    for (header, why) in [
        ("status: on_hold", "(x: on hold)"),
        ("status: in_progress", "(x: somebody works on it; set it to open to have it done here)"),
        ("status: Fixed", "(x: fixed already; move it to the archive)"),
        ("status: exhausted", "(x: exhausted; set it to open to try again)"),
        ("status: duplicate", "(x: duplicate)"),
        ("status: later", "(x: its status means nothing here)"),
        ("status: needs_clarification", "(x: waits for clarification; set it to open when it is clear)"),
        ("depends_on: broken", "(x: waits for broken, whose file cannot be read)"),
        ("depends_on: nobody", "(x: depends on nobody, which does not exist)"),
        ("depends_on: the new billing account", "x"),
    ] {
        assert_eq!(hold("x", header), why, "{header}");
    }
    assert_eq!(hold("parked", ""), "(parked: archive_failed: disk full)");
    assert_eq!(hold("broken", ""), "(broken: two files have this name; rename one)");
}

#[test]
fn a_question_holds_until_it_is_answered() {
    let text = "# X\n## Status: Needs Clarification\n## Clarification\n\n**Question:** Which one?\n\n**Answer:**";
    let read = |text: &str| read(&"x".parse().unwrap(), Kind::Defect, "x", text).unwrap().0;
    assert_eq!(shown(&[read(text)], &[], &[]), ["(x: waits for an answer: Which one?)"]);
    assert_eq!(shown(&[read(&format!("{text}\n\nThe blue one.\n"))], &[], &[]), ["x"]);
    assert_eq!(shown(&[read(&format!("{text} TBD\n"))], &[], &[]), ["(x: waits for an answer: Which one?)"]);
}

#[test]
fn t92_only_what_was_done_satisfies() {
    for (status, shelf, expected) in [
        (Status::Fixed, Shelf::Completed, "x"),
        (Status::Completed, Shelf::Completed, "x"),
        (Status::Exhausted, Shelf::Completed, "(x: waits for 3-parser, which was given up (exhausted))"),
        (Status::Failed, Shelf::Failed, "(x: waits for 3-parser, which was given up (failed))"),
        (Status::Fixed, Shelf::Failed, "(x: waits for 3-parser, which was given up (fixed))"),
        (Status::Open, Shelf::Completed, "x"),
        (Status::Open, Shelf::Failed, "(x: waits for 3-parser, which was given up (open))"),
        (
            Status::InProgress,
            Shelf::Completed,
            "(x: waits for 3-parser, which is archived but does not say that it was done; set its status)",
        ),
    ] {
        let archived = [archived("3-parser", status, shelf)];
        assert_eq!(shown(&[defect("x", "depends_on: 3-parser")], &archived, &[]), [expected], "{status}");
    }
    let items = [defect("x", "depends_on: [3-parser, 4-lexer]"), defect("4-lexer", "")];
    assert_eq!(
        shown(&items, &[], &[]),
        ["4-lexer", "(x: depends on 3-parser, which does not exist; waits for 4-lexer)"],
        "all reasons at once"
    );
}

#[test]
fn a_slip_or_a_bare_number_is_recognised() {
    let archived = [archived("3-parser", Status::Fixed, Shelf::Completed)];
    for written in ["'3'", "3-parsr"] {
        let shown = shown(&[defect("x", &format!("depends_on: {written}"))], &archived, &[]);
        assert!(shown[0].ends_with("did you mean 3-parser?)"), "{shown:?}");
    }
}

#[test]
fn circles_hold_everybody_in_them() {
    let items = [
        defect("a", "depends_on: b"),
        defect("b", "depends_on: c"),
        defect("c", "depends_on: a"),
        defect("d", "depends_on: a"),
        defect("self", "depends_on: self"),
        defect("free", ""),
    ];
    let circle = "items wait for each other: a -> b -> c -> a; remove one of these dependencies";
    assert_eq!(
        shown(&items, &[], &[]),
        [
            "free".to_owned(),
            format!("(a: {circle})"),
            format!("(b: {circle})"),
            format!("(c: {circle})"),
            "(d: waits for a)".into(),
            "(self: items wait for each other: self -> self; remove one of these dependencies)".into(),
        ]
    );
}

#[test]
fn a_name_is_one_item() {
    let items = [defect("1-x", ""), item("1-x", Kind::Feature, "")];
    let twice = "(1-x: two files have this name; rename one)";
    assert_eq!(shown(&items, &[], &[]), [twice, twice]);
    let archived = [archived("1-x", Status::Fixed, Shelf::Completed)];
    assert_eq!(
        shown(&items[..1], &archived, &[]),
        ["(1-x: the archive has an item of this name already; rename or remove this one)"]
    );
}

//! Examples of items.

use super::item::{Dependency, Kind, Priority, Status};
use super::{Item, read};
use crate::plan::verdict::Verdict;

fn of(text: &str) -> Item {
    whole(text).unwrap_or_else(|problems| panic!("{problems}")).0
}

/// Returns the item and its warnings, or the problems.
fn whole(text: &str) -> Result<(Item, Vec<String>), String> {
    let read = read(&"07-empty-export".parse().unwrap(), Kind::Defect, "07.md", text);
    let words = |problems: Vec<crate::file_problem::FileProblem>| problems.iter().map(ToString::to_string).collect();
    read.map(|(item, warnings)| (item, words(warnings))).map_err(|problems| problems.to_string())
}

const HEADINGS: &str = "# Export is empty

## Status: Open

## Priority: High

## Dependencies
- 03-parser.md (needed first)
- the new billing account

## Summary

Exporting gives an empty file.

## Actual Behavior
0 bytes.
";

const FRONT: &str = "---
title: Export is empty  # why not
status: open
priority: high
depends_on: [03-parser.md, the new billing account]
---

## Summary

Exporting gives an empty file.

## Actual Behavior
0 bytes.
";

#[test]
fn both_styles_say_the_same() {
    let item = of(HEADINGS);
    assert_eq!(item.title, "Export is empty");
    assert_eq!((item.status, item.priority, item.kind), (Some(Status::Open), Priority::High, Kind::Defect));
    assert_eq!(
        item.depends_on,
        [Dependency::On("03-parser".parse().unwrap()), Dependency::Words("the new billing account".into())]
    );
    assert_eq!(item.section("summary"), Some("Exporting gives an empty file."));
    assert_eq!(item.section("Actual behaviour:"), Some("0 bytes."));
    assert_eq!(item.lead, "");
    assert_eq!(of(FRONT), item);
    assert_eq!(of(&HEADINGS.replace('\n', "\r\n")), item);
}

#[test]
fn what_is_left_out_has_a_default() {
    let item = of("");
    assert_eq!(item.title, "Empty export", "from the name of the file");
    assert_eq!((item.status, item.priority, item.kind), (Some(Status::Open), Priority::Medium, Kind::Defect));
    let item = of("---\n---\nJust this.\n");
    assert_eq!(item.lead, "Just this.");
    let item =
        of("---\ntype: feature\nbudget_limit_usd: 0\nstep_notifications: yes\nagent: frontend-coder\n---\n# X\n");
    assert_eq!((item.kind, item.budget_usd), (Kind::Feature, Some(0.0)));
    assert_eq!(item.agent.as_deref(), Some("frontend-coder"));
}

#[test]
fn a_status_counts_only_in_the_header_and_outside_of_code() {
    for (text, status) in [
        ("# X\n## Status: Fixed\n", Status::Fixed),
        ("# X\n\nSome words first.\n\n## Status: completed\n", Status::Completed),
        ("## Status:   IN PROGRESS  \n# X\n", Status::InProgress),
        ("# X\n## Status\n\non hold\n\n## Summary\n", Status::OnHold),
        ("# X\n## Status: **Needs-Clarification** (asked on Monday)\n", Status::NeedsClarification),
        ("# X\n### Status: Duplicate\n", Status::Duplicate),
        ("---\nstatus: FIXED\n---\n", Status::Fixed),
        ("---\nstatus: open\n---\n## Status: Open\n", Status::Open),
        ("# X\n```\n## Status: Fixed\n```\n", Status::Open),
        ("# X\n<!-- ## Status: Fixed -->\n", Status::Open),
        ("# X\n## Summary\nIt said:\n## Status: Fixed\n", Status::Open),
        ("# X\n## Summary\nIt said:\n\n    ## Status: Fixed\n", Status::Open),
        ("# X\n## Verification Log\n### Verification #1 - x\nStatus: Fixed\n", Status::Open),
        ("# X\n## Statuses: Fixed\n", Status::Open),
    ] {
        assert_eq!(of(text).status, Some(status), "{text:?}");
    }
}

#[test]
fn what_is_odd_is_told() {
    for (text, told) in [
        ("# X\n## Status: wontfix\n", "2:12: `wontfix` is no status: the item is not worked on (one of open"),
        ("# X\n## Status: fixd\n", "did you mean `fixed`?"),
        ("# X\n## Priority: urgent\n", "`urgent` is no priority: medium is taken"),
        ("# X\n## Summary\nx\n## Status: Fixed\n", "a status below the header is not read"),
        ("# X\n## Status:\n\n## Summary\n", "`Status:` says nothing"),
        ("---\ncolour: red\n---\n", "has no `colour`; it has no effect"),
    ] {
        let (_, warnings) = whole(text).unwrap_or_else(|problems| panic!("{text:?}: {problems}"));
        assert!(warnings.len() == 1 && warnings[0].contains(told), "{text:?}: {warnings:?}");
    }
    assert_eq!(of("# X\n## Status: wontfix\n").status, None);
}

#[test]
fn what_is_wrong_says_where_and_what_to_do() {
    for (text, problem) in [
        ("---\ntitle: X\n\nno end\n", "07.md:1:1: the header that begins here does not end"),
        ("---\ntitle: [X\n---\n", "not valid YAML"),
        ("---\n- a\n---\n", "should be a map"),
        ("---\nstate: open\n---\n", "did you mean `status`?"),
        ("---\ndepend_on: a\n---\n", "did you mean `depends_on`?"),
        ("---\ntype: bug\n---\n", "07.md:2:7: `bug` is no type (one of defect, feature)"),
        ("---\nbudget_limit_usd: much\n---\n", "should be a number"),
        ("---\nstatus: open\n---\n## Status: Fixed\n", "given twice, and differently"),
        ("# X\n## Status: Open\n## Status: Fixed\n", "07.md:3:12: the status is given twice"),
        ("# X\n\nStatus: Fixed\n", "write it as a heading: `## Status: Fixed`"),
        ("# X\n\n- **Status:** Fixed\n", "write it as a heading: `## Status: Fixed`"),
        ("# X\n\n```\n## Summary\n", "07.md:3:1: this code fence or comment does not end"),
        ("# X\0", "not a text"),
    ] {
        let error = whole(text).map(|(item, _)| item.status).unwrap_err();
        assert!(error.contains(problem), "{text:?}: {error}");
    }
}

#[test]
fn dependencies_in_all_the_forms_people_have() {
    let text = "# X
## Depends on: 01-a, 02-b.md

## Summary
words

## Dependencies

- `03-c`
- [the fourth](../feature-backlog/04-d.md)
- docs/defect-backlog/05-e.md (really)
- 03-c.md
- None
- n/a
```
- 06-f
```
";
    let slugs: Vec<String> = of(text)
        .depends_on
        .iter()
        .map(|dependency| match dependency {
            Dependency::On(slug) => slug.to_string(),
            Dependency::Words(words) => format!("words: {words}"),
        })
        .collect();
    assert_eq!(slugs, ["01-a", "02-b", "03-c", "04-d", "05-e"]);
}

#[test]
fn the_log_is_read_back() {
    let text = "# X
## Verification Log

### Verification #1 - 2026-02-10 14:05

**Verdict: FAIL**

- [ ] still empty

### Verification #2 - 2026-02-10 15:05

First **Verdict: FAIL** was weighed.

```
**Verdict: FAIL**
```

**Verdict: PASS**

### Verification #3 - 2026-02-10 16:00
cut off
";
    let item = of(text);
    let log: Vec<(u32, Verdict)> = item.log.iter().map(|entry| (entry.number, entry.verdict)).collect();
    assert_eq!(log, [(1, Verdict::Fail), (2, Verdict::Pass), (3, Verdict::Error)]);
    assert_eq!((item.failed_verifications(), item.next_verification()), (1, 4));
    assert!(item.sections.is_empty(), "the log is ours");
}

/// A plan stays valid as long as the request of its item is unchanged.
#[test]
fn the_hash_is_of_what_is_asked_for() {
    let hash = of(HEADINGS).hash;
    for same in [
        HEADINGS.replace("Open", "In Progress"),
        HEADINGS.replace("High", "Low"),
        HEADINGS.replace("- the new billing account\n", ""),
        format!("{HEADINGS}\n## Verification Log\n\n### Verification #1 - x\n\n**Verdict: FAIL**\n"),
        HEADINGS.replace('\n', "  \n"),
    ] {
        assert_eq!(of(&same).hash, hash, "{same}");
    }
    for other in [
        HEADINGS.replace("0 bytes", "1 byte"),
        HEADINGS.replace("# Export", "# Import"),
        format!("{HEADINGS}\n## Fix Required\n- all\n"),
        HEADINGS.replace("## Summary", "## Fix Required"),
        format!("{HEADINGS}\n## Clarification\n\n**Question:** Which?\n\n**Answer:** All.\n"),
    ] {
        assert_ne!(of(&other).hash, hash, "{other}");
    }
}

proptest::proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "(# |## |### |---\n|Status: |Fixed|```|<!--|-->|é|\r|\n|- |\\*\\*|: |[a-c \\[\\]{}&*]){0,40}") {
        let _ = whole(&text);
    }
}

//! docs/reference/scenarios.md and docs/reference/plan-scenarios.md are true: every scenario is listed, every test it names exists and speaks of
//! its scenario, and the second list says rightly what kind of tests these are.

use std::collections::BTreeSet;
use std::path::Path;

/// A file of this repository; empty if it does not exist.
fn read(file: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file)).unwrap_or_default()
}

/// A test with the comment above it, or the reason why there is none.
fn test_text(source: &str, name: &str) -> Result<String, &'static str> {
    let head = source.find(&format!("fn {name}(")).ok_or("there is no such function")?;
    let begins = source[..head].rfind("\n\n").map_or(0, |at| at + 2);
    if !source[begins..head].contains("test]") {
        return Err("it is no test");
    }
    let indent = source[..head].lines().last().unwrap_or_default();
    let indent = &indent[..indent.len() - indent.trim_start().len()];
    let ends = source[head..].find(&format!("\n{indent}}}\n")).ok_or("it has no end")?;
    Ok(source[begins..head + ends].to_owned())
}

/// Whether one of these marks is there: `S-7` or `s_7_`, and not `S-70`.
fn speaks_of(text: &str, marks: &[String]) -> bool {
    let is_whole = |rest: &str| !rest.starts_with(|c: char| c.is_ascii_digit());
    marks.iter().any(|mark| text.match_indices(mark.as_str()).any(|(at, _)| is_whole(&text[at + mark.len()..])))
}

/// The kind of a test, by its place.
fn kind(file: &str) -> &'static str {
    match file {
        _ if file.starts_with("crates/posse-testkit/tests/") => "real agents",
        _ if file.starts_with("crates/posse/tests/") => "processes",
        _ if file.contains("/plans/worktrees/") || file.ends_with("/archive_tests.rs") => "git",
        _ => "pure",
    }
}

/// Checks each row, `| PREFIX7 | what | kinds, in one of the lists | file::test, ... |`, and that these are the scenarios.
fn check(document: &str, prefix: &str, marks: impl Fn(u32) -> [String; 2], scenarios: &[u32], untested: Option<u32>) {
    let text = read(document);
    let mut rows: Vec<u32> = Vec::new();
    let mut wrong = Vec::new();
    for row in text.lines() {
        let Some(row) = row.strip_prefix(&format!("| {prefix}")) else { continue };
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        let [id, _, kinds @ .., tests] = &cells[..] else { panic!("not enough cells: {row}") };
        let id: u32 = id.parse().unwrap_or_else(|_| panic!("no number: {row}"));
        assert!(rows.last().is_none_or(|last| *last < id), "{prefix}{id} is twice there or out of order");
        rows.push(id);
        let tests = tests.split(", ").filter(|test| !test.is_empty());
        let tests =
            tests.map(|test| test.trim_matches('`').split_once("::").unwrap_or_else(|| panic!("no test: {row}")));
        let tests: Vec<(&str, &str)> = tests.collect();
        if let [said] = kinds {
            let found = tests.iter().map(|(file, _)| kind(file)).chain((untested == Some(id)).then_some("left out"));
            let found: BTreeSet<&str> = found.collect();
            if found != said.split(", ").collect() {
                wrong.push(format!("{prefix}{id} is tested by {found:?}, and the list says {said}"));
            }
        }
        for (file, name) in tests {
            match test_text(&read(file), name) {
                Err(why) => wrong.push(format!("{prefix}{id}: {file}::{name}: {why}")),
                Ok(text) if !speaks_of(&text, &marks(id)) => {
                    wrong.push(format!("{prefix}{id}: {file}::{name} does not name it"));
                }
                Ok(_) => {}
            }
        }
    }
    assert!(wrong.is_empty(), "{document}:\n{}", wrong.join("\n"));
    assert_eq!(rows, scenarios, "{document}");
}

/// The scenarios of the loop, without those about messages between agents and about schedules.
#[test]
fn scenarios_of_the_loop_are_tested() {
    let later = [164, 165, 172, 173, 174];
    let wanted: Vec<u32> = (5..=22).chain(100..=205).filter(|id| !later.contains(id)).collect();
    check("docs/reference/scenarios.md", "S-", |id| [format!("S-{id}"), format!("s_{id}_")], &wanted, None);
}

/// Nothing can be tested of T99: posse takes no items from chat.
#[test]
fn scenarios_of_plans_are_tested() {
    let wanted: Vec<u32> = (1..=100).collect();
    let marks = |id| [format!("T{id:02}"), format!("t{id:02}_")];
    check("docs/reference/plan-scenarios.md", "T", marks, &wanted, Some(99));
}

#[test]
fn what_is_not_there_is_noticed() {
    let source = "\n\n/// S-70.\n#[test]\nfn a() {\n    b();\n}\n\nfn c() {\n}\n";
    let marks = |id: u32| [format!("S-{id}"), format!("s_{id}_")];
    assert!(!speaks_of(&test_text(source, "a").unwrap(), &marks(7)));
    assert!(speaks_of(&test_text(source, "a").unwrap(), &marks(70)));
    assert_eq!(test_text(source, "c").unwrap_err(), "it is no test");
    assert_eq!(test_text(source, "d").unwrap_err(), "there is no such function");
}

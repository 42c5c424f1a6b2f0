//! docs/plan-scenarios.md is true: every scenario is in it, every test it names is there and speaks of its scenario, and it
//! says rightly what kind of tests these are.

mod held;

use std::collections::{BTreeMap, BTreeSet};

use held::{read, speaks_of, test_text};

/// Of this there is nothing to test: posse takes no items from chat.
const LEFT_OUT: u32 = 99;

struct Row {
    kinds: BTreeSet<String>,
    /// File and function.
    tests: Vec<(String, String)>,
}

fn listed() -> BTreeMap<u32, Row> {
    let text = read("docs/plan-scenarios.md");
    let mut listed = BTreeMap::new();
    let rows: Vec<&str> = text.lines().filter(|row| row.starts_with("| T")).collect();
    assert!(rows.is_sorted_by_key(|row| id(row)), "the rows are not in order");
    for row in rows {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        let [_, _, kinds, tests] = cells[..] else { panic!("not four cells: {row}") };
        let tests = tests.split(", ").filter(|test| !test.is_empty()).map(|test| {
            let (file, name) = test.trim_matches('`').split_once("::").unwrap_or_else(|| panic!("no test: {row}"));
            (file.to_owned(), name.to_owned())
        });
        let row = Row { kinds: kinds.split(", ").map(str::to_owned).collect(), tests: tests.collect() };
        let id = id(cells[0]).unwrap_or_else(|| panic!("no number: {}", cells[0]));
        assert!(listed.insert(id, row).is_none(), "T{id:02} is there twice");
    }
    listed
}

fn id(row: &str) -> Option<u32> {
    let digits = row.trim_start_matches(['|', ' ']).strip_prefix('T')?;
    digits.split(' ').next()?.parse().ok()
}

/// What a test is made of, by where it is.
fn kind(file: &str) -> &'static str {
    match file {
        _ if file.starts_with("crates/posse-testkit/tests/") => "real agents",
        _ if file.starts_with("crates/posse/tests/") => "processes",
        _ if file.contains("/plans/worktrees/") || file.ends_with("/archive_tests.rs") => "git",
        _ => "pure",
    }
}

#[test]
fn every_scenario_is_listed() {
    let listed: Vec<u32> = listed().into_keys().collect();
    assert_eq!(listed, (1..=100).collect::<Vec<u32>>());
}

#[test]
fn every_test_that_is_named_is_there_and_names_its_scenario() {
    let mut wrong = Vec::new();
    for (id, row) in listed() {
        let mut kinds: BTreeSet<String> = row.tests.iter().map(|(file, _)| kind(file).to_owned()).collect();
        if id == LEFT_OUT {
            kinds.insert("left out".into());
        }
        if kinds != row.kinds {
            wrong.push(format!("T{id:02} is tested by {kinds:?}, and it says {:?}", row.kinds));
        }
        for (file, name) in row.tests {
            match test_text(&read(&file), &name) {
                Err(why) => wrong.push(format!("T{id:02}: {file}::{name}: {why}")),
                Ok(text) if !speaks_of(&text, &[format!("T{id:02}"), format!("t{id:02}_")]) => {
                    wrong.push(format!("T{id:02}: {file}::{name} does not say T{id:02}"));
                }
                Ok(_) => {}
            }
        }
    }
    assert!(wrong.is_empty(), "docs/plan-scenarios.md:\n{}", wrong.join("\n"));
}

//! docs/scenarios.md is true: every scenario is in it, and every test it names is there and speaks of its scenario.

mod held;

use std::collections::BTreeMap;

use held::{read, speaks_of, test_text};

/// The scenarios of the loop, without those about messages between agents and about schedules.
fn wanted() -> Vec<u32> {
    let later = [164, 165, 172, 173, 174];
    (5..=22).chain(100..=205).filter(|id| !later.contains(id)).collect()
}

/// Scenarios by number, each with the tests that are named for it: file and function.
fn listed() -> BTreeMap<u32, Vec<(String, String)>> {
    let text = read("docs/scenarios.md");
    let mut listed: BTreeMap<u32, Vec<(String, String)>> = BTreeMap::new();
    for row in text.lines().filter(|row| row.starts_with("| S-")) {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        let [id, _, tests] = cells[..] else { panic!("not three cells: {row}") };
        let id = id.strip_prefix("S-").and_then(|id| id.parse().ok()).unwrap_or_else(|| panic!("no number: {row}"));
        let tests = tests.split(", ").map(|test| {
            let (file, name) = test.trim_matches('`').split_once("::").unwrap_or_else(|| panic!("no test: {row}"));
            (file.to_owned(), name.to_owned())
        });
        assert!(listed.insert(id, tests.collect()).is_none(), "S-{id} is there twice");
    }
    listed
}

#[test]
fn every_scenario_is_listed() {
    let listed: Vec<u32> = listed().into_keys().collect();
    assert_eq!(listed, wanted());
}

#[test]
fn every_test_that_is_named_is_there_and_names_its_scenario() {
    let mut wrong = Vec::new();
    for (id, tests) in listed() {
        for (file, name) in tests {
            match test_text(&read(&file), &name) {
                Err(why) => wrong.push(format!("S-{id}: {file}::{name}: {why}")),
                Ok(text) if !speaks_of(&text, &[format!("S-{id}"), format!("s_{id}_")]) => {
                    wrong.push(format!("S-{id}: {file}::{name} does not say S-{id}"));
                }
                Ok(_) => {}
            }
        }
    }
    assert!(wrong.is_empty(), "docs/scenarios.md:\n{}", wrong.join("\n"));
}

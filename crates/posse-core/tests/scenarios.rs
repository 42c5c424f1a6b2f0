//! docs/scenarios.md is true: every scenario is in it, and every test it names is there and speaks of its scenario.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The scenarios of the loop, without those about messages between agents and about schedules.
fn wanted() -> Vec<u32> {
    let later = [164, 165, 172, 173, 174];
    (5..=22).chain(100..=205).filter(|id| !later.contains(id)).collect()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Scenarios by number, each with the tests that are named for it: file and function.
fn listed() -> BTreeMap<u32, Vec<(String, String)>> {
    let text = std::fs::read_to_string(root().join("docs/scenarios.md")).expect("the list of scenarios");
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

/// A test with what is said above it, or why there is none.
fn test_text(source: &str, name: &str) -> Result<String, String> {
    let head = source.find(&format!("fn {name}(")).ok_or("there is no such function")?;
    let begins = source[..head].rfind("\n\n").map_or(0, |at| at + 2);
    if !source[begins..head].contains("test]") {
        return Err("it is no test".into());
    }
    let indent = source[..head].lines().last().unwrap_or_default();
    let indent = &indent[..indent.len() - indent.trim_start().len()];
    let ends = source[head..].find(&format!("\n{indent}}}\n")).ok_or("it has no end")?;
    Ok(source[begins..head + ends].to_owned())
}

/// `S-7` or `s_7_`, and not `S-70`.
fn speaks_of(text: &str, id: u32) -> bool {
    let is_whole = |rest: &str| !rest.starts_with(|c: char| c.is_ascii_digit());
    let found = |mark: &str| text.match_indices(mark).any(|(at, _)| is_whole(&text[at + mark.len()..]));
    found(&format!("S-{id}")) || found(&format!("s_{id}_"))
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
            let source = std::fs::read_to_string(root().join(&file)).unwrap_or_default();
            match test_text(&source, &name) {
                Err(why) => wrong.push(format!("S-{id}: {file}::{name}: {why}")),
                Ok(text) if !speaks_of(&text, id) => wrong.push(format!("S-{id}: {file}::{name} does not say S-{id}")),
                Ok(_) => {}
            }
        }
    }
    assert!(wrong.is_empty(), "docs/scenarios.md:\n{}", wrong.join("\n"));
}

#[test]
fn what_is_not_there_is_noticed() {
    let source = "\n\n/// S-70.\n#[test]\nfn a() {\n    b();\n}\n\nfn c() {\n}\n";
    assert!(!speaks_of(&test_text(source, "a").unwrap(), 7));
    assert!(speaks_of(&test_text(source, "a").unwrap(), 70));
    assert_eq!(test_text(source, "c").unwrap_err(), "it is no test");
    assert_eq!(test_text(source, "d").unwrap_err(), "there is no such function");
}

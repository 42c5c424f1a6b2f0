//! What docs/agents.md says of each agent is what its manifest says.
#![allow(clippy::unwrap_used)]

use posse_agents::launch::Mode;
use posse_agents::manifest::{BUILT_IN, Provider};

#[test]
fn every_agent_is_in_both_tables() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/agents.md");
    let text = std::fs::read_to_string(path).unwrap();
    for (id, manifest) in BUILT_IN {
        let manifest = Provider::parse(manifest).unwrap().manifest;
        let begin = format!("| `{id}` |");
        let rows: Vec<Vec<&str>> = text
            .lines()
            .filter(|line| line.starts_with(&begin))
            .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
            .collect();
        let [known, told] = &rows[..] else { panic!("{id}: two tables have it, not {}", rows.len()) };
        let versions: Vec<String> = manifest.versions.iter().map(ToString::to_string).collect();
        let versions = if versions.is_empty() { "–".to_owned() } else { versions.join(", ") };
        assert_eq!((known[1], known[2]), (manifest.name.as_str(), versions.as_str()), "{id}");
        assert_eq!(known[5].starts_with("yes"), manifest.headless.is_some(), "{id}: plans");

        let launch = manifest.launch.unwrap();
        assert!(told[1].trim_matches('`').starts_with(&launch.program), "{id}: {}", told[1]);
        for (mode, cell) in Mode::ALL.into_iter().zip(&told[2..]) {
            let arguments = launch.modes[&mode].arguments.join(" ");
            if !arguments.is_empty() {
                assert_eq!(*cell, format!("`{arguments}`"), "{id} {mode}");
            }
        }
    }
}

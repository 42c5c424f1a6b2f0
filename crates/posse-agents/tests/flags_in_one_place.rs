//! T09: no permission flag is written anywhere but in `headless/flags.rs`.
//!
//! Two kinds of files are not looked at. Manifests are data: they say how `launch` starts an agent in a terminal, where a
//! person can answer. posse-testkit is not shipped, and starts agents in every mode there is. Tests say what they expect.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};

const THE_PLACE: &str = "crates/posse-agents/src/headless/flags.rs";

/// Flags and settings that widen or narrow what an agent may do.
const FLAGS: &str = "--allowedTools --allowed-tools --disallowedTools --disallowed-tools --permission-mode \
    --permission-prompt --dangerously --yolo --full-auto --approval-mode \
    --ask-for-approval bypassPermissions acceptEdits danger-full-access approval_policy";

fn sources(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The code of a file: without comments and without the tests at its end.
fn code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().take_while(|line| !line.starts_with("#[cfg(test)]"));
    lines.enumerate().filter(|(_, line)| !line.trim_start().starts_with("//"))
}

/// T09.
#[test]
fn no_permission_flag_is_written_elsewhere() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().parent().unwrap();
    let mut files = Vec::new();
    for entry in std::fs::read_dir(workspace.join("crates")).unwrap() {
        let member = entry.unwrap().path();
        if member.file_name().unwrap() != "posse-testkit" {
            sources(&member.join("src"), &mut files);
        }
    }
    let mut in_the_place = 0;
    for file in files {
        let name = file.strip_prefix(workspace).unwrap().to_str().unwrap();
        // Homes in which agents talk to scripted models: nothing there is started on somebody's project.
        let scripted_home = name == "crates/posse-sim/src/home.rs";
        if name.ends_with("tests.rs") || name.contains("/tests/") || scripted_home {
            continue;
        }
        let text = std::fs::read_to_string(&file).unwrap();
        for (number, line) in code(&text) {
            let Some(flag) = FLAGS.split(' ').find(|flag| line.contains(flag)) else { continue };
            assert_eq!(name, THE_PLACE, "{flag} in line {}: ask build_permission_flags for it", number + 1);
            in_the_place += 1;
        }
    }
    assert!(in_the_place > 5, "the scan finds what it looks for");
}

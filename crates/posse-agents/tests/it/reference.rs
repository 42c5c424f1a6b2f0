//! Screens of agents that cannot be installed here, where someone has put them. They are not ours to copy.

use std::path::Path;

use crate::common::{detector, read, shown, status};

fn check(provider: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/reference").join(provider);
    let Ok(files) = std::fs::read_dir(&folder) else {
        println!("skipped: there is no {}", folder.display());
        return;
    };
    let mut wrong = Vec::new();
    for file in files {
        let path = file.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let expected = match () {
            () if name.contains("trust_all") => "waiting_user_answer/startup",
            () if name.contains("stale") || name.contains("completed") => "completed",
            () if name.contains("permission") => "waiting_user_answer/permission",
            () if name.contains("idle") => "idle",
            () if name.contains("error") => "error",
            () => "processing",
        };
        let rows = shown(&std::fs::read_to_string(&path).unwrap());
        // `[name]` in the prompt tells the profile.
        let named = rows.iter().rev().find_map(|row| Some(row.strip_prefix('[')?.split_once(']')?.0));
        for profile in [None, named] {
            let detector = detector(provider, profile);
            let reading = read(&detector, &rows);
            if status(&reading) != expected {
                wrong.push(format!("{name} ({profile:?}): {} by {}", status(&reading), reading.rule));
            }
            if expected == "completed" && detector.last_answer(&rows).is_err() {
                wrong.push(format!("{name}: completed, and {:?}", detector.last_answer(&rows)));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn q_cli() {
    check("q_cli");
}

#[test]
fn kiro_cli() {
    check("kiro_cli");
}

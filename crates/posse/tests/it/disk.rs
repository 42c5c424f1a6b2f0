//! A full disk: what runs goes on, what would be started is refused, and nothing is lost when there is room again.

use std::process::Command;

use crate::{env, text_when};

/// A small file system on a directory, gone when this goes.
struct SmallDisk<'a>(&'a std::path::Path);

impl<'a> SmallDisk<'a> {
    fn mount(path: &'a std::path::Path) -> Option<Self> {
        let options = "size=2m,mode=0700";
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(path).status();
        mounted.is_ok_and(|status| status.success()).then_some(Self(path))
    }
}

impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0).status();
    }
}

#[test]
fn a_full_disk_stops_nothing_that_runs() {
    let env = env();
    let home = env.paths().home.clone();
    let Some(disk) = SmallDisk::mount(&home) else {
        eprintln!("skipped: only root can mount a small disk");
        return;
    };
    let id = env.launch(&["sh", "-c", "while read line; do echo \"got $line\"; done"]);
    std::fs::write(home.join("ballast"), vec![0; 4 << 20]).unwrap_err();
    // Up to the last byte: SQLite has some room left in the pages it already has.
    let mut refused = env.run(["launch", "--", "true"]);
    for _ in 0..200 {
        if refused.code != Some(0) {
            break;
        }
        refused = env.run(["launch", "--", "true"]);
    }
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("full") && refused.stderr.contains("free some space"), "{}", refused.stderr);
    let mut setting = env.run(["serve", "--listen", "127.0.0.1:0", "--no-auth"]);
    for _ in 0..200 {
        if setting.code != Some(0) {
            break;
        }
        setting = env.run(["serve", "--listen", "127.0.0.1:0", "--no-auth"]);
    }
    assert_eq!(setting.code, Some(1), "{setting:?}");
    assert!(setting.stderr.contains("cannot be remembered") && setting.stderr.contains("free some"), "{setting:?}");
    env.run(["send", id.as_str(), "something"]).ok();
    text_when(&env, id, |text| text.contains("got something"));
    let health = env.http().call("GET", "/health", "").unwrap().json();
    assert!(health["problem"].as_str().is_some_and(|problem| problem.contains("full")), "{health}");

    std::fs::remove_file(home.join("ballast")).unwrap();
    env.run(["launch", "--", "true"]).ok();
    assert_eq!(env.http().call("GET", "/health", "").unwrap().json()["problem"], serde_json::Value::Null);
    env.run(["stop", "--all"]).ok();
    drop(disk);
}

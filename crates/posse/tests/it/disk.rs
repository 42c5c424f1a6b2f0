//! A full disk: running programs continue, new ones are refused, and nothing is lost when there is room again.

use std::process::Command;

use posse_testkit::TestEnv;
use posse_testkit::env::Ran;

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

/// Launches until the disk refuses: SQLite has some room left in the pages it already has.
fn fill(env: &TestEnv) -> Ran {
    std::fs::write(env.paths().home.join("ballast"), vec![0; 4 << 20]).unwrap_err();
    let mut launches = (0..200).map(|_| env.run(["launch", "--", "true"]));
    launches.find(|ran| ran.code != Some(0)).expect("a refused launch")
}

#[test]
fn everything_can_be_stopped_on_a_full_disk() {
    let env = env();
    let Some(_disk) = SmallDisk::mount(&env.paths().home) else {
        eprintln!("skipped: only root can mount a small disk");
        return;
    };
    let id = env.launch(&["cat"]);
    fill(&env);
    let stopped = env.run(["stop", "--all"]);
    assert_eq!(stopped.code, Some(0), "{stopped:?}");
    assert!(stopped.stderr.contains("the keeper remembers how terminals ended"), "{stopped:?}");
    std::fs::remove_file(env.paths().home.join("ballast")).unwrap();
    env.run(["wait", id.as_str(), "--until", "exited"]).ok();
    let shown = env.run(["show", id.as_str(), "--json"]).json();
    assert_eq!(shown["exit"]["signal"], 15, "the next daemon knows the end: {shown}");
    env.run(["stop", "--all"]).ok();
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
    let refused = fill(&env);
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

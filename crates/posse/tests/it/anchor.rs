//! The audit is anchored outside of its own files: a chain that was made anew fits itself, and not its anchor.

use std::fs;
use std::time::Duration;

use posse_core::audit::Hash;
use posse_testkit::TestEnv;
use serde_json::{Value, json};

use crate::agents::{CLAUDE, asked, wait};
use crate::env;

/// A home whose audit is anchored in a file, with two answers in it.
fn anchored() -> (TestEnv, std::path::PathBuf) {
    let env = env();
    let anchor = env.work().join("anchor");
    fs::write(env.paths().config.join("config.toml"), format!("[audit]\nanchor = {anchor:?}\n")).unwrap();
    env.script_agent("claude_code", CLAUDE);
    env.run(["launch", "claude_code", "--trust", "--name", "a"]).ok();
    for _ in 0..2 {
        asked(&env, "danger");
        env.run(["approve", "a"]).ok();
        wait(&env, "a", "completed");
    }
    (env, anchor)
}

/// Changes the audit like an attacker who can write every file of posse: `change` edits entries, and all hashes and the
/// head are recomputed.
fn forge(env: &TestEnv, change: impl Fn(&mut Vec<String>)) {
    let connection = rusqlite::Connection::open(env.paths().database()).unwrap();
    connection.busy_timeout(Duration::from_secs(5)).unwrap();
    for trigger in ["audit_is_not_changed", "audit_is_not_shortened"] {
        connection.execute(&format!("DROP TRIGGER IF EXISTS {trigger}"), []).unwrap();
    }
    let mut texts: Vec<String> = {
        let mut statement = connection.prepare("SELECT entry FROM audit ORDER BY seq").unwrap();
        statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    };
    change(&mut texts);
    connection.execute("DELETE FROM audit", []).unwrap();
    let mut end = (0, Hash::BEGINNING);
    for text in texts {
        let (previous, hash) = (end.1, Hash::of(end.1, &text));
        end = (end.0 + 1, hash);
        let row = rusqlite::params![end.0, text, previous.to_string(), hash.to_string()];
        connection.execute("INSERT INTO audit (seq, entry, previous, hash) VALUES (?1, ?2, ?3, ?4)", row).unwrap();
    }
    let head = env.paths().database().with_file_name("audit.head");
    fs::write(head, json!({ "seq": end.0, "hash": end.1.to_string() }).to_string()).unwrap();
}

fn kinds(env: &TestEnv) -> Vec<(String, i64)> {
    let ran = env.run(["audit", "verify", "--anchor", "--json"]);
    let verdict: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{}", ran.stderr));
    assert_eq!(ran.code, Some(i32::from(verdict["intact"] != json!(true))));
    let flaws = verdict["flaws"].as_array().unwrap().iter();
    flaws.map(|flaw| (flaw["kind"].as_str().unwrap().to_owned(), flaw["from"].as_i64().unwrap())).collect()
}

#[test]
fn forged_audits_are_found_by_their_anchor_alone() {
    let (env, anchor) = anchored();
    let heads = fs::read_to_string(&anchor).unwrap();
    assert_eq!(heads.lines().count(), 4, "{heads}");
    assert_eq!(kinds(&env), []);
    // The anchor is shortened.
    fs::write(&anchor, heads.split_inclusive('\n').take(2).collect::<String>()).unwrap();
    assert_eq!(kinds(&env), [("unanchored".into(), 3)]);
    fs::write(&anchor, &heads).unwrap();
    env.run(["stop"]).ok();
    assert_eq!(kinds(&env), [], "no daemon is needed");
    // The chain is rewritten.
    forge(&env, |texts| texts[2] = texts[2].replace("rm -r target", "ls"));
    env.run(["audit", "verify"]).ok();
    assert_eq!(kinds(&env), [("not_as_anchored".into(), 3), ("not_as_anchored".into(), 4)]);
    // Given by hand, as from the system's log.
    let logged: String = heads.lines().map(|line| format!("Nov 17 22:00:00 host posse[1]: {line}\n")).collect();
    let copy = env.work().join("copy");
    fs::write(&copy, logged).unwrap();
    let found = env.run(["audit", "verify", "--anchor", copy.to_str().unwrap()]).ends(1);
    found.prints(&["entry 3 is not as it was anchored"]);
    // The chain is shortened.
    forge(&env, |texts| texts.truncate(2));
    env.run(["audit", "verify"]).ok();
    assert_eq!(kinds(&env), [("anchored_missing".into(), 3), ("anchored_missing".into(), 4)]);
    // An entry is changed and nothing else is: that needs no anchor.
    let change = "UPDATE audit SET entry = replace(entry, 'rm -r target', 'ls') WHERE seq = 1";
    assert_eq!(rusqlite::Connection::open(env.paths().database()).unwrap().execute(change, []).unwrap(), 1);
    let found = env.run(["audit", "verify"]).ends(1);
    assert_eq!(found.stdout, "not intact 2 entries\n  entry 1 was changed\n");
    assert!(env.run(["audit", "show"]).stderr.contains("posse audit verify"));
}

#[test]
fn what_cannot_be_anchored_is_audited_and_told() {
    let (env, anchor) = anchored();
    fs::remove_file(&anchor).unwrap();
    fs::create_dir(&anchor).unwrap();
    asked(&env, "danger");
    env.run(["approve", "a"]).ok();
    let health = env.http().call("GET", "/health", "").unwrap().json();
    assert!(health["problem"].as_str().unwrap().contains("the audit cannot be anchored"), "{health}");
    let doctor = env.run(["doctor"]);
    assert!(
        format!("{}{}", doctor.stdout, doctor.stderr).contains("the audit cannot be anchored"),
        "{}",
        doctor.stdout
    );
    assert_eq!(env.run(["audit", "show", "--json"]).json().as_array().unwrap().len(), 6);
    // The next head covers the ones that are missing.
    fs::remove_dir(&anchor).unwrap();
    wait(&env, "a", "completed");
    asked(&env, "danger");
    env.run(["deny", "a"]).ok();
    assert_eq!(kinds(&env), []);
}

#[test]
fn heads_in_the_log_of_the_system_are_fetched_by_the_user() {
    let env = env();
    fs::write(env.paths().config.join("config.toml"), "[audit]\nanchor = 'syslog'\n").unwrap();
    env.run(["audit", "verify", "--anchor"]).complains(&["journalctl -t posse | posse audit verify --anchor -"]);
}

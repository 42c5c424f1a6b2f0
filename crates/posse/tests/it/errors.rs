//! What people are told when something goes wrong, word for word. Errors are a part of the product: whoever changes one
//! sees here what it reads like.

use std::fs;

use posse_testkit::TestEnv;

use crate::env;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/errors.txt");

/// A name that is too long.
const LONG: &str = "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx";

const CASES: &[&[&str]] = &[
    &["frobnicate"],
    &["ls", "--frobnicate"],
    &["launch"],
    &["launch", "cluade_code"],
    &["launch", "--", "no-such-program-anywhere"],
    &["launch", "--name", "here", "--", "true"],
    &["launch", "--size", "big", "--", "true"],
    &["launch", "-C", "/no/such/directory", "--", "true"],
    &["launch", "-C", "/etc/passwd", "--", "true"],
    &["launch", "--", "/etc/passwd"],
    &["launch", "--name", "a/b", "--", "true"],
    &["launch", "--name", "../../x", "--", "true"],
    &["launch", "--name", LONG, "--", "true"],
    &["launch", "--session", "a:b", "--", "true"],
    &["launch", "--size", "0x0", "--", "true"],
    &["launch", "--env", "=x", "--", "true"],
    &["show", "nobody"],
    &["show", "../../etc"],
    &["send", "nobody", "x"],
    &["kill", "here", "nobody"],
    &["output", "nobody"],
    &["attach", "here"],
    &["approve", "here"],
    &["send", "here", "--key", "no-such-key"],
    &["wait", "here", "--until", "happy"],
    &["wait", "here", "--until", "idle", "--timeout", "soon"],
    &["run", "show", "1a2b"],
    &["loop"],
    &["loop", "no-such.json"],
    &["loop", "--resume"],
    &["loop", "misspelt.json"],
    &["profile", "show", "tseter"],
    &["provider", "check", "cluade_code"],
    &["explain", "--provider", "codex", "--screen", "no-such-file"],
    &["serve", "--listen", "everywhere"],
    &["audit", "show", "--since", "yesterday-ish"],
    &["--json", "show", "nobody"],
    &["--json", "launch"],
    &["--json", "ls", "--frobnicate"],
];

fn said(env: &TestEnv, arguments: &[&str]) -> String {
    let ran = env.command(arguments).output().unwrap();
    let home = env.paths().home.display().to_string();
    let parent = env.paths().home.parent().unwrap().display().to_string();
    let text = String::from_utf8(ran.stderr).unwrap().replace(&home, "HOME").replace(&parent, "ELSEWHERE");
    assert!(ran.stdout.is_empty(), "{arguments:?}: errors go to standard error");
    format!("$ posse {}\n{text}exit {}\n", arguments.join(" "), ran.status.code().unwrap())
}

#[test]
fn errors_read_like_this() {
    let env = env();
    env.run(["launch", "--name", "here", "--", "sleep", "1000"]).ok();
    fs::write(env.work().join("misspelt.json"), r#"{ "limits": { "max_ronuds": 3 } }"#).unwrap();
    let seen: Vec<String> = CASES.iter().map(|arguments| said(&env, arguments)).collect();
    let seen = seen.join("\n");
    assert_eq!(env.run(["ls", "--json"]).json().as_array().unwrap().len(), 1, "nothing was started or ended");
    if std::env::var_os("POSSE_UPDATE").is_some() {
        fs::write(FILE, &seen).unwrap();
    }
    let expected = fs::read_to_string(FILE).unwrap_or_default();
    for (seen, expected) in seen.split("\n\n").zip(expected.split("\n\n")) {
        assert_eq!(seen, expected, "if that is meant, run it again with POSSE_UPDATE=1 and look at the difference");
    }
    assert_eq!(seen, expected);
}

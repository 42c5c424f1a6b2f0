//! Error messages, word for word. Errors are a part of the product: a change to one shows up here.

use std::fs;

use posse_testkit::TestEnv;

use crate::env;
use crate::plan_run::ONE;

/// Commands, each after `$ posse`, with their output and exit codes. A line added here is run like the others;
/// `POSSE_UPDATE=1` records its output.
const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/errors.txt");

fn said(env: &TestEnv, line: &str) -> String {
    let ran = env.run(line.split(' '));
    let home = env.paths().home.display().to_string();
    let parent = env.paths().home.parent().unwrap().display().to_string();
    let text = ran.stderr.replace(&home, "HOME").replace(&parent, "ELSEWHERE");
    assert!(ran.stdout.is_empty(), "{line}: errors go to standard error");
    format!("$ posse {line}\n{text}exit {}\n", ran.code.unwrap())
}

#[test]
fn errors_read_like_this() {
    let env = env();
    env.run(["launch", "--name", "here", "--", "sleep", "1000"]).ok();
    fs::write(env.work().join("misspelt.json"), r#"{ "limits": { "max_ronuds": 3 } }"#).unwrap();
    fs::write(env.work().join("plan.yaml"), ONE).unwrap();
    let expected = fs::read_to_string(FILE).unwrap();
    let lines = expected.lines().filter_map(|line| line.strip_prefix("$ posse "));
    let seen: Vec<String> = lines.map(|line| said(&env, line)).collect();
    let seen = seen.join("\n");
    assert_eq!(env.run(["ls", "--json"]).json().as_array().unwrap().len(), 1, "nothing was started or ended");
    if std::env::var_os("POSSE_UPDATE").is_some() {
        fs::write(FILE, &seen).unwrap();
    }
    for (seen, expected) in seen.split("\n\n").zip(expected.split("\n\n")) {
        assert_eq!(seen, expected, "if that is meant, run it again with POSSE_UPDATE=1 and look at the difference");
    }
    assert_eq!(seen, expected);
}

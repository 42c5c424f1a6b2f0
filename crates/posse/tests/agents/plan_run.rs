//! The plan of the example on the real agents without a terminal, from its first prompt to the last merge.

use std::fs;
use std::process::Command;

use posse_sim::{ModelServer, Scenario};
use posse_testkit::agents::{Agent, CLAUDE, CODEX, HomeOptions, Maker, or_skip};
use posse_testkit::git::{commit_all, copy_example};

use crate::{env, posse};

const SEARCH: &str = "sh commands/list.sh | grep -F -- \"$*\"";
const SEARCH_TEST: &str = "./notes add buy milk\n[ \"$(./notes search milk)\" = '1 buy milk' ]";
const COUNT: &str = "wc -l < \"$NOTES_FILE\" | tr -d ' '";
const COUNT_TEST: &str = "./notes add buy milk\n[ \"$(./notes count)\" = 1 ]";

/// One conversation, identified by text that only this session gets, then these turns.
pub(crate) fn session(opening: &str, turns: &[String]) -> Scenario {
    let turns: String = turns.iter().map(|steps| format!("[[turn]]\nsteps = [{steps}]\n")).collect();
    Scenario::parse(&format!("opening = {opening:?}\n{turns}")).unwrap()
}

pub(crate) fn write(path: &str, content: &str) -> String {
    format!("{{ write = {{ path = {path:?}, text = {content:?} }} }}")
}

pub(crate) fn text(text: &str) -> String {
    format!("{{ say = {text:?} }}")
}

pub(crate) fn report(task: &str) -> String {
    text(&format!(
        "Done.\n```json\n{{\"task_id\": \"{task}\", \"status\": \"completed\", \"message\": \"it is there\"}}\n```"
    ))
}

/// Two tasks run at the same time, each checked by the reviewer, then the third. One of them tries to write outside of
/// its work tree: that is denied and reported, and the run continues.
fn carries_out_the_example(agent: &Agent, provider: &str, documents: &[&str]) {
    let server = ModelServer::start([]).unwrap();
    let home = agent.home(&server, &HomeOptions::default());
    let outside = home.home().join("outside.txt");
    let pass = text("[PASS] sh tests/run passes\n**Verdict: PASS**");
    // Only this session gets the path of its report; a validator has a token of its own.
    let work = |task: &str| format!("sessions/{task}-1/result/result.json");
    let mut documented: Vec<String> = documents.iter().map(|steps| (*steps).to_owned()).collect();
    documented.push(report("2.1"));
    server
        .add([
            session(
                &work("1.1"),
                &[write("commands/search.sh", SEARCH), write("tests/search.test", SEARCH_TEST), report("1.1")],
            ),
            session(
                &work("1.2"),
                &[
                    write(outside.to_str().unwrap(), "no"),
                    write("commands/count.sh", COUNT),
                    write("tests/count.test", COUNT_TEST),
                    report("1.2"),
                ],
            ),
            session("Validate task 1.1:", std::slice::from_ref(&pass)),
            session("Validate task 1.2:", std::slice::from_ref(&pass)),
            session(&work("2.1"), &documented),
        ])
        .unwrap();
    copy_example(&home.directory);
    commit_all(&home.directory);
    let env = env();
    let posse = |words: &[&str]| posse(&home, &env, words);
    let (code, said) = posse(&["plan", "trust", "plan.yaml"]);
    assert_eq!(code, Some(0), "{said}");
    let (code, said) = posse(&["plan", "run", "--provider", provider, "plan.yaml"]);
    assert_eq!(code, Some(0), "{said}\n{}", server.log());
    assert!(!outside.exists(), "the sandbox is on: {said}");
    assert!(said.contains("task 1.2: refused: "), "{said}");
    let tests = Command::new("sh").arg("tests/run").current_dir(&home.directory).output().unwrap();
    assert!(tests.status.success(), "{}", String::from_utf8_lossy(&tests.stdout));
    assert!(home.directory.join("tests/search.test").exists() && home.directory.join("tests/count.test").exists());
    assert!(fs::read_to_string(home.directory.join("USAGE.md")).unwrap().contains("notes count"), "{said}");
    let plan = fs::read_to_string(home.directory.join("plan.yaml")).unwrap();
    assert_eq!(plan.matches("status: verified").count(), 3, "{plan}");
    let report = said.lines().find_map(|line| line.strip_prefix("report: ")).unwrap();
    assert!(fs::read_to_string(report).unwrap().contains("  - Refused: "), "{said}");
    let (code, log) = posse(&["run", "log", "plan.yaml", "1.2"]);
    assert!(code == Some(0) && log.contains("asked:") && log.contains("refused: "), "{log}");
    assert!(home.processes().is_empty(), "{:?}", home.processes());
}

#[test]
#[ignore = "./test --full"]
fn claude_code_carries_out_the_example() {
    // It edits what it has read.
    let documents = [
        "{ tool = { name = \"Read\", input = { file_path = \"USAGE.md\" } } }",
        "{ tool = { name = \"Edit\", input = { file_path = \"USAGE.md\", old_string = \"# notes\", new_string = \"# notes\\n\\n- `notes count`\" } } }",
    ];
    for agent in CLAUDE.iter().filter_map(|version| or_skip(Agent::installed(Maker::Claude, version))) {
        carries_out_the_example(&agent, "claude_code", &documents);
    }
}

#[test]
#[ignore = "./test --full"]
fn codex_carries_out_the_example() {
    let documents = ["{ run = { command = \"printf -- '- `notes count`\\\\n' >> USAGE.md\" } }"];
    for agent in CODEX.iter().filter_map(|version| or_skip(Agent::installed(Maker::Codex, version))) {
        carries_out_the_example(&agent, "codex", &documents);
    }
}

//! A backlog on the real Claude Code without a terminal: the defect of the example, from its plan to the archive.

use std::fs;
use std::process::Command;

use posse_sim::ModelServer;
use posse_testkit::agents::{Agent, CLAUDE, HomeOptions, Maker, or_skip};
use posse_testkit::git::{commit_all, copy_example, git};

use crate::plan_run::{report, session, text, write};
use crate::{env, posse};

/// Returns the planner's plan; its design's name contains the date.
fn plan(design: &str) -> String {
    format!(
        "\
meta:
  name: 1-line-break
  plan_doc: {design}
  source_item: docs/defect-backlog/1-line-break.md
  validation: {{enabled: true, run_after: [shell-coder], validators: [reviewer]}}
sections:
  - id: fix
    tasks:
      - id: '1.1'
        name: Write notes on one line
        agent: shell-coder
        files: [commands/add.sh, tests/line_break.test]
        target_acs: [AC1, AC2, AC3]
        description: As the design document says.
"
    )
}

const AS_IT_WAS: &str = r#"printf '%s\n' "$*""#;
const ON_ONE_LINE: &str = r#"printf '%s\n' "$(printf '%s' "$*" | tr '\n' ' ')""#;
const TEST: &str = "./notes add 'call Ada\ntomorrow'\n[ \"$(./notes list)\" = '1 call Ada tomorrow' ]\n";
const FOUND: &str = "[PASS] S1: sh tests/run adds such a note, and one is listed\n[PASS] AC1: one note on one line\n\
    [PASS] AC2: add_and_list.test passes\n[PASS] AC3: line_break.test was run\n**Verdict: PASS**";

fn tool(name: &str, input: &[(&str, &str)]) -> String {
    let input: Vec<String> = input.iter().map(|(key, value)| format!("{key} = {value:?}")).collect();
    format!("{{ tool = {{ name = {name:?}, input = {{ {} }} }} }}", input.join(", "))
}

fn run(command: &str) -> String {
    format!("{{ run = {{ command = {command:?} }} }}")
}

/// The verifier tries to fix the work, and the planner to write elsewhere; both are denied.
fn works_through_the_example(agent: &Agent) {
    let server = ModelServer::start([]).unwrap();
    let home = agent.home(&server, &HomeOptions::default());
    copy_example(&home.directory);
    commit_all(&home.directory);
    let git = |arguments: &[&str]| git(&home.directory, arguments);
    fs::write(home.directory.join("USAGE.md"), "mine\n").unwrap();
    let design = format!("docs/plans/{}-1-line-break-design.md", jiff::Timestamp::now().strftime("%F"));
    let [elsewhere, mended] = ["elsewhere.txt", "mended.txt"].map(|name| home.home().join(name));
    server
        .add([
            session(
                "Write the plan .posse/plans/1-line-break.yaml",
                &[
                    tool("Read", &[("file_path", "commands/add.sh")]),
                    run("git log --oneline"),
                    write(elsewhere.to_str().unwrap(), "no"),
                    write(&design, "# Line breaks\n\nBlanks take their place.\n"),
                    write(".posse/plans/1-line-break.yaml", &plan(&design)),
                    report("plan"),
                ],
            ),
            session(
                "sessions/1.1-1/result/result.json",
                &[
                    tool("Read", &[("file_path", "commands/add.sh")]),
                    tool(
                        "Edit",
                        &[("file_path", "commands/add.sh"), ("old_string", AS_IT_WAS), ("new_string", ON_ONE_LINE)],
                    ),
                    write("tests/line_break.test", TEST),
                    run("sh tests/run"),
                    report("1.1"),
                ],
            ),
            session(
                "Validate task 1.1:",
                &[run("sh tests/run"), text("[PASS] sh tests/run passes\n**Verdict: PASS**")],
            ),
            session(
                "Verify this: a defect of the backlog",
                &[
                    run("sh tests/run"),
                    tool("Write", &[("file_path", mended.to_str().unwrap()), ("content", "no")]),
                    run(&format!("touch {}", mended.display())),
                    run("touch mended-here.txt"),
                    text(FOUND),
                ],
            ),
        ])
        .unwrap();
    let env = env();
    let posse = |words: &[&str]| posse(&home, &env, words);
    let (code, said) = posse(&["plan", "trust"]);
    assert_eq!(code, Some(0), "{said}");
    let (code, said) = posse(&["auto", "--once"]);
    assert_eq!(code, Some(0), "{said}\n{}", server.log());
    assert!(said.contains("1-line-break: planned") && said.contains("\nverified: 1 done\n"), "{said}");
    // What they were let do, and what not.
    assert!(!elsewhere.exists() && !mended.exists(), "{said}");
    let log = server.log();
    let tests = log.tool_results().filter(|result| result.text.contains("ok   tests/line_break.test")).count();
    assert_eq!(tests, 1, "the worker has run them, and sessions that only read have not: {log}");
    // The work and the item are where they belong, and the user's own is as it was.
    let tests = Command::new("sh").arg("tests/run").current_dir(&home.directory).output().unwrap();
    let passed = String::from_utf8_lossy(&tests.stdout);
    assert!(tests.status.success() && passed.contains("ok   tests/line_break.test"), "{passed}");
    let archive = home.directory.join("docs/completed-backlog/defects");
    let item = fs::read_to_string(archive.join("1-line-break.md")).unwrap();
    assert!(item.contains("## Status: Fixed") && item.contains("**Verdict: PASS**"), "{item}");
    let report = fs::read_to_string(archive.join("1-line-break.report.md")).unwrap();
    assert!(report.contains("Write notes on one line"), "{report}");
    assert!(!home.directory.join("docs/defect-backlog/1-line-break.md").exists());
    assert_eq!(fs::read_to_string(home.directory.join("USAGE.md")).unwrap(), "mine\n");
    assert_eq!(git(&["worktree", "list"]).lines().count(), 1, "{said}");
    assert_eq!(git(&["branch", "--format=%(refname:short)"]), "main\n");
    assert!(home.directory.join(design).exists());
    assert!(home.processes().is_empty(), "{:?}", home.processes());
}

#[test]
#[ignore = "./test --full"]
fn claude_code_works_through_the_example() {
    for agent in CLAUDE.iter().filter_map(|version| or_skip(Agent::installed(Maker::Claude, version))) {
        works_through_the_example(&agent);
    }
}

//! The plan in examples/plan, carried out by a scripted `claude`: a newcomer's first run.

use std::fs;
use std::process::Command;

use crate::plan_run::Scene;
use crate::steps::{DONE, refused, reports, sh};

const SEARCH: &str = include_str!("scripts/search.sh");
const COUNT: &str = include_str!("scripts/count.sh");
const PASS: &str = "text='\"[PASS] tests/run passes\\n**Verdict: PASS**\"'\n";

#[test]
fn it_is_in_order_and_its_tests_pass() {
    let scene = Scene::example();
    let text = scene.plan_says(0, "check", &[], &["is in order: 3 tasks"]);
    assert!(!text.contains("warning"), "{text}");
    let tests = Command::new("sh").arg("tests/run").current_dir(scene.env.work()).output().unwrap();
    assert!(tests.status.success(), "{tests:?}");
    let text = scene.plan_ends(0, "run", &["--dry-run"]);
    // Both commands in the first step, the documentation in the second.
    let steps: Vec<&str> = text.lines().filter(|line| line.trim_start().starts_with(['1', '2'])).collect();
    assert!(steps[0].contains("1.1") && steps[1].contains("1.2") && steps[2].contains("2.1"), "{text}");
    assert!(steps[1].starts_with("  1") && steps[2].starts_with("  2"), "{text}");
    // The writer may edit, but has no commands.
    let (code, text) = crate::project::said(&scene.command(&["flags", "writer"]).output().unwrap());
    assert!(code == 0 && text.contains("--allowedTools Read Grep Glob Write Edit\n"), "{text}");
}

#[test]
fn a_newcomer_runs_it() {
    let scene = Scene::example();
    let outside = scene.env.work().parent().unwrap().join("outside.txt");
    scene.claude.play("1.1.1", sh(SEARCH) + &reports("completed", "search is there"));
    scene.claude.play("1.1.2", PASS);
    // It tries to write elsewhere, is refused, and goes on; its first test is wrong, so the check sends it back.
    let wrong = format!("{COUNT}echo false >> tests/count.test");
    scene.claude.play("1.2.1", refused("Write", outside.to_str().unwrap()) + &sh(&wrong) + DONE);
    scene.claude.play("1.2.2", sh(COUNT) + &reports("completed", "count is there"));
    scene.claude.play("1.2.3", PASS);
    scene.claude.play(
        "2.1",
        sh("printf -- '- `notes search TEXT`\\n- `notes count`\\n' >> USAGE.md") + &reports("completed", "documented"),
    );

    let text = scene.plan_ends(0, "run", &[]);
    assert_eq!(scene.claude.sessions(), 6, "{text}");
    assert!(text.contains(&format!("task 1.2: refused: Write {}", outside.display())), "{text}");
    assert!(text.contains("task 1.2: check test failed") && text.contains("task 1.1: PASS"), "{text}");
    let tests = Command::new("sh").arg("tests/run").current_dir(scene.env.work()).output().unwrap();
    let said = String::from_utf8_lossy(&tests.stdout);
    assert!(
        tests.status.success() && said.contains("ok   tests/search.test") && said.contains("ok   tests/count.test")
    );
    assert!(scene.file("USAGE.md").unwrap().contains("notes search"));
    // The plan is the only thing that is changed and not committed.
    assert_eq!(scene.git(&["status", "--porcelain"]), " M plan.yaml\n");
    let plan = scene.text();
    assert!(plan.starts_with("# Two more commands") && plan.matches("status: verified").count() == 3, "{plan}");
    let report = text.lines().find_map(|line| line.strip_prefix("report: ")).unwrap();
    let report = fs::read_to_string(report).unwrap();
    for part in
        ["# Search and count", "**verified**", "## 1 Commands", "Refused: Write", "2 attempts", "6 sessions, 1.50 USD"]
    {
        assert!(report.contains(part), "{part}: {report}");
    }
    // The reviewer may not write, and sees what was done.
    let reviewer = scene.claude.called("1.1", 2).unwrap();
    assert!(reviewer.arguments.contains(&"Write".to_owned()) && reviewer.prompt.contains("commands/search.sh"));
    // The attempt that the check sent back is kept for a while, and named.
    assert!(report.contains("## Work that is kept") && report.contains("its work is not merged"), "{report}");
}

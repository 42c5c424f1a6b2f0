//! The backlog in examples/plan, worked through by a scripted `claude`: from an item to the archive, as a newcomer does it.
//! Who verifies really tries it, in the work tree it is given: a verdict here is what is so.

use std::path::Path;

use posse_agents::headless::{Dialect, Policy, Request, Sandbox, Scope, build_permission_flags};
use posse_testkit::git::copy_example;
use posse_testkit::scripted_claude::SessionCall;

use super::*;
use crate::documented;
use crate::steps::{reports, sh, uses};

const FIX: &str = include_str!("../scripts/fix.sh");

const REVIEWED: &str = "text='\"[PASS] sh tests/run passes\\n**Verdict: PASS**\"'\n";

const VERIFIER: &str = include_str!("../scripts/trying-verifier.sh");

/// Checks that a session has exactly the flags of this profile, for its own directories.
#[track_caller]
fn has_the_flags_of(profile: &str, called: &SessionCall) {
    let policy = Policy::default();
    let results = Path::new(called.variable("POSSE_RESULT_FILE").unwrap()).parent().unwrap();
    let scope = Scope { directory: called.directory.clone(), results: Some(results.to_str().unwrap().into()) };
    let request = Request {
        dialect: Dialect::Claude,
        sandbox: Sandbox::On,
        profile: &policy.profile(profile).unwrap(),
        scope: &scope,
        policy: &policy,
    };
    let flags = build_permission_flags(&request).unwrap();
    assert_eq!(called.arguments[..flags.len()], flags[..]);
    let rest = &called.arguments[flags.len()..];
    assert_eq!(rest, ["--output-format", "stream-json", "--verbose", "--print"]);
    assert!(called.stdin.ends_with("/prompt.md"), "{}", called.stdin);
}

/// The words behind a flag that takes several.
fn values<'a>(called: &'a SessionCall, flag: &str) -> Vec<&'a str> {
    let after = called.arguments.iter().skip_while(|argument| *argument != flag).skip(1);
    after.map(String::as_str).take_while(|argument| !argument.starts_with("--")).collect()
}

/// Returns the changes of each commit: its subject, then one file per line.
fn commits_since(scene: &Scene, first: &str) -> Vec<String> {
    let format = "--format=%x00%s";
    let log =
        scene.git(&["log", "--reverse", "--no-merges", "--name-only", "--no-renames", format, &format!("{first}..")]);
    log.split('\0').skip(1).map(|commit| commit.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

/// Also T07: planners and verifiers are started as every session is.
#[test]
fn an_item_of_the_example_goes_from_its_plan_to_the_archive() {
    let scene = Scene::of(copy_example);
    scene.claude.play("plan", documented::PLANNER);
    scene.claude.play("verify", uses("Bash", "sh tests/run") + VERIFIER);
    scene.claude.play("1.1.1", sh(FIX) + &reports("completed", "a note is one line now"));
    scene.claude.play("1.1.2", REVIEWED);
    // The user's work in progress: a staged, an unstaged and a new file.
    let first = scene.git(&["rev-parse", "HEAD"]);
    fs::write(scene.env.work().join("USAGE.md"), "# notes\n\nstaged\n").unwrap();
    scene.git(&["add", "USAGE.md"]);
    fs::write(scene.env.work().join("USAGE.md"), "# notes\n\nstaged, and more\n").unwrap();
    fs::write(scene.env.work().join("mine.txt"), "mine\n").unwrap();
    let staged = scene.git(&["ls-files", "--stage", "USAGE.md"]);

    scene.auto_says(0, &["--once"], &["\nverified: 1 done\n", "4 sessions, 1.00 USD"]);
    assert_eq!(scene.claude.sessions(), 4, "planner, worker, reviewer, verifier");

    // The work, and the item with what was found; the other one waits for its turn.
    assert!(scene.file("tests/line_break.test").is_some() && scene.file("commands/add.sh").unwrap().contains("tr "));
    assert_eq!(scene.names("docs/defect-backlog"), Vec::<String>::new());
    assert_eq!(scene.names("docs/feature-backlog"), ["2-remove.md"]);
    assert_eq!(scene.names("docs/completed-backlog/defects"), ["1-line-break.md", "1-line-break.report.md"]);
    let item = scene.file("docs/completed-backlog/defects/1-line-break.md").unwrap();
    for part in
        ["## Status: Fixed", "### Verification #1", "**Verdict: PASS**", "- [x] S1: one note", "## Outcome (posse)"]
    {
        assert!(item.contains(part), "{part}: {item}");
    }
    let report = scene.file("docs/completed-backlog/defects/1-line-break.report.md").unwrap();
    for part in ["# Report: A note with a line break becomes two", "1.00 USD", "Do it", "4 of 4 points hold"] {
        assert!(report.contains(part), "{part}: {report}");
    }
    // Each commit has what it is about, and nothing else.
    let commits = commits_since(&scene, first.trim());
    let design = &scene.names("docs/plans")[0];
    assert_eq!(commits.len(), 3, "{commits:#?}");
    assert!(commits[0].ends_with(&format!("docs/plans/{design}")), "{commits:#?}");
    assert!(commits[1].ends_with("commands/add.sh tests/line_break.test"), "{commits:#?}");
    assert!(commits[2].contains("docs/completed-backlog/defects/1-line-break.report.md"), "{commits:#?}");
    let work = scene.git(&["log", "-1", "--no-merges", "--format=%H", "--", "commands/add.sh"]);
    assert!(report.contains(work.trim()), "{report}");

    // The user's index, checkout and branch stay unchanged. Nothing is left behind but the plan.
    assert_eq!(scene.git(&["ls-files", "--stage", "USAGE.md"]), staged);
    assert_eq!(scene.git(&["status", "--porcelain"]), "MM USAGE.md\n?? .posse/plans/\n?? mine.txt\n");
    assert_eq!(scene.names(".posse/plans"), ["1-line-break.yaml"]);
    assert!(scene.file(".posse/plans/1-line-break.yaml").unwrap().contains("status: verified"));
    assert_eq!(scene.git(&["branch", "--format=%(refname:short)"]), "main\n");
    assert_eq!(scene.worktrees(), 1);
    assert_eq!(scene.env.run(["ls", "--json"]).json(), json!([]), "no session goes on");

    // Planner and verifier have exactly their own permissions; neither of them worked in the checkout.
    let (planner, verifier) = (scene.claude.called("plan", 1).unwrap(), scene.claude.called("verify", 1).unwrap());
    has_the_flags_of("planner", &planner);
    has_the_flags_of("verifier", &verifier);
    assert_eq!(values(&planner, "--tools"), ["Read", "Grep", "Glob", "Write", "Bash"]);
    assert_eq!(values(&verifier, "--tools"), ["Read", "Grep", "Glob", "Bash"], "it cannot write");
    assert!(values(&verifier, "--disallowedTools").starts_with(&["Write", "Edit"]), "{:?}", verifier.arguments);
    let no_command =
        |called: &SessionCall| !values(called, "--allowedTools").iter().any(|rule| rule.starts_with("Bash"));
    assert!(no_command(&verifier) && no_command(&planner), "{:?}", verifier.arguments);
    for called in [&planner, &verifier] {
        assert!(!Path::new(&called.directory).starts_with(scene.env.work()), "{}", called.directory);
    }
    assert_ne!(planner.directory, verifier.directory, "a fresh one");
    assert!(planner.prompt.contains("tomorrow\"") && planner.prompt.contains("`shell-coder`"), "{}", planner.prompt);
    assert!(verifier.prompt.contains("commands/add.sh"), "{}", verifier.prompt);
}

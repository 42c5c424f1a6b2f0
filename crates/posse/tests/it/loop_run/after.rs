//! Steps after PASS.

use super::*;

fn git(play: &Play, words: &[&str]) -> String {
    posse_testkit::git::git(&play.env.work(), words)
}

/// Creates a repository with the user's work in progress.
fn repository(scenario: &str) -> Play {
    let play = Play::new(scenario);
    fs::write(play.env.work().join("src.txt"), "one\n").unwrap();
    posse_testkit::git::commit_all(&play.env.work());
    play
}

fn writes(files: &[(&str, &str)], play_in: &str) -> String {
    let steps: String = files
        .iter()
        .map(|(path, text)| format!("{{ write = {{ path = \"{play_in}/{path}\", text = {text:?} }} }}, "))
        .collect();
    format!("[[turn]]\nkey = \"programmer\"\nnth = 1\nsteps = [{steps}{{ answer = {{}} }}, {{ say = \"Done.\" }}]")
}

/// The run's work is committed, and nothing else: not what was uncommitted before, not .tmp, not the rubbish of a slip of
/// the keyboard, which is kept aside.
#[test]
fn s_190_exactly_its_work_is_committed() {
    let play = repository("");
    let work = fs::canonicalize(play.env.work()).unwrap();
    let files = [("src.txt", "two\n"), ("[id].tsx", "x\n"), ("new/file.rs", "y\n"), ("print(x)", "z\n")];
    play.env.script_agent(
        "codex",
        &format!("look = \"codex\"\nplay = \"loop\"\n{}", writes(&files, work.to_str().unwrap())),
    );
    play.configure(json!({ "post_processing": { "git_commit": true, "git_commit_comment": "A greeting", "openspec_archive": true } }));
    git(&play, &["add", "loop.json"]);
    git(&play, &["commit", "-q", "-m", "configured"]);
    fs::write(play.env.work().join("mine.txt"), "not yours\n").unwrap();
    let ran = play.run().ends(0);
    play.passed();
    assert_eq!(git(&play, &["log", "-1", "--format=%s"]).trim(), "A greeting");
    let mut committed: Vec<String> = git(&play, &["show", "--name-only", "--format=", "-z"])
        .split('\0')
        .map(str::trim)
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect();
    committed.sort();
    assert_eq!(committed, ["[id].tsx", "new/file.rs", "src.txt"]);
    assert_eq!(fs::read_to_string(play.env.work().join("mine.txt")).unwrap(), "not yours\n");
    contains(&git(&play, &["status", "--porcelain"]), &["?? mine.txt"]);
    assert!(!play.env.work().join("print(x)").exists());
    let quarantine = play.archive_folder().join("quarantine");
    assert_eq!(fs::read_to_string(quarantine.join("print(x)")).unwrap(), "z\n");
    let steps = play.shown()["steps"].clone();
    assert_eq!((&steps[0]["step"], &steps[0]["outcome"]), (&json!("openspec_archive"), &json!("skipped")), "{steps}");
    assert_eq!((&steps[1]["step"], &steps[1]["outcome"]), (&json!("git_commit"), &json!("done")), "{steps}");
    contains(&play.env.run(["run", "show", &play.id()]).ok(), &["git commit: done: committed 3 files"]);
    // Following and reading later give the same text.
    for told in [ran.stdout, play.env.run(["run", "log", &play.id()]).ok()] {
        contains(&told, &["  openspec archive: skipped: there is no ", "  git commit: done: committed 3 files as "]);
    }
}

/// S-189: what could not be archived is not committed; PASS it is all the same.
#[test]
fn s_189_a_failed_archive_is_not_committed() {
    let play = repository("");
    fs::create_dir_all(play.env.work().join("openspec/changes/greeting")).unwrap();
    fs::write(play.env.work().join("openspec/changes/greeting/proposal.md"), "x\n").unwrap();
    play.configure(json!({ "post_processing": { "git_commit": true, "openspec_archive": true } }));
    let mut command = play.command(&[]);
    // Nothing is called openspec here.
    let path = std::env::var_os("PATH").unwrap();
    let without = std::env::split_paths(&path).filter(|directory| !directory.join("openspec").exists());
    command.env("PATH", std::env::join_paths(without).unwrap());
    let ran = Followed::new(command).end().ends(0);
    play.passed();
    let steps = play.shown()["steps"].clone();
    assert_eq!(steps.as_array().unwrap().len(), 1, "{steps}");
    assert_eq!((&steps[0]["step"], &steps[0]["outcome"]), (&json!("openspec_archive"), &json!("failed")));
    assert_eq!(git(&play, &["log", "-1", "--format=%s"]).trim(), "first");
    contains(&ran.stdout, &["  openspec archive: failed: there is no program \"openspec\"; install it"]);
}

/// Adds what is to come after PASS, and commits all there is.
fn wants(play: &Play, post_processing: &Value) {
    play.configure(json!({ "post_processing": post_processing }));
    git(play, &["add", "."]);
    git(play, &["commit", "-q", "-m", "configured"]);
}

/// An agent that has something to commit.
fn changes_src() -> Play {
    let play = repository("");
    let work = fs::canonicalize(play.env.work()).unwrap();
    let writes = writes(&[("src.txt", "two\n")], work.to_str().unwrap());
    play.env.script_agent("codex", &format!("look = \"codex\"\nplay = \"loop\"\n[loop]\nthink = \"10ms\"\n{writes}"));
    play
}

/// The daemon's own environment has no effect: programs, name and settings come from the client that began the run.
#[test]
fn it_is_done_in_the_environment_of_whoever_began_it() {
    let play = changes_src();
    let (work, beside) = (play.env.work(), play.env.work().parent().unwrap().to_owned());
    fs::create_dir_all(work.join("openspec/changes/greeting")).unwrap();
    fs::write(work.join("openspec/changes/greeting/proposal.md"), "x\n").unwrap();
    wants(&play, &json!({ "git_commit": true, "openspec_archive": true }));
    // Start a daemon without this shell's environment.
    play.env.run(["serve"]).ok();
    let bin = beside.join("bin");
    fs::create_dir(&bin).unwrap();
    let (program, called) = (bin.join("openspec"), beside.join("called"));
    fs::write(&program, format!("#!/bin/sh\necho \"$GREETING $*\" > {}\n", called.display())).unwrap();
    fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let mut command = play.command(&[]);
    let path = std::env::var_os("PATH").unwrap();
    let path = std::env::join_paths(std::iter::once(bin).chain(std::env::split_paths(&path))).unwrap();
    command.env("PATH", path).env("GREETING", "hello").env("GIT_AUTHOR_NAME", "The Caller");
    // Variables of another repository are ignored.
    command.env("GIT_DIR", "/nowhere").env("GIT_INDEX_FILE", "/nowhere/index");
    let ran = Followed::new(command).end().ends(0);
    play.passed();
    contains(&ran.stdout, &["  openspec archive: done: ", "  git commit: done: committed 1 file as "]);
    assert_eq!(fs::read_to_string(called).unwrap(), "hello archive greeting --yes\n");
    assert_eq!(git(&play, &["log", "-1", "--format=%an"]).trim(), "The Caller");
}

/// LOOP-60: in a run that began elsewhere the user's own changes are unknown; posse reports that and commits nothing.
#[test]
fn a_run_that_began_elsewhere_is_not_committed() {
    let play = repository("");
    wants(&play, &json!({ "git_commit": true }));
    let state = json!({ "version": 1, "provider": "codex", "prompt": TASK, "current_round": 1,
        "current_phase": "analyst", "final_status": "RUNNING", "terminals": {} });
    fs::create_dir_all(play.env.work().join(".tmp")).unwrap();
    fs::write(play.env.work().join(STATE), state.to_string()).unwrap();
    play.run().ends(0).prints(&["  git commit: skipped: the run was taken up from its state file"]);
    assert_eq!(git(&play, &["log", "-1", "--format=%s"]).trim(), "configured");
}

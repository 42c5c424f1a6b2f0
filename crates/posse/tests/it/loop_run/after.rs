//! What comes after PASS.

use super::*;

fn git(play: &Play, words: &[&str]) -> String {
    let mut command = Command::new("git");
    command.args(words).current_dir(play.env.work()).env("HOME", play.env.work()).env("GIT_CONFIG_NOSYSTEM", "1");
    let output = command.output().unwrap();
    assert!(output.status.success(), "git {words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A repository in which somebody is in the middle of something.
fn repository(scenario: &str) -> Play {
    let play = Play::new(scenario);
    git(&play, &["init", "-q", "-b", "main"]);
    git(&play, &["config", "user.name", "Somebody"]);
    git(&play, &["config", "user.email", "somebody@example.org"]);
    fs::write(play.env.work().join("src.txt"), "one\n").unwrap();
    git(&play, &["add", "src.txt", "task.md", "loop.json"]);
    git(&play, &["commit", "-q", "-m", "begin"]);
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
    actor(
        &play.env,
        "codex",
        &format!("look = \"codex\"\nplay = \"loop\"\n{}", writes(&files, work.to_str().unwrap())),
    );
    play.configure(json!({ "post_processing": { "git_commit": true, "git_commit_comment": "A greeting", "openspec_archive": true } }));
    git(&play, &["add", "loop.json"]);
    git(&play, &["commit", "-q", "-m", "configured"]);
    fs::write(play.env.work().join("mine.txt"), "not yours\n").unwrap();
    let ran = play.run();
    assert_eq!(ran.code, Some(0), "{ran:?}");
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
    contains(&play.env.run(["run", "show", &play.id()]).ok(), &["git commit: done"]);
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
    let ran = Followed::new(command).end();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    play.passed();
    let steps = play.shown()["steps"].clone();
    assert_eq!(steps.as_array().unwrap().len(), 1, "{steps}");
    assert_eq!((&steps[0]["step"], &steps[0]["outcome"]), (&json!("openspec_archive"), &json!("failed")));
    assert_eq!(git(&play, &["log", "-1", "--format=%s"]).trim(), "begin");
}

#[test]
fn without_a_repository_nothing_is_committed() {
    let play = Play::new("");
    play.configure(json!({ "post_processing": { "git_commit": true } }));
    let ran = play.run();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    play.passed();
    assert_eq!(play.shown()["steps"][0]["outcome"], "skipped");
}

//! Plans and their configuration: settings of a project, forbidden settings, and attempts to use them.

use std::fs;
use std::process::Stdio;

use crate::plan_run::{ONE, Scene, TWO};
use crate::project::{said, says};
use crate::steps::{DONE, commit, sh};

/// An edit of the file during a run does not affect that run; the next one lists the differences.
#[test]
fn a_run_goes_by_the_configuration_it_began_with() {
    let scene = Scene::new(&TWO.replace("backoff_base: 1", "backoff_base: 1\n  max_attempts_default: 1"));
    scene.configure("test_command = 'test ! -e b'\n");
    let config = scene.env.work().join(".posse/config.toml");
    scene.claude.play(
        "1.1",
        commit("a", "alpha") + &sh(&format!("echo 'test_command = \"echo\"' > {}", config.display())) + DONE,
    );
    scene.claude.play("1.2", commit("b", "beta") + DONE);
    let text = scene.runs(1, 2, &[]); // The check still fails.
    assert!(text.contains("check test failed") && !text.contains("is not as it was"), "{text}");
    let text = scene.plan_says(0, "run", &["--reset", "1.2"], &["is not as it was when this plan was last run"]);
    assert!(text.contains(r#"test_command was "test ! -e b", is "echo""#), "{text}");
    let (_, text) = scene.plan("run", &[]);
    assert!(!text.contains("is not as it was"), "said once: {text}");
}

#[test]
fn a_project_cannot_loosen_what_sessions_are_held_by() {
    let scene = Scene::new(ONE);
    scene.claude.play("t", commit("a", "alpha") + DONE);
    let before = scene.text();
    for (text, words) in [
        ("[sandbox]\nenabled = false", "`--no-sandbox`"),
        ("tset_command = 'x'", "did you mean `test_command`?"),
        ("[budget", "not valid TOML"),
    ] {
        scene.configure(text);
        let (code, said) = scene.plan("run", &[]);
        assert_eq!(code, 64, "{text}: {said}");
        assert!(said.contains(words), "{text}: {said}");
        let (code, said) = scene.plan("check", &[]);
        assert_eq!(code, 5, "{text}: {said}");
    }
    assert_eq!((scene.claude.sessions(), scene.text()), (0, before), "nothing was touched");

    // The user may, and may say which program it is.
    let program = scene.claude.path().split(':').next().unwrap().to_owned();
    scene.configure("[sandbox]\ndeny = ['Bash(curl:*)']\n");
    scene.configure_user(&format!(
        "[plans]\nenv_strip = ['SECRET']\n[plans.task]\nmax_parallel = 2\n[plans.claude]\nbinary = '{program}/claude'\n"
    ));
    let mut command = scene.command(&["run", scene.plan.to_str().unwrap()]);
    let (code, text) = said(&command.env("SECRET", "1").env("PATH", "/usr/bin:/bin").output().unwrap());
    assert_eq!(code, 0, "{text}");
    let called = scene.claude.called("t", 1).unwrap();
    assert_eq!(called.variable("SECRET"), None);
    assert!(called.arguments.contains(&"Bash(curl:*)".to_owned()), "{:?}", called.arguments);
    scene.configure_user("[plans.sandbox]\nenabled = false\n");
    scene.plan_says(1, "run", &["--reset", "t"], &["THE SANDBOX IS OFF"]);
    let called = scene.claude.called("t", 2).unwrap();
    assert!(called.arguments.contains(&"--dangerously-skip-permissions".to_owned()), "{:?}", called.arguments);
    // The file of the original orchestrator counts if there is no other.
    fs::remove_file(scene.env.work().join(".posse/config.toml")).unwrap();
    scene.put(".claude/orchestrator-config.yaml", "build_command: make all\n");
    says(0, scene.command(&["config"]), &["make all"]);
}

#[test]
fn init_writes_a_configuration_that_says_nothing() {
    let scene = Scene::new(ONE);
    let text = says(0, scene.command(&["init"]), &[]);
    assert!(scene.file(".posse/config.toml").unwrap().contains("#test_command"), "{text}");
    assert_eq!(scene.file(".posse/.gitignore").as_deref(), Some("/state/\n"));
    says(0, scene.command(&["check", ".posse/plans/first.yaml"]), &[]);
    // What is there stays.
    scene.configure("test_command = 'mine'\n");
    let text = says(0, scene.command(&["init", "second.yaml"]), &[]);
    assert_eq!(scene.file(".posse/config.toml").as_deref(), Some("test_command = 'mine'\n"), "{text}");
}

/// A command that a file of the project names is run only when the user has confirmed it, and again when it has changed.
#[test]
fn commands_of_a_project_need_a_yes() {
    let scene = Scene::new(&ONE.replacen("meta: {", "meta: {gates: [{name: mine, cmd: 'touch ../gate-ran'}], ", 1));
    scene.claude.play("t", commit("a", "a") + DONE);
    fs::create_dir_all(scene.env.work().join(".posse")).unwrap();
    let config = scene.env.work().join(".posse/config.toml");
    fs::write(&config, "test_command = 'touch ../test-ran'\n").unwrap();
    let posse = |arguments: &[&str]| {
        let mut command = scene.env.command(["plan"]);
        said(&command.args(arguments).env("PATH", scene.claude.path()).stdin(Stdio::null()).output().unwrap())
    };
    let plan = scene.plan.to_str().unwrap();
    let (code, text) = posse(&["run", plan]);
    assert_eq!(code, 1, "{text}");
    for expected in ["touch ../test-ran", "touch ../gate-ran", "config.toml, test_command", "posse plan trust"] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    assert_eq!(scene.claude.sessions(), 0, "nothing was started");
    let (code, text) = posse(&["trust", plan]);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("confirmed: touch ../test-ran"), "{text}");
    // An agent changes the file.
    fs::write(&config, "test_command = 'touch ../evil-ran'\n").unwrap();
    let (code, text) = posse(&["run", plan]);
    assert!(code == 1 && text.contains("touch ../evil-ran") && !text.contains("gate-ran"), "{text}");
    fs::write(&config, "test_command = 'touch ../test-ran'\n").unwrap();
    let (code, text) = posse(&["run", plan]);
    assert_eq!(code, 0, "{text}");
    // And a session cannot confirm.
    let mut command = scene.env.command(["plan", "trust"]);
    let (code, text) = said(&command.env("POSSE_TASK_ID", "t").stdin(Stdio::null()).output().unwrap());
    assert!(code == 1 && text.contains("may not confirm commands"), "{text}");
}

//! `posse run log`, of a plan: what sessions were asked, did and said, without secrets.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::has_in_order;
use crate::plan_run::{ONE, Scene};
use crate::steps::{DONE, ask, commit, reports, say, sh, uses};

/// Where the runs of this scene keep their files.
fn runs(scene: &Scene) -> PathBuf {
    scene.env.paths().plans()
}

pub(crate) fn files_below(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() && !path.is_symlink() { files_below(&path) } else { vec![path] }).collect()
}

#[test]
fn it_tells_what_a_session_was_asked_did_and_said() {
    let gates = "gates: [{name: good, cmd: 'grep -q good a || { echo it is not good; exit 1; }'}]";
    let scene = Scene::new(&ONE.replace("backoff_base: 1", &format!("backoff_base: 1, {gates}")));
    scene.plan_says(1, "log", &[], &["no run of", "posse plan run"]);
    scene.claude.play(
        "t.1",
        say("I write a.") + &uses("Write", "a") + &commit("a", "bad") + &reports("completed", "it is there"),
    );
    scene.claude.play("t.2", say("Now really.") + &commit("a", "good") + DONE + &sh("echo trouble >&2"));
    assert_eq!(scene.plan("run", &[]).0, 0);

    let text = scene.plan_ends(0, "log", &["t"]);
    let parts = [
        "task t: coder (WRITE)",
        "flags: --allowedTools",
        "asked:",
        "Write a",
        "reported:",
        "it is there",
        "│ I write a.",
        "│ ⏵ Write a",
        "check good failed",
        "it is not good",
        "attempt 2",
        "trouble",
        "│ Now really.",
        "checks pass",
        "merged",
    ];
    has_in_order(&text, &parts);
    // How it was started, without the prompt and without values of the environment.
    let started =
        files_below(&runs(&scene)).into_iter().find(|path| path.ends_with("sessions/t-1/command.json")).unwrap();
    let started = fs::read_to_string(started).unwrap();
    assert!(
        started.contains("sha256:") && started.contains("\"HOME\"") && !started.contains("fresh start"),
        "{started}"
    );
    // In short, of the whole run: no prompts.
    let text = scene.plan_says(0, "log", &[], &["t-1 │ I write a."]);
    assert!(!text.contains("asked:"), "{text}");
    let (code, text) = scene.plan("log", &["t", "--raw"]);
    let lines: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((code, lines.iter().filter(|line| line["type"] == "result").count()), (0, 2), "{text}");
    let (code, text) = scene.plan("log", &["t", "--json"]);
    let lines: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(code == 0 && lines.iter().any(|line| line["event"]["said"] == "Now really."), "{text}");
    assert!(lines.iter().any(|line| line["files"]["prompt"].as_str().is_some_and(|text| text.contains("Write a"))));
    scene.plan_says(1, "log", &["nobody"], &["there is no task \"nobody\""]);
    // A later run does not hide what an earlier one did.
    assert_eq!(scene.plan("run", &[]).0, 0);
    assert!(scene.plan("log", &["t"]).1.contains("│ Now really."));
}

/// A token that a session, a check or a report shows goes into the raw stream, which only its owner can read, and nowhere
/// else that posse writes or shows.
#[test]
fn secrets_are_masked_everywhere_but_in_the_raw_stream() {
    let secret = format!("ghp_{}", "a1B2".repeat(9));
    // The check does not say it in one piece, or the plan would hold it.
    let plan = "meta:\n  name: One\n  backoff_base: 1\n  gates:\n    - name: good\n      cmd: |\n        grep -q good a && exit\n        printf 'ghp_%s' a1B2a1B2a1B2a1B2a1B2a1B2a1B2a1B2a1B2; exit 1";
    let scene = Scene::new(&ONE.replace("meta: {name: One, backoff_base: 1}", plan));
    let session = say(&format!("the key is {secret}"))
        + &uses("Bash", &format!("curl -H {secret}"))
        + &sh(&format!("echo {secret} >&2"));
    scene.claude.play("t.1", session.clone() + &commit("a", "bad") + &reports("completed", &format!("with {secret}")));
    scene.claude.play("t.2", session + &ask(&format!("is {secret} right?")));
    let text = scene.plan_says(7, "run", &["--verbose"], &["ghp_[masked]"]);
    assert!(!text.contains(&secret), "{text}");
    for words in
        [&["log"][..], &["log", "t"], &["log", "t", "--raw"], &["log", "t", "--json"], &["why", "t"], &["status"]]
    {
        let (code, text) = scene.plan(words[0], &words[1..]);
        assert_eq!(code, 0, "{words:?}: {text}");
        assert!(!text.contains(&secret), "{words:?}: {text}");
    }
    assert!(!scene.text().contains(&secret), "{}", scene.text());
    let home = scene.env.paths().home.clone();
    let mut raw = 0;
    for file in files_below(&home) {
        let holds = fs::read(&file).is_ok_and(|bytes| String::from_utf8_lossy(&bytes).contains(&secret));
        if !holds {
            continue;
        }
        // What the session itself wrote: its stream, its standard error, its report.
        let name = file.file_name().unwrap().to_str().unwrap();
        assert!(["stream.jsonl", "stderr.log", "result.json"].contains(&name), "{}", file.display());
        let mode = fs::metadata(&file).unwrap().permissions().mode() & 0o777;
        assert!(mode == 0o600 || name == "result.json", "{}: {mode:o}", file.display());
        raw += 1;
    }
    assert!(raw >= 2 && runs(&scene).starts_with(&home), "the stream has it");
}

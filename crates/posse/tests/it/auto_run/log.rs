//! `posse auto log`: what was done for items, and what sessions were asked, did and said; how long it is kept, and what is
//! masked in it.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::Stdio;

use super::*;
use crate::plan_log::files_below;
use crate::steps::{end, say, sh, uses, wait_for};
use crate::{contains, has_in_order};

#[test]
fn it_tells_what_was_done_for_an_item() {
    let scene = Scene::new(&["1-bug", "2-more"]);
    let (code, text) = scene.auto(&["log"]);
    let unknown = format!("no run of {} is known", scene.env.work().canonicalize().unwrap().display());
    assert!(code == 1 && text.contains(&unknown), "{text}");
    scene.auto_says(0, &["log", ".", "1-bug"], &["nothing has been done for 1-bug yet"]);
    scene.auto_says(1, &["log", ".", "3-nobody"], &["there is no item 3-nobody"]);
    scene.does("1-bug");
    scene.does("2-more");
    scene.claude.play("plan", say("I look at it.") + &uses("Read", "README") + &sh("echo trouble >&2") + PLANNER);
    scene.claude.play("verify", say("I try it.") + &uses("Bash", "make test") + VERIFIED);
    let text = scene.auto_ends(0, &["--drain", "--verbose"]);
    has_in_order(
        &text,
        &["1-bug-", "│ I look at it.", "1-bug: planned", "do-1-bug-1 │ ended", "│ I try it.", "2 done"],
    );

    let text = scene.auto_ends(0, &["log", ".", "1-bug"]);
    let parts = [
        "1-bug: begun, attempt 1 of 2",
        "1-bug: planner (planner)",
        "flags: --allowedTools Read",
        "files: ",
        "asked:",
        "The file is empty, whatever one does.",
        "reported:",
        "\"planned\"",
        "standard error:",
        "trouble",
        "│ I look at it.",
        "│ ⏵ Read README",
        "1-bug: planned",
        "task do-1-bug: coder (WRITE)",
        "task do-1-bug: PASS",
        "merged",
        "1-bug: verifier (verifier)",
        "asked:",
        "│ I try it.",
        "1-bug: verification 1: Pass",
        "1-bug: completed",
    ];
    has_in_order(&text, &parts);
    assert!(!text.contains("2-more"), "{text}");

    // In short, of all of it: no prompts.
    let text = scene.auto_ends(0, &["log"]);
    has_in_order(
        &text,
        &[
            "pipeline ",
            "1-bug: planner",
            "│ I look at it.",
            "do-1-bug-1 │ ended",
            "2-more: planner",
            "2-more: completed",
        ],
    );
    assert!(!text.contains("asked:"), "{text}");
    // A later pipeline does not hide what an earlier one did.
    assert_eq!(scene.auto(&["--drain"]).0, 0);
    assert!(scene.auto(&["log", ".", "1-bug"]).1.contains("│ I try it."));
}

#[test]
fn it_follows_until_the_end() {
    let scene = Scene::new(&["1-more"]);
    scene.does("1-more");
    scene.claude.gate("gate");
    scene.claude.play("plan", say("the first") + &wait_for("gate") + &say("the second") + PLANNER);
    scene.begin(&json!({}));
    scene.until_waits("plan", 1);
    let mut log = scene.env.command(["run", "log", "-f"]);
    let mut log = log.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(log.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line.contains("the first")));
    scene.claude.open_gate("gate");
    for word in ["the second", "1-more: planned", "task do-1-more is done", "1-more: completed"] {
        assert!(lines.any(|line| line.contains(word)), "{word}");
    }
    assert_eq!(lines.count(), 0);
    assert_eq!(log.wait().unwrap().code(), Some(0));
}

/// What a session shows of a token goes into its raw stream, which only its owner can read, and nowhere else that posse writes:
/// above all not into the item, which is committed.
#[test]
fn secrets_are_masked_everywhere_but_in_the_raw_stream() {
    let secret = format!("ghp_{}", "a1B2".repeat(9));
    let scene = Scene::new(&["1-bug"]);
    scene.does_again_and_again("1-bug");
    scene.claude.play("plan", say(&format!("the key is {secret}")) + PLANNER);
    scene.claude.play("verify.1", end(&format!("[FAIL] S1: {secret} is shown\n**Verdict: FAIL**")));
    scene.claude.play("verify", end(&format!("[PASS] S1: {secret} is not shown\n[PASS] AC1: so\n**Verdict: PASS**")));
    let text = scene.auto_says(0, &["--once"], &["ghp_[masked]"]);
    assert!(!text.contains(&secret), "{text}");
    for words in [
        &["log"][..],
        &["log", ".", "1-bug"],
        &["log", ".", "1-bug", "--raw"],
        &["log", ".", "1-bug", "--json"],
        &["why", ".", "1-bug"],
    ] {
        let (code, text) = scene.auto(words);
        assert_eq!(code, 0, "{words:?}: {text}");
        assert!(!text.contains(&secret), "{words:?}: {text}");
    }
    let item = scene.file("docs/completed-backlog/defects/1-bug.md").unwrap();
    assert!(item.contains("ghp_[masked] is shown"), "{item}");
    let log = scene.git(&["log", "-p"]);
    assert!(!log.contains(&secret), "{log}");
    let home = scene.env.paths().home.clone();
    let holds = |file: &PathBuf| fs::read(file).is_ok_and(|bytes| String::from_utf8_lossy(&bytes).contains(&secret));
    let with: Vec<PathBuf> = files_below(&home).into_iter().filter(holds).collect();
    assert!(with.len() >= 3 && with.iter().all(|file| file.ends_with("stream.jsonl")), "{with:?}");
}

/// The directories of items, of all pipelines.
fn kept(scene: &Scene) -> Vec<PathBuf> {
    let pipelines = fs::read_dir(scene.env.paths().autos()).unwrap().map(|entry| entry.unwrap().path());
    let items = pipelines.flat_map(|pipeline| fs::read_dir(pipeline.join("items")).into_iter().flatten());
    let mut items: Vec<PathBuf> = items.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()).collect();
    items.sort();
    items
}

#[test]
fn what_is_old_goes_unless_the_item_is_still_in_the_backlog() {
    let scene = Scene::new(&["1-bug", "2-bug"]);
    scene.does("1-bug");
    scene.does_again_and_again("2-bug");
    scene.claude.play("verify.1", VERIFIED);
    scene.claude.play("verify", end("I could not decide."));
    assert_eq!(scene.auto(&["--drain"]).0, 7);
    assert_eq!(kept(&scene).len(), 2);
    let log = fs::read_to_string(kept(&scene)[0].with_extension("log")).unwrap();
    let told: Vec<&str> =
        log.lines().filter_map(|line| line.split(' ').nth(2)).filter(|word| *word != "STEP").collect();
    assert_eq!(told, ["STARTED", "PLANNED", "COMPLETED"], "{log}");
    let clean = |options: &[&str]| says(0, scene.posse(&[&["plan", "clean"], options].concat()), &[]);
    let text = clean(&[]);
    contains(&text, &["it is out of the backlog", "it is still in the backlog"]);
    assert_eq!(kept(&scene).len(), 2, "nothing was removed: {text}");
    scene.env.run(["stop"]).ok();
    // As if it had been two months ago.
    let past = std::time::SystemTime::now() - Duration::from_secs(60 * 24 * 3600);
    for item in kept(&scene) {
        fs::File::open(item.join("sessions")).unwrap().set_modified(past).unwrap();
    }
    scene.env.run(["ls"]).ok();
    when("the old one has gone", || (kept(&scene).len() == 1).then_some(()));
    assert!(kept(&scene)[0].ends_with("2-bug"));
    scene.auto_says(0, &["log", ".", "1-bug"], &["its files are gone", "1-bug: completed"]);
    assert!(scene.auto(&["log", ".", "2-bug"]).1.contains("asked:"));
    // It is given up by hand: then it goes, and its pipeline with it.
    fs::remove_file(scene.env.work().join("docs/defect-backlog/2-bug.md")).unwrap();
    let text = clean(&["--yes"]);
    assert_eq!(kept(&scene), Vec::<PathBuf>::new(), "{text}");
    let left: Vec<PathBuf> = files_below(&scene.env.paths().autos());
    assert!(left.iter().all(|file| !file.ends_with("1-bug.log") && !file.ends_with("2-bug.log")), "{left:?}");
}

//! `posse run log`: work on items, and the prompts, actions and output of sessions; its retention and masking. A plan
//! carries out an item, so all of it holds for plans too.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::MetadataExt;

use super::*;
use crate::steps::{DONE, FINE, ask, commit, end, reports, say, sh, uses, wait_for};
use crate::{contains, has_in_order};

/// The log of an item has that of the plan that carries it out.
#[test]
fn it_tells_what_sessions_were_asked_did_and_said() {
    let scene = Scene::new(&["1-bug", "2-more"]);
    let check = "test ! -e 1-bug || grep -q good 1-bug || { echo it is not good; exit 1; }";
    scene.configure(&format!("test_command = '{check}'\n"));
    let unknown = format!("no run of {} is known", scene.env.work().canonicalize().unwrap().display());
    scene.auto_says(1, &["log"], &[&unknown]);
    scene.auto_says(0, &["log", ".", "1-bug"], &["nothing has been done for 1-bug yet"]);
    scene.auto_says(1, &["log", ".", "3-nobody"], &["there is no item 3-nobody"]);
    scene.claude.gate("gate");
    let looks = say("I look at it.") + &wait_for("gate");
    scene.claude.play("plan.1", looks + &uses("Read", "README") + &sh("echo trouble >&2") + PLANNER);
    scene.claude.play(
        "do-1-bug.1",
        say("I mend it.") + &uses("Write", "1-bug") + &commit("1-bug", "bad") + &reports("completed", "it is mended"),
    );
    scene.claude.play("do-1-bug.2", say("Now really.") + &commit("1-bug", "good") + DONE);
    scene.claude.play("do-1-bug", FINE);
    scene.does("2-more");
    scene.claude.play("verify", say("I try it.") + &uses("Bash", "make test") + VERIFIED);
    let pipeline = spawned(scene.command(&["--drain", "--verbose"]));
    scene.until_waits("plan", 1);
    // It is followed from the middle of a session to the end, through the runs of the plans.
    let mut log = spawned(scene.command(&["log", "-f"]));
    let mut followed = BufReader::new(log.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(followed.any(|line| line.contains("│ I look at it.")));
    scene.claude.open_gate("gate");
    for words in ["1-bug: planned", "do-1-bug-1 │ I mend it.", "task do-1-bug is done", "1-bug: completed"] {
        assert!(followed.any(|line| line.contains(words)), "{words}");
    }
    assert!(followed.last().unwrap().contains("2-more: completed"));
    ended_with(0, log);
    let text = ended_with(0, pipeline);
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
        "do-1-bug-1 │ I mend it.",
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

    // The plan has more of its task. How a session was started, without the prompt and without values of the environment.
    let started = files_below(&scene.env.paths().home)
        .into_iter()
        .find(|path| path.ends_with("sessions/do-1-bug-1/command.json"))
        .unwrap();
    let started = fs::read_to_string(started).unwrap();
    contains(&started, &["sha256:", "\"HOME\""]);
    assert!(!started.contains("fresh start"), "{started}");
    let task = [".posse/plans/1-bug.yaml", "do-1-bug"];
    let text = scene.auto_ends(0, &[&["log"], &task[..]].concat());
    let parts = [
        "task do-1-bug: coder (WRITE)",
        "flags: --allowedTools",
        "asked:",
        "Do it.",
        "reported:",
        "it is mended",
        "│ I mend it.",
        "│ ⏵ Write 1-bug",
        "check test failed",
        "it is not good",
        "attempt 2",
        "│ Now really.",
        "checks pass",
        "merged",
    ];
    has_in_order(&text, &parts);
    // For programs, and as the agent printed it: two workers and a validator.
    let lines = |option| -> Vec<Value> {
        let text = scene.auto_ends(0, &[&["log"], &task[..], &[option]].concat());
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    assert_eq!(lines("--raw").iter().filter(|line| line["type"] == "result").count(), 3);
    let json = lines("--json");
    assert!(json.iter().any(|line| line["event"]["said"] == "Now really."), "{json:#?}");
    let prompt = |line: &Value| line["files"]["prompt"].as_str().is_some_and(|text| text.contains("Do it."));
    assert!(json.iter().any(prompt), "{json:#?}");

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
    scene.auto_ends(0, &["--drain"]);
    scene.auto_says(0, &["log", ".", "1-bug"], &["│ I try it."]);
}

/// A token that a session, a check or a report shows goes into the raw stream, which only its owner can read, and nowhere else
/// that posse writes or shows: above all not into the item, which is committed.
#[test]
fn secrets_are_masked_everywhere_but_in_the_raw_stream() {
    let secret = format!("ghp_{}", "a1B2".repeat(9));
    let scene = Scene::new(&["1-bug"]);
    // The check does not say it in one piece, or the configuration would hold it.
    let check = format!("test ! -e 1-bug || grep -q good 1-bug && exit; printf ghp_%s {}; exit 1", &secret[4..]);
    scene.configure(&format!("test_command = '{check}'\n"));
    let shows = say(&format!("the key is {secret}"))
        + &uses("Bash", &format!("curl -H {secret}"))
        + &sh(&format!("echo {secret} >&2"));
    scene.claude.play("plan", shows.clone() + PLANNER);
    let fails = shows.clone() + &commit("1-bug", "bad") + &reports("completed", &format!("with {secret}"));
    scene.claude.play("do-1-bug.1", fails);
    scene.claude.play("do-1-bug.2", shows + &ask(&format!("is {secret} right?")));
    scene.claude.play("do-1-bug.3", commit("1-bug", "good") + DONE);
    scene.claude.play("do-1-bug.5", commit("1-bug", "good again") + DONE);
    scene.claude.play("do-1-bug", FINE);
    scene.claude.play("verify.1", end(&format!("[FAIL] S1: {secret} is shown\n**Verdict: FAIL**")));
    scene.claude.play("verify", end(&format!("[PASS] S1: {secret} is not shown\n[PASS] AC1: so\n**Verdict: PASS**")));
    let masked = |code, words: &[&str], shown: &[&str]| {
        let text = says(code, scene.posse(words), shown);
        assert!(!text.contains(&secret), "{words:?}: {text}");
    };
    scene.auto_ends(7, &["--once"]);
    let plan = ".posse/plans/1-bug.yaml";
    masked(0, &["plan", "status", plan], &["ghp_[masked]"]);
    masked(0, &["run", "why", plan, "do-1-bug"], &["ghp_[masked]"]);
    masked(0, &["run", "answer", plan, "do-1-bug", "yes"], &[]);
    masked(0, &["auto", "--once", "--verbose"], &["ghp_[masked]"]);
    for more in [&[][..], &[".", "1-bug"], &[".", "1-bug", "--raw"], &[".", "1-bug", "--json"], &[plan, "do-1-bug"]] {
        masked(0, &[&["run", "log"], more].concat(), &[]);
    }
    masked(0, &["run", "why", ".", "1-bug"], &[]);
    let item = scene.file("docs/completed-backlog/defects/1-bug.md").unwrap();
    assert!(item.contains("ghp_[masked] is shown"), "{item}");
    let committed = scene.git(&["log", "-p"]);
    assert!(!committed.contains(&secret), "{committed}");
    // Files written by sessions: their streams, standard errors and reports.
    let holds = |file: &PathBuf| fs::read(file).is_ok_and(|bytes| String::from_utf8_lossy(&bytes).contains(&secret));
    let kept = [scene.env.paths().home.clone(), scene.env.work()];
    let with: Vec<PathBuf> = kept.iter().flat_map(|directory| files_below(directory)).filter(holds).collect();
    for file in &with {
        let (name, mode) = (file.file_name().unwrap().to_str().unwrap(), fs::metadata(file).unwrap().mode() & 0o777);
        let private = ["stream.jsonl", "stderr.log"].contains(&name) && mode == 0o600;
        assert!(private || name == "result.json", "{}: {mode:o}", file.display());
    }
    assert!(with.len() >= 3, "{with:?}");
}

fn files_below(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() && !path.is_symlink() { files_below(&path) } else { vec![path] }).collect()
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

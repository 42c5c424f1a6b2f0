//! Every answer to a dialog leaves a record that cannot be changed unnoticed.

use posse_testkit::TestEnv;
use posse_testkit::files::when;
use serde_json::{Value, json};

use crate::agents::{CLAUDE, asked, count, launched, logged, wait};
use crate::env;

/// An agent whose dialogs take no key for longer than any test lasts.
const DEAF: &str = r#"
    look = "claude"
    dialog_deaf = "600000ms"
    [[turn]]
    steps = [{ think = "300ms" }, { ask = { kind = "permission", command = "rm -r target" } }, { say = "All clean." }]
"#;

fn entries(env: &TestEnv) -> Vec<Value> {
    env.run(["audit", "show", "--json"]).json().as_array().unwrap().clone()
}

#[track_caller]
fn intact(env: &TestEnv, entries: u64) {
    let verdict = env.run(["audit", "verify", "--json"]).json();
    assert_eq!((&verdict["intact"], &verdict["entries"]), (&json!(true), &json!(entries)), "{verdict}");
}

#[test]
fn an_answer_is_written_down_before_its_key_and_completed_afterwards() {
    let env = env();
    let log = env.script_agent("claude_code", CLAUDE);
    let launched = env.run(["launch", "claude_code", "--trust", "--name", "a", "--json"]).json();
    assert_eq!(entries(&env), Vec::<Value>::new());
    intact(&env, 0);
    let shown = asked(&env, "danger");

    let listed = env.run(["ls"]).prints(&["asks (permission): Bash rm -r target"]);
    let id = &shown["dialog"]["id"].as_str().unwrap()[..4];
    let answers = format!("`posse approve a --question {id}` or `posse deny a --question {id}` answers it");
    assert!(listed.stderr.contains(&answers), "{}", listed.stderr);
    let text = env.run(["show", "a"]).ok();
    assert!(text.contains(&answers), "{text}");

    let answered = env.run(["approve", "a", "--question", id, "--json"]).json();
    assert_eq!(answered, json!({ "success": true, "audit": 1 }));
    assert_eq!(logged(&log, "dialog_closed", 1), 1);
    let audit = entries(&env);
    assert_eq!(audit.len(), 2, "{audit:#?}");
    let before = &audit[0];
    assert_eq!((&before["seq"], &before["by"], &before["terminal"]), (&json!(1), &json!("person"), &launched["id"]));
    let answering = &before["answering"];
    assert_eq!((&answering["wish"], &answering["chosen"]), (&json!("accept"), &json!("Yes")));
    assert_eq!(answering["keys"], json!(["1"]));
    assert_eq!(answering["dialog"], shown["dialog"]);
    let tail = answering["tail"].as_array().unwrap();
    let tail: Vec<&str> = tail.iter().map(|row| row.as_str().unwrap().trim()).collect();
    let expected = ["Bash rm -r target", "Remove the build directory", "Do you want to proceed?"];
    assert_eq!(tail, expected, "the command, not the options");
    let after = &audit[1]["outcome"];
    assert_eq!(
        (&after["of"], &after["end"], &after["typed"]),
        (&json!(1), &json!("answered"), &json!(["1"])),
        "{after}"
    );
    wait(&env, "a", "completed");

    // A request refused before any key was sent leaves no entry: there was no answer.
    assert_eq!(env.run(["approve", "a"]).code, Some(1));
    asked(&env, "danger");
    assert_eq!(env.run(["approve", "a", "--question", "0123456789abcdef"]).code, Some(1));
    intact(&env, 2);
    // `y` is an answer like any other.
    env.run(["send", "a", "y"]).ok();
    wait(&env, "a", "completed");
    asked(&env, "danger");
    env.run(["deny", "a"]).ok();
    intact(&env, 6);

    let text = env.run(["audit", "show", "--terminal", "a"]).ok();
    assert!(text.contains("person: deny") && text.contains("asked: ") && text.contains("rm -r target"), "{text}");
    assert!(text.contains("answered (1): the question is gone") && text.contains("  Bash:"), "{text}");
    let id = launched["id"].as_str().unwrap();
    let by_prefix = env.run(["audit", "show", "--terminal", &id[..4], "--json"]).json();
    assert_eq!(by_prefix.as_array().unwrap().len(), 6, "{by_prefix:#}");
    env.run(["kill", "a"]).ok();
    let later = env.run(["audit", "show", "--terminal", "a", "--since", "2100-01-01", "--json"]);
    assert_eq!((later.code, later.json()), (Some(0), json!([])), "it is gone, and known by its entries");
    for (filter, value, expected) in [
        ("--terminal", id, 6),
        ("--terminal", "00000000", 0),
        ("--terminal", "a", 6),
        ("--since", "1h", 6),
        ("--since", "2100-01-01", 0),
        ("--lines", "3", 3),
    ] {
        let shown = env.run(["audit", "show", filter, value, "--json"]).json();
        assert_eq!(shown.as_array().unwrap().len(), expected, "{filter} {value}: {shown:#}");
    }
    let log = std::fs::read_to_string(env.paths().log()).unwrap();
    assert!(log.contains(&format!("audit 1: person, terminal {id}, accept with 1\n  | ")), "{log}");
}

/// The key is on its way and does nothing; there the daemon dies.
#[test]
fn an_answer_that_was_cut_off_is_accounted_for() {
    let (env, log) = launched(DEAF);
    asked(&env, "danger");
    let mut approve = env.command(["approve", "a"]).stderr(std::process::Stdio::null()).spawn().unwrap();
    when("the entry of the audit", || (!entries(&env).is_empty()).then_some(()));
    env.kill_daemon();
    assert!(!approve.wait().unwrap().success());
    let audit = entries(&env);
    assert_eq!(audit.len(), 2, "{audit:#?}");
    let outcome = &audit[1]["outcome"];
    assert_eq!((&outcome["of"], &outcome["end"], &outcome["typed"]), (&json!(1), &json!("uncertain"), &Value::Null));
    assert!(outcome["text"].as_str().unwrap().contains("cut off"), "{outcome}");
    intact(&env, 2);
    assert_eq!(count(&log, "dialog_closed"), 0);

    // In vain, and seen to be.
    env.run(["approve", "a"]).ends(1);
    let audit = entries(&env);
    assert_eq!(audit.len(), 4, "{audit:#?}");
    assert_ne!(audit[3]["outcome"]["end"], "answered");
    env.kill_daemon();
    intact(&env, 4);
}

/// Without a place to write it down nothing is typed.
#[test]
fn no_answer_without_its_record() {
    let (env, log) = launched(CLAUDE);
    asked(&env, "danger");
    let head = env.paths().database().with_file_name("audit.head");
    std::fs::create_dir(&head).unwrap();
    for answer in [["approve", "a"].as_slice(), &["deny", "a"], &["send", "a", "y"]] {
        env.run(answer).ends(1).complains(&["nothing is typed"]);
    }
    assert_eq!((count(&log, "dialog_closed"), entries(&env).len()), (0, 0));
    std::fs::remove_dir(&head).unwrap();
    env.run(["approve", "a"]).ok();
    wait(&env, "a", "completed");
    intact(&env, 2);
}

/// The daemon dies as the answer is sent, after its entry, after its key, and after its outcome.
#[test]
fn whenever_the_daemon_dies_every_answer_is_accounted_for() {
    let scenario = r#"
        look = "claude"
        dialog_deaf = "200ms"
        [[turn]]
        steps = [{ think = "300ms" }, { ask = { kind = "permission", command = "rm -r target" } }, { say = "All clean." }]
    "#;
    let (env, log) = launched(scenario);
    let moments = ["sent", "entry", "key", "outcome"];
    for (round, moment) in moments.into_iter().enumerate() {
        asked(&env, "danger");
        let before = entries(&env).len();
        // Asked of the daemon itself: the answer is over before a command has started.
        let written = |count: usize| {
            when(moment, || {
                let audit: Vec<Value> = env.http().get("/audit").ok()?;
                (audit.len() >= before + count).then_some(())
            });
        };
        let silent = std::process::Stdio::null;
        let mut approve = env.command(["approve", "a"]).stdout(silent()).stderr(silent()).spawn().unwrap();
        match moment {
            "entry" => written(1),
            "key" => assert_eq!(logged(&log, "dialog_closed", round + 1), round + 1),
            "outcome" => written(2),
            _ => {}
        }
        env.kill_daemon();
        approve.wait().unwrap();
        when("the end of the turn", || {
            let is_over = wait(&env, "a", "waiting_user_answer,completed")["status"] == "completed";
            if !is_over {
                // May fail, because a key of the killed daemon may be on its way.
                env.run(["approve", "a"]);
            }
            is_over.then_some(())
        });
        assert_eq!(logged(&log, "dialog_closed", round + 1), round + 1);
    }
    let audit = entries(&env);
    let answers: Vec<&Value> = audit.iter().filter(|entry| !entry["answering"].is_null()).collect();
    for answer in &answers {
        let outcomes = audit.iter().filter(|entry| entry["outcome"]["of"] == answer["seq"]);
        assert_eq!(outcomes.count(), 1, "{answer:#}");
    }
    assert!(answers.len() >= moments.len(), "{audit:#?}");
    intact(&env, audit.len() as u64);
}

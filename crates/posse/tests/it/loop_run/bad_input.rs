//! Errors in a run's settings are reported before anything is created: no terminal, no daemon, no state file.

use super::*;

/// Exit code 1, these words, and nothing was started.
#[track_caller]
fn refused(play: &Play, ran: &Ran, words: &[&str]) {
    assert_eq!(ran.code, Some(1), "{ran:?}");
    // Messages are wrapped.
    let flat = ran.stderr.replace('│', " ").split_whitespace().collect::<Vec<_>>().join(" ");
    contains(&flat, words);
    assert_eq!(ran.stdout, "");
    assert!(play.env.processes().is_empty(), "nothing runs");
    assert!(!play.env.work().join(".tmp/agent-responses").exists());
}

/// LOOP-4, LOOP-5, S-202, S-203. What else can be wrong is tested where configurations are read.
#[test]
fn configurations() {
    let play = Play::new("");
    let rows: [(&str, &[&str]); 6] = [
        (r#"{"zeta": 1, "alpha": 2, "provider": "codex"}"#, &["there is no `alpha`", "there is no `zeta`"]),
        (r#"{"limits": {"max_round": 2}}"#, &["`limits.max_round`", "did you mean `limits.max_rounds`"]),
        (r#"{"limits": {"max_review_cycles": 0}}"#, &["`limits.max_review_cycles`", "1 or more"]),
        (
            r#"{"agents": {"tester": {"profile": "nobody"}}}"#,
            &["loop.json: `agents.tester.profile`", "no profile \"nobody\"", "peer_programmer"],
        ),
        ("{\n  \"provider\": }", &["not valid JSON", "loop.json:2:"]),
        (r#"{"wd": "/nowhere/at/all"}"#, &["/nowhere/at/all", "not a directory"]),
    ];
    for (config, words) in rows {
        fs::write(play.env.work().join("loop.json"), config).unwrap();
        refused(&play, &play.run(), words);
    }
    let none = play.env.run(["loop", "none.json", "--prompt-file", "task.md"]);
    refused(&play, &none, &["none.json", "No such file"]);
}

#[test]
fn variables() {
    let play = Play::new("");
    let rows: [(&str, &str, &[&str]); 4] = [
        ("POSSE_MAX_ROUNDS", "0", &["POSSE_MAX_ROUNDS", "1 or more"]),
        ("WD", "/nowhere/at/all", &["not a directory"]),
        ("PROMPT_FILE", "none.md", &["none.md"]),
        ("RESUME", "1", &["nothing to resume", STATE]),
    ];
    for (name, value, words) in rows {
        let mut command = play.env.command(["loop", "loop.json"]);
        command.env("PROMPT_FILE", "task.md").env(name, value);
        let ran = Followed::new(command).end();
        refused(&play, &ran, words);
        assert!(!ran.stderr.contains("loop.json"), "the file is not to blame: {ran:?}");
    }
}

/// LOOP-4, S-204.
#[test]
fn prompts() {
    let play = Play::new("");
    let (explore, scenario) = ("*** ORIGINAL EXPLORE SUMMARY ***", "*** SCENARIO TEST ***");
    let wrong_order = format!("{scenario}\nx\n{explore}\ny\n");
    for (text, words) in
        [("Do it.\n", ["no line", explore, "task.md"]), (wrong_order.as_str(), ["wrong order", "line 1", "line 3"])]
    {
        fs::write(play.env.work().join("task.md"), text).unwrap();
        refused(&play, &play.run(), &words);
        refused(&play, &play.run(), &["task.md", "posse loop --template"]);
    }
    fs::remove_file(play.env.work().join("task.md")).unwrap();
    refused(&play, &play.run(), &["task.md", "No such file"]);
    let nothing = play.env.run(["loop", "loop.json"]);
    refused(&play, &nothing, &["no task is given", "--prompt-file"]);
}

#[test]
fn an_agent_that_is_not_installed() {
    let play = Play::new("");
    let manifest = play.env.paths().providers().join("codex.toml");
    let text = fs::read_to_string(&manifest).unwrap();
    let program = format!("program = {:?}", play.env.posse_path());
    fs::write(&manifest, text.replace(&program, "program = \"/nowhere/codex\"")).unwrap();
    let ran = play.run().ends(69).complains(&["/nowhere/codex is not installed", "hint: npm install"]);
    assert_eq!(ran.stdout, "", "it is said once, and nothing was begun");
    assert_eq!(play.env.run(["run", "ls", "--json"]).json(), json!([]));
    assert_eq!(play.env.run(["ls", "--json"]).json(), json!([]));
    assert_eq!(play.state(), None);
}

/// S-169: if one agent fails to start, the others are ended. With no state file there is nothing to resume.
#[test]
fn s_169_the_third_terminal_fails_at_the_start() {
    let play = Play::new("").and_claude("start = [{ exit = 3 }]");
    play.configure(json!({ "agents": { "programmer": { "provider": "claude_code" } } }));
    let ran = play.run().ends(1).complains(&["the programmer could not be started", "exited with 3"]);
    assert!(!ran.stderr.contains("--resume"), "there is nothing to go on with: {}", ran.stderr);
    assert_eq!((play.state(), play.shown()["status"].clone()), (None, json!("failed")));
    play.until_all_have_left(5);
    assert!(play.records("asked").is_empty());
    // Put right, it is a new run.
    play.configure(json!({}));
    assert_eq!(play.run().code, Some(0));
    play.passed();
}

/// Agents that worked here before may have put a link there.
#[test]
fn links_out_of_the_project_in_the_place_of_files_of_a_run() {
    for link in [".tmp", STATE, &format!("{STATE}.lock"), ".tmp/agent-responses.lock"] {
        let play = Play::new("");
        let outside = play.env.work().parent().unwrap().join("elsewhere");
        fs::create_dir(&outside).unwrap();
        let (place, target) = match link {
            ".tmp" => (play.env.work().join(link), outside.clone()),
            _ => {
                fs::create_dir(play.env.work().join(".tmp")).unwrap();
                (play.env.work().join(link), outside.join("new"))
            }
        };
        std::os::unix::fs::symlink(&target, &place).unwrap();
        let ran = play.run();
        assert_eq!(ran.code, Some(1), "{link}: {ran:?}");
        contains(&ran.stderr, &["is a link, and posse writes only inside of the project"]);
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 0, "{link}: something was written there");
    }
}

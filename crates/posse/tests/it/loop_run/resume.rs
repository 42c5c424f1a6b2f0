//! State files: how a run begins, resumes, or is refused.

use super::*;

fn write_state(play: &Play, text: &str) -> PathBuf {
    let path = play.env.work().join(STATE);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, text).unwrap();
    path
}

/// S-194: an unreadable state file is put aside, and no run replaces it silently.
#[test]
fn s_194_a_corrupt_state_file() {
    for text in ["{", "[]", ""] {
        let play = Play::new("");
        let path = write_state(&play, text);
        play.run().ends(1).complains(&["cannot be used", ".json.corrupt"]);
        assert!(!path.exists());
        assert_eq!(fs::read_to_string(path.with_extension("json.corrupt")).unwrap(), text);
        assert!(play.env.processes().is_empty());
        let ran = play.run();
        assert_eq!(ran.code, Some(0), "said once, it is the user's decision: {ran:?}");
    }
}

/// Nothing that was kept is written over.
#[test]
fn s_194_a_second_corrupt_state_file() {
    let play = Play::new("");
    for (text, kept) in [("{", "json.corrupt"), ("[", "json.corrupt-2"), ("x", "json.corrupt-3")] {
        let path = write_state(&play, text);
        play.run().ends(1).complains(&[&path.with_extension(kept).display().to_string()]);
    }
    for (text, kept) in [("{", "json.corrupt"), ("[", "json.corrupt-2"), ("x", "json.corrupt-3")] {
        assert_eq!(fs::read_to_string(play.env.work().join(STATE).with_extension(kept)).unwrap(), text);
    }
}

/// A run that is stopped in its second turn.
fn stopped() -> (Play, String) {
    let play = Play::new("[loop]\nthink = \"300ms\"");
    play.begin().interrupted_at("turn 2: analyst_review");
    let id = play.id();
    (play, id)
}

/// If the requested settings differ from the run's, they are neither dropped nor applied.
#[test]
fn a_run_that_is_there_is_not_taken_for_another_one() {
    let (play, id) = stopped();
    let loop_json = fs::read_to_string(play.env.work().join("loop.json")).unwrap();
    fs::write(play.env.work().join("other.md"), TASK.replace("A greeting.", "A farewell.")).unwrap();
    play.configure(json!({ "limits": { "max_rounds": 3 } }));
    fs::rename(play.env.work().join("loop.json"), play.env.work().join("other.json")).unwrap();
    fs::write(play.env.work().join("loop.json"), &loop_json).unwrap();
    let (prompt, config) = ("its prompt is another one", "its configuration file is another one");
    let refused = |words: &[&str], wanted: &[&str], not: &[&str]| {
        let ran = Followed::new(play.env.command(words)).end();
        assert_eq!(ran.code, Some(6), "{words:?}: {ran:?}");
        contains(&ran.stderr, &[&id, &format!("`posse loop --resume {id}` goes on with it as it is"), STATE]);
        contains(&ran.stderr, wanted);
        not.iter().for_each(|words| assert!(!ran.stderr.contains(words), "{ran:?}"));
    };
    refused(&["loop", "loop.json", "--prompt-file", "other.md"], &[prompt], &[config]);
    refused(&["loop", "other.json", "--prompt-file", "task.md"], &[config], &[prompt]);
    refused(&["loop", "--resume", "--prompt-file", "other.md"], &[prompt], &[]);
    refused(&["loop", "other.json", "--prompt-file", "other.md", "--resume", &id], &[prompt, config], &[]);
    // A file with `resume`, and another setting that the run does not have.
    let mut resumes: Value = serde_json::from_str(&loop_json).unwrap();
    resumes["resume"] = json!(true);
    resumes["handoff"]["auto_accept_permissions"] = json!(true);
    fs::write(play.env.work().join("other.json"), resumes.to_string()).unwrap();
    refused(&["loop", "other.json"], &[config], &[prompt]);
    assert_eq!((play.shown()["status"].clone(), play.journal("resumed").len()), (json!("stopped"), 0));

    // Start over, as the hint suggests.
    let state = play.env.work().join(STATE);
    fs::rename(&state, state.with_extension("old")).unwrap();
    Followed::new(play.env.command(["loop", "loop.json", "--prompt-file", "other.md", "--trust"])).end().ends(0);
    assert_ne!(play.id(), id);
    contains(play.journal("turn_begun")[0]["text"].as_str().unwrap(), &["A farewell."]);
}

/// S-195: the state file has the prompt.
#[test]
fn s_195_no_prompt_is_needed_to_go_on() {
    let (play, _) = stopped();
    fs::remove_file(play.env.work().join("task.md")).unwrap();
    let mut command = play.env.command(["loop"]);
    command.env("MAX_ROUNDS", "3");
    let warning = "variable MAX_ROUNDS is not applied";
    Followed::new(command).end().ends(0).complains(&["going on with run", warning]);
    play.passed();
}

/// S-196: there is nothing to do.
#[test]
fn s_196_a_run_that_is_over_says_so() {
    for (word, code) in [("PASS", 0), ("FAIL", 1)] {
        let play = Play::new("");
        assert_eq!(play.run().code, Some(0));
        let archived = play.archive_folder().join("agnostic-3agents-loop-state.json");
        let text = fs::read_to_string(&archived).unwrap();
        write_state(&play, &text.replace("\"final_status\": \"PASS\"", &format!("\"final_status\": \"{word}\"")));
        let mut command = play.command(&[]);
        command.env("RESUME", "1");
        let ran = Followed::new(command).end();
        assert_eq!(ran.code, Some(code), "{ran:?}");
        contains(&ran.stdout, &["over", word]);
        assert_eq!(play.records("asked").len(), TURNS.len(), "nobody was asked anything");
    }
}

/// A file of the original program, in the programmer's phase of the second round, with these fields changed.
fn old_state(play: &Play, change: &Value) -> String {
    let mut state = json!({
        "version": 1,
        "api": "http://localhost:9889",
        "provider": "codex",
        "wd": play.env.work(),
        "prompt": TASK,
        "current_round": 2,
        "current_phase": "programmer",
        "final_status": "RUNNING",
        "session_name": "cao-1234abcd",
        "terminals": {
            "analyst": "0000000a", "peer_analyst": "0000000b", "programmer": "0000000c",
            "peer_programmer": "0000000d", "tester": "0000000e",
        },
        "feedback": "RESULT: FAIL\nEVIDENCE:\n- nothing was greeted",
        "analyst_feedback": "None yet.",
        "programmer_feedback": "None yet.",
        "outputs": { "analyst": "ANALYST_SUMMARY:\n- Scope: all of it.", "analyst_review": "", "programmer": "", "programmer_review": "", "tester": "" },
        "somebody_elses": { "field": 1 },
    });
    for (name, value) in change.as_object().unwrap() {
        state[name] = value.clone();
    }
    state.to_string()
}

fn keys(play: &Play) -> Vec<Value> {
    play.records("asked").into_iter().map(|asked| asked["key"].clone()).collect()
}

/// S-200, LOOP-53: the answer to the turn that was under way is there, and is used; one from before that turn is not.
#[test]
fn s_200_an_old_state_file_with_its_answer() {
    for (dispatched, used) in [("2026-02-21T10:00:00Z", true), ("2999-01-01T00:00:00Z", false)] {
        let play = Play::new("");
        let in_flight = json!({ "key": "programmer", "terminal": "0000000c", "dispatched_at": dispatched });
        write_state(&play, &old_state(&play, &json!({ "in_flight": in_flight })));
        let response = play.response("programmer_summary.md");
        fs::create_dir_all(response.parent().unwrap()).unwrap();
        fs::write(&response, "Files changed:\n- greeting.rs, by the one before\n").unwrap();
        let ran = play.run().ends(0);
        play.passed();
        assert_eq!(keys(&play)[0], if used { "programmer_review" } else { "programmer" }, "{ran:?}");
        let first = play.journal("turn_begun")[0]["text"].as_str().unwrap().to_owned();
        assert_eq!(first.contains("greeting.rs, by the one before"), used);
        let kept = if used { "001-programmer.md" } else { "001-programmer-stale.md" };
        assert!(play.archive().contains(&kept.to_owned()), "{:?}", play.archive());
        // LOOP-48: fields of other programs stay in the file.
        let state = play.archive_folder().join("agnostic-3agents-loop-state.json");
        let state: Value = serde_json::from_str(&fs::read_to_string(state).unwrap()).unwrap();
        assert_eq!((&state["somebody_elses"], &state["run"]), (&json!({ "field": 1 }), &json!(play.id())));
    }
}

/// LOOP-52: a file with "done", or past the last round, starts nothing, and the error names the reason.
#[test]
fn s_196_an_old_state_file_of_a_run_that_is_over() {
    for (change, why) in [
        (json!({ "current_phase": "done" }), "says done and does not say PASS"),
        (json!({ "current_round": 9 }), "in round 9, and 8 are allowed"),
    ] {
        let play = Play::new("");
        let path = write_state(&play, &old_state(&play, &change));
        let before = fs::read_to_string(&path).unwrap();
        for command in [play.command(&[]), play.env.command(["loop", "--resume"])] {
            let ran = Followed::new(command).end().ends(1).complains(&[why, "to begin a new run, move"]);
            contains(&ran.stdout, &["says that this run is over: FAIL"]);
        }
        assert_eq!(play.env.run(["run", "ls", "--json"]).json(), json!([]));
        assert_eq!(fs::read_to_string(&path).unwrap(), before);
    }
}

/// S-197: a file of the original program, with terminals that are not ours. The roles get new terminals, and the run
/// continues in its phase.
#[test]
fn s_197_an_old_state_file() {
    let play = Play::new("").and_claude("");
    let analyst = json!({ "id": "0000000a", "provider": "claude_code" });
    let others = json!({ "analyst": analyst, "peer_analyst": "0000000b", "programmer": "0000000c",
        "peer_programmer": "0000000d", "tester": "0000000e" });
    write_state(&play, &old_state(&play, &json!({ "terminals": others })));
    // A prompt that differs from the file's is used, with a message.
    std::fs::write(play.env.work().join("task.md"), TASK.replace("A greeting.", "A warm greeting.")).unwrap();
    let mut command = play.env.command(["loop", "loop.json", "--prompt-file", "task.md", "--trust"]);
    command.env("RESUME", "1");
    let ran = Followed::new(command).end().ends(0);
    contains(&ran.stderr, &["the one given is used", "the analyst was claude_code so far, and is codex from now on"]);
    assert!(!ran.stderr.contains("the tester was"), "{ran:?}");
    contains(play.journal("turn_begun")[0]["text"].as_str().unwrap(), &["A warm greeting."]);
    let run = play.shown();
    assert_eq!((&run["status"], &run["round"]), (&json!("passed"), &json!(2)));
    assert_eq!(keys(&play), TURNS[4..]);
    contains(play.journal("turn_begun")[0]["text"].as_str().unwrap(), &["nothing was greeted"]);
}

/// S-201: a second run is refused while the first one has the state file; if the file names the run, it is followed.
#[test]
fn s_201_one_run_for_one_state_file() {
    let play = Play::new("[loop]\nthink = \"forever\"");
    let mut followed = play.begin();
    followed.until("turn 1: analyst");
    let (id, path) = (play.id(), play.env.work().join(STATE));
    // The last thing written into it until the analyst answers.
    when("a prompt that was sent", || {
        let sent = play.journal("sent").first()?["at"].clone();
        (play.state()?["in_flight"]["dispatched_at"] == sent).then_some(())
    });
    let aside = path.with_extension("aside");
    fs::rename(&path, &aside).unwrap();
    play.run().ends(1).complains(&["uses the state file", &format!("posse loop --resume {id}")]);
    // With another state file it would still be the same response files.
    let mut elsewhere = play.command(&[]);
    elsewhere.env("STATE_FILE", "other.json");
    let other = Followed::new(elsewhere).end().ends(1);
    contains(&other.stderr, &["take each other's answers", &format!("posse loop --resume {id}")]);
    fs::rename(&aside, &path).unwrap();
    let mut third = play.begin();
    third.until("turn 1: analyst");
    play.env.run(["run", "stop", &id]).ok();
    for ran in [followed.end(), third.end()] {
        assert_eq!(ran.code, Some(1), "{ran:?}");
        contains(&ran.stderr, &["posse run stop"]);
    }
    assert_eq!(play.env.run(["run", "ls", "--json"]).json().as_array().unwrap().len(), 1);
    assert_eq!(play.records("asked").len(), 1);
}

/// S-192: a signal while it is not yet clear what is to be resumed leaves the state file as it is.
#[test]
fn s_192_a_signal_while_resuming() {
    let (play, _) = stopped();
    let before = fs::read_to_string(play.env.work().join(STATE)).unwrap();
    // The daemon is suspended: the run cannot have been resumed.
    let daemon = Pid::from_raw(play.env.daemon_pid().try_into().unwrap()).unwrap();
    kill_process(daemon, Signal::STOP).unwrap();
    let resuming = play.resume();
    resuming.minds(Signal::TERM);
    resuming.signal(Signal::TERM);
    let ran = resuming.end();
    kill_process(daemon, Signal::CONT).unwrap();
    assert_eq!(ran.code, Some(143), "{ran:?}");
    assert_eq!(fs::read_to_string(play.env.work().join(STATE)).unwrap(), before);
    play.resume().end().ends(0);
    play.passed();
}

/// S-201 for two homes, which know nothing of each other.
#[test]
fn s_201_one_run_for_one_project_whoever_drives_it() {
    let play = Play::new("[loop]\nthink = \"forever\"");
    let other = env();
    let mut followed = play.begin();
    followed.until("turn 1: analyst");
    let elsewhere = |more: &[&str]| {
        let work = play.env.work();
        let prompt = work.join("task.md");
        let words = ["loop", "--prompt-file", prompt.to_str().unwrap(), "--trust", "-C", work.to_str().unwrap()];
        other.command(words.iter().chain(more))
    };
    let home = play.env.paths().home.display().to_string();
    let holder = format!("run {} of the posse in {home} goes on there already", play.id());
    let daemon = format!("process {}", play.env.daemon_pid());
    // As it is: it would go on from the state file. With another state file: the same response files.
    let mut state = elsewhere(&[]);
    state.env("STATE_FILE", "other.json");
    for command in [elsewhere(&[]), state] {
        Followed::new(command).end().ends(6).complains(&[&holder, &daemon, "stop it there"]);
    }
    // In another project, but with the same state file.
    let mut same_state = other.command(["loop", "--prompt-file"]);
    same_state.arg(play.env.work().join("task.md")).arg("--trust").env("STATE_FILE", play.env.work().join(STATE));
    Followed::new(same_state).end().ends(6).complains(&[&holder, &format!("{STATE}.lock")]);
    assert_eq!(other.run(["run", "ls", "--json"]).json(), json!([]), "nothing was begun");

    // The lock goes with the daemon that holds it, and the next one has it again.
    play.env.kill_daemon();
    followed.until("going on");
    assert_eq!(Followed::new(elsewhere(&[])).end().code, Some(6));
    // Stopped, it holds nothing.
    play.env.run(["run", "stop", &play.id()]).ok();
    assert_eq!(followed.end().code, Some(1));
    let tmp = play.env.work().join(".tmp");
    let no_locks = || {
        let mut names = fs::read_dir(&tmp).unwrap().map(|entry| entry.unwrap().file_name());
        names.all(|name| !name.to_string_lossy().ends_with(".lock")).then_some(())
    };
    when("the end of the locks", no_locks);
}

/// The posse that drove a run was away, and another home has gone on with it from its state file: it is theirs now.
#[test]
fn s_201_a_run_that_another_home_has_gone_on_with_is_not_taken_up() {
    let play = Play::new("[loop]\nthink = \"forever\"");
    let mut followed = play.begin();
    followed.until("turn 1: analyst");
    play.until_recorded("asked", 1);
    let (id, work) = (play.id(), play.env.work());
    play.env.run(["stop"]).ok();
    let other = env();
    other.script_agent("codex", "look = \"codex\"\nplay = \"loop\"\n[loop]\nthink = \"forever\"");
    let begun = other.run(["loop", "--resume", "--detach", "--trust", "-C", work.to_str().unwrap()]);
    let theirs = begun.ok();
    // Following the run, or showing it, restarts our daemon.
    let ran = followed.end();
    play.env.run(["run", "ls"]).ok();
    Followed::new(play.env.command(["run", "log", "-f", &id])).end().ok();
    let run = play.shown();
    let holder = format!("run {} of the posse in {}", theirs.trim(), other.paths().home.display());
    assert_eq!((&run["id"], &run["status"]), (&json!(id), &json!("stopped")), "{ran:?}");
    contains(run["reason"].as_str().unwrap(), &[&holder]);
    play.env.run(["loop", "--resume", &id]).ends(6);
    assert_eq!(other.run(["run", "ls", "--json"]).json()[0]["status"], "running");
    // They stop, and it can be ours again.
    other.run(["run", "stop", theirs.trim()]).ok();
    Followed::new(other.command(["run", "log", "-f", theirs.trim()])).end().ok();
    let mut again = play.follow();
    again.until("going on");
    play.env.run(["run", "stop", &id]).ok();
    assert_eq!(again.end().code, Some(1));
}

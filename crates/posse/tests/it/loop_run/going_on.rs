//! Answers, permissions and terminals when a turn or a start fails midway.

use super::*;

const PERMISSION: &str = "[[turn]]\nkey = \"programmer\"\nnth = 1\nsteps = [{ think = \"200ms\" }, \
    { ask = { kind = \"permission\", command = \"rm -r target\" } }, { answer = {} }, { say = \"Done.\" }]";

/// S-5, S-6: stopped at a question, and resumed by a client that accepts permissions.
#[test]
fn s_5_permissions_are_accepted_for_who_goes_on_with_the_variable() {
    let play = Play::new(PERMISSION);
    play.begin().interrupted_at("waits for an answer (permission) and accepting is off");
    let mut command = play.env.command(["loop", "--resume"]);
    command.env("AUTO_ACCEPT_PERMISSIONS", "1");
    Followed::new(command).end().ends(0).prints(&["permissions are accepted from now on", ", 1/20:"]);
    play.passed();
}

/// S-6: the variable of the client that began the run does not apply to the client that resumes it.
#[test]
fn s_6_permissions_are_not_accepted_for_who_goes_on_without_the_variable() {
    let play = Play::new(&format!(
        "{PERMISSION}\n[[turn]]\nkey = \"analyst\"\nnth = 1\nsteps = [{{ think = \"3s\" }}, {{ answer = {{}} }}]"
    ));
    play.begin_accepting().interrupted_at("turn 1");
    let mut followed = play.resume();
    followed.until("permissions are not accepted any more");
    followed.until("waits for an answer (permission) and accepting is off");
    assert_eq!(play.records("dialog_closed").len(), 0);
    let programmer = play.shown()["terminals"]["programmer"].as_str().unwrap().to_owned();
    play.env.run(["approve", &programmer]).ok();
    followed.end().ends(0);
    play.passed();
}

/// Seed 002: a prompt that is taken and of which nothing is ever seen. That it was submitted is no observation.
#[test]
fn s_15_an_agent_that_shows_nothing_has_the_startup_time_and_then_the_grace() {
    let play = Play::new("[[turn]]\nkey = \"analyst\"\nnth = 1\nignore = true");
    play.configure(json!({ "handoff": { "idle_grace_seconds": 2 } }));
    let begun = Instant::now();
    play.run().ends(1).prints(&["never entered processing within 2 s"]).complains(&["wrote no answer", "analyst"]);
    assert!(begun.elapsed() > Duration::from_secs(4), "both: {:?}", begun.elapsed());
}

/// S-127, S-200: the answer is there, and then the service fails. It is not moved away and asked for again.
#[test]
fn s_127_an_answer_before_a_failure_of_the_service_is_used_when_the_run_goes_on() {
    let play = Play::new(&first_turn("analyst", "{ think = '200ms' }, { answer = {} }, { fail = '529' }"));
    let mut followed = play.begin();
    followed.until("Tried again in 30 s");
    assert_eq!(play.shown()["status"], "parked");
    play.follow().end().ends(0);
    followed.end().ends(0).prints(&["the answer of the analyst has come after all"]);
    play.passed();
    assert_eq!(play.records("asked").len(), TURNS.len(), "nobody was asked twice");
    assert!(!play.archive().iter().any(|name| name.contains("stale")), "{:?}", play.archive());
}

/// The same for an agent that dies.
#[test]
fn s_200_an_answer_of_an_agent_that_died_after_it_is_used_when_the_run_goes_on() {
    let play = Play::new(
        "[[turn]]\nkey = \"analyst\"\non = \"review cycle 1\"\nsteps = [{ answer = {} }]\n\
         [[turn]]\nkey = \"analyst\"\nsteps = [{ think = \"200ms\" }, { answer = {} }, { think = \"200ms\" }, { crash = 9 }]",
    );
    play.run().ends(1).complains(&["is gone"]);
    play.resume().end().ends(0).prints(&["the answer of the analyst has come after all"]);
    play.passed();
    assert_eq!(play.records("asked").len(), TURNS.len(), "nobody was asked twice");
}

/// The dead agent might have written more.
#[test]
fn file_that_a_dead_agent_left_half_written_is_kept_and_not_used() {
    let counts = tempfile::tempdir().unwrap();
    let play = Play::new("");
    let half = play.response("analyst_summary.md");
    play.env.script_agent(
        "codex",
        &format!(
            "look = \"codex\"\nplay = \"loop\"\n[loop]\nstate_dir = {:?}\n\
             [[turn]]\nkey = \"analyst\"\nnth = 1\nsteps = [{{ think = \"200ms\" }}, {{ write = {{ path = {half:?}, text = \"- Sco\" }} }}, {{ crash = 9 }}]",
            counts.path()
        ),
    );
    play.run().ends(1).complains(&["is gone"]);
    play.resume().end().ends(0).prints(&["turn 2: analyst (try 2)"]);
    play.passed();
    assert!(play.archive().iter().any(|name| name.ends_with("-analyst-stale.md")), "{:?}", play.archive());
}

/// S-170, LOOP-14: an agent that does not get ready in time is not left to itself.
#[test]
fn s_170_what_does_not_get_ready_is_ended() {
    let play = Play::new("").and_claude("start = [{ pause = \"600s\" }]");
    let manifest = play.env.paths().providers().join("claude_code.toml");
    let text = fs::read_to_string(&manifest).unwrap();
    fs::write(&manifest, format!("{text}\n[start]\ntimeout_ms = 500\n")).unwrap();
    play.configure(json!({ "agents": { "tester": { "provider": "claude_code" } } }));
    play.run().ends(1).complains(&["the tester could not be started", "not ready after"]);
    let running = |terminals: &Value| {
        terminals.as_array().unwrap().iter().filter(|terminal| terminal["exit"] == Value::Null).count()
    };
    play.when_told("nobody is left", |terminals| (running(terminals) == 0).then_some(()));
}

/// Where the last message may replace the file, a message of an earlier turn must not: it answers another prompt. This
/// holds wherever the agent draws.
#[test]
fn a_message_of_an_earlier_turn_is_no_answer() {
    for alternate in ["", "alternate = true\n"] {
        let play = Play::new(&format!(
            "{alternate}[[turn]]\nkey = \"analyst_review\"\nnth = 1\nsteps = [{{ think = \"200ms\" }}, {{ answer = {{}} }}, {{ say = \"REVIEW_RESULT: APPROVED\" }}]\n\
             [[turn]]\nkey = \"analyst_review\"\nnth = 2\nignore = true",
        ));
        play.configure(json!({ "handoff": { "strict_file_handoff": false } }));
        let ran = play.run();
        assert_eq!(ran.code, Some(1), "{alternate}{ran:?}");
        contains(&ran.stdout, &["its last message is taken instead"]);
        contains(&ran.stderr, &["no message of the agent is on its screen that came after the prompt"]);
    }
}

/// S-156: the service's error is shown above the agent's question. That is no permission prompt.
#[test]
fn s_156_a_failure_of_the_service_is_not_accepted() {
    let play = Play::new("").and_claude(
        "alternate = true\n[[turn]]\nkey = \"programmer\"\nnth = 1\nsteps = [{ think = \"200ms\" }, { say = \"API Error: 500 Internal server error\" }, \
         { ask = { kind = \"permission\", command = \"rm -r target\" } }, { answer = {} }]",
    );
    play.configure(json!({ "agents": { "programmer": { "provider": "claude_code" } } }));
    let mut followed = play.begin_accepting();
    followed.until("Tried again in 30 s");
    assert_eq!(play.journal("accepting").len(), 0);
    followed.signal(Signal::INT);
    assert_eq!(followed.end().code, Some(130));
}

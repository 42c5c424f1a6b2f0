//! Everything dies, and the run comes to the same end.

use super::*;

const THINKS: &str = "[loop]\nthink = \"300ms\"";

/// The command that follows the run gets a hang-up: the run continues, and can be resumed and followed. A closed window
/// must not stop a night's work. The kills of loops test a killed command.
#[test]
fn a_run_goes_on_without_its_follower() {
    let play = Play::new(THINKS);
    let mut followed = play.begin();
    followed.until("turn 2: analyst_review");
    play.until_recorded("asked", 2);
    followed.signal(Signal::HUP);
    followed.end().ends(129);
    assert_eq!(play.shown()["status"], "running");
    play.until_recorded("asked", 4);
    play.follow().end().ends(0);
    play.passed();
    for kind in ["stopped", "resumed"] {
        assert!(play.journal(kind).is_empty(), "it never {kind}");
    }
    assert_eq!(play.records("asked").len(), TURNS.len());
}

/// S-159: the daemon dies in every phase of the run, and the following command sees it pass.
#[test]
fn s_159_the_daemon_dies_and_is_followed() {
    let play = Play::new(THINKS);
    let mut followed = play.begin();
    // While agents are started, then in a turn and between two.
    for (words, asked) in [("run ", 0), (": analyst", 1), (": answered", 1), (": programmer", 5), (": tester", 9)] {
        followed.until(words);
        play.until_recorded("asked", asked);
        // The words may be from before the last kill.
        when("a daemon", || play.env.http().call("GET", "/health", "").ok());
        play.env.kill_daemon();
    }
    followed.end().ends(0).prints(&["going on", "PASS in round 1"]);
    play.passed();
    assert_eq!(play.records("asked").len(), TURNS.len());
    // One whose start was cut off may be there as one that never ran.
    let terminals = play.env.run(["ls", "--json"]).json();
    let living = terminals.as_array().unwrap().iter().filter(|terminal| terminal["exit"].is_null());
    assert_eq!(living.count(), 5, "no agent was started twice: {terminals}");
}

/// S-199, S-200: without a follower, the next daemon resumes the run by itself.
#[test]
fn s_199_s_200_the_daemon_dies_and_nobody_is_there() {
    let play = Play::new(THINKS);
    Followed::new(play.command(&["--detach"])).end().ok();
    for asked in [2, 5, 8] {
        play.until_recorded("asked", asked);
        play.env.kill_daemon();
        // The agent continues without the daemon, and its answer waits in its file.
        when("a daemon", || play.env.http().call("GET", "/health", "").ok());
    }
    let id = play.id();
    let log = Followed::new(play.env.command(["run", "log", "-f", &id])).end().ends(0);
    log.prints(&["turn 1: analyst", "turn 9: answered", "PASS in round 1"]);
    play.passed();
    assert_eq!(play.records("asked").len(), TURNS.len());
}

/// S-158, S-162: an agent's program is killed, or exits, in its turn. The run stops with "the terminal is gone"; resumed, it
/// starts another agent and passes.
#[test]
fn s_158_s_162_an_agent_dies_in_its_turn() {
    for (ending, word) in [("crash = 9", "SIGKILL"), ("exit = 3", "exited with 3")] {
        let counts = tempfile::tempdir().unwrap();
        let play = Play::new(&format!(
            "[loop]\nstate_dir = {:?}\n[[turn]]\nkey = \"programmer\"\nnth = 1\nsteps = [{{ think = \"200ms\" }}, {{ {ending} }}]",
            counts.path()
        ));
        play.run().ends(1).complains(&["the terminal is gone", "programmer", word, "posse loop --resume"]);
        let state = play.state().unwrap();
        assert_eq!((&state["final_status"], &state["current_phase"]), (&json!("RUNNING"), &json!("programmer")));
        let before = play.shown()["terminals"].clone();
        assert_eq!(before.get("programmer"), None, "{before}");

        play.resume().end().ends(0).prints(&["turn 6: programmer (try 2)"]);
        play.passed();
        let after = play.shown()["terminals"].clone();
        assert_ne!(after["programmer"], Value::Null);
        for role in ["analyst", "peer_analyst", "peer_programmer", "tester"] {
            assert_eq!(before[role], after[role], "{role} is the same");
        }
    }
}

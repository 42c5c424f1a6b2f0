//! A loop over the original API: a client that knows the routes of the spec's §1.2 and nothing of runs, that polls, and
//! reads its answers from files.

use posse_core::turn::files;

use super::*;
use crate::tcp::{OriginalClient, listen};

const PROFILES: [(&str, &str, &str); 5] = [
    ("system_analyst", "analyst", "analyst_summary.md"),
    ("peer_system_analyst", "analyst_review", "analyst_review.md"),
    ("programmer", "programmer", "programmer_summary.md"),
    ("peer_programmer", "programmer_review", "programmer_review.md"),
    ("tester", "tester", "test_result.md"),
];

/// As such a client does it: look at the status, then at the file, then sleep.
struct Client {
    http: OriginalClient,
    terminals: Vec<String>,
}

impl Client {
    fn status(&self, terminal: &str) -> String {
        let shown = self.http.ok("GET", &format!("/terminals/{terminal}"), &[]);
        shown["status"].as_str().unwrap().to_owned()
    }

    /// One turn: the prompt goes in, the answer comes out of its file.
    #[track_caller]
    fn send_and_wait(&self, play: &Play, key: &str) -> String {
        let at = PROFILES.iter().position(|(_, other, _)| *other == key).unwrap();
        let (terminal, file) = (&self.terminals[at], play.response(PROFILES[at].2));
        let prompt = format!(
            "You are one of five.\n{}\n{}",
            "Read, and don't guess.\n".repeat(40),
            files::instruction(&Default::default(), file.to_str().unwrap(), &files::heredoc_word(7))
        );
        self.http.ok("POST", &format!("/terminals/{terminal}/input"), &[("message", &prompt)]);
        let answer = when(&format!("the answer of {key}"), || {
            let status = self.status(terminal);
            assert_ne!(status, "error", "{key}");
            if status == "waiting_user_answer" {
                self.http.call("POST", &format!("/terminals/{terminal}/input"), &[("message", "y")]);
            }
            let quiet = status == "idle" || status == "completed";
            fs::read_to_string(&file).ok().filter(|text| quiet && !text.trim().is_empty())
        });
        fs::remove_file(&file).unwrap();
        let said = self.http.ok("GET", &format!("/terminals/{terminal}/output"), &[("mode", "last")]);
        assert_eq!(said["mode"], "last");
        answer
    }
}

#[test]
fn a_loop_of_somebody_else() {
    let play = Play::new("[loop]\nthink = \"100ms\"\nfailures = 1").and_claude("[loop]\npermissions = 1");
    fs::create_dir_all(play.env.work().join(".tmp/agent-responses")).unwrap();
    let http = OriginalClient(listen(&play.env, &["--no-auth"]));
    let work = play.env.work().to_string_lossy().into_owned();
    let create = |profile| -> [(&str, &str); 3] {
        let provider = if profile == "programmer" { "claude_code" } else { "codex" };
        [("provider", provider), ("agent_profile", profile), ("working_directory", &work)]
    };
    let first = http.ok("POST", "/sessions", &create(PROFILES[0].0));
    let session = first["session_name"].as_str().unwrap().to_owned();
    let mut terminals = vec![first["id"].as_str().unwrap().to_owned()];
    for (profile, ..) in &PROFILES[1..] {
        let terminal = http.ok("POST", &format!("/sessions/{session}/terminals"), &create(profile));
        terminals.push(terminal["id"].as_str().unwrap().to_owned());
    }
    // Each was started with the profile of its role.
    let roles = ["analyst", "peer analyst", "programmer", "peer programmer", "tester"];
    for (terminal, role) in terminals.iter().zip(roles) {
        let mut agents = play.env.processes().into_iter();
        let agent = agents.find(|it| it.variable("POSSE_TERMINAL_ID").as_ref() == Some(terminal)).unwrap();
        let told = agent.command.join(" ");
        assert!(told.contains(&format!("You are the {role} of a team")), "{role} was started with {told}");
    }
    let client = Client { http, terminals };
    for terminal in &client.terminals {
        when("quiet", || ["idle", "completed"].contains(&client.status(terminal).as_str()).then_some(()));
    }

    let mut verdicts = Vec::new();
    for key in TURNS.iter().chain(&TURNS[4..]) {
        let answer = client.send_and_wait(&play, key);
        verdicts.extend(answer.lines().find(|line| line.contains("RESULT:")).map(str::to_owned));
    }
    let expected = [
        "REVIEW_RESULT: REVISE",
        "REVIEW_RESULT: APPROVED",
        "REVIEW_RESULT: REVISE",
        "REVIEW_RESULT: APPROVED",
        "RESULT: FAIL",
        "REVIEW_RESULT: REVISE",
        "REVIEW_RESULT: APPROVED",
        "RESULT: PASS",
    ];
    assert_eq!(verdicts, expected);
    let listed = client.http.ok("GET", &format!("/sessions/{session}/terminals"), &[]);
    assert_eq!(listed.as_array().unwrap().len(), 5);
    for terminal in &client.terminals {
        client.http.ok("POST", &format!("/terminals/{terminal}/exit"), &[]);
    }
    client.http.ok("DELETE", &format!("/sessions/{session}"), &[]);
    assert_eq!(client.http.ok("GET", "/sessions", &[]), json!([]));
}

/// `posse wait` does not take the status of the turn before for that of the one just sent.
#[test]
fn wait_after_send_waits_for_the_turn_that_was_sent() {
    let env = env();
    // Nothing is shown of the second turn for a while.
    let scenario = "look = \"claude\"\nsilent = true\n\
        [[turn]]\non = \"slowly\"\nsteps = [{ pause = \"700ms\" }, { think = \"300ms\" }, { say = \"slow answer\" }]\n\
        [[turn]]\nsteps = [{ think = \"200ms\" }, { say = \"first answer\" }]";
    env.script_agent("claude_code", scenario);
    let id = env.run(["launch", "claude_code", "--trust", "--json"]).json()["id"].as_str().unwrap().to_owned();
    for (prompt, answer) in [("first", "first answer"), ("slowly", "slow answer")] {
        env.run(["send", &id, prompt]).ok();
        env.run(["wait", &id, "--until", "completed"]).ok();
        assert_eq!(env.run(["output", &id, "--last"]).ok().trim(), answer);
    }
}

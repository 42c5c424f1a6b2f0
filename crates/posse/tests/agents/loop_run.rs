//! The loop on the real agents: five of them, of two makers, in the roles that a scripted model plays by their own tools.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::Child;
use std::time::Instant;

use posse_core::review_loop::Role;
use posse_sim::model::{ModelLog, ModelRequest};
use posse_sim::scenario::{CommandUse, FileWrite};
use posse_sim::{ModelServer, Scenario, ScriptStep, ScriptTurn};
use posse_testkit::PATIENCE;
use posse_testkit::agents::{Agent, AgentHome, CLAUDE, CODEX, HomeOptions, Maker, or_skip};

use posse_testkit::{TestEnv, process};
use serde_json::{Value, json};

use crate::env;

const PROMPT: &str = "\
*** ORIGINAL EXPLORE SUMMARY ***
Goal: the project has a file greeting.txt that says hello.
Scope: in: greeting.txt. Out: everything else.

*** SCENARIO TEST ***
Steps:
1. `cat greeting.txt`
PASS: it prints hello. FAIL: anything else.
";

/// A role: its first prompt's words, its file, and what it answers.
struct Part {
    role: &'static str,
    opening: &'static str,
    file: &'static str,
    answer: &'static str,
}

const PARTS: [Part; 5] = [
    Part {
        role: "analyst",
        opening: "You are the analyst.",
        file: "analyst_summary.md",
        answer: "ANALYST_SUMMARY\nScope: greeting.txt\nImplementation notes:\n1. Write greeting.txt.",
    },
    Part {
        role: "peer_analyst",
        opening: "You are the peer analyst",
        file: "analyst_review.md",
        answer: "REVIEW_RESULT: APPROVED\nREVIEW_NOTES:\n- Artifacts: all verified.",
    },
    Part {
        role: "programmer",
        opening: "You are the programmer.",
        file: "programmer_summary.md",
        answer: "PROGRAMMER_SUMMARY\nFiles changed: greeting.txt\nBehavior implemented: it says hello.",
    },
    Part {
        role: "peer_programmer",
        opening: "You are the peer programmer",
        file: "programmer_review.md",
        answer: "REVIEW_RESULT: APPROVED\nREVIEW_NOTES:\n- Implementation: I read greeting.txt.",
    },
    Part {
        role: "tester",
        opening: "You are the tester.",
        file: "test_result.md",
        answer: "RESULT: PASS\nEVIDENCE:\n- expected hello, observed hello.",
    },
];

/// The way a role delivers its answer.
#[derive(Clone, Copy)]
enum By {
    /// The command that the prompt gives.
    Heredoc,
    /// The agent's own tool for files.
    Tool,
}

/// Five agents in one home, and the model that plays them.
struct Stage {
    env: TestEnv,
    home: AgentHome,
    server: ModelServer,
}

impl Stage {
    fn open(claude: &Agent, codex: &Agent) -> Self {
        let server = ModelServer::start([]).unwrap();
        let home = claude.home_with(codex, &server, &HomeOptions::default());
        fs::write(home.directory.join("task.md"), PROMPT).unwrap();
        let env = env();
        // Starts the daemon, so that it can be asked before the run is there.
        env.run(["ls"]).ok();
        Self { env, home, server }
    }

    /// A role does all it has to: `before`, then its answer, then a last word.
    fn plays(&self, role: &str, by: By, before: impl IntoIterator<Item = ScriptTurn>) {
        let turns = before.into_iter().chain([ScriptTurn::of([self.answers(role, by)]), last_word()]).collect();
        self.server.add([Scenario { opening: Some(part(role).opening.into()), turns, ..Scenario::default() }]).unwrap();
    }

    /// The same, but it has begun its answer before it waits.
    fn plays_after(&self, gate: &str, role: &str, by: By) {
        let held =
            ScriptTurn::of([ScriptStep::say("I think about it."), ScriptStep::wait_for(gate), self.answers(role, by)]);
        let turns = vec![held, last_word()];
        self.server.add([Scenario { opening: Some(part(role).opening.into()), turns, ..Scenario::default() }]).unwrap();
    }

    fn answers(&self, role: &str, by: By) -> ScriptStep {
        let part = part(role);
        let path = self.home.directory.join(".tmp/agent-responses").join(part.file).display().to_string();
        match by {
            By::Heredoc => {
                let part_file = format!("{path}.part");
                let command =
                    format!("cat > '{part_file}' <<'ANSWER' && mv -f '{part_file}' '{path}'\n{}\nANSWER", part.answer);
                ScriptStep::Run(CommandUse { command, escalated: true, ..CommandUse::default() })
            }
            By::Tool => ScriptStep::Write(FileWrite { path, text: format!("{}\n", part.answer) }),
        }
    }

    /// Begins `posse loop` with a configuration made of these agents and with permissions accepted, and follows it.
    fn begin(&self, agents: &Value) -> Following<'_> {
        let config = json!({
            "agents": agents,
            "limits": {
                "max_rounds": 1, "max_review_cycles": 1, "min_review_cycles_before_approval": 1,
                "require_review_evidence": false,
            },
            "handoff": { "response_timeout": 100 },
        });
        fs::write(self.home.directory.join("loop.json"), config.to_string()).unwrap();
        let words = ["loop", "loop.json", "--prompt-file", "task.md"];
        let mut command = self.home.posse(&self.env, words);
        command.env("AUTO_ACCEPT_PERMISSIONS", "1");
        let said = self.env.work().join("said");
        fs::write(&said, "").unwrap();
        let append = || File::options().append(true).open(&said).unwrap();
        let (out, err) = (append(), append());
        let child = command.stdout(out).stderr(err).spawn().unwrap();
        Following { stage: self, child, said }
    }

    /// The run, if there is one yet.
    fn run(&self) -> Value {
        let runs: Value = self.env.http().get("/runs").unwrap();
        runs[0].clone()
    }

    /// Waits until a role asks something that can be read, and gives its terminal's id.
    #[track_caller]
    fn asks(&self, role: &str) -> String {
        let mut events = self.env.http().events(None).unwrap();
        let give_up = Instant::now() + PATIENCE;
        while Instant::now() < give_up {
            let run = self.run();
            if let Some(id) = run["terminals"][role].as_str() {
                let shown: Value = self.env.http().get(&format!("/terminals/{id}")).unwrap();
                if !shown["dialog"].is_null() {
                    return id.to_owned();
                }
            }
            events.next_event().unwrap();
        }
        panic!("the {role} never asks; the model:\n{}", self.server.log());
    }

    /// The model has seen one prompt for each of these, in this order, each as it was written down, and nothing more.
    #[track_caller]
    fn each_prompt_came_once(&self, roles: &[&str]) {
        let run = self.run();
        let journal: Value = self.env.http().get(&format!("/runs/{}/journal", run["id"].as_str().unwrap())).unwrap();
        let begun = journal.as_array().unwrap().iter().filter(|entry| entry["entry"] == "turn_begun");
        let written: Vec<&str> = begun.map(|turn| turn["text"].as_str().unwrap().trim()).collect();
        let log = self.server.log();
        let seen: Vec<&str> = prompts(&log);
        assert_eq!(seen, written, "{log}");
        let openings: Vec<&str> = roles.iter().map(|role| part(role).opening).collect();
        let fits = seen.iter().zip(&openings).all(|(text, opening)| text.contains(opening));
        assert!(fits && seen.len() == roles.len(), "{log}");
    }

    /// These accepts of roles are in the audit, with the number and the key, and no others.
    #[track_caller]
    fn all_accepts_are_audited(&self, expected: &[(&str, u64, &str)]) {
        let audit = self.env.run(["audit", "show", "--json"]).json();
        let entries = audit.as_array().unwrap();
        let run = &self.run()["id"];
        let accepts: Vec<&Value> = entries.iter().filter(|entry| !entry["answering"].is_null()).collect();
        let told = |entry: &&Value| {
            let key = entry["answering"]["keys"].as_array().unwrap().iter().map(|key| key.as_str().unwrap().to_owned());
            (entry["role"].as_str().unwrap().to_owned(), entry["count"][0].as_u64().unwrap(), key.collect::<String>())
        };
        let told: Vec<(String, u64, String)> = accepts.iter().map(told).collect();
        let told: Vec<(&str, u64, &str)> =
            told.iter().map(|(role, n, key)| (role.as_str(), *n, key.as_str())).collect();
        assert_eq!(told, expected, "{audit:#}");
        for pair in accepts.windows(2).filter(|pair| pair[0]["terminal"] == pair[1]["terminal"]) {
            let at = |entry: &Value| entry["at"].as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
            let apart = at(pair[1]).duration_since(at(pair[0]));
            assert!(apart >= jiff::SignedDuration::from_secs(5), "the cooldown: {apart}");
        }
        for entry in accepts {
            let answering = &entry["answering"];
            assert_eq!((&entry["by"], &entry["run"]), (&json!("run"), run), "{entry:#}");
            assert_eq!(entry["count"][1], 20);
            assert_eq!(answering["dialog"]["kind"], "permission", "{entry:#}");
            assert!((1..=5).contains(&answering["tail"].as_array().unwrap().len()), "{entry:#}");
            let outcome = entries.iter().find(|other| other["outcome"]["of"] == entry["seq"]);
            assert_eq!(outcome.unwrap_or(&Value::Null)["outcome"]["end"], "answered", "{audit:#}");
        }
        let verdict = self.env.run(["audit", "verify", "--json"]).json();
        assert_eq!(verdict["intact"], true, "{verdict}");
        assert_eq!(verdict["entries"], 2 * expected.len(), "{verdict}");
    }
}

/// Prompts that the model has seen, in order, without the requests that brought tools' results.
fn prompts(log: &ModelLog) -> Vec<&str> {
    let is_prompt = |opened: &&ModelRequest| opened.tool_results.is_empty();
    log.turns().map(|(_, opened)| opened).filter(is_prompt).map(|opened| opened.user_text.as_str()).collect()
}

fn last_word() -> ScriptTurn {
    ScriptTurn::of([ScriptStep::say("My answer is in its file.")])
}

fn part(role: &str) -> &'static Part {
    PARTS.iter().find(|part| part.role == role).unwrap()
}

/// `posse loop`, while it runs.
struct Following<'a> {
    stage: &'a Stage,
    child: Child,
    said: PathBuf,
}

impl Following<'_> {
    fn said(&self) -> String {
        fs::read_to_string(&self.said).unwrap()
    }

    /// Everything there is to see when something went wrong.
    fn report(&self) -> String {
        let screens: String = PARTS
            .iter()
            .filter_map(|part| self.stage.run()["terminals"][part.role].as_str().map(str::to_owned))
            .map(|id| self.stage.env.run(["output", &id]).stdout)
            .collect();
        format!("posse loop said:\n{}\n{screens}\nthe model:\n{}", self.said(), self.stage.server.log())
    }

    /// Returns the exit code and all output.
    #[track_caller]
    fn end(&mut self) -> (Option<i32>, String) {
        assert!(process::ends_within(self.child.id(), PATIENCE), "it does not end; {}", self.report());
        (self.child.wait().unwrap().code(), self.said())
    }

    #[track_caller]
    fn passes(mut self) -> String {
        let (code, said) = self.end();
        assert_eq!(code, Some(0), "{}", self.report());
        assert!(said.contains("PASS in round 1"), "{said}");
        said
    }
}

impl Drop for Following<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Claude Code and Codex, each as author and as reviewer.
fn mixed(mode: &str) -> Value {
    let agent = |provider| json!({ "provider": provider, "mode": mode });
    json!({
        "analyst": agent("claude_code"), "peer_analyst": agent("codex"), "programmer": agent("codex"),
        "peer_programmer": agent("claude_code"), "tester": agent("claude_code"),
    })
}

/// The newest versions of both.
fn agents() -> Option<(Agent, Agent)> {
    Some((or_skip(Agent::installed(Maker::Claude, CLAUDE[1]))?, or_skip(Agent::installed(Maker::Codex, CODEX[1]))?))
}

/// Something to be asked about before the answer.
fn makes_greeting() -> ScriptTurn {
    ScriptTurn::of([ScriptStep::Run(CommandUse {
        command: "echo hello > greeting.txt".into(),
        escalated: true,
        ..CommandUse::default()
    })])
}

#[test]
#[ignore = "./test --full"]
fn with_auto_accept_every_dialog_is_accepted_and_audited_until_pass() {
    let Some((claude, codex)) = agents() else { return };
    let stage = Stage::open(&claude, &codex);
    stage.plays("analyst", By::Heredoc, []);
    stage.plays("peer_analyst", By::Heredoc, []);
    stage.plays("programmer", By::Tool, [makes_greeting()]);
    stage.plays("peer_programmer", By::Tool, []);
    stage.plays("tester", By::Heredoc, []);
    let said = stage.begin(&mixed("ask")).passes();
    stage.each_prompt_came_once(&["analyst", "peer_analyst", "programmer", "peer_programmer", "tester"]);
    stage.all_accepts_are_audited(&[
        ("analyst", 1, "1"),
        ("peer_analyst", 1, "y"),
        ("programmer", 1, "y"),
        ("programmer", 2, "y"),
        ("peer_programmer", 1, "1"),
        ("tester", 1, "1"),
    ]);
    assert_eq!(said.matches("accepting a permission").count(), 6, "{said}");
    assert_eq!(fs::read_to_string(stage.home.directory.join("greeting.txt")).unwrap(), "hello\n");
    let archive = PathBuf::from(stage.run()["files"].as_str().unwrap());
    for (part, number) in PARTS.iter().zip(1..) {
        let key = part.role.parse::<Role>().unwrap().key();
        let kept = fs::read_to_string(archive.join(format!("{number:03}-{key}.md"))).unwrap();
        assert_eq!(kept.trim_end(), part.answer);
    }
}

#[test]
#[ignore = "./test --full"]
fn a_killed_daemon_sends_nothing_twice_and_forgets_no_accept() {
    let Some((claude, codex)) = agents() else { return };
    let stage = Stage::open(&claude, &codex);
    for role in ["peer_analyst", "peer_programmer", "tester"] {
        stage.plays(role, By::Tool, []);
    }
    stage.plays_after("analysis", "analyst", By::Tool);
    stage.plays("programmer", By::Tool, [makes_greeting()]);
    let mut agents = mixed("edits");
    agents["programmer"]["mode"] = "ask".into();
    let run = stage.begin(&agents);
    // The agent works and finishes while no client is attached.
    stage.server.wait_for(|log| log.waits_at("analysis"), PATIENCE);
    stage.env.kill_daemon();
    stage.server.release("analysis");
    // The first question is accepted; the second one waits for the cooldown.
    let asked_twice =
        |log: &ModelLog| log.turns().filter(|(_, o)| o.user_text.contains(part("programmer").opening)).count() == 2;
    stage.server.wait_for(asked_twice, PATIENCE);
    stage.asks("programmer");
    stage.env.kill_daemon();
    run.passes();
    stage.each_prompt_came_once(&["analyst", "peer_analyst", "programmer", "peer_programmer", "tester"]);
    stage.all_accepts_are_audited(&[("programmer", 1, "y"), ("programmer", 2, "y")]);
}

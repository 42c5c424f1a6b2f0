//! The real agents in posse's terminals, talking to scripted models. What each test asserts is that the whole chain
//! works: install, home, start, prompt, answer, tool, error, end.
// In a test an unwrap is an assertion.
#![allow(clippy::unwrap_used)]

mod asking;
mod auto_run;
mod live;
mod loop_run;
mod plan_run;
mod providers;
mod seen;

use std::time::Duration;

use posse_sim::ModelServer;
use posse_sim::model::{ModelLog, RequestRole};
use posse_testkit::PATIENCE;
use posse_testkit::agents::{Agent, CLAUDE, CODEX, HomeOptions, Maker, OPENCODE, QWEN, or_skip};
use posse_testkit::watch::Watch;
use posse_testkit::{TestEnv, agents::AgentHome};

use seen::Looks;

/// An agent that took a key has run a small command and told the model well within this time.
const KEY_PATIENCE: Duration = Duration::from_secs(2);

struct Session<'a> {
    server: &'a ModelServer,
    watch: Watch<'a>,
    looks: &'a Looks,
}

impl<'a> Session<'a> {
    /// Starts the agent, and waits for its prompt.
    fn start(env: &'a TestEnv, home: &AgentHome, server: &'a ModelServer, looks: &'a Looks) -> Self {
        let mut watch = Watch::new(env, home.launch(env));
        watch.until("its prompt", PATIENCE, looks.ready);
        Self { server, watch, looks }
    }

    /// Sends a prompt: pasted, seen, submitted.
    #[track_caller]
    fn prompt(&mut self, text: &str) {
        let before = self.server.log().turns().count();
        self.watch.paste(text);
        self.watch.until("the pasted prompt", PATIENCE, |screen| screen.text().contains(text));
        self.watch.press("enter");
        self.server.wait_for(|log| log.turns().count() > before, PATIENCE);
    }

    #[track_caller]
    fn shows(&mut self, text: &str) {
        self.watch.until(text, PATIENCE, |screen| screen.text().contains(text));
    }

    /// Answers the dialog with its key. One that has just been drawn may ignore keys for a moment, so the key is
    /// pressed again as long as the dialog is there and the model has not heard of it.
    #[track_caller]
    fn allow(&mut self) {
        let Looks { dialog, allow, .. } = *self.looks;
        let before = self.server.log().turns().count();
        for _ in 0..20 {
            self.watch.until("a question", PATIENCE, dialog);
            self.watch.press(allow);
            if self.server.comes_within(KEY_PATIENCE, |log| log.turns().count() > before) {
                return;
            }
        }
        panic!("the dialog stays:\n{}", self.watch.screen().text());
    }
}

fn env() -> TestEnv {
    TestEnv::new(env!("CARGO_BIN_EXE_posse"))
}

/// Runs a command of posse in the agent's project. Returns its exit code and all it said.
fn posse(home: &AgentHome, env: &TestEnv, words: &[&str]) -> (Option<i32>, String) {
    let output = home.posse(env, words).output().unwrap();
    (output.status.code(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
}

fn answers_a_prompt(agent: &Agent, looks: &Looks) {
    let server = ModelServer::script(
        r#"
        [[turn]]
        steps = [{ think = { text = "A greeting." } }, { say = "Good morning" }, { wait_for = "sunrise" }, { say = " to everyone." }]
        "#,
    );
    let home = agent.home(&server, &HomeOptions::default());
    let env = env();
    let mut session = Session::start(&env, &home, &server, looks);
    session.prompt("say good morning");
    server.wait_for(|log| log.waits_at("sunrise"), PATIENCE);
    server.release("sunrise");
    session.shows("to everyone.");
    let log = server.wait_for(|log| log.ended(0), PATIENCE);
    assert_eq!(log.words(), ["opened", "first_byte", "waiting", "ended"], "{log}");
    assert_eq!(log.turns().next().unwrap().1.user_text, "say good morning", "{log}");
    assert_eq!(over_scripted(&log), 0, "nothing but the prompt is a turn: {log}");
}

fn asks_before_a_tool(agent: &Agent, looks: &Looks) {
    let server = ModelServer::script(
        r#"
        [[turn]]
        steps = [{ say = "I make the file." }, { run = { command = "echo made > made.txt && cat made.txt", escalated = true } }]
        [[turn]]
        steps = [{ say = "The file is there." }]
        "#,
    );
    let home = agent.home(&server, &HomeOptions::default());
    let env = env();
    let mut session = Session::start(&env, &home, &server, looks);
    session.prompt("make a file");
    session.allow();
    session.shows("The file is there.");
    let log = server.wait_for(|log| log.ended(1), PATIENCE);
    let [first, second] =
        [["opened", "first_byte", "tool_asked", "ended"].as_slice(), &["opened", "first_byte", "ended"]];
    assert_eq!(log.words(), [first, second].concat(), "{log}");
    let result = log.tool_results().next().unwrap();
    assert!(result.text.contains("made"), "{log}");
    assert_eq!(std::fs::read_to_string(home.directory.join("made.txt")).unwrap(), "made\n");
    assert_eq!(over_scripted(&log), 0, "{log}");
}

fn shows_a_refused_key(agent: &Agent, looks: &Looks) {
    let server = ModelServer::script("[[turn]]\nsteps = [{ fail = { status = 401 } }]");
    let home = agent.home(&server, &HomeOptions { retries: Some(1), ..HomeOptions::default() });
    let env = env();
    let mut session = Session::start(&env, &home, &server, looks);
    session.prompt("is my key good?");
    session.watch.until("an error", PATIENCE, looks.error);
    let log = server.log();
    assert!(log.words().chunks(2).all(|pair| pair == ["opened", "failed"]), "{log}");
    let attempts = log.turns().map(|(_, opened)| opened.role).enumerate();
    for (number, role) in attempts {
        assert_eq!(role, RequestRole::Turn { scenario: 0, turn: Some(0), attempt: number as u32 + 1 }, "{log}");
    }
}

/// What a test asked to be asked is on the screen, before any prompt and any request.
fn asks_at_the_start(agent: &Agent, looks: &Looks) {
    for (question, options) in (looks.questions)() {
        let server = ModelServer::start([]).unwrap();
        let home = agent.home(&server, &options);
        let env = env();
        let mut watch = Watch::new(&env, home.launch(&env));
        watch.until(question, PATIENCE, |screen| screen.text().contains(question));
        assert!(!(looks.ready)(&watch.screen()), "it takes no prompt yet");
        assert_eq!(server.log().turns().count(), 0);
    }
}

/// An overloaded server, then a stream that breaks off: the agent asks again and gets its answer.
fn asks_again_after_failures(agent: &Agent, looks: &Looks) {
    let server = ModelServer::script(
        r#"
        [[turn]]
        steps = [
          { fail = { status = 529, headers = { retry-after = "0" }, times = 1 } },
          { say = "Half an answ" }, { fail = { dropped = true, times = 2 } }, { say = "er and the rest." },
        ]
        "#,
    );
    let home = agent.home(&server, &HomeOptions::default());
    let env = env();
    let mut session = Session::start(&env, &home, &server, looks);
    session.prompt("try hard");
    session.shows("er and the rest.");
    let log = server.wait_for(|log| log.ended(0), PATIENCE);
    let expected = ["opened", "failed", "opened", "first_byte", "dropped", "opened", "first_byte", "ended"];
    assert_eq!(log.words(), expected, "{log}");
}

/// Turns that were asked for when there were none left.
fn over_scripted(log: &ModelLog) -> usize {
    log.turns().filter(|(_, opened)| matches!(opened.role, RequestRole::Turn { turn: None, .. })).count()
}

/// One module per agent and version, one test per claim; all of them unless some are named.
macro_rules! agent {
    ($name:ident, $install:expr, $looks:expr) => {
        agent!(
            $name,
            $install,
            $looks,
            [answers_a_prompt, asks_before_a_tool, shows_a_refused_key, asks_at_the_start, asks_again_after_failures]
        );
    };
    ($name:ident, $install:expr, $looks:expr, [$($claim:ident),+]) => {
        mod $name {
            use super::*;
            $(
                #[test]
                #[ignore = "./test --full"]
                fn $claim() {
                    if let Some(agent) = or_skip($install) {
                        super::$claim(&agent, &$looks);
                    }
                }
            )+
        }
    };
}

agent!(claude_2_1_197, Agent::installed(Maker::Claude, CLAUDE[0]), seen::CLAUDE);
agent!(claude_2_1_325, Agent::installed(Maker::Claude, CLAUDE[1]), seen::CLAUDE);
agent!(codex_0_145, Agent::installed(Maker::Codex, CODEX[0]), seen::CODEX);
agent!(codex_0_166, Agent::installed(Maker::Codex, CODEX[1]), seen::CODEX);
agent!(opencode, Agent::installed(Maker::Opencode, OPENCODE), seen::OPENCODE, [asks_before_a_tool]);
agent!(qwen, Agent::installed(Maker::Qwen, QWEN), seen::QWEN, [asks_before_a_tool]);

//! `posse provider check --live` with the real agents: it reports what fits and what does not, and leaves nothing behind.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use posse_testkit::TestEnv;
use posse_testkit::agents::{Agent, CLAUDE, CODEX, Maker, or_skip};
use posse_testkit::files::when;
use posse_testkit::process::{self, Process};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::env;

/// A user who has this agent, and no other, in their path.
struct User {
    env: TestEnv,
    programs: PathBuf,
}

impl User {
    fn with(agent: &Agent) -> Self {
        let env = env();
        std::fs::create_dir(env.work().join("tmp")).unwrap();
        let programs = agent.program().parent().unwrap().to_owned();
        Self { env, programs }
    }

    /// The directory for all temporary files of the check.
    fn temporary(&self) -> PathBuf {
        self.env.work().join("tmp")
    }

    fn check(&self, arguments: &[&str]) -> Command {
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = self.env.command(["provider", "check", "--live"].iter().chain(arguments));
        command.env("PATH", format!("{}:{path}", self.programs.display()));
        command.env("TMPDIR", self.temporary()).stdin(Stdio::null());
        command
    }

    /// Returns the exit code, and the report on the agent.
    fn report(&self, provider: &str) -> (Option<i32>, Value) {
        let output = self.check(&[provider, "--json"]).output().unwrap();
        let reports: Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
        (output.status.code(), reports[0].clone())
    }

    fn processes(&self) -> Vec<Process> {
        let ours = |process: &Process| {
            let home = process.variable("POSSE_AGENT_HOME").or_else(|| process.variable("POSSE_HOME"));
            home.is_some_and(|home| Path::new(&home).starts_with(self.temporary()))
        };
        process::all().into_iter().filter(ours).collect()
    }

    #[track_caller]
    fn nothing_is_left(&self) {
        let left: Vec<_> = std::fs::read_dir(self.temporary()).unwrap().collect();
        assert!(left.is_empty(), "{left:?}");
        let left = self.processes();
        assert!(left.is_empty(), "{left:?}");
    }
}

fn finding<'a>(report: &'a Value, conversation: &str) -> &'a Value {
    let findings = report["findings"].as_array().unwrap();
    findings.iter().find(|finding| finding["conversation"] == conversation).unwrap_or_else(|| panic!("{report:#}"))
}

#[test]
#[ignore = "./test --full"]
fn every_agent_fits() {
    for (maker, version, provider) in [
        (Maker::Claude, CLAUDE[1], "claude_code"),
        (Maker::Codex, CODEX[0], "codex"),
        (Maker::Codex, CODEX[1], "codex"),
    ] {
        let Some(agent) = or_skip(Agent::installed(maker, version)) else { continue };
        let user = User::with(&agent);
        let (code, report) = user.report(provider);
        assert_eq!(code, Some(0), "{report:#}");
        assert_eq!(report["version"], agent.version());
        let findings = report["findings"].as_array().unwrap();
        assert_eq!(findings.len(), 4, "{report:#}");
        assert!(findings.iter().all(|finding| finding["difference"].is_null()), "{report:#}");
        user.nothing_is_left();
    }
}

/// As if a new version drew its questions otherwise than our rules believe.
#[test]
#[ignore = "./test --full"]
fn a_rule_that_does_not_fit_is_named() {
    let Some(agent) = or_skip(Agent::installed(Maker::Claude, CLAUDE[1])) else { return };
    let user = User::with(&agent);
    let directory = user.env.paths().providers();
    std::fs::create_dir_all(&directory).unwrap();
    let broken = r#"
        [[screen.rule]]
        id = "dialog.permission"
        status = "nothing"
        when = ["no_composer", "menu"]
        region = "after:RULE"
        why = "Believed to be a menu that someone opened."
    "#;
    std::fs::write(directory.join("claude_code.toml"), broken).unwrap();
    let (code, report) = user.report("claude_code");
    assert_eq!(code, Some(1), "{report:#}");
    for conversation in ["permission", "denial"] {
        let asks = &finding(&report, conversation)["difference"];
        assert_eq!(asks["rule"], "dialog.permission", "{report:#}");
        assert!(asks["expected"].as_str().unwrap().contains("waiting_user_answer"), "{report:#}");
        assert!(asks["screen"].to_string().contains("Do you want to proceed?"), "{report:#}");
    }
    for conversation in ["answer", "failure"] {
        assert!(finding(&report, conversation)["difference"].is_null(), "{report:#}");
    }
    user.nothing_is_left();
}

#[test]
#[ignore = "./test --full"]
fn interrupted_it_clears_everything_away() {
    let Some(agent) = or_skip(Agent::installed(Maker::Claude, CLAUDE[1])) else { return };
    let user = User::with(&agent);
    let mut check = user.check(&["claude_code"]).stdout(Stdio::null()).spawn().unwrap();
    let is_agent = |process: &Process| process.variable("POSSE_AGENT_HOME").is_some();
    when("the start of the agent", || user.processes().iter().any(is_agent).then_some(()));
    let pid = Pid::from_child(&check);
    kill_process(pid, Signal::INT).unwrap();
    assert_eq!(check.wait().unwrap().code(), Some(130));
    user.nothing_is_left();
}

//! The loop as a whole: `posse loop` on real processes, with scripted agents in all five roles.

mod after;
mod bad_input;
mod crashes;
mod ends;
mod files;
mod going_on;
mod permissions;
mod rest;
mod resume;
mod signals;
mod window;

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use posse_testkit::PATIENCE;
use posse_testkit::TestEnv;
use posse_testkit::env::Ran;
use posse_testkit::files::{records, when};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::{contains, env};

const STATE: &str = ".tmp/agnostic-3agents-loop-state.json";
const TASK: &str = "For you.\n*** ORIGINAL EXPLORE SUMMARY ***\nA greeting.\n*** SCENARIO TEST ***\nGreet somebody.\n";
/// The turns of a run that passes in its first round.
const TURNS: [&str; 9] = [
    "analyst",
    "analyst_review",
    "analyst",
    "analyst_review",
    "programmer",
    "programmer_review",
    "programmer",
    "programmer_review",
    "tester",
];

/// A project, and agents that play their roles in it.
pub(crate) struct Play {
    pub(crate) env: TestEnv,
    log: PathBuf,
}

impl Play {
    /// Uses this scenario for all roles.
    pub(crate) fn new(scenario: &str) -> Self {
        let env = env();
        let log = env.script_agent("codex", &format!("look = \"codex\"\nplay = \"loop\"\n{scenario}"));
        fs::write(env.work().join("task.md"), TASK).unwrap();
        let play = Self { env, log };
        play.configure(json!({}));
        play
    }

    /// Plays some roles with the other agent, by this scenario.
    fn and_claude(self, scenario: &str) -> Self {
        self.env.script_agent("claude_code", &format!("look = \"claude\"\nplay = \"loop\"\n{scenario}"));
        self
    }

    /// With this configuration, and no long waiting.
    fn configure(&self, mut config: Value) {
        let handoff = config.as_object_mut().unwrap().entry("handoff").or_insert_with(|| json!({}));
        for (name, seconds) in [("idle_grace_seconds", 1), ("response_timeout", 60)] {
            handoff.as_object_mut().unwrap().entry(name).or_insert(json!(seconds));
        }
        fs::write(self.env.work().join("loop.json"), config.to_string()).unwrap();
    }

    fn command(&self, more: &[&str]) -> Command {
        let words = ["loop", "loop.json", "--prompt-file", "task.md", "--trust"];
        self.env.command(words.iter().chain(more))
    }

    /// Runs it to its end.
    #[track_caller]
    fn run(&self) -> Ran {
        self.begin().end()
    }

    /// Starts or resumes the run, and follows it.
    #[track_caller]
    fn begin(&self) -> Followed {
        Followed::new(self.command(&[]))
    }

    #[track_caller]
    fn resume(&self) -> Followed {
        Followed::new(self.env.command(["loop", "--resume"]))
    }

    /// Begins it with permissions accepted.
    #[track_caller]
    fn begin_accepting(&self) -> Followed {
        let mut command = self.command(&[]);
        command.env("AUTO_ACCEPT_PERMISSIONS", "1");
        Followed::new(command)
    }

    /// Follows the run from its current state, or gets its result.
    #[track_caller]
    fn follow(&self) -> Followed {
        Followed::new(self.env.command(["loop", "--resume", &self.id()]))
    }

    /// The one run there is, or the newest.
    #[track_caller]
    fn shown(&self) -> Value {
        let runs = self.env.run(["run", "ls", "--json"]).json();
        runs.get(0).cloned().unwrap_or_else(|| panic!("there is no run"))
    }

    pub(crate) fn id(&self) -> String {
        self.shown()["id"].as_str().unwrap().to_owned()
    }

    /// Returns the run's journal entries of this kind.
    fn journal(&self, kind: &str) -> Vec<Value> {
        let text = self.env.run(["run", "log", &self.id(), "--json"]).ok();
        let entries = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        entries.filter(|entry| entry["entry"] == kind).collect()
    }

    /// Returns the agents' records of this kind.
    fn records(&self, kind: &str) -> Vec<Value> {
        records(&self.log, kind)
    }

    /// Waits for as many of these.
    #[track_caller]
    fn until_recorded(&self, kind: &str, count: usize) -> Vec<Value> {
        let enough = || Some(self.records(kind)).filter(|records| records.len() >= count);
        when(&format!("{count} × {kind}"), enough)
    }

    /// Checks on every event of the daemon until the condition holds. Waits for the next daemon after a crash.
    #[track_caller]
    fn when_told<T>(&self, what: &str, look: impl Fn(&Value) -> Option<T>) -> T {
        let give_up = Instant::now() + PATIENCE;
        loop {
            self.env.run(["serve"]).ok();
            let Ok(mut events) = self.env.http().events(None) else { continue };
            loop {
                let terminals = self.env.run(["ls", "--json"]).json();
                if let Some(seen) = look(&terminals) {
                    return seen;
                }
                assert!(Instant::now() < give_up, "never came: {what}; there is {terminals:#}");
                if !matches!(events.next_event(), Ok(Some(_))) {
                    break;
                }
            }
        }
    }

    /// Waits until all terminals have ended, as many as there are.
    #[track_caller]
    fn until_all_have_left(&self, count: usize) {
        self.when_told("all have left", |terminals| {
            let terminals = terminals.as_array().unwrap();
            assert_eq!(terminals.len(), count);
            terminals.iter().all(|terminal| terminal["exit"] != Value::Null).then_some(())
        });
    }

    fn state(&self) -> Option<Value> {
        serde_json::from_str(&fs::read_to_string(self.env.work().join(STATE)).ok()?).ok()
    }

    fn response(&self, name: &str) -> PathBuf {
        self.env.work().join(".tmp/agent-responses").join(name)
    }

    /// The names in the archive of the run, sorted.
    fn archive(&self) -> Vec<String> {
        let entries = fs::read_dir(self.archive_folder()).unwrap();
        let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn archive_folder(&self) -> PathBuf {
        PathBuf::from(self.shown()["files"].as_str().unwrap())
    }

    /// No agent got the same prompt twice.
    #[track_caller]
    fn nothing_twice(&self) {
        let mut seen = std::collections::HashSet::new();
        for submitted in self.records("submitted") {
            let prompt = submitted["prompt"].as_str().unwrap();
            // Every agent is asked to leave in the same words.
            let is_new = prompt.starts_with('/') || seen.insert(prompt.to_owned());
            assert!(is_new, "a prompt came twice: {submitted}");
        }
    }

    /// It came to PASS, with everything where it belongs.
    #[track_caller]
    fn passed(&self) {
        let run = self.shown();
        assert_eq!((&run["status"], &run["phase"], &run["turn"]), (&json!("passed"), &json!("done"), &Value::Null));
        assert_eq!(self.state(), None, "the state file is in the archive");
        assert!(self.archive().contains(&STATE.rsplit('/').next().unwrap().to_owned()), "{:?}", self.archive());
        self.nothing_twice();
    }
}

/// `posse loop`, followed.
struct Followed {
    child: Child,
    lines: Receiver<String>,
    stdout: String,
    stderr: JoinHandle<String>,
}

impl Followed {
    #[track_caller]
    fn new(mut command: Command) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (out, mut err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        let (tell, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                let _ = tell.send(line);
            }
        });
        let stderr = std::thread::spawn(move || {
            let mut text = String::new();
            let _ = err.read_to_string(&mut text);
            text
        });
        Self { child, lines, stdout: String::new(), stderr }
    }

    /// Reads until these words appear.
    #[track_caller]
    fn until(&mut self, words: &str) {
        loop {
            let Ok(line) = self.lines.recv_timeout(PATIENCE) else { panic!("{words:?} never came: {}", self.stdout) };
            self.stdout.push_str(&format!("{line}\n"));
            if line.contains(words) {
                return;
            }
        }
    }

    /// Waits until it minds this signal.
    #[track_caller]
    fn minds(&self, signal: Signal) {
        when("a process that minds signals", || {
            let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).ok()?;
            let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"))?;
            let caught = u64::from_str_radix(caught.trim(), 16).ok()?;
            (caught >> (signal.as_raw() - 1) & 1 == 1).then_some(())
        });
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.child.id().try_into().unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    /// Reads until these words appear, then interrupts the command and waits for its end.
    #[track_caller]
    fn interrupted_at(mut self, words: &str) -> Ran {
        self.until(words);
        self.signal(Signal::INT);
        self.end().ends(130)
    }

    /// Waits for its end.
    #[track_caller]
    fn end(mut self) -> Ran {
        let give_up = Instant::now() + 2 * PATIENCE;
        while let Ok(line) = self.lines.recv_timeout(give_up.saturating_duration_since(Instant::now())) {
            self.stdout.push_str(&format!("{line}\n"));
        }
        assert!(Instant::now() < give_up, "it does not end: {}", self.stdout);
        let code = self.child.wait().unwrap().code();
        Ran { stdout: self.stdout, stderr: self.stderr.join().unwrap(), code }
    }
}

/// The first turn of a role, with these steps.
fn first_turn(key: &str, steps: &str) -> String {
    format!("[[turn]]\nkey = '{key}'\nnth = 1\nsteps = [{steps}]\n")
}

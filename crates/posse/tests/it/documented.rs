//! Runs every command in README.md and docs/, line by line, in a project and a home of its own. Agents are scripted
//! ones that look like the real ones; fences marked with `account` are only parsed (by the unit tests of the command
//! line). Ids are written `1a2b` in the documents, and filled in here.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use posse_core::screen::Size;
use posse_testkit::PATIENCE;
use posse_testkit::docs::{self, Typed};
use posse_testkit::files::when;
use posse_testkit::git::{commit_all, copy_example};
use posse_testkit::scripted_claude::ScriptedClaude;
use posse_testkit::seat::Seat;
use posse_testkit::{TestEnv, process};
use rustix::process::{Signal, kill_process};

use crate::cli::pid;
use crate::env;
use crate::steps::{DONE, ask, commit, either, end, reports};

/// Commands with an exit code other than 0, and why.
const OTHER_ENDS: &[(&str, &str, i32)] = &[
    ("docs/plans.md", "posse plan run plan.yaml", 7), // Task 2.1 asks.
    ("docs/plans.md", "posse run stop plan.yaml", 1), // It does not run any more.
    ("docs/backlog.md", "posse auto --item 03-export-is-empty", 7), // It is too vague.
];

/// An agent that asks before it acts.
const CLAUDE: &str = "look = \"claude\"\n[[turn]]\nsteps = [{ think = \"200ms\" }, \
    { ask = { kind = \"permission\", command = \"head README.md\", detail = \"Look at it\" } }, { say = \"A project.\" }]\n";
/// One that plays every role of the loop.
const CODEX: &str = "look = \"codex\"\nplay = \"loop\"\n";
/// The agent of docs/adding-an-agent.md: an input field, and nothing else.
const MOLE: &str =
    "#!/bin/sh\nprintf '────────\\n> \\n────────\\n  ready'\nprintf '\\033[2A\\r\\033[2C'\nexec cat >/dev/null\n";

struct Scene {
    file: &'static str,
    outside: PathBuf,
    /// Goes last: it ends all that runs.
    env: TestEnv,
}

impl Scene {
    fn new(file: &'static str) -> Self {
        let env = env();
        let outside = env.work().parent().unwrap().join("outside");
        fs::create_dir_all(outside.join("bin")).unwrap();
        let scene = Self { file, outside, env };
        scene.agents();
        scene.project();
        scene
    }

    /// Programs that are found first.
    fn program(&self, name: &str, script: &str) {
        let path = self.outside.join("bin").join(name);
        fs::write(&path, script).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn agents(&self) {
        let posse = self.env.posse_path();
        std::os::unix::fs::symlink(posse, self.outside.join("bin/posse")).unwrap();
        let plans = ScriptedClaude::install(&self.outside.join("plans"));
        // With the check that the sample asks for.
        plans.play(
            "1.1",
            commit("Makefile", "test: ; true")
                + &commit("hello.sh", "echo hello")
                + &reports("completed", "it says hello"),
        );
        plans.play("1.2", commit("hello.sh", "echo hello, $1") + &reports("completed", "it says whom"));
        plans.play("2.1", ask("Which colour?"));
        for (name, version, scenario) in
            [("claude", "2.1.325 (Claude Code)", CLAUDE), ("codex", "codex-cli 0.166.0", CODEX)]
        {
            let file = self.outside.join(format!("{name}.scenario"));
            fs::write(&file, scenario).unwrap();
            let headless = self.outside.join("plans/bin").join(name);
            let script = format!(
                "#!/bin/sh\nfor word in \"$@\"; do case $word in --version) echo '{version}'; exit;; --print) exec {headless:?} \"$@\";; esac; done\n\
                 exec {posse:?} actor {file:?} \"$@\"\n"
            );
            self.program(name, &script);
        }
        // A clone and a toolchain are not what is tried here: what they would run is.
        self.program(
            "cargo",
            "#!/bin/sh\ncase \"$*\" in\n'run --release -- demo') exec posse demo --fast;;\n\
             'install --path crates/posse') exit;;\nesac\necho \"cargo $*: no such command here\" >&2\nexit 99\n",
        );
    }

    /// Sets up the project that the documentation assumes.
    fn project(&self) {
        let work = self.env.work();
        fs::write(work.join("README.md"), "# A project\n").unwrap();
        commit_all(&work);
        match self.file {
            "docs/loop.md" => {
                fs::copy(docs::root().join("examples/loop/prompt.md"), work.join("task.md")).unwrap();
            }
            "docs/plans.md" => fs::write(work.join("plan.yaml"), PLAN).unwrap(),
            "docs/backlog.md" => self.backlog(),
            "docs/adding-an-agent.md" => self.mole(),
            _ => {}
        }
    }

    /// The example, and who works through it.
    fn backlog(&self) {
        copy_example(&self.env.work());
        assert!(self.env.shell("git add -A && git commit -q -m example").status().unwrap().success());
        let claude = ScriptedClaude::install(&self.outside.join("plans"));
        claude.play("plan", PLANNER);
        claude.play("verify", VERIFIER);
        // The second session checks the work of the first.
        let work = commit("work-{number}", "done") + DONE;
        let judge = end("[PASS] it is there\n**Verdict: PASS**");
        claude.play("1.1", either("[ $((number % 2)) = 1 ]", &work, &judge));
    }

    /// The agent that is taught there, by the very manifest that stands there.
    fn mole(&self) {
        let text = docs::text(self.file);
        let fences = text.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap());
        let providers = self.env.paths().providers();
        fs::create_dir_all(&providers).unwrap();
        fs::write(providers.join("mole.toml"), fences.collect::<String>()).unwrap();
        self.program("mole", MOLE);
        fs::write(self.env.work().join("asking.txt"), "Run it?\n────────\n❯ 1. Yes\n  2. No\n").unwrap();
        std::os::unix::fs::symlink(self.env.paths().recordings(), self.env.work().join("recordings")).unwrap();
        assert!(self.shell("posse launch --name mole -- mole").status().unwrap().success());
        // It is written when there is something in it.
        let recorded = || fs::read_dir(self.env.paths().recordings()).ok()?.flatten().next();
        when("the recording", recorded);
    }

    fn shell(&self, line: &str) -> Command {
        let mut command = self.env.shell(line);
        let path = std::env::var("PATH").unwrap();
        command.env("PATH", format!("{}:{path}", self.outside.join("bin").display())).stdin(Stdio::null());
        command.env("TMPDIR", &self.outside);
        command
    }

    /// The line with real ids in it.
    fn filled_in(&self, line: &str) -> String {
        let mut line = line.to_owned();
        if line.contains("1a2b") {
            let runs = self.env.run(["run", "ls", "--kind", "loop", "--json"]).json();
            line = line.replace("1a2b", &runs[0]["id"].as_str().expect("there is a run")[..4]);
        }
        if line.contains("recordings/ID.cast") {
            let mole = self.env.run(["show", "mole", "--json"]).json();
            line = line.replace("/ID.cast", &format!("/{}.cast", mole["id"].as_str().unwrap()));
        }
        line
    }

    fn play(&self) {
        let text = docs::text(self.file);
        for typed in docs::commands(self.file, &text).iter().filter(|typed| !typed.needs_account) {
            self.type_in(typed);
        }
    }

    #[track_caller]
    fn type_in(&self, typed: &Typed) {
        let line = self.filled_in(&typed.text);
        let place = format!("{}:{}: {}", self.file, typed.line, typed.text);
        if line == "./test" {
            return; // This very test is a part of it.
        }
        if typed.text.starts_with("posse run stop 1a2b") {
            // Do not stop a run before its first turn: there would be nothing to resume.
            let state = self.env.work().join(".tmp/agnostic-3agents-loop-state.json");
            when("the state file", || state.exists().then_some(()));
        }
        if line.starts_with("posse attach") {
            return self.attach(&line, &place);
        }
        // Commands that do not exit are interrupted, as users do.
        let follows = ["posse auto", "posse run follow"].contains(&line.as_str())
            || line.split(' ').any(|word| word == "-f" || word == "--follow");
        // A signal is for the command, not for the shell.
        let exec = if line.starts_with("posse ") { "exec " } else { "" };
        let mut command = self.shell(&format!("{exec}{line}"));
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (mut stdout, mut stderr) = (BufReader::new(child.stdout.take().unwrap()), child.stderr.take().unwrap());
        let errors = std::thread::spawn(move || {
            let mut said = String::new();
            stderr.read_to_string(&mut said).map(|_| said)
        });
        let mut shown = String::new();
        if follows {
            stdout.read_line(&mut shown).unwrap();
            assert!(!shown.is_empty(), "{place} shows nothing");
            if line == "posse auto" {
                self.is_through();
            }
            // It may be over already.
            let _ = kill_process(pid(&child), Signal::INT);
        }
        let rest = std::thread::spawn(move || stdout.read_to_string(&mut shown).map(|_| shown));
        assert!(process::ends_within(child.id(), PATIENCE), "{place} does not end");
        let code = child.wait().unwrap().code();
        let (shown, said) = (rest.join().unwrap().unwrap(), errors.join().unwrap().unwrap());
        let other = OTHER_ENDS.iter().find(|(file, line, _)| (*file, *line) == (self.file, &typed.text));
        let expected = other.map_or(0, |(_, _, code)| *code);
        let stopped = follows && code == Some(130);
        assert!(code == Some(expected) || stopped, "{place} ends with {code:?}\n{shown}\n{said}");
    }

    /// Waits until the backlog is empty, without stopping the run.
    fn is_through(&self) {
        let defects = self.env.work().join("docs/defect-backlog");
        let is_empty = || fs::read_dir(&defects).unwrap().next().is_none().then_some(());
        when("an empty backlog", is_empty);
    }

    /// In a window, which is left with Ctrl-].
    #[track_caller]
    fn attach(&self, line: &str, place: &str) {
        let mut command = self.shell(&format!("exec {line}"));
        command.env("TERM", "xterm-256color");
        let seat = Seat::new(&command, Size::clamped(24, 80));
        seat.until(|screen| !screen.text().trim().is_empty());
        seat.type_keys(b"\x1d");
        assert_eq!(seat.exit_code(), Some(0), "{place}");
    }
}

const PLAN: &str = "\
meta: {name: Colours, backoff_base: 1}
sections:
  - id: s
    tasks:
      - {id: '1.1', name: Say hello}
      - {id: '2.1', name: Paint it}
";

/// The planner reads its last argument: the paths of the design and the plan, and the criteria.
pub(crate) const PLANNER: &str = include_str!("scripts/example-planner.sh");
/// Reports every criterion as met.
const VERIFIER: &str = include_str!("scripts/example-verifier.sh");

/// One test for each document, and each document has one.
macro_rules! documents {
    ($($test:ident: $file:literal,)*) => {
        $(
            #[test]
            fn $test() {
                Scene::new($file).play();
            }
        )*
        const TESTED: &[&str] = &[$($file),*];
    };
}

documents! {
    the_readme: "README.md",
    adding_an_agent: "docs/adding-an-agent.md",
    agents: "docs/agents.md",
    backlog: "docs/backlog.md",
    configuration: "docs/configuration.md",
    quick_start: "docs/quick-start.md",
    the_loop: "docs/loop.md",
    permissions: "docs/permissions.md",
    plans: "docs/plans.md",
    troubleshooting: "docs/troubleshooting.md",
}

#[test]
fn every_document_with_commands_is_tested() {
    let has_commands =
        |(file, text): &(String, String)| docs::commands(file, text).iter().any(|typed| !typed.needs_account);
    let documents = docs::files();
    let documents: BTreeSet<&str> =
        documents.iter().filter(|one| has_commands(one)).map(|(file, _)| file.as_str()).collect();
    assert_eq!(documents, TESTED.iter().copied().collect());
}

/// A link that leads nowhere is no help.
#[test]
fn links_lead_somewhere() {
    let others = ["AGENTS.md", "CHANGELOG.md", "CONTRIBUTING.md"].map(|name| (name.to_owned(), docs::text(name)));
    for (file, text) in docs::files().into_iter().chain(others) {
        let root = docs::root();
        let directory = root.join(Path::new(&file).parent().unwrap());
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            if path.contains("://") {
                continue;
            }
            let target = if path.is_empty() { root.join(&file) } else { directory.join(path) };
            assert!(target.exists(), "{file} links to {link}, which is not there");
            if !anchor.is_empty() {
                let text = fs::read_to_string(&target).unwrap();
                let slug = |title: &str| -> String {
                    let kept = title
                        .to_lowercase()
                        .chars()
                        .filter(|c| c.is_alphanumeric() || " -_".contains(*c))
                        .collect::<String>();
                    kept.trim().replace(' ', "-")
                };
                let headings = text
                    .lines()
                    .filter_map(|line| line.strip_prefix('#'))
                    .map(|line| slug(line.trim_start_matches('#')));
                assert!(
                    headings.into_iter().any(|heading| heading == anchor),
                    "{file} links to {link}: no such heading"
                );
            }
        }
    }
}

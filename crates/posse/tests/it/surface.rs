//! Output of every command: with `--json` as in docs/reference/output.md, with `--quiet` only what was requested. Every
//! command is run both ways, on scenes in which it has output.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::{Child, Stdio};

use posse_testkit::TestEnv;
use posse_testkit::docs;
use posse_testkit::files::when;
use serde_json::Value;

use crate::agents::wait;
use crate::loop_run::Play;
use crate::plan_run::{self, ONE};
use crate::steps::{DONE, ask, commit, wait_for};
use crate::{auto_run, env, project};

/// The output of a command that remains with `--quiet`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Says {
    /// It was asked for something: that, and nothing about it.
    TheAnswer,
    /// It makes something that has a name: the names, a line each.
    TheNames,
    /// It works for a while: how it ended, in one line.
    TheEnd,
    /// It does something, or finds that all is well: nothing.
    Nothing,
}
use Says::{Nothing, TheAnswer, TheEnd, TheNames};

/// A command line, its output with `--quiet`, and its exit code.
type Row = (&'static str, Says, i32);

/// Commands that are not run, and why.
const NOT_WALKED: &[(&str, &str)] = &[("attach", "it is a window onto a terminal")];

const TERMINALS: &[Row] = &[
    ("launch --name here -- cat", TheNames, 0),
    ("ls", TheAnswer, 0),
    ("show here", TheAnswer, 0),
    ("send here hello", Nothing, 0),
    ("output here", TheAnswer, 0),
    ("tmux here", TheAnswer, 0),
    ("logs", TheAnswer, 0),
    ("approve agent", Nothing, 0),
    ("deny agent", Nothing, 0),
    ("answer agent --option 1", Nothing, 0),
    ("explain agent", TheAnswer, 0),
    ("audit show", TheAnswer, 0),
    ("audit verify", Nothing, 0),
    ("profile list", TheAnswer, 0),
    ("profile show tester", TheAnswer, 0),
    ("provider list", TheAnswer, 0),
    ("provider check", Nothing, 0),
    // In a home without agents there is always something to look at.
    ("doctor", TheAnswer, 0),
    ("config show", TheAnswer, 0),
    ("config default", TheAnswer, 0),
    ("config init", TheNames, 0),
    ("completions bash", TheAnswer, 0),
    ("completions zsh", TheAnswer, 0),
    ("completions fish", TheAnswer, 0),
    ("serve", Nothing, 0),
    ("exit here", Nothing, 0),
    ("wait here --until exited --timeout 20s", TheAnswer, 0),
    ("kill here", Nothing, 0),
    ("stop --all", Nothing, 0),
    ("demo --fast", TheEnd, 0),
];

const LOOP: &[Row] = &[
    ("loop --template", TheAnswer, 0),
    ("loop loop.json --prompt-file task.md --trust", TheEnd, 0),
    ("run ls", TheAnswer, 0),
    ("run show RUN", TheAnswer, 0),
    ("run log RUN", TheAnswer, 0),
    ("run resume RUN", TheEnd, 0),
    ("loop loop.json --prompt-file task.md --trust --detach", TheNames, 0),
    ("run stop RUN", Nothing, 0),
    ("run drop RUN", Nothing, 0),
];

const PLAN: &[Row] = &[
    ("plan check PLAN", Nothing, 0),
    ("plan status PLAN", TheAnswer, 0),
    ("run why PLAN t", TheAnswer, 0),
    ("plan run --dry-run PLAN", TheAnswer, 0),
    ("plan flags coder", TheAnswer, 0),
    ("plan config", TheAnswer, 0),
    ("plan trust PLAN", TheAnswer, 0),
    ("plan run PLAN", TheEnd, 7),
    ("run answer PLAN t blue", Nothing, 0),
    ("run stop PLAN --now", Nothing, 0),
    ("run retry PLAN t", Nothing, 0),
    ("plan run PLAN --detach", TheNames, 0),
    ("plan run PLAN", TheEnd, 0),
    ("run log PLAN", TheAnswer, 0),
    ("run log PLAN t", TheAnswer, 0),
    ("plan usage", TheAnswer, 0),
    ("plan clean", TheAnswer, 0),
    ("plan clean --yes", Nothing, 0),
    ("plan init sample.yaml", TheNames, 0),
];

const BACKLOG: &[Row] = &[
    ("auto items", TheAnswer, 0),
    ("run why . 1-bug", TheAnswer, 0),
    ("auto --dry-run", TheAnswer, 0),
    ("auto --once", TheEnd, 0),
    ("auto --drain --detach", TheNames, 0),
    ("run follow", TheEnd, 0),
    ("run show", TheAnswer, 0),
    ("run why . 1-bug", TheAnswer, 0),
    ("run log", TheAnswer, 0),
    ("run log . 1-bug", TheAnswer, 0),
    ("auto --detach", TheNames, 0),
    ("run retry . 9-held", Nothing, 0),
    ("run stop", Nothing, 0),
    ("auto new feature More", TheNames, 0),
    ("run answer . 3-asks blue", Nothing, 0),
];

/// Returns a command's words without its arguments.
fn leaf(line: &str) -> String {
    let words: Vec<&str> = line.split(' ').take_while(|word| !word.starts_with('-')).collect();
    let nouns = ["run", "plan", "auto", "audit", "profile", "provider", "config"];
    let count = if nouns.contains(&words[0]) { 2 } else { 1 };
    words[..count.min(words.len())].join(" ")
}

/// The row of docs/reference/output.md that is about a line. Some options make another answer.
fn row(line: &str) -> String {
    let other = ["--template", "--dry-run", "--detach"].into_iter().find(|flag| line.contains(flag));
    other.map_or_else(|| leaf(line), |flag| format!("{} {flag}", leaf(line)))
}

/// The output mode of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tone {
    Json,
    Quiet,
}

const TONES: [Tone; 2] = [Tone::Json, Tone::Quiet];

/// Types every line and looks at what is printed. `ready` brings the scene to where the line makes sense, and gives the words.
#[track_caller]
fn walk(tone: Tone, rows: &[Row], env: &TestEnv, path: &str, mut ready: impl FnMut(&str) -> Vec<String>) {
    let promised = promised();
    let mut wrong = Vec::new();
    let has_tmux = std::process::Command::new("tmux").arg("-V").output().is_ok();
    for &(line, says, code) in rows.iter().filter(|(line, ..)| has_tmux || leaf(line) != "tmux") {
        let flag = if tone == Tone::Json { "--json" } else { "--quiet" };
        let mut command = env.command([flag]);
        command.args(ready(line)).env("PATH", path).stdin(Stdio::null());
        // A private tmux server, which ends with its last window.
        let output = command.env("TMUX_TMPDIR", env.work()).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
        let printed = match tone {
            Tone::Json => as_promised(promised.get(&row(line)), &stdout),
            Tone::Quiet => as_quiet(says, &stdout),
        };
        let ended = output.status.code();
        let why = match printed {
            _ if ended != Some(code) => format!("it ended with {ended:?}"),
            Err(why) => why,
            Ok(()) if !stderr.is_empty() => "it talks".to_owned(),
            Ok(()) => continue,
        };
        wrong.push(format!("posse {flag} {line}: {why}\n{stdout}{stderr}"));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn as_quiet(says: Says, stdout: &str) -> Result<(), String> {
    let lines = stdout.lines().count();
    match says {
        TheAnswer if stdout.trim().is_empty() => Err("there is no answer".into()),
        TheNames if lines == 0 || stdout.lines().any(|line| line.contains(' ')) => Err("these are no names".into()),
        TheEnd if lines != 1 => Err("that is not one line".into()),
        Nothing if !stdout.is_empty() => Err("it says something".into()),
        _ => Ok(()),
    }
}

/// A command's entry in docs/reference/output.md: the form of its output, and its constant keys.
#[derive(Debug)]
struct Promise {
    form: String,
    keys: Vec<String>,
}

fn promised() -> BTreeMap<String, Promise> {
    let text = docs::text("docs/reference/output.md");
    let code = |cell: &str| -> Vec<String> { cell.split('`').skip(1).step_by(2).map(str::to_owned).collect() };
    let mut promised = BTreeMap::new();
    for line in text.lines().filter(|line| line.starts_with("| `posse ")) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        for command in code(cells[0]) {
            let command = command.strip_prefix("posse ").unwrap().to_owned();
            promised.insert(command, Promise { form: cells[1].to_owned(), keys: code(cells[2]) });
        }
    }
    promised
}

fn as_promised(promise: Option<&Promise>, stdout: &str) -> Result<(), String> {
    let promise = promise.ok_or("docs/reference/output.md has no row for it")?;
    let values: Vec<Value> = match promise.form.as_str() {
        "lines" => stdout.lines().map(serde_json::from_str).collect::<Result<_, _>>(),
        "a list" => serde_json::from_str(stdout),
        "an object" => serde_json::from_str(stdout).map(|value| vec![value]),
        form => return Err(format!("docs/reference/output.md knows no form {form:?}")),
    }
    .map_err(|error| format!("it is not {}: {error}", promise.form))?;
    // Lines are events; their common keys are listed above the table.
    let values = if promise.form == "lines" { &values[values.len().saturating_sub(1)..] } else { &values };
    if values.is_empty() {
        return Err("nothing is in it".into());
    }
    for value in values {
        let object = value.as_object().ok_or_else(|| format!("{value} is no object"))?;
        let missing: Vec<&String> = promise.keys.iter().filter(|key| !object.contains_key(*key)).collect();
        if !missing.is_empty() {
            return Err(format!("it has no {missing:?}; it has {:?}", object.keys().collect::<Vec<_>>()));
        }
    }
    Ok(())
}

/// The words of a line, with what it stands for in the place of a word.
fn words(line: &str, stands: &str, for_what: &str) -> Vec<String> {
    line.split(' ').map(|word| if word == stands { for_what } else { word }.to_owned()).collect()
}

fn own_path() -> String {
    std::env::var("PATH").unwrap()
}

#[test]
fn terminals_and_what_is_around_them() {
    for tone in TONES {
        let env = env();
        let asks = "look = \"claude\"\n[[turn]]\nsteps = [{ ask = { kind = \"permission\", command = \"ls\" } }]\n";
        env.script_agent("claude_code", asks);
        env.run(["launch", "claude_code", "--trust", "--name", "agent"]).ok();
        walk(tone, TERMINALS, &env, &own_path(), |line| {
            if matches!(leaf(line).as_str(), "approve" | "deny" | "answer") {
                env.run(["send", "agent", "go"]).ok();
                wait(&env, "agent", "waiting_user_answer");
            } else if line == "output here" {
                // `send` returns when the text is typed; `cat` prints it a moment later.
                when("the echo", || env.run(["output", "here"]).ok().contains("hello").then_some(()));
            }
            words(line, "", "")
        });
    }
}

#[test]
fn the_loop() {
    for tone in TONES {
        let play = Play::new("");
        let mut first = None;
        walk(tone, LOOP, &play.env, &own_path(), |line| {
            if line.ends_with("--detach") {
                let forever = "look = \"codex\"\nplay = \"loop\"\n[loop]\nthink = \"forever\"";
                play.env.script_agent("codex", forever);
            }
            let run = if line.contains("RUN") { play.id() } else { String::new() };
            if leaf(line) == "run show" {
                first = Some(run.clone());
            } else if leaf(line) == "run stop" {
                assert_ne!(first.as_ref(), Some(&run), "the second one is stopped");
            }
            words(line, "RUN", &run)
        });
    }
}

#[test]
fn plans() {
    for tone in TONES {
        let scene = plan_run::Scene::new(ONE);
        scene.claude.gate("gate");
        scene.claude.play("t.1", ask("Which colour?"));
        scene.claude.play("t.2", wait_for("gate"));
        scene.claude.play("t.3", wait_for("gate") + &commit("a", "alpha") + DONE);
        let mut stopped: Option<Child> = None;
        walk(tone, PLAN, &scene.env, &scene.claude.path(), |line| {
            match line {
                "run stop PLAN --now" => {
                    stopped = Some(scene.begin(&[]));
                    when("the session", || scene.claude.waits("t", 2).then_some(()));
                }
                "run retry PLAN t" => {
                    assert_eq!(project::ended(stopped.take().unwrap()).0, 3);
                }
                // The second time: a run that was begun without a follower.
                "plan run PLAN" if scene.claude.called("t", 2).is_some() => {
                    when("the session", || scene.claude.waits("t", 3).then_some(()));
                    scene.claude.open_gate("gate");
                }
                _ => {}
            }
            words(line, "PLAN", scene.plan.to_str().unwrap())
        });
    }
}

#[test]
fn backlogs() {
    for tone in TONES {
        let scene = auto_run::Scene::new(&["1-bug"]);
        scene.does("1-bug");
        walk(tone, BACKLOG, &scene.env, &scene.claude.path(), |line| {
            match line {
                "auto --drain --detach" => {
                    scene.claude.gate("gate");
                    scene.claude.play("plan", wait_for("gate") + auto_run::PLANNER);
                    scene.does("2-more");
                    scene.add("2-more");
                    scene.git(&["add", "-A"]);
                    scene.git(&["commit", "-q", "-m", "more"]);
                }
                // The next daemon needs a client with the environment, so the run cannot end before it is followed.
                "run follow" => {
                    when("the planner", || scene.claude.waits("plan", 2).then_some(()));
                    scene.env.kill_daemon();
                    scene.env.run(["serve"]).ok();
                    scene.claude.open_gate("gate");
                }
                "auto --detach" => {
                    let held = "---\ndepends_on: 8-nobody\n---\n# Held\n";
                    fs::write(scene.env.work().join("docs/feature-backlog/9-held.md"), held).unwrap();
                }
                // It has to look first.
                "run retry . 9-held" => scene.until_journaled(&scene.newest(), "scanned"),
                "run answer . 3-asks blue" => {
                    let asks = "# Asks\n\n## Status: Needs Clarification\n\n## Clarification\n\n**Question:** Which?\n\n**Answer:**\n";
                    fs::write(scene.env.work().join("docs/feature-backlog/3-asks.md"), asks).unwrap();
                }
                _ => {}
            }
            words(line, "", "")
        });
    }
}

/// The commands that `--help` lists.
fn listed(env: &TestEnv, path: &[&str]) -> Vec<String> {
    let help = env.run([path, &["--help"]].concat()).ok();
    let rows = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let names = rows.filter_map(|line| line.strip_prefix("  ").filter(|rest| !rest.starts_with(' ')));
    names.filter_map(|rest| rest.split(' ').next().map(str::to_owned)).filter(|name| name != "help").collect()
}

#[test]
fn every_command_is_walked_and_promised() {
    let env = env();
    let mut leaves = BTreeSet::new();
    for name in listed(&env, &[]) {
        let below = listed(&env, &[&name]);
        leaves.extend(below.iter().map(|leaf| format!("{name} {leaf}")));
        // `posse auto` does something, and has commands too.
        if below.is_empty() || name == "auto" {
            leaves.insert(name);
        }
    }
    assert!(leaves.len() > 40, "{leaves:?}");
    let rows = [TERMINALS, LOOP, PLAN, BACKLOG].concat();
    let walked: BTreeSet<String> = rows.iter().map(|(line, ..)| leaf(line)).collect();
    let reasoned: BTreeSet<String> = NOT_WALKED.iter().map(|(leaf, _)| (*leaf).to_owned()).collect();
    assert_eq!(walked.union(&reasoned).cloned().collect::<BTreeSet<_>>(), leaves);
    let promised: BTreeSet<String> = promised().into_keys().collect();
    let looked_at: BTreeSet<String> = rows.iter().map(|(line, ..)| row(line)).collect();
    assert_eq!(promised, looked_at, "docs/reference/output.md has a row for each, and for no other");
}

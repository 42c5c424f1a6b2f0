//! Overhead of a plan beyond git and its agents, with sessions that end at once in a repository of a hundred files.
//!
//! Git reports when each of its processes began and ended (trace2). The time to start a git process, and to start and
//! end the agent, is measured on the same machine at the same time, and subtracted too. The rest is posse's own time.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

use serde_json::Value;

use super::report::{BenchRow, Samples};
use super::{Bench, BenchError, missing};
use crate::git::commit_all;
use crate::{TestEnv, process};

/// Limit between two tasks, and for reading a plan of a thousand tasks. Milliseconds.
const BETWEEN: f64 = 50.0;
const CHECK: f64 = 100.0;
/// Maximum memory that a task leaves in the daemon: its record, a few times over. Kilobytes.
const PER_TASK: f64 = 10.0;

/// Writes its result, and records its start and end. The project does not grow with the tasks, because git's time for
/// more files is not measured.
const AGENT: &str = r#"#!/bin/sh
echo "begin $(date +%s%N) $POSSE_TASK_ID" >> '@LOG@'
printf '{"type":"system","subtype":"init","session_id":"s","model":"scripted","claude_code_version":"0.0.1"}\n'
echo "$POSSE_TASK_ID" > "work$(( ${POSSE_TASK_ID#t} % 50 ))"
printf '{"task_id": "%s", "nonce": "%s", "status": "completed", "message": "done"}' "$POSSE_TASK_ID" "$POSSE_RUN_ID" > "$POSSE_RESULT_FILE"
printf '{"type":"result","subtype":"success","is_error":false,"num_turns":1,"result":"done","total_cost_usd":0.01,"usage":{"input_tokens":10,"output_tokens":5},"permission_denials":[]}\n'
echo "end $(date +%s%N) $POSSE_TASK_ID" >> '@LOG@'
"#;

pub(super) fn measure(bench: &Bench) -> Result<Vec<BenchRow>, BenchError> {
    let mut rows = many(bench)?;
    rows.push(check(bench)?);
    Ok(rows)
}

pub(super) struct PlanBench {
    pub(super) env: TestEnv,
    bin: PathBuf,
    log: PathBuf,
    trace: PathBuf,
    plan: PathBuf,
}

impl PlanBench {
    pub(super) fn open(bench: &Bench, tasks: usize) -> Result<Self, BenchError> {
        let env = TestEnv::new(&bench.posse);
        let home = env.work().join("..").canonicalize()?;
        let [bin, log, trace, plan] = ["bin", "agent.log", "git.trace", "plan.yaml"].map(|name| home.join(name));
        let agent = bin.join("claude");
        fs::create_dir(&bin)?;
        fs::write(&agent, AGENT.replace("@LOG@", &log.to_string_lossy()))?;
        fs::set_permissions(&agent, fs::Permissions::from_mode(0o755))?;
        fs::write(home.join(".gitconfig"), format!("[trace2]\n\teventTarget = {}\n", trace.display()))?;
        fs::write(&plan, plan_text(tasks))?;
        for i in 0..100 {
            fs::write(env.work().join(format!("file{i}")), format!("{i}\n").repeat(50))?;
        }
        commit_all(&env.work());
        Ok(Self { env, bin, log, trace, plan })
    }

    pub(super) fn run_command(&self) -> Command {
        let mut command = self.env.command(["plan", "run"]);
        let path = format!("{}:{}", self.bin.display(), std::env::var("PATH").unwrap_or_default());
        command.arg(&self.plan).env("PATH", path).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    fn run(&self) -> Result<(), BenchError> {
        let ended = self.run_command().stderr(Stdio::piped()).output()?;
        let failed = || format!("the plan failed: {}", String::from_utf8_lossy(&ended.stderr));
        Ok(ended.status.success().then_some(()).ok_or_else(failed)?)
    }

    /// Returns the start and end of each session in milliseconds.
    fn sessions(&self) -> Vec<(f64, f64)> {
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        spans(log.lines().filter_map(|line| {
            let mut words = line.split(' ');
            let (what, at, task) = (words.next()?, words.next()?, words.next()?);
            Some((task.to_owned(), what == "begin", at.parse::<f64>().ok()? / 1e6))
        }))
    }

    /// Returns the start and end of each git process that no other git process started.
    fn gits(&self) -> Vec<(f64, f64)> {
        let trace = fs::read_to_string(&self.trace).unwrap_or_default();
        spans(trace.lines().filter_map(|line| {
            let line: Value = serde_json::from_str(line).ok()?;
            let sid = line["sid"].as_str().filter(|sid| !sid.contains('/'))?;
            let (at, age) = (moment(line["time"].as_str()?)?, line["t_abs"].as_f64()?);
            match line["event"].as_str()? {
                "start" => Some((sid.to_owned(), true, at - age * 1e3)),
                "atexit" => Some((sid.to_owned(), false, at)),
                _ => None,
            }
        }))
    }

    /// Measures the time to start and end git beyond its own report, and to start and end the agent.
    fn beside(&self) -> Result<(f64, f64), BenchError> {
        let home = self.env.work().join("..");
        let mut git = Command::new("git");
        git.args(["rev-parse", "HEAD"]).current_dir(self.env.work()).env("HOME", &home);
        let mut agent = Command::new(self.bin.join("claude"));
        let results = self.log.with_extension("result");
        agent.env("POSSE_TASK_ID", "t0").env("POSSE_RUN_ID", "r").env("POSSE_RESULT_FILE", &results).current_dir(&home);
        Ok((overhead(git, || self.gits())?, overhead(agent, || self.sessions())?))
    }

    /// Returns the gaps between two sessions: the total, git's part, and the rest without git and the agent.
    fn gaps(&self, tasks: usize) -> Result<Vec<Gap>, BenchError> {
        let (sessions, gits) = (self.sessions(), self.gits());
        if sessions.len() < tasks {
            return Err(missing("sessions of a plan", sessions.len(), tasks));
        }
        let (start_git, agent) = self.beside()?;
        let gaps = sessions.windows(2).map(|two| {
            let (from, to) = (two[0].1, two[1].0);
            let (mut git, mut commands, mut until) = (0.0, 0, from);
            for (begun, ended) in gits.iter().filter(|(begun, ended)| *begun < to && *ended > from) {
                git += (ended.min(to) - begun.max(until)).max(0.0);
                until = until.max(*ended);
                commands += 1;
            }
            let git = git + f64::from(commands) * start_git;
            Gap { all: to - from, git, commands, agent, ours: (to - from - git - agent).max(0.0) }
        });
        Ok(gaps.collect())
    }
}

/// Returns pairs of a start and an end with the same name, in the order of their starts.
fn spans(events: impl Iterator<Item = (String, bool, f64)>) -> Vec<(f64, f64)> {
    let (mut begun, mut spans) = (BTreeMap::new(), Vec::new());
    for (name, begins, at) in events {
        if begins {
            begun.insert(name, at);
        } else {
            spans.extend(begun.remove(&name).map(|begun| (begun, at)));
        }
    }
    spans.sort_by(|(a, _), (b, _): &(f64, f64)| a.total_cmp(b));
    spans
}

/// Returns the milliseconds of a command beyond its own report: each run adds to `spans`.
fn overhead(mut command: Command, spans: impl Fn() -> Vec<(f64, f64)>) -> Result<f64, BenchError> {
    let (before, mut walls) = (spans().len(), Vec::new());
    command.stdin(Stdio::null()).stdout(Stdio::null());
    for _ in 0..30 {
        let start = Instant::now();
        command.status()?;
        walls.push(start.elapsed().as_secs_f64() * 1e3);
    }
    let inside = spans().iter().skip(before).map(|(begun, ended)| ended - begun).collect();
    Ok((median(walls) - median(inside)).max(0.0))
}

struct Gap {
    all: f64,
    git: f64,
    commands: u32,
    agent: f64,
    ours: f64,
}

fn moment(time: &str) -> Option<f64> {
    let time: jiff::Timestamp = time.parse().ok()?;
    Some(time.as_microsecond() as f64 / 1e3)
}

fn median(values: Vec<f64>) -> f64 {
    Samples::new(values).median()
}

/// Returns a plan with tasks in a row.
fn plan_text(tasks: usize) -> String {
    let mut text = String::from("meta:\n  name: bench\nsections:\n");
    for i in 0..tasks {
        if i % 20 == 0 {
            text.push_str(&format!("  - id: s{}\n    tasks:\n", i / 20));
        }
        let need = if i == 0 { String::new() } else { format!("t{}", i - 1) };
        text.push_str(&format!(
            "      - id: t{i}\n        name: Task number {i}  # a comment\n        description: |\n          Do what has to be done in crates/a{i}/src/lib.rs.\n          Then look whether it is done.\n        depends_on: [{need}]\n        agent: coder\n"
        ));
    }
    text
}

type Part = fn(&Gap) -> f64;

fn between(gaps: &[Gap]) -> Vec<BenchRow> {
    let commands = median(gaps.iter().map(|gap| f64::from(gap.commands)).collect());
    let parts: [(&str, Part, Option<f64>); 4] = [
        ("all of it", |gap| gap.all, None),
        ("git", |gap| gap.git, None),
        ("starting and ending the agent", |gap| gap.agent, None),
        ("beyond git and the agent", |gap| gap.ours, Some(BETWEEN)),
    ];
    let rows = parts.into_iter().map(|(what, of, limit)| {
        let name = format!("from the end of a session of a plan to the next: {what}");
        let values = gaps.iter().map(of).collect();
        let row = BenchRow::samples(name, "ms", values, &[("p50", limit), ("p99", limit)]);
        if what == "git" { row.note(format!("{commands} commands")) } else { row }
    });
    rows.collect()
}

fn check(bench: &Bench) -> Result<BenchRow, BenchError> {
    let stage = PlanBench::open(bench, 1000)?;
    let times = bench.time(|| {
        let mut command = stage.env.command(["plan", "check"]);
        command.arg(&stage.plan).stdout(Stdio::null()).status()?;
        Ok(())
    })?;
    let figures = [("p50", Some(CHECK)), ("p99", Some(CHECK))];
    Ok(BenchRow::samples("posse plan check, 1000 tasks", "ms", times, &figures))
}

/// Checks that a plan of many tasks costs no more at its end than at its beginning.
fn many(bench: &Bench) -> Result<Vec<BenchRow>, BenchError> {
    let (tasks, few) = bench.choose((60, 20), (1000, 100));
    bench.go_on()?;
    let stage = PlanBench::open(bench, tasks)?;
    stage.env.run(["serve"]).ok();
    let daemon = stage.env.daemon_pid();
    let mut events = stage.env.http().events(None)?;
    let listener = std::thread::spawn(move || {
        let (mut merged, mut at) = (0, Vec::new());
        while let Ok(Some(event)) = events.next_event() {
            if event["data"]["event"].get("merge_ended").is_some() {
                merged += 1;
                if [few, tasks - few, tasks].contains(&merged) {
                    at.push((process::memory(daemon)?, process::effort(daemon)?.0 as f64 * 10.0));
                }
                if merged == tasks {
                    break;
                }
            }
        }
        Some(at)
    });
    let before = process::effort(daemon).map_or(0.0, |(ticks, _)| ticks as f64 * 10.0);
    stage.run()?;
    let gaps = stage.gaps(tasks)?;
    let at = listener.join().ok().flatten().unwrap_or_default();
    let [(at_few, cpu_few), (_, cpu_late), (at_end, cpu_end)] = at[..] else {
        return Err(missing("looks at the daemon", at.len(), 3));
    };
    let grown = (at_end as f64 - at_few as f64) / (tasks - few) as f64;
    let each = |from: f64, to: f64| (to - from) / few as f64;
    let name = format!("a plan of {tasks} tasks");
    let ours = |gaps: &[Gap]| median(gaps.iter().map(|gap| gap.ours).collect());
    let mut rows = between(&gaps);
    rows.extend([
        BenchRow::new(format!("{name}: beyond git and the agent between two tasks, p50"), "ms")
            .figure_within("at the beginning", ours(&gaps[..few]), BETWEEN)
            .figure_within("at the end", ours(&gaps[gaps.len() - few..]), BETWEEN),
        BenchRow::new(format!("{name}: processor time of the daemon for one task"), "ms")
            .figure("at the beginning", each(before, cpu_few))
            .figure("at the end", each(cpu_late, cpu_end)),
        BenchRow::new(format!("{name}: memory of the daemon"), "MB")
            .figure("at the beginning", at_few as f64 / 1e6)
            .figure("at the end", at_end as f64 / 1e6)
            .note(format!("after {few} tasks and after all")),
        BenchRow::new(format!("{name}: memory per task"), "kB").figure_within("", grown / 1e3, PER_TASK),
    ]);
    Ok(rows)
}

//! What a plan takes beyond git and its agents: sessions that are over at once, in a repository of a hundred files.
//!
//! Git says itself when each of its processes began and ended (trace2). What it takes to start one, and to start and end the
//! agent, is measured beside it on the same machine at the same time, and taken off too. What is left is ours.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use serde_json::Value;

use super::report::BenchRow;
use super::stats::Samples;
use super::{Bench, BenchError, missing};
use crate::{TestEnv, process};

/// The limit between two tasks, and for a look at a plan of a thousand tasks. Milliseconds.
const BETWEEN: f64 = 50.0;
const CHECK: f64 = 100.0;
/// What may stay of a task in the daemon's memory: its record, a few times over. Kilobytes.
const PER_TASK: f64 = 10.0;

/// Does what it has to, and notes when it began and ended. The project does not grow with the tasks: what git takes for more
/// files is not the question.
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
    rows.extend(check(bench)?);
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
        let home = env.work().join("..");
        let home = home.canonicalize()?;
        let (bin, log, trace, plan) =
            (home.join("bin"), home.join("agent.log"), home.join("git.trace"), home.join("plan.yaml"));
        let config = format!(
            "[user]\n\tname = U\n\temail = u@example.org\n[init]\n\tdefaultBranch = main\n[trace2]\n\teventTarget = {}\n",
            trace.display()
        );
        let written = || -> std::io::Result<()> {
            fs::create_dir(&bin)?;
            fs::write(bin.join("claude"), AGENT.replace("@LOG@", &log.to_string_lossy()))?;
            fs::set_permissions(bin.join("claude"), fs::Permissions::from_mode(0o755))?;
            fs::write(home.join(".gitconfig"), config)?;
            fs::write(&plan, plan_text(tasks))?;
            for i in 0..100 {
                fs::write(env.work().join(format!("file{i}")), format!("{i}\n").repeat(50))?;
            }
            Ok(())
        };
        written()?;
        let stage = Self { env, bin, log, trace, plan };
        for arguments in [&["init", "-q"][..], &["add", "."], &["commit", "-q", "-m", "first"]] {
            stage.git(arguments)?;
        }
        fs::remove_file(&stage.trace)?;
        Ok(stage)
    }

    fn git(&self, arguments: &[&str]) -> Result<(), BenchError> {
        let mut command = Command::new("git");
        command
            .args(arguments)
            .current_dir(self.env.work())
            .env("HOME", self.env.work().join(".."))
            .stdout(Stdio::null());
        let status = command.status()?;
        let failed = || missing("commands of git", 0, 1);
        status.success().then_some(()).ok_or_else(failed)
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

    /// When each session began and when it ended, in the order of the log. Milliseconds.
    fn sessions(&self) -> Vec<(f64, f64)> {
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        let mut begun: BTreeMap<&str, f64> = BTreeMap::new();
        let mut sessions = Vec::new();
        for line in log.lines() {
            let mut words = line.split(' ');
            let (Some(what), Some(at), Some(task)) = (words.next(), words.next(), words.next()) else { continue };
            let at = at.parse::<f64>().unwrap_or(f64::NAN) / 1e6;
            match what {
                "begin" => drop(begun.insert(task, at)),
                _ => sessions.extend(begun.get(task).map(|begun| (*begun, at))),
            }
        }
        sessions
    }

    /// From when to when each git ran that nobody but us has started.
    fn gits(&self) -> Vec<(f64, f64)> {
        let trace = fs::read_to_string(&self.trace).unwrap_or_default();
        let mut begun: BTreeMap<String, f64> = BTreeMap::new();
        let mut gits = Vec::new();
        for line in trace.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
            let sid = line["sid"].as_str().unwrap_or_default();
            let (Some(at), Some(age)) = (line["time"].as_str().and_then(moment), line["t_abs"].as_f64()) else {
                continue;
            };
            match line["event"].as_str() {
                _ if sid.contains('/') => {}
                Some("start") => drop(begun.insert(sid.to_owned(), at - age * 1e3)),
                Some("atexit") => gits.extend(begun.remove(sid).map(|begun| (begun, at))),
                _ => {}
            }
        }
        gits.sort_by(|a, b| a.0.total_cmp(&b.0));
        gits
    }

    /// What it takes to start and end a git, beyond what git says of itself; and to start and end the agent.
    fn beside(&self) -> Result<(f64, f64), BenchError> {
        let before = self.gits().len();
        let mut walls = Vec::new();
        for _ in 0..30 {
            let start = Instant::now();
            self.git(&["rev-parse", "HEAD"])?;
            walls.push(start.elapsed().as_secs_f64() * 1e3);
        }
        let inside: Vec<f64> = self.gits().iter().skip(before).map(|(begun, ended)| ended - begun).collect();
        let git = median(walls) - median(inside);
        let (sessions, results) = (self.sessions().len(), self.log.with_extension("result"));
        let mut walls = Vec::new();
        for _ in 0..30 {
            let start = now();
            let mut agent = Command::new(self.bin.join("claude"));
            agent.env("POSSE_TASK_ID", "t0").env("POSSE_RUN_ID", "r").env("POSSE_RESULT_FILE", &results);
            agent.current_dir(self.env.work().join("..")).stdin(Stdio::null()).stdout(Stdio::null());
            agent.status()?;
            walls.push(now() - start);
        }
        let inside: Vec<f64> = self.sessions().iter().skip(sessions).map(|(begun, ended)| ended - begun).collect();
        Ok((git.max(0.0), (median(walls) - median(inside)).max(0.0)))
    }

    /// What lies between two sessions: all of it, git in it, and what is left without git and the agent.
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

struct Gap {
    all: f64,
    git: f64,
    commands: u32,
    agent: f64,
    ours: f64,
}

/// Milliseconds of the wall clock, which git and the agent go by.
fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |now| now.as_secs_f64() * 1e3)
}

fn moment(time: &str) -> Option<f64> {
    let time: jiff::Timestamp = time.parse().ok()?;
    Some(time.as_microsecond() as f64 / 1e3)
}

fn median(values: Vec<f64>) -> f64 {
    Samples::new(values).map_or(f64::NAN, |samples| samples.median())
}

/// Tasks in a row, as people write them.
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

/// Milliseconds of the time between two sessions.
type Part = fn(&Gap) -> f64;

fn between(gaps: &[Gap]) -> Vec<BenchRow> {
    let commands = median(gaps.iter().map(|gap| f64::from(gap.commands)).collect());
    let parts: [(&str, Part, Option<f64>); 4] = [
        ("all of it", |gap| gap.all, None),
        ("git", |gap| gap.git, None),
        ("starting and ending the agent", |gap| gap.agent, None),
        ("beyond git and the agent", |gap| gap.ours, Some(BETWEEN)),
    ];
    let rows = parts.into_iter().filter_map(|(what, of, limit)| {
        let name = format!("from the end of a session of a plan to the next: {what}");
        let row = BenchRow::percentiles(name, "ms", gaps.iter().map(of).collect(), limit)?;
        Some(if what == "git" { row.note(format!("{commands} commands")) } else { row })
    });
    rows.collect()
}

fn check(bench: &Bench) -> Result<Option<BenchRow>, BenchError> {
    let stage = PlanBench::open(bench, 1000)?;
    let times = bench.time(|| {
        let mut command = stage.env.command(["plan", "check"]);
        command.arg(&stage.plan).stdout(Stdio::null()).status()?;
        Ok(())
    })?;
    Ok(BenchRow::percentiles("posse plan check, 1000 tasks", "ms", times, Some(CHECK)))
}

/// A plan of many tasks must cost no more at its end than at its beginning.
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

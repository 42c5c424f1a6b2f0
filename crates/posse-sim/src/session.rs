//! A scripted session without a terminal: plays a scenario as `claude --print` does, for plans and the backlog.
//!
//! The home of the sessions has their scenarios (`play/TASK.NUMBER.toml`, or `play/TASK.toml` for all other sessions of a
//! task), their calls (`sessions/TASK.NUMBER`) and the gates, which are named pipes.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use posse_core::placeholders::fill;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::scenario::{
    FileWrite, Scenario, ScenarioPlayer, ScriptStep, SessionReport, SessionResult, Thought, ToolUse,
};

#[derive(Debug, Serialize, Deserialize)]
pub struct SessionCall {
    pub arguments: Vec<String>,
    pub directory: String,
    pub environment: BTreeMap<String, String>,
    /// The target of the standard input.
    pub stdin: String,
    /// What the session read from there.
    pub prompt: String,
}

/// Plays the session that the environment names, on the standard streams of this process. Returns the exit status.
///
/// # Errors
/// If the call cannot be recorded, or the scenario cannot be played.
pub fn run(home: &Path, arguments: &[String]) -> io::Result<u8> {
    let task = variable("POSSE_TASK_ID");
    let (number, directory) = claim(&home.join("sessions"), &task)?;
    let mut prompt = Vec::new();
    io::stdin().read_to_end(&mut prompt)?;
    let lossy = |text: std::ffi::OsString| text.to_string_lossy().into_owned();
    let call = SessionCall {
        arguments: arguments.to_vec(),
        directory: lossy(std::env::current_dir()?.into()),
        environment: std::env::vars_os().map(|(name, value)| (lossy(name), lossy(value))).collect(),
        stdin: lossy(fs::read_link("/proc/self/fd/0")?.into()),
        prompt: String::from_utf8_lossy(&prompt).into_owned(),
    };
    let written = directory.join("call.new");
    fs::write(&written, serde_json::to_string(&call)?)?;
    fs::rename(&written, directory.join("call"))?;

    let names = [format!("{task}.{number}.toml"), format!("{task}.toml")];
    let play = names.iter().find_map(|name| fs::read_to_string(home.join("play").join(name)).ok());
    let scenario = Scenario::parse(&play.unwrap_or_default()).map_err(io::Error::other)?;
    scenario.check_for(ScenarioPlayer::Session).map_err(io::Error::other)?;
    let steps = scenario.turn_for(&call.prompt, None, Some(number), 0).map(|turn| turn.steps.clone());
    let mut session = ScriptedSession {
        home,
        directory,
        task,
        number,
        output: String::new(),
        tools: 0,
        denials: Vec::new(),
        result: SessionResult::default(),
    };
    session.play(&steps.unwrap_or_default())
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}

fn claim(sessions: &Path, task: &str) -> io::Result<(u32, PathBuf)> {
    let mut number = 1;
    loop {
        let directory = sessions.join(format!("{task}.{number}"));
        match fs::create_dir(&directory) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
            made => return made.map(|()| (number, directory)),
        }
    }
}

fn print(line: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(line.as_bytes()).and_then(|()| out.flush())
}

fn emit(event: &Value) -> io::Result<()> {
    print(&format!("{event}\n"))
}

struct ScriptedSession<'a> {
    home: &'a Path,
    directory: PathBuf,
    task: String,
    number: u32,
    output: String,
    tools: u32,
    denials: Vec<Value>,
    result: SessionResult,
}

impl ScriptedSession<'_> {
    fn play(&mut self, steps: &[ScriptStep]) -> io::Result<u8> {
        emit(&json!({
            "type": "system", "subtype": "init", "session_id": "s", "model": "scripted", "claude_code_version": "0.0.1",
        }))?;
        for step in steps {
            match step {
                ScriptStep::Exit(code) => return Ok(*code),
                ScriptStep::Fail(failure) => {
                    let limit = failure.object(json!({ "status": "rejected", "rateLimitType": "five_hour" }));
                    emit(&json!({ "type": "rate_limit_event", "rate_limit_info": limit }))?;
                    self.result = SessionResult { error: true, code: 1, ..SessionResult::default() };
                    break;
                }
                step => self.step(step)?,
            }
        }
        let SessionResult { text, cost, turns, error, code } = &self.result;
        emit(&json!({
            "type": "result", "subtype": "success", "is_error": error, "num_turns": turns, "result": self.fill(text),
            "total_cost_usd": cost, "usage": usage(), "duration_ms": 1500, "permission_denials": self.denials,
        }))?;
        Ok(*code)
    }

    fn step(&mut self, step: &ScriptStep) -> io::Result<()> {
        match step {
            ScriptStep::Say(said) => {
                let content = json!([{ "type": "text", "text": self.fill(&said.text) }]);
                let id = format!("m{}", std::process::id());
                emit(&json!({ "type": "assistant", "message": { "id": id, "content": content, "usage": usage() } }))
            }
            ScriptStep::Think(Thought { time, .. }) | ScriptStep::Pause(time) => {
                std::thread::sleep(*time);
                Ok(())
            }
            ScriptStep::Tool(tool) => self.tool(tool),
            ScriptStep::Run(run) => {
                let mut shell = Command::new("sh");
                // Opened again, so that each command reads the prompt from its beginning.
                let prompt = File::open("/proc/self/fd/0")?;
                shell.args(["-c", &run.command]).stdin(prompt).stderr(Stdio::inherit());
                shell.env("session", &self.directory).env("number", self.number.to_string());
                self.output = String::from_utf8_lossy(&shell.output()?.stdout).trim_end().to_owned();
                Ok(())
            }
            ScriptStep::Write(file) => self.write(file),
            ScriptStep::Print(text) => print(text),
            ScriptStep::WaitFor(gate) => {
                fs::write(self.directory.join("awaits"), "")?;
                BufReader::new(File::open(self.home.join(gate))?).read_line(&mut String::new()).map(drop)
            }
            ScriptStep::Report(SessionReport { status, message, fields }) => {
                let nonce = variable("POSSE_RUN_ID");
                let mut report = json!({ "task_id": self.task, "nonce": nonce, "status": status, "message": message });
                for (name, value) in fields {
                    report[name] = value.clone();
                }
                fs::write(variable("POSSE_RESULT_FILE"), report.to_string())
            }
            ScriptStep::Result(result) => {
                self.result = result.clone();
                Ok(())
            }
            // `play` handles the first two, and `Scenario::check_for` rejects the others for a session.
            ScriptStep::Exit(_)
            | ScriptStep::Fail(_)
            | ScriptStep::Ask(_)
            | ScriptStep::Answer(_)
            | ScriptStep::Crash(_) => Ok(()),
        }
    }

    fn tool(&mut self, tool: &ToolUse) -> io::Result<()> {
        self.tools += 1;
        let ToolUse { name, input, .. } = tool;
        let id = format!("t{}", self.tools);
        let call = json!([{ "type": "tool_use", "id": id, "name": name, "input": input }]);
        emit(&json!({ "type": "assistant", "message": { "id": id, "content": call } }))?;
        let usual = if tool.refused { "it is outside of the allowed directories" } else { "done" };
        let output = tool.output.as_deref().unwrap_or(usual);
        let result = json!([{ "type": "tool_result", "tool_use_id": id, "is_error": tool.refused, "content": output }]);
        emit(&json!({ "type": "user", "message": { "content": result } }))?;
        if tool.refused {
            self.denials.push(json!({ "tool_name": name, "tool_use_id": id, "tool_input": input }));
        }
        Ok(())
    }

    fn write(&self, file: &FileWrite) -> io::Result<()> {
        let path = self.fill(&file.path);
        fs::write(&path, self.fill(&file.text))?;
        if file.commit {
            Command::new("git").args(["add", "--", &path]).status()?;
            let who = ["-c", "user.name=a", "-c", "user.email=a@b"];
            let message = format!("change {path}");
            Command::new("git").args(who).args(["commit", "-q", "-m", &message, "--", &path]).status()?;
        }
        Ok(())
    }

    fn fill(&self, text: &str) -> String {
        fill(text, |name| match name {
            "number" => Some(self.number.to_string()),
            "nonce" => Some(variable("POSSE_RUN_ID")),
            "output" => Some(self.output.clone()),
            _ => None,
        })
    }
}

fn usage() -> Value {
    json!({ "input_tokens": 10, "output_tokens": 5 })
}

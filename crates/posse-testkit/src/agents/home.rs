//! A home of an agent in a test: how the agent is started in it, and what of it still runs.

use std::ffi::OsString;
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};

use posse_core::ids::TerminalId;
use posse_sim::ModelServer;
use posse_sim::home::{HomeOptions, MARK, Maker, ScriptedHome};

use crate::env::{self, Ran};
use crate::{TestEnv, process};

/// A home for one agent, or for several. It and the processes in it are gone when this value is.
pub struct AgentHome {
    home: ScriptedHome,
    /// Where their programs are.
    programs: Vec<PathBuf>,
}

impl Deref for AgentHome {
    type Target = ScriptedHome;
    fn deref(&self) -> &ScriptedHome {
        &self.home
    }
}

impl DerefMut for AgentHome {
    fn deref_mut(&mut self) -> &mut ScriptedHome {
        &mut self.home
    }
}

impl AgentHome {
    pub(super) fn new(home: ScriptedHome, program: &Path) -> Self {
        Self { home, programs: vec![program.to_owned()] }
    }

    #[track_caller]
    pub(super) fn add(
        &mut self,
        maker: Maker,
        version: &str,
        program: &Path,
        server: &ModelServer,
        options: &HomeOptions,
    ) {
        let moved_in = maker.move_in(&mut self.home, version, server, options);
        moved_in.unwrap_or_else(|error| panic!("no room for another agent: {error}"));
        self.programs.push(program.to_owned());
    }

    /// A `PATH` in which the programs are found before any others.
    pub fn path(&self) -> OsString {
        let usual = std::env::var_os("PATH").unwrap_or_default();
        let ours = self.programs.iter().filter_map(|program| program.parent()).map(Path::to_owned);
        let all = ours.chain(std::env::split_paths(&usual));
        std::env::join_paths(all).unwrap_or_else(|error| panic!("no path: {error}"))
    }

    /// Starts the agent in a terminal of posse.
    #[track_caller]
    pub fn launch(&self, env: &TestEnv) -> TerminalId {
        let mut arguments = vec!["launch".to_owned(), "--size".into(), "120x40".into()];
        arguments.extend(["--directory".into(), self.directory.display().to_string()]);
        for (name, value) in &self.env {
            arguments.extend(["--env".into(), format!("{name}={value}")]);
        }
        arguments.push("--".into());
        arguments.extend(self.command.iter().cloned());
        let id = env.run(arguments).ok();
        id.trim().parse().unwrap_or_else(|error| panic!("no id: {error}"))
    }

    /// Starts the agent the way people do: by its provider, which finds it in the path.
    #[track_caller]
    pub fn launch_as(&self, env: &TestEnv, provider: &str, more: &[&str]) -> serde_json::Value {
        self.start_as(env, provider, &[&["--size", "120x40"], more].concat()).json()
    }

    /// The same, in a size given with the other arguments, whether or not it starts.
    pub fn start_as(&self, env: &TestEnv, provider: &str, more: &[&str]) -> Ran {
        if !more.contains(&"--trust") && !more.contains(&"--yolo") {
            return self.start_untrusted(env, provider, more);
        }
        let mut arguments = vec!["launch".to_owned(), provider.into(), "--json".into()];
        arguments.extend(["--directory".into(), self.directory.display().to_string()]);
        arguments.extend(["--env".into(), format!("PATH={}", self.path().display())]);
        for (name, value) in &self.env {
            arguments.extend(["--env".into(), format!("{name}={value}")]);
        }
        arguments.extend(more.iter().map(|&argument| argument.to_owned()));
        env.run(arguments)
    }

    /// The same over HTTP: `posse launch` refuses to start an agent that asks for trust when nobody can answer.
    fn start_untrusted(&self, env: &TestEnv, provider: &str, more: &[&str]) -> Ran {
        env.run(["ls"]).ok();
        let options = more.split(|argument| *argument == "--").next().unwrap_or_default();
        let command = more.get(options.len() + 1..).unwrap_or_default();
        let mut body = serde_json::json!({
            "provider": provider, "working_directory": self.directory, "command": command, "wait": true,
        });
        for pair in options.chunks(2) {
            let [name, value] = pair else { panic!("{more:?} has an option without a value") };
            let value = match *name {
                "--size" => {
                    let (cols, rows) = value.split_once('x').unwrap_or_else(|| panic!("no size: {value}"));
                    serde_json::json!({ "rows": rows.parse::<u16>().ok(), "cols": cols.parse::<u16>().ok() })
                }
                _ => (*value).into(),
            };
            body[name.trim_start_matches('-')] = value;
        }
        let mut environment = serde_json::Map::new();
        for (name, value) in [("TZ", "UTC"), ("LANG", "C.UTF-8")] {
            environment.insert(name.into(), value.into());
        }
        environment.insert("HOME".into(), env.work().to_string_lossy().into());
        environment.insert("POSSE_HOME".into(), env.paths().home.to_string_lossy().into());
        environment.insert("PATH".into(), self.path().to_string_lossy().into());
        environment.extend(self.env.iter().map(|(name, value)| (name.clone(), value.clone().into())));
        body["environment"] = environment.into();
        let answer = env.http().post("/terminals", &body).unwrap_or_else(|error| panic!("no daemon: {error}"));
        let made = answer.status == 201;
        let (stdout, stderr) = if made { (answer.body, String::new()) } else { (String::new(), answer.body) };
        Ran { stdout, stderr, code: Some(i32::from(!made)) }
    }

    /// Every process that was started from here and still runs.
    pub fn processes(&self) -> Vec<process::Process> {
        let root = self.home.root().to_str();
        process::all().into_iter().filter(|process| process.variable(MARK).as_deref() == root).collect()
    }
}

impl Drop for AgentHome {
    fn drop(&mut self) {
        // Posse ends what it started, and TestEnv insists on that. This is for tests that failed in between, and for
        // processes that must be gone before their directory is.
        for process in self.processes() {
            env::kill(process.pid);
            process::ends(process.pid);
        }
    }
}

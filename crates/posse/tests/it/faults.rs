//! A faulty machine: the error, its delay, and what posse leaves alone.

use std::fs::File;
use std::path::Path;

use posse_core::ids::TerminalId;
use posse_testkit::TestEnv;
use posse_testkit::env::Ran;
use rustix::process::{Pid, Signal, kill_process};

use crate::{contains, env, text_when};

/// Checks that a command refuses a pipe and a huge file at `path`. A command that waits or reads on runs into the test's limit.
fn refuses_special_files(env: &TestEnv, path: &Path, arguments: &[&str]) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    for (is_pipe, says) in [(true, "it is a named pipe, not a file"), (false, "it is larger than 8 MiB")] {
        if is_pipe {
            let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
            rustix::fs::mkfifoat(rustix::fs::CWD, path, mode).unwrap();
        } else {
            // Sparse: it takes no room on the disk.
            File::create(path).unwrap().set_len(1 << 40).unwrap();
        }
        let ran = env.run(arguments);
        assert_ne!(ran.code, Some(0), "{arguments:?}: {ran:#?}");
        contains(&(ran.stdout + &ran.stderr), &[says, &path.file_name().unwrap().to_string_lossy()]);
        std::fs::remove_file(path).unwrap();
    }
}

#[test]
fn special_files_are_refused_at_once_wherever_text_is_read() {
    let env = env();
    let work = env.work();
    let config = env.paths().config.join("config.toml");
    refuses_special_files(&env, &config, &["config", "show"]);
    refuses_special_files(&env, &config, &["plan", "config"]);
    refuses_special_files(&env, &work.join(".posse/config.toml"), &["plan", "config"]);
    refuses_special_files(&env, &work.join("plan.yaml"), &["plan", "check", "plan.yaml"]);
    refuses_special_files(&env, &work.join("plan.yaml"), &["plan", "run", "plan.yaml"]);
    refuses_special_files(&env, &work.join("run.json"), &["loop", "run.json"]);
    refuses_special_files(&env, &work.join("prompt.md"), &["loop", "--prompt-file", "prompt.md"]);
    refuses_special_files(&env, &env.paths().providers().join("mine.toml"), &["provider", "check", "mine"]);
    refuses_special_files(&env, &env.paths().profiles().join("mine.md"), &["profile", "show", "mine"]);
}

/// A keeper that is stopped by a signal as long as this value lives.
struct StoppedKeeper(Pid);

impl StoppedKeeper {
    fn stop(env: &TestEnv) -> Self {
        let pid = Pid::from_raw(env.keeper_pid().expect("a keeper").try_into().unwrap()).unwrap();
        kill_process(pid, Signal::STOP).unwrap();
        Self(pid)
    }

    /// Checks that a command fails because of the keeper, and names it.
    #[track_caller]
    fn fails(&self, ran: &Ran) {
        assert_eq!(ran.code, Some(1), "{ran:#?}");
        assert!(ran.stderr.contains("keeper"), "{ran:#?}");
    }

    /// The command that continues it.
    fn advice(&self) -> String {
        format!("kill -CONT {}", self.0.as_raw_nonzero())
    }
}

impl Drop for StoppedKeeper {
    fn drop(&mut self) {
        kill_process(self.0, Signal::CONT).unwrap();
    }
}

fn running(env: &TestEnv) -> Vec<TerminalId> {
    let listed = env.run(["ls", "--json"]).json();
    let running = listed.as_array().unwrap().iter().filter(|terminal| terminal["status"] != "error");
    running.map(|terminal| terminal["id"].as_str().unwrap().parse().unwrap()).collect()
}

#[test]
fn what_a_stopped_keeper_did_not_do_is_an_error_and_is_not_done_later() {
    let env = env();
    let typed_to = env.launch(&["cat"]);
    let others = [env.launch(&["sleep", "1000"]), env.launch(&["sleep", "1000"])].map(|id| id.to_string());
    let typed_to_name = typed_to.to_string();
    let before = running(&env);
    let keeper = StoppedKeeper::stop(&env);
    env.run(["doctor", "--quiet"]).ends(1).prints(&[&keeper.advice()]);
    env.run(["ls"]).ends(0).complains(&[&keeper.advice()]);
    let commands: [&[&str]; 5] = [
        &["launch", "--", "touch", "started-late"],
        &["send", &typed_to_name, "typed late"],
        &["send", &typed_to_name, "--key", "ctrl-c"],
        &["kill", &others[0]],
        &["exit", &others[1]],
    ];
    std::thread::scope(|scope| {
        let env = &env;
        let runs = commands.map(|command| scope.spawn(move || env.run(command)));
        runs.into_iter().for_each(|run| keeper.fails(&run.join().unwrap()));
    });
    // By now the failure is known, and reported at once.
    keeper.fails(&env.run(["launch", "--", "touch", "started-late"]));
    keeper.fails(&env.run(["stop", "--all"]));
    let message = serde_json::json!({ "message": "typed late" });
    let answer = env.http().post(&format!("/terminals/{typed_to}/input"), &message).unwrap();
    assert_eq!((answer.status, &answer.json()["kind"]), (503, &"keeper_silent".into()), "{answer:?}");

    drop(keeper);
    env.run(["send", &typed_to_name, "typed in time"]).ok();
    let text = text_when(&env, typed_to, |text| text.contains("typed in time"));
    assert!(!text.contains("late"), "{text}");
    assert!(!env.work().join("started-late").exists());
    assert_eq!(running(&env), before);
}

/// The keeper is stopped when the agent runs already, so the spawn itself was answered. Nothing but a probe finds out: the
/// agent's own start limit is an hour.
#[test]
fn launch_fails_when_the_keeper_is_stopped_while_the_agent_starts() {
    let env = env();
    env.run(["ls"]).ok();
    let directory = env.paths().providers();
    std::fs::create_dir_all(&directory).unwrap();
    let manifest = "[launch]\nprogram = 'sleep'\nalways = { arguments = ['1000'] }\n\
        modes = { ask = { arguments = [] }, edits = { arguments = [] } }\nhooks = { events = [], arguments = [] }\n\
        trusted = { arguments = [] }\n[start]\ntimeout_ms = 3_600_000\n";
    std::fs::write(directory.join("claude_code.toml"), manifest).unwrap();
    let mut events = env.http().events(None).unwrap();
    let keeper = std::thread::scope(|scope| {
        let launch = scope.spawn(|| env.run(["launch", "claude_code", "--trust", "--name", "a"]));
        events.until(|event| event["kind"] == "terminal_started");
        let keeper = StoppedKeeper::stop(&env);
        let ran = launch.join().unwrap();
        keeper.fails(&ran);
        assert!(ran.stderr.contains("it was started, but is not ready yet"), "{ran:#?}");
        assert!(ran.stderr.contains(&keeper.advice()), "{ran:#?}");
        keeper
    });
    drop(keeper);
    let shown = env.run(["show", "a", "--json"]).json();
    assert_eq!(shown["status"], "processing", "it is there, as the message says: {shown:#}");
}

#[test]
fn stop_ends_the_daemon_of_a_stopped_keeper_but_no_terminal() {
    let env = env();
    let id = env.launch(&["sleep", "1000"]);
    let keeper = StoppedKeeper::stop(&env);
    keeper.fails(&env.run(["stop", "--all"]));
    assert_eq!(running(&env), [id], "the daemon goes on");
    let stopped = env.run(["stop"]);
    keeper.fails(&stopped);
    assert!(stopped.stderr.contains("the daemon has stopped") && stopped.stderr.contains(&keeper.advice()));
    // Without a daemon there is only the keeper to ask.
    std::thread::scope(|scope| {
        let env = &env;
        let commands: [&[&str]; 3] = [&["ls"], &["stop", "--all"], &["serve"]];
        for run in commands.map(|command| scope.spawn(move || env.run(command))) {
            let ran = run.join().unwrap();
            keeper.fails(&ran);
            assert!(ran.stderr.contains(&keeper.advice()), "{ran:#?}");
        }
    });
    drop(keeper);
    assert_eq!(running(&env), [id]);
    env.run(["stop", "--all"]).ok();
    assert!(env.processes().is_empty());
}

/// Damages the database of a daemon that has stopped. Gives its bytes.
fn damage_database(env: &TestEnv, damage: impl Fn(&Path)) -> Vec<u8> {
    env.run(["stop"]).ok();
    damage(&env.paths().database());
    std::fs::read(env.paths().database()).unwrap()
}

fn garbage(path: &Path) {
    std::fs::write(path, "this was a database").unwrap();
}

fn half_of_it(path: &Path) {
    let length = std::fs::metadata(path).unwrap().len();
    File::options().write(true).open(path).unwrap().set_len(length / 2).unwrap();
}

#[test]
fn a_damaged_database_is_named_and_set_aside_and_terminals_go_on() {
    let env = env();
    let id = env.launch(&["cat"]);
    for damage in [garbage, half_of_it] {
        let bytes = damage_database(&env, damage);
        for command in [["ls"].as_slice(), &["launch", "--", "true"], &["serve"]] {
            let ran = env.run(command);
            assert_eq!(ran.code, Some(1), "{command:?}: {ran:#?}");
            assert!(ran.stderr.contains("is damaged") && ran.stderr.contains("posse doctor --repair"), "{ran:#?}");
        }
        env.run(["doctor", "--quiet"]).ends(1).prints(&["posse doctor --repair"]);

        env.run(["doctor", "--repair", "--quiet"]);
        let aside = std::fs::read_dir(&env.paths().home).unwrap().flatten().map(|entry| entry.path());
        let aside = aside.filter(|path| path.to_string_lossy().contains("posse.db.damaged-"));
        assert!(aside.into_iter().any(|path| std::fs::read(path).unwrap() == bytes), "it is kept as it was");
        assert_eq!(running(&env), [id]);
        env.run(["send", &id.to_string(), "still here"]).ok();
        text_when(&env, id, |text| text.contains("still here"));
    }
    env.run(["doctor", "--repair"]).complains(&["nothing to repair"]);
}

#[test]
fn stop_all_ends_every_program_although_the_database_is_damaged() {
    let env = env();
    env.launch(&["cat"]);
    env.launch(&["sh", "-c", "trap '' TERM HUP; sleep 1000"]);
    damage_database(&env, garbage);
    let stopped = env.run(["stop", "--all"]).complains(&["is damaged"]);
    assert!(stopped.ok().contains("terminals ended: 2"));
    assert!(env.processes().is_empty(), "{:#?}", env.processes());
}

//! First steps on a machine: the version, the doctor, the configuration.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use posse_core::screen::Size;
use posse_testkit::TestEnv;
use posse_testkit::seat::Seat;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::env;

/// The doctor's word on something.
#[track_caller]
fn about(report: &Value, what: &str) -> (String, String) {
    let lines = report["lines"].as_array().unwrap();
    let line = lines.iter().find(|line| line["what"].as_str().unwrap().ends_with(what));
    let line = line.unwrap_or_else(|| panic!("nothing about {what}: {report:#}"));
    let advice = line["advice"].as_str().unwrap_or_default();
    (line["verdict"].as_str().unwrap().to_owned(), format!("{} {advice}", line["says"].as_str().unwrap()))
}

fn doctor(env: &TestEnv) -> (Option<i32>, Value) {
    let ran = env.run(["doctor", "--json"]);
    (ran.code, serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {ran:#?}")))
}

#[test]
fn the_doctor_starts_nothing_and_finds_what_is_wrong() {
    let env = env();
    let (code, report) = doctor(&env);
    assert_eq!(code, Some(0), "{report:#}");
    assert!(!env.paths().runtime.exists() && env.processes().is_empty(), "nothing was started or made");
    assert_eq!(about(&report, "daemon").0, "ok");
    assert_eq!(about(&report, "/home"), ("ok".into(), "yours alone ".into()));

    env.run(["ls"]).ok();
    let pid = env.daemon_pid();
    let (_, report) = doctor(&env);
    assert!(about(&report, "daemon").1.contains(&format!("process {pid}")), "{report:#}");
    assert!(about(&report, "keeper").1.contains(&format!("process {}", env.keeper_pid().unwrap())), "{report:#}");

    let process = Pid::from_raw(pid as i32).unwrap();
    kill_process(process, Signal::STOP).unwrap();
    let (code, report) = doctor(&env);
    kill_process(process, Signal::CONT).unwrap();
    let (verdict, words) = about(&report, "daemon");
    assert_eq!((code, verdict.as_str()), (Some(1), "bad"));
    assert!(words.contains("does not answer") && words.contains(&format!("kill {pid}")), "{words}");
    env.run(["stop", "--all"]).ok();

    fs::set_permissions(&env.paths().home, fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(env.paths().config.join("config.toml"), "[permision]\n").unwrap();
    let (code, report) = doctor(&env);
    fs::set_permissions(&env.paths().home, fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!((code, &report["verdict"]), (Some(1), &"bad".into()));
    assert!(about(&report, "/home").1.contains("chmod 700"), "{report:#}");
    assert!(about(&report, "config.toml").1.contains("did you mean `permissions`?"), "{report:#}");
    let quiet = env.run(["doctor", "--quiet"]);
    assert!(quiet.stdout.contains("bad ") && !quiet.stdout.contains("ok  "), "{quiet:#?}");
}

/// Opening the file would block forever: it is a pipe without a writer.
#[test]
fn of_an_account_only_signs_are_looked_for() {
    let env = env();
    let bin = env.work().join("bin");
    fs::create_dir(&bin).unwrap();
    let codex = bin.join("codex");
    fs::write(&codex, "#!/bin/sh\necho codex-cli 0.999.0\n").unwrap();
    fs::set_permissions(&codex, fs::Permissions::from_mode(0o755)).unwrap();
    let home = env.work().join("user");
    fs::create_dir_all(home.join(".codex")).unwrap();
    let (owner, auth) = (rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR, home.join(".codex/auth.json"));
    let look = |key: &str| {
        let mut command = env.command(["doctor", "--json"]);
        command.env("PATH", format!("{}:/usr/bin:/bin", bin.display())).env("HOME", &home).env("OPENAI_API_KEY", key);
        let output = command.stdin(Stdio::null()).output().unwrap();
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    let report = look("");
    assert_eq!(about(&report, "codex").0, "warn");
    assert!(about(&report, "codex").1.contains("0.999.0 is new to posse"), "{report:#}");
    let (verdict, words) = about(&report, "codex account");
    assert!(verdict == "warn" && words.contains("unknown") && words.contains("codex login"), "{words}");

    assert!(about(&look("sk-secret"), "codex account").1.contains("a key is set: OPENAI_API_KEY"));
    assert!(!look("sk-secret").to_string().contains("sk-secret"));
    rustix::fs::mknodat(rustix::fs::CWD, &auth, rustix::fs::FileType::Fifo, owner, 0).unwrap();
    let (verdict, words) = about(&look(""), "codex account");
    assert!(verdict == "ok" && words.contains(auth.to_str().unwrap()), "{words}");
}

#[test]
fn the_configuration_says_where_it_comes_from() {
    let env = env();
    let setting = |key: &str, variables: &[(&str, &str)]| {
        let mut command = env.command(["config", "show", "--json"]);
        command.envs(variables.iter().copied());
        let output = command.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        let settings = answer["settings"].as_array().unwrap();
        let found = settings.iter().find(|setting| setting["key"] == key).unwrap();
        (found["value"].clone(), found["origin"].clone())
    };
    assert_eq!(setting("loop.mode", &[]), ("edits".into(), "default".into()));
    let path = env.run(["config", "init"]).ok();
    assert_eq!(fs::metadata(path.trim()).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(setting("loop.mode", &[]), ("edits".into(), "default".into()), "nothing is said yet");
    assert_eq!(env.run(["config", "init"]).code, Some(1), "and it is not written over");

    fs::write(path.trim(), "# mine\nloop.provider = 'claude_code'\n").unwrap();
    assert_eq!(setting("loop.provider", &[]), ("claude_code".into(), serde_json::json!({ "user": 2 })));
    let variable = serde_json::json!({ "variable": "POSSE_PROVIDER" });
    assert_eq!(setting("loop.provider", &[("POSSE_PROVIDER", "codex")]), ("codex".into(), variable));
    let shown = env.run(["config", "show"]).ok();
    assert!(shown.contains(path.trim()) && shown.contains("default"), "{shown}");
    assert!(env.run(["config", "default"]).ok().contains("\n#mode = \"edits\"\n"));
}

#[test]
fn nobody_gets_colours_who_does_not_want_them() {
    let env = env();
    env.run(["launch", "--name", "here", "--", "sleep", "1000"]).ok();
    // The bytes a window gets until it shows this.
    let shown = |no_color: &str, line: &str, until: &str| {
        let mut command = env.command(line.split(' '));
        command.env("NO_COLOR", no_color).env("TERM", "xterm-256color");
        let seat = Seat::new(&command, Size::clamped(80, 120));
        seat.until(|screen| screen.text().contains(until));
        String::from_utf8_lossy(&seat.bytes()).into_owned()
    };
    let lines = [
        ("ls", "sleep"),
        ("doctor", "free"),
        ("config show", "notifications.command"),
        ("show nobody", "posse ls"),
        ("ls --frobnicate", "--help"),
    ];
    for (line, until) in lines {
        assert!(shown("", line, until).contains("\x1b["), "{line} has colours on a terminal");
        assert!(!shown("1", line, until).contains("\x1b["), "{line} has none with NO_COLOR");
    }
}

//! Terminals and the API answer while the disk hangs.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use posse_testkit::TestEnv;
use posse_testkit::files::when;
use posse_testkit::slow_disk::SlowDisk;

use crate::plan_run::{ONE, Scene};
use crate::project::ended_with;
use crate::steps::{commit, reports};
use crate::text_when;

/// A daemon whose disk the test controls. It is killed at the end, because a daemon that hangs does not stop.
struct SlowDaemon(Child);

impl SlowDaemon {
    fn start(env: &TestEnv, disk: &SlowDisk) -> Self {
        let mut command = env.command(["serve", "--foreground"]);
        // Its log is a file, as that of every daemon.
        let log = fs::File::options().create(true).append(true).open(env.paths().log()).unwrap();
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let daemon = Self(disk.slow(&mut command, Duration::ZERO).spawn().unwrap());
        when("the daemon", || env.http().call("GET", "/health", "").ok());
        daemon
    }
}

impl Drop for SlowDaemon {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn terminals_answer_while_the_disk_hangs_in_the_middle_of_a_merge() {
    let disk = SlowDisk::new().unwrap();
    let scene = Scene::new(ONE);
    let env = &scene.env;
    let pipe = |name: &str| {
        let path = scene.plan.with_file_name(name);
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        path
    };
    let (merging, go_on) = (pipe("merging"), pipe("go-on"));
    // Git runs it when it has taken the user's checkout forward.
    let hook = env.work().join(".git/hooks/post-merge");
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    fs::write(&hook, format!("#!/bin/sh\necho > '{}'\ncat '{}'\n", merging.display(), go_on.display())).unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    scene.claude.play("t", commit("a", "alpha") + &reports("completed", "a is there"));

    let _daemon = SlowDaemon::start(env, &disk);
    let started = disk.operations().unwrap().len();
    let id = env.launch(&["cat"]);
    let plan = scene.begin(&[]);
    fs::read(&merging).unwrap();
    let before = disk.operations().unwrap().len();
    disk.hang().unwrap();
    fs::write(&go_on, "").unwrap();
    when("an operation that hangs", || disk.operations().ok().filter(|all| all.len() > before));

    for word in ["one", "two", "three"] {
        env.run(["send", id.as_str(), word]).ok();
        text_when(env, id, |text| text.matches(word).count() == 2);
        let listed: serde_json::Value = env.http().get("/terminals").unwrap();
        assert!(listed.to_string().contains(id.as_str()), "{listed}");
    }
    disk.release().unwrap();
    ended_with(0, plan);
    assert_eq!(scene.file("a").as_deref(), Some("alpha\n"));

    let operations = disk.operations().unwrap();
    let of_runtime: Vec<&String> = operations[started..].iter().filter(|line| line.starts_with("main ")).collect();
    assert!(of_runtime.is_empty(), "the runtime thread waits for the disk: {of_runtime:#?}");
}

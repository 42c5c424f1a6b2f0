//! Terminals on the user's own tmux server: among their sessions, and without touching what is theirs.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use posse_core::ids::TerminalId;
use posse_testkit::PATIENCE;
use posse_testkit::TestEnv;
use posse_testkit::env::Ran;

use crate::{env, text_when};

/// Somebody who uses tmux, with servers in a directory of their own, and a posse beside it.
struct User {
    // Dropped first: posse ends what it has while the servers still run.
    env: TestEnv,
    directory: tempfile::TempDir,
}

impl User {
    /// `None`, and a line saying so, if there is no tmux. Where tests must not be skipped, a panic.
    fn new() -> Option<Self> {
        if Command::new("tmux").arg("-V").stdout(Stdio::null()).status().is_err() {
            assert!(std::env::var_os("CI").is_none(), "tmux is not installed, and CI may not skip this test");
            eprintln!("skipped: tmux not installed");
            return None;
        }
        let user = Self { env: env(), directory: tempfile::tempdir().unwrap() };
        for server in ["default", "work"] {
            // Ends with this test, even if that is killed and drops nothing.
            let watch = format!("while kill -0 {} 2>/dev/null; do sleep 1; done; tmux kill-server", std::process::id());
            user.tmux(server, &["new-session", "-d", "-s", "theirs", &watch]);
            user.tmux(server, &["new-window", "-d", "-t", "theirs", "cat"]);
            user.tmux(server, &["set-option", "-g", "history-limit", "1234"]);
            user.tmux(server, &["set-option", "-g", "remain-on-exit", "on"]);
        }
        Some(user)
    }

    #[track_caller]
    fn tmux(&self, server: &str, arguments: &[&str]) -> String {
        let mut command = Command::new("tmux");
        command.args(["-L", server, "-f", "/dev/null"]).args(arguments).stdin(Stdio::null());
        let output = command.env("TMUX_TMPDIR", self.directory.path()).env_remove("TMUX").output().unwrap();
        assert!(output.status.success(), "tmux {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Everything on their servers that is theirs.
    fn theirs(&self) -> Vec<String> {
        let ask = |server| {
            let options = ["-g", "-s", "-gw"].map(|which| self.tmux(server, &["show-options", which]));
            let theirs = self.tmux(server, &["show-options", "-t", "theirs"]);
            let format = "#{window_index} #{window_layout} #{pane_id} #{pane_pid}";
            let windows = self.tmux(server, &["list-panes", "-s", "-t", "theirs", "-F", format]);
            [options.concat(), theirs, windows, self.tmux(server, &["show-environment", "-g"])].concat()
        };
        vec![ask("default"), ask("work")]
    }

    #[track_caller]
    fn is_as_before(&self, before: &[String]) {
        for (now, before) in self.theirs().iter().zip(before) {
            let changed: Vec<_> = now.lines().zip(before.lines()).filter(|(now, before)| now != before).collect();
            assert!(now == before, "what is theirs has changed (now, before): {changed:#?}");
        }
    }

    fn sessions(&self, server: &str) -> Vec<String> {
        let names = self.tmux(server, &["list-sessions", "-F", "#{session_name}"]);
        names.lines().map(str::to_owned).collect()
    }

    #[track_caller]
    fn posse(&self, arguments: &[&str]) -> Ran {
        let mut command = self.env.command(arguments);
        let output = command.env("TMUX_TMPDIR", self.directory.path()).stdin(Stdio::null()).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Ran { stdout: text(output.stdout), stderr: text(output.stderr), code: output.status.code() }
    }

    #[track_caller]
    fn launch(&self, server: &str, name: &str) -> TerminalId {
        let options = ["launch", "--backend", "tmux", "--tmux-server", server, "--name", name, "--session", name];
        let script = ["--", "sh", "-c", "echo ready; while read line; do echo \"got $line\"; done"];
        let id = self.posse(&[&options[..], &script].concat()).ok();
        id.trim().parse().unwrap()
    }

    /// Waits for tmux, which tells nobody.
    #[track_caller]
    fn until(&self, what: &str, fits: impl Fn() -> bool) {
        let give_up = Instant::now() + PATIENCE;
        while !fits() {
            assert!(Instant::now() < give_up, "{what} never came");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn private_socket(&self) -> PathBuf {
        self.env.places().tmux_socket()
    }
}

impl Drop for User {
    fn drop(&mut self) {
        let _ = self.posse(&["stop", "--all"]);
        for server in ["default", "work"] {
            let mut command = Command::new("tmux");
            command.args(["-L", server, "kill-server"]).env("TMUX_TMPDIR", self.directory.path());
            let _ = command.stderr(Stdio::null()).status();
        }
    }
}

#[test]
fn a_terminal_lives_among_the_users_own_sessions() {
    let Some(user) = User::new() else { return };
    let before = user.theirs();
    let id = user.launch("default", "one");
    assert!(user.sessions("default").contains(&"posse-one".to_owned()), "{:?}", user.sessions("default"));
    assert!(!user.private_socket().exists(), "no server of ours was needed");
    user.posse(&["send", id.as_str(), "hello"]).ok();
    text_when(&user.env, id, |text| text.contains("got hello"));

    // The daemon that comes next was started by the keeper, in another shell as it were.
    user.env.kill_daemon();
    user.env.run(["send", id.as_str(), "again"]).ok();
    text_when(&user.env, id, |text| text.contains("got hello") && text.contains("got again"));

    // Stopped in order, too; and the terminal is found without a daemon.
    user.env.run(["stop"]).ok();
    assert!(user.env.places().holds_terminals());
    user.env.run(["send", id.as_str(), "third"]).ok();
    text_when(&user.env, id, |text| text.contains("got third"));
    // The next one goes where the first is.
    let other: TerminalId =
        user.env.run(["launch", "--backend", "tmux", "--session", "two", "--", "cat"]).ok().trim().parse().unwrap();
    assert!(user.sessions("default").contains(&"posse-two".to_owned()));
    user.is_as_before(&before);

    user.posse(&["kill", id.as_str(), other.as_str()]).ok();
    user.until("our sessions gone", || !user.sessions("default").iter().any(|name| name.starts_with("posse-")));
    user.is_as_before(&before);
    user.posse(&["stop", "--all"]).ok();
    user.until("our anchor gone", || user.sessions("default") == ["theirs"]);
    user.is_as_before(&before);
    assert!(!user.env.places().holds_terminals());
}

#[test]
fn stopping_all_ends_ours_and_nothing_else() {
    let Some(user) = User::new() else { return };
    let before = user.theirs();
    user.launch("work", "one");
    user.launch("work", "two");
    user.env.run(["stop"]).ok();
    user.env.run(["stop", "--all"]).ok();
    user.until("ours gone", || user.sessions("work") == ["theirs"]);
    assert_eq!(user.sessions("default"), ["theirs"]);
    user.is_as_before(&before);
}

#[test]
fn another_server_only_when_nothing_lives_on_this_one() {
    let Some(user) = User::new() else { return };
    user.posse(&["serve", "--tmux-server", "default"]).ok();
    let id: TerminalId =
        user.env.run(["launch", "--backend", "tmux", "--name", "stays", "--", "cat"]).ok().trim().parse().unwrap();
    for words in [
        &["serve", "--tmux-server", "work"][..],
        &["launch", "--backend", "tmux", "--tmux-server", "private", "--", "true"],
    ] {
        let refused = user.posse(words);
        assert_eq!(refused.code, Some(1), "{refused:?}");
        assert!(refused.stderr.contains("default tmux server: stays"), "{refused:?}");
        assert!(refused.stderr.contains("posse kill"), "{refused:?}");
    }
    user.posse(&["serve", "--tmux-server", "default"]).ok(); // what it is already
    // Embedded terminals do not care.
    user.posse(&["launch", "--backend", "embedded", "--tmux-server", "work", "--", "true"]).ok();

    user.posse(&["kill", id.as_str()]).ok();
    user.launch("work", "moved");
    user.until("the first server left", || user.sessions("default") == ["theirs"]);
    assert!(user.sessions("work").contains(&"posse-moved".to_owned()));
    user.posse(&["kill", "moved"]).ok();
    user.posse(&["serve", "--tmux-server", "private"]).ok();
    user.env.kill_daemon();
    user.env.run(["launch", "--backend", "tmux", "--", "cat"]).ok();
    assert!(user.private_socket().exists());
    user.until("the second server left", || user.sessions("work") == ["theirs"]);
}

#[test]
fn a_server_that_does_not_run_is_not_started() {
    let Some(user) = User::new() else { return };
    let missing = user.posse(&["launch", "--backend", "tmux", "--tmux-server", "nobody", "--", "cat"]);
    assert_eq!(missing.code, Some(69), "{missing:?}");
    assert!(missing.stderr.contains("\"nobody\"") && missing.stderr.contains("tmux -L nobody"), "{missing:?}");
    for wrong in ["a/b", ""] {
        let ran = user.posse(&["serve", "--tmux-server", wrong]);
        assert_eq!(ran.code, Some(64), "{wrong:?}: {ran:?}");
    }
    // By the variable of the shell, which the daemon never had.
    user.env.run(["serve"]).ok();
    let mut command = user.env.command(["launch", "--backend", "tmux", "--session", "v", "--", "cat"]);
    command.env("TMUX_TMPDIR", user.directory.path()).env("POSSE_TMUX_SERVER", "work");
    assert!(command.status().unwrap().success());
    assert!(user.sessions("work").contains(&"posse-v".to_owned()));
}

/// Killed when nothing of ours runs any more: the next daemon finds our session all the same, and takes it with it.
#[test]
fn an_anchor_that_a_killed_daemon_left_goes_with_the_next_one() {
    let Some(user) = User::new() else { return };
    let before = user.theirs();
    let id = user.launch("default", "one");
    user.posse(&["kill", id.as_str()]).ok();
    assert_eq!(user.sessions("default").len(), 2, "{:?}", user.sessions("default"));
    user.env.kill_daemon();
    user.env.run(["stop", "--all"]).ok();
    assert_eq!(user.sessions("default"), ["theirs"]);
    user.is_as_before(&before);
}

//! Terminals shown in tmux windows: `posse tmux`, `posse launch --tmux`, `posse loop --tmux`. tmux shows them; it hosts none.
//! Each test has a tmux server of its own, on a private socket.

use std::process::{Command, Stdio};

use posse_core::ids::TerminalId;
use posse_testkit::TestEnv;
use posse_testkit::env::Ran;
use posse_testkit::files::when;
use serde_json::Value;

use crate::loop_run::Play;
use crate::{env, text_when};

/// The sockets of tmux servers that only this test uses. Its servers end with it.
struct PrivateTmux {
    directory: tempfile::TempDir,
}

impl PrivateTmux {
    /// Returns `None` if tmux is not installed. In CI that is a failure.
    fn find() -> Option<Self> {
        if Command::new("tmux").arg("-V").stdout(Stdio::null()).status().is_err() {
            assert!(std::env::var_os("CI").is_none(), "tmux is not installed, and CI may not skip this test");
            eprintln!("skipped: tmux is not installed");
            return None;
        }
        Some(Self { directory: tempfile::tempdir().unwrap() })
    }

    /// Starts a server with a session `work` of this size. It ends with this process even if that is killed.
    fn start(&self, (rows, cols): (u16, u16)) {
        let watch = format!("while kill -0 {} 2>/dev/null; do sleep 1; done; tmux kill-server", std::process::id());
        let (rows, cols) = (rows.to_string(), cols.to_string());
        self.run(&["new-session", "-d", "-s", "work", "-x", &cols, "-y", &rows, &watch]);
        self.run(&["set-option", "-g", "default-size", &format!("{cols}x{rows}")]);
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("tmux");
        command.args(["-u", "-f", "/dev/null"]).args(arguments).stdin(Stdio::null());
        command.env("TMUX_TMPDIR", self.directory.path()).env("LC_ALL", "C.UTF-8").env_remove("TMUX");
        command
    }

    #[track_caller]
    fn run(&self, arguments: &[&str]) -> String {
        let output = self.command(arguments).output().unwrap();
        assert!(output.status.success(), "tmux {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// A posse command of a user with these servers, in a shell outside tmux.
    fn outside(&self, env: &TestEnv, arguments: &[&str]) -> Command {
        let mut command = env.command(arguments);
        command.env("TMUX_TMPDIR", self.directory.path()).stdin(Stdio::null());
        command
    }

    /// The same in the session `work`.
    fn inside(&self, env: &TestEnv, arguments: &[&str]) -> Command {
        let variable = self.run(&["display-message", "-p", "-t", "work", "#{socket_path},#{pid},0"]);
        let pane = self.run(&["display-message", "-p", "-t", "work", "#{pane_id}"]);
        let mut command = self.outside(env, arguments);
        command.env("TMUX", variable.trim()).env("TMUX_PANE", pane.trim());
        command
    }

    /// Waits until a pane shows a text.
    #[track_caller]
    fn pane_when(&self, pane: &str, fits: impl Fn(&str) -> bool) -> String {
        when("the text in the pane", || Some(self.run(&["capture-pane", "-p", "-t", pane])).filter(|text| fits(text)))
    }
}

impl Drop for PrivateTmux {
    fn drop(&mut self) {
        let _ = self.command(&["kill-server"]).stderr(Stdio::null()).status();
    }
}

#[track_caller]
fn ran(mut command: Command) -> Ran {
    let output = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Ran { stdout: text(output.stdout), stderr: text(output.stderr), code: output.status.code() }
}

#[track_caller]
fn json(command: Command) -> Value {
    let ran = ran(command);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{ran:?}");
    ran.json()
}

fn pane(shown: &Value) -> String {
    shown["windows"][0]["pane"].as_str().unwrap_or_else(|| panic!("{shown}")).to_owned()
}

fn size_of(env: &TestEnv, id: TerminalId) -> (u64, u64) {
    let terminal = env.run(["show", id.as_str(), "--json"]).json();
    (terminal["size"]["rows"].as_u64().unwrap(), terminal["size"]["cols"].as_u64().unwrap())
}

fn id(terminal: &Value) -> TerminalId {
    terminal["id"].as_str().unwrap().parse().unwrap()
}

const ASKS: &str = "printf 'name? '; read name; echo \"hello $name\"; exec sleep 1000";

#[test]
fn window_shows_the_screen_takes_keys_and_may_be_closed() {
    let env = env();
    let Some(tmux) = PrivateTmux::find() else { return };
    tmux.start((40, 120));
    let launched = json(tmux.inside(&env, &["launch", "--tmux", "--name", "asks", "--json", "--", "sh", "-c", ASKS]));
    let window = &launched["tmux"]["windows"][0];
    assert_eq!((&window["session"], &window["opened"]), (&"work".into(), &true.into()), "{launched}");
    assert_eq!(launched["tmux"]["attach"], Value::Null, "the user is inside that tmux");
    let pane_id = pane(&launched["tmux"]);
    tmux.pane_when(&pane_id, |text| text.contains("name?"));
    tmux.run(&["send-keys", "-t", &pane_id, "ada", "Enter"]);
    tmux.pane_when(&pane_id, |text| text.contains("hello ada"));
    assert_eq!(tmux.run(&["display-message", "-p", "-t", &pane_id, "#{window_name}"]), "asks\n");

    let again = json(tmux.inside(&env, &["tmux", "asks", "--json"]));
    assert_eq!((pane(&again), &again["windows"][0]["opened"]), (pane_id.clone(), &false.into()), "{again}");
    tmux.run(&["kill-pane", "-t", &pane_id]);
    let terminal = env.run(["show", "asks", "--json"]).json();
    assert_eq!((&terminal["exit"], &terminal["status"]), (&Value::Null, &"processing".into()), "{terminal}");
    let reopened = json(tmux.inside(&env, &["tmux", "asks", "--json"]));
    assert_eq!(reopened["windows"][0]["opened"], true, "{reopened}");
    tmux.pane_when(&pane(&reopened), |text| text.contains("hello ada"));

    // A window closes with its program.
    env.run(["kill", "asks"]).ok();
    when("the window to close", || {
        let panes = tmux.run(&["list-panes", "-a", "-F", "#{pane_id}"]);
        (!panes.lines().any(|line| line == pane(&reopened))).then_some(())
    });
}

#[test]
fn killing_the_tmux_server_leaves_the_program_running() {
    let env = env();
    let Some(tmux) = PrivateTmux::find() else { return };
    let launched = ran(tmux.outside(&env, &["launch", "--tmux", "--name", "asks", "--", "sh", "-c", ASKS])).ends(0);
    assert!(launched.stderr.contains("`tmux attach -t posse`"), "{launched:?}");
    let terminal: TerminalId = launched.stdout.trim().parse().unwrap();
    ran(tmux.outside(&env, &["launch", "--tmux", "--name", "second", "--", "cat"])).ends(0);
    let windows = tmux.run(&["list-windows", "-t", "=posse", "-F", "#{window_name}"]);
    assert_eq!(windows, "asks\nsecond\n");
    let shown = json(tmux.outside(&env, &["tmux", "--json"]));
    assert_eq!(shown["attach"], "tmux attach -t posse");
    tmux.pane_when(&pane(&shown), |text| text.contains("name?"));

    let server: u32 = tmux.run(&["display-message", "-p", "#{pid}"]).trim().parse().unwrap();
    posse_testkit::env::kill(server);
    assert!(posse_testkit::process::ends(server));
    env.run(["send", terminal.as_str(), "ada"]).ok();
    text_when(&env, terminal, |text| text.contains("hello ada"));
    let running = env.run(["ls", "--json"]).json();
    assert!(running.as_array().unwrap().iter().all(|terminal| terminal["exit"].is_null()), "{running}");
    // And is shown again by the next server.
    let shown = json(tmux.outside(&env, &["tmux", "asks", "--json"]));
    tmux.pane_when(&pane(&shown), |text| text.contains("hello ada"));
}

#[test]
fn copy_mode_and_resized_windows_leave_the_program_alone() {
    let env = env();
    let Some(tmux) = PrivateTmux::find() else { return };
    tmux.start((40, 120));
    let script = "trap 'echo size' WINCH; echo ready; while read line; do echo \"got $line\"; done";
    let launched =
        json(tmux.inside(&env, &["launch", "--tmux", "--size", "80x24", "--json", "--", "sh", "-c", script]));
    let terminal = id(&launched);
    let pane = pane(&launched["tmux"]);
    tmux.pane_when(&pane, |text| text.contains("ready"));
    tmux.run(&["copy-mode", "-t", &pane]);
    // Keys belong to copy mode now, and the program goes on without a reader of its window.
    tmux.run(&["send-keys", "-t", &pane, "-X", "cursor-up"]);
    for round in 0..20 {
        env.run(["send", terminal.as_str(), &format!("round {round}")]).ok();
    }
    text_when(&env, terminal, |text| text.contains("got round 19"));
    assert_eq!(tmux.run(&["display-message", "-p", "-t", &pane, "#{pane_in_mode}"]), "1\n");
    for (cols, rows) in [("50", "10"), ("200", "60"), ("90", "30")] {
        tmux.run(&["resize-window", "-t", &pane, "-x", cols, "-y", rows]);
    }
    tmux.run(&["send-keys", "-t", &pane, "-X", "cancel"]);
    tmux.pane_when(&pane, |text| text.contains("got round 19"));
    tmux.run(&["send-keys", "-t", &pane, "typed here", "Enter"]);
    let text = text_when(&env, terminal, |text| text.contains("got typed here"));
    assert!(!text.contains("size"), "{text}");
    assert_eq!(size_of(&env, terminal), (24, 80));
}

#[test]
fn windows_show_the_agents_of_a_run_and_the_run_passes_without_them() {
    let Some(tmux) = PrivateTmux::find() else { return };
    tmux.start((40, 120));
    let play = Play::new("[loop]\nthink = \"300ms\"");
    let words = ["loop", "loop.json", "--prompt-file", "task.md", "--trust", "--tmux"];
    let mut followed = tmux.inside(&play.env, &words);
    let run = followed.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    when("a window for each agent", || {
        let panes = tmux.run(&["list-panes", "-a", "-F", "#{@posse_terminal}"]);
        (panes.lines().filter(|line| !line.is_empty()).count() == 5).then_some(())
    });
    let id = play.env.run(["run", "ls", "--json"]).json()[0]["id"].as_str().unwrap().to_owned();
    let shown = json(tmux.inside(&play.env, &["tmux", &id, "--json"]));
    let windows = shown["windows"].as_array().unwrap();
    assert!(windows.len() == 5 && windows.iter().all(|window| window["opened"] == false), "{shown}");
    tmux.run(&["kill-server"]);
    let output = run.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(told.contains("in tmux window work:"), "{told}");
}

#[test]
fn without_tmux_nothing_is_started_and_the_package_is_named() {
    let env = env();
    let empty = tempfile::tempdir().unwrap();
    for arguments in [&["tmux"][..], &["launch", "--tmux", "--", "/bin/cat"], &["loop", "--tmux", "loop.json"]] {
        let mut command = env.command(arguments);
        command.env("PATH", empty.path()).stdin(Stdio::null());
        let refused = ran(command);
        assert_eq!(refused.code, Some(69), "{arguments:?}: {refused:?}");
        assert!(refused.stderr.contains("package `tmux`"), "{refused:?}");
    }
    assert_eq!(env.run(["ls", "--json"]).json(), serde_json::json!([]));
}

#[test]
fn unknown_names_are_errors_and_quiet_prints_the_windows_only() {
    let env = env();
    let Some(tmux) = PrivateTmux::find() else { return };
    tmux.start((40, 120));
    let nothing = ran(tmux.inside(&env, &["tmux"]));
    assert_eq!((nothing.code, nothing.stdout.as_str()), (Some(0), ""), "{nothing:?}");
    assert!(nothing.stderr.contains("no terminal is running"), "{nothing:?}");
    ran(tmux.inside(&env, &["tmux", "nobody"])).ends(1).complains(&["\"nobody\"", "posse run ls"]);
    env.run(["launch", "--name", "one", "--session", "night", "--", "cat"]).ok();
    env.run(["launch", "--name", "two", "--session", "night", "--", "cat"]).ok();
    env.run(["launch", "--name", "other", "--", "cat"]).ok();
    let quiet = ran(tmux.inside(&env, &["tmux", "night", "--quiet"]));
    assert_eq!((quiet.code, quiet.stderr.as_str()), (Some(0), ""), "{quiet:?}");
    assert!(
        quiet.stdout.contains("one") && quiet.stdout.contains("two") && !quiet.stdout.contains("other"),
        "{quiet:?}"
    );
}

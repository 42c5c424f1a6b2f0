//! Recordings of terminals: over crashes of the daemon, and with limits.

use std::fs::File;
use std::io::BufReader;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use posse_core::ids::TerminalId;
use posse_core::screen::Screen;
use posse_term::cast::{CastEventKind, CastReader};
use posse_term::emulator::{Emulator, HistoryLimit};
use posse_testkit::TestEnv;
use posse_testkit::files::when;

use crate::agents::wait;
use crate::{env, text_when};

const TYPEWRITER: &[&str] =
    &["sh", "-c", "printf '\\033[1mready\\033[m\\n'; while read line; do echo \"got $line\"; done"];

fn path(env: &TestEnv, id: TerminalId) -> PathBuf {
    env.paths().recordings().join(format!("{id}.cast"))
}

/// Returns the end of a recording, once it fits. There is no event for the file's growth.
#[track_caller]
fn replay_until(env: &TestEnv, id: TerminalId, fits: impl Fn(&str) -> bool) -> Screen {
    when("the text in the recording", || {
        let reader = CastReader::new(BufReader::new(File::open(path(env, id)).ok()?)).ok()?;
        let mut emulator = Emulator::new(reader.header().size, HistoryLimit::default());
        for event in reader {
            match event.unwrap().what {
                CastEventKind::Output(bytes) => drop(emulator.feed(&bytes)),
                CastEventKind::Resized(size) => emulator.resize(size),
                CastEventKind::Mark(_) | CastEventKind::Evidence(_) => {}
            }
        }
        Some(emulator.screen()).filter(|screen| fits(&screen.text()))
    })
}

#[test]
fn a_recording_shows_what_the_terminal_did() {
    let env = env();
    let id = env.launch(TYPEWRITER);
    env.run(["send", id.as_str(), "first é€😀"]).ok();
    text_when(&env, id, |text| text.contains("got first"));
    replay_until(&env, id, |text| text.contains("got first é€😀"));
    env.kill_daemon();
    env.run(["send", id.as_str(), "second"]).ok();
    text_when(&env, id, |text| text.contains("got second"));
    let recorded = replay_until(&env, id, |text| text.contains("got first é€😀") && text.contains("got second"));
    let shown: Screen = env.http().get(&format!("/terminals/{id}/screen")).unwrap();
    assert_eq!(recorded.rows, shown.rows);
    assert_eq!(std::fs::metadata(path(&env, id)).unwrap().permissions().mode() & 0o777, 0o600);

    // Stopped in order, nothing waits.
    env.run(["send", id.as_str(), "third"]).ok();
    text_when(&env, id, |text| text.contains("got third"));
    env.run(["stop"]).ok();
    let recorded = std::fs::read_to_string(path(&env, id)).unwrap();
    assert!(recorded.contains("got third"));

    env.run(["ls"]).ok();
    env.run(["kill", id.as_str()]).ok();
    when("the recording of a terminal that is forgotten goes", || (!path(&env, id).exists()).then_some(()));
}

#[test]
fn recordings_can_be_switched_off_and_on() {
    let env = env();
    env.run(["serve", "--recordings", "off"]).ok();
    let id = env.launch(TYPEWRITER);
    env.kill_daemon();
    env.run(["send", id.as_str(), "quiet"]).ok();
    text_when(&env, id, |text| text.contains("got quiet"));
    env.run(["stop"]).ok();
    assert_eq!(std::fs::read_dir(env.paths().recordings()).unwrap().count(), 0, "also after a crash");
    env.run(["serve", "--recordings", "on"]).ok();
    replay_until(&env, id, |text| text.contains("ready") && text.contains("got quiet"));
}

#[test]
fn a_recording_keeps_the_evidence_that_is_not_in_the_output() {
    let env = env();
    env.script_agent("codex", "look = \"codex\"\n[[turn]]\nsteps = [{ say = \"Short.\" }]");
    env.run(["launch", "codex", "--name", "brief", "--trust"]).ok();
    env.run(["send", "brief", "be brief"]).ok();
    let shown = wait(&env, "brief", "completed");
    let id: TerminalId = shown["id"].as_str().unwrap().parse().unwrap();
    env.run(["stop"]).ok();
    let file = BufReader::new(File::open(path(&env, id)).unwrap());
    let events = CastReader::new(file).unwrap().map(|event| event.unwrap().what);
    let evidence: Vec<_> = events.filter(|what| matches!(what, CastEventKind::Evidence(_))).collect();
    assert_eq!(evidence, [CastEventKind::Evidence("\"prompted\"".into())]);
    let recording = path(&env, id);
    let explained = env.run(["explain", "--provider", "codex", "--json", "--recording", recording.to_str().unwrap()]);
    let last = explained.json().as_array().unwrap().last().unwrap()["status"].clone();
    assert_eq!(last, "completed");
}

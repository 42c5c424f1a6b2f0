//! The scripted agent in a real terminal: raw mode, resizes, files, signals and exit codes. Its decisions are tested
//! without a process, in posse-sim.

use std::fs;

use posse_core::screen::Size;
use posse_testkit::TestEnv;
use posse_testkit::seat::Seat;

use crate::env;

fn play(env: &TestEnv, scenario: &str) -> Seat {
    fs::write(env.work().join("scenario.toml"), scenario).unwrap();
    Seat::new(&env.command(["actor", "scenario.toml"]), Size::clamped(24, 80))
}

#[test]
fn scripted_turn_has_a_dialog_a_resize_and_a_file() {
    let env = env();
    let seat = play(
        &env,
        r#"
        [[turn]]
        steps = [
          { think = "300ms" },
          { ask = { kind = "permission", command = "make all" } },
          { write = { path = "out/answer.md", text = "heard: {prompt}" } },
          { say = "All done." },
        ]"#,
    );
    seat.until(|screen| screen.text().contains("? for shortcuts"));
    seat.type_keys(b"\x1b[200~build it\x1b[201~\r");
    seat.until(|screen| screen.text().contains("❯ 1. Yes"));
    seat.resize(Size::clamped(20, 40));
    // Only a repaint wraps this label; the emulator merely cuts it.
    seat.until(|screen| screen.text().contains("\n      session\n"));
    seat.type_keys(b"1");
    let screen = seat.until(|screen| screen.text().contains("✻ Worked for"));
    assert_eq!(screen.title, "✳ Claude Code");
    let written: Vec<_> = fs::read_dir(env.work().join("out")).unwrap().map(Result::unwrap).collect();
    assert_eq!(written.len(), 1, "a temporary file is left: {written:?}");
    assert_eq!(fs::read_to_string(written[0].path()).unwrap(), "heard: build it");
    seat.type_keys(b"\x03");
    assert_eq!(seat.exit_code(), Some(0));
}

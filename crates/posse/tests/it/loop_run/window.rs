//! The view of a run that is followed in a window.

use posse_core::screen::{Screen, Size};
use posse_testkit::seat::Seat;

use super::*;

/// The analyst asks in its first turn, and so does its reviewer: a turn with a question lasts until there is an answer.
const ASKS: &str = "[[turn]]\nkey = \"analyst\"\nnth = 1\nsteps = [{ think = \"600ms\" }, \
    { ask = { kind = \"permission\", command = \"rm -r target and everything that is in it and around it and below it\" } }, \
    { think = \"600ms\" }, { answer = {} }, { say = \"Done.\" }]\n\
    [[turn]]\nkey = \"analyst_review\"\nnth = 1\nsteps = [{ ask = { kind = \"permission\", command = \"make\" } }, \
    { answer = {} }, { say = \"Done.\" }]";

fn rules(screen: &Screen) -> usize {
    screen.text().lines().filter(|line| line.starts_with("───")).count()
}

/// In wide windows and narrow ones: one picture at the foot, drawn over itself, and only lines that stay above it.
#[test]
fn the_picture_stays_in_its_place() {
    for (columns, rows) in [(100, 30), (50, 16)] {
        let play = Play::new(&format!("{ASKS}\n[loop]\nthink = \"200ms\""));
        let seat = Seat::new(&play.command(&[]), Size::new(rows, columns).unwrap());
        let shows = |words: &'static [&'static str]| {
            move |screen: &Screen| words.iter().all(|word| screen.text().contains(word)) && rules(screen) == 1
        };
        seat.until(shows(&[
            "round 1/8  analyst, review 1  turn 1",
            "▸ analyst",
            "processing",
            "  peer_analyst     ○ idle",
        ]));
        let screen = seat.until(shows(&["▸ analyst", "waiting_user_answer", "posse approve", " --question ", "│"]));
        let text = screen.text();
        assert_eq!(text.matches("▸").count(), 1, "{text}");
        assert!(columns < 100 || text.contains("asks (permission)"), "{text}");
        // Drawn anew for a window of another size, it is still one.
        seat.resize(Size::new(rows, columns - 10).unwrap());
        let rule = "─".repeat(usize::from(columns) - 10);
        seat.until(|screen| rules(screen) == 1 && screen.text().lines().any(|line| line.trim_end() == rule));
        let id = play.shown()["terminals"]["analyst"].as_str().unwrap().to_owned();
        play.env.run(["approve", &id]).ok();
        let audit = play.env.run(["audit", "show", "--run", &play.id(), "--json"]).json();
        let first = &audit[0];
        assert_eq!(
            (&first["by"], &first["role"], &first["terminal"]),
            (&"person".into(), &"analyst".into(), &id.into())
        );
        seat.until(shows(&["▸ peer_analyst", "waiting_user_answer"]));
        let id = play.shown()["terminals"]["peer_analyst"].as_str().unwrap().to_owned();
        play.env.run(["approve", &id]).ok();
        let screen = seat.until(|screen| screen.text().contains("PASS in round 1, 9 turns"));
        assert_eq!(rules(&screen), 0, "nothing of the picture is left: {}", screen.text());
        let all = String::from_utf8_lossy(&seat.bytes()).into_owned();
        for turn in 1..=9 {
            contains(&all, &[&format!("turn {turn}: "), &format!("turn {turn}: answered")]);
        }
        assert_eq!(seat.exit_code(), Some(0));
        play.passed();
    }
}

/// Without --trust a person is asked. SRV-49: after "no", or no answer, no agent is started, not even one without
/// trust.
#[test]
fn a_person_is_asked_about_the_project() {
    let sit = |play: &Play, words: &[&str]| {
        let seat = Seat::new(&play.env.command(words), Size::new(30, 100).unwrap());
        seat.until(|screen| screen.text().contains("read, run and obey what is in"));
        seat
    };
    let run = ["loop", "loop.json", "--prompt-file", "task.md"];
    for answer in [b"n\r".as_slice(), b"\r", b"\x04"] {
        let play = Play::new("");
        for words in [&run[..], &["launch", "codex"]] {
            let seat = sit(&play, words);
            seat.type_keys(answer);
            let screen = seat.until(|screen| screen.text().contains("give --trust"));
            contains(&screen.text(), &["cancelled: nothing was started"]);
            assert_eq!(seat.exit_code(), Some(1), "{words:?}");
        }
        assert!(play.env.processes().is_empty(), "not even a daemon");
        assert!(!play.env.work().join(".tmp").exists());
    }
    let play = Play::new("");
    let seat = sit(&play, &run);
    seat.type_keys(b"y\r");
    seat.until(|screen| screen.text().contains("PASS in round 1, 9 turns"));
    assert_eq!(seat.exit_code(), Some(0));
    assert_eq!(play.journal("created")[0]["spec"]["trusted"], true);
}

/// Ctrl-C, typed by the user.
#[test]
fn ctrl_c_in_the_window() {
    let play = Play::new("[loop]\nthink = \"forever\"");
    let seat = Seat::new(&play.command(&[]), Size::new(30, 100).unwrap());
    seat.until(|screen| screen.text().contains("▸ analyst"));
    play.until_recorded("asked", 1);
    seat.type_keys(b"\x03");
    let screen = seat.until(|screen| screen.text().contains("goes on with it"));
    assert_eq!(rules(&screen), 0, "{}", screen.text());
    assert_eq!(seat.exit_code(), Some(130));
    assert_eq!(play.shown()["status"], "stopped");
}

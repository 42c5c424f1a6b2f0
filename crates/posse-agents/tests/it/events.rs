//! What agents write down of what they do, as a real one wrote it.

use crate::common::{Folder, detector, fixture, read};
use posse_agents::manifest::built_in;
use posse_core::status::Claim::{self, Asking, Nothing, Ready, Working};
use posse_core::status::WaitingKind::Permission;
use serde_json::Value;

/// A start, an answer, a tool that was allowed, one that was refused, an interruption, a refused key, the end.
#[test]
fn qwen_tells_what_it_does() {
    let qwen = built_in("qwen").unwrap().unwrap();
    let text = std::fs::read_to_string(fixture("qwen/0.15.10/events.jsonl")).unwrap();
    let written: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut said: Vec<Claim> = Vec::new();
    for (number, line) in written.iter().enumerate() {
        let before = number.checked_sub(1).map(|before| &written[before]);
        said.extend(qwen.manifest.signals.event(line, before).map(|(_, claim)| claim));
    }
    // That it works is said with every prompt and every answer.
    said.dedup();
    let (answer, asks) = ([Working, Ready], [Working, Asking(Some(Permission))]);
    let all = [&[Nothing], &answer[..], &asks, &answer, &asks, &answer, &answer].concat();
    assert_eq!(said, all);
}

/// Where nothing is written the screen shows that a turn is over, and nobody has to wait and see.
#[test]
fn qwen_shows_how_a_turn_ended() {
    let detector = detector("qwen", None);
    let folder = Folder::open("qwen/0.15.10");
    for (screen, rule) in [
        ("error_401.txt", Some("box.failed_for_good")),
        ("completed_ctrl_c_once.txt", Some("box.cancelled")),
        ("completed_edit_cancelled.txt", Some("box.denied")),
        ("completed_short.txt", None),
    ] {
        let reading = read(&detector, &folder.rows(screen));
        assert_eq!(reading.ends_turn.then_some(reading.rule.as_str()), rule, "{screen}");
    }
}

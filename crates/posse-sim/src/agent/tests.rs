//! Tables of cues and their effects.

use super::player::AgentCut;
use super::record::{AgentRecord, TurnOutcome};
use super::theatre::{Cue, Theatre, keys, play};

mod review_loop;
mod screens;

const SIZE: (u16, u16) = (60, 20);
const ASK: &str = r#"{ ask = { kind = "permission", command = "make" } }"#;
const LATER: u64 = 100_000;

fn with_steps(head: &str, steps: &str) -> String {
    format!("{head}\n[[turn]]\nsteps = [{steps}]")
}

fn claude(steps: &str) -> String {
    with_steps("look = \"claude\"\nauto_prompt = \"x\"", steps)
}

/// Plays the keys, each a millisecond after the one before, and lets time pass.
fn typed(scenario: &str, cues: &[&str]) -> (Theatre, AgentCut) {
    let cues = (1..).zip(cues).map(|(ms, text)| (ms, keys(text))).chain([(LATER, Cue::Look)]);
    let (agent, end) = play(scenario, SIZE, cues);
    (agent.host, end)
}

fn submitted(prompt: &str) -> AgentRecord {
    AgentRecord::Submitted { prompt: prompt.into() }
}

fn queued(prompt: &str) -> AgentRecord {
    AgentRecord::Queued { prompt: prompt.into() }
}

fn ended(turn: u32, outcome: TurnOutcome) -> AgentRecord {
    AgentRecord::TurnEnded { turn, outcome }
}

#[test]
fn agent_wakes_only_while_something_moves() {
    for (scenario, ticks) in [
        (with_steps("look = \"codex\"", ""), 0),
        (claude(ASK), 0),
        (claude(r#"{ pause = "50s" }"#), 1),
        (claude(r#"{ think = "forever" }"#), 999),
    ] {
        assert_eq!(typed(&scenario, &[]).0.ticks, ticks, "{scenario}");
    }
}

#[test]
fn self_reports_follow_the_turn() {
    let codex = with_steps("look = \"codex\"", &format!(r#"{{ think = "1s" }}, {ASK}"#));
    let (agent, end) = play(&codex, SIZE, [(1, keys("x\r")), (2000, keys("y")), (2001, keys("\x03"))]);
    assert!(matches!(end, AgentCut::Exit(0)));
    let printed = agent.host.printed();
    let mut rest = &printed[..];
    for part in [
        "\x1b]7501;state=idle:app=codex\x1b\\\x1b]0;project\x07",
        "\x1b]7501;state=working:app=codex\x1b\\\x1b]0;⠋ project\x07",
        "\x1b]7501;state=blocked:app=codex:kind=permission\x1b\\\x1b]0;[ ! ] Action Required | project\x07",
        "\x1b]7501;state=done:app=codex\x1b\\\x1b]0;project\x07",
        "\x1b]7501;state=clear\x1b\\\x1b]0;\x07",
    ] {
        let at = rest.find(part).unwrap_or_else(|| panic!("{part:?} is missing in {rest:?}"));
        rest = &rest[at + part.len()..];
    }
    // Claude's title has no glyph where its states are understood.
    let failing = with_steps("look = \"claude\"\nplay = \"loop\"", r#"{ fail = { message = "API Error: 400" } }"#);
    let printed = typed(&failing, &["x\r"]).0.printed();
    assert!(["]0;Claude Code\x07", "state=working", "state=error"].iter().all(|part| printed.contains(part)));
    let silent = with_steps("look = \"codex\"\nsilent = true\nauto_prompt = \"x\"", r#"{ say = "mine" }"#);
    assert!(!typed(&silent, &[]).0.printed().contains("\x1b]"));
}

#[test]
fn dialog_is_answered_by_the_keys_of_its_look() {
    let closed = |choice, accepted| {
        let outcome = if accepted { TurnOutcome::Done } else { TurnOutcome::Interrupted };
        vec![AgentRecord::DialogClosed { choice, accepted }, ended(1, outcome)]
    };
    let yes = closed(Some(1), true);
    let no = closed(Some(3), false);
    let cancelled = closed(None, false);
    let cases = [
        ("claude", "1", yes.clone()),
        ("claude", "\r", yes.clone()),
        ("claude", "2", closed(Some(2), true)),
        ("claude", "3", no.clone()),
        ("claude", "\x1b[B\x1b[B\x1b[B\r", no),
        ("claude", "\x1b[B\x1b[A\r", yes.clone()),
        ("claude", "\x1b", cancelled.clone()),
        ("claude", "\x03", cancelled.clone()),
        ("claude", "yn7\t ", vec![]),
        // A prompt pasted into a dialog is lost, and its Enter accepts.
        ("claude", "\x1b[200~do\x1b[201~\r", yes.clone()),
        ("codex", "y", yes.clone()),
        ("codex", "1", yes),
        ("codex", "n", cancelled),
    ];
    for (look, keys, expected) in cases {
        let scenario = with_steps(&format!("look = \"{look}\"\nauto_prompt = \"x\""), ASK);
        let records = typed(&scenario, &[keys]).0.records();
        assert_eq!(records[..2], [submitted("x"), AgentRecord::DialogDrawn]);
        assert_eq!(records[2..], expected, "{look} {keys:?}");
    }
}

#[test]
fn new_dialog_ignores_keys() {
    let scenario = with_steps("look = \"claude\"\nauto_prompt = \"x\"\ndialog_deaf = \"200ms\"", ASK);
    let (agent, _) = play(&scenario, SIZE, [(199, keys("1")), (200, keys("1")), (300, Cue::Look)]);
    let closed = AgentRecord::DialogClosed { choice: Some(1), accepted: true };
    assert_eq!(agent.host.records()[2..], [closed, ended(1, TurnOutcome::Done)]);
}

#[test]
fn keys_between_announcement_and_dialog_become_a_draft() {
    let steps = r#"{ ask = { kind = "permission", command = "make", announce = "900ms" } }"#;
    let scenario = with_steps("look = \"codex\"\nauto_prompt = \"x\"", steps);
    let (agent, _) = play(
        &scenario,
        SIZE,
        [(500, keys("y")), (600, Cue::Look), (900, Cue::Look), (901, keys("y")), (902, Cue::Look)],
    );
    let theatre = agent.host;
    assert!(theatre.printed().contains("state=blocked:app=codex:kind=permission"));
    assert!(theatre.looks[0].contains("› y\n") && theatre.looks[2].contains("› y\n"), "{:?}", theatre.looks);
    assert_eq!(theatre.records()[1], AgentRecord::DialogDrawn);
}

#[test]
fn enter_right_after_typed_text_becomes_a_line_break() {
    let scenario = with_steps("look = \"codex\"\nburst_guard = \"100ms\"", r#"{ pause = "9s" }"#);
    let pasted = "\x1b[200~pasted\x1b[201~\r";
    let (agent, _) =
        play(&scenario, SIZE, [(1, keys("typed\r")), (101, keys("\r")), (102, keys(pasted)), (103, Cue::Look)]);
    assert_eq!(agent.host.records(), [submitted("typed\n"), submitted("pasted"), queued("pasted")]);
}

#[test]
fn prompt_while_busy_is_queued() {
    for look in ["claude", "codex"] {
        let scenario = with_steps(&format!("look = \"{look}\"\nauto_prompt = \"one\""), r#"{ pause = "1s" }"#);
        let (theatre, _) = typed(&scenario, &["two\rthree\r"]);
        let records = theatre.records();
        assert_eq!(records[1..5], [submitted("two"), queued("two"), submitted("three"), queued("three")]);
        assert_eq!(records[5..], [1, 2, 3].map(|turn| ended(turn, TurnOutcome::Done)));
    }
}

#[test]
fn turn_ends_with_rows_of_its_look() {
    use TurnOutcome::{Error, Interrupted};
    let think = r#"{ think = "forever" }"#;
    let said = r#"{ say = "hm" }, { think = "forever" }"#;
    let tool = r#"{ tool = { input = "make", for = "forever" } }"#;
    let stream = r#"{ say = { text = "some words", rate = 4 } }"#;
    let error = r#"{ fail = { message = "API Error: 500 overloaded" } }"#;
    let stopped = "  ⎿  Interrupted · What should Claude do instead?\n\n───";
    for (look, steps, key, outcome, rows) in [
        ("claude", think, "\x1b", Interrupted, format!("❯ one\n{stopped}")),
        ("claude", think, "\x03", Interrupted, format!("❯ one\n{stopped}")),
        ("claude", said, "\x1b", Interrupted, format!("● hm\n{stopped}")),
        ("claude", stream, "\x1b", Interrupted, format!("● so\n{stopped}")),
        ("claude", tool, "\x1b", Interrupted, format!("● Bash(make)\n  ⎿  (interrupted)\n{stopped}")),
        ("claude", ASK, "3", Interrupted, format!("● Bash(make)\n{stopped}")),
        ("claude", error, "", Error, "● API Error: 500 overloaded\n\n✻ Worked for 0s".into()),
        ("codex", think, "\x1b", Interrupted, "■ Conversation interrupted".into()),
        ("codex", stream, "\x1b", Interrupted, "• so\n\n■ Conversation interrupted".into()),
        ("codex", ASK, "n", Interrupted, "✗ You canceled the request to run make\n\n■ Conversation interrupted".into()),
        ("codex", error, "", Error, "■ API Error: 500 overloaded\n\n\n› ".into()),
    ] {
        let scenario = with_steps(&format!("look = \"{look}\"\nauto_prompt = \"one\""), steps);
        let (agent, _) = play(&scenario, SIZE, [(500, keys(key)), (560, Cue::Look)]);
        assert_eq!(agent.host.records().last(), Some(&ended(1, outcome)), "{look} {steps}");
        let screen = &agent.host.looks[0];
        assert!(screen.contains(&rows) && !screen.contains("esc to interrupt"), "{look} {steps}\n{screen}");
    }
}

#[test]
fn agent_exits_by_its_keys() {
    for (look, head, cues, code) in [
        ("claude", "", &["\x03"][..], Some(0)),
        ("claude", "", &["text\x03"], None),
        ("claude", "", &["text\x03\x03"], Some(0)),
        ("codex", "", &["/quit\r"], Some(0)),
        ("claude", "start = [{ pause = \"9s\" }]", &["\x03"], Some(130)),
        ("claude", "start = [{ ask = { kind = \"startup\" } }]", &["2"], Some(1)),
    ] {
        let (_, end) = typed(&format!("look = \"{look}\"\n{head}"), cues);
        let exit = if let AgentCut::Exit(exit) = end { Some(exit) } else { None };
        assert_eq!(exit, code, "{look} {head} {cues:?}");
    }
}

#[test]
fn early_keys_are_kept_and_precede_the_next_paste() {
    let scenario = with_steps("look = \"claude\"\nstart = [{ pause = \"1s\" }]", "");
    let cues = [(1, keys("earlier\x15early \r")), (1001, keys("\x1b[200~prompt\x1b[201~\r")), (1002, Cue::Look)];
    assert_eq!(play(&scenario, SIZE, cues).0.host.records()[0], submitted("early prompt"));
}

#[test]
fn crash_leaves_the_screen_as_it_is() {
    let steps = r#"{ think = "1s" }, { crash = 9 }"#;
    let (theatre, end) = typed(&with_steps("look = \"claude\"\nalternate = true\nauto_prompt = \"x\"", steps), &[]);
    assert!(matches!(end, AgentCut::Kill(9)));
    let screen = theatre.screen();
    assert!(theatre.terminal.screen().alternate_screen() && screen.contains("… (1s · esc to interrupt)"), "{screen}");
}

//! Tables: what is done to the actor, and what comes of it.

use std::time::Duration;

use super::*;
use crate::record::{By, Ignored, Outcome};
use crate::scenario::AskKind;
use crate::theatre::Theatre;

mod properties;
mod quirks;
mod rounds;

fn open(scenario: &str) -> Theatre {
    Theatre::open(scenario, 60, 20)
}

fn with_steps(head: &str, steps: &str) -> Theatre {
    open(&format!("{head}\n[[turn]]\nsteps = [{steps}]"))
}

fn log(record: Record) -> Effect {
    Effect::Log(record)
}

fn submitted(prompt: &str) -> Record {
    Record::Submitted { prompt: prompt.into(), by: By::Keys }
}

fn started(turn: u32, prompt: &str) -> Record {
    Record::TurnStarted { turn, prompt: prompt.into() }
}

fn ended(turn: u32, outcome: Outcome) -> Record {
    Record::TurnEnded { turn, outcome }
}

fn title(text: &str) -> Effect {
    Effect::Title(text.into())
}

fn osc(text: &str) -> Effect {
    Effect::Osc(text.into())
}

const ALL: &str = "osc = [\"7501\", \"9;4\", \"title\"]";
const ASK: &str = r#"{ ask = { kind = "permission", command = "make" } }"#;

#[test]
fn a_turn_from_prompt_to_end() {
    let mut theatre = with_steps("look = \"claude\"", r#"{ think = "2s" }, { say = "ok" }"#);
    assert_eq!(theatre.happened(), [title("✳ Claude Code"), log(Record::Ready)]);
    theatre.keys("do it\r");
    assert_eq!(theatre.happened(), [title("⠂ Claude Code"), log(submitted("do it")), log(started(1, "do it"))]);
    theatre.wait(Duration::from_secs(2));
    assert_eq!(theatre.happened(), [title("⠐ Claude Code"), title("✳ Claude Code"), log(ended(1, Outcome::Done))]);
    assert_eq!(theatre.stage.deadline(), None);
}

#[test]
fn an_actor_that_waits_causes_no_wake_ups() {
    for (scenario, ticks) in [
        (with_steps("look = \"claude\"", ""), 0),
        (with_steps("look = \"codex\"", ""), 0),
        (with_steps("look = \"claude\"\nauto_prompt = \"x\"", ASK), 0),
        (with_steps("look = \"codex\"\nauto_prompt = \"x\"", ASK), 0),
        (with_steps("look = \"claude\"\nauto_prompt = \"x\"", r#"{ pause = "50s" }"#), 1),
        (with_steps("look = \"plain\"\nauto_prompt = \"x\"", r#"{ think = "50s" }"#), 1),
        (with_steps("look = \"plain\"\nauto_prompt = \"x\"", r#"{ think = "forever" }"#), 0),
    ] {
        let mut theatre = scenario;
        theatre.wait(Duration::from_secs(100));
        assert_eq!(theatre.ticks, ticks, "{}", theatre.screen());
    }
}

#[test]
fn a_spinner_wakes_as_often_as_it_is_told_and_paints_one_frame_each_time() {
    for (fps, frames) in [(1, 10), (10, 100), (60, 600)] {
        let mut theatre =
            with_steps(&format!("look = \"claude\"\nfps = {fps}\nauto_prompt = \"x\""), r#"{ think = "forever" }"#);
        let before = theatre.frames;
        theatre.wait(Duration::from_secs(10));
        assert_eq!(theatre.ticks, frames, "{fps} fps");
        assert!(theatre.frames - before <= frames);
        assert!(theatre.frames - before >= frames * 9 / 10);
    }
}

#[test]
fn self_reports_follow_the_turn() {
    let mut codex = with_steps(&format!("look = \"codex\"\nfps = 1\n{ALL}"), &format!(r#"{{ think = "1s" }}, {ASK}"#));
    assert_eq!(
        codex.happened(),
        [osc("7501;state=idle:app=codex"), osc("9;4;0"), title("project"), log(Record::Ready)]
    );
    codex.keys("x\r");
    assert_eq!(codex.happened()[..3], [osc("7501;state=working:app=codex"), osc("9;4;3"), title("⠋ project")]);
    codex.wait_ms(1000);
    assert_eq!(
        codex.happened()[..2],
        [osc("7501;state=blocked:app=codex:kind=permission"), title("[ ! ] Action Required | project")]
    );
    codex.keys("y");
    assert_eq!(codex.happened()[..3], [osc("7501;state=done:app=codex"), osc("9;4;0"), title("project")]);
    codex.keys("\x03");
    assert_eq!(codex.happened(), [osc("7501;state=clear"), title(""), log(Record::Exit { code: 0 }), Effect::Exit(0)]);

    // Claude's title has no glyph where its states are understood.
    let mut claude = with_steps(&format!("look = \"claude\"\nname = \"n\"\n{ALL}"), r#"{ error = "API Error: 400" }"#);
    assert_eq!(claude.happened()[..3], [osc("7501;state=idle:app=claude-code"), osc("9;4;0"), title("n")]);
    claude.keys("x\r");
    let mut reports = claude.happened();
    reports.retain(|effect| matches!(effect, Effect::Osc(_)));
    let (working, error) = (osc("7501;state=working:app=claude-code"), osc("7501;state=error:app=claude-code"));
    assert_eq!(reports, [working, osc("9;4;3"), error, osc("9;4;0")], "short as it was, it was heard");

    let mut silent = with_steps("look = \"codex\"\nosc = []\nauto_prompt = \"x\"", r#"{ title = "mine" }"#);
    let out_of_band = silent.happened().into_iter().filter(|effect| effect.bytes().is_some());
    assert_eq!(out_of_band.collect::<Vec<_>>(), [title("mine")]);
}

#[test]
fn the_circle_of_the_newer_title_turns_slowly() {
    let head = "look = \"claude\"\nbusy_title = \"circle\"\nauto_prompt = \"x\"";
    let mut theatre = with_steps(head, r#"{ title = "task" }, { think = "2500ms" }"#);
    theatre.wait(Duration::from_secs(5));
    let mut titles = theatre.happened();
    titles.retain(|effect| matches!(effect, Effect::Title(_)));
    assert_eq!(titles, ["✳ Claude Code", "◐ Claude Code", "◐ task", "◑ task", "◐ task", "✳ task"].map(title));
}

#[test]
fn a_dialog_is_answered_by_the_keys_of_its_look() {
    let closed = |choice: usize, label: &str, accepted, pressed: &str| Record::DialogClosed {
        choice: Some(choice),
        label: Some(label.into()),
        accepted,
        pressed: pressed.into(),
    };
    let cancelled =
        |pressed: &str| Record::DialogClosed { choice: None, label: None, accepted: false, pressed: pressed.into() };
    let (yes, done) = (|pressed| closed(1, "Yes", true, pressed), || ended(1, Outcome::Done));
    let codex_yes = |pressed| closed(1, "Yes, proceed (y)", true, pressed);
    let interrupted = || ended(1, Outcome::Interrupted);
    let cases: Vec<(&str, &str, Vec<Record>)> = vec![
        ("claude", "1", vec![yes("1"), done()]),
        ("claude", "\r", vec![yes("enter"), done()]),
        ("claude", "\x1b[13u", vec![yes("enter"), done()]),
        ("claude", "2", vec![closed(2, "Yes, and don't ask again this session", true, "2"), done()]),
        ("claude", "3", vec![closed(3, "No", false, "3"), interrupted()]),
        ("claude", "\x1b[B\x1b[B\x1b[B\r", vec![closed(3, "No", false, "enter"), interrupted()]),
        ("claude", "\x1b[B\x1b[A\r", vec![yes("enter"), done()]),
        ("claude", "\x1b", vec![cancelled("esc"), interrupted()]),
        ("claude", "\x03", vec![cancelled("ctrl-c"), interrupted()]),
        ("claude", "y", vec![]),
        ("claude", "n7\t ", vec![]),
        // A prompt pasted into a dialog is lost, and its Enter accepts.
        ("claude", "\x1b[200~do\x1b[201~\r", vec![Record::Ignored(Ignored::PasteIntoDialog), yes("enter"), done()]),
        ("claude", "\x1b[200~1\x1b[201~", vec![Record::Ignored(Ignored::PasteIntoDialog)]),
        ("codex", "y", vec![codex_yes("y"), done()]),
        ("codex", "1", vec![codex_yes("1"), done()]),
        ("codex", "\r", vec![codex_yes("enter"), done()]),
        ("codex", "n", vec![cancelled("n"), interrupted()]),
        ("codex", "\x1b[200~y\x1b[201~", vec![Record::Ignored(Ignored::PasteIntoDialog)]),
    ];
    for (look, keys, expected) in cases {
        let mut theatre = with_steps(&format!("look = \"{look}\"\nauto_prompt = \"x\""), ASK);
        theatre.records();
        theatre.keys(keys);
        theatre.wait_ms(100);
        assert_eq!(theatre.records(), expected, "{look} {keys:?}");
    }
}

#[test]
fn what_asked_and_when_is_logged_after_it_was_drawn() {
    let mut theatre = with_steps("look = \"claude\"\nauto_prompt = \"x\"", ASK);
    let drawn = theatre.happened();
    assert_eq!(
        drawn.last(),
        Some(&log(Record::DialogDrawn {
            kind: AskKind::Permission,
            options: ["Yes", "Yes, and don't ask again this session", "No"].map(String::from).into(),
            cursor: 1
        }))
    );
    let (_, effects) = Stage::open(theatre.stage.scenario.clone(), Tally::default(), Size::new(60, 20), Mono(0));
    let at = |wanted: fn(&Effect) -> bool| effects.iter().rposition(wanted).unwrap();
    assert!(
        at(|e| matches!(e, Effect::Paint(_))) < at(|e| matches!(e, Effect::Log(Record::DialogDrawn { .. }))),
        "{effects:?}"
    );
}

#[test]
fn prompts_sent_while_busy_wait_or_steer() {
    let mut claude = with_steps("look = \"claude\"\nauto_prompt = \"one\"", r#"{ pause = "1s" }"#);
    claude.records();
    claude.keys("two\rthree\r");
    let queued = |prompt: &str| Record::Queued { prompt: prompt.into() };
    assert_eq!(claude.records(), [submitted("two"), queued("two"), submitted("three"), queued("three")]);
    claude.wait(Duration::from_secs(9));
    let one_by_one = [
        ended(1, Outcome::Done),
        started(2, "two"),
        ended(2, Outcome::Done),
        started(3, "three"),
        ended(3, Outcome::Done),
    ];
    assert_eq!(claude.records(), one_by_one);

    let mut codex = with_steps("look = \"codex\"\nauto_prompt = \"one\"", r#"{ pause = "1s" }"#);
    codex.records();
    codex.keys("two\rthree\t");
    let steered = Record::Steered { prompt: "two".into() };
    assert_eq!(codex.records(), [submitted("two"), steered, submitted("three"), queued("three")]);
    codex.wait(Duration::from_secs(9));
    assert_eq!(codex.records(), [ended(1, Outcome::Done), started(2, "three"), ended(2, Outcome::Done)]);
}

#[test]
fn queued_prompts_can_be_taken_back() {
    let mut theatre = with_steps("look = \"claude\"\nauto_prompt = \"one\"", r#"{ pause = "1s" }"#);
    theatre.keys("two\rthree\r\x1b[A");
    assert!(theatre.screen().contains("❯␣two\n  three\n"), "{}", theatre.screen());
    theatre.wait(Duration::from_secs(5));
    assert!(theatre.records().contains(&ended(1, Outcome::Done)));
    assert_eq!(theatre.stage.turns_started, 1);
}

#[test]
fn interrupting() {
    let think = r#"{ think = "forever" }"#;
    let said = r#"{ say = "hm" }, { think = "forever" }"#;
    let tool = r#"{ tool = { input = "make", for = "forever" } }"#;
    for (look, steps, key, on_screen) in [
        // Before its first word Claude gives the prompt back.
        ("claude", think, "\x1b", "❯␣one\n"),
        ("claude", think, "\x03", "❯␣one\n"),
        ("claude", said, "\x1b", "● hm\n  ⎿  Interrupted"),
        ("claude", tool, "\x1b", "● Bash(make)\n  ⎿  (interrupted)\n  ⎿  Interrupted"),
        ("codex", think, "\x1b", "■ Conversation interrupted"),
        ("codex", think, "\x03", "■ Conversation interrupted"),
    ] {
        let mut theatre = with_steps(&format!("look = \"{look}\"\nauto_prompt = \"one\""), steps);
        theatre.wait_ms(300);
        theatre.records();
        theatre.keys(key);
        theatre.wait_ms(60);
        assert_eq!(theatre.records(), [ended(1, Outcome::Interrupted)], "{look} {steps}");
        assert!(theatre.screen().contains(on_screen), "{look} {steps}\n{}", theatre.screen());
        assert!(!theatre.screen().contains("esc to interrupt"));
    }
}

#[test]
fn leaving() {
    let exit = |code| vec![log(Record::Exit { code }), Effect::Exit(code)];
    let cases: Vec<(&str, &str, &[&str], Vec<Effect>)> = vec![
        ("claude", "", &["\x03"], vec![]),
        ("claude", "", &["\x03\x03"], exit(0)),
        ("claude", "", &["\x03", "wait", "\x03"], vec![]),
        ("claude", "", &["text\x03\x03"], vec![]),
        ("claude", "", &["text\x03\x03\x03"], exit(0)),
        ("claude", "", &["\x04\x04"], exit(0)),
        ("codex", "", &["\x03"], exit(0)),
        ("codex", "", &["text\x03"], vec![]),
        ("codex", "", &["/quit\r"], [vec![log(submitted("/quit"))], exit(0)].concat()),
        ("claude", "start = [{ pause = \"9s\" }]", &["\x03"], exit(130)),
        (
            "claude",
            "start = [{ ask = { kind = \"startup\" } }]",
            &["2"],
            [
                vec![log(Record::DialogClosed {
                    choice: Some(2),
                    label: Some("No, exit".into()),
                    accepted: false,
                    pressed: "2".into(),
                })],
                exit(1),
            ]
            .concat(),
        ),
    ];
    for (look, head, keys, expected) in cases {
        let mut theatre = open(&format!("look = \"{look}\"\nosc = []\n{head}"));
        theatre.happened();
        for key in keys {
            if *key == "wait" { theatre.wait_ms(1500) } else { theatre.keys(key) }
        }
        assert_eq!(theatre.happened(), expected, "{look} {head} {keys:?}");
    }
    let mut theatre = open("look = \"claude\"\nosc = []");
    theatre.happened();
    theatre.event(Event::Signal(15));
    assert_eq!(theatre.happened(), exit(143));
    assert_eq!(theatre.stage.deadline(), None);
    theatre.keys("anything\r");
    assert_eq!(theatre.happened(), [], "nothing happens after the end");
}

#[test]
fn steps_that_act_on_the_world_come_in_order() {
    let steps = r#"
        { write = { path = "{path}", text = "{turn}: {prompt}" } }, { bell = 2 }, { osc = "777;notify;a;b" },
        { print = '\xff\e[c' }, { exit = 7 }"#;
    let mut theatre = with_steps("look = \"plain\"", steps);
    theatre.happened();
    theatre.keys("write to '/tmp/out.md'.\r");
    let prompt = "write to '/tmp/out.md'.";
    assert_eq!(
        theatre.happened(),
        [
            log(submitted(prompt)),
            log(started(1, prompt)),
            Effect::Write {
                path: "/tmp/out.md".into(),
                bytes: format!("1: {prompt}").into_bytes(),
                how: WriteHow::Rename
            },
            Effect::Bell,
            Effect::Bell,
            osc("777;notify;a;b"),
            Effect::Raw(b"\xff\x1b[c".to_vec()),
            log(Record::Exit { code: 7 }),
            Effect::Exit(7),
        ]
    );
}

#[test]
fn a_crash_leaves_everything_as_it_is() {
    let steps = r#"{ think = "1s" }, { crash = 9 }"#;
    let mut theatre = with_steps("look = \"claude\"\nalternate = true\nauto_prompt = \"x\"", steps);
    theatre.wait_ms(900);
    theatre.happened();
    theatre.wait_ms(100);
    assert_eq!(theatre.happened()[1..], [log(Record::Crash { signal: 9 }), Effect::Kill(9)]);
    assert!(theatre.terminal().alternate_screen() && theatre.screen().contains("… (1s · esc to interrupt)"));
}

#[test]
fn files_that_cannot_be_written_fail_the_turn() {
    let mut theatre = with_steps(
        "look = \"claude\"\nauto_prompt = \"x\"",
        r#"{ write = { path = "/p/x", text = "" } }, { pause = "1s" }"#,
    );
    theatre.records();
    theatre.event(Event::WriteFailed { path: "/p/x".into(), error: "denied".into() });
    let failed = Record::WriteFailed { path: "/p/x".into(), error: "denied".into() };
    assert_eq!(theatre.records(), [failed, ended(1, Outcome::Error)]);
    assert!(theatre.screen().contains("● cannot write /p/x: denied"));

    let mut theatre =
        with_steps("look = \"claude\"\nauto_prompt = \"x\"", r#"{ write = { path = "{path}", text = "" } }"#);
    assert!(theatre.records().contains(&ended(1, Outcome::Error)));
}

#[test]
fn a_flood_comes_in_pieces_and_can_be_interrupted() {
    let flood = |steps: &str| with_steps("look = \"claude\"\nauto_prompt = \"x\"", steps);
    let size_of = |effects: &[Effect]| -> usize {
        effects.iter().map(|effect| if let Effect::Raw(bytes) = effect { bytes.len() } else { 0 }).sum()
    };
    for bytes in [0, 1, 2, 57, 58, 59, 200_000] {
        let mut theatre = flood(&format!("{{ flood = {{ bytes = {bytes} }} }}, {{ say = \"over\" }}"));
        theatre.wait_ms(0);
        let happened = theatre.happened();
        assert_eq!(size_of(&happened), bytes);
        assert!(happened.contains(&log(ended(1, Outcome::Done))));
        let screen = theatre.screen();
        assert!(screen.contains("\n● over\n\n✻ Worked for 0s\n\n──"), "{screen}");
    }
    let mut theatre = flood("{ flood = { lines = 100 } }");
    theatre.wait_ms(0);
    let text: Vec<u8> = theatre
        .happened()
        .iter()
        .filter_map(|e| if let Effect::Raw(b) = e { Some(b.clone()) } else { None })
        .flatten()
        .collect();
    assert_eq!(String::from_utf8(text).unwrap().lines().count(), 100);

    let mut endless = flood("{ flood = { bytes = 999999999999 } }");
    endless.records();
    endless.event(Event::Tick);
    assert_eq!(endless.stage.deadline(), Some(endless.now));
    endless.keys("\x1b");
    endless.now = endless.now + ESCAPE_WAIT;
    endless.event(Event::Tick);
    assert_eq!(endless.records(), [ended(1, Outcome::Interrupted)]);
    assert_eq!(endless.stage.deadline(), None);
}

#[test]
fn many_steps_at_once_leave_room_for_input() {
    let steps = r#"{ repeat = { times = 1000, steps = [{ bell = 1 }] } }"#;
    let mut theatre = with_steps("look = \"plain\"\nauto_prompt = \"x\"", steps);
    let bells = |theatre: &mut Theatre| theatre.happened().iter().filter(|e| **e == Effect::Bell).count();
    let first = bells(&mut theatre);
    assert!((1..1000).contains(&first), "{first}");
    theatre.wait_ms(0);
    assert_eq!(first + bells(&mut theatre), 1000);
}

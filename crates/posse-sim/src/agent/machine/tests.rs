//! Tables of inputs and their effects.

use std::time::Duration;

use super::*;
use crate::agent::record::TurnOutcome;
use crate::agent::theatre::Theatre;

mod properties;
mod quirks;
mod review_loop;

fn open(scenario: &str) -> Theatre {
    Theatre::open(scenario, 60, 20)
}

fn with_steps(head: &str, steps: &str) -> Theatre {
    open(&format!("{head}\n[[turn]]\nsteps = [{steps}]"))
}

fn log(record: AgentRecord) -> AgentEffect {
    AgentEffect::Log(record)
}

fn submitted(prompt: &str) -> AgentRecord {
    AgentRecord::Submitted { prompt: prompt.into() }
}

fn ended(turn: u32, outcome: TurnOutcome) -> AgentRecord {
    AgentRecord::TurnEnded { turn, outcome }
}

fn title(text: &str) -> AgentEffect {
    AgentEffect::Title(text.into())
}

fn osc(text: &str) -> AgentEffect {
    AgentEffect::Osc(text.into())
}

const ALL: &str = "osc = [\"7501\", \"title\"]";
const ASK: &str = r#"{ ask = { kind = "permission", command = "make" } }"#;

#[test]
fn waiting_agent_needs_no_ticks() {
    for (scenario, ticks) in [
        (with_steps("look = \"claude\"", ""), 0),
        (with_steps("look = \"codex\"", ""), 0),
        (with_steps("look = \"claude\"\nauto_prompt = \"x\"", ASK), 0),
        (with_steps("look = \"codex\"\nauto_prompt = \"x\"", ASK), 0),
        (with_steps("look = \"claude\"\nauto_prompt = \"x\"", r#"{ pause = "50s" }"#), 1),
    ] {
        let mut theatre = scenario;
        theatre.wait(Duration::from_secs(100));
        assert_eq!(theatre.ticks, ticks, "{}", theatre.screen());
    }
}

#[test]
fn spinner_wakes_ten_times_a_second_and_paints_one_frame_each_time() {
    let mut theatre = with_steps("look = \"claude\"\nauto_prompt = \"x\"", r#"{ think = "forever" }"#);
    let before = theatre.frames;
    theatre.wait(Duration::from_secs(10));
    assert_eq!(theatre.ticks, 100);
    assert!((90..=100).contains(&(theatre.frames - before)));
}

#[test]
fn self_reports_follow_the_turn() {
    let mut codex = with_steps(&format!("look = \"codex\"\n{ALL}"), &format!(r#"{{ think = "1s" }}, {ASK}"#));
    assert_eq!(codex.happened(), [osc("7501;state=idle:app=codex"), title("project")]);
    codex.keys("x\r");
    assert_eq!(codex.happened()[..2], [osc("7501;state=working:app=codex"), title("⠋ project")]);
    codex.wait_ms(950);
    codex.happened();
    codex.wait_ms(50);
    assert_eq!(
        codex.happened()[..2],
        [osc("7501;state=blocked:app=codex:kind=permission"), title("[ ! ] Action Required | project")]
    );
    codex.keys("y");
    assert_eq!(codex.happened()[..2], [osc("7501;state=done:app=codex"), title("project")]);
    codex.keys("\x03");
    assert_eq!(codex.happened(), [osc("7501;state=clear"), title(""), AgentEffect::Exit(0)]);

    // Claude's title has no glyph where its states are understood.
    let mut claude = with_steps(&format!("look = \"claude\"\n{ALL}"), r#"{ fail = { message = "API Error: 400" } }"#);
    assert_eq!(claude.happened()[..2], [osc("7501;state=idle:app=claude-code"), title("Claude Code")]);
    claude.keys("x\r");
    let mut reports = claude.happened();
    reports.retain(|effect| matches!(effect, AgentEffect::Osc(_)));
    let (working, error) = (osc("7501;state=working:app=claude-code"), osc("7501;state=error:app=claude-code"));
    assert_eq!(reports, [working, error], "short as it was, it was heard");

    let mut silent = with_steps("look = \"codex\"\nosc = []\nauto_prompt = \"x\"", r#"{ say = "mine" }"#);
    assert!(silent.happened().iter().all(|effect| effect.bytes().is_none()));
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
    let ignored = vec![AgentRecord::Ignored];
    let cases = [
        ("claude", "1", yes.clone()),
        ("claude", "\r", yes.clone()),
        ("claude", "\x1b[13u", yes.clone()),
        ("claude", "2", closed(Some(2), true)),
        ("claude", "3", no.clone()),
        ("claude", "\x1b[B\x1b[B\x1b[B\r", no),
        ("claude", "\x1b[B\x1b[A\r", yes.clone()),
        ("claude", "\x1b", cancelled.clone()),
        ("claude", "\x03", cancelled.clone()),
        ("claude", "y", vec![]),
        ("claude", "n7\t ", vec![]),
        // A prompt pasted into a dialog is lost, and its Enter accepts.
        ("claude", "\x1b[200~do\x1b[201~\r", [ignored.clone(), yes.clone()].concat()),
        ("claude", "\x1b[200~1\x1b[201~", ignored.clone()),
        ("codex", "y", yes.clone()),
        ("codex", "1", yes.clone()),
        ("codex", "\r", yes),
        ("codex", "n", cancelled),
        ("codex", "\x1b[200~y\x1b[201~", ignored),
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
fn dialog_is_logged_after_it_is_drawn() {
    let mut theatre = with_steps("look = \"claude\"\nauto_prompt = \"x\"", ASK);
    assert_eq!(theatre.happened().last(), Some(&log(AgentRecord::DialogDrawn)));
    let (_, effects) = ScriptedAgent::open(
        theatre.agent.scenario.clone(),
        Tally::default(),
        ScreenSize::new(60, 20),
        Mono(Duration::ZERO),
    );
    let at = |wanted: fn(&AgentEffect) -> bool| effects.iter().rposition(wanted).unwrap();
    assert!(
        at(|e| matches!(e, AgentEffect::Paint(_))) < at(|e| matches!(e, AgentEffect::Log(AgentRecord::DialogDrawn))),
        "{effects:?}"
    );
}

#[test]
fn prompt_while_busy_is_queued() {
    for look in ["claude", "codex"] {
        let mut agent = with_steps(&format!("look = \"{look}\"\nauto_prompt = \"one\""), r#"{ pause = "1s" }"#);
        agent.records();
        agent.keys("two\rthree\r");
        let queued = |prompt: &str| AgentRecord::Queued { prompt: prompt.into() };
        assert_eq!(agent.records(), [submitted("two"), queued("two"), submitted("three"), queued("three")]);
        agent.wait(Duration::from_secs(9));
        assert_eq!(agent.records(), [1, 2, 3].map(|turn| ended(turn, TurnOutcome::Done)));
        assert!(agent.screen().find("two") < agent.screen().find("three"), "{}", agent.screen());
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
        ("claude", ASK, "\x1b", Interrupted, format!("● Bash(make)\n{stopped}")),
        ("claude", ASK, "3", Interrupted, format!("● Bash(make)\n{stopped}")),
        ("claude", error, "", Error, "● API Error: 500 overloaded\n\n✻ Worked for 0s".into()),
        ("codex", think, "\x1b", Interrupted, "■ Conversation interrupted".into()),
        ("codex", think, "\x03", Interrupted, "■ Conversation interrupted".into()),
        ("codex", stream, "\x1b", Interrupted, "• so\n\n■ Conversation interrupted".into()),
        ("codex", ASK, "n", Interrupted, "✗ You canceled the request to run make\n\n■ Conversation interrupted".into()),
        ("codex", error, "", Error, "■ API Error: 500 overloaded\n\n\n› ".into()),
    ] {
        let mut theatre = with_steps(&format!("look = \"{look}\"\nauto_prompt = \"one\""), steps);
        theatre.wait_ms(500);
        theatre.keys(key);
        theatre.wait_ms(60);
        assert_eq!(theatre.records().last(), Some(&ended(1, outcome)), "{look} {steps}");
        assert!(theatre.screen().contains(&rows), "{look} {steps}\n{}", theatre.screen());
        assert!(!theatre.screen().contains("esc to interrupt"));
    }
}

#[test]
fn agent_exits_by_its_keys() {
    let exit = |code| vec![AgentEffect::Exit(code)];
    let refused = log(AgentRecord::DialogClosed { choice: Some(2), accepted: false });
    let cases: Vec<(&str, &str, &[&str], Vec<AgentEffect>)> = vec![
        ("claude", "", &["\x03"], exit(0)),
        ("claude", "", &["text\x03"], vec![]),
        ("claude", "", &["text\x03\x03"], exit(0)),
        ("codex", "", &["\x03"], exit(0)),
        ("codex", "", &["text\x03"], vec![]),
        ("codex", "", &["/quit\r"], vec![log(submitted("/quit")), AgentEffect::Exit(0)]),
        ("claude", "start = [{ pause = \"9s\" }]", &["\x03"], exit(130)),
        ("claude", "start = [{ ask = { kind = \"startup\" } }]", &["2"], vec![refused, AgentEffect::Exit(1)]),
    ];
    for (look, head, keys, expected) in cases {
        let mut theatre = open(&format!("look = \"{look}\"\nosc = []\n{head}"));
        theatre.happened();
        for key in keys {
            theatre.keys(key);
        }
        assert_eq!(theatre.happened(), expected, "{look} {head} {keys:?}");
    }
    let mut theatre = open("look = \"claude\"\nosc = []");
    theatre.happened();
    theatre.event(AgentInput::Signal(15));
    assert_eq!(theatre.happened(), exit(143));
    assert_eq!(theatre.agent.deadline(), None);
    theatre.keys("anything\r");
    assert_eq!(theatre.happened(), [], "nothing happens after the end");
}

#[test]
fn effects_are_in_the_order_of_the_steps() {
    let steps = r#"
        { write = { path = "/tmp/out.md", text = "{prompt}" } },
        { print = "\u001b[c" }, { exit = 7 }"#;
    let mut theatre = with_steps("look = \"codex\"\nosc = []", steps);
    theatre.happened();
    let prompt = "write it";
    theatre.keys(format!("{prompt}\r"));
    assert_eq!(
        theatre.happened(),
        [
            log(submitted(prompt)),
            AgentEffect::Write { path: "/tmp/out.md".into(), bytes: prompt.into() },
            AgentEffect::Raw("\u{1b}[c".into()),
            AgentEffect::Exit(7),
        ]
    );
}

#[test]
fn crash_leaves_the_screen_as_it_is() {
    let steps = r#"{ think = "1s" }, { crash = 9 }"#;
    let mut theatre = with_steps("look = \"claude\"\nalternate = true\nauto_prompt = \"x\"", steps);
    theatre.wait_ms(900);
    theatre.happened();
    theatre.wait_ms(100);
    assert_eq!(theatre.happened()[1..], [AgentEffect::Kill(9)]);
    assert!(theatre.terminal().alternate_screen() && theatre.screen().contains("… (1s · esc to interrupt)"));
}

#[test]
fn many_steps_at_once_leave_room_for_input() {
    let steps = r#"{ print = "777" }, "#.repeat(1000);
    let mut theatre = with_steps("look = \"codex\"\nosc = []\nauto_prompt = \"x\"", &steps);
    let sent =
        |theatre: &mut Theatre| theatre.happened().iter().filter(|e| **e == AgentEffect::Raw("777".into())).count();
    let first = sent(&mut theatre);
    assert!((1..1000).contains(&first), "{first}");
    theatre.wait_ms(0);
    assert_eq!(first + sent(&mut theatre), 1000);
}

#[test]
fn escalated_command_asks_before_it_runs() {
    let steps = r#"{ run = { command = "make", escalated = true, output = "made" } }, { run = { command = "ls" } }"#;
    let mut theatre = with_steps("look = \"claude\"\nauto_prompt = \"x\"", steps);
    assert!(matches!(theatre.records().last(), Some(AgentRecord::DialogDrawn)));
    assert!(!theatre.screen().contains("made"));
    theatre.keys("1");
    assert_eq!(theatre.records().last(), Some(&ended(1, TurnOutcome::Done)));
    assert!(theatre.screen().contains("● Bash(make)\n  ⎿  made\n\n● Bash(ls)"), "{}", theatre.screen());
}

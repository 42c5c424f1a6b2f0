//! Properties that hold for any input.

use proptest::prelude::*;

use super::*;

/// An input to the agent.
#[derive(Clone, Debug)]
enum Push {
    Bytes(Vec<u8>),
    Resize(u16, u16),
    Wait(u64),
    Tick,
}

fn push() -> impl Strategy<Value = Push> {
    const SNIPPETS: &str = "\r¦\x1b¦\x1b[A¦\x1b[B¦1¦3¦y¦n¦\x03¦\x15¦\t¦\x7f¦text ¦日本¦\x1b[200~¦\x1b[201~¦\
        \x1b[200~two\nlines\x1b[201~\r¦\x1b[13u¦ask\r¦stream\r¦\x1b]11;x\x07¦\
        \x1b[200~write '/p/test_result.md'\x1b[201~\r¦\x1b[200~write '/p/analyst_review.md'\x1b[201~\r";
    let snippets = prop::sample::select(SNIPPETS.split('¦').collect::<Vec<_>>());
    prop_oneof![
        6 => snippets.prop_map(|text| Push::Bytes(text.as_bytes().to_vec())),
        2 => prop::collection::vec(any::<u8>(), 1..20).prop_map(Push::Bytes),
        1 => (1..90u16, 1..30u16).prop_map(|(columns, rows)| Push::Resize(columns, rows)),
        3 => (0..3000u64).prop_map(Push::Wait),
        1 => Just(Push::Tick),
    ]
}

const MOODY: &str = r#"
dialog_deaf = "50ms"
start = [{ say = "hi" }, { ask = { kind = "startup", accept = [1, 2] } }, { pause = "100ms" }]
[[turn]]
on = "ask"
steps = [{ think = "1s" }, { ask = { kind = "question", text = "which one of these?", options = ["a", "b"], announce = "300ms" } }, { say = "{prompt}" }]
[[turn]]
on = "stream"
steps = [{ say = { text = "words and 日本語 words, many words", rate = 9 } }, { tool = { input = "x", for = "1s" } }, { say = { text = "more 日本語", rate = 3 } }]
[[turn]]
on = "text"
steps = [{ pause = "1s" }, { fail = { message = "API Error: too much" } }]
"#;

/// For every other prompt.
const OTHERWISE: &str = r#"
[[turn]]
steps = [{ ask = { kind = "permission", command = "rm -rf something with a long name" } }, { think = "2s" }, { say = "so much for that" }]
"#;

/// For the prompts of the loop.
const IN_THE_LOOP: &str = r#"
[[turn]]
key = "tester"
nth = [1, 2]
steps = [{ answer = { pieces = 3, gap = "200ms" } }, { answer = { late = "1s" } }, { fail = "dropped" }]
[[turn]]
key = "tester"
nth = 3
ignore = true
"#;

/// Neither ASCII nor Japanese: an emulator may see it differently.
fn disputed(c: char) -> bool {
    !c.is_ascii() && !"日本語".contains(c)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// No input causes a panic, a deadline in the past, or effects after the end. The screen shows what the painter
    /// believes, except for characters whose width is disputed.
    #[test]
    fn any_input_keeps_the_agent_consistent(
        look in prop::sample::select(vec!["claude", "codex"]),
        alternate: bool,
        in_the_loop: bool,
        pushes in prop::collection::vec(push(), 1..60),
    ) {
        let (play, rest) = if in_the_loop { ("loop", IN_THE_LOOP) } else { ("script", OTHERWISE) };
        let head = format!("look = \"{look}\"\nalternate = {alternate}\nplay = \"{play}\"");
        let mut theatre = Theatre::open(&format!("{head}\n{MOODY}\n{rest}"), 80, 24);
        let mut comparable = true;
        for push in pushes {
            if let Push::Bytes(bytes) = &push {
                comparable &= !String::from_utf8_lossy(bytes).contains(disputed);
            }
            match push {
                Push::Bytes(bytes) => theatre.keys(bytes),
                Push::Resize(columns, rows) => theatre.resize(columns, rows),
                Push::Wait(ms) => theatre.wait_ms(ms),
                Push::Tick => theatre.event(AgentInput::Tick),
            }
            prop_assert!(theatre.agent.deadline().is_none_or(|due| due >= theatre.now));
            prop_assert!(theatre.agent.play.is_some() || theatre.agent.queue.is_empty() || theatre.agent.busy_now || theatre.agent.over);
            let happened = theatre.happened();
            let end = happened.iter().position(|e| matches!(e, AgentEffect::Exit(_) | AgentEffect::Kill(_)));
            prop_assert!(end.is_none_or(|at| at + 1 == happened.len()));
            if comparable && end.is_none() && !theatre.agent.over {
                let mut believed = theatre.agent.painter.believed();
                let rows = theatre.rows();
                believed.resize(rows.len(), String::new());
                let rows: Vec<&str> = rows.iter().map(|row| row.trim_end_matches(' ')).collect();
                prop_assert_eq!(rows, believed);
            }
        }
    }

    #[test]
    fn resized_screen_equals_a_fresh_one(
        look in prop::sample::select(vec!["claude", "codex"]),
        alternate: bool,
        columns in 20..70u16,
        rows in 6..24u16,
        text in "[a-z ]{1,80}",
    ) {
        let scenario = format!("look = \"{look}\"\nalternate = {alternate}\n[[turn]]\nsteps = [{{ say = \"{text}\" }}, {{ pause = \"1m\" }}]");
        let play = |theatre: &mut Theatre| theatre.keys(format!("x{text}\rdraft"));
        let mut resized = Theatre::open(&scenario, 80, 24);
        play(&mut resized);
        resized.resize(columns, rows);
        let mut fresh = Theatre::open(&scenario, columns, rows);
        play(&mut fresh);
        fresh.agent.painter.clear();
        fresh.event(AgentInput::Tick);
        prop_assert_eq!(resized.screen(), fresh.screen());
        prop_assert_eq!(resized.terminal().cursor_position(), fresh.terminal().cursor_position());
    }
}

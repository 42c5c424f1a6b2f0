//! Menus, popups and views that a person opens while nothing goes on. The agent asks nobody anything: whatever stands on
//! the screen, the status stays what it was.

mod codex;

use super::{Act, Scenario, prompt, scenario, turn};
use crate::conformance::subject::Maker;

const ESC: &str = "\u{1b}";
const CLEAR_LINE: &str = "\u{15}";
const BACKSPACE: &str = "\u{7f}";
const CTRL_O: &str = "\u{f}";

pub(super) fn all(maker: Maker) -> Vec<Scenario> {
    match maker {
        Maker::Claude => {
            vec![popups(), fresh_menus(), menus(), transcript(), transcript_while_busy(), menu_while_busy()]
        }
        Maker::Codex => codex::all(),
        Maker::Opencode | Maker::Qwen => Vec::new(),
    }
}

/// Types a command of the agent's own, looks at the menu for a while, and leaves it.
fn menu(command: &'static str, text: &'static str) -> Vec<Act> {
    vec![
        Act::Keys(command),
        Act::Dwell(700),
        Act::Keys("\r"),
        Act::Shown(text),
        Act::Dwell(1_800),
        Act::Keys(ESC),
        Act::Shown("❯\u{a0}"),
        Act::Dwell(700),
    ]
}

/// What opens while something is typed into the input field.
fn popups() -> Scenario {
    let script = turn(r#"{ say = "Good morning." }"#);
    let mut acts = vec![Act::Dwell(500)];
    let popups = || {
        let typed =
            |text| [Act::Keys(text), Act::Dwell(1_500), Act::Keys(CLEAR_LINE), Act::Keys(BACKSPACE), Act::Dwell(700)];
        ["/", "@", "/perm", "?", "!"].into_iter().flat_map(typed)
    };
    acts.extend(popups());
    acts.extend([prompt("good morning"), Act::TurnOver(0), Act::Dwell(1_500)]);
    acts.extend(popups());
    Scenario { smoke: true, ..scenario("popups", script, acts) }
}

/// Menus before there was a turn.
fn fresh_menus() -> Scenario {
    let mut acts = vec![Act::Dwell(500)];
    acts.extend(menu("/permissions", "Add a new rule"));
    acts.extend(menu("/memory", "Open auto-memory folder"));
    scenario("menus_fresh", "", acts)
}

/// Menus between two turns, and a turn after them.
fn menus() -> Scenario {
    let script = turn(r#"{ say = "Good morning." }"#) + &turn(r#"{ say = "Good night." }"#);
    let mut acts = vec![prompt("good morning"), Act::TurnOver(0), Act::Dwell(1_200)];
    for (command, text) in [
        ("/permissions", "Add a new rule"),
        ("/memory", "Open auto-memory folder"),
        ("/export", "Copy to clipboard"),
        ("/theme", "Choose the text style"),
        ("/model", "Select model"),
        ("/usage", "Total duration (API)"),
    ] {
        acts.extend(menu(command, text));
    }
    // Without an earlier conversation some versions open no menu.
    acts.extend([
        Act::Keys("/resume"),
        Act::Dwell(700),
        Act::Keys("\r"),
        Act::Dwell(2_000),
        Act::Keys(ESC),
        Act::Dwell(900),
    ]);
    acts.extend([prompt("good night"), Act::TurnOver(1), Act::Dwell(1_500)]);
    Scenario { smoke: true, ..scenario("menus", script, acts) }
}

fn transcript() -> Scenario {
    let script = turn(r#"{ say = "Good morning." }"#) + &turn(r#"{ say = "Good night." }"#);
    let acts = vec![
        prompt("good morning"),
        Act::TurnOver(0),
        Act::Dwell(1_200),
        Act::Keys(CTRL_O),
        Act::Shown("transcript"),
        Act::Dwell(2_500),
        Act::Keys(CTRL_O),
        Act::NotShown("transcript"),
        Act::Dwell(1_000),
        prompt("good night"),
        Act::TurnOver(1),
        Act::Dwell(1_200),
    ];
    Scenario { smoke: true, ..scenario("transcript", script, acts) }
}

/// The view is opened in the middle of a turn, which ends behind it.
fn transcript_while_busy() -> Scenario {
    let script = turn(r#"{ say = "Good" }, { wait_for = "sunrise" }, { say = " morning." }"#);
    let acts = vec![
        prompt("good morning"),
        Act::Gate("sunrise"),
        Act::Dwell(800),
        Act::Keys(CTRL_O),
        Act::Shown("transcript"),
        Act::Dwell(2_500),
        Act::Release("sunrise"),
        Act::TurnOver(0),
        Act::Dwell(2_500),
        Act::Keys(CTRL_O),
        Act::NotShown("transcript"),
        Act::Dwell(1_000),
    ];
    scenario("transcript_while_busy", script, acts)
}

/// A panel that may be opened in the middle of a turn, which ends behind it.
fn menu_while_busy() -> Scenario {
    let script = turn(r#"{ say = "Good" }, { wait_for = "sunrise" }, { say = " morning." }"#);
    let mut acts = vec![prompt("good morning"), Act::Gate("sunrise"), Act::Dwell(800)];
    acts.extend([Act::Keys("/model"), Act::Dwell(700), Act::Keys("\r"), Act::Dwell(2_000), Act::Release("sunrise")]);
    acts.extend([Act::TurnOver(0), Act::Dwell(2_500), Act::Keys(ESC), Act::Dwell(1_200)]);
    scenario("menu_while_busy", script, acts)
}

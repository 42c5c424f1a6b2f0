//! Codex: lists, menus and views that a person opens, while nothing goes on and in the middle of a turn. Which commands
//! there are and what their menus say differs between versions, so only keys are pressed and nothing is waited for.

use super::{Act, BACKSPACE, CLEAR_LINE, ESC, Scenario, prompt, scenario, turn};

const CTRL_T: &str = "\u{14}";
const CTRL_R: &str = "\u{12}";
const DOWN: &str = "\u{1b}[B";

pub(super) fn all() -> Vec<Scenario> {
    vec![lists(), menus_fresh(), menus(), while_busy(), transcript(), list_at_the_end(), menu_at_the_end()]
}

/// Types something for which a list opens, moves in it, and takes it back.
fn list(text: &'static str) -> Vec<Act> {
    let clear = [Act::Keys(CLEAR_LINE), Act::Keys(BACKSPACE), Act::Dwell(500)];
    let mut acts = vec![Act::Keys(text), Act::Dwell(1_200), Act::Keys(DOWN), Act::Dwell(700)];
    acts.extend(clear);
    acts
}

/// Opens a menu, moves in it, and leaves it. What is left of the command is cleared.
fn menu(command: &'static str) -> Vec<Act> {
    vec![
        Act::Keys(command),
        Act::Dwell(700),
        Act::Keys("\r"),
        Act::Dwell(1_300),
        Act::Keys(DOWN),
        Act::Dwell(700),
        Act::Keys(ESC),
        Act::Dwell(700),
        Act::Keys(CLEAR_LINE),
        Act::Keys(BACKSPACE),
        Act::Dwell(500),
    ]
}

/// Before the first turn, and after it.
fn lists() -> Scenario {
    let script = turn(r#"{ say = "Good morning." }"#) + &turn(r#"{ say = "Good night." }"#);
    let all = || ["/", "@", "$", "/mo", "see @p", "!"].into_iter().flat_map(list);
    let mut acts = vec![Act::Dwell(500)];
    acts.extend(all());
    acts.extend([prompt("good morning"), Act::TurnOver(0), Act::Dwell(1_500)]);
    acts.extend(all());
    acts.extend([Act::Keys(CTRL_R), Act::Dwell(1_200), Act::Keys(ESC), Act::Dwell(700)]);
    acts.extend([prompt("good night"), Act::TurnOver(1), Act::Dwell(1_500)]);
    Scenario { smoke: true, ..scenario("popups", script, acts) }
}

fn menus_fresh() -> Scenario {
    let mut acts = vec![Act::Dwell(500)];
    acts.extend(["/model", "/permissions", "/review"].into_iter().flat_map(menu));
    scenario("menus_fresh", "", acts)
}

fn menus() -> Scenario {
    let script = turn(r#"{ say = "Good morning." }"#) + &turn(r#"{ say = "Good night." }"#);
    let mut acts = vec![prompt("good morning"), Act::TurnOver(0), Act::Dwell(1_200)];
    let commands = [
        "/model",
        "/permissions",
        "/review",
        "/skills",
        "/theme",
        "/hooks",
        "/memories",
        "/statusline",
        "/experimental",
    ];
    acts.extend(commands.into_iter().flat_map(menu));
    acts.extend([prompt("good night"), Act::TurnOver(1), Act::Dwell(1_500)]);
    Scenario { smoke: true, ..scenario("menus", script, acts) }
}

/// In the middle of a turn, which ends after they are closed.
fn while_busy() -> Scenario {
    let script = turn(r#"{ say = "Good" }, { wait_for = "sunrise" }, { say = " morning." }"#);
    let mut acts = vec![prompt("good morning"), Act::Gate("sunrise"), Act::Dwell(800)];
    acts.extend(["/", "@", "$"].into_iter().flat_map(list));
    acts.extend([Act::Keys(CTRL_T), Act::Dwell(1_500), Act::Keys("q"), Act::Dwell(500), Act::Keys(CLEAR_LINE)]);
    acts.extend([Act::Dwell(700), Act::Release("sunrise"), Act::TurnOver(0), Act::Dwell(1_500)]);
    scenario("popups_while_busy", script, acts)
}

/// Opened and closed between two turns.
fn transcript() -> Scenario {
    let script = turn(r#"{ say = "Good morning." }"#) + &turn(r#"{ say = "Good night." }"#);
    let acts = vec![
        prompt("good morning"),
        Act::TurnOver(0),
        Act::Dwell(1_200),
        Act::Keys(CTRL_T),
        Act::Dwell(2_500),
        Act::Keys("q"),
        Act::Dwell(700),
        Act::Keys(CLEAR_LINE),
        Act::Dwell(500),
        prompt("good night"),
        Act::TurnOver(1),
        Act::Dwell(1_200),
    ];
    Scenario { smoke: true, ..scenario("transcript", script, acts) }
}

/// The turn ends while a list is open.
fn list_at_the_end() -> Scenario {
    let script = turn(r#"{ say = "Good" }, { wait_for = "sunrise" }, { say = " morning." }"#);
    let acts = vec![
        prompt("good morning"),
        Act::Gate("sunrise"),
        Act::Dwell(800),
        Act::Keys("/"),
        Act::Dwell(1_500),
        Act::Release("sunrise"),
        Act::TurnOver(0),
        Act::Dwell(2_500),
        Act::Keys(CLEAR_LINE),
        Act::Keys(BACKSPACE),
        Act::Dwell(1_200),
    ];
    scenario("popup_at_the_end", script, acts)
}

/// The turn ends, or fails to be noticed, behind the transcript.
fn menu_at_the_end() -> Scenario {
    let script = turn(r#"{ say = "Good" }, { wait_for = "sunrise" }, { say = " morning." }"#);
    let acts = vec![
        prompt("good morning"),
        Act::Gate("sunrise"),
        Act::Dwell(800),
        Act::Keys(CTRL_T),
        Act::Dwell(1_500),
        Act::Release("sunrise"),
        Act::TurnOver(0),
        Act::Dwell(2_500),
        Act::Keys("q"),
        Act::Dwell(500),
        Act::Keys(CLEAR_LINE),
        Act::Dwell(1_200),
    ];
    scenario("transcript_while_busy", script, acts)
}

//! What is played: one conversation each, and what we do in it. States last long enough to be sampled; who waits for
//! what is decided by gates of the model server, by files that tools wait for, and by dialogs.

mod asks;
mod hooks;
mod menus;
mod soak;

pub(super) use hooks::facts as hook_facts;
pub use soak::soak;

use super::subject::{Ask, Maker};
use crate::agents::AgentHome;

/// One thing we do, or wait for.
#[derive(Clone, Debug)]
pub enum Act {
    /// Leaves things as they are for so many milliseconds, so that they can be sampled.
    Dwell(u64),
    /// Sends a prompt and waits until the model hears of it.
    Prompt(String),
    /// Types a prompt while the agent works.
    PromptWhileBusy(String),
    /// Waits until the model waits at this gate.
    Gate(&'static str),
    Release(&'static str),
    /// Waits until the model has answered this turn to its end.
    TurnOver(usize),
    /// Waits for the next dialog's text.
    Dialog(Ask),
    /// Accepts the dialog; by this option, if the usual one is not meant.
    Approve(Option<u32>),
    Deny,
    /// Accepts the dialog by a key, as a person does: posse itself allows nothing for longer than once.
    AcceptByKey(&'static str),
    /// Waits for a file of the project, which a tool makes.
    File(&'static str),
    /// Makes a file of the project, for which a tool waits.
    Touch(&'static str),
    ErrorShown,
    /// Types these bytes as a person at the keyboard does. The truth does not change.
    Keys(&'static str),
    /// Waits until this text is on the screen, or until it is gone.
    Shown(&'static str),
    NotShown(&'static str),
    /// Presses the key that interrupts, and waits until the agent has hung up on the model.
    Interrupt,
    /// Kills the agent without any warning.
    Kill,
    /// Asks the agent to leave.
    Exit,
}

#[derive(Clone)]
pub struct Scenario {
    pub name: String,
    /// What the model says.
    pub script: String,
    pub acts: Vec<Act>,
    /// Columns and rows.
    pub size: (u16, u16),
    /// How often the agent repeats a failed request.
    pub retries: Option<u32>,
    /// How many tools are used before the first that needs a permission.
    pub free_tools: usize,
    /// More arguments for the agent.
    pub arguments: fn(&AgentHome) -> Vec<String>,
    /// Whether it is played on every commit.
    pub smoke: bool,
}

const USUAL: (u16, u16) = (120, 40);

/// A command that runs until it is told to stop.
const SLOW_COMMAND: &str = "touch started && while [ ! -e go ]; do sleep 0.05; done && echo made";

fn scenario(name: impl Into<String>, script: impl Into<String>, acts: Vec<Act>) -> Scenario {
    Scenario {
        name: name.into(),
        script: script.into(),
        acts,
        size: USUAL,
        retries: None,
        free_tools: 0,
        arguments: |_| Vec::new(),
        smoke: false,
    }
}

fn prompt(text: &str) -> Act {
    Act::Prompt(text.to_owned())
}

fn turn(steps: &str) -> String {
    format!("[[turn]]\nsteps = [{steps}]\n")
}

/// All that this agent can play.
pub fn all(maker: Maker) -> Vec<Scenario> {
    let mut all = vec![idle(), answer(), thinking(), streaming(), stalled(), narrative(), long_prompt(), queued()];
    all.extend([interrupt(), killed(), exit()]);
    all.extend(failures(maker));
    all.extend(Ask::ALL.into_iter().filter_map(|ask| asks::accepted(maker, ask)));
    all.extend([tool(maker), denied(maker), two_dialogs(maker), wait_at_dialog(maker)].into_iter().flatten());
    all.extend(hooks::all(maker));
    all.extend(menus::all(maker));
    for (name, size) in [("narrow", (60, 20)), ("small", (80, 24)), ("wide", (160, 48))] {
        all.extend(denied(maker).map(|denied| Scenario { name: format!("{name}_deny"), size, smoke: false, ..denied }));
        all.extend(tool(maker).map(|tool| Scenario { name: format!("{name}_tool"), size, smoke: false, ..tool }));
        all.push(Scenario { name: format!("{name}_streaming"), size, smoke: false, ..streaming() });
    }
    all
}

fn idle() -> Scenario {
    scenario("idle", "", vec![Act::Dwell(4_000)])
}

fn answer() -> Scenario {
    let script = turn(
        r#"{ think = { text = "A greeting." } }, { say = "Good morning" }, { wait_for = "sunrise" }, { say = " to everyone." }"#,
    ) + &turn(r#"{ say = "And good night." }"#);
    let acts = vec![
        prompt("say good morning"),
        Act::Gate("sunrise"),
        Act::Dwell(800),
        Act::Release("sunrise"),
        Act::TurnOver(0),
        Act::Dwell(2_000),
        prompt("say good night"),
        Act::TurnOver(1),
        Act::Dwell(1_500),
    ];
    Scenario { smoke: true, ..scenario("answer", script, acts) }
}

fn thinking() -> Scenario {
    let script = turn(
        r#"{ think = {} }, { think = { text = "This needs some thought. " } }, { wait_for = "thought" }, { say = "Yes." }"#,
    );
    let acts = vec![
        prompt("is that so?"),
        Act::Gate("thought"),
        Act::Dwell(4_000),
        Act::Release("thought"),
        Act::TurnOver(0),
        Act::Dwell(1_500),
    ];
    scenario("thinking", script, acts)
}

/// Words that come one after the other for a few seconds.
fn streaming() -> Scenario {
    let words = "Every word of this answer comes a moment after the one before. ".repeat(6);
    let script = turn(&format!("{{ say = {{ text = {words:?}, rate = 200 }} }}"));
    let acts = vec![prompt("tell me something long"), Act::TurnOver(0), Act::Dwell(2_000)];
    Scenario { smoke: true, ..scenario("streaming", script, acts) }
}

/// An answer that stops in the middle for longer than any screen takes to settle.
fn stalled() -> Scenario {
    let script = turn(
        r#"{ say = "This is the first half of the answer, and the second half will come.\n\nA second paragraph, " }, { wait_for = "stall" }, { say = "and its end." }"#,
    );
    let acts = vec![
        prompt("take your time"),
        Act::Gate("stall"),
        Act::Dwell(5_000),
        Act::Release("stall"),
        Act::TurnOver(0),
        Act::Dwell(1_500),
    ];
    Scenario { smoke: true, ..scenario("stalled", script, acts) }
}

/// An answer that shows everything our rules look for.
fn narrative() -> Scenario {
    let quotes = r"What you may see:\n\n```\n✻ Pondering… (12s · ↑ 3 tokens · esc to interrupt)\n• Working (3s • esc to interrupt)\n```\n\nand then\n\n```\n Do you want to proceed?\n ❯ 1. Yes\n   2. No\n\n Esc to cancel\n\n  Would you like to run the following command?\n\n› 1. Yes, proceed (y)\n  2. No (esc)\n\n  Press enter to confirm or esc to cancel\n```\n\nor API Error: 500, or ■ stream error, or\n\n```\n  Worked for 5s • 19:49\n✻ Worked for 5s\n```\n\n";
    let script = turn(&format!("{{ say = \"{quotes}\" }}, {{ wait_for = \"more\" }}, {{ say = \"That is all.\" }}"));
    let acts = vec![
        prompt("what do agents draw?"),
        Act::Gate("more"),
        Act::Dwell(3_000),
        Act::Release("more"),
        Act::TurnOver(0),
        Act::Dwell(3_000),
    ];
    Scenario { smoke: true, ..scenario("narrative", script, acts) }
}

fn long_prompt() -> Scenario {
    let text = "Read every line of this carefully, it goes on for a while.\n".repeat(625);
    let script = turn(r#"{ say = "I have read" }, { wait_for = "read" }, { say = " it." }"#);
    let acts = vec![
        Act::Prompt(text),
        Act::Gate("read"),
        Act::Dwell(1_500),
        Act::Release("read"),
        Act::TurnOver(0),
        Act::Dwell(1_500),
    ];
    scenario("long_prompt", script, acts)
}

fn queued() -> Scenario {
    let script = turn(r#"{ say = "The first" }, { wait_for = "first" }, { say = " answer." }"#)
        + &turn(r#"{ say = "The second" }, { wait_for = "second" }, { say = " answer." }"#);
    let acts = vec![
        prompt("answer first"),
        Act::Gate("first"),
        Act::Dwell(600),
        Act::PromptWhileBusy("and then this".into()),
        Act::Dwell(1_500),
        Act::Release("first"),
        Act::Gate("second"),
        Act::Dwell(1_500),
        Act::Release("second"),
        Act::TurnOver(1),
        Act::Dwell(2_000),
    ];
    scenario("queued", script, acts)
}

fn interrupt() -> Scenario {
    let script = turn(r#"{ say = "I will go on and on" }, { wait_for = "never" }"#);
    let acts = vec![prompt("go on"), Act::Gate("never"), Act::Dwell(2_000), Act::Interrupt, Act::Dwell(3_000)];
    Scenario { smoke: true, ..scenario("interrupt", script, acts) }
}

fn killed() -> Scenario {
    let script = turn(r#"{ say = "I will go on and on" }, { wait_for = "never" }"#);
    let acts = vec![prompt("go on"), Act::Gate("never"), Act::Dwell(1_500), Act::Kill, Act::Dwell(2_500)];
    scenario("kill_9", script, acts)
}

fn exit() -> Scenario {
    let script = turn(r#"{ say = "Goodbye." }"#);
    let acts = vec![prompt("goodbye"), Act::TurnOver(0), Act::Dwell(1_500), Act::Exit, Act::Dwell(1_500)];
    scenario("exit", script, acts)
}

fn failures(maker: Maker) -> Vec<Scenario> {
    let failing = |name: &str, steps: &str| {
        let acts = vec![prompt("is anyone there?"), Act::ErrorShown, Act::Dwell(3_000)];
        Scenario { retries: Some(1), ..scenario(name, turn(steps), acts) }
    };
    // opencode cannot be told how often to ask again. It is told not to wait in between.
    let error = |status: u16| match maker {
        Maker::Opencode => format!(r#"{{ fail = {{ status = {status}, headers = {{ retry-after = "0" }} }} }}"#),
        _ => format!("{{ fail = {{ status = {status} }} }}"),
    };
    let limit = match maker {
        Maker::Opencode => {
            r#"{ fail = { status = 429, kind = "usage_limit_reached", message = "The usage limit has been reached", headers = { retry-after = "0" } } }"#
        }
        Maker::Claude => {
            r#"{ fail = { status = 429, headers = { anthropic-ratelimit-unified-status = "rejected", anthropic-ratelimit-unified-reset = "now+3600", anthropic-ratelimit-unified-representative-claim = "five_hour", x-should-retry = "false" } } }"#
        }
        _ => {
            r#"{ fail = { status = 429, kind = "usage_limit_reached", message = "The usage limit has been reached", fields = { plan_type = "plus", resets_at = "now+7200" } } }"#
        }
    };
    let again = turn(
        r#"{ fail = { status = 529, headers = { retry-after = "0" }, times = 1 } }, { say = "Half an answ" }, { fail = { dropped = true, times = 2 } }, { say = "er and " }, { wait_for = "rest" }, { say = "the rest." }"#,
    );
    let acts = vec![
        prompt("try hard"),
        Act::Gate("rest"),
        Act::Dwell(1_500),
        Act::Release("rest"),
        Act::TurnOver(0),
        Act::Dwell(2_000),
    ];
    vec![
        Scenario { smoke: true, ..failing("api_401", &error(401)) },
        failing("api_429_limit", limit),
        Scenario { retries: Some(2), ..failing("api_500_retries", &error(500)) },
        failing("api_529", &error(529)),
        failing("dropped_stream", r#"{ say = "Half an answ" }, { fail = "dropped" }"#),
        Scenario { retries: Some(4), ..scenario("recovered", again, acts) },
    ]
}

fn tool(maker: Maker) -> Option<Scenario> {
    Ask::Command.marker(maker)?;
    let run = format!("{{ say = \"I run it.\" }}, {{ run = {{ command = {SLOW_COMMAND:?}, escalated = true }} }}");
    let script = turn(&run) + &turn(r#"{ say = "It ran." }"#);
    let acts = vec![
        prompt("run it"),
        Act::Dialog(Ask::Command),
        Act::Dwell(1_000),
        Act::Approve(None),
        Act::File("started"),
        Act::Dwell(3_500),
        Act::Touch("go"),
        Act::TurnOver(1),
        Act::Dwell(1_500),
    ];
    Some(Scenario { smoke: true, ..scenario("tool_running", script, acts) })
}

fn denied(maker: Maker) -> Option<Scenario> {
    Ask::Command.marker(maker)?;
    let script = turn(r#"{ say = "I make it." }, { run = { command = "echo made > made.txt", escalated = true } }"#);
    let acts = vec![prompt("make it"), Act::Dialog(Ask::Command), Act::Dwell(1_200), Act::Deny, Act::Dwell(3_000)];
    Some(Scenario { smoke: true, ..scenario("deny", script, acts) })
}

/// Nobody answers for a while.
fn wait_at_dialog(maker: Maker) -> Option<Scenario> {
    Ask::Command.marker(maker)?;
    let script = turn(r#"{ say = "I make it." }, { run = { command = "echo made > made.txt", escalated = true } }"#);
    let acts = vec![prompt("make it"), Act::Dialog(Ask::Command), Act::Dwell(8_000)];
    Some(scenario("unanswered", script, acts))
}

/// Two tools in one answer, each with its question.
fn two_dialogs(maker: Maker) -> Option<Scenario> {
    (Ask::Command.marker(maker)? != Ask::Write.marker(maker)?).then_some(())?;
    let both = r#"{ say = "I do both." }, { write = { path = "made.txt", text = "made\n" } }, { run = { command = "echo other > other.txt", escalated = true } }"#;
    let script = turn(both) + &turn(r#"{ say = "Both are done." }"#);
    let acts = vec![
        prompt("do both"),
        Act::Dialog(Ask::Write),
        Act::Dwell(1_200),
        Act::Approve(None),
        Act::Dialog(Ask::Command),
        Act::Dwell(1_200),
        Act::Approve(None),
        Act::TurnOver(1),
        Act::Dwell(1_500),
    ];
    Some(scenario("two_dialogs", script, acts))
}

//! Reports the agent's state out of band, in escape sequences. Only changes are sent.

use super::look::Mood;
use crate::scenario::{AgentLook, PlayKind, QuestionKind, Scenario};

#[derive(Debug, Default)]
pub(super) struct Reporter {
    look: AgentLook,
    silent: bool,
    /// Whether the agent reports its state, besides a title. In the review loop Claude is 2.1.325, which reports its state
    /// to terminals that understand it. Turns of the loop may be too short for their screens to be read.
    reports_state: bool,
    title: Option<String>,
    state: Option<String>,
}

impl Reporter {
    pub(super) fn new(scenario: &Scenario) -> Reporter {
        let reports_state = scenario.look == AgentLook::Codex || scenario.play == PlayKind::Loop;
        Reporter { look: scenario.look, silent: scenario.silent, reports_state, ..Reporter::default() }
    }

    /// `frame` counts tenths of a second.
    pub(super) fn update(&mut self, mood: Mood, frame: u64) -> String {
        let mut sequences = String::new();
        if self.silent || mood == Mood::Starting {
            return sequences;
        }
        let state = state(mood, self.look.app());
        if self.reports_state && self.state.as_ref() != Some(&state) {
            sequences += &format!("\x1b]7501;{state}\x1b\\");
            self.state = Some(state);
        }
        let title = self.look.title(mood, self.reports_state, frame);
        if self.title.as_ref() != Some(&title) {
            sequences += &format!("\x1b]0;{title}\x07");
            self.title = Some(title);
        }
        sequences
    }

    /// Takes back what was reported, for an orderly exit.
    pub(super) fn farewell(&self) -> String {
        let state = if self.state.is_some() { "\x1b]7501;state=clear\x1b\\" } else { "" };
        let title = if self.title.is_some() { "\x1b]0;\x07" } else { "" };
        format!("{state}{title}")
    }
}

fn state(mood: Mood, app: &str) -> String {
    let (state, kind) = match mood {
        Mood::Starting | Mood::Idle => ("idle", ""),
        Mood::Working => ("working", ""),
        Mood::Blocked(QuestionKind::Question) => ("blocked", ":kind=question"),
        Mood::Blocked(_) => ("blocked", ":kind=permission"),
        Mood::Done => ("done", ""),
        Mood::Failed => ("error", ""),
    };
    format!("state={state}:app={app}{kind}")
}

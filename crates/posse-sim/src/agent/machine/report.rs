//! Reports the agent's state out of band. Only changes are sent.

use super::AgentEffect;
use crate::agent::look::Mood;
use crate::scenario::{AgentLook, QuestionKind, Scenario, SelfReport};

#[derive(Debug, Default)]
pub(super) struct Reporter {
    look: AgentLook,
    reports: Vec<SelfReport>,
    title: Option<String>,
    state: Option<String>,
}

impl Reporter {
    pub(super) fn new(scenario: &Scenario) -> Reporter {
        let reports = scenario.osc.clone().unwrap_or_else(|| scenario.look.usual_reports(scenario.play).to_vec());
        Reporter { look: scenario.look, reports, ..Reporter::default() }
    }

    /// `frame` counts tenths of a second.
    pub(super) fn update(&mut self, mood: Mood, frame: u64) -> Vec<AgentEffect> {
        let mut effects = Vec::new();
        if mood == Mood::Starting {
            return effects;
        }
        let reports_state = self.reports.contains(&SelfReport::State);
        if reports_state {
            let state = state(mood, self.look.app());
            if self.state.as_ref() != Some(&state) {
                effects.push(AgentEffect::Osc(format!("7501;{state}")));
                self.state = Some(state);
            }
        }
        if self.reports.contains(&SelfReport::Title) {
            let title = self.look.title(mood, reports_state, frame);
            if self.title.as_ref() != Some(&title) {
                effects.push(AgentEffect::Title(title.clone()));
                self.title = Some(title);
            }
        }
        effects
    }

    /// Takes back what was reported, for an orderly exit.
    pub(super) fn farewell(&mut self) -> Vec<AgentEffect> {
        let mut effects = Vec::new();
        if self.state.take().is_some() {
            effects.push(AgentEffect::Osc("7501;state=clear".to_owned()));
        }
        if self.title.take().is_some() {
            effects.push(AgentEffect::Title(String::new()));
        }
        effects
    }
}

fn state(mood: Mood, app: &str) -> String {
    let (state, kind) = match mood {
        Mood::Starting | Mood::Idle => ("idle", ""),
        Mood::Working => ("working", ""),
        Mood::Blocked(QuestionKind::Question | QuestionKind::Plan) => ("blocked", ":kind=question"),
        Mood::Blocked(_) => ("blocked", ":kind=permission"),
        Mood::Done => ("done", ""),
        Mood::Failed => ("error", ""),
    };
    format!("state={state}:app={app}{kind}")
}

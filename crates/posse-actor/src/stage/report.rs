//! What the agent says of itself out of band. Only changes are said.

use super::Effect;
use crate::look::{Look, Mood};
use crate::scenario::{AskKind, BusyTitle, Scenario, SelfReport};

#[derive(Debug)]
pub(super) struct Reporter {
    look: Look,
    busy_title: BusyTitle,
    reports: Vec<SelfReport>,
    title: Option<String>,
    state: Option<String>,
    progress: Option<u8>,
}

impl Reporter {
    pub(super) fn new(scenario: &Scenario) -> Reporter {
        let reports = scenario.osc.clone().unwrap_or_else(|| scenario.look.usual_reports(scenario.play).to_vec());
        let busy_title = scenario.busy_title;
        Reporter { look: scenario.look, busy_title, reports, title: None, state: None, progress: None }
    }

    pub(super) fn sends(&self, report: SelfReport) -> bool {
        self.reports.contains(&report)
    }

    /// `frame` counts tenths of a second.
    pub(super) fn update(&mut self, mood: Mood, name: &str, frame: u64) -> Vec<Effect> {
        let mut effects = Vec::new();
        if mood == Mood::Starting {
            return effects;
        }
        if self.sends(SelfReport::State) {
            let state = state(mood, self.look.app());
            if self.state.as_ref() != Some(&state) {
                effects.push(Effect::Osc(format!("7501;{state}")));
                self.state = Some(state);
            }
        }
        if self.sends(SelfReport::Progress) {
            let progress = if matches!(mood, Mood::Working | Mood::Blocked(_)) { 3 } else { 0 };
            if self.progress != Some(progress) {
                effects.push(Effect::Osc(format!("9;4;{progress}")));
                self.progress = Some(progress);
            }
        }
        if self.sends(SelfReport::Title) {
            // Claude drops the glyph where the terminal understands its state reports.
            let bare = self.look == Look::Claude && self.sends(SelfReport::State);
            let title = if bare { Some(name.to_owned()) } else { self.look.title(mood, name, self.busy_title, frame) };
            if title.is_some() && self.title != title {
                effects.extend(title.clone().map(Effect::Title));
                self.title = title;
            }
        }
        effects
    }

    /// What is taken back at an orderly exit.
    pub(super) fn farewell(&mut self) -> Vec<Effect> {
        let mut effects = Vec::new();
        if self.state.take().is_some() {
            effects.push(Effect::Osc("7501;state=clear".to_owned()));
        }
        if self.progress.take().is_some_and(|progress| progress != 0) {
            effects.push(Effect::Osc("9;4;0".to_owned()));
        }
        if self.title.take().is_some() {
            effects.push(Effect::Title(String::new()));
        }
        effects
    }
}

fn state(mood: Mood, app: &str) -> String {
    let (state, kind) = match mood {
        Mood::Starting | Mood::Idle => ("idle", None),
        Mood::Working => ("working", None),
        Mood::Blocked(AskKind::Question | AskKind::Plan) => ("blocked", Some("question")),
        Mood::Blocked(_) => ("blocked", Some("permission")),
        Mood::Done => ("done", None),
        Mood::Failed => ("error", None),
    };
    let kind = kind.map(|kind| format!(":kind={kind}")).unwrap_or_default();
    format!("state={state}:app={app}{kind}")
}

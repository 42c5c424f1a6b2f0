//! Commands that check the plan as a whole. They run once, on the result, when every task is done. A plan counts as
//! verified only after they have run.

use super::{Effect, PlanCheck, Run};
use crate::engine::{Machine, RunOutcome};
use crate::plan::State;
use crate::plan::file::Plan;
use crate::plan::gates::GateVerdict;
use crate::plan::select::{Standing, finished};
use crate::plan::settings::Settings;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum AfterPlan {
    /// There are none, or an earlier run has their result.
    NotDue,
    Due,
    Asked,
    Said(Vec<PlanCheck>),
}

impl AfterPlan {
    pub(super) fn at_begin(plan: &Plan, state: &State, settings: &Settings) -> Self {
        let is_complete = settings.was_complete && finished(plan, state) == Some(Standing::Complete);
        if is_complete { Self::NotDue } else { Self::when_done(settings) }
    }

    fn when_done(settings: &Settings) -> Self {
        match (settings.after_plan, settings.skip_after_plan) {
            (false, _) => Self::NotDue,
            (true, false) => Self::Due,
            // The operator skips them, so another run has to run them.
            (true, true) => {
                let verdict = GateVerdict::NotRun("left out; run it again without --skip-smoke".into());
                Self::Said(vec![PlanCheck { gate: "checks of the whole plan".into(), verdict }])
            }
        }
    }
}

impl Run {
    /// Returns the results of the checks of the whole plan.
    pub fn plan_checks(&self) -> &[PlanCheck] {
        match &self.after_plan {
            AfterPlan::Said(checks) => checks,
            _ => &[],
        }
    }

    pub(super) fn checks_plan(&self) -> bool {
        self.after_plan == AfterPlan::Asked
    }

    /// Reports whether the whole plan is done, and no check of it is left for another run.
    pub fn has_completed_plan(&self) -> bool {
        let checks_are_open = self.plan_checks().iter().any(|check| matches!(check.verdict, GateVerdict::NotRun(_)));
        let succeeded = self.outcome().is_some_and(|(outcome, _)| outcome.is_success());
        succeeded && self.settings.only.is_none() && self.settings.from.is_none() && !checks_are_open
    }

    /// Invalidates earlier results: the state changes from now on.
    pub(super) fn work_begins(&mut self) {
        self.after_plan = AfterPlan::when_done(&self.settings);
    }

    /// Handles a complete plan: every task is done, and none has failed.
    pub(super) fn complete(&mut self) {
        match &self.after_plan {
            AfterPlan::Asked => {}
            AfterPlan::Due if self.progress.stop.is_some() => {
                let reason = "stopped on request; every task is done, the checks of the whole plan are not";
                self.finish(RunOutcome::Stopped, reason.into());
            }
            AfterPlan::Due => {
                self.after_plan = AfterPlan::Asked;
                self.progress.request(Effect::CheckPlan);
            }
            AfterPlan::NotDue | AfterPlan::Said(_) => self.conclude(),
        }
    }

    fn conclude(&mut self) {
        let told = |counts: fn(&GateVerdict) -> bool| {
            let checks = self.plan_checks().iter().filter(|check| counts(&check.verdict));
            checks.map(|check| format!("{}: {}", check.gate, check.verdict)).collect::<Vec<_>>()
        };
        let red = told(|verdict| matches!(verdict, GateVerdict::Red(_)));
        if !red.is_empty() {
            let reason = format!("every task is done, but the plan as a whole does not hold: {}", red.join("; "));
            return self.finish(RunOutcome::Failed, reason);
        }
        let mut remarks = told(|verdict| matches!(verdict, GateVerdict::NotRun(_)));
        if self.has_warnings() {
            remarks.insert(0, "validators had remarks".into());
        }
        if remarks.is_empty() {
            return self.finish(RunOutcome::Verified, "every task is done".into());
        }
        self.finish(RunOutcome::CompletedWithWarnings, format!("every task is done; {}", remarks.join("; ")));
    }
}

//! The common parts of `posse plan run` and `posse auto`: options for sessions, checks before a run begins, and how the
//! run ended.

use jiff::Timestamp;
use posse_agents::headless::{DEFAULT_PROVIDER, Sandbox};
use posse_api::{RunView, SessionRules, TaskView};
use posse_core::auto::Standing;
use posse_core::engine::RunOutcome;
use posse_core::review_loop::config::Notifications;

use super::follow::{Follower, OnSignal};
use super::rows::is_given_up;
use crate::client::Client;
use crate::cmd::loop_run;
use crate::cmd::plan::configuration::Loaded;
use crate::error::{BadArgument, Error, Exit};
use crate::ui::{Colour, Ui, plain};

/// Options of commands that start sessions.
#[derive(Debug, clap::Args)]
pub(crate) struct SessionArgs {
    /// The branch that gathers the results [default: the one that is checked out]
    #[arg(long, value_name = "NAME")]
    pub(in crate::cmd) branch: Option<String>,
    /// Whose sessions; `posse provider list` shows who there is
    #[arg(long, value_name = "PROVIDER", default_value = DEFAULT_PROVIDER)]
    pub(in crate::cmd) provider: String,
    /// Sessions may do everything, and are never asked
    #[arg(long)]
    pub(in crate::cmd) no_sandbox: bool,
    /// End with 75 instead of waiting for the quota to come back
    #[arg(long)]
    pub(in crate::cmd) no_wait: bool,
    /// What this run may spend, in US dollars; 0 is nothing
    #[arg(long, value_name = "USD", env = "POSSE_BUDGET_CAP", hide_env_values = true, value_parser = amount)]
    pub(in crate::cmd) budget_cap: Option<f64>,
    /// Show what sessions do and say, too
    #[arg(long, short, conflicts_with_all = ["quiet", "detach"])]
    verbose: bool,
    /// Begin it, print its id, and do not follow it
    #[arg(long, short)]
    detach: bool,
}

/// Reads money and shares of it.
pub(in crate::cmd) fn amount(text: &str) -> Result<f64, BadArgument> {
    let amount = text.trim().parse().ok().filter(|amount: &f64| amount.is_finite() && *amount >= 0.0);
    amount.ok_or_else(|| BadArgument::Amount(text.to_owned()))
}

impl SessionArgs {
    /// What sessions of the run go by.
    pub(in crate::cmd) fn rules(
        &self,
        configured: Loaded,
        sandbox: Sandbox,
        asked: Timestamp,
        notifications: Notifications,
    ) -> SessionRules {
        SessionRules {
            provider: self.provider.clone(),
            sandbox,
            branch: self.branch.clone(),
            config: configured.resolved.config,
            config_file: configured.file,
            notifications,
            asked,
        }
    }

    /// Follows a run that was begun, unless it is to run on its own, and returns its exit code.
    pub(in crate::cmd) async fn follow(&self, client: Client, begun: &RunView, ui: &Ui) -> Result<Exit, Error> {
        if self.detach {
            ui.answer(begun, || format!("{}\n", begun.id));
            return Ok(Exit::Ok);
        }
        let follower = Follower::alone(client, begun, OnSignal::StopGently, ui).with_sessions(self.verbose);
        print_end(&follower.until_over_or_signal().await?, ui)
    }
}

/// Prints what the user should know before sessions of `what` begin.
pub(in crate::cmd) fn print_warnings(what: &str, loaded: &Loaded, sandbox: Sandbox, ui: &Ui) {
    loaded.warnings().iter().for_each(|warning| ui.warn(&format!("warning: {warning}")));
    if sandbox == Sandbox::Off {
        ui.warn(&format!(
            "THE SANDBOX IS OFF: sessions of this {what} may do everything on this machine, and nobody is asked."
        ));
    }
}

/// Prints how a run ended, as JSON the run itself, and returns the exit code.
pub(in crate::cmd) fn print_end(run: &RunView, ui: &Ui) -> Result<Exit, Error> {
    if let RunView::Loop(view) = run {
        return loop_run::over(view, ui);
    }
    let Some(outcome) = run.outcome else { return Ok(Exit::Bug) };
    let colour = if outcome.is_success() { Colour::Green } else { Colour::Red };
    ui.item(run, || ui.paint(&ended(outcome, run.reason.as_deref()), colour));
    ui.say(&format!("{} sessions, {}", run.used.sessions, run.used.cost()));
    match run {
        RunView::Plan(view) => {
            view.report.iter().for_each(|report| ui.say(&format!("report: {report}")));
            let asks = |task: &&TaskView| task.record.question.is_some() && outcome == RunOutcome::Suspended;
            for TaskView { id, .. } in view.tasks.iter().filter(asks) {
                ui.say(&format!("`posse run answer {} {id} TEXT` answers task {id}", view.file));
            }
        }
        RunView::Backlog(view) => {
            if let Some(failed) = view.items.iter().find(|item| is_given_up(item)) {
                ui.say(&format!(
                    "`posse run why {0} {1}` says why, `posse run log {0} {1}` what was done",
                    run.id, failed.item
                ));
            }
            if view.items.iter().any(|item| item.standing == Standing::Parked) {
                ui.say("`posse run show` shows what waits for you");
            }
        }
        RunView::Loop(_) => {}
    }
    Ok(exit(outcome))
}

/// The outcome of a run, and the reason.
pub(in crate::cmd) fn ended(outcome: RunOutcome, reason: Option<&str>) -> String {
    let word = outcome.words();
    match reason.map(plain) {
        None => word.to_owned(),
        Some(reason) if reason.contains(word) => reason,
        Some(reason) => format!("{word}: {reason}"),
    }
}

fn exit(outcome: RunOutcome) -> Exit {
    match outcome {
        RunOutcome::Verified | RunOutcome::CompletedWithWarnings => Exit::Ok,
        RunOutcome::Failed => Exit::Failed,
        RunOutcome::BudgetExhausted => Exit::OutOfMoney,
        RunOutcome::Stopped => Exit::Stopped,
        RunOutcome::CircuitOpen => Exit::CircuitOpen,
        RunOutcome::Deadlocked | RunOutcome::InvalidPlan => Exit::Invalid,
        RunOutcome::Suspended => Exit::Suspended,
        RunOutcome::InternalError => Exit::Bug,
        RunOutcome::RateLimited => Exit::OutOfQuota,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_have_their_exit_codes() {
        for (outcome, code) in [
            (RunOutcome::Verified, 0),
            (RunOutcome::CompletedWithWarnings, 0),
            (RunOutcome::Failed, 1),
            (RunOutcome::BudgetExhausted, 2),
            (RunOutcome::Stopped, 3),
            (RunOutcome::CircuitOpen, 4),
            (RunOutcome::Deadlocked, 5),
            (RunOutcome::InvalidPlan, 5),
            (RunOutcome::Suspended, 7),
            (RunOutcome::InternalError, 70),
            (RunOutcome::RateLimited, 75),
        ] {
            assert_eq!(exit(outcome) as i32, code, "{outcome:?}");
        }
    }
}

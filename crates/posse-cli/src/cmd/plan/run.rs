//! `posse plan run`: carry out a plan.

use std::path::PathBuf;

use jiff::Timestamp;
use posse_agents::headless::{DEFAULT_PROVIDER, Sandbox};
use posse_api::{BudgetIn, MeansIn, PlanIn, PlanView};
use posse_core::plan::machine::RunOutcome;

use super::configuration::{self, Loaded};
use super::dry_run;
use super::follow::PlanRun;
use super::trust;
use crate::client::{self, Client, Repeat};
use crate::cmd::follow::{Follower, NoOnlooker};
use crate::cmd::launch;
use crate::cmd::tail::{RunKind, RunTail};
use crate::config;
use crate::error::{BadArgument, Error, Exit};
use crate::ui::{Colour, Ui, plain};

/// Carry out a plan: each task in a fresh headless session, in a work tree of its own
///
/// A task counts when its session says so, when something shows that it was done, when your checks pass, and when its work is
/// merged into the branch that is checked out. Your uncommitted changes are never touched. The run lives in the daemon: this
/// command only follows it, and a run that was cut off goes on where it was when you call it again.
///
/// Ctrl-C lets what runs finish for ten seconds and then ends it; a second Ctrl-C ends it at once.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  posse plan run plan.yaml                 all of it, or what is left
  posse plan run --dry-run plan.yaml       what would be done, in which order, with which permissions
  posse plan run --only 2.1 plan.yaml      one task
  posse plan run --single-task plan.yaml   the next one, whichever that is
  posse plan run --reset 2.1 plan.yaml     all of it, and 2.1 again from the beginning
  posse plan run -v plan.yaml              with what sessions do and say
  posse plan run --budget-cap 5 plan.yaml  for five dollars at most
  posse plan run --parallel plan.yaml      members of a parallel_group at the same time
  posse plan run --detach plan.yaml        do not follow it; `posse plan status plan.yaml` shows it

Exit codes: 0 done, 1 a task failed, 2 out of money, 3 stopped, 4 sessions failed one after the other, 5 not valid or \
deadlocked, 6 runs already with other options, 7 waits for an answer, 64 wrong use, 69 no agent installed, 75 out of quota \
with --no-wait, 130 Ctrl-C.")]
pub(crate) struct Args {
    /// The plan
    pub(super) file: PathBuf,
    /// Say what would be done; start nothing, write nothing
    #[arg(long)]
    dry_run: bool,
    /// Only this task
    #[arg(long, value_name = "TASK")]
    pub(super) only: Option<String>,
    /// This task and those behind it
    #[arg(long, value_name = "TASK", alias = "resume-from", conflicts_with = "only")]
    pub(super) from: Option<String>,
    /// Only the task that is next, then end
    #[arg(long, conflicts_with = "only")]
    pub(super) single_task: bool,
    /// Do this task again from the beginning; may be given several times
    #[arg(long, value_name = "TASK")]
    pub(super) reset: Vec<String>,
    /// Sessions at once, for members of a parallel_group [default: as the plan says; without a number as configured, 4]
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true, default_missing_value = "0")]
    pub(super) parallel: Option<u32>,
    /// The branch that gathers the results [default: the one that is checked out]
    #[arg(long, value_name = "NAME")]
    branch: Option<String>,
    /// With `isolation: in_place`: begin although there are uncommitted changes; sessions may not commit these
    #[arg(long)]
    allow_dirty: bool,
    /// Whose sessions; `posse provider list` shows who there is
    #[arg(long, value_name = "PROVIDER", default_value = DEFAULT_PROVIDER)]
    pub(super) provider: String,
    /// Sessions may do everything, and are never asked
    #[arg(long)]
    no_sandbox: bool,
    /// End with 75 instead of waiting for the quota to come back
    #[arg(long)]
    no_wait: bool,
    /// Start sessions at once, though the quota was found to be used up
    #[arg(long, conflicts_with = "no_wait")]
    try_now: bool,
    /// What this run may spend, in US dollars; 0 is nothing
    #[arg(long, value_name = "USD", env = "POSSE_BUDGET_CAP", hide_env_values = true, value_parser = amount)]
    budget_cap: Option<f64>,
    /// What this plan may spend, over what it says itself; 0 is no limit
    #[arg(long, value_name = "USD", env = "POSSE_QUOTA_CEILING", hide_env_values = true, value_parser = amount)]
    quota_ceiling: Option<f64>,
    /// How much of the ceiling may be spent
    #[arg(long, value_name = "PERCENT", env = "POSSE_MAX_BUDGET_PCT", hide_env_values = true, value_parser = amount)]
    max_budget_pct: Option<f64>,
    /// How much of the ceiling must stay
    #[arg(long, value_name = "USD", env = "POSSE_RESERVED_BUDGET", hide_env_values = true, value_parser = amount)]
    reserved_budget: Option<f64>,
    /// Where the stop file is looked for, below the project [default: as configured, .posse/state]
    #[arg(long, value_name = "DIR")]
    state: Option<String>,
    /// Treat warnings about the plan as errors: nothing is started
    #[arg(long)]
    pub(super) strict: bool,
    /// Show what sessions do and say, too
    #[arg(long, short, conflicts_with = "quiet")]
    verbose: bool,
    /// Leave out checks with `when: after_plan`; they are still to be made
    #[arg(long)]
    skip_smoke: bool,
    /// Begin it, print its id, and do not follow it
    #[arg(long, short)]
    detach: bool,
    /// The project [default: here]
    #[arg(long, short = 'C', value_name = "DIRECTORY", default_value = ".")]
    pub(super) directory: PathBuf,
}

/// Money and shares of it.
pub(crate) fn amount(text: &str) -> Result<f64, BadArgument> {
    let amount = text.trim().parse().ok().filter(|amount: &f64| amount.is_finite() && *amount >= 0.0);
    amount.ok_or_else(|| BadArgument::Amount(text.to_owned()))
}

pub(super) async fn run(args: Args, ui: &Ui) -> Result<Exit, Error> {
    let asked = Timestamp::now();
    let mut configured = configuration::load(&args.directory)?;
    if let Some(state) = &args.state {
        configured.set_state(state)?;
    }
    let sandbox = configured.sandbox(args.no_sandbox, ui)?;
    if args.dry_run {
        return dry_run::run(&args, sandbox, configured.config(), ui);
    }
    // Said where the mistake is, before anything is started.
    if super::shows_problems(&args.file, &args.directory, configured.config(), args.strict, ui)? {
        return Ok(Exit::Invalid);
    }
    configured.warnings().iter().for_each(|warning| ui.warn(&format!("warning: {warning}")));
    let running = super::running(&args.file).await?;
    if running.is_none() {
        trust::ensure(&configured, Some(&args.file), &args.directory, ui).await?;
    }
    if let Some((_, view)) = running {
        args.join(&view)?;
        ui.say(&format!("run {} of this plan goes on already; this command follows it", view.id));
    }
    if sandbox == Sandbox::Off {
        ui.warn("THE SANDBOX IS OFF: sessions of this plan may do everything on this machine, and nobody is asked.");
    }
    let body = PlanIn { asked: Some(asked), ..args.wanted(sandbox, configured)? };
    let mut client = Client::connect().await?;
    let view: PlanView = client.post("/plans", &body, Repeat::Safe).await?;
    if args.detach {
        ui.answer(&view, || format!("{}\n", view.id));
        return Ok(Exit::Ok);
    }
    let file = args.file.display().to_string();
    let tail = RunTail::new(RunKind::Plan, view.id).with_sessions(args.verbose);
    let run = PlanRun { id: view.id, body, file: file.clone() };
    let view = Follower::new(client, run, tail, None::<NoOnlooker>, ui).run_its_course().await?;
    Ok(over(&view, &file, ui))
}

impl Args {
    /// What is special about this run.
    fn wishes(&self) -> Vec<String> {
        let value = |name: &str, value: &Option<String>| value.as_ref().map(|value| format!("{name} {value}"));
        let flag = |name: &str, given: bool| given.then(|| name.to_owned());
        let amount = |name: &str, amount: Option<f64>| amount.map(|amount| format!("{name} {amount}"));
        let wishes = [
            value("--only", &self.only),
            value("--from", &self.from),
            flag("--single-task", self.single_task),
            value("--parallel", &self.parallel.map(|workers| workers.to_string())),
            value("--branch", &self.branch),
            flag("--no-sandbox", self.no_sandbox),
            flag("--no-wait", self.no_wait),
            flag("--skip-smoke", self.skip_smoke),
            flag("--allow-dirty", self.allow_dirty),
            value("--provider", &Some(&self.provider).filter(|provider| *provider != DEFAULT_PROVIDER).cloned()),
            value("--state", &self.state),
            amount("--budget-cap", self.budget_cap),
            amount("--quota-ceiling", self.quota_ceiling),
            amount("--max-budget-pct", self.max_budget_pct),
            amount("--reserved-budget", self.reserved_budget),
        ];
        wishes.into_iter().flatten().chain(self.reset.iter().map(|task| format!("--reset {task}"))).collect()
    }

    /// A run that goes on does what it was begun for. Other wishes are not just forgotten; the same command again goes on.
    fn join(&self, view: &PlanView) -> Result<(), Error> {
        let new: Vec<String> = self.wishes().into_iter().filter(|wish| !view.wishes.contains(wish)).collect();
        if new.is_empty() {
            return Ok(());
        }
        let file = self.file.display();
        Err(Error::Running {
            message: format!("run {} of this plan goes on already, without {}", view.id, new.join(", ")),
            hint: format!("`posse plan run {file}` follows it; `posse plan stop {file}` stops it first"),
        })
    }

    fn wanted(&self, sandbox: Sandbox, configured: Loaded) -> Result<PlanIn, Error> {
        let directory =
            std::fs::canonicalize(&self.directory).map_err(Error::io(self.directory.display().to_string()))?;
        Ok(PlanIn {
            file: client::absolute(&self.file)?,
            directory: client::absolute(&directory)?,
            provider: Some(self.provider.clone()),
            no_sandbox: sandbox == Sandbox::Off,
            branch: self.branch.clone(),
            allow_dirty: self.allow_dirty,
            only: self.only.clone(),
            from: self.from.clone(),
            single: self.single_task,
            reset: self.reset.clone(),
            workers: self.parallel,
            no_wait: self.no_wait,
            skip_after_plan: self.skip_smoke,
            wishes: self.wishes(),
            try_now: self.try_now,
            cap_usd: self.budget_cap,
            budget: BudgetIn {
                ceiling_usd: self.quota_ceiling,
                percent: self.max_budget_pct,
                reserved_usd: self.reserved_budget,
            },
            notifications: config::notifications()?,
            config: configured.resolved.config,
            config_file: configured.file,
            asked: None,
            // Sessions have no screen: they live with our keeper, wherever terminals live.
            means: MeansIn { environment: launch::environment() },
        })
    }
}

/// How a run ended, in words and as an exit code.
fn over(view: &PlanView, file: &str, ui: &Ui) -> Exit {
    let Some(outcome) = view.outcome else { return Exit::Bug };
    if ui.json() {
        ui.item(view, String::new);
        return exit(outcome);
    }
    let colour = if outcome.is_success() { Colour::Green } else { Colour::Red };
    let reason = view.reason.as_deref().map(|reason| format!(": {}", plain(reason))).unwrap_or_default();
    ui.line(&format!("{}{reason}", ui.paint(outcome.words(), colour)));
    ui.say(&format!("{} sessions, {}", view.used.sessions, view.used.cost()));
    if let Some(report) = &view.report {
        ui.say(&format!("report: {report}"));
    }
    for task in view.tasks.iter().filter(|task| task.record.question.is_some() && outcome == RunOutcome::Suspended) {
        ui.say(&format!("`posse plan answer {file} {} TEXT` answers task {}", task.id, task.id));
    }
    exit(outcome)
}

/// The exit codes of `RunOutcome::exit_code`, as ours.
pub(crate) fn exit(outcome: RunOutcome) -> Exit {
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
    fn exit_codes_are_those_of_the_machine() {
        for outcome in [
            RunOutcome::Verified,
            RunOutcome::CompletedWithWarnings,
            RunOutcome::Failed,
            RunOutcome::Deadlocked,
            RunOutcome::Suspended,
            RunOutcome::Stopped,
            RunOutcome::BudgetExhausted,
            RunOutcome::CircuitOpen,
            RunOutcome::RateLimited,
            RunOutcome::InvalidPlan,
            RunOutcome::InternalError,
        ] {
            assert_eq!(exit(outcome) as i32, outcome.exit_code(), "{outcome:?}");
        }
    }
}

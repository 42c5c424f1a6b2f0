//! `posse plan run`: carry out a plan.

use std::path::PathBuf;

use jiff::Timestamp;
use posse_agents::headless::DEFAULT_PROVIDER;
use posse_api::{PlanIn, PlanView, ProblemKind, RunIn, RunView, SessionRules};
use posse_core::plan::Plan;
use posse_core::plan::config::PlanConfig;
use posse_core::plan::file::BudgetMeta;

use super::configuration;
use super::trust;
use super::{CheckedPlan, dry_run};
use crate::client::{self, Client, Repeat};
use crate::cmd::launch;
use crate::cmd::run::sessions::{SessionArgs, amount, print_warnings};
use crate::config;
use crate::error::{Error, Exit};
use crate::ui::Ui;

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
  posse plan run --detach plan.yaml        do not follow it; `posse run show plan.yaml` shows it

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
    /// With `isolation: in_place`: begin although there are uncommitted changes; sessions may not commit these
    #[arg(long)]
    allow_dirty: bool,
    #[command(flatten)]
    pub(super) sessions: SessionArgs,
    /// Start sessions at once, though the quota was found to be used up
    #[arg(long, conflicts_with = "no_wait")]
    try_now: bool,
    /// What this plan may spend, over what it says itself; 0 is no limit
    #[arg(long, value_name = "USD", env = "POSSE_QUOTA_CEILING", hide_env_values = true, value_parser = amount)]
    quota_ceiling: Option<f64>,
    /// The share of the ceiling that may be spent
    #[arg(long, value_name = "PERCENT", env = "POSSE_MAX_BUDGET_PCT", hide_env_values = true, value_parser = amount)]
    max_budget_pct: Option<f64>,
    /// The part of the ceiling that must stay
    #[arg(long, value_name = "USD", env = "POSSE_RESERVED_BUDGET", hide_env_values = true, value_parser = amount)]
    reserved_budget: Option<f64>,
    /// The directory of the stop file, below the project [default: as configured, .posse/state]
    #[arg(long, value_name = "DIR")]
    state: Option<String>,
    /// Treat warnings about the plan as errors: nothing is started
    #[arg(long)]
    pub(super) strict: bool,
    /// Leave out checks with `when: after_plan`; they are still to be made
    #[arg(long)]
    skip_smoke: bool,
    /// The project [default: here]
    #[arg(long, short = 'C', value_name = "DIRECTORY", default_value = ".")]
    pub(super) directory: PathBuf,
}

pub(super) async fn run(args: Args, ui: &Ui) -> Result<Exit, Error> {
    let asked = Timestamp::now();
    let mut configured = configuration::load(&args.directory)?;
    if let Some(state) = &args.state {
        configured.set_state(state)?;
    }
    let sandbox = configured.sandbox(args.sessions.no_sandbox, ui)?;
    let config = configured.config();
    if args.dry_run {
        return dry_run::run(&args, sandbox, config, ui);
    }
    // Report errors of the plan before anything is started.
    if args.usable_plan(config, ui)?.is_none() {
        return Ok(Exit::Invalid);
    }
    match super::running_plan(&args.file).await? {
        Some(view) => {
            args.join(&view)?;
            ui.say(&format!("run {} of this plan goes on already; this command follows it", view.id));
        }
        None => trust::ensure(&configured, Some(&args.file), &args.directory, ui).await?,
    }
    print_warnings("plan", &configured, sandbox, ui);
    let rules = args.sessions.rules(configured, sandbox, asked, config::notifications()?);
    let body = RunIn::Plan(Box::new(args.request(rules)?));
    let mut client = Client::connect().await?;
    let run: RunView = client.post("/runs", &body, Repeat::Safe).await?;
    args.sessions.follow(client, &run, ui).await
}

impl Args {
    /// Prints warnings, and what keeps the plan from running; `None` if something does.
    pub(super) fn usable_plan(&self, config: &PlanConfig, ui: &Ui) -> Result<Option<Plan>, Error> {
        let file = CheckedPlan::read(&self.file)?.checked(&self.directory, config, self.strict);
        file.print_warnings(ui);
        Ok(file.usable(ui))
    }

    /// The options that make this run differ from a plain one.
    fn wishes(&self) -> Vec<String> {
        let given = |given: bool| given.then(String::new);
        let amount = |amount: Option<f64>| amount.map(|amount| amount.to_string());
        let SessionArgs { provider, .. } = &self.sessions;
        let wishes = [
            ("--only", self.only.clone()),
            ("--from", self.from.clone()),
            ("--single-task", given(self.single_task)),
            ("--parallel", self.parallel.map(|workers| workers.to_string())),
            ("--branch", self.sessions.branch.clone()),
            ("--no-sandbox", given(self.sessions.no_sandbox)),
            ("--no-wait", given(self.sessions.no_wait)),
            ("--skip-smoke", given(self.skip_smoke)),
            ("--allow-dirty", given(self.allow_dirty)),
            ("--provider", Some(provider.clone()).filter(|provider| provider != DEFAULT_PROVIDER)),
            ("--state", self.state.clone()),
            ("--budget-cap", amount(self.sessions.budget_cap)),
            ("--quota-ceiling", amount(self.quota_ceiling)),
            ("--max-budget-pct", amount(self.max_budget_pct)),
            ("--reserved-budget", amount(self.reserved_budget)),
        ];
        let reset = self.reset.iter().map(|task| ("--reset", Some(task.clone())));
        let wishes = wishes.into_iter().chain(reset);
        wishes.filter_map(|(name, value)| Some(format!("{name} {}", value?).trim_end().to_owned())).collect()
    }

    /// Refuses options that a run under way was not begun with. The same command again follows the run.
    fn join(&self, view: &PlanView) -> Result<(), Error> {
        let new: Vec<String> = self.wishes().into_iter().filter(|wish| !view.wishes.contains(wish)).collect();
        if new.is_empty() {
            return Ok(());
        }
        let file = self.file.display();
        Err(Error::new(
            ProblemKind::Running,
            format!("run {} of this plan goes on already, without {}", view.id, new.join(", ")),
        )
        .with_hint(format!("`posse plan run {file}` follows it; `posse run stop {file}` stops it first")))
    }

    fn request(&self, sessions: SessionRules) -> Result<PlanIn, Error> {
        Ok(PlanIn {
            file: client::absolute(&self.file)?,
            directory: client::absolute(&client::real(&self.directory)?)?,
            sessions,
            allow_dirty: self.allow_dirty,
            only: self.only.clone(),
            from: self.from.clone(),
            single: self.single_task,
            reset: self.reset.clone(),
            workers: self.parallel,
            no_wait: self.sessions.no_wait,
            skip_after_plan: self.skip_smoke,
            wishes: self.wishes(),
            try_now: self.try_now,
            cap_usd: self.sessions.budget_cap,
            budget: BudgetMeta {
                ceiling_usd: self.quota_ceiling,
                percent: self.max_budget_pct,
                reserved_usd: self.reserved_budget,
            },
            environment: launch::environment(),
        })
    }
}

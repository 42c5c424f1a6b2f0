//! `posse auto`: begin a pipeline and follow it.

use posse_agents::headless::{DEFAULT_PROVIDER, Sandbox};
use posse_api::{AutoIn, AutoLimitsIn, AutoView, MeansIn, ProblemKind};
use posse_core::auto::settings::Mode;
use posse_core::backlog::BacklogDirs;
use posse_core::rounds::config::Notifications;

use super::follow::Pipeline;
use super::{Where, draw, dry_run, slug};
use crate::client::{self, Client, Repeat};
use crate::cmd::follow::{Follower, NoOnlooker, OnSignal};
use crate::cmd::plan::configuration::{self, Loaded};
use crate::cmd::plan::trust;
use crate::cmd::tail::{RunKind, RunTail};
use crate::cmd::{launch, plan};
use crate::config;
use crate::error::{Error, Exit};
use crate::ui::{Colour, Ui};

/// Files in which projects say how things are done there.
const CONVENTIONS: [&str; 3] = ["CLAUDE.md", "AGENTS.md", "CONTRIBUTING.md"];

#[derive(Debug, clap::Args)]
pub(crate) struct RunArgs {
    /// One item, then end
    #[arg(long, conflicts_with = "drain")]
    once: bool,
    /// End when nothing is left that can be begun
    #[arg(long)]
    drain: bool,
    /// Only this item, by name or file; implies --once
    #[arg(long, value_name = "ITEM", alias = "single-item")]
    pub(super) item: Option<String>,
    /// Say what would be done; start nothing, write nothing
    #[arg(long)]
    dry_run: bool,
    /// No more than so many items
    #[arg(long, value_name = "N")]
    max_items: Option<u32>,
    /// What this run may spend, in US dollars
    #[arg(long, value_name = "USD", env = "POSSE_BUDGET_CAP", hide_env_values = true, value_parser = plan::amount)]
    budget_cap: Option<f64>,
    /// Tell nobody; what happens is shown and written down all the same
    #[arg(long)]
    no_notify: bool,
    /// Take an item up again that was given up or waits for somebody; may be given several times
    #[arg(long, value_name = "ITEM")]
    retry: Vec<String>,
    /// The branch that gathers the results [default: the one that is checked out]
    #[arg(long, value_name = "NAME")]
    branch: Option<String>,
    /// Whose sessions; `posse provider list` shows who there is
    #[arg(long, value_name = "PROVIDER", default_value = DEFAULT_PROVIDER)]
    provider: String,
    /// Sessions may do everything, and are never asked
    #[arg(long)]
    no_sandbox: bool,
    /// End with 75 instead of waiting for the quota to come back
    #[arg(long)]
    no_wait: bool,
    /// Show what sessions do and say, too
    #[arg(long, short, conflicts_with = "detach")]
    verbose: bool,
    /// Begin it, print its id, and do not follow it
    #[arg(long, short)]
    detach: bool,
    #[command(flatten)]
    pub(super) place: Where,
}

pub(super) async fn run(args: RunArgs, ui: &Ui) -> Result<Exit, Error> {
    let asked = jiff::Timestamp::now();
    let configured = configuration::load(&args.place.project()?)?;
    let sandbox = configured.sandbox(args.no_sandbox, ui)?;
    if args.dry_run {
        return dry_run::run(&args, ui);
    }
    if sandbox == Sandbox::Off {
        ui.warn("THE SANDBOX IS OFF: sessions of this backlog may do everything on this machine, and nobody is asked.");
    }
    configured.warnings().iter().for_each(|warning| ui.warn(&format!("warning: {warning}")));
    trust::ensure(&configured, None, &args.place.project()?, ui).await?;
    let body = args.wanted(sandbox, configured, asked)?;
    let mut client = Client::connect().await?;
    let view: AutoView = match client.post("/auto", &body, Repeat::Safe).await {
        // Who asks again because the answer was lost is told of its own.
        Err(error @ Error::Refused(_)) if error.kind() == ProblemKind::InUse => {
            ui.error(&error);
            return Ok(Exit::Locked);
        }
        begun => begun?,
    };
    if args.detach {
        ui.answer(&view, || format!("{}\n", view.id));
        return Ok(Exit::Ok);
    }
    let pipeline = Pipeline::new(view.id, body.means, OnSignal::StopGently);
    let tail = RunTail::new(RunKind::Backlog, view.id).with_sessions(args.verbose);
    let view = Follower::new(client, pipeline, tail, None::<NoOnlooker>, ui).run_its_course().await?;
    Ok(over(&view, ui))
}

/// The environment of sessions. They have no screen: they live with our keeper, wherever terminals live.
pub(super) fn means() -> MeansIn {
    MeansIn { environment: launch::environment() }
}

impl RunArgs {
    /// When it is through.
    fn mode(&self) -> Mode {
        match (self.once || self.item.is_some(), self.drain) {
            (_, true) => Mode::Drain,
            (true, false) => Mode::Once,
            (false, false) => Mode::Watch,
        }
    }

    /// How many items are begun at most.
    pub(super) fn most(&self) -> usize {
        let limit = self.max_items.map_or(usize::MAX, |most| most as usize);
        if self.mode() == Mode::Once { limit.min(1) } else { limit }
    }

    fn wanted(&self, sandbox: Sandbox, configured: Loaded, asked: jiff::Timestamp) -> Result<AutoIn, Error> {
        let project = self.place.project()?;
        let name = |typed: &String| slug(typed).map(String::from);
        Ok(AutoIn {
            directory: client::absolute(&project)?,
            mode: self.mode(),
            item: self.item.as_ref().map(name).transpose()?,
            max_items: self.max_items,
            retry: self.retry.iter().map(name).collect::<Result<_, _>>()?,
            shelves: self.place.backlog_dir.as_deref().map(BacklogDirs::below),
            config: configured.resolved.config,
            config_file: configured.file,
            asked: Some(asked),
            provider: Some(self.provider.clone()),
            no_sandbox: sandbox == Sandbox::Off,
            branch: self.branch.clone(),
            conventions: CONVENTIONS.map(str::to_owned).to_vec(),
            no_wait: self.no_wait,
            cap_usd: self.budget_cap,
            limits: AutoLimitsIn::default(),
            notifications: self.notifications()?,
            means: means(),
        })
    }

    fn notifications(&self) -> Result<Notifications, Error> {
        if self.no_notify { Ok(Notifications::default()) } else { config::notifications() }
    }
}

/// How it ended, in words and as an exit code.
pub(super) fn over(view: &AutoView, ui: &Ui) -> Exit {
    let Some(outcome) = view.outcome else { return Exit::Bug };
    if ui.json() {
        ui.item(view, String::new);
        return plan::exit(outcome);
    }
    let colour = if outcome.is_success() { Colour::Green } else { Colour::Red };
    let how = draw::ended(outcome, view.reason.as_deref().unwrap_or_default());
    ui.line(&ui.paint(&how, colour));
    ui.say(&format!("{} sessions, {}", view.used.sessions, view.used.cost()));
    if let Some(failed) = view.items.iter().find(|item| draw::failed(item)) {
        ui.say(&format!("`posse auto why {0}` says why, `posse auto log {0}` what was done", failed.item));
    }
    if view.items.iter().any(|item| item.standing == posse_core::auto::Standing::Parked) {
        ui.say("`posse auto status` shows what waits for you");
    }
    plan::exit(outcome)
}

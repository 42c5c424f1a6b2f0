//! `posse auto`: begin a pipeline and follow it.

use posse_api::{BacklogIn, ProblemKind, RunIn, RunView, SessionRules};
use posse_core::auto::settings::Mode;
use posse_core::backlog::BacklogDirs;
use posse_core::review_loop::config::Notifications;

use super::{Where, dry_run, slug};
use crate::client::{self, Client, Repeat};
use crate::cmd::launch;
use crate::cmd::plan::configuration;
use crate::cmd::plan::trust;
use crate::cmd::run::sessions::{SessionArgs, print_warnings};
use crate::config;
use crate::error::{Error, Exit};
use crate::ui::Ui;

/// Files in which projects document their conventions.
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
    /// Maximum number of items
    #[arg(long, value_name = "N")]
    max_items: Option<u32>,
    /// Send no notifications
    #[arg(long)]
    no_notify: bool,
    /// Retry an item that was given up or waits for a person; may be given several times
    #[arg(long, value_name = "ITEM")]
    retry: Vec<String>,
    #[command(flatten)]
    sessions: SessionArgs,
    #[command(flatten)]
    pub(super) place: Where,
}

pub(super) async fn run(args: RunArgs, ui: &Ui) -> Result<Exit, Error> {
    let asked = jiff::Timestamp::now();
    let project = args.place.project()?;
    let configured = configuration::load(&project)?;
    let sandbox = configured.sandbox(args.sessions.no_sandbox, ui)?;
    if args.dry_run {
        return dry_run::run(&args, ui);
    }
    print_warnings("backlog", &configured, sandbox, ui);
    trust::ensure(&configured, None, &project, ui).await?;
    let notifications = if args.no_notify { Notifications::default() } else { config::notifications()? };
    let rules = args.sessions.rules(configured, sandbox, asked, notifications);
    let body = RunIn::Backlog(Box::new(args.request(rules)?));
    let mut client = Client::connect().await?;
    let run: RunView = match client.post("/runs", &body, Repeat::Safe).await {
        // A request that is repeated because the answer was lost is refused because of its own pipeline.
        Err(error @ Error::Refused(_)) if error.kind() == ProblemKind::InUse => {
            ui.error(&error);
            return Ok(Exit::Locked);
        }
        begun => begun?,
    };
    args.sessions.follow(client, &run, ui).await
}

impl RunArgs {
    /// Returns the condition on which the pipeline ends.
    fn mode(&self) -> Mode {
        match (self.once || self.item.is_some(), self.drain) {
            (_, true) => Mode::Drain,
            (true, false) => Mode::Once,
            (false, false) => Mode::Watch,
        }
    }

    /// The maximum number of items that are begun.
    pub(super) fn most(&self) -> usize {
        let limit = self.max_items.map_or(usize::MAX, |most| most as usize);
        if self.mode() == Mode::Once { limit.min(1) } else { limit }
    }

    fn request(&self, sessions: SessionRules) -> Result<BacklogIn, Error> {
        let project = self.place.project()?;
        let name = |typed: &String| slug(typed).map(|slug| slug.to_string());
        Ok(BacklogIn {
            directory: client::absolute(&project)?,
            mode: self.mode(),
            item: self.item.as_ref().map(name).transpose()?,
            max_items: self.max_items,
            retry: self.retry.iter().map(name).collect::<Result<_, _>>()?,
            shelves: self.place.backlog_dir.as_deref().map(BacklogDirs::below),
            sessions,
            conventions: CONVENTIONS.map(str::to_owned).to_vec(),
            no_wait: self.sessions.no_wait,
            cap_usd: self.sessions.budget_cap,
            environment: launch::environment(),
        })
    }
}

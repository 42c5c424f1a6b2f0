//! What differs between the kinds of runs when they are followed.

use posse_api::{EntryView, EventBody, LogEvent, PlanView, ProblemKind, RunView, Terminal};
use posse_core::ids::RunId;
use posse_core::run::Entry;

use super::tail::{TailItem, TailNews};
use crate::client::Client;
use crate::cmd::loop_run::live::{self, TurnScreen};
use crate::cmd::{auto, plan};
use crate::error::Error;
use crate::status_area::{Row, size};

/// The meaning of a signal. A closed window never stops a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cmd) enum OnSignal {
    /// The follower leaves.
    Leave,
    /// The run stops; a second signal leaves at once, and the daemon stops the run.
    Stop,
    /// Sessions may finish for a while, then they are ended; a second signal ends them at once, a third leaves.
    StopGently,
}

/// Whether a run continues by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cmd) enum RunProgress {
    Continues,
    /// It needs the environment of a client to continue.
    NeedsEnvironment,
    /// It is over, or rests until a user resumes it.
    Over,
}

impl RunProgress {
    pub(super) fn of(run: &RunView) -> Self {
        match (run.waits, run.is_active()) {
            (true, _) => Self::NeedsEnvironment,
            (false, true) => Self::Continues,
            (false, false) => Self::Over,
        }
    }
}

/// Returns how to continue a run that was left or stopped.
pub(in crate::cmd) fn how_to_continue(run: &RunView) -> String {
    match run {
        RunView::Loop(run) => format!("`posse loop --resume {}` goes on with it", run.id),
        RunView::Plan(plan) => format!("`posse plan run {}` goes on with it", plan.file),
        RunView::Backlog(_) => "`posse auto` goes on with it".into(),
    }
}

/// A run that is followed.
pub(in crate::cmd) struct FollowedRun {
    pub(in crate::cmd) id: RunId,
    pub(super) on_signal: OnSignal,
    /// The run of the loop was under way before this command followed it.
    late: bool,
    /// The terminals of a run of the loop, for the picture.
    terminals: Vec<Terminal>,
    /// The screen of the agent whose turn it is.
    screen: Option<TurnScreen>,
    /// The runs of a backlog's plans, for the picture.
    plans: Vec<PlanView>,
}

impl FollowedRun {
    pub(in crate::cmd) fn new(run: &RunView, on_signal: OnSignal) -> Self {
        let late = matches!(run, RunView::Loop(run) if run.turns > 0);
        Self { id: run.id, on_signal, late, terminals: Vec::new(), screen: None, plans: Vec::new() }
    }

    /// Fetches the run and, if it is pictured, what else the picture shows. Tasks are fetched only for the picture and at the
    /// end.
    pub(super) async fn view(&mut self, pictured: bool, client: &mut Client) -> Result<RunView, Error> {
        let path = format!("/runs/{}", self.id);
        let mut run: RunView = client.get(&format!("{path}?tasks={pictured}")).await?;
        if !pictured && RunProgress::of(&run) == RunProgress::Over {
            run = client.get(&path).await?;
        }
        match &run {
            RunView::Loop(_) if pictured => self.terminals = client.get("/terminals").await?,
            RunView::Backlog(view) if pictured => self.plans = auto::plans_of(view, client).await?,
            _ => {}
        }
        Ok(run)
    }

    /// The place of the first entry that is shown, decided by the first entries that were read. A run of the loop that was
    /// resumed is shown from that turn on; `posse run log` has everything before it.
    pub(super) fn first_shown(&self, items: &[TailItem]) -> i64 {
        let entry = |item: &TailItem| match &item.news {
            TailNews::Entry(entry) if self.late => match &entry.entry {
                EntryView::Loop(of_loop) => Some((entry.seq, of_loop.clone())),
                _ => None,
            },
            _ => None,
        };
        let entries: Vec<(i64, Entry)> = items.iter().filter_map(entry).collect();
        let resumed = entries.iter().rposition(|(_, entry)| matches!(entry, Entry::Resumed)).unwrap_or(entries.len());
        let turn = entries[..resumed].iter().rfind(|(_, entry)| matches!(entry, Entry::TurnBegun { .. }));
        turn.map_or(0, |(seq, _)| *seq)
    }

    /// Returns whether the picture changes with this event.
    pub(super) fn is_pictured(&self, event: &LogEvent, run: &RunView) -> bool {
        let said_or_entered = match event.body {
            EventBody::SessionSaid { run_id, .. } => Some(run_id),
            _ => event.body.entry_of().map(|(run, _)| run),
        };
        match run {
            RunView::Loop(view) => event.terminal.is_some_and(|id| view.terminals.values().any(|one| *one == id)),
            RunView::Plan(_) => said_or_entered == Some(self.id),
            RunView::Backlog(view) => {
                let mut runs = view.doing.iter().filter_map(|doing| doing.plan_run).chain([self.id]);
                said_or_entered.is_some_and(|run| runs.any(|pictured| pictured == run))
            }
        }
    }

    /// Waits until the picture changes without an event.
    pub(super) async fn picture_changed(&self) {
        match &self.screen {
            Some(screen) => screen.changed().await,
            None => std::future::pending().await,
        }
    }

    pub(super) async fn picture(&mut self, run: &RunView, client: &Client) -> Vec<Row> {
        let (rows, columns) = size();
        match run {
            RunView::Loop(view) => {
                let tail = live::follow_turn(view, &mut self.screen, client).await;
                live::picture(view, &self.terminals, &tail, rows, columns)
            }
            RunView::Plan(view) => plan::live::picture(view, jiff::Timestamp::now(), rows, columns),
            RunView::Backlog(view) => auto::draw::progress(view, &self.plans, rows, columns),
        }
    }

    /// Provides the environment to a run that needs one to continue. A run that has ended meanwhile cannot be resumed, and its
    /// end is shown.
    pub(super) async fn reattach(&mut self, client: &mut Client) -> Result<(), Error> {
        match super::send_resume(client, self.id, true).await {
            Err(error) if error.kind() == ProblemKind::Over => Ok(()),
            resumed => resumed.map(drop),
        }
    }
}

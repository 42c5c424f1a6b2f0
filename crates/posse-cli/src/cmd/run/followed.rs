//! What differs between the kinds of runs when they are followed.

use posse_api::{EventBody, LogEvent, PlanIn, PlanView, ProblemKind, RunView, Terminal};
use posse_core::engine::{RunOutcome, StopHow};
use posse_core::ids::RunId;
use posse_core::run::Entry;
use serde_json::{Value, json};

use super::kind::{AnyRun, RunKind, RunProgress};
use super::tail::{RunEntry, TailItem, TailNews};
use crate::client::{Client, Repeat};
use crate::cmd::loop_run::live::{self, TurnScreen};
use crate::cmd::{auto, launch, loop_run, plan};
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

/// A run that is followed.
pub(in crate::cmd) struct FollowedRun {
    pub(super) kind: RunKind,
    pub(super) id: RunId,
    pub(super) on_signal: OnSignal,
    /// The run of the loop was under way before this command followed it.
    late: bool,
    /// The request that began the run of a plan, and the plan as it was typed.
    plan: Option<(PlanIn, String)>,
    /// The terminals of a run of the loop, for the picture.
    terminals: Vec<Terminal>,
    /// The screen of the agent whose turn it is.
    screen: Option<TurnScreen>,
    /// The runs of a backlog's plans, for the picture.
    plans: Vec<PlanView>,
}

impl FollowedRun {
    fn new(kind: RunKind, id: RunId, on_signal: OnSignal) -> Self {
        let (terminals, plans) = (Vec::new(), Vec::new());
        Self { kind, id, on_signal, late: false, plan: None, terminals, screen: None, plans }
    }

    pub(in crate::cmd) fn of_loop(view: &RunView) -> Self {
        Self { late: view.turns > 0, ..Self::new(RunKind::Loop, view.id, OnSignal::Stop) }
    }

    pub(in crate::cmd) fn of_plan(id: RunId, request: PlanIn, file: String) -> Self {
        Self { plan: Some((request, file)), ..Self::new(RunKind::Plan, id, OnSignal::StopGently) }
    }

    pub(in crate::cmd) fn of_backlog(id: RunId, on_signal: OnSignal) -> Self {
        Self::new(RunKind::Backlog, id, on_signal)
    }

    /// Fetches the run and, if it is pictured, what else the picture shows. Tasks are fetched only for the picture and at the
    /// end.
    pub(super) async fn view(&mut self, pictured: bool, client: &mut Client) -> Result<AnyRun, Error> {
        let mut run = AnyRun::get(self.kind, self.id, !pictured, client).await?;
        if !pictured && self.kind == RunKind::Plan && run.progress() == RunProgress::Over {
            run = AnyRun::get(self.kind, self.id, false, client).await?;
        }
        match &run {
            AnyRun::Loop(_) if pictured => self.terminals = client.get("/terminals").await?,
            AnyRun::Backlog(view) if pictured => self.plans = auto::plans_of(view, client).await?,
            _ => {}
        }
        Ok(run)
    }

    /// The place of the first entry that is shown, decided by the first entries that were read. A run of the loop that was
    /// resumed is shown from that turn on; `posse run logs` has everything before it.
    pub(super) fn first_shown(&self, items: &[TailItem]) -> i64 {
        let entry = |item: &TailItem| match &item.news {
            TailNews::Entry(RunEntry::Loop(entry)) if self.late => Some((entry.seq, entry.entry.clone())),
            _ => None,
        };
        let entries: Vec<(i64, Entry)> = items.iter().filter_map(entry).collect();
        let resumed = entries.iter().rposition(|(_, entry)| matches!(entry, Entry::Resumed)).unwrap_or(entries.len());
        let turn = entries[..resumed].iter().rfind(|(_, entry)| matches!(entry, Entry::TurnBegun { .. }));
        turn.map_or(0, |(seq, _)| *seq)
    }

    /// Returns whether the picture changes with this event.
    pub(super) fn is_pictured(&self, event: &LogEvent, run: &AnyRun) -> bool {
        let said_or_entered = match event.body {
            EventBody::SessionSaid { run_id, .. } => Some(run_id),
            _ => event.body.entry_of().map(|(run, _)| run),
        };
        match run {
            AnyRun::Loop(view) => event.terminal.is_some_and(|id| view.terminals.values().any(|one| *one == id)),
            AnyRun::Plan(_) => said_or_entered == Some(self.id),
            AnyRun::Backlog(view) => {
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

    pub(super) async fn picture(&mut self, run: &AnyRun, client: &Client) -> Vec<Row> {
        let (rows, columns) = size();
        match run {
            AnyRun::Loop(view) => {
                let tail = live::follow_turn(view, &mut self.screen, client).await;
                live::picture(view, &self.terminals, &tail, rows, columns)
            }
            AnyRun::Plan(view) => plan::live::picture(view, jiff::Timestamp::now(), rows, columns),
            AnyRun::Backlog(view) => auto::draw::progress(view, &self.plans, rows, columns),
        }
    }

    /// Provides the environment to a run that needs one to continue. A run of the loop that has ended meanwhile cannot be
    /// resumed, and its end is shown.
    pub(super) async fn reattach(&mut self, client: &mut Client) -> Result<(), Error> {
        let reattached: Result<Value, Error> = match (self.kind, &self.plan) {
            (RunKind::Plan, Some((request, _))) => client.post("/plans", request, Repeat::Safe).await,
            (RunKind::Loop | RunKind::Plan, _) => loop_run::resume(client, self.id, true).await.map(|_| Value::Null),
            (RunKind::Backlog, _) => {
                client.post(&format!("{}/means", self.kind.path(self.id)), &launch::means(), Repeat::Safe).await
            }
        };
        match reattached {
            Err(error) if self.kind == RunKind::Loop && error.kind() == ProblemKind::Over => Ok(()),
            other => other.map(drop),
        }
    }

    /// The request that stops the run.
    pub(super) fn stop_request(&self, how: StopHow, signal: &Error) -> Value {
        if self.kind == RunKind::Loop { json!({ "why": signal.to_string() }) } else { json!({ "how": how }) }
    }

    /// Returns how to continue a run that was left or stopped.
    pub(super) fn how_to_go_on(&self, run: Option<&AnyRun>) -> Option<String> {
        match (&self.plan, run) {
            (Some(_), Some(AnyRun::Plan(view))) if view.outcome.is_some_and(RunOutcome::is_success) => None,
            (Some((_, file)), _) => Some(format!("`posse plan run {file}` goes on with it")),
            (None, _) if self.on_signal == OnSignal::Leave => Some("it goes on; `posse auto stop` stops it".into()),
            (None, _) if self.kind == RunKind::Backlog => Some("`posse auto` goes on with it".into()),
            (None, _) => Some(format!("`posse loop --resume {}` goes on with it", self.id)),
        }
    }
}

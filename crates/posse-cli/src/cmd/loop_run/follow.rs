//! Follows a run of the loop.

use std::time::Duration;

use posse_api::{LogEvent, MeansIn, ProblemKind, RunView, StopRun, Terminal};
use posse_core::ids::RunId;
use posse_core::plan::machine::StopHow;
use posse_core::run::{Entry, RunStatus, Stop};

use super::{live, resume};
use crate::client::{Client, Repeat};
use crate::cmd::follow::{Followed, OnSignal, Standing, Window, unless_over};
use crate::cmd::tail::{RunEntry, TailItem, TailNews};
use crate::error::Error;
use crate::status_area::Row;

pub(in crate::cmd) struct LoopRun {
    id: RunId,
    means: MeansIn,
    /// The terminals of its agents, for the picture.
    terminals: Vec<Terminal>,
    /// The screen of the agent whose turn it is.
    screen: Option<live::TurnScreen>,
    /// The run was under way before this command followed it.
    late: bool,
}

impl LoopRun {
    pub(in crate::cmd) fn new(view: &RunView, means: MeansIn) -> Self {
        Self { id: view.id, means, terminals: Vec::new(), screen: None, late: view.turns > 0 }
    }
}

fn loop_entry(item: &TailItem) -> Option<(i64, &Entry)> {
    match &item.news {
        TailNews::Entry(RunEntry::Loop(entry)) => Some((entry.seq, &entry.entry)),
        _ => None,
    }
}

impl Followed for LoopRun {
    type View = RunView;

    /// What an agent prints arrives on a stream of its own; nothing is requested for a picture.
    const TICK: Duration = Duration::from_millis(250);

    async fn view(&mut self, run: &str, pictured: bool, client: &mut Client) -> Result<RunView, Error> {
        if pictured {
            self.terminals = client.get("/terminals").await?;
        }
        client.get(run).await
    }

    fn standing(view: &RunView) -> Standing {
        match (view.status, &view.stopped) {
            (RunStatus::Running | RunStatus::Parked, _) => Standing::GoesOn,
            (RunStatus::Stopped, Some(stopped)) if stopped.stop == Stop::Alone => Standing::Alone,
            _ => Standing::Over,
        }
    }

    /// Starts at the turn in which the run was resumed; `posse run logs` has everything before it.
    fn first_shown(&self, items: &[TailItem]) -> i64 {
        let entries: Vec<(i64, &Entry)> = items.iter().filter_map(loop_entry).filter(|_| self.late).collect();
        let resumed = entries.iter().rposition(|(_, entry)| matches!(entry, Entry::Resumed)).unwrap_or(entries.len());
        let turn = entries[..resumed].iter().rfind(|(_, entry)| matches!(entry, Entry::TurnBegun { .. }));
        turn.map_or(0, |(seq, _)| *seq)
    }

    fn is_pictured(&self, event: &LogEvent, view: &RunView) -> bool {
        event.terminal.is_some_and(|id| view.terminals.values().any(|terminal| *terminal == id))
    }

    async fn picture(&mut self, view: &RunView, window: Window, client: &mut Client) -> Result<Vec<Row>, Error> {
        let tail = live::follow_turn(view, &mut self.screen, client).await;
        Ok(live::picture(view, &self.terminals, &tail, window.rows, window.columns))
    }

    /// A run that has ended meanwhile cannot be resumed, and its end is shown.
    async fn come_back(&mut self, _: &str, client: &mut Client) -> Result<(), Error> {
        match resume(client, self.id, &self.means, true).await {
            Err(Error::Refused(problem)) if problem.kind == ProblemKind::Over => Ok(()),
            other => other.map(drop),
        }
    }

    async fn stop(&mut self, run: &str, _: StopHow, asked: &Error, client: &mut Client) -> Result<(), Error> {
        let body = StopRun { why: Some(asked.to_string()) };
        unless_over(client.post(&format!("{run}/stop"), &body, Repeat::Safe).await)
    }

    fn on_signal(&self) -> OnSignal {
        OnSignal::Stop
    }

    fn how_to_go_on(&self, _: Option<&RunView>) -> Option<String> {
        Some(format!("`posse loop --resume {}` goes on with it", self.id))
    }
}

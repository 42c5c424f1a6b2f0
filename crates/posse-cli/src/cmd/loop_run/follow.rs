//! A run of the loop as something to follow.

use std::time::Duration;

use posse_api::{EventBody, LogEvent, LoopJournalView, MeansIn, ProblemKind, RunView, StopRun, Terminal};
use posse_core::ids::RunId;
use posse_core::plan::machine::StopHow;
use posse_core::run::{Entry, RunStatus, Stop};

use super::{live, resume, words};
use crate::client::{Client, Repeat};
use crate::cmd::follow::{Followed, OnSignal, Standing, Window, unless_over};
use crate::cmd::journal_cursor::JournalCursor;
use crate::error::Error;
use crate::foot::Row;
use crate::ui::Ui;

/// Where a run was when somebody came back to it: at the beginning of the turn it was resumed in.
fn place(entries: &[LoopJournalView]) -> Option<i64> {
    let resumed = entries.iter().rposition(|entry| matches!(entry.entry, Entry::Resumed)).unwrap_or(entries.len());
    let turn = entries[..resumed].iter().rfind(|entry| matches!(entry.entry, Entry::TurnBegun { .. }));
    turn.map(|entry| entry.seq)
}

/// Somebody who looks on, and may have something to say and to do about it.
pub(in crate::cmd) trait Onlooker {
    /// What to say below the line of this entry.
    async fn sees(&mut self, entry: &Entry) -> Result<Option<String>, Error>;

    /// What to do now that everything seen so far is on the screen, and what to say about it then.
    async fn acts(&mut self) -> Result<Option<String>, Error>;
}

impl<O: Onlooker> Onlooker for Option<O> {
    async fn sees(&mut self, entry: &Entry) -> Result<Option<String>, Error> {
        match self {
            Some(onlooker) => onlooker.sees(entry).await,
            None => Ok(None),
        }
    }

    async fn acts(&mut self) -> Result<Option<String>, Error> {
        match self {
            Some(onlooker) => onlooker.acts().await,
            None => Ok(None),
        }
    }
}

pub(in crate::cmd) struct LoopRun<O> {
    journal: JournalCursor<LoopJournalView>,
    means: MeansIn,
    /// The terminals of its agents, for the picture.
    terminals: Vec<Terminal>,
    /// It was under way before we came.
    late: bool,
    /// What came before this entry is not told.
    from: i64,
    pub(in crate::cmd) onlooker: O,
}

impl<O: Onlooker> LoopRun<O> {
    pub(in crate::cmd) fn new(view: &RunView, means: MeansIn, onlooker: O) -> Self {
        let journal = JournalCursor::new(view.id, "runs", entry_of);
        Self { journal, means, terminals: Vec::new(), late: view.turns > 0, from: 0, onlooker }
    }
}

impl<O: Onlooker> Followed for LoopRun<O> {
    type View = RunView;
    type News = LoopJournalView;

    /// No event says that an agent printed something; four times a second looks alive, and is one local request.
    const TICK: Duration = Duration::from_millis(250);

    fn id(&self) -> RunId {
        self.journal.run()
    }

    async fn view(&mut self, client: &mut Client) -> Result<RunView, Error> {
        client.get(&format!("/runs/{}", self.id())).await
    }

    async fn news(&mut self, event: Option<&LogEvent>, client: &mut Client) -> Result<Vec<LoopJournalView>, Error> {
        let first = self.journal.is_at_start();
        let entries = self.journal.next(event, client).await?;
        // Who comes later wants to know where it is, not all it has been through; `posse run logs` has that.
        if self.late && first {
            self.from = place(&entries).unwrap_or(0);
        }
        Ok(entries)
    }

    async fn refresh(&mut self, _: &RunView, client: &mut Client) -> Result<(), Error> {
        self.terminals = client.get("/terminals").await?;
        Ok(())
    }

    fn standing(view: &RunView) -> Standing {
        match (view.status, &view.stopped) {
            (RunStatus::Running | RunStatus::Parked, _) => Standing::GoesOn,
            (RunStatus::Stopped, Some(stopped)) if stopped.stop == Stop::Alone => Standing::Alone,
            _ => Standing::Over,
        }
    }

    fn concerns(&self, event: &LogEvent, view: &RunView, pictured: bool) -> bool {
        let of_terminal = event.terminal.is_some_and(|id| view.terminals.values().any(|terminal| *terminal == id));
        self.journal.concerns(event) || (of_terminal && pictured)
    }

    async fn tell(&mut self, entry: &LoopJournalView, ui: &Ui) -> Result<Option<String>, Error> {
        let remark = self.onlooker.sees(&entry.entry).await?;
        let line = words::line(entry, ui).filter(|_| entry.seq >= self.from);
        Ok(Some(line.into_iter().chain(remark).collect()))
    }

    async fn told(&mut self) -> Result<Option<String>, Error> {
        self.onlooker.acts().await
    }

    async fn picture(&mut self, view: &RunView, window: Window, client: &mut Client) -> Result<Vec<Row>, Error> {
        live::now(view, &self.terminals, window, client).await
    }

    /// Unless it has come to its end meanwhile: then there is nothing to go on with, and the end is shown.
    async fn come_back(&mut self, client: &mut Client) -> Result<(), Error> {
        match resume(client, self.id(), &self.means, true).await {
            Err(Error::Refused(problem)) if problem.kind == ProblemKind::Over => Ok(()),
            other => other.map(drop),
        }
    }

    async fn stop(&mut self, _: StopHow, asked: &Error, client: &mut Client) -> Result<(), Error> {
        let body = StopRun { why: Some(asked.to_string()) };
        unless_over(client.post(&format!("/runs/{}/stop", self.id()), &body, Repeat::Safe).await)
    }

    fn on_signal(&self) -> OnSignal {
        OnSignal::Stop
    }

    fn how_to_go_on(&self, _: Option<&RunView>) -> Option<String> {
        Some(format!("`posse loop --resume {}` goes on with it", self.id()))
    }
}

fn entry_of(event: &EventBody) -> Option<&LoopJournalView> {
    match event {
        EventBody::LoopEntry { view, .. } => view.as_deref(),
        _ => None,
    }
}

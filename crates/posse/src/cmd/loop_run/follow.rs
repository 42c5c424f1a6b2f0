//! Following a run: what it does as it does it, until it is over, has stopped, or somebody stops it.

use std::time::Duration;

use posse_core::ids::RunId;
use posse_core::run::{Entry, RunStatus, Stop};
use posse_server::api::types::{JournalView, MeansIn, StopRun, Success};
use posse_server::runs::view::RunView;
use tokio::time::{sleep, timeout};

use super::live::Live;
use super::{resume, words};
use crate::client::{Client, Repeat};
use crate::cmd::asked_to_end;
use crate::error::Error;
use crate::event_stream::AGAIN;
use crate::ui::Ui;

/// Where a run was when somebody came back to it: at the beginning of the turn it was resumed in.
fn place(entries: &[JournalView]) -> usize {
    let resumed = entries.iter().rposition(|entry| matches!(entry.entry, Entry::Resumed)).unwrap_or(entries.len());
    entries[..resumed].iter().rposition(|entry| matches!(entry.entry, Entry::TurnBegun { .. })).unwrap_or(0)
}

/// On a terminal, how often the view is brought up to date while nothing is told. Nobody tells what an agent prints; four
/// times a second looks alive, and is a few local requests.
const TICK: Duration = Duration::from_millis(250);

/// Somebody who looks on, and may have something to say and to do about it.
pub(in crate::cmd) trait Onlooker {
    /// What to say below the line of this entry.
    async fn sees(&mut self, entry: &Entry) -> Result<Option<String>, Error>;

    /// What to do now that everything seen so far is on the screen, and what to say about it then.
    async fn acts(&mut self) -> Result<Option<String>, Error>;
}

struct Nobody;

impl Onlooker for Nobody {
    async fn sees(&mut self, _: &Entry) -> Result<Option<String>, Error> {
        Ok(None)
    }

    async fn acts(&mut self) -> Result<Option<String>, Error> {
        Ok(None)
    }
}

/// Follows a run from its beginning until it is over or has stopped, for somebody who minds signals themselves.
pub(in crate::cmd) async fn with_onlooker(
    mut client: Client,
    id: RunId,
    means: MeansIn,
    onlooker: &mut impl Onlooker,
    ui: &Ui,
) -> Result<RunView, Error> {
    client.only_running();
    Follower { client, id, means, last: 0, late: false, live: Live::new(ui), ui }.follow(onlooker).await
}

/// Follows a run until it is over or has stopped. A signal stops it; a second one leaves at once.
pub(super) async fn to_the_end(mut client: Client, view: &RunView, means: MeansIn, ui: &Ui) -> Result<RunView, Error> {
    client.only_running();
    let id = view.id;
    let mut follower = Follower { client, id, means, last: 0, late: view.turns > 0, live: Live::new(ui), ui };
    let mut nobody = Nobody;
    tokio::select! {
        ended = follower.follow(&mut nobody) => ended,
        asked = asked_to_end() => match asked {
            // A closed window is no reason for a night's work to stop.
            Error::HungUp => Err(Error::HungUp),
            asked => {
                follower.live.clear();
                ui.say(&format!("stopping run {id} …"));
                tokio::select! {
                    stopped = follower.stop(&asked) => {
                        stopped?;
                        ui.say(&format!("`posse loop --resume {id}` goes on with it"));
                    }
                    _ = asked_to_end() => {}
                }
                Err(asked)
            }
        },
    }
}

struct Follower<'a> {
    client: Client,
    id: RunId,
    means: MeansIn,
    /// The last entry that was shown.
    last: i64,
    /// It was under way before we came.
    late: bool,
    live: Live<'a>,
    ui: &'a Ui,
}

impl Follower<'_> {
    async fn follow(&mut self, onlooker: &mut impl Onlooker) -> Result<RunView, Error> {
        loop {
            // Listening before looking: what changes in between is heard.
            let mut events = self.client.listen(None).await?;
            loop {
                let view = self.show(onlooker).await?;
                match (view.status, &view.stopped) {
                    (RunStatus::Running | RunStatus::Parked, _) => {}
                    // It needs somebody who knows the environment: that is us.
                    (RunStatus::Stopped, Some(stopped)) if stopped.stop == Stop::Alone => {
                        self.resume().await?;
                    }
                    _ => {
                        self.live.clear();
                        return Ok(view);
                    }
                }
                if !self.wait(&mut events, &view).await? {
                    break;
                }
            }
            // The daemon went away. The next one has taken up the run, but does not know the environment of its agents.
            sleep(AGAIN).await;
            let view: RunView = self.client.get(&format!("/runs/{}", self.id)).await?;
            if !view.status.is_over() {
                self.resume().await?;
            }
        }
    }

    /// Goes on with it, unless it has come to its end meanwhile: then there is nothing to go on with, and the end is shown.
    async fn resume(&mut self) -> Result<(), Error> {
        match resume(&mut self.client, self.id, &self.means, true).await {
            Err(Error::Refused(problem)) if problem.kind == "over" => Ok(()),
            other => other.map(drop),
        }
    }

    /// Waits for something that concerns the run. `false`: the connection has ended.
    async fn wait(&mut self, events: &mut crate::event_stream::EventStream, view: &RunView) -> Result<bool, Error> {
        let id = self.id.as_str();
        loop {
            let next = events.next();
            let event = if self.ui.interactive() {
                match timeout(TICK, next).await {
                    Ok(event) => event,
                    Err(_) => {
                        self.live.draw(&mut self.client, view, "").await?;
                        continue;
                    }
                }
            } else {
                next.await
            };
            let Some(event) = event else { return Ok(false) };
            let of_run = event.kind == "run" && event.data["run"] == id;
            let of_terminal = event.terminal.is_some_and(|id| view.terminals.values().any(|terminal| *terminal == id));
            if of_run || (of_terminal && self.ui.interactive()) {
                return Ok(true);
            }
        }
    }

    /// Shows what is new, and what it is now.
    async fn show(&mut self, onlooker: &mut impl Onlooker) -> Result<RunView, Error> {
        // In this order: of a run that is seen to have ended, everything is seen.
        let view: RunView = self.client.get(&format!("/runs/{}", self.id)).await?;
        let path = format!("/runs/{}/journal?after={}", self.id, self.last);
        let entries: Vec<JournalView> = self.client.get(&path).await?;
        // Who comes later wants to know where it is, not all it has been through; `posse run logs` has that.
        let first = self.late && self.last == 0;
        let from = if first { place(&entries) } else { 0 };
        let mut lines = String::new();
        for (at, entry) in entries.iter().enumerate() {
            let remark = onlooker.sees(&entry.entry).await?;
            if self.ui.json() {
                self.ui.item(entry, String::new);
                continue;
            }
            let line = words::line(entry, self.ui).filter(|_| at >= from);
            lines.extend(line.into_iter().chain(remark).map(|line| format!("{line}\n")));
        }
        match self.ui.interactive() {
            true => self.live.draw(&mut self.client, &view, &lines).await?,
            false => self.ui.print(&lines),
        }
        self.last = entries.last().map_or(self.last, |entry| entry.seq);
        let done = onlooker.acts().await?;
        if let Some(done) = done.filter(|_| !self.ui.json()) {
            self.live.clear();
            self.ui.line(&done);
        }
        Ok(view)
    }

    /// Stops the run and waits until it has.
    async fn stop(&mut self, asked: &Error) -> Result<(), Error> {
        loop {
            let why = Some(asked.to_string());
            let stopped = self.client.post(&format!("/runs/{}/stop", self.id), &StopRun { why }, Repeat::Safe).await;
            match stopped {
                Ok(Success { .. }) => {}
                // It has come to its end by itself meanwhile.
                Err(Error::Refused(problem)) if problem.kind == "rests" || problem.kind == "over" => return Ok(()),
                Err(error) => return Err(error),
            }
            let mut events = self.client.listen(None).await?;
            loop {
                let view: RunView = self.client.get(&format!("/runs/{}", self.id)).await?;
                if !matches!(view.status, RunStatus::Running | RunStatus::Parked) {
                    return Ok(());
                }
                // A daemon that dies now may take the wish with it; the next one is told again.
                if events.next().await.is_none() {
                    break;
                }
            }
        }
    }
}

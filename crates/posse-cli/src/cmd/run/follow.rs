//! Follows a run of any kind until it is over or a signal arrives: subscribes, reconnects to a new daemon, shows new
//! entries, and handles signals.

use std::time::Duration;

use jiff::Timestamp;
use posse_api::{BacklogView, EventBody, LogEvent, ProblemKind, RunView, StopRun, Success};
use posse_core::engine::{RunOutcome, StopHow};
use posse_core::run::Entry;
use tokio::time::{sleep, timeout};

use super::render::RunRenderer;
use super::rows::{self, RunDetails};
use super::tail::{RunTail, TailItem};
use super::transcript::Extent;
use crate::client::{Client, Repeat};
use crate::cmd::Signals;
use crate::cmd::tmux::RunWindows;
use crate::error::Error;
use crate::event_stream::EventStream;
use crate::status_area::{StatusArea, size};
use crate::ui::Ui;

/// The time sessions have to finish after the first signal (spec §12.4).
const GRACE: Duration = Duration::from_secs(10);
/// The interval at which clocks in the picture count.
const CLOCK: Duration = Duration::from_secs(1);

/// The meaning of a signal. A closed window never stops a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cmd) enum OnSignal {
    Leave,
    /// The run stops; a second signal leaves at once, and the daemon stops the run.
    Stop,
    /// Sessions may finish for a while, then they are ended; a second signal ends them at once, a third leaves.
    StopGently,
}

/// Returns whether a run is over, or rests until a user resumes it.
pub(super) fn is_over(run: &RunView) -> bool {
    !run.is_active() && !run.waits
}

/// Returns how to continue a run that was left or stopped.
pub(super) fn how_to_continue(run: &RunView) -> String {
    match run {
        RunView::Loop(run) => format!("`posse loop --resume {}` goes on with it", run.id),
        RunView::Plan(plan) => format!("`posse plan run {}` goes on with it", plan.file),
        RunView::Backlog(_) => "`posse auto` goes on with it".into(),
    }
}

/// Looks on while a run of the loop is followed.
pub(in crate::cmd) trait Onlooker {
    /// Called when the line of this entry is on the screen.
    async fn on_entry(&mut self, entry: &Entry, screen: &mut StatusArea<'_>) -> Result<(), Error>;
}

pub(in crate::cmd) struct Follower<'a, O> {
    on_signal: OnSignal,
    /// The run of the loop was under way before this command followed it.
    late: bool,
    tail: RunTail,
    renderer: RunRenderer,
    /// Other details in the picture.
    details: RunDetails,
    pub(in crate::cmd) onlooker: Option<O>,
    client: Client,
    status_area: StatusArea<'a>,
    ui: &'a Ui,
}

impl<'a> Follower<'a, RunWindows> {
    /// Follows a run without an onlooker.
    pub(in crate::cmd) fn alone(client: Client, run: &RunView, on_signal: OnSignal, ui: &'a Ui) -> Self {
        Self::new(client, run, on_signal, None, ui)
    }
}

impl<'a, O: Onlooker> Follower<'a, O> {
    pub(in crate::cmd) fn new(
        mut client: Client,
        run: &RunView,
        on_signal: OnSignal,
        onlooker: Option<O>,
        ui: &'a Ui,
    ) -> Self {
        client.only_running();
        Self {
            on_signal,
            late: matches!(run, RunView::Loop(run) if run.turns > 0),
            tail: RunTail::new(run.id, false, None),
            renderer: RunRenderer::new(Extent::Lines),
            details: RunDetails::default(),
            onlooker,
            client,
            status_area: StatusArea::new(ui),
            ui,
        }
    }

    /// Also shows actions and output of sessions.
    #[must_use]
    pub(in crate::cmd) fn with_sessions(self, sessions: bool) -> Self {
        Self { tail: RunTail::new(self.tail.run, sessions, None), ..self }
    }

    /// Follows the run until it is over or a signal comes.
    pub(in crate::cmd) async fn until_over_or_signal(mut self) -> Result<RunView, Error> {
        let mut signals = Signals::listen();
        let signal = tokio::select! {
            ended = self.until_over() => return ended,
            signal = signals.next() => signal,
        };
        self.end(signal, signals).await
    }

    /// Follows the run until it is over. The caller handles signals.
    pub(in crate::cmd) async fn until_over(&mut self) -> Result<RunView, Error> {
        self.follow(None).await
    }

    /// Does what the signal means for the run.
    pub(in crate::cmd) async fn end(mut self, signal: Error, mut signals: Signals) -> Result<RunView, Error> {
        self.status_area.clear();
        if signal.kind() == ProblemKind::HungUp {
            return Err(signal);
        }
        if self.on_signal == OnSignal::Leave {
            self.ui.say(&format!("it goes on; `posse run stop {}` stops it", self.tail.run));
            return Err(signal);
        }
        let gently = self.on_signal == OnSignal::StopGently;
        let (then, how, patience) = if gently {
            ("what runs has ten seconds; Ctrl-C again ends it at once", StopHow::AfterTask, GRACE)
        } else {
            ("Ctrl-C again leaves, and it stops without you", StopHow::Now, Duration::MAX)
        };
        self.ui.say(&format!("stopping run {}: {then} …", self.tail.run));
        let mut ended = tokio::select! {
            ended = timeout(patience, self.stop(how, &signal)) => ended.ok(),
            _ = signals.next() => None,
        };
        if ended.is_none() && gently {
            ended = tokio::select! {
                ended = self.stop(StopHow::Now, &signal) => Some(ended),
                _ = signals.next() => None,
            };
        }
        self.status_area.clear();
        let Some(view) = ended.transpose()? else { return Err(signal) };
        if !view.outcome.is_some_and(RunOutcome::is_success) {
            self.ui.say(&how_to_continue(&view));
        }
        // SIGTERM asks for a gentle end, so the exit code is that of the run.
        if gently && signal.kind() == ProblemKind::Terminated { Ok(view) } else { Err(signal) }
    }

    /// Asks the daemon to stop the run. A run that is over or rests already refuses, which is as good.
    async fn send_stop(&mut self, wish: &StopRun) -> Result<(), Error> {
        let stopped = self.client.post(&format!("/runs/{}/stop", self.tail.run), wish, Repeat::Safe).await;
        match stopped.map(|_: Success| ()) {
            Err(error) if matches!(error.kind(), ProblemKind::Over | ProblemKind::Rests) => Ok(()),
            stopped => stopped,
        }
    }

    async fn stop(&mut self, how: StopHow, signal: &Error) -> Result<RunView, Error> {
        let wish = StopRun { how: Some(how), why: Some(signal.to_string()) };
        self.send_stop(&wish).await?;
        self.follow(Some(&wish)).await
    }

    /// Fetches the run. Its tasks, and what else the rows show, are fetched only for the picture and at the end.
    async fn view(&mut self) -> Result<RunView, Error> {
        let path = format!("/runs/{}", self.tail.run);
        if !self.ui.interactive() {
            let run: RunView = self.client.get(&format!("{path}?tasks=false")).await?;
            if !is_over(&run) {
                return Ok(run);
            }
        }
        let run = self.client.get(&path).await?;
        self.details = RunDetails::fetch(&run, &mut self.client).await?;
        Ok(run)
    }

    async fn follow(&mut self, stopping: Option<&StopRun>) -> Result<RunView, Error> {
        // Subscribed before reading, so that no change is missed.
        let mut events = self.client.listen(None).await?;
        let mut event = None;
        loop {
            let run = self.show(event.as_ref()).await?;
            let ends = stopping.is_some() && self.on_signal == OnSignal::Stop;
            if is_over(&run) || (run.waits && ends) {
                self.status_area.clear();
                return Ok(run);
            }
            if run.waits {
                self.reattach().await?;
            }
            event = self.wait(&mut events, &run).await;
            if event.is_none() {
                events.reconnect().await?;
                // The daemon went away. The next one drives the run, but may not know the last wish and the environment.
                match stopping {
                    Some(wish) => self.send_stop(wish).await?,
                    None if is_over(&self.view().await?) => {}
                    None => self.reattach().await?,
                }
            }
        }
    }

    /// Shows what is new after this event, and returns the run. With `--quiet` only the picture is shown.
    async fn show(&mut self, event: Option<&LogEvent>) -> Result<RunView, Error> {
        let run = self.view().await?;
        // The view may be ahead of the event. When the run is over, the rest is read at once.
        let event = event.filter(|_| run.is_active() && !run.waits);
        let items = self.tail.next(event, &mut self.client).await?;
        let first_shown = if std::mem::take(&mut self.late) { turn_of(&items) } else { 0 };
        let mut lines = String::new();
        for (place, item) in items.iter().enumerate() {
            let text = self.renderer.render(item, self.ui);
            if self.ui.json() && !self.ui.quiet() {
                self.ui.item(item, String::new);
            } else if !self.ui.json() && !self.ui.quiet() && place >= first_shown {
                lines.extend(text);
            }
        }
        self.draw(&run, &lines).await;
        if let Some(onlooker) = &mut self.onlooker {
            for entry in items.iter().filter_map(TailItem::of_loop) {
                onlooker.on_entry(entry, &mut self.status_area).await?;
            }
        }
        Ok(run)
    }

    async fn draw(&mut self, run: &RunView, lines: &str) {
        if !self.ui.interactive() {
            return self.ui.print(lines);
        }
        self.details.fetch_screen(run, &mut self.client).await;
        let (rows, columns) = size();
        self.status_area.draw(lines, &rows::picture(run, &self.details, Timestamp::now(), rows, columns));
    }

    /// Waits for an event that concerns the run, and keeps the clocks of the picture up to date. `None`: the connection has
    /// ended.
    async fn wait(&mut self, events: &mut EventStream, run: &RunView) -> Option<LogEvent> {
        let pictured = self.ui.interactive();
        loop {
            let concerns = |event: &LogEvent| self.tail.concerns(event) || (pictured && is_pictured(event, run));
            tokio::select! {
                event = events.matching(concerns) => return event,
                () = sleep(CLOCK), if pictured => {}
            }
            self.draw(run, "").await;
        }
    }

    /// Provides the environment to a run that needs one to continue. A run that has ended meanwhile cannot be resumed, and its
    /// end is shown.
    async fn reattach(&mut self) -> Result<(), Error> {
        match super::send_resume(&mut self.client, self.tail.run, true).await {
            Err(error) if error.kind() == ProblemKind::Over => Ok(()),
            resumed => resumed.map(drop),
        }
    }
}

/// Returns where the turn begins that a run of the loop was resumed in, or is in. `posse run log` has everything before it.
fn turn_of(items: &[TailItem]) -> usize {
    let last = |items: &[TailItem], wanted: fn(&Entry) -> bool| {
        items.iter().rposition(|item| item.of_loop().is_some_and(wanted))
    };
    let resumed = last(items, |entry| matches!(entry, Entry::Resumed)).unwrap_or(items.len());
    last(&items[..resumed], |entry| matches!(entry, Entry::TurnBegun { .. })).unwrap_or(0)
}

/// Returns whether the picture of the run changes with this event.
fn is_pictured(event: &LogEvent, run: &RunView) -> bool {
    let EventBody::SessionSaid { run_id, .. } = &event.body else {
        let RunView::Loop(view) = run else { return false };
        return event.terminal.is_some_and(|id| view.terminals.values().any(|one| *one == id));
    };
    let of_plan = |view: &BacklogView| view.doing.iter().any(|doing| doing.plan_run == Some(*run_id));
    *run_id == run.id || matches!(run, RunView::Backlog(view) if of_plan(view))
}

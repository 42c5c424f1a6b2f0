//! Follows a run of any kind until it is over or a signal comes: subscribes, reconnects when the daemon is replaced, shows what
//! is new, and does what signals mean.

use std::time::Duration;

use jiff::Timestamp;
use posse_api::{EntryView, EventBody, LogEvent, ProblemKind, RunView, StopRun, Success};
use posse_core::engine::{RunOutcome, StopHow};
use posse_core::run::Entry;
use tokio::time::{sleep, timeout};

use super::render::RunRenderer;
use super::rows::RunDetails;
use super::tail::{RunTail, TailItem, TailNews};
use super::transcript::Extent;
use super::turn_screen::{TurnScreen, follow_turn};
use crate::client::{Client, Repeat};
use crate::cmd::Signals;
use crate::cmd::tmux::RunWindows;
use crate::error::Error;
use crate::event_stream::{AGAIN, EventStream};
use crate::status_area::{StatusArea, size};
use crate::ui::Ui;

/// The time sessions have to finish after the first signal (spec §12.4).
const GRACE: Duration = Duration::from_secs(10);
/// The interval at which clocks in the picture count.
const CLOCK: Duration = Duration::from_secs(1);

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

/// Looks on while a run of the loop is followed.
pub(in crate::cmd) trait Onlooker {
    /// Called when the line of this entry is on the screen.
    async fn on_entry(&mut self, entry: &Entry, screen: &mut StatusArea<'_>) -> Result<(), Error>;
}

pub(in crate::cmd) struct Follower<'a, O> {
    on_signal: OnSignal,
    /// The run of the loop was under way before this command followed it.
    late: bool,
    /// The screen of the agent whose turn it is.
    screen: Option<TurnScreen>,
    tail: RunTail,
    renderer: RunRenderer,
    /// The place of the first entry that is shown.
    first_shown: i64,
    pub(in crate::cmd) onlooker: Option<O>,
    client: Client,
    status_area: StatusArea<'a>,
    ui: &'a Ui,
}

/// A request to stop the run.
#[derive(Clone, Copy)]
struct StopWish<'a> {
    how: StopHow,
    signal: &'a Error,
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
            screen: None,
            tail: RunTail::new(run.id, false, None),
            renderer: RunRenderer::new(Extent::Lines),
            first_shown: 0,
            onlooker,
            client,
            status_area: StatusArea::new(ui),
            ui,
        }
    }

    /// Shows what sessions do and say, too.
    #[must_use]
    pub(in crate::cmd) fn with_sessions(self, sessions: bool) -> Self {
        Self { tail: RunTail::new(self.tail.run, sessions, None), ..self }
    }

    /// Follows the run until it is over or a signal comes.
    pub(in crate::cmd) async fn until_over_or_signal(mut self) -> Result<RunView, Error> {
        let mut signals = Signals::listen();
        let signal = tokio::select! {
            ended = self.follow(None) => return ended,
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
        let on_signal = self.on_signal;
        if matches!(signal, Error::HungUp) {
            return Err(signal);
        }
        if on_signal == OnSignal::Leave {
            self.ui.say(&format!("it goes on; `posse run stop {}` stops it", self.tail.run));
            return Err(signal);
        }
        let gently = on_signal == OnSignal::StopGently;
        let (then, how, patience) = if gently {
            ("what runs has ten seconds; Ctrl-C again ends it at once", StopHow::AfterTask, GRACE)
        } else {
            ("Ctrl-C again leaves, and it stops without you", StopHow::Now, Duration::MAX)
        };
        self.ui.say(&format!("stopping run {}: {then} …", self.tail.run));
        let mut ended = tokio::select! {
            ended = timeout(patience, self.stop(StopWish { how, signal: &signal })) => ended.ok(),
            _ = signals.next() => None,
        };
        if ended.is_none() && gently {
            ended = tokio::select! {
                ended = self.stop(StopWish { how: StopHow::Now, signal: &signal }) => Some(ended),
                _ = signals.next() => None,
            };
        }
        self.status_area.clear();
        let Some(view) = ended.transpose()? else { return Err(signal) };
        if !view.outcome.is_some_and(RunOutcome::is_success) {
            self.ui.say(&how_to_continue(&view));
        }
        // SIGTERM asks for a gentle end, so the exit code is that of the run.
        if gently && matches!(signal, Error::Terminated) { Ok(view) } else { Err(signal) }
    }

    /// Asks the daemon to stop the run. A run that is over or rests already refuses, which is as good.
    async fn send_stop(&mut self, wish: StopWish<'_>) -> Result<(), Error> {
        let request = StopRun { how: Some(wish.how), why: Some(wish.signal.to_string()) };
        let stopped = self.client.post(&format!("/runs/{}/stop", self.tail.run), &request, Repeat::Safe).await;
        match stopped.map(|_: Success| ()) {
            Err(error) if matches!(error.kind(), ProblemKind::Over | ProblemKind::Rests) => Ok(()),
            stopped => stopped,
        }
    }

    async fn stop(&mut self, wish: StopWish<'_>) -> Result<RunView, Error> {
        self.send_stop(wish).await?;
        self.follow(Some(wish)).await
    }

    /// Fetches the run and, if it is pictured, what else the picture shows. Tasks are fetched only for the picture and at the
    /// end.
    async fn view(&mut self) -> Result<RunDetails, Error> {
        if self.ui.interactive() {
            return RunDetails::fetch(self.tail.run, &mut self.client).await;
        }
        let path = format!("/runs/{}", self.tail.run);
        let mut run: RunView = self.client.get(&format!("{path}?tasks=false")).await?;
        if RunProgress::of(&run) == RunProgress::Over {
            run = self.client.get(&path).await?;
        }
        Ok(RunDetails::alone(run))
    }

    async fn follow(&mut self, stopping: Option<StopWish<'_>>) -> Result<RunView, Error> {
        loop {
            // Subscribed before reading, so that no change is missed.
            let mut events = self.client.listen(None).await?;
            let mut event = None;
            loop {
                let view = self.show(event.as_ref()).await?;
                let ends = stopping.is_some() && self.on_signal == OnSignal::Stop;
                match RunProgress::of(&view.run) {
                    RunProgress::Continues => {}
                    RunProgress::NeedsEnvironment if !ends => self.reattach().await?,
                    RunProgress::NeedsEnvironment | RunProgress::Over => {
                        self.status_area.clear();
                        return Ok(view.run);
                    }
                }
                event = self.wait(&mut events, &view).await;
                if event.is_none() {
                    break;
                }
            }
            // The daemon went away. The next one drives the run, but may not know the last wish and the environment.
            sleep(AGAIN).await;
            if let Some(wish) = stopping {
                self.send_stop(wish).await?;
            } else if RunProgress::of(&self.view().await?.run) != RunProgress::Over {
                self.reattach().await?;
            }
        }
    }

    /// Shows what is new after this event, and returns the run. With `--quiet` only the picture is shown.
    async fn show(&mut self, event: Option<&LogEvent>) -> Result<RunDetails, Error> {
        let view = self.view().await?;
        // The view may be ahead of the event. When the run is over, the rest is read at once.
        let event = event.filter(|_| RunProgress::of(&view.run) == RunProgress::Continues);
        let is_first = self.tail.is_at_start();
        let items = self.tail.next(event, &mut self.client).await?;
        if is_first {
            self.first_shown = self.first_shown(&items);
        }
        let mut lines = String::new();
        for item in &items {
            if self.ui.json() && !self.ui.quiet() {
                self.ui.item(item, String::new);
            }
            let text = self.renderer.render(item, self.ui).filter(|_| item.seq().is_none_or(|n| n >= self.first_shown));
            lines.extend(text.filter(|_| !self.ui.quiet() && !self.ui.json()));
        }
        self.draw(&view, &lines).await;
        if let Some(onlooker) = &mut self.onlooker {
            for item in &items {
                if let TailNews::Entry(entry) = &item.news
                    && let EntryView::Loop(entry) = &entry.entry
                {
                    onlooker.on_entry(entry, &mut self.status_area).await?;
                }
            }
        }
        Ok(view)
    }

    async fn draw(&mut self, view: &RunDetails, lines: &str) {
        if !self.ui.interactive() {
            return self.ui.print(lines);
        }
        let screen = match &view.run {
            RunView::Loop(view) => follow_turn(view, &mut self.screen, &self.client).await,
            _ => String::new(),
        };
        let (rows, columns) = size();
        self.status_area.draw(lines, &view.picture(&screen, Timestamp::now(), rows, columns));
    }

    /// Waits for an event that concerns the run, and keeps the picture up to date. `None`: the connection has ended.
    async fn wait(&mut self, events: &mut EventStream, view: &RunDetails) -> Option<LogEvent> {
        let pictured = self.ui.interactive();
        loop {
            let concerns =
                |event: &LogEvent| self.tail.concerns(event) || (pictured && self.is_pictured(event, &view.run));
            tokio::select! {
                event = events.until(concerns) => return event,
                () = screen_changed(self.screen.as_ref()), if pictured => {}
                () = sleep(CLOCK), if pictured => {}
            }
            self.draw(view, "").await;
        }
    }

    /// The place of the first entry that is shown, decided by the first entries that were read. A run of the loop that was
    /// resumed is shown from that turn on; `posse run log` has everything before it.
    fn first_shown(&self, items: &[TailItem]) -> i64 {
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
    fn is_pictured(&self, event: &LogEvent, run: &RunView) -> bool {
        let said_or_entered = match event.body {
            EventBody::SessionSaid { run_id, .. } => Some(run_id),
            _ => event.body.entry_of().map(|(run, _)| run),
        };
        match run {
            RunView::Loop(view) => event.terminal.is_some_and(|id| view.terminals.values().any(|one| *one == id)),
            RunView::Plan(_) => said_or_entered == Some(self.tail.run),
            RunView::Backlog(view) => {
                let mut runs = view.doing.iter().filter_map(|doing| doing.plan_run).chain([self.tail.run]);
                said_or_entered.is_some_and(|run| runs.any(|pictured| pictured == run))
            }
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

async fn screen_changed(screen: Option<&TurnScreen>) {
    match screen {
        Some(screen) => screen.changed().await,
        None => std::future::pending().await,
    }
}

//! Follows a run of any kind until it is over or a signal comes. This module subscribes, reconnects when the daemon is
//! replaced, shows what is new, and does what signals mean. `FollowedRun` has what differs between the kinds.

use std::time::Duration;

use posse_api::{EntryView, LogEvent, ProblemKind, RunView, StopRun, Success};
use posse_core::engine::{RunOutcome, StopHow};
use posse_core::run::Entry;
use tokio::time::{sleep, timeout};

use super::followed::{FollowedRun, OnSignal, RunProgress, how_to_continue};
use super::render::RunRenderer;
use super::tail::{RunTail, TailNews};
use super::transcript::Extent;
use crate::client::{Client, Repeat};
use crate::cmd::Signals;
use crate::error::Error;
use crate::event_stream::{AGAIN, EventStream};
use crate::status_area::StatusArea;
use crate::ui::Ui;

/// The time sessions have to finish after the first signal (spec §12.4).
const GRACE: Duration = Duration::from_secs(10);
/// The interval at which clocks in the picture count.
const CLOCK: Duration = Duration::from_secs(1);

/// Looks on while a run of the loop is followed.
pub(in crate::cmd) trait Onlooker {
    /// Called when the line of this entry is on the screen.
    async fn on_entry(&mut self, entry: &Entry, screen: &mut StatusArea<'_>) -> Result<(), Error>;
}

pub(in crate::cmd) struct Follower<'a, O> {
    followed: FollowedRun,
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

impl<'a, O: Onlooker> Follower<'a, O> {
    pub(in crate::cmd) fn new(mut client: Client, followed: FollowedRun, onlooker: Option<O>, ui: &'a Ui) -> Self {
        client.only_running();
        let tail = RunTail::new(followed.id, false, None);
        let renderer = RunRenderer::new(Extent::Lines);
        Self { followed, tail, renderer, first_shown: 0, onlooker, client, status_area: StatusArea::new(ui), ui }
    }

    /// Shows what sessions do and say, too.
    #[must_use]
    pub(in crate::cmd) fn with_sessions(self, sessions: bool) -> Self {
        Self { tail: RunTail::new(self.followed.id, sessions, None), ..self }
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
        let on_signal = self.followed.on_signal;
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

    async fn view(&mut self) -> Result<RunView, Error> {
        self.followed.view(self.ui.interactive(), &mut self.client).await
    }

    async fn follow(&mut self, stopping: Option<StopWish<'_>>) -> Result<RunView, Error> {
        loop {
            // Subscribed before reading, so that no change is missed.
            let mut events = self.client.listen(None).await?;
            let mut event = None;
            loop {
                let view = self.show(event.as_ref()).await?;
                let ends = stopping.is_some() && self.followed.on_signal == OnSignal::Stop;
                match RunProgress::of(&view) {
                    RunProgress::Continues => {}
                    RunProgress::NeedsEnvironment if !ends => self.followed.reattach(&mut self.client).await?,
                    RunProgress::NeedsEnvironment | RunProgress::Over => {
                        self.status_area.clear();
                        return Ok(view);
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
            } else if RunProgress::of(&self.view().await?) != RunProgress::Over {
                self.followed.reattach(&mut self.client).await?;
            }
        }
    }

    /// Shows what is new after this event, and returns the run. With `--quiet` only the picture is shown.
    async fn show(&mut self, event: Option<&LogEvent>) -> Result<RunView, Error> {
        let view = self.view().await?;
        // The view may be ahead of the event. When the run is over, the rest is read at once.
        let event = event.filter(|_| RunProgress::of(&view) == RunProgress::Continues);
        let is_first = self.tail.is_at_start();
        let items = self.tail.next(event, &mut self.client).await?;
        if is_first {
            self.first_shown = self.followed.first_shown(&items);
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

    async fn draw(&mut self, view: &RunView, lines: &str) {
        if !self.ui.interactive() {
            return self.ui.print(lines);
        }
        let picture = self.followed.picture(view, &self.client).await;
        self.status_area.draw(lines, &picture);
    }

    /// Waits for an event that concerns the run, and keeps the picture up to date. `None`: the connection has ended.
    async fn wait(&mut self, events: &mut EventStream, view: &RunView) -> Option<LogEvent> {
        let pictured = self.ui.interactive();
        loop {
            let concerns =
                |event: &LogEvent| self.tail.concerns(event) || (pictured && self.followed.is_pictured(event, view));
            tokio::select! {
                event = events.until(concerns) => return event,
                () = self.followed.picture_changed(), if pictured => {}
                () = sleep(CLOCK), if pictured => {}
            }
            self.draw(view, "").await;
        }
    }
}

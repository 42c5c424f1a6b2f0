//! Follows a run of the loop, a plan or a backlog until it is over or a signal comes. This module subscribes, reconnects when
//! the daemon is replaced, shows what is new, and says what signals mean. A `Followed` has what differs between the three.

use std::time::Duration;

use posse_api::{LogEvent, PlanRunStatus, ProblemKind, StopPlan, Success};
use posse_core::plan::machine::StopHow;
use posse_core::run::Entry;
use serde::Serialize;
use tokio::time::{sleep, timeout};

use super::Signals;
use super::render::RunRenderer;
use super::tail::{RunEntry, RunTail, TailItem, TailNews};
use super::transcript::Extent;
use crate::client::{Client, Repeat};
use crate::error::Error;
use crate::event_stream::{AGAIN, EventStream};
use crate::status_area::{Row, StatusArea, size};
use crate::ui::Ui;

/// How long sessions may finish after the first signal (spec §12.4).
const GRACE: Duration = Duration::from_secs(10);

/// A kind of run that can be followed.
pub(super) trait Followed {
    type View: Serialize;

    /// How often the picture is drawn while no event comes, because it shows how long things take.
    const TICK: Duration = Duration::from_secs(1);

    /// Fetches the run and, if it is pictured, what else the picture shows.
    async fn view(&mut self, run: &str, pictured: bool, client: &mut Client) -> Result<Self::View, Error>;

    fn standing(view: &Self::View) -> Standing;

    /// The place of the first entry that is shown, decided by the first entries that were read.
    fn first_shown(&self, _: &[TailItem]) -> i64 {
        0
    }

    /// Whether the picture changes with this event.
    fn is_pictured(&self, event: &LogEvent, view: &Self::View) -> bool;

    async fn picture(&mut self, view: &Self::View, window: Window, client: &mut Client) -> Result<Vec<Row>, Error>;

    /// Provides the environment to a run that needs one to continue.
    async fn come_back(&mut self, run: &str, client: &mut Client) -> Result<(), Error>;

    async fn stop(&mut self, run: &str, how: StopHow, _asked: &Error, client: &mut Client) -> Result<(), Error> {
        let body = StopPlan { how: Some(how) };
        unless_over(client.post(&format!("{run}/stop"), &body, Repeat::Safe).await)
    }

    fn on_signal(&self) -> OnSignal;

    /// How to continue a run that was left or stopped.
    fn how_to_go_on(&self, view: Option<&Self::View>) -> Option<String>;
}

/// Looks on while a run of the loop is followed.
pub(super) trait Onlooker {
    /// Returns what to say below the line of this entry.
    async fn sees(&mut self, entry: &Entry) -> Result<Option<String>, Error>;

    /// Called when everything seen so far is on the screen. Returns a line to print.
    async fn acts(&mut self) -> Result<Option<String>, Error>;
}

/// The onlooker of runs that have none.
pub(super) enum NoOnlooker {}

impl Onlooker for NoOnlooker {
    async fn sees(&mut self, _: &Entry) -> Result<Option<String>, Error> {
        match *self {}
    }

    async fn acts(&mut self) -> Result<Option<String>, Error> {
        match *self {}
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    GoesOn,
    /// It needs the environment of a client to continue.
    Alone,
    /// It is over, or rests until a user resumes it.
    Over,
}

impl Standing {
    /// `waits`: it needs the environment of a client.
    pub(super) fn of(status: PlanRunStatus, waits: bool) -> Self {
        match status {
            PlanRunStatus::Over => Self::Over,
            PlanRunStatus::Running if waits => Self::Alone,
            PlanRunStatus::Running => Self::GoesOn,
        }
    }
}

/// What a signal means. A closed window never stops a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OnSignal {
    /// The follower leaves.
    Leave,
    /// The run stops; a second signal leaves at once, and the daemon stops the run.
    Stop,
    /// Sessions may finish for a while, then they are ended; a second signal ends them at once, a third leaves.
    StopGently,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    pub(super) rows: usize,
    pub(super) columns: usize,
}

pub(super) struct Follower<'a, F, O = NoOnlooker> {
    followed: F,
    tail: RunTail,
    renderer: RunRenderer,
    /// The place of the first entry that is shown.
    first_shown: i64,
    pub(super) onlooker: Option<O>,
    client: Client,
    status_area: StatusArea<'a>,
    ui: &'a Ui,
}

/// A request to stop the run.
#[derive(Clone, Copy)]
struct StopWish<'a> {
    how: StopHow,
    asked: &'a Error,
}

impl<'a, F: Followed, O: Onlooker> Follower<'a, F, O> {
    pub(super) fn new(mut client: Client, followed: F, tail: RunTail, onlooker: Option<O>, ui: &'a Ui) -> Self {
        client.only_running();
        let renderer = RunRenderer::new(Extent::Lines);
        Self { followed, tail, renderer, first_shown: 0, onlooker, client, status_area: StatusArea::new(ui), ui }
    }

    /// Follows the run until it is over or a signal comes.
    pub(super) async fn run_its_course(mut self) -> Result<F::View, Error> {
        let mut signals = Signals::listen();
        let asked = tokio::select! {
            ended = self.follow(None) => return ended,
            asked = signals.next() => asked,
        };
        self.end(asked, signals).await
    }

    /// Does what the signal means for the run.
    pub(super) async fn end(mut self, asked: Error, mut signals: Signals) -> Result<F::View, Error> {
        self.status_area.clear();
        let on_signal = self.followed.on_signal();
        if matches!(asked, Error::HungUp) {
            return Err(asked);
        }
        if on_signal == OnSignal::Leave {
            self.say_how_to_go_on(None);
            return Err(asked);
        }
        let gently = on_signal == OnSignal::StopGently;
        let (then, how, patience) = if gently {
            ("what runs has ten seconds; Ctrl-C again ends it at once", StopHow::AfterTask, GRACE)
        } else {
            ("Ctrl-C again leaves, and it stops without you", StopHow::Now, Duration::MAX)
        };
        self.ui.say(&format!("stopping run {}: {then} …", self.tail.run));
        let mut ended = tokio::select! {
            ended = timeout(patience, self.stop(StopWish { how, asked: &asked })) => ended.ok(),
            _ = signals.next() => None,
        };
        if ended.is_none() && gently {
            ended = tokio::select! {
                ended = self.stop(StopWish { how: StopHow::Now, asked: &asked }) => Some(ended),
                _ = signals.next() => None,
            };
        }
        self.status_area.clear();
        let Some(view) = ended.transpose()? else { return Err(asked) };
        self.say_how_to_go_on(Some(&view));
        // SIGTERM asks for a gentle end, so the exit code is that of the run.
        if gently && matches!(asked, Error::Terminated) { Ok(view) } else { Err(asked) }
    }

    fn say_how_to_go_on(&self, view: Option<&F::View>) {
        if let Some(how) = self.followed.how_to_go_on(view) {
            self.ui.say(&how);
        }
    }

    async fn send_stop(&mut self, wish: StopWish<'_>) -> Result<(), Error> {
        self.followed.stop(&self.tail.path(), wish.how, wish.asked, &mut self.client).await
    }

    async fn stop(&mut self, wish: StopWish<'_>) -> Result<F::View, Error> {
        self.send_stop(wish).await?;
        self.follow(Some(wish)).await
    }

    async fn view(&mut self) -> Result<F::View, Error> {
        self.followed.view(&self.tail.path(), self.ui.interactive(), &mut self.client).await
    }

    async fn come_back(&mut self) -> Result<(), Error> {
        self.followed.come_back(&self.tail.path(), &mut self.client).await
    }

    /// Follows the run until it is over. The caller handles signals.
    pub(super) async fn until_over(&mut self) -> Result<F::View, Error> {
        self.follow(None).await
    }

    async fn follow(&mut self, stopping: Option<StopWish<'_>>) -> Result<F::View, Error> {
        loop {
            // Subscribed before reading, so that no change is missed.
            let mut events = self.client.listen(None).await?;
            let mut event = None;
            loop {
                let view = self.show(event.as_ref()).await?;
                let ends = stopping.is_some() && self.followed.on_signal() == OnSignal::Stop;
                match F::standing(&view) {
                    Standing::GoesOn => {}
                    Standing::Alone if !ends => self.come_back().await?,
                    Standing::Alone | Standing::Over => {
                        self.status_area.clear();
                        return Ok(view);
                    }
                }
                event = self.wait(&mut events, &view).await?;
                if event.is_none() {
                    break;
                }
            }
            // The daemon went away. The next one drives the run, but may not know the last wish and the environment.
            sleep(AGAIN).await;
            if let Some(wish) = stopping {
                self.send_stop(wish).await?;
            } else if F::standing(&self.view().await?) != Standing::Over {
                self.come_back().await?;
            }
        }
    }

    /// Shows what is new after this event, and returns the run. With `--quiet` only the picture is shown.
    async fn show(&mut self, event: Option<&LogEvent>) -> Result<F::View, Error> {
        let view = self.view().await?;
        // The view may be ahead of the event. When the run is over, the rest is read at once.
        let event = event.filter(|_| F::standing(&view) == Standing::GoesOn);
        let is_first = self.tail.is_at_start();
        let items = self.tail.next(event, &mut self.client).await?;
        if is_first {
            self.first_shown = self.followed.first_shown(&items);
        }
        let mut lines = String::new();
        for item in &items {
            let text = self.text(item).await?;
            if self.ui.quiet() {
                continue;
            }
            if self.ui.json() {
                self.ui.item(item, String::new);
            } else {
                lines.push_str(&text);
            }
        }
        self.draw(&view, &lines).await?;
        if let Some(onlooker) = &mut self.onlooker
            && let Some(line) = onlooker.acts().await?
            && !self.ui.json()
            && !self.ui.quiet()
        {
            self.status_area.clear();
            self.ui.print(&line);
        }
        Ok(view)
    }

    async fn text(&mut self, item: &TailItem) -> Result<String, Error> {
        let mut text = self.renderer.render(item, self.ui).unwrap_or_default();
        if let TailNews::Entry(RunEntry::Loop(entry)) = &item.news {
            if entry.seq < self.first_shown {
                text.clear();
            }
            if let Some(onlooker) = &mut self.onlooker {
                text.extend(onlooker.sees(&entry.entry).await?);
            }
        }
        Ok(text)
    }

    async fn draw(&mut self, view: &F::View, lines: &str) -> Result<(), Error> {
        if !self.ui.interactive() {
            self.ui.print(lines);
            return Ok(());
        }
        let (rows, columns) = size();
        let picture = self.followed.picture(view, Window { rows, columns }, &mut self.client).await?;
        self.status_area.draw(lines, &picture);
        Ok(())
    }

    /// Waits for an event that concerns the run. `None`: the connection has ended.
    async fn wait(&mut self, events: &mut EventStream, view: &F::View) -> Result<Option<LogEvent>, Error> {
        let pictured = self.ui.interactive();
        loop {
            let (tail, followed) = (&self.tail, &self.followed);
            let heard = events.until(|event| tail.concerns(event) || (pictured && followed.is_pictured(event, view)));
            if !pictured {
                return Ok(heard.await);
            }
            if let Ok(heard) = timeout(F::TICK, heard).await {
                return Ok(heard);
            }
            self.draw(view, "").await?;
        }
    }
}

/// Accepts the refusal to stop a run that is over or rests already.
pub(super) fn unless_over(stopped: Result<Success, Error>) -> Result<(), Error> {
    match stopped {
        Ok(_) => Ok(()),
        Err(Error::Refused(problem)) if problem.kind == ProblemKind::Over || problem.kind == ProblemKind::Rests => {
            Ok(())
        }
        Err(error) => Err(error),
    }
}

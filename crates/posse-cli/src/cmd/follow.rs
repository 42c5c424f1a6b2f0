//! Following what goes on in the daemon (a loop, a plan, a backlog): what it does as it does it, until it is over or somebody
//! stops it. Here is what holds for all of them: listening, a daemon that goes and another that comes, what is shown to whom,
//! and what signals mean. What it is that is followed, what it looks like and how it is told is a `Followed`.

use std::time::Duration;

use posse_api::{LogEvent, ProblemKind, Success};
use posse_core::ids::RunId;
use posse_core::plan::machine::StopHow;
use serde::Serialize;
use tokio::time::{sleep, timeout};

use super::Signals;
use crate::client::Client;
use crate::error::Error;
use crate::event_stream::{AGAIN, EventStream};
use crate::foot::{Foot, Row, size};
use crate::ui::Ui;

/// What runs gets so long after the first signal (spec §12.4).
const GRACE: Duration = Duration::from_secs(10);

/// Something that goes on in the daemon.
pub(super) trait Followed {
    /// What it is at a moment.
    type View: Serialize;
    /// Something that happened.
    type News: Serialize;

    /// How often the picture is drawn again while no event comes, because it shows how long things take.
    const TICK: Duration = Duration::from_secs(1);

    fn id(&self) -> RunId;

    async fn view(&mut self, client: &mut Client) -> Result<Self::View, Error>;

    /// The news that this event brings, or without an event everything since the last call. Called after `view`: of what is
    /// seen to be over, everything is seen.
    async fn news(&mut self, event: Option<&LogEvent>, client: &mut Client) -> Result<Vec<Self::News>, Error>;

    /// Fetches what the picture shows besides the view.
    async fn refresh(&mut self, _: &Self::View, _: &mut Client) -> Result<(), Error> {
        Ok(())
    }

    fn standing(view: &Self::View) -> Standing;

    /// Whether there is something new after this event, for somebody who sees the picture or does not.
    fn concerns(&self, event: &LogEvent, view: &Self::View, pictured: bool) -> bool;

    /// Whole lines; `None` for what only posse itself needs to know.
    async fn tell(&mut self, news: &Self::News, ui: &Ui) -> Result<Option<String>, Error>;

    /// Called when everything that was told is on the screen. Gives a line to be told.
    async fn told(&mut self) -> Result<Option<String>, Error> {
        Ok(None)
    }

    /// What it looks like now.
    async fn picture(&mut self, view: &Self::View, window: Window, client: &mut Client) -> Result<Vec<Row>, Error>;

    /// Says that somebody is there who knows the environment.
    async fn come_back(&mut self, client: &mut Client) -> Result<(), Error>;

    async fn stop(&mut self, how: StopHow, asked: &Error, client: &mut Client) -> Result<(), Error>;

    /// What a signal means.
    fn on_signal(&self) -> OnSignal;

    /// How to go on with one that was left or stopped.
    fn how_to_go_on(&self, view: Option<&Self::View>) -> Option<String>;
}

/// How something stands for somebody who follows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    GoesOn,
    /// It needs somebody who knows the environment.
    Alone,
    /// It is over, or rests until somebody wants it to go on.
    Over,
}

/// What a signal means. A closed window never stops anything: that is no reason for a night's work to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OnSignal {
    /// Whoever looks on leaves.
    Leave,
    /// It stops; a second signal leaves at once and lets the daemon do the stopping.
    Stop,
    /// What runs may finish for a while, then it is ended; a second signal ends it at once, a third leaves.
    StopGently,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    pub(super) rows: usize,
    pub(super) columns: usize,
}

pub(super) struct Follower<'a, F> {
    followed: F,
    client: Client,
    foot: Foot<'a>,
    ui: &'a Ui,
}

/// That it is to stop, and why.
#[derive(Clone, Copy)]
struct Wish<'a> {
    how: StopHow,
    asked: &'a Error,
}

impl<'a, F: Followed> Follower<'a, F> {
    pub(super) fn new(mut client: Client, followed: F, ui: &'a Ui) -> Self {
        client.only_running();
        Self { followed, client, foot: Foot::new(ui), ui }
    }

    /// Follows it until it is over or a signal comes.
    pub(super) async fn run_its_course(mut self) -> Result<F::View, Error> {
        let mut signals = Signals::listen();
        let asked = tokio::select! {
            ended = self.follow(None) => return ended,
            asked = signals.next() => asked,
        };
        self.end(asked, signals).await
    }

    /// Somebody asks for an end: what that means for it is done.
    pub(super) async fn end(mut self, asked: Error, mut signals: Signals) -> Result<F::View, Error> {
        self.foot.clear();
        let on_signal = self.followed.on_signal();
        if matches!(asked, Error::HungUp) {
            return Err(asked);
        }
        if on_signal == OnSignal::Leave {
            self.say_how_to_go_on(None);
            return Err(asked);
        }
        let gently = on_signal == OnSignal::StopGently;
        let then = match gently {
            true => "what runs has ten seconds; Ctrl-C again ends it at once",
            false => "Ctrl-C again leaves, and it stops without you",
        };
        self.ui.say(&format!("stopping run {}: {then} …", self.followed.id()));
        let how = if gently { StopHow::AfterTask } else { StopHow::Now };
        let patience = if gently { GRACE } else { Duration::MAX };
        let mut ended = tokio::select! {
            ended = timeout(patience, self.stop(Wish { how, asked: &asked })) => ended.ok(),
            _ = signals.next() => None,
        };
        if ended.is_none() && gently {
            ended = tokio::select! {
                ended = self.stop(Wish { how: StopHow::Now, asked: &asked }) => Some(ended),
                _ = signals.next() => None,
            };
        }
        self.foot.clear();
        let Some(view) = ended.transpose()? else { return Err(asked) };
        self.say_how_to_go_on(Some(&view));
        // Who asks politely for a gentle end hears how it ended.
        if gently && matches!(asked, Error::Terminated) { Ok(view) } else { Err(asked) }
    }

    /// Follows it until it is over, for somebody who minds signals themselves.
    pub(super) async fn until_over(&mut self) -> Result<F::View, Error> {
        self.follow(None).await
    }

    pub(super) fn followed(self) -> F {
        self.followed
    }

    fn say_how_to_go_on(&self, view: Option<&F::View>) {
        if let Some(how) = self.followed.how_to_go_on(view) {
            self.ui.say(&how);
        }
    }

    async fn stop(&mut self, wish: Wish<'_>) -> Result<F::View, Error> {
        self.followed.stop(wish.how, wish.asked, &mut self.client).await?;
        self.follow(Some(wish)).await
    }

    async fn follow(&mut self, stopping: Option<Wish<'_>>) -> Result<F::View, Error> {
        loop {
            // Listening before looking: what changes in between is heard.
            let mut events = self.client.listen(None).await?;
            let mut event = None;
            loop {
                let view = self.show(event.as_ref()).await?;
                let ends = stopping.is_some() && self.followed.on_signal() == OnSignal::Stop;
                match F::standing(&view) {
                    Standing::GoesOn => {}
                    Standing::Alone if !ends => self.followed.come_back(&mut self.client).await?,
                    Standing::Alone | Standing::Over => {
                        self.foot.clear();
                        return Ok(view);
                    }
                }
                event = self.wait(&mut events, &view).await?;
                if event.is_none() {
                    break;
                }
            }
            // The daemon went away. The next one has taken it up, but may not have heard the last wish, and does not know the
            // environment.
            sleep(AGAIN).await;
            if let Some(Wish { how, asked }) = stopping {
                self.followed.stop(how, asked, &mut self.client).await?;
            } else if F::standing(&self.followed.view(&mut self.client).await?) != Standing::Over {
                self.followed.come_back(&mut self.client).await?;
            }
        }
    }

    /// Shows what is new after this event, and gives what it is now. Who wants it quiet gets only the picture.
    async fn show(&mut self, event: Option<&LogEvent>) -> Result<F::View, Error> {
        let view = self.followed.view(&mut self.client).await?;
        // The view may be ahead of the event: of what is over, the rest is read at once.
        let event = event.filter(|_| F::standing(&view) == Standing::GoesOn);
        let news = self.followed.news(event, &mut self.client).await?;
        if self.ui.interactive() {
            self.followed.refresh(&view, &mut self.client).await?;
        }
        let mut lines = String::new();
        for news in &news {
            let told = self.followed.tell(news, self.ui).await?;
            if self.ui.quiet() {
                continue;
            }
            match self.ui.json() {
                true => self.ui.item(news, String::new),
                false => lines.push_str(&told.unwrap_or_default()),
            }
        }
        self.draw(&view, &lines).await?;
        if let Some(line) = self.followed.told().await?
            && !self.ui.json()
            && !self.ui.quiet()
        {
            self.foot.clear();
            self.ui.print(&line);
        }
        Ok(view)
    }

    async fn draw(&mut self, view: &F::View, lines: &str) -> Result<(), Error> {
        if !self.ui.interactive() {
            self.ui.print(lines);
            return Ok(());
        }
        let (rows, columns) = size();
        let picture = self.followed.picture(view, Window { rows, columns }, &mut self.client).await?;
        self.foot.draw(lines, &picture);
        Ok(())
    }

    /// Waits for an event that concerns it. `None`: the connection has ended.
    async fn wait(&mut self, events: &mut EventStream, view: &F::View) -> Result<Option<LogEvent>, Error> {
        let pictured = self.ui.interactive();
        loop {
            let followed = &self.followed;
            let heard = events.until(|event| followed.concerns(event, view, pictured));
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

/// What has come to its end by itself, or rests already, need not be stopped.
pub(super) fn unless_over(stopped: Result<Success, Error>) -> Result<(), Error> {
    match stopped {
        Ok(Success { .. }) => Ok(()),
        Err(Error::Refused(problem)) if problem.kind == ProblemKind::Over || problem.kind == ProblemKind::Rests => {
            Ok(())
        }
        Err(error) => Err(error),
    }
}

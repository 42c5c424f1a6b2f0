//! Following a run of a plan: what it does as it does it, until it is over or somebody stops it.

use std::time::Duration;

use posse_core::ids::RunId;
use posse_core::plan::budget::Total;
use posse_core::plan::machine::{RunOutcome, StopHow};
use posse_server::api::types::{PlanIn, StopPlan, Success};
use posse_server::plans::view::{PlanRunStatus, PlanView};
use tokio::time::{sleep, timeout};

use super::news::{Item, News, Sessions};
use super::said::{Extent, Teller};
use super::{live, words};
use crate::client::{Client, Repeat};
use crate::cmd::asked_to_end;
use crate::error::Error;
use crate::event_stream::{AGAIN, EventStream};
use crate::foot::{Foot, size};
use crate::ui::Ui;

/// On a terminal, how often times are brought up to date while nothing else happens.
const TICK: Duration = Duration::from_secs(1);
/// What runs gets so long after the first signal (spec §12.4).
const GRACE: Duration = Duration::from_secs(10);

/// How much is shown of what happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Display {
    /// On a terminal the tree of tasks, and nothing else; elsewhere nothing.
    Quiet,
    /// What became of sessions, checks and merges, too.
    Usual,
    /// What sessions do and say, too.
    Verbose,
}

/// Follows a run until it is over. A signal stops it; a closed window does not.
pub(super) async fn to_the_end(
    mut client: Client,
    id: RunId,
    body: PlanIn,
    display: Display,
    ui: &Ui,
) -> Result<PlanView, Error> {
    client.only_running();
    let news = News::new(id, if display == Display::Verbose { Sessions::All } else { Sessions::None });
    let (teller, used) = (Teller::new(Extent::Lines), Total::default());
    let mut follower = Follower { client, id, body, news, teller, used, display, foot: Foot::new(ui), ui };
    let asked = tokio::select! {
        ended = follower.follow() => return ended,
        asked = asked_to_end() => asked,
    };
    follower.foot.clear();
    if matches!(asked, Error::HungUp) {
        return Err(asked);
    }
    ui.say("stopping: what runs has ten seconds; Ctrl-C again ends it at once …");
    follower.stop(StopHow::AfterTask).await?;
    let ended = tokio::select! {
        ended = timeout(GRACE, follower.follow()) => ended.ok(),
        _ = asked_to_end() => None,
    };
    let view = match ended {
        Some(view) => view?,
        None => {
            follower.stop(StopHow::Now).await?;
            tokio::select! {
                view = follower.follow() => view?,
                _ = asked_to_end() => return Err(asked),
            }
        }
    };
    if !view.outcome.is_some_and(RunOutcome::is_success) {
        ui.say(&format!("`posse plan run {}` goes on with it", view.file));
    }
    // Interrupted is 130; who asked politely hears how it ended.
    if matches!(asked, Error::Interrupted) { Err(asked) } else { Ok(view) }
}

struct Follower<'a> {
    client: Client,
    id: RunId,
    body: PlanIn,
    news: News,
    teller: Teller,
    /// What the sessions that were shown have used.
    used: Total,
    display: Display,
    foot: Foot<'a>,
    ui: &'a Ui,
}

impl Follower<'_> {
    async fn follow(&mut self) -> Result<PlanView, Error> {
        loop {
            // Listening before looking: what changes in between is heard.
            let mut events = self.client.listen(None).await?;
            loop {
                let view = self.show().await?;
                if view.status == PlanRunStatus::Over {
                    self.foot.clear();
                    return Ok(view);
                }
                if view.waits {
                    self.come_back().await?;
                }
                if !self.wait(&mut events).await? {
                    break;
                }
            }
            // The daemon went away. The next one has taken up the run, but does not know the environment of its sessions.
            sleep(AGAIN).await;
            let view: PlanView = self.client.get(&format!("/plans/{}", self.id)).await?;
            if view.status == PlanRunStatus::Running {
                self.come_back().await?;
            }
        }
    }

    /// Says that somebody is there who knows the environment.
    async fn come_back(&mut self) -> Result<(), Error> {
        let _: PlanView = self.client.post("/plans", &self.body, Repeat::Safe).await?;
        Ok(())
    }

    /// Waits for something that concerns the run. `false`: the connection has ended.
    async fn wait(&mut self, events: &mut EventStream) -> Result<bool, Error> {
        loop {
            let next = events.next();
            let event = if self.ui.interactive() {
                match timeout(TICK, next).await {
                    Ok(event) => event,
                    Err(_) => {
                        let view = self.client.get(&format!("/plans/{}", self.id)).await?;
                        self.draw(&view, "");
                        continue;
                    }
                }
            } else {
                next.await
            };
            let Some(event) = event else { return Ok(false) };
            if self.news.concerns(&event) {
                return Ok(true);
            }
        }
    }

    fn draw(&mut self, view: &PlanView, lines: &str) {
        let (rows, columns) = size();
        self.foot.draw(lines, &live::picture(view, jiff::Timestamp::now(), rows, columns));
    }

    /// Shows what is new, and what it is now.
    async fn show(&mut self) -> Result<PlanView, Error> {
        let (view, items) = self.news.fetch(&mut self.client).await?;
        if self.ui.json() {
            items.iter().for_each(|item| self.ui.item(item, String::new));
            return Ok(view);
        }
        let mut lines = String::new();
        for item in items.iter().filter(|_| self.display != Display::Quiet) {
            let line = match item {
                Item::Entry(entry) => words::line(entry, &mut self.used, self.ui),
                Item::Said(said) => self.teller.tell(&said.session, &said.line, self.ui),
            };
            lines.push_str(&line.unwrap_or_default());
        }
        match self.ui.interactive() {
            true => self.draw(&view, &lines),
            false => self.ui.print(&lines),
        }
        Ok(view)
    }

    async fn stop(&mut self, how: StopHow) -> Result<(), Error> {
        let body = StopPlan { how: Some(how) };
        match self.client.post(&format!("/plans/{}/stop", self.id), &body, Repeat::Safe).await {
            Ok(Success { .. }) => Ok(()),
            // It has come to its end by itself meanwhile.
            Err(Error::Refused(problem)) if problem.kind == "over" => Ok(()),
            Err(error) => Err(error),
        }
    }
}

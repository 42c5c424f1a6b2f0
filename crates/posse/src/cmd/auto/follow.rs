//! Following a pipeline: what it does as it does it, until it is over or somebody stops it.

use std::time::Duration;

use posse_core::ids::RunId;
use posse_core::plan::machine::StopHow;
use posse_server::api::types::{AutoJournalView, MeansIn, StopPlan, Success};
use posse_server::auto::view::AutoView;
use posse_server::plans::view::PlanRunStatus;
use tokio::time::{sleep, timeout};

use super::{draw, show, words};
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

/// Follows it until it is over. A signal stops it; a closed window does not.
pub(super) async fn to_the_end(mut client: Client, id: RunId, means: MeansIn, ui: &Ui) -> Result<AutoView, Error> {
    client.only_running();
    let mut follower = Follower { client, id, means, last: 0, foot: Foot::new(ui), ui };
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
    // Interrupted is 130; who asked politely hears how it ended.
    if matches!(asked, Error::Interrupted) { Err(asked) } else { Ok(view) }
}

struct Follower<'a> {
    client: Client,
    id: RunId,
    means: MeansIn,
    /// The last entry that was shown.
    last: i64,
    foot: Foot<'a>,
    ui: &'a Ui,
}

impl Follower<'_> {
    async fn follow(&mut self) -> Result<AutoView, Error> {
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
                if !self.wait(&mut events, &view).await? {
                    break;
                }
            }
            // The daemon went away. The next one has taken it up, but does not know the environment of its sessions.
            sleep(AGAIN).await;
            let view: AutoView = self.client.get(&format!("/auto/{}", self.id)).await?;
            if view.status == PlanRunStatus::Running {
                self.come_back().await?;
            }
        }
    }

    /// Says that somebody is there who knows the environment.
    async fn come_back(&mut self) -> Result<(), Error> {
        let told = self.client.post(&format!("/auto/{}/means", self.id), &self.means, Repeat::Safe).await;
        told.map(|_: AutoView| ())
    }

    /// Waits for something that concerns it. `false`: the connection has ended.
    async fn wait(&mut self, events: &mut EventStream, view: &AutoView) -> Result<bool, Error> {
        let plans: Vec<RunId> = view.doing.iter().filter_map(|doing| doing.plan_run).collect();
        loop {
            let next = events.next();
            let event = if self.ui.interactive() {
                match timeout(TICK, next).await {
                    Ok(event) => event,
                    Err(_) => {
                        let view = self.client.get(&format!("/auto/{}", self.id)).await?;
                        self.draw(&view, "").await?;
                        continue;
                    }
                }
            } else {
                next.await
            };
            let Some(event) = event else { return Ok(false) };
            let of_plan = self.ui.interactive() && plans.iter().any(|plan| event.data["plan_run"] == plan.as_str());
            if event.kind == "run" && (event.data["auto_run"] == self.id.as_str() || of_plan) {
                return Ok(true);
            }
        }
    }

    /// With the plans that are carried out.
    async fn draw(&mut self, view: &AutoView, lines: &str) -> Result<(), Error> {
        let plans = show::plans(&mut self.client, view).await?;
        let (rows, columns) = size();
        self.foot.draw(lines, &draw::progress(view, &plans, rows, columns));
        Ok(())
    }

    /// Shows what is new, and what it is now.
    async fn show(&mut self) -> Result<AutoView, Error> {
        // In this order: of one that is seen to have ended, everything is seen.
        let view: AutoView = self.client.get(&format!("/auto/{}", self.id)).await?;
        let path = format!("/auto/{}/journal?after={}", self.id, self.last);
        let entries: Vec<AutoJournalView> = self.client.get(&path).await?;
        self.last = entries.last().map_or(self.last, |entry| entry.seq);
        if self.ui.json() {
            entries.iter().for_each(|entry| self.ui.item(entry, String::new));
            return Ok(view);
        }
        let lines: String = entries.iter().filter_map(|entry| words::line(entry, self.ui)).collect();
        match self.ui.interactive() {
            true => self.draw(&view, &lines).await?,
            false => self.ui.print(&lines),
        }
        Ok(view)
    }

    async fn stop(&mut self, how: StopHow) -> Result<(), Error> {
        let body = StopPlan { how: Some(how) };
        match self.client.post(&format!("/auto/{}/stop", self.id), &body, Repeat::Safe).await {
            Ok(Success { .. }) => Ok(()),
            // It has come to its end by itself meanwhile.
            Err(Error::Refused(problem)) if problem.kind == "over" => Ok(()),
            Err(error) => Err(error),
        }
    }
}

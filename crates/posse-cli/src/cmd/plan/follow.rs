//! A run of a plan as something to follow.

use posse_api::{EventBody, LogEvent, PlanIn, PlanRunStatus, PlanView, StopPlan};
use posse_core::ids::RunId;
use posse_core::plan::budget::Total;
use posse_core::plan::machine::{RunOutcome, StopHow};

use super::news::{Item, News, Sessions};
use super::said::{Extent, Teller};
use super::{live, words};
use crate::client::{Client, Repeat};
use crate::cmd::follow::{Followed, OnSignal, Standing, Window, unless_over};
use crate::error::Error;
use crate::foot::Row;
use crate::ui::Ui;

pub(super) struct PlanRun {
    id: RunId,
    body: PlanIn,
    /// The plan, as it was typed.
    file: String,
    news: News,
    teller: Teller,
    /// What the sessions that were told of have used.
    used: Total,
    /// Somebody sees every task. Otherwise they are not asked for all the time: they may be a thousand.
    pictured: bool,
}

impl PlanRun {
    /// With what these sessions do and say.
    pub(super) fn new(id: RunId, body: PlanIn, file: String, sessions: Sessions, pictured: bool) -> Self {
        let news = News::new(id, sessions);
        Self { id, body, file, news, teller: Teller::new(Extent::Lines), used: Total::default(), pictured }
    }
}

impl Followed for PlanRun {
    type View = PlanView;
    type News = Item;

    fn id(&self) -> RunId {
        self.id
    }

    async fn view(&mut self, client: &mut Client) -> Result<PlanView, Error> {
        if !self.pictured {
            let view: PlanView = client.get(&format!("/plans/{}?tasks=false", self.id)).await?;
            if view.status == PlanRunStatus::Running {
                return Ok(view);
            }
        }
        client.get(&format!("/plans/{}", self.id)).await
    }

    async fn news(&mut self, event: Option<&LogEvent>, client: &mut Client) -> Result<Vec<Item>, Error> {
        self.news.next(event, client).await
    }

    fn standing(view: &PlanView) -> Standing {
        match (view.status, view.waits) {
            (PlanRunStatus::Over, _) => Standing::Over,
            (PlanRunStatus::Running, true) => Standing::Alone,
            (PlanRunStatus::Running, false) => Standing::GoesOn,
        }
    }

    fn concerns(&self, event: &LogEvent, _: &PlanView, pictured: bool) -> bool {
        // The picture shows what sessions do.
        let said = matches!(event.body, EventBody::SessionSaid { run_id, .. } if run_id == self.id);
        self.news.concerns(event) || (pictured && said)
    }

    async fn tell(&mut self, item: &Item, ui: &Ui) -> Result<Option<String>, Error> {
        Ok(match item {
            Item::Entry(entry) => words::line(entry, &mut self.used, ui),
            Item::Said(said) => self.teller.tell(&said.session, &said.line, ui),
        })
    }

    async fn picture(&mut self, view: &PlanView, window: Window, _: &mut Client) -> Result<Vec<Row>, Error> {
        Ok(live::picture(view, jiff::Timestamp::now(), window.rows, window.columns))
    }

    async fn come_back(&mut self, client: &mut Client) -> Result<(), Error> {
        let _: PlanView = client.post("/plans", &self.body, Repeat::Safe).await?;
        Ok(())
    }

    async fn stop(&mut self, how: StopHow, _: &Error, client: &mut Client) -> Result<(), Error> {
        let body = StopPlan { how: Some(how) };
        unless_over(client.post(&format!("/plans/{}/stop", self.id), &body, Repeat::Safe).await)
    }

    fn on_signal(&self) -> OnSignal {
        OnSignal::StopGently
    }

    fn how_to_go_on(&self, view: Option<&PlanView>) -> Option<String> {
        let done = view.and_then(|view| view.outcome).is_some_and(RunOutcome::is_success);
        (!done).then(|| format!("`posse plan run {}` goes on with it", self.file))
    }
}

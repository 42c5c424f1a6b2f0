//! A pipeline as something to follow.

use posse_api::{AutoView, EventBody, LogEvent, MeansIn, PlanRunStatus, PlanView, StopPlan};
use posse_core::ids::RunId;
use posse_core::plan::machine::StopHow;

use super::news::{Hears, Item, News, Telling};
use super::{draw, plans_of};
use crate::client::{Client, Repeat};
use crate::cmd::follow::{Followed, OnSignal, Standing, Window, unless_over};
use crate::cmd::plan::said::Extent;
use crate::error::Error;
use crate::foot::Row;
use crate::ui::Ui;

pub(super) struct Pipeline {
    id: RunId,
    means: MeansIn,
    news: News,
    telling: Telling,
    on_signal: OnSignal,
    /// The plans that are carried out, for the picture.
    plans: Vec<PlanView>,
}

impl Pipeline {
    pub(super) fn new(id: RunId, means: MeansIn, on_signal: OnSignal, hears: Hears) -> Self {
        Self {
            id,
            means,
            news: News::new(id, None, hears),
            telling: Telling::new(Extent::Lines),
            on_signal,
            plans: Vec::new(),
        }
    }
}

impl Followed for Pipeline {
    type View = AutoView;
    type News = Item;

    fn id(&self) -> RunId {
        self.id
    }

    async fn view(&mut self, client: &mut Client) -> Result<AutoView, Error> {
        client.get(&format!("/auto/{}", self.id)).await
    }

    async fn news(&mut self, event: Option<&LogEvent>, client: &mut Client) -> Result<Vec<Item>, Error> {
        self.news.next(event, client).await
    }

    async fn refresh(&mut self, view: &AutoView, client: &mut Client) -> Result<(), Error> {
        self.plans = plans_of(view, client).await?;
        Ok(())
    }

    fn standing(view: &AutoView) -> Standing {
        match (view.status, view.waits) {
            (PlanRunStatus::Over, _) => Standing::Over,
            (PlanRunStatus::Running, true) => Standing::Alone,
            (PlanRunStatus::Running, false) => Standing::GoesOn,
        }
    }

    fn concerns(&self, event: &LogEvent, view: &AutoView, pictured: bool) -> bool {
        // The picture also has the plans that are carried out.
        let mut pictured_runs = view.doing.iter().filter_map(|doing| doing.plan_run).chain([self.id]);
        let run = match event.body {
            EventBody::SessionSaid { run_id, .. } => Some(run_id),
            _ => event.body.entry_of().map(|(run, _)| run),
        };
        self.news.concerns(event) || (pictured && run.is_some_and(|run| pictured_runs.any(|of| of == run)))
    }

    async fn tell(&mut self, item: &Item, ui: &Ui) -> Result<Option<String>, Error> {
        Ok(self.telling.tell(item, ui))
    }

    async fn picture(&mut self, view: &AutoView, window: Window, _: &mut Client) -> Result<Vec<Row>, Error> {
        Ok(draw::progress(view, &self.plans, window.rows, window.columns))
    }

    async fn come_back(&mut self, client: &mut Client) -> Result<(), Error> {
        let told = client.post(&format!("/auto/{}/means", self.id), &self.means, Repeat::Safe).await;
        told.map(|_: AutoView| ())
    }

    async fn stop(&mut self, how: StopHow, _: &Error, client: &mut Client) -> Result<(), Error> {
        let body = StopPlan { how: Some(how) };
        unless_over(client.post(&format!("/auto/{}/stop", self.id), &body, Repeat::Safe).await)
    }

    fn on_signal(&self) -> OnSignal {
        self.on_signal
    }

    fn how_to_go_on(&self, _: Option<&AutoView>) -> Option<String> {
        Some(match self.on_signal {
            OnSignal::Leave => "it goes on; `posse auto stop` stops it".into(),
            OnSignal::Stop | OnSignal::StopGently => "`posse auto` goes on with it".into(),
        })
    }
}

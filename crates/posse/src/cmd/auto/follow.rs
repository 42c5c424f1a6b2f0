//! A pipeline as something to follow.

use posse_core::ids::RunId;
use posse_core::plan::machine::StopHow;
use posse_server::api::types::{AutoJournalView, MeansIn, StopPlan};
use posse_server::auto::view::AutoView;
use posse_server::plans::view::PlanRunStatus;
use posse_server::record::LogEvent;

use super::{draw, plan_of, words};
use crate::client::{Client, Repeat};
use crate::cmd::follow::{Followed, OnSignal, Standing, Window, unless_over};
use crate::error::Error;
use crate::foot::Row;
use crate::ui::Ui;

pub(super) struct Pipeline {
    id: RunId,
    means: MeansIn,
    /// The last entry that was told.
    last: i64,
    on_signal: OnSignal,
}

impl Pipeline {
    pub(super) fn new(id: RunId, means: MeansIn, on_signal: OnSignal) -> Self {
        Self { id, means, last: 0, on_signal }
    }
}

impl Followed for Pipeline {
    type View = AutoView;
    type News = AutoJournalView;

    fn id(&self) -> RunId {
        self.id
    }

    async fn view(&mut self, client: &mut Client) -> Result<AutoView, Error> {
        client.get(&format!("/auto/{}", self.id)).await
    }

    async fn news(&mut self, client: &mut Client) -> Result<Vec<AutoJournalView>, Error> {
        let path = format!("/auto/{}/journal?after={}", self.id, self.last);
        let entries: Vec<AutoJournalView> = client.get(&path).await?;
        self.last = entries.last().map_or(self.last, |entry| entry.seq);
        Ok(entries)
    }

    fn standing(view: &AutoView) -> Standing {
        match (view.status, view.waits) {
            (PlanRunStatus::Over, _) => Standing::Over,
            (PlanRunStatus::Running, true) => Standing::Alone,
            (PlanRunStatus::Running, false) => Standing::GoesOn,
        }
    }

    fn concerns(&self, event: &LogEvent, view: &AutoView, pictured: bool) -> bool {
        // The picture also has the plan that is carried out.
        let plan = view.doing.as_ref().and_then(|doing| doing.plan_run).filter(|_| pictured);
        let of_plan = plan.is_some_and(|plan| event.data["plan_run"] == plan.as_str());
        event.kind == "run" && (event.data["auto_run"] == self.id.as_str() || of_plan)
    }

    async fn tell(&mut self, entry: &AutoJournalView, ui: &Ui) -> Result<Option<String>, Error> {
        Ok(words::line(entry, ui))
    }

    async fn picture(&mut self, view: &AutoView, window: Window, client: &mut Client) -> Result<Vec<Row>, Error> {
        let plan = plan_of(view, client).await?;
        Ok(draw::progress(view, plan.as_ref(), window.rows, window.columns))
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

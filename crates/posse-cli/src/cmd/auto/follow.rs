//! Follows a pipeline.

use posse_api::{AutoView, EventBody, LogEvent, MeansIn, PlanView};
use posse_core::ids::RunId;

use super::{draw, plans_of};
use crate::client::{Client, Repeat};
use crate::cmd::follow::{Followed, OnSignal, Standing, Window};
use crate::error::Error;
use crate::status_area::Row;

pub(super) struct Pipeline {
    id: RunId,
    means: MeansIn,
    on_signal: OnSignal,
    /// The runs of plans, for the picture.
    plans: Vec<PlanView>,
}

impl Pipeline {
    pub(super) fn new(id: RunId, means: MeansIn, on_signal: OnSignal) -> Self {
        Self { id, means, on_signal, plans: Vec::new() }
    }
}

impl Followed for Pipeline {
    type View = AutoView;

    async fn view(&mut self, run: &str, pictured: bool, client: &mut Client) -> Result<AutoView, Error> {
        let view = client.get(run).await?;
        if pictured {
            self.plans = plans_of(&view, client).await?;
        }
        Ok(view)
    }

    fn standing(view: &AutoView) -> Standing {
        Standing::of(view.status, view.waits)
    }

    fn is_pictured(&self, event: &LogEvent, view: &AutoView) -> bool {
        let mut runs = view.doing.iter().filter_map(|doing| doing.plan_run).chain([self.id]);
        let run = match event.body {
            EventBody::SessionSaid { run_id, .. } => Some(run_id),
            _ => event.body.entry_of().map(|(run, _)| run),
        };
        run.is_some_and(|run| runs.any(|pictured| pictured == run))
    }

    async fn picture(&mut self, view: &AutoView, window: Window, _: &mut Client) -> Result<Vec<Row>, Error> {
        Ok(draw::progress(view, &self.plans, window.rows, window.columns))
    }

    async fn come_back(&mut self, run: &str, client: &mut Client) -> Result<(), Error> {
        let _: AutoView = client.post(&format!("{run}/means"), &self.means, Repeat::Safe).await?;
        Ok(())
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

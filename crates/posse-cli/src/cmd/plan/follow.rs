//! Follows a run of a plan.

use posse_api::{EventBody, LogEvent, PlanIn, PlanRunStatus, PlanView};
use posse_core::ids::RunId;
use posse_core::plan::machine::RunOutcome;

use super::live;
use crate::client::{Client, Repeat};
use crate::cmd::follow::{Followed, OnSignal, Standing, Window};
use crate::error::Error;
use crate::status_area::Row;

pub(super) struct PlanRun {
    pub(super) id: RunId,
    pub(super) body: PlanIn,
    /// The plan, as it was typed.
    pub(super) file: String,
}

impl Followed for PlanRun {
    type View = PlanView;

    /// A plan may have a thousand tasks, so they are fetched only for the picture and at the end.
    async fn view(&mut self, run: &str, pictured: bool, client: &mut Client) -> Result<PlanView, Error> {
        if !pictured {
            let view: PlanView = client.get(&format!("{run}?tasks=false")).await?;
            if view.status == PlanRunStatus::Running {
                return Ok(view);
            }
        }
        client.get(run).await
    }

    fn standing(view: &PlanView) -> Standing {
        Standing::of(view.status, view.waits)
    }

    fn is_pictured(&self, event: &LogEvent, _: &PlanView) -> bool {
        matches!(event.body, EventBody::SessionSaid { run_id, .. } if run_id == self.id)
    }

    async fn picture(&mut self, view: &PlanView, window: Window, _: &mut Client) -> Result<Vec<Row>, Error> {
        Ok(live::picture(view, jiff::Timestamp::now(), window.rows, window.columns))
    }

    async fn come_back(&mut self, _: &str, client: &mut Client) -> Result<(), Error> {
        let _: PlanView = client.post("/plans", &self.body, Repeat::Safe).await?;
        Ok(())
    }

    fn on_signal(&self) -> OnSignal {
        OnSignal::StopGently
    }

    fn how_to_go_on(&self, view: Option<&PlanView>) -> Option<String> {
        let done = view.and_then(|view| view.outcome).is_some_and(RunOutcome::is_success);
        (!done).then(|| format!("`posse plan run {}` goes on with it", self.file))
    }
}

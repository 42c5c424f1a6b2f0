//! The plan's file: what is written there, and what others have written there meanwhile.

use posse_api::PlanEntry;
use posse_core::plan::machine::{Effect, Event};
use posse_core::turn::Level;

use super::Driver;
use crate::disk;
use crate::plans::executor::{PlanWork, merge_texts};
use crate::plans::plan_file::{Edited, PlanFileError};
use crate::run::{Effects, Stopping};

impl Driver {
    /// Takes over the user's edits of the plan's file, if there are any.
    pub(super) async fn file_edited(&mut self) -> Effects<PlanWork> {
        match self.local.file.edited().await {
            Some(edited) => self.take_over(edited).await,
            None => Ok(Vec::new()),
        }
    }

    async fn take_over(&mut self, Edited { ours, theirs }: Edited) -> Effects<PlanWork> {
        match String::from_utf8(theirs) {
            Ok(theirs) => self.edited("somebody", ours.to_string(), theirs).await,
            Err(error) => self.not_taken_over("what is in the plan's file is not UTF-8", error.as_bytes()).await,
        }
    }

    /// A session has changed its copy of the plan. Others may have changed the plan meanwhile.
    pub(super) async fn copy_edited(&mut self, given: String, theirs: String) -> Effects<PlanWork> {
        let mut effects = self.file_edited().await?;
        effects.extend(self.edited("a session", given, theirs).await?);
        Ok(effects)
    }

    /// Takes over an edited text of this plan. If the plan has changed since that text, both edits are merged first.
    async fn edited(&mut self, who: &str, given: String, theirs: String) -> Effects<PlanWork> {
        let run = &self.ledger.machine;
        let event = if run.text().is_same_plan(&given) {
            Some(Event::PlanEdited { ours: given, theirs: theirs.clone() })
        } else {
            let ours = run.mirror().unwrap_or_else(|_| run.text().text().clone());
            let both = merge_texts(&ours, &given, &theirs).await;
            both.map(|theirs| Event::PlanEdited { ours: ours.to_string(), theirs })
        };
        if let Some(event) = event {
            return self.record(PlanEntry::Happened { event: Box::new(event) }).await;
        }
        let why = format!("what {who} changed in the plan does not fit what others changed meanwhile");
        self.not_taken_over(&why, theirs.as_bytes()).await
    }

    /// Moves the user's text aside, and puts the plan in its place.
    async fn not_taken_over(&mut self, why: &str, theirs: &[u8]) -> Effects<PlanWork> {
        let kept = self.executor.state.join("not-taken-over.yaml");
        let theirs = theirs.to_owned();
        let written = disk::at(&kept, move |disk, kept| disk.write_private(kept, &theirs)).await;
        let kept = match written {
            Ok(()) => format!("; it is kept in {}", kept.display()),
            Err(_) => String::new(),
        };
        let text = format!("{why}, and is not taken over{kept}");
        let mut effects = self.record(PlanEntry::Said { level: Level::Warning, item: None, text }).await?;
        effects.push(Effect::WritePlan);
        Ok(effects)
    }

    /// Begins to bring the plan's file up to date. What others have written there is taken over first.
    pub(super) async fn write_plan(&mut self) -> Effects<PlanWork> {
        if self.local.file.is_busy() {
            self.local.file_behind = true;
            return Ok(Vec::new());
        }
        if let Some(edited) = self.local.file.edited().await {
            return self.take_over(edited).await;
        }
        self.local.file.begin(self.ledger.machine.clone());
        Ok(Vec::new())
    }

    pub(super) async fn plan_written(&mut self, written: Result<bool, PlanFileError>) -> Effects<PlanWork> {
        let mut effects = match written {
            Ok(true) => Vec::new(),
            Ok(false) => vec![Effect::WritePlan],
            Err(error) => {
                let text = format!("{} does not show the statuses of tasks: {error}", self.ledger.spec.file);
                self.record(PlanEntry::Said { level: Level::Warning, item: None, text }).await?
            }
        };
        if std::mem::take(&mut self.local.file_behind) {
            effects.push(Effect::WritePlan);
        }
        Ok(effects)
    }

    /// Writes the file as the run leaves it. If that fails, the next run must know which statuses in it are not a person's.
    pub(super) async fn write_last(&mut self) -> Result<(), Stopping> {
        let Err(why) = self.local.file.write_last(&self.ledger.machine).await else { return Ok(()) };
        let shown = self.local.file.shown().iter().map(|(task, record)| (task.clone(), record.status)).collect();
        self.record(PlanEntry::Happened { event: Box::new(Event::FileBehind { shown }) }).await?;
        let text = format!(
            "{} does not show how this run ended, because it cannot be written: {why}; the next run knows it all the same",
            self.ledger.spec.file
        );
        self.record(PlanEntry::Said { level: Level::Warning, item: None, text }).await.map(drop)
    }
}

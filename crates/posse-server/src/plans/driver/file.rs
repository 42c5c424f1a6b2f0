//! The plan's file: what is written there, and what others have written there meanwhile.

use std::io;

use posse_api::PlanEntry;
use posse_core::plan::Plan;
use posse_core::plan::edit::{Mark, NotWritten, same_but_for_statuses, write};
use posse_core::plan::machine::{Effect, Event};
use posse_core::turn::Level;

use super::Driver;
use crate::disk;
use crate::plans::executor::{PlanWork, merge_texts};
use crate::plans::plan_file::{Edited, Prepared};
use crate::run::Effects;

/// Why the plan's file does not show how a run ended.
#[derive(Debug, thiserror::Error)]
pub(super) enum PlanFileError {
    #[error(transparent)]
    Edit(#[from] NotWritten),
    #[error("it is not UTF-8")]
    NoText,
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Driver {
    /// Takes over what somebody has written into the plan's file, if anybody has.
    pub(super) async fn file_edited(&mut self) -> Effects<PlanWork> {
        match self.local.file.edited().await {
            Some(edited) => self.take_over(edited).await,
            None => Ok(Vec::new()),
        }
    }

    async fn take_over(&mut self, edited: Edited) -> Effects<PlanWork> {
        match edited {
            Edited::Text { ours, theirs } => self.edited("somebody", ours, theirs).await,
            Edited::NoText(bytes) => self.not_taken_over("what is in the plan's file is not UTF-8", &bytes).await,
        }
    }

    /// A session has changed its copy of the plan. Others may have changed the plan meanwhile.
    pub(super) async fn copy_edited(&mut self, given: String, theirs: String) -> Effects<PlanWork> {
        let mut effects = self.file_edited().await?;
        effects.extend(self.edited("a session", given, theirs).await?);
        Ok(effects)
    }

    /// Takes over what somebody made of a text of this plan. If others have changed the plan since that text, all of it is
    /// put together first; statuses, which are ours, do not count.
    async fn edited(&mut self, who: &str, given: String, theirs: String) -> Effects<PlanWork> {
        let event = match self.ledger.machine.mirror() {
            Ok(ours) if !same_but_for_statuses(&ours, &given) => {
                let both = merge_texts(&ours, &given, &theirs).await;
                both.map(|theirs| Event::PlanEdited { ours, theirs })
            }
            _ => Some(Event::PlanEdited { ours: given, theirs: theirs.clone() }),
        };
        if let Some(event) = event {
            return self.record(PlanEntry::Happened { event: Box::new(event) }).await;
        }
        let why = format!("what {who} changed in the plan does not fit what others changed meanwhile");
        self.not_taken_over(&why, theirs.as_bytes()).await
    }

    /// Puts aside what somebody has written, and the plan in its place.
    async fn not_taken_over(&mut self, why: &str, theirs: &[u8]) -> Effects<PlanWork> {
        let kept = self.executor.state.join("not-taken-over.yaml");
        let theirs = theirs.to_owned();
        let written = disk::at(&kept, move |disk, kept| disk.write_private(kept, &theirs)).await;
        let kept = match written {
            Ok(()) => format!("; it is kept in {}", kept.display()),
            Err(_) => String::new(),
        };
        let text = format!("{why}, and is not taken over{kept}");
        let mut effects = self.record(PlanEntry::Said { level: Level::Warning, text }).await?;
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
        match self.ledger.machine.mirror() {
            Ok(text) => {
                self.local.file.begin(text);
                Ok(Vec::new())
            }
            Err(error) => self.not_written(error.to_string()).await,
        }
    }

    /// Puts what was written in its place.
    pub(super) async fn put_plan(&mut self, prepared: io::Result<Option<Prepared>>) -> Effects<PlanWork> {
        let put = match prepared {
            Ok(prepared) => self.local.file.put(prepared).await,
            Err(error) => Err(error),
        };
        let mut effects = match put {
            Ok(true) => Vec::new(),
            Ok(false) => vec![Effect::WritePlan],
            Err(error) => self.not_written(format!("{}: {error}", self.ledger.spec.file)).await?,
        };
        if std::mem::take(&mut self.local.file_behind) {
            effects.push(Effect::WritePlan);
        }
        Ok(effects)
    }

    /// The journal has it all; the file is for people.
    async fn not_written(&mut self, why: String) -> Effects<PlanWork> {
        let text = format!("the plan's file is behind: {why}");
        self.record(PlanEntry::Said { level: Level::Warning, text }).await
    }

    /// The file as the run leaves it. Edits of the last moment stay, for the next run, which must know all the same what has
    /// become of the tasks.
    pub(super) async fn write_last(&mut self) -> Result<(), PlanFileError> {
        let run = &self.ledger.machine;
        let mirror = run.mirror()?;
        let mark = Plan::read(&self.ledger.spec.file, &mirror).map(|(plan, _)| Mark::of(&plan)).unwrap_or_default();
        let mut text = mirror;
        loop {
            // If it is no plan at the moment, it is not ours to write over.
            text = match self.local.file.edited().await {
                Some(Edited::Text { theirs, .. }) => write(&theirs, run.state(), &mark)?,
                Some(Edited::NoText(_)) => return Err(PlanFileError::NoText),
                None => text,
            };
            if self.local.file.write(&text).await? {
                return Ok(());
            }
        }
    }
}

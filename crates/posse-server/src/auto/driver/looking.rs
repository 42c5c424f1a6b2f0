//! When a pipeline looks around: at the backlog and the checkout, at what everyone has spent, at stop files.

use posse_api::AutoEntry;
use posse_core::auto::words::{Candidate, Effect, Event};
use posse_core::turn::Level;
use tokio::time::{Duration, Instant};

use super::super::scan;
use super::super::watching::BacklogChange;
use super::{Driver, Stopping};
use crate::backlog::checkout::why_away;
use crate::disk;
use crate::plans::Account;
use crate::plans::stop_file::StopFileMeaning;

/// Files come in crowds: an editor writes, renames and removes within this time.
const SETTLE: Duration = Duration::from_millis(150);

/// What a look has found.
pub(super) struct Seen {
    /// Which look it was. Only the newest says how things are.
    number: u64,
    backlog: Vec<Candidate>,
    /// Why it is not the backlog that is worked through.
    away: Option<String>,
}

impl Driver {
    /// Returns when to scan next: soon after a change, and as often as configured.
    pub(super) fn next_look(&self) -> Option<Instant> {
        let configured = self.ledger.spec.config.pipeline.safety_scan_seconds;
        let every = configured.map(|seconds| Duration::from_secs(seconds.into())).filter(|_| self.wants_to_look());
        self.look.or(every.map(|every| self.looked_at + every))
    }

    /// Whether something new in the backlog would be taken up. If not, it is looked at in time without being told.
    fn wants_to_look(&self) -> bool {
        self.ledger.pipeline.wants_items() || self.ledger.pipeline.away().is_some()
    }

    /// Something may have changed while nobody looked.
    pub(super) fn look_first(&mut self) {
        if self.wants_to_look() {
            self.look = Some(Instant::now());
        }
    }

    /// Schedules a scan after a change.
    pub(super) fn changed(&mut self, change: BacklogChange) {
        let mut checkout = change == BacklogChange::Checkout;
        while let Ok(more) = self.watching.changes.try_recv() {
            checkout |= more == BacklogChange::Checkout;
        }
        // The look that is under way may have been too early to see it.
        let looking = self.ledger.pipeline.outstanding().contains(&Effect::Scan);
        if self.look.is_none() && (checkout || looking || self.wants_to_look()) {
            self.look = Some(Instant::now() + SETTLE);
        }
    }

    /// It is time to look.
    pub(super) async fn look_now(&mut self) -> Result<Vec<Effect>, Stopping> {
        let asked = self.look.take().is_some();
        if asked || self.wants_to_look() {
            self.look_elsewhere();
        }
        self.looked_at = Instant::now();
        self.stop_asked_for().await
    }

    /// Looks in a task of its own.
    pub(super) fn look_elsewhere(&mut self) {
        self.looked_at = Instant::now();
        self.looks += 1;
        let number = self.looks;
        let (spec, pipeline) = (self.doing.spec.clone(), self.ledger.pipeline.clone());
        let seen = self.seen.0.clone();
        crate::spawn(async move {
            let backlog = {
                let spec = spec.clone();
                disk::run(move |disk| scan::candidates(disk, &spec, &pipeline)).await
            };
            // After the look: what was seen is of what is checked out now, or of nothing.
            let away = why_away(std::path::Path::new(&spec.directory), spec.home.as_deref()).await;
            let _ = seen.send(Seen { number, backlog, away });
        });
    }

    /// Nothing is written down if nothing has changed and nobody asked.
    pub(super) async fn looked(&mut self, seen: Seen) -> Result<Vec<Effect>, Stopping> {
        if seen.number != self.looks {
            return Ok(Vec::new());
        }
        let pipeline = &self.ledger.pipeline;
        let asked = pipeline.outstanding().contains(&Effect::Scan);
        let event = pipeline.difference(seen.backlog, seen.away);
        let nothing = matches!(&event, Event::Scanned { changed, gone, away }
            if changed.is_empty() && gone.is_empty() && away.as_deref() == pipeline.away());
        if nothing && !asked {
            return Ok(Vec::new());
        }
        // What was spent some time ago may count no more.
        let mut effects = self.count_money().await?;
        effects.extend(self.happen(event).await?);
        Ok(effects)
    }

    /// Reads what was spent on levels that others spend on too, and writes it down if it is new.
    pub(super) async fn count_money(&mut self) -> Result<Vec<Effect>, Stopping> {
        let spec = &self.ledger.spec;
        let run = spec.id.to_string();
        let account = Account { run: &run, file: None, item: None, project: &spec.directory };
        let mut levels = Vec::new();
        for level in self.ledger.pipeline.levels().iter().filter(|level| level.of.is_shared()) {
            match self.app.plans.spent_by(level, &account).await {
                Ok(total) => levels.push((level.name.clone(), total)),
                Err(error) => tracing::warn!("what was spent cannot be read: {error}"),
            }
        }
        match self.ledger.pipeline.knows(&levels) {
            true => Ok(Vec::new()),
            false => self.happen(Event::Spent { levels }).await,
        }
    }

    /// Somebody may have put a file there that says so. It goes when everyone has written down what came of it.
    pub(super) async fn stop_asked_for(&mut self) -> Result<Vec<Effect>, Stopping> {
        let mut effects = Vec::new();
        while let Some(found) = self.stop_files.look().await {
            match found.meaning {
                StopFileMeaning::Stale => {
                    let text = format!("{} was there before this pipeline; it is not heeded", found.path.display());
                    effects.extend(self.record(AutoEntry::Said { level: Level::Warning, item: None, text }).await?);
                }
                StopFileMeaning::Stop(how) => effects.extend(self.happen(Event::Stop(how)).await?),
            }
            self.stop_files.dealt_with(&found).await;
        }
        Ok(effects)
    }
}

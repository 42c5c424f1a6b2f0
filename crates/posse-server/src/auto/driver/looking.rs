//! Schedules scans of the backlog and the checkout.

use posse_core::auto::messages::{Candidate, Effect, Event};
use posse_core::engine::Machine;
use tokio::time::{Duration, Instant};

use super::super::watching::BacklogChange;
use super::super::{AutoLedger, scan};
use super::{BacklogLocal, BacklogWake, BacklogWork, Driver};
use crate::backlog::checkout::why_away;
use crate::disk;
use crate::run::Effects;
use crate::run::executor::Signal;

/// Files come in crowds: an editor writes, renames and removes within this time.
const SETTLE: Duration = Duration::from_millis(150);

/// The result of a scan.
pub(crate) struct Seen {
    /// The number of the scan. Only the newest scan counts.
    number: u64,
    backlog: Vec<Candidate>,
    /// The reason why the checkout is not the backlog's.
    away: Option<String>,
}

/// Returns when to scan next: soon after a change, and as often as configured.
pub(super) fn next_look(local: &BacklogLocal, ledger: &AutoLedger) -> Option<Instant> {
    let configured = ledger.spec.config.pipeline.safety_scan_seconds;
    let every = configured.map(|seconds| Duration::from_secs(seconds.into())).filter(|_| wants_to_look(ledger));
    local.look.or(every.map(|every| local.looked_at + every))
}

/// Reports whether something new in the backlog would be taken up. If not, the machine asks for a scan in time.
fn wants_to_look(ledger: &AutoLedger) -> bool {
    ledger.machine.wants_items() || ledger.machine.away().is_some()
}

impl Driver {
    /// Schedules a scan, as changes may have been missed.
    pub(super) fn look_first(&mut self) {
        if wants_to_look(&self.ledger) {
            self.local.look = Some(Instant::now());
        }
    }

    /// Schedules a scan after a change.
    pub(super) fn changed(&mut self, change: BacklogChange) {
        let checkout = change == BacklogChange::Checkout;
        // The look that is under way may have been too early to see it.
        let looking = self.ledger.machine.outstanding().contains(&Effect::Scan);
        if self.local.look.is_none() && (checkout || looking || wants_to_look(&self.ledger)) {
            self.local.look = Some(Instant::now() + SETTLE);
        }
    }

    /// It is time to look.
    pub(super) fn look_now(&mut self) {
        let asked = self.local.look.take().is_some();
        if asked || wants_to_look(&self.ledger) {
            self.look_elsewhere();
        }
        self.local.looked_at = Instant::now();
        self.stop_files.look();
    }

    /// Looks in a task of its own.
    pub(super) fn look_elsewhere(&mut self) {
        self.local.looked_at = Instant::now();
        self.local.looks += 1;
        let number = self.local.looks;
        let (spec, pipeline) = (self.executor.spec.clone(), self.ledger.machine.clone());
        let signals = self.executor.signals.clone();
        crate::spawn(async move {
            let of = spec.clone();
            let backlog = disk::run(move |disk| scan::candidates(disk, &of, &pipeline)).await;
            // Check after the scan, which may have read a different checkout.
            let away = why_away(std::path::Path::new(&spec.directory), spec.home.as_deref()).await;
            let _ = signals.send(Signal::Wake(BacklogWake::Seen(Seen { number, backlog, away })));
        });
    }

    /// Journals a scan only if something has changed or a caller requested it.
    pub(super) async fn looked(&mut self, seen: Seen) -> Effects<BacklogWork> {
        if seen.number != self.local.looks {
            return Ok(Vec::new());
        }
        let pipeline = &self.ledger.machine;
        let asked = pipeline.outstanding().contains(&Effect::Scan);
        let event = pipeline.difference(seen.backlog, seen.away);
        let nothing = matches!(&event, Event::Scanned { changed, gone, away }
            if changed.is_empty() && gone.is_empty() && away.as_deref() == pipeline.away());
        if nothing && !asked {
            return Ok(Vec::new());
        }
        // Older spending may no longer count.
        let mut effects = self.look_at_limits().await?;
        effects.extend(self.apply(event).await?);
        Ok(effects)
    }
}

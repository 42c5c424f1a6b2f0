//! Letting go of what is old or too much.

use std::collections::BTreeSet;
use std::time::SystemTime;

use posse_api::{DeleteReason, EventBody};
use posse_core::ids::TerminalId;

use super::{Hub, of};
use crate::{disk, retention, store};

impl Hub {
    pub(super) fn tidy(&mut self) {
        self.since_tidy = 0;
        let now = crate::now();
        for id in retention::expired(self.terminals.values().map(|entry| &entry.record), now) {
            self.terminals.remove(&id);
            self.routes.remove(id);
            let deleted = EventBody::TerminalDeleted { reason: DeleteReason::Expired, processes_left: 0 };
            self.emit(of(id, deleted), vec![store::Change::Drop(id)]);
        }
        let before = now.0 - retention::AGE.as_millis() as i64;
        self.store.write(vec![store::Change::Trim { before, keep: retention::EVENTS }], |_| {});
        let known = self.known();
        let (screens, log) = (self.paths.screens(), self.paths.log());
        tokio::spawn(disk::run(move |disk| {
            let _ = retention::tidy_files(disk, &screens, &known);
            let _ = retention::tidy_log(disk, &log);
        }));
        self.tidy_recordings();
    }

    pub(super) fn tidy_recordings(&self) {
        let (directory, known) = (self.paths.recordings(), self.known());
        let running: BTreeSet<TerminalId> = self.running().map(|entry| entry.record.id).collect();
        let as_of = SystemTime::now();
        tokio::spawn(disk::run(move |disk| {
            if let Err(error) = retention::tidy_recordings(disk, &directory, &known, &running, as_of) {
                tracing::warn!("old recordings cannot be removed: {error}");
            }
        }));
    }

    fn known(&self) -> BTreeSet<TerminalId> {
        self.terminals.keys().copied().collect()
    }
}

//! Entries of the audit that an earlier daemon left incomplete.

use posse_core::audit::{Ended, Entry, Note, Step};
use tokio::sync::oneshot;

use super::machine::log_audit;
use crate::store::{Change, Writer};

/// Completes the entries of answers during which the last daemon was killed. Returns when they are written, or refused for now.
pub(crate) async fn complete_unfinished(writer: &Writer, unfinished: Vec<Entry>) {
    for Entry { seq, note } in unfinished {
        let note = Note { at: crate::now(), step: Step::Outcome(Ended::cut_off(seq)), ..note };
        let (done, completed) = oneshot::channel();
        writer.write_surely(vec![Change::Audit(Box::new(note.clone()))], move |outcome| {
            let _ = done.send(log_audit(note, outcome));
        });
        let _ = completed.await;
    }
}

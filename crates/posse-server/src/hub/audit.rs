//! Answers to dialogs, written down before they are given and when they are over.

use posse_core::audit::{Ended, Entry, Note, Step};
use posse_core::visible;
use tokio::sync::oneshot;

use super::Hub;
use crate::pump::{self, Handle};
use crate::store::{self, Outcome, Writer};

impl Hub {
    /// Adds the name of the terminal.
    fn named(&self, mut note: Box<Note>) -> Box<Note> {
        note.name = self.terminals.get(&note.terminal).map(|entry| entry.record.name.to_string());
        note
    }

    /// An answer is about to be given. If it cannot be written down it is not.
    pub(super) fn answering(&self, note: Box<Note>, pump: Handle) {
        let note = self.named(note);
        let change = store::Change::Audit(note.clone());
        self.store.write(vec![change], move |outcome| pump.send(pump::Event::AnswerNoted(logged(*note, outcome))));
    }

    /// An answer is over. This is kept until the disk takes it: what was done has been done.
    pub(super) fn answer_over(&self, note: Box<Note>, then: Box<dyn FnOnce() + Send>) {
        let note = self.named(note);
        let change = store::Change::Audit(note.clone());
        self.store.write_surely(vec![change], move |outcome| {
            logged(*note, outcome);
            then();
        });
    }
}

/// A daemon before this one was cut off between the two entries of an answer. Done when that is written, or cannot be for
/// now.
pub(crate) async fn complete_unfinished(writer: &Writer, unfinished: Vec<Entry>) {
    for Entry { seq, note } in unfinished {
        let note = Note { at: crate::now(), step: Step::Outcome(Ended::cut_off(seq)), ..note };
        let (tell, told) = oneshot::channel();
        writer.write_surely(vec![store::Change::Audit(Box::new(note.clone()))], move |outcome| {
            let _ = tell.send(logged(note, outcome));
        });
        let _ = told.await;
    }
}

/// Its number, if it was written. The log has it too.
fn logged(note: Note, outcome: Outcome) -> Option<i64> {
    match outcome {
        Outcome::Written(numbers) => {
            let seq = numbers.first().copied()?;
            tracing::info!("{}", visible::lines(&Entry { seq, note }.to_string()));
            Some(seq)
        }
        Outcome::Refused(why) => {
            tracing::warn!(terminal = %note.terminal, "the audit cannot be written: {why}");
            None
        }
    }
}

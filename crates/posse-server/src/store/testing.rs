//! A home with a database, for tests.

use std::path::PathBuf;
use std::sync::mpsc::channel;

use rusqlite::Connection;
use tokio::sync::mpsc;

use super::writer::Batch;
use super::{Change, Found, StoreError, StoreHandle, WriteResult, Writer, open};
use crate::anchor::Anchor;
use crate::disk::Disk;

pub(crate) struct Home(pub(crate) tempfile::TempDir);

impl Home {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.0.path().join("posse.db")
    }

    pub(crate) fn try_open(&self) -> Result<(Writer, Found), StoreError> {
        open(Disk::of_this_thread(), &self.database(), Anchor::none())
    }

    pub(crate) fn open(&self) -> (Writer, Found) {
        self.try_open().unwrap()
    }

    /// A connection of another program.
    pub(crate) fn other(&self) -> Connection {
        Connection::open(self.database()).unwrap()
    }
}

pub(crate) fn write(writer: &Writer, changes: Vec<Change>) -> WriteResult {
    let (told, result) = channel();
    writer.handle.write(changes, move |result| told.send(result).unwrap());
    result.recv().unwrap()
}

/// A store that is the test: batches come out, to be answered.
pub(crate) fn played() -> (StoreHandle, mpsc::UnboundedReceiver<Batch>) {
    let (handle, mut queue) = StoreHandle::unconnected();
    let (batches, played) = mpsc::unbounded_channel();
    std::thread::spawn(move || queue.try_for_each(|batch| batches.send(batch)));
    (handle, played)
}

#[track_caller]
pub(crate) fn written(writer: &Writer, changes: Vec<Change>) -> Vec<i64> {
    write(writer, changes).unwrap()
}

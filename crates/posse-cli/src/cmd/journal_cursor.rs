//! The entries of a run's journal, in order and each once: taken from the event that brings the next one, else read from the
//! daemon.

use posse_api::{AutoJournalView, EventBody, LogEvent, LoopJournalView, PlanJournalView};
use posse_core::ids::RunId;
use serde::de::DeserializeOwned;

use crate::client::Client;
use crate::error::Error;

/// An entry that says where in its journal it is.
pub(super) trait Numbered {
    fn seq(&self) -> i64;
}

impl Numbered for LoopJournalView {
    fn seq(&self) -> i64 {
        self.seq
    }
}

impl Numbered for PlanJournalView {
    fn seq(&self) -> i64 {
        self.seq
    }
}

impl Numbered for AutoJournalView {
    fn seq(&self) -> i64 {
        self.seq
    }
}

pub(super) struct JournalCursor<V> {
    run: RunId,
    /// The route of the run, without its id.
    route: &'static str,
    /// The place of the last entry that was returned.
    last: i64,
    of_event: fn(&EventBody) -> Option<&V>,
}

impl<V: Clone + DeserializeOwned + Numbered> JournalCursor<V> {
    pub(super) fn new(run: RunId, route: &'static str, of_event: fn(&EventBody) -> Option<&V>) -> Self {
        Self { run, route, last: 0, of_event }
    }

    pub(super) fn run(&self) -> RunId {
        self.run
    }

    pub(super) fn is_at_start(&self) -> bool {
        self.last == 0
    }

    /// Whether this event brings an entry of the run.
    pub(super) fn concerns(&self, event: &LogEvent) -> bool {
        event.body.entry_of().is_some_and(|(run, _)| run == self.run)
    }

    /// The entries that are new after this event. Without an event, everything since the last call.
    pub(super) async fn next(&mut self, event: Option<&LogEvent>, client: &mut Client) -> Result<Vec<V>, Error> {
        if let Some(event) = event {
            match event.body.entry_of().filter(|(run, _)| *run == self.run) {
                None => return Ok(Vec::new()),
                Some((_, seq)) if seq <= self.last => return Ok(Vec::new()),
                Some((_, seq)) if seq == self.last + 1 => {
                    if let Some(entry) = (self.of_event)(&event.body) {
                        self.last = seq;
                        return Ok(vec![entry.clone()]);
                    }
                }
                Some(_) => {}
            }
        }
        let path = format!("/{}/{}/journal?after={}", self.route, self.run, self.last);
        let entries: Vec<V> = client.get(&path).await?;
        self.last = entries.last().map_or(self.last, V::seq);
        Ok(entries)
    }
}

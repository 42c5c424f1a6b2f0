//! Records a played scenario: the statuses that posse reports, and when texts appear on the screen and disappear.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use posse_api::{EventBody, LogEvent, StatusView};
use posse_core::ids::TerminalId;
use posse_core::screen::Screen;
use posse_core::status::WaitingKind;
use posse_sim::watched::Watched;
use serde::Deserialize;

use super::score::ReportedStatus;
use super::truth::{Millis, TruthEvent, TruthFact};
use crate::http::Client;
use crate::stream::Stream;

pub(super) fn now() -> Millis {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as Millis)
}

/// The watched texts, with the kind of dialog each belongs to.
pub(super) type Markers = BTreeMap<String, WaitingKind>;

#[derive(Default)]
struct WitnessState {
    screen: Option<Screen>,
    told: Vec<ReportedStatus>,
    facts: Vec<TruthFact>,
}

pub(super) struct Witness {
    shared: Arc<Watched<WitnessState>>,
    threads: Vec<JoinHandle<()>>,
}

impl Witness {
    pub(super) fn new(client: &Client, id: TerminalId, markers: Markers) -> io::Result<Self> {
        let shared = Arc::<Watched<WitnessState>>::default();
        // From the beginning: the terminal may have reported something earlier.
        let mut events = client.events(Some(0))?;
        let stream = Stream::open(client, id, None, 1)?;
        let listening = std::thread::spawn({
            let shared = shared.clone();
            move || {
                while let Ok(Some(event)) = events.next_event() {
                    if let Some(told) = read_status(&event, id) {
                        shared.change(|seen| seen.told.push(told));
                    }
                }
            }
        });
        let looking = std::thread::spawn({
            let (shared, client) = (shared.clone(), client.clone());
            move || look_on(&shared, &client, stream, id, &markers)
        });
        Ok(Self { shared, threads: vec![listening, looking] })
    }

    pub(super) fn screen_within(&self, patience: Duration, fits: impl Fn(&Screen) -> bool) -> bool {
        self.shared.wait(patience, |seen| seen.screen.as_ref().is_some_and(&fits))
    }

    pub(super) fn drawn_within(&self, patience: Duration, count: usize) -> bool {
        let drawn = |fact: &&TruthFact| matches!(fact.what, TruthEvent::Drawn(_));
        self.shared.wait(patience, |seen| seen.facts.iter().filter(drawn).count() >= count)
    }

    pub(super) fn screen_text(&self) -> String {
        let seen = self.shared.look();
        seen.screen.as_ref().map(|screen| format!("{:?}\n{}", screen.title, screen.text())).unwrap_or_default()
    }

    /// Returns the recorded statuses and facts. Waits for the exit of the daemon.
    pub(super) fn finish(mut self) -> (Vec<ReportedStatus>, Vec<TruthFact>) {
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
        let mut seen = self.shared.look();
        (std::mem::take(&mut seen.told), std::mem::take(&mut seen.facts))
    }
}

fn look_on(shared: &Watched<WitnessState>, client: &Client, mut stream: Stream, id: TerminalId, markers: &Markers) {
    let mut present = vec![false; markers.len()];
    loop {
        // The screen read below is from this time or later, so its content was drawn before.
        let at = now();
        let Ok(screen) = client.get::<Screen>(&format!("/terminals/{id}/screen")) else { return };
        let text = screen.text();
        shared.change(|seen| {
            for ((marker, kind), present) in markers.iter().zip(&mut present) {
                let is_there = text.contains(marker.as_str());
                if is_there != *present {
                    let what = if is_there { TruthEvent::Drawn(*kind) } else { TruthEvent::Gone };
                    seen.facts.push(TruthFact { at, what });
                    *present = is_there;
                }
            }
            seen.screen = Some(screen);
        });
        // The stream ends with the daemon.
        if stream.next_item().is_err() {
            return;
        }
    }
}

fn read_status(event: &serde_json::Value, id: TerminalId) -> Option<ReportedStatus> {
    let event: LogEvent = Deserialize::deserialize(event).ok()?;
    let EventBody::StatusChanged(StatusView { status: kind, reason, waiting_kind: waiting, dialog, .. }) = event.body
    else {
        return None;
    };
    let told = ReportedStatus { at: event.at.as_millisecond(), kind, waiting, dialog: dialog.is_some(), reason };
    (event.terminal == Some(id)).then_some(told)
}

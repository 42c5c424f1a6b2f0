//! A recording played into the same decisions that watch a live terminal, in its own time.

use std::io::BufRead;
use std::time::Duration;

use posse_agents::Provider;
use posse_core::detect::{Look, Memo, Reading};
use posse_core::frame::FrameClock;
use posse_core::screen::{Painted, Size};
use posse_core::signal::Signal;
use posse_core::status::{Event, Life, Status};
use posse_core::time::{Mono, Wall};
use posse_term::cast::{CastError, CastEventKind, CastReader};
use posse_term::emulator::{Emulator, HistoryLimit};
use serde::Serialize;

/// Nothing that waits for quiet waits longer.
const AFTERWARDS: Duration = Duration::from_secs(5);

/// The status became another one.
#[derive(Serialize)]
pub(super) struct StatusChange {
    /// Seconds from the beginning.
    pub(super) at: f64,
    /// Bytes from the beginning.
    pub(super) offset: u64,
    #[serde(flatten)]
    pub(super) status: Status,
    /// The rule of the last reading of the screen.
    pub(super) rule: Option<String>,
}

pub(super) struct RecordingReplay<'p> {
    provider: &'p Provider,
    emulator: Emulator,
    memo: Memo,
    frames: FrameClock<Mono>,
    life: Life,
    reading: Option<Reading>,
    now: Mono,
    changes: Vec<StatusChange>,
}

impl<'p> RecordingReplay<'p> {
    pub(super) fn new(provider: &'p Provider, size: Size) -> Self {
        Self {
            provider,
            emulator: Emulator::new(size, HistoryLimit::default()),
            memo: Memo::default(),
            frames: FrameClock::default(),
            life: Life::starting(Wall(0)),
            reading: None,
            now: Mono::default(),
            changes: Vec::new(),
        }
    }

    /// Plays a recording of posse.
    pub(super) fn cast(mut self, recording: CastReader<impl BufRead>) -> Result<Vec<StatusChange>, CastError> {
        for event in recording {
            let event = event?;
            match event.what {
                CastEventKind::Output(bytes) => self.output(Mono(event.at), &bytes),
                CastEventKind::Resized(size) => self.emulator.resize(size),
                CastEventKind::Evidence(json) => self.evidence(Mono(event.at), &json),
                CastEventKind::Mark(_) => {}
            }
        }
        Ok(self.finish())
    }

    fn finish(mut self) -> Vec<StatusChange> {
        self.pass(self.now + AFTERWARDS);
        self.changes
    }

    /// Takes in what a newer or older posse may have written differently, as far as it is understood.
    fn evidence(&mut self, at: Mono, json: &str) {
        if let Ok(event) = serde_json::from_str(json) {
            self.pass(at);
            self.live(&event);
        }
    }

    fn output(&mut self, at: Mono, bytes: &[u8]) {
        self.pass(at);
        let heard = self.emulator.feed(bytes);
        for signal in &heard.signals {
            self.hear(signal);
        }
        self.frames.printed(heard.frame_ended && !self.emulator.in_frame(), self.now);
        if self.frames.due(self.now) {
            self.look();
        }
    }

    /// Lets time pass, and what comes due in it happen.
    fn pass(&mut self, until: Mono) {
        while let Some(due) = self.frames.deadline().into_iter().chain(self.life.deadline()).min()
            && due <= until
        {
            self.now = self.now.max(due);
            if self.frames.due(self.now) {
                self.look();
            }
            let before = self.life.deadline();
            self.live(&Event::Time);
            if self.life.deadline() == before && self.frames.deadline().is_none() {
                break;
            }
        }
        self.now = self.now.max(until);
    }

    fn hear(&mut self, signal: &Signal) {
        if let Some((source, claim)) = self.provider.manifest.signals.hear(signal) {
            self.live(&Event::Said(source, claim));
        }
    }

    fn look(&mut self) {
        let screen = self.emulator.screen();
        let colours = Some(&self.emulator as &dyn Painted);
        let look = Look { rows: &screen.rows, title: Some(&screen.title), foreground: None, colours };
        let event = Event::Read(self.provider.detector.read(look, &mut self.memo));
        self.live(&event);
        if let Event::Read(reading) = event {
            self.reading = Some(reading);
        }
    }

    fn live(&mut self, event: &Event) {
        let wall = Wall(i64::try_from(self.now.0.as_millis()).unwrap_or(i64::MAX));
        let Some(status) = self.life.handle(event, self.now, wall).cloned() else { return };
        let rule = match event {
            Event::Read(reading) => Some(reading.rule.clone()),
            _ => self.reading.as_ref().map(|reading| reading.rule.clone()),
        };
        self.changes.push(StatusChange { at: self.now.0.as_secs_f64(), offset: self.emulator.offset(), status, rule });
    }
}

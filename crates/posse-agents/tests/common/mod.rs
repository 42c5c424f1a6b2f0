//! Reading texts the way screens are read.
#![allow(dead_code, clippy::unwrap_used)]

use std::sync::Arc;

use posse_agents::manifest::built_in;
use posse_core::detect::{Detector, Look, Memo, Reading};
use posse_core::screen::Size;
use posse_term::emulator::{Emulator, HistoryLimit};

pub(crate) fn detector(provider: &str, profile: Option<&str>) -> Arc<Detector> {
    built_in(provider).unwrap().unwrap().for_profile(profile).unwrap()
}

/// Lines as they are.
pub(crate) fn lines(text: &str) -> Vec<String> {
    text.split('\n').map(str::to_owned).collect()
}

/// What a terminal shows of it.
pub(crate) fn shown(text: &str) -> Vec<String> {
    let mut emulator = Emulator::new(Size::clamped(60, 200), HistoryLimit::default());
    emulator.feed(text.replace('\n', "\r\n").as_bytes());
    emulator.screen().rows
}

pub(crate) fn read(detector: &Detector, rows: &[String]) -> Reading {
    detector.read(Look { rows, ..Look::default() }, &mut Memo::default())
}

/// `idle`, `waiting_user_answer/permission` and so on.
pub(crate) fn status(reading: &Reading) -> String {
    let status = reading.status.map_or("nothing", |status| status.as_str());
    match reading.waiting_kind {
        Some(kind) => format!("{status}/{}", serde_json::to_value(kind).unwrap().as_str().unwrap()),
        None => status.to_owned(),
    }
}

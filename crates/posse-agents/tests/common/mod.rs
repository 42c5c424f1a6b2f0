//! Reading texts the way screens are read.
#![allow(dead_code, clippy::unwrap_used)]

use std::path::{Path, PathBuf};
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

/// A text that is read as one of the expected statuses, which are separated by blanks.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) title: Option<String>,
    pub(crate) text: String,
    pub(crate) expected: String,
}

/// Returns the list under this key of a TOML file.
pub(crate) fn cases<T: serde::de::DeserializeOwned>(file: &str, key: &str) -> Vec<T> {
    let mut lists: toml::Table = file.parse().unwrap();
    lists.remove(key).unwrap_or_else(|| panic!("no list {key}")).try_into().unwrap()
}

/// Reads every text twice: as lines, and as what a terminal shows of it.
pub(crate) fn check(provider: &str, profile: Option<&str>, cases: &[Case]) {
    let detector = detector(provider, profile);
    let mut wrong = Vec::new();
    for Case { name, title, text, expected } in cases {
        for (how, rows) in [("lines", lines(text)), ("shown", shown(text))] {
            // Escapes are for terminals.
            if how == "lines" && text.contains('\x1b') {
                continue;
            }
            let look = Look { rows: &rows, title: title.as_deref(), ..Look::default() };
            let reading = detector.read(look, &mut Memo::default());
            let status = status(&reading);
            let plain = status.split('/').next().unwrap_or_default();
            if !expected.split(' ').any(|expected| expected == status || expected == plain) {
                wrong.push(format!("{name} ({how}): {status} by {} on {:?}", reading.rule, reading.evidence));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[derive(serde::Deserialize)]
pub(crate) struct Labelled {
    pub(crate) screen: String,
    pub(crate) title: Option<String>,
    pub(crate) foreground: Option<String>,
    pub(crate) accept: Vec<String>,
    pub(crate) waiting_kind: Option<String>,
    /// What failed: `server`, `dropped`, `other`, `nothing`, or `limit` and when there will be more.
    pub(crate) failure: Option<String>,
    #[serde(default)]
    pub(crate) ambiguous: bool,
}

pub(crate) fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name)
}

/// The recorded screens of a version of an agent.
pub(crate) struct Folder {
    path: PathBuf,
    pub(crate) labelled: Vec<Labelled>,
}

impl Folder {
    pub(crate) fn open(folder: &str) -> Self {
        let path = fixture(folder);
        let labelled = serde_json::from_slice(&std::fs::read(path.join("manifest.json")).unwrap()).unwrap();
        Self { path, labelled }
    }

    pub(crate) fn text(&self, screen: &str) -> String {
        std::fs::read_to_string(self.path.join(screen)).unwrap()
    }

    pub(crate) fn rows(&self, screen: &str) -> Vec<String> {
        self.text(screen).lines().map(|row| row.trim_end_matches(' ').to_owned()).collect()
    }
}

//! Every labelled screen, read by screen, title and foreground; and again by the screen alone.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};

use posse_agents::manifest::built_in;
use posse_core::detect::{Detector, Look, Memo, Reading};

#[derive(serde::Deserialize)]
struct Labelled {
    screen: String,
    title: Option<String>,
    foreground: Option<String>,
    accept: Vec<String>,
    waiting_kind: Option<String>,
    #[serde(default)]
    ambiguous: bool,
}

struct Folder {
    path: PathBuf,
    labelled: Vec<Labelled>,
}

impl Folder {
    fn open(folder: &str) -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(folder);
        let labelled: Vec<Labelled> =
            serde_json::from_slice(&std::fs::read(path.join("manifest.json")).unwrap()).unwrap();
        Self { path, labelled }
    }

    fn rows(&self, screen: &str) -> Vec<String> {
        let text = std::fs::read_to_string(self.path.join(screen)).unwrap();
        text.lines().map(|row| row.trim_end_matches(' ').to_owned()).collect()
    }

    /// The screens that are not read as they are labelled.
    fn wrong(&self, detector: &Detector, with_title: bool) -> Vec<String> {
        let scored = self.labelled.iter().filter(|screen| !screen.ambiguous);
        let wrong = scored.filter_map(|screen| {
            let rows = self.rows(&screen.screen);
            let title = screen.title.as_deref().filter(|_| with_title);
            let look = Look { rows: &rows, title, foreground: screen.foreground.as_deref(), colours: None };
            let reading = detector.read(look, &mut Memo::default());
            (!agrees(screen, &reading)).then(|| {
                format!("{}: {:?} by {} on {:?}", screen.screen, reading.status, reading.rule, reading.evidence)
            })
        });
        wrong.collect()
    }
}

fn agrees(screen: &Labelled, reading: &Reading) -> bool {
    let status = reading.status.map_or("none", |status| status.as_str());
    let kind = reading.waiting_kind.map(|kind| serde_json::to_value(kind).unwrap());
    let startup = screen.waiting_kind.is_none() == (kind != Some("startup".into()));
    startup && screen.accept.iter().any(|accepted| accepted == status)
}

/// `missed` are the screens that cannot be read without their title.
fn check(provider: &str, folder: &str, missed: &[&str]) {
    let provider = built_in(provider).unwrap().unwrap();
    let folder = Folder::open(folder);
    let wrong = folder.wrong(&provider.detector, true);
    assert!(wrong.is_empty(), "{} of {} wrong\n{}", wrong.len(), folder.labelled.len(), wrong.join("\n"));
    let wrong = folder.wrong(&provider.detector, false);
    let names: Vec<&str> = wrong.iter().filter_map(|line| line.split_once(':')).map(|(name, _)| name).collect();
    assert_eq!(names, missed, "without title\n{}", wrong.join("\n"));
}

#[test]
fn claude_code_2_1_197() {
    check("claude_code", "claude_code/2.1.197", &["proc_stream_statusline.txt", "proc_stream_typed_unsent.txt"]);
}

#[test]
fn claude_code_2_1_325() {
    check("claude_code", "claude_code/2.1.325", &[]);
}

#[test]
fn codex_0_166_0() {
    check("codex", "codex/0.166.0", &[]);
}

#[test]
fn codex_0_145_0() {
    check("codex", "codex/0.145.0", &["proc_streaming.txt"]);
}

#[test]
fn opencode_1_18_33() {
    check("opencode", "opencode/1.18.33", &[]);
}

#[test]
fn qwen_0_15_10() {
    check("qwen", "qwen/0.15.10", &[]);
}

#[test]
fn an_option_that_needs_two_rows_is_one() {
    let folder = Folder::open("claude_code/2.1.197");
    let rows = folder.rows("perm_bash_60x20_wrapped_option.txt");
    let provider = built_in("claude_code").unwrap().unwrap();
    let reading = provider.detector.read(Look { rows: &rows, ..Look::default() }, &mut Memo::default());
    let labels: Vec<&str> = reading.dialog.iter().flat_map(|dialog| &dialog.options).map(|one| &*one.label).collect();
    assert_eq!(labels, ["Yes", "Yes, and always allow access to project/ from this project", "No"]);
}

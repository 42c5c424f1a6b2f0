//! Every labelled screen, read by screen, title and foreground.
#![allow(clippy::unwrap_used)]

use std::path::Path;

use posse_agents::manifest::built_in;
use posse_core::detect::{Look, Memo};

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

fn check(provider: &str, folder: &str) {
    let provider = built_in(provider).unwrap().unwrap();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(folder);
    let labelled: Vec<Labelled> =
        serde_json::from_slice(&std::fs::read(folder.join("manifest.json")).unwrap()).unwrap();
    let mut wrong = Vec::new();
    for screen in labelled.iter().filter(|screen| !screen.ambiguous) {
        let text = std::fs::read_to_string(folder.join(&screen.screen)).unwrap();
        let rows: Vec<String> = text.lines().map(|row| row.trim_end_matches(' ').to_owned()).collect();
        let look = Look { rows: &rows, title: screen.title.as_deref(), foreground: screen.foreground.as_deref() };
        let reading = provider.detector.read(look, &mut Memo::default());
        let status = reading.status.map_or("none", |status| status.as_str());
        let kind = reading.waiting_kind.map(|kind| serde_json::to_value(kind).unwrap());
        let startup = screen.waiting_kind.is_none() == (kind != Some("startup".into()));
        if !screen.accept.iter().any(|accepted| accepted == status) || !startup {
            wrong.push(format!(
                "{}: {status} {kind:?} by {} on {:?}, not {:?}",
                screen.screen, reading.rule, reading.evidence, screen.accept
            ));
        }
    }
    assert!(wrong.is_empty(), "{} of {} wrong\n{}", wrong.len(), labelled.len(), wrong.join("\n"));
}

#[test]
fn claude_code_2_1_197() {
    check("claude_code", "claude_code/2.1.197");
}

#[test]
fn claude_code_2_1_325() {
    check("claude_code", "claude_code/2.1.325");
}

#[test]
fn codex_0_166_0() {
    check("codex", "codex/0.166.0");
}

#[test]
fn codex_0_145_0() {
    check("codex", "codex/0.145.0");
}

#[test]
fn opencode_1_18_33() {
    check("opencode", "opencode/1.18.33");
}

#[test]
fn qwen_0_15_10() {
    check("qwen", "qwen/0.15.10");
}

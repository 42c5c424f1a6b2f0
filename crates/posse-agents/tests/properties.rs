//! Whatever is on a screen: a reading never panics, and what was remembered never changes it.
#![allow(clippy::unwrap_used)]

mod common;

use std::sync::{Arc, LazyLock};

use common::detector;
use posse_agents::manifest::BUILT_IN;
use posse_core::detect::{Detector, Look, Memo};
use proptest::prelude::*;

static DETECTORS: LazyLock<Vec<Arc<Detector>>> =
    LazyLock::new(|| BUILT_IN.iter().map(|(id, _)| detector(id, None)).collect());

/// Pieces of real screens, so that rows are nearly right far more often than by chance.
fn piece() -> impl Strategy<Value = String> {
    const PIECES: &str = "❯¦❯\u{a0}¦›¦>¦● ¦• ¦◦ ¦✻ ¦■ ¦┃¦│¦╭¦╰¦▣  ¦△ ¦✦ ¦✕ ¦[¦]¦ > ¦ ¦  ¦    ¦\u{a0}¦\u{200b}¦\t¦1. ¦2. ¦3. Yes¦\
        4294967296. ¦Yes¦No¦ (y)¦ (esc)¦…¦────────────────────────¦╹▀▀▀▀▀▀▀▀▀▀¦▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔¦\
        Would you like to run¦Allow this action?¦[y/n/t]:¦[dev] 22% λ >¦Esc to cancel¦\
        Press enter to confirm or esc to cancel¦esc to interrupt¦(3s • esc to interrupt)¦100% context left¦\
        gpt · /p¦Worked for 5s • 19:47¦claude: ¦?¦🦀¦e\u{301}¦漢字";
    prop_oneof![4 => prop::sample::select(PIECES.split('¦').collect::<Vec<_>>()).prop_map(str::to_owned), 1 => any::<String>()]
}

fn row() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => prop::collection::vec(piece(), 0..5).prop_map(|pieces| pieces.concat()),
        1 => Just(String::new()),
        1 => any::<String>(),
        1 => (piece(), 100..2000_usize).prop_map(|(piece, times)| piece.repeat(times)),
    ]
}

fn screen() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(row(), 0..45)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn any_screen_can_be_read(rows in screen(), title in prop::option::of(piece()), foreground in prop::option::of(any::<String>())) {
        for detector in DETECTORS.iter() {
            let look = Look { rows: &rows, title: title.as_deref(), foreground: foreground.as_deref(), colours: None };
            let reading = detector.read(look, &mut Memo::default());
            let explained = detector.explain(look, &mut Memo::default());
            prop_assert_eq!(&explained.reading, &reading);
            if let Some(dialog) = &reading.dialog {
                prop_assert!(dialog.options.len() >= 2, "{:?}", dialog);
                prop_assert!(dialog.options.iter().filter(|option| option.selected).count() <= 1, "{:?}", dialog);
            }
            let _ = detector.last_answer(&rows);
        }
    }

    /// Screens that differ in a few rows, as they do from one moment to the next.
    #[test]
    fn remembering_changes_nothing_in_a_changed_row(rows in screen(), changes in prop::collection::vec((any::<prop::sample::Index>(), row()), 1..6)) {
        for detector in DETECTORS.iter() {
            let mut rows = rows.clone();
            let mut memo = Memo::default();
            for (at, row) in &changes {
                if !rows.is_empty() {
                    let at = at.index(rows.len());
                    rows[at].clone_from(row);
                }
                let look = Look { rows: &rows, ..Look::default() };
                prop_assert_eq!(detector.read(look, &mut memo), detector.read(look, &mut Memo::default()));
            }
        }
    }
}

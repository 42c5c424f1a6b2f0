//! The review loop, seen by one of its agents. A prompt asks for an answer in a file, and the name of the file tells
//! which turn it is. The usual answers pass the gates of the loop, or fail them on purpose: the loop looks for headings,
//! verdict lines, section names and words of evidence.

use std::collections::BTreeMap;

use posse_core::rounds::Key;

use crate::scenario::LoopPlay;

/// How often each turn was asked for (`tester.asked`) and answered (`tester.answered`). A replacement agent continues
/// the tally of its predecessor.
pub(crate) type Tally = BTreeMap<String, u32>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LoopAnswerRequest {
    pub(crate) key: Key,
    pub(crate) path: String,
}

/// Returns the file that a prompt asks for: the last one that the prompt quotes for a shell, as posse's instruction does.
pub(crate) fn request(prompt: &str) -> Option<LoopAnswerRequest> {
    let ends = Key::ALL.into_iter().filter_map(|key| {
        let end = format!("/{}'", key.file_name());
        Some((prompt.rfind(&end)? + end.len() - 1, key))
    });
    let (end, key) = ends.max()?;
    let start = prompt[..end].rfind(" '/")? + 2;
    Some(LoopAnswerRequest { key, path: prompt[start..end].replace(r"'\''", "'") })
}

/// Returns whether the next answer approves, on the way to PASS. In each round, reviewers find fault as often as
/// configured and then approve. Testers fail as often as configured.
pub(crate) fn approves(key: Key, answered_before: u32, play: &LoopPlay) -> bool {
    match key {
        Key::Analyst | Key::Programmer => true,
        Key::AnalystReview | Key::ProgrammerReview => {
            answered_before % play.revisions.saturating_add(1) >= play.revisions
        }
        Key::Tester => answered_before >= play.failures,
    }
}

/// Returns the answer that approves or finds fault. `nth` counts the answers, so that no two are equal.
pub(crate) fn text(key: Key, approves: bool, nth: u32) -> String {
    let body = match (key, approves) {
        (Key::Analyst, _) => include_str!("../../answers/analyst.md"),
        (Key::Programmer, _) => include_str!("../../answers/programmer.md"),
        (Key::AnalystReview, true) => include_str!("../../answers/analyst_review_approved.md"),
        (Key::AnalystReview, false) => include_str!("../../answers/analyst_review_revise.md"),
        (Key::ProgrammerReview, true) => include_str!("../../answers/programmer_review_approved.md"),
        (Key::ProgrammerReview, false) => include_str!("../../answers/programmer_review_revise.md"),
        (Key::Tester, true) => include_str!("../../answers/tester_pass.md"),
        (Key::Tester, false) => include_str!("../../answers/tester_fail.md"),
    };
    format!("{body}\n(Answer {nth} of {key}.)\n")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn reviewers_revise_and_testers_fail_as_often_as_configured() {
        use Key::{Analyst, AnalystReview, ProgrammerReview, Tester};
        let play = |revisions, failures| LoopPlay { revisions, failures, ..LoopPlay::default() };
        let cases = [
            (Analyst, play(1, 1), "+++++"),
            (AnalystReview, play(1, 0), "-+-+-"),
            (ProgrammerReview, play(2, 0), "--+--"),
            (ProgrammerReview, play(0, 0), "+++++"),
            (Tester, play(1, 0), "+++++"),
            (Tester, play(1, 2), "--+++"),
            (ProgrammerReview, play(u32::MAX, 0), "-----"),
        ];
        for (key, play, expected) in cases {
            let verdicts: String = (0..5).map(|before| if approves(key, before, &play) { '+' } else { '-' }).collect();
            assert_eq!(verdicts, expected, "{key:?} {play:?}");
        }
    }

    #[test]
    fn answer_file_is_the_last_one_that_the_prompt_quotes() {
        for (prompt, expected) in [
            ("cat > '/p/test_result.md.part' <<'E' && mv '/p/test_result.md.part' '/p/test_result.md'", Some("tester")),
            ("into '/p/analyst_summary.md', not '/p/programmer_summary.md'", Some("programmer")),
            ("Answer in '/p/test_result.md'.\nIt said: see /p/programmer_summary.md", Some("tester")),
            ("see /p/test_result.md and 'a/test_result.md'", None),
            ("'/p/my_test_result.md' don't / stop", None),
            ("", None),
        ] {
            let found = request(prompt);
            assert_eq!(found.as_ref().map(|request| request.key.as_str()), expected, "{prompt}");
            assert!(found.is_none_or(|request| request.path.starts_with("/p/")), "{prompt}");
        }
    }

    proptest! {
        #[test]
        fn any_directory_survives_quoting(folder in "(/[^/\n\u{0}]{1,12}){1,4}", before in "\\PC{0,40}") {
            let path = format!("{folder}/test_result.md");
            let prompt = format!("{before}\nWrite '{}' please.", path.replace('\'', "'\\''"));
            prop_assert_eq!(request(&prompt).map(|request| request.path), Some(path));
        }
    }
}

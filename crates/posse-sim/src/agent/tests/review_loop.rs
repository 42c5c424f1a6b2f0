//! Answers in the review loop. The tests of posse's loop play whole runs.

use super::*;

fn ask_for(file: &str) -> Cue {
    keys(format!("\x1b[200~You are one of five.\nWrite your answer to '/p/.tmp/agent-responses/{file}'.\x1b[201~\r"))
}

fn role(scenario: &str, cues: impl IntoIterator<Item = (u64, Cue)>) -> Theatre {
    let scenario = format!("look = \"claude\"\nplay = \"loop\"\n{scenario}");
    play(&scenario, SIZE, cues.into_iter().chain([(LATER, Cue::Look)])).0.host
}

#[test]
fn prompt_without_a_file_repeats_the_last_request() {
    let scenario = "[[turn]]\nnth = 1\nsteps = [{ fail = \"529\" }]";
    let theatre = role(scenario, [(0, keys("hello\r")), (1, ask_for("analyst_review.md")), (2, keys("continue\r"))]);
    let screen = theatre.screen();
    assert!(screen.contains("● You said: hello") || screen.contains("● API Error: 529"), "{screen}");
    let written = theatre.written();
    assert_eq!(written.len(), 1);
    assert!(written[0].1.starts_with("REVIEW_RESULT: REVISE"), "the failed turn was no review");
}

/// Steps, and what they write at which millisecond.
type Case = (&'static str, &'static [(u128, &'static str)]);

#[test]
fn answer_is_written_as_configured() {
    let cases: &[Case] = &[
        (r#"{ answer = "{key} {nth} {answer}" }"#, &[(0, "tester 1 /p/.tmp/agent-responses/test_result.md")]),
        (r#"{ say = "Done." }"#, &[]),
        // Long after the turn.
        (r#"{ answer = { text = "x", late = "2s" } }"#, &[(2000, "x")]),
        (r#"{ answer = { text = "abcde", pieces = 2, gap = "200ms" } }"#, &[(0, "…"), (200, "ab…"), (400, "cde.")]),
        (
            r#"{ answer = { text = "ab", pieces = 9, gap = "300ms", late = "1s" } }"#,
            &[(1000, "…"), (1300, "a…"), (1600, "b.")],
        ),
        (r#"{ answer = { text = "", pieces = 3 } }"#, &[(0, "…"), (0, ".")]),
        (r#"{ answer = { text = "a\n", with = ["bom", "crlf"] } }"#, &[(0, "\u{feff}a\r\n")]),
        // An answer and a longer one are answers of the same turn.
        (r#"{ answer = "short" }, { pause = "1s" }, { answer = "{nth}" }"#, &[(0, "short"), (1000, "1")]),
    ];
    for (steps, expected) in cases {
        let theatre = role(&format!("[[turn]]\nsteps = [{steps}]"), [(0, ask_for("test_result.md"))]);
        let expected: Vec<(u128, String)> = expected.iter().map(|(at, text)| (*at, (*text).to_owned())).collect();
        assert_eq!(theatre.written(), expected, "{steps}");
    }
}

#[test]
fn interrupt_stops_pieces_but_not_late_answers() {
    let steps =
        r#"{ answer = { text = "late", late = "1s" } }, { answer = { text = "abc", pieces = 3, gap = "100ms" } }"#;
    let theatre = role(&format!("[[turn]]\nsteps = [{steps}]"), [(0, ask_for("test_result.md")), (150, keys("\x1b"))]);
    let written: Vec<String> = theatre.written().into_iter().map(|(_, text)| text).collect();
    assert_eq!(written, ["…", "a…", "late"]);
}

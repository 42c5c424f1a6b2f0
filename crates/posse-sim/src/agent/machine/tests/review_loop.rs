//! Answers in the review loop. The tests of posse's loop play whole runs.

use super::*;

fn ask_for(file: &str) -> String {
    format!("\x1b[200~You are one of five.\nWrite your answer to '/p/.tmp/agent-responses/{file}'.\x1b[201~\r")
}

/// What was written and when, in milliseconds since the opening.
struct Writes {
    theatre: Theatre,
    opened: Mono,
}

impl Writes {
    fn of(scenario: &str) -> Writes {
        let theatre = open(&format!("look = \"claude\"\nplay = \"loop\"\n{scenario}"));
        Writes { opened: theatre.now, theatre }
    }

    fn now(&mut self) -> Vec<String> {
        let written = self.theatre.happened().into_iter().filter_map(|effect| match effect {
            AgentEffect::Write { bytes, .. } => Some(String::from_utf8_lossy(&bytes).into_owned()),
            AgentEffect::Piece { bytes, last, .. } => {
                Some(format!("{}{}", String::from_utf8_lossy(&bytes), if last { "." } else { "…" }))
            }
            _ => None,
        });
        written.collect()
    }

    /// All that is written within ten seconds, one row for each moment.
    fn in_time(&mut self) -> Vec<(u128, Vec<String>)> {
        let mut seen = Vec::new();
        for _ in 0..1000 {
            let written = self.now();
            if !written.is_empty() {
                seen.push((self.theatre.now.since(self.opened).as_millis(), written));
            }
            self.theatre.wait_ms(10);
        }
        seen
    }
}

fn first_lines(writes: &[String]) -> Vec<&str> {
    writes.iter().map(|text| text.lines().next().unwrap_or_default()).collect()
}

#[test]
fn prompt_without_a_file_repeats_the_last_request() {
    let mut play = Writes::of("[[turn]]\nnth = 1\nsteps = [{ fail = \"529\" }]");
    play.theatre.keys("hello\r");
    assert!(play.theatre.screen().contains("● You said: hello"));
    play.theatre.keys(ask_for("analyst_review.md"));
    assert!(play.theatre.screen().contains("● API Error: 529"), "{}", play.theatre.screen());
    assert!(play.now().is_empty());
    play.theatre.keys("continue\r");
    assert_eq!(first_lines(&play.now()), ["REVIEW_RESULT: REVISE"], "the failed turn was no review");
}

/// Steps, and what they write at which millisecond.
type Case = (&'static str, &'static [(u128, &'static [&'static str])]);

#[test]
fn answer_is_written_as_configured() {
    let cases: &[Case] = &[
        (r#"{ answer = "{key} {nth} {answer}" }"#, &[(0, &["tester 1 /p/.tmp/agent-responses/test_result.md"])]),
        (r#"{ say = "Done." }"#, &[]),
        (r#"{ think = "500ms" }, { answer = "x" }"#, &[(500, &["x"])]),
        // Long after the turn.
        (r#"{ answer = { text = "x", late = "2s" } }"#, &[(2000, &["x"])]),
        (
            r#"{ answer = { text = "abcde", pieces = 2, gap = "200ms" } }"#,
            &[(0, &["…"]), (200, &["ab…"]), (400, &["cde."])],
        ),
        (r#"{ answer = { text = "abcd", pieces = 1 } }"#, &[(0, &["…", "abcd."])]),
        (
            r#"{ answer = { text = "ab", pieces = 9, gap = "300ms", late = "1s" } }"#,
            &[(1000, &["…"]), (1300, &["a…"]), (1600, &["b."])],
        ),
        (r#"{ answer = { text = "", pieces = 3 } }"#, &[(0, &["…", "."])]),
        (r#"{ answer = "\n" }, { think = "1s" }, { answer = "full" }"#, &[(0, &["\n"]), (1000, &["full"])]),
        (r#"{ answer = { text = "a\n", with = ["bom", "crlf"] } }"#, &[(0, &["\u{feff}a\r\n"])]),
        // An answer and a longer one are answers of the same turn.
        (r#"{ answer = "short" }, { pause = "1s" }, { answer = "{nth}" }"#, &[(0, &["short"]), (1000, &["1"])]),
    ];
    for (steps, expected) in cases {
        let mut play = Writes::of(&format!("[[turn]]\nsteps = [{steps}]"));
        play.theatre.keys(ask_for("test_result.md"));
        let expected: Vec<(u128, Vec<String>)> =
            expected.iter().map(|(at, texts)| (*at, texts.iter().map(|text| (*text).to_owned()).collect())).collect();
        assert_eq!(play.in_time(), expected, "{steps}");
        assert_eq!(play.theatre.agent.deadline(), None);
    }
}

#[test]
fn interrupt_stops_pieces_but_not_late_answers() {
    let mut play = Writes::of(
        r#"
[[turn]]
steps = [{ answer = { text = "late", late = "1s" } }, { answer = { text = "abc", pieces = 3, gap = "100ms" } }]"#,
    );
    play.theatre.keys(ask_for("test_result.md"));
    play.theatre.wait_ms(150);
    play.theatre.keys("\x1b");
    let written: Vec<String> = play.in_time().into_iter().flat_map(|(_, texts)| texts).collect();
    assert_eq!(written, ["…", "a…", "late"]);
}

#[test]
fn ignored_prompts_in_the_queue_do_not_block_others() {
    let mut play =
        Writes::of("[[turn]]\non = \"slow\"\nsteps = [{ think = \"1s\" }]\n[[turn]]\nkey = \"tester\"\nignore = true");
    play.theatre.keys("slow\r");
    for file in ["test_result.md", "test_result.md", "analyst_summary.md"] {
        play.theatre.keys(ask_for(file));
    }
    let written: Vec<String> = play.in_time().into_iter().flat_map(|(_, texts)| texts).collect();
    assert_eq!(first_lines(&written), ["ANALYST_SUMMARY:"]);
}

#[test]
fn answer_without_a_request_fails_the_turn() {
    let mut theatre = with_steps("look = \"codex\"", "{ answer = {} }");
    theatre.keys("x\r");
    assert!(theatre.screen().contains("■ the prompt names no file to answer in"), "{}", theatre.screen());
}

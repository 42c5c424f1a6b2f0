//! Turns and answers in the review loop.

use super::*;
use crate::scenario::TurnKey;

fn ask_for(file: &str) -> String {
    format!("\x1b[200~You are one of five.\nWrite your answer to '/p/.tmp/agent-responses/{file}'.\x1b[201~\r")
}

/// What was written whole and when, in milliseconds since the opening.
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
            AgentEffect::Write { bytes, how: WriteMode::Rename, .. } => {
                Some(String::from_utf8_lossy(&bytes).into_owned())
            }
            AgentEffect::Write { path, how, .. } => Some(format!("{how:?} {}", path.display())),
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
fn whole_run_needs_no_script_and_no_time() {
    let order = [
        ("analyst_summary.md", "ANALYST_SUMMARY:"),
        ("analyst_review.md", "REVIEW_RESULT: REVISE"),
        ("analyst_summary.md", "ANALYST_SUMMARY:"),
        ("analyst_review.md", "REVIEW_RESULT: APPROVED"),
        ("programmer_summary.md", "PROGRAMMER_SUMMARY:"),
        ("programmer_review.md", "REVIEW_RESULT: REVISE"),
        ("programmer_summary.md", "PROGRAMMER_SUMMARY:"),
        ("programmer_review.md", "REVIEW_RESULT: APPROVED"),
        ("test_result.md", "RESULT: PASS"),
    ];
    let mut play = Writes::of("");
    for (file, head) in order {
        play.theatre.keys(ask_for(file));
        assert_eq!(first_lines(&play.now()), [head], "{file}");
        assert!(play.theatre.agent.play.is_none(), "the turn is over at once");
    }
    assert_eq!(play.theatre.ticks, 0);
}

#[test]
fn turn_reports_working_before_its_file_exists() {
    for (look, osc, busy, quiet) in [
        ("claude", "", "state=working", "state=done"),
        ("codex", "", "state=working", "state=done"),
        ("claude", "osc = [\"title\"]", "0;⠂", "0;✳"),
        ("codex", "osc = [\"title\"]", "0;⠋", "0;project"),
    ] {
        let mut theatre = open(&format!("look = \"{look}\"\nplay = \"loop\"\n{osc}"));
        theatre.happened();
        theatre.keys(ask_for("test_result.md"));
        let happened = theatre.happened();
        let said = |effect: &AgentEffect, what: &str| {
            effect.bytes().is_some_and(|bytes| String::from_utf8_lossy(&bytes).contains(what))
        };
        let at = |wanted: &dyn Fn(&AgentEffect) -> bool| happened.iter().position(wanted).unwrap();
        let busy = at(&|effect| said(effect, busy));
        let wrote = at(&|effect| matches!(effect, AgentEffect::Write { .. }));
        let quiet = at(&|effect| said(effect, quiet));
        assert!(busy < wrote && wrote < quiet, "{look} {osc}: {happened:?}");
    }
}

#[test]
fn turn_is_selected_by_key_number_and_text() {
    let mut play = Writes::of(
        r#"
[[turn]]
key = "tester"
nth = [1, 3]
steps = [{ answer = "odd {key} {nth} {answer}" }]
[[turn]]
key = "tester"
on = "five"
steps = [{ answer = "even" }]
[[turn]]
on = "hello"
steps = [{ say = "hi" }]
"#,
    );
    let path = "/p/.tmp/agent-responses/test_result.md";
    for expected in [format!("odd tester 1 {path}"), "even".into(), format!("odd tester 3 {path}"), "even".into()] {
        play.theatre.keys(ask_for("test_result.md"));
        assert_eq!(play.now(), [expected]);
    }
    play.theatre.keys(ask_for("analyst_summary.md"));
    assert_eq!(first_lines(&play.now()), ["ANALYST_SUMMARY:"], "the others are as usual");
    play.theatre.keys("hello\r");
    assert_eq!(play.now(), Vec::<String>::new());
    assert!(play.theatre.screen().contains("● hi"), "{}", play.theatre.screen());
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
        (r#"{ answer = "x" }"#, &[(0, &["x"])]),
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
        (r#"{ answer = { how = "directory" } }"#, &[(0, &["Directory /p/.tmp/agent-responses/test_result.md"])]),
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
fn ignored_prompt_does_not_change_the_screen() {
    for look in ["claude", "codex"] {
        let mut theatre =
            open(&format!("look = \"{look}\"\nplay = \"loop\"\n[[turn]]\nkey = \"tester\"\nnth = 1\nignore = true"));
        let before = theatre.screen();
        theatre.keys(ask_for("test_result.md"));
        assert_eq!(theatre.screen(), before);
        let records = theatre.records();
        assert!(
            matches!(
                records[..],
                [
                    AgentRecord::Ready,
                    AgentRecord::Submitted { .. },
                    AgentRecord::Asked { key: TurnKey::Tester, nth: 1, .. },
                    AgentRecord::Ignored { why: IgnoredInput::Prompt },
                ]
            ),
            "{records:?}"
        );
        theatre.keys(ask_for("test_result.md"));
        assert_eq!(theatre.records().last(), Some(&ended(1, TurnOutcome::Done)));
    }
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
fn replacement_agent_continues_the_tally() {
    let scenario = r#"
look = "claude"
play = "loop"
[loop]
state_dir = "/state"
[[turn]]
key = "programmer_review"
nth = 2
steps = [{ crash = 9 }]"#;
    let mut first = open(scenario);
    first.happened();
    first.keys(ask_for("programmer_review.md"));
    let counted = |theatre: &mut Theatre| -> Vec<String> {
        let counts = theatre.happened().into_iter().filter_map(|effect| match effect {
            AgentEffect::Count(path) => Some(path.display().to_string()),
            AgentEffect::Write { bytes, .. } => {
                Some(String::from_utf8_lossy(&bytes).lines().next().unwrap_or_default().to_owned())
            }
            AgentEffect::Kill(_) => Some("killed".to_owned()),
            _ => None,
        });
        counts.collect()
    };
    let (asked, answered) = ("/state/programmer_review.asked", "/state/programmer_review.answered");
    assert_eq!(counted(&mut first), [asked, answered, "REVIEW_RESULT: REVISE"]);
    first.keys(ask_for("programmer_review.md"));
    assert_eq!(counted(&mut first), [asked, "killed"], "counted before it dies");

    let tally = [("programmer_review.asked".to_owned(), 2), ("programmer_review.answered".to_owned(), 1)];
    let mut second = Theatre::open_after(scenario, Tally::from(tally), 60, 20);
    second.happened();
    second.keys(ask_for("programmer_review.md"));
    assert_eq!(counted(&mut second), [asked, answered, "REVIEW_RESULT: APPROVED"]);
}

#[test]
fn permissions_precede_the_answer_and_a_refusal_ends_the_turn() {
    for (look, accept) in [("claude", "1"), ("codex", "y")] {
        let scenario = format!("look = \"{look}\"\nplay = \"loop\"\n[loop]\npermissions = 2\nthink = \"1s\"");
        let mut theatre = open(&scenario);
        theatre.keys(ask_for("programmer_summary.md"));
        theatre.wait_ms(1000);
        theatre.happened();
        theatre.keys(accept);
        assert!(theatre.screen().contains("make check-2"), "{}", theatre.screen());
        theatre.keys(accept);
        let happened = theatre.happened();
        assert!(happened.iter().any(|effect| matches!(effect, AgentEffect::Write { .. })), "{happened:?}");
        let accepts = happened.iter().filter(
            |effect| matches!(effect, AgentEffect::Log(AgentRecord::DialogClosed { accepted: true, pressed, .. }) if pressed == accept),
        );
        assert_eq!(accepts.count(), 2);

        theatre.keys(ask_for("programmer_summary.md"));
        theatre.wait_ms(1000);
        theatre.keys("3");
        let happened = theatre.happened();
        assert_eq!(happened.last(), Some(&log(ended(2, TurnOutcome::Interrupted))));
        assert!(!happened.iter().any(|effect| matches!(effect, AgentEffect::Write { .. })), "{happened:?}");
    }
}

#[test]
fn request_is_logged_with_hash_and_first_line() {
    let mut theatre = open("look = \"claude\"\nplay = \"loop\"");
    theatre.keys(ask_for("test_result.md"));
    let prompt = "You are one of five.\nWrite your answer to '/p/.tmp/agent-responses/test_result.md'.";
    let asked = AgentRecord::Asked {
        key: TurnKey::Tester,
        nth: 1,
        path: "/p/.tmp/agent-responses/test_result.md".into(),
        hash: crate::agent::record::hash(prompt),
        length: prompt.len(),
        first: "You are one of five.".into(),
    };
    assert!(theatre.records().contains(&asked));
}

#[test]
fn answer_without_a_request_fails_the_turn() {
    let mut theatre = with_steps("look = \"codex\"", "{ answer = {} }");
    theatre.keys("x\r");
    assert!(theatre.screen().contains("■ the prompt names no file to answer in"), "{}", theatre.screen());
}

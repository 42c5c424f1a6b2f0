use super::*;

fn error(text: &str) -> ScenarioError {
    Scenario::parse(text).map(|scenario| panic!("parsed: {scenario:?}")).unwrap_err()
}

#[test]
fn a_small_file_is_enough() {
    let scenario = Scenario::parse("look = \"claude\"").unwrap();
    assert_eq!(scenario.look, Look::Claude);
    assert_eq!(scenario.fps, 10);
    assert!(scenario.turns.is_empty());
}

#[test]
fn every_step_has_a_form() {
    let scenario = Scenario::parse(
        r#"
look = "codex"
osc = ["7501", "9;4", "title"]
dialog_deaf_ms = 200
start = [{ splash = "hi" }, { pause = "1s" }]
[[turn]]
on = "deploy"
steps = [
  { think = "forever" },
  { think = { for = "3s", verb = "Musing" } },
  { stream = "text" },
  { stream = { text = "text", rate = 7 } },
  { say = "text" },
  { tool = { input = "ls" } },
  { ask = { kind = "permission", accept = [1] } },
  { ask = { kind = "question", options = ["a", "b"], announce = "1s" } },
  { write = { path = "{path}", text = "{prompt}", how = "append" } },
  { title = "t" },
  { osc = "9;4;1;50" },
  { bell = 2 },
  { print = '\e[31m' },
  { error = "no" },
  { fail = "usage_limit" },
  { answer = "text" },
  { answer = {} },
  { answer = { verdict = "pass", with = ["bom"], pieces = 3, gap = "1s", late = "2s" } },
  { crash = 11 },
  { exit = 3 },
  { repeat = { times = 2, steps = [{ say = "again" }] } },
  { repeat = { times = "forever", steps = [{ repeat = { times = 1, steps = [{ pause = "1ms" }] } }] } },
  { flood = { lines = 10 } },
  { flood = { bytes = 10 } },
]
"#,
    )
    .unwrap();
    assert_eq!(scenario.osc, Some(vec![SelfReport::State, SelfReport::Progress, SelfReport::Title]));
    assert_eq!(scenario.dialog_deaf, Duration::from_millis(200));
    let steps = &scenario.turns[0].steps;
    assert_eq!(steps.len(), 24);
    assert_eq!(steps[3], Step::Stream(Stream { text: "text".into(), rate: 7 }));
    assert_eq!(steps[12], Step::Print(b"\x1b[31m".as_slice().into()));
    let Step::Ask(ask) = &steps[7] else { panic!("{:?}", steps[7]) };
    assert_eq!((ask.accept.as_slice(), ask.cursor, ask.announce), ([1, 2].as_slice(), 1, Duration::from_secs(1)));
}

#[test]
fn mistakes_are_named_with_their_place() {
    let in_steps = |steps: &str| format!("look = \"plain\"\n\n[[turn]]\nsteps = [\n  {steps},\n]\n");
    let cases = [
        ("look = 3".to_owned(), 1, "wanted string or table"),
        ("alternate = true".to_owned(), 1, "missing field `look`"),
        ("look = \"claude\"\nfps = 0".to_owned(), 2, "choose 1 to 60"),
        ("look = \"claude\"\n[[turn]]\non = \"x\"".to_owned(), 2, "missing field `steps`"),
        ("look = \"claude\"\nfps".to_owned(), 2, "key with no value"),
        (in_steps(r#"{ think = "3" }"#), 5, "`3` is no duration"),
        (in_steps(r#"{ think = 3 }"#), 5, "a duration, or a table"),
        (in_steps(r#"{ think = { for = "3s", word = "x" } }"#), 5, "unknown field `word`"),
        (in_steps(r#"{ pause = "1s", say = "x" }"#), 5, ""),
        (in_steps(r#"{ stream = { text = "x", rate = 0 } }"#), 5, "a rate of 0"),
        (in_steps(r#"{ ask = { kind = "question" } }"#), 5, "a question needs `options`"),
        (in_steps(r#"{ ask = { kind = "permission", accept = 4 } }"#), 5, "`accept` is 4, but the options are 1 to 3"),
        (in_steps(r#"{ ask = { kind = "startup", cursor = 0 } }"#), 5, "`cursor` is 0"),
        (in_steps(r#"{ crash = 99 }"#), 5, "99 is no signal"),
        (in_steps(r#"{ print = '\q' }"#), 5, "`\\q` is no escape"),
        (in_steps(r#"{ repeat = { times = "often", steps = [] } }"#), 5, "`often` is no count"),
        (in_steps(r#"{ repeat = { times = "forever", steps = [{ say = "x" }] } }"#), 5, "needs a step that takes time"),
        (in_steps(r#"{ flood = { lines = 1, bytes = 1 } }"#), 5, ""),
        (in_steps(r#"{ fail = "418" }"#), 5, "unknown variant `418`"),
        (in_steps(r#"{ answer = { text = "x", verdict = "pass" } }"#), 5, "two answers"),
        (in_steps(r#"{ answer = { pieces = 2, how = "plain" } }"#), 5, "leave out `how`"),
        (in_steps(r#"{ answer = { late = "soon" } }"#), 5, "`soon` is no duration"),
        ("look = \"plain\"\n\n[loop]\nfailures = 1".to_owned(), 3, "add `play = \"loop\"`"),
        ("look = \"plain\"\n[[turn]]\nsteps = []\n[[turn]]\nnth = 2\nsteps = []".to_owned(), 5, "add `play"),
        ("look = \"plain\"\nplay = \"loop\"\n[[turn]]\nnth = 0\nsteps = []".to_owned(), 3, "counts from 1"),
        ("look = \"plain\"\n[[turn]]\nignore = true\nsteps = []".to_owned(), 2, "has no `steps`"),
        ("look = \"plain\"\nplay = \"loop\"\n[[turn]]\nkey = \"test\"".to_owned(), 4, "unknown variant `test`"),
    ];
    for (text, line, message) in cases {
        let error = error(&text);
        assert_eq!(error.line, line, "{error}\n{text}");
        assert!(error.column > 0 && error.message.contains(message), "{error}\n{text}");
    }
}

#[test]
fn a_misspelt_word_is_met_with_the_right_one() {
    let cases = [
        (
            "look = \"claud\"",
            "line 1, column 8: unknown variant `claud`, expected one of `claude`, `codex`, `plain` (did you mean `claude`?)",
        ),
        ("look = \"plain\"\nauto_promt = \"x\"", "did you mean `auto_prompt`?"),
        ("look = \"plain\"\nstart = [{ thnik = \"1s\" }]", "did you mean `think`?"),
        ("look = \"plain\"\n[[turns]]\nsteps = []", "did you mean `turn`?"),
    ];
    for (text, expected) in cases {
        let error = error(text).to_string();
        assert!(error.contains(expected), "{error}");
    }
    assert_eq!(error("look = \"plain\"\nxyzzyxyzzy = 1").hint, None);
}

#[test]
fn turns_are_chosen_by_text_then_in_order_and_the_last_repeats() {
    let turn = |on: &str| Turn { on: (!on.is_empty()).then(|| on.to_owned()), ..Turn::default() };
    let mut scenario = Scenario::parse("look = \"plain\"").unwrap();
    assert_eq!(scenario.turn_for("x", 0), None);
    scenario.turns = vec![turn("deploy"), turn(""), turn("dep"), turn("")];
    for (prompt, in_order, expected) in [("deploy it", 0, 0), ("depart", 5, 2), ("x", 0, 1), ("x", 1, 3), ("x", 9, 3)] {
        assert_eq!(scenario.turn_for(prompt, in_order), Some(expected), "{prompt} after {in_order}");
    }
    scenario.turns = vec![turn("deploy")];
    assert_eq!(scenario.turn_for("x", 0), None);
}

#[test]
fn turns_of_the_loop_are_chosen_by_all_they_say() {
    let scenario = Scenario::parse(
        r#"
look = "plain"
play = "loop"
[[turn]]
key = "tester"
nth = [2, 4]
steps = [{ say = "0" }]
[[turn]]
nth = 3
steps = [{ say = "1" }]
[[turn]]
key = "tester"
on = "deploy"
steps = [{ say = "2" }]
[[turn]]
on = "hello"
steps = [{ say = "3" }]
"#,
    )
    .unwrap();
    use TurnKey::{Analyst, Tester};
    for (prompt, asked, expected) in [
        ("x", Some((Tester, 2)), Some("0")),
        ("deploy", Some((Tester, 4)), Some("0")),
        ("deploy", Some((Tester, 1)), Some("2")),
        ("x", Some((Tester, 3)), Some("1")),
        ("x", Some((Analyst, 3)), Some("1")),
        ("x", Some((Tester, 1)), None),
        ("deploy", Some((Analyst, 1)), None),
        ("deploy", None, None),
        ("hello", None, Some("3")),
        ("hello deploy", Some((Tester, 5)), Some("2")),
    ] {
        let turn = scenario.loop_turn_for(prompt, asked).map(|turn| turn.steps.clone());
        assert_eq!(turn, expected.map(|text| vec![Step::Say(text.to_owned())]), "{prompt} {asked:?}");
    }
}

#[test]
fn places_are_counted_in_characters() {
    assert_eq!(position("é\nab", 0), (1, 1));
    assert_eq!(position("é\nab", 2), (1, 2));
    assert_eq!(position("é\nab", 4), (2, 2));
    assert_eq!(position("é\nab", 99), (2, 3));
}

#[test]
fn the_scenarios_that_come_along_parse() {
    use crate::scenarios::{ASKING, BUSY, CODEX_ASKING};
    for text in [BUSY, ASKING, CODEX_ASKING] {
        let scenario = Scenario::parse(text).unwrap();
        assert!(scenario.auto_prompt.is_some() && scenario.log.is_none());
    }
}

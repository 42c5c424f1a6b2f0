use super::*;

#[test]
fn mistakes_are_reported_with_their_position() {
    let in_steps = |steps: &str| format!("look = \"codex\"\n\n[[turn]]\nsteps = [\n  {steps},\n]\n");
    let cases = [
        ("look = 3".to_owned(), 1, "wanted string or table"),
        ("look = \"claude\"\nlog".to_owned(), 2, "key with no value"),
        ("dialog_deaf = 200".to_owned(), 1, "expected a string"),
        (in_steps(r#"{ think = "3" }"#), 5, "`3` is no duration"),
        (in_steps(r#"{ think = 3 }"#), 5, "a duration, or a table"),
        (in_steps(r#"{ think = { for = "3s", word = "x" } }"#), 5, "unknown field `word`"),
        (in_steps(r#"{ pause = "1s", say = "x" }"#), 5, ""),
        (in_steps(r#"{ say = { text = "x", rate = 0 } }"#), 5, "expected a nonzero u32"),
        (in_steps(r#"{ ask = { kind = "question" } }"#), 5, "a question needs `options`"),
        (in_steps(r#"{ ask = { kind = "permission", accept = 4 } }"#), 5, "`accept` is 4, but the options are 1 to 3"),
        (in_steps(r#"{ fail = "200" }"#), 5, "`200` is no failure"),
        (in_steps(r#"{ fail = { time = 1 } }"#), 5, "unknown field `time`"),
        (in_steps(r#"{ answer = { late = "soon" } }"#), 5, "`soon` is no duration"),
        ("[[turn]]\nnth = 0".to_owned(), 2, "count from 1"),
        ("[[turn]]\nkey = \"test\"".to_owned(), 2, "unknown variant `test`"),
    ];
    for (text, expected, part) in cases {
        let error = Scenario::parse(&text).map(|scenario| panic!("parsed: {scenario:?}")).unwrap_err().to_string();
        assert!(error.contains(&format!("at line {expected}, column ")) && error.contains(part), "{error}");
    }
}

#[test]
fn each_player_rejects_the_steps_of_the_others() {
    let check = |step: &str, player| {
        let scenario =
            Scenario::parse(&format!("[[turn]]\n[[turn]]\nsteps = [{{ say = 'x' }}, {{ {step} }}]")).unwrap();
        scenario.check_for(player).map_err(|error| error.to_string())
    };
    use ScenarioPlayer::{Agent, Model};
    for (step, players) in [
        ("say = 'x'", &[Agent, Model][..]),
        ("run = { command = 'ls' }", &[Agent, Model]),
        ("ask = { kind = 'startup' }", &[Agent]),
        ("crash = 9", &[Agent]),
        ("wait_for = 'x'", &[Model]),
    ] {
        for player in [Agent, Model] {
            assert_eq!(check(step, player).is_ok(), players.contains(&player), "{step} {player:?}");
        }
    }
    let error = check("exit = 1", ScenarioPlayer::Model).unwrap_err();
    assert_eq!(error, "turn 2, step 2: a scripted model cannot play `exit`");
}

#[test]
fn turn_is_selected_by_its_conditions_and_otherwise_in_order() {
    let scenario = Scenario::parse(
        r#"
[[turn]]
key = "tester"
nth = [2, 4]
steps = [{ say = "0" }]
[[turn]]
steps = [{ say = "first" }]
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
[[turn]]
steps = [{ say = "last" }]
"#,
    )
    .unwrap();
    use Key::{Analyst, Tester};
    for (prompt, asked, in_order, expected) in [
        ("x", Some((Tester, 2)), 0, "0"),
        ("deploy", Some((Tester, 4)), 0, "0"),
        ("deploy", Some((Tester, 1)), 0, "2"),
        ("x", Some((Tester, 3)), 0, "1"),
        ("x", Some((Analyst, 3)), 0, "1"),
        ("x", Some((Tester, 1)), 0, "first"),
        ("deploy", Some((Analyst, 1)), 1, "last"),
        ("deploy", None, 9, "last"),
        ("hello", None, 0, "3"),
        ("hello deploy", Some((Tester, 5)), 0, "2"),
    ] {
        let turn = scenario.turn_for(prompt, asked, in_order).map(|turn| turn.steps.clone());
        assert_eq!(turn, Some(vec![ScriptStep::say(expected)]), "{prompt} {asked:?} after {in_order}");
    }
    let conditional = Scenario { turns: scenario.turns[..1].to_vec(), ..scenario };
    assert_eq!(conditional.turn_for("x", None, 0), None);
    assert_eq!(Scenario::default().turn_for("x", None, 0), None);
}

//! The documentation is right.

use posse_actor::{PlayKind, Scenario};

const README: &str = include_str!("../README.md");

#[test]
fn the_example_parses_and_parses_back_to_what_it_says() {
    let examples: Vec<&str> = README.split("```toml\n").skip(1).filter_map(|part| part.split("```").next()).collect();
    assert_eq!(examples.len(), 3);
    let scenario = Scenario::parse(examples[0]).unwrap();
    assert_eq!(scenario.start.len(), 3);
    assert_eq!(scenario.turns.len(), 2);
    assert_eq!(scenario.turns[1].steps.len(), 6);
    assert_eq!(Scenario::parse(examples[1]).unwrap().play, PlayKind::Loop);
    let scenario = Scenario::parse(examples[2]).unwrap();
    assert_eq!((scenario.loop_play.permissions, scenario.turns.len()), (1, 4));
}

/// serde names every key it knows when it meets one it does not: each of them must be documented.
#[test]
fn every_key_is_documented() {
    let unknown = |text: &str| Scenario::parse(text).unwrap_err().message;
    let in_step = |step: &str| unknown(&format!("look = \"plain\"\nstart = [{step}]"));
    for message in [
        unknown("look = \"plain\"\nzzz = 1"),
        unknown("look = \"zzz\""),
        in_step("{ zzz = 1 }"),
        in_step("{ think = { zzz = 1 } }"),
        in_step("{ stream = { zzz = 1 } }"),
        in_step("{ tool = { zzz = 1 } }"),
        in_step("{ ask = { zzz = 1 } }"),
        in_step("{ ask = { kind = \"zzz\" } }"),
        unknown("look = \"plain\"\nplay = \"zzz\""),
        unknown("look = \"plain\"\nplay = \"loop\"\n[loop]\nzzz = 1"),
        unknown("look = \"plain\"\n[[turn]]\nzzz = 1"),
        unknown("look = \"plain\"\n[[turn]]\nkey = \"zzz\""),
        in_step("{ answer = { zzz = 1 } }"),
        in_step("{ answer = { verdict = \"zzz\" } }"),
        in_step("{ answer = { with = [\"zzz\"] } }"),
        in_step("{ fail = \"zzz\" }"),
        in_step("{ write = { zzz = 1 } }"),
        in_step("{ write = { path = \"\", text = \"\", how = \"zzz\" } }"),
        in_step("{ repeat = { zzz = 1 } }"),
        in_step("{ flood = { zzz = 1 } }"),
    ] {
        let words: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
        assert_eq!(words.first(), Some(&"zzz"), "{message}");
        assert!(words.len() > 2, "{message}");
        for word in &words[1..] {
            let known = README.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').any(|seen| seen == *word);
            assert!(known, "`{word}` is not in the README");
        }
    }
}

//! The documentation is complete and its examples parse.

use posse_sim::scenario::{PlayKind, ScenarioPlayer};
use posse_sim::{Scenario, ScenarioError};

const README: &str = include_str!("../README.md");

#[test]
fn examples_parse() {
    let examples: Vec<&str> = README.split("```toml\n").skip(1).filter_map(|part| part.split("```").next()).collect();
    assert_eq!(examples.len(), 5);
    let parsed: Vec<Scenario> = examples.iter().map(|text| Scenario::parse(text).unwrap()).collect();
    for (number, turns, player) in [
        (0, 2, ScenarioPlayer::Agent),
        (1, 2, ScenarioPlayer::Model),
        (2, 2, ScenarioPlayer::Model),
        (3, 0, ScenarioPlayer::Agent),
        (4, 4, ScenarioPlayer::Agent),
    ] {
        assert_eq!(parsed[number].turns.len(), turns, "{}", examples[number]);
        parsed[number].check_for(player).unwrap();
    }
    assert_eq!(parsed[3].play, PlayKind::Loop);
    assert_eq!(parsed[4].review_loop.permissions, 1);
}

/// For an unknown key, serde lists all known ones: each of them must be documented.
#[test]
fn every_key_is_documented() {
    let unknown = |text: &str| match Scenario::parse(text).unwrap_err() {
        ScenarioError::Text(error) => error.message().to_owned(),
        error => panic!("{error}"),
    };
    let in_step = |step: &str| unknown(&format!("start = [{step}]"));
    for message in [
        unknown("zzz = 1"),
        unknown("look = \"zzz\""),
        in_step("{ zzz = 1 }"),
        in_step("{ think = { zzz = 1 } }"),
        in_step("{ say = { zzz = 1 } }"),
        in_step("{ tool = { zzz = 1 } }"),
        in_step("{ run = { zzz = 1 } }"),
        in_step("{ ask = { zzz = 1 } }"),
        in_step("{ ask = { kind = \"zzz\" } }"),
        unknown("play = \"zzz\""),
        unknown("[loop]\nzzz = 1"),
        unknown("[[turn]]\nzzz = 1"),
        unknown("[[turn]]\nkey = \"zzz\""),
        in_step("{ answer = { zzz = 1 } }"),
        in_step("{ answer = { with = [\"zzz\"] } }"),
        in_step("{ fail = { zzz = 1 } }"),
        in_step("{ write = { zzz = 1 } }"),
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

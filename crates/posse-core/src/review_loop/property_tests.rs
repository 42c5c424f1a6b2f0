//! Properties that hold for all answers of the agents.

use proptest::prelude::*;

use super::config::LoopLimits;
use super::phase_tests::{APPROVED, FAIL, PASS, REVISE, prompt, rules};
use super::*;

fn answer() -> impl Strategy<Value = String> {
    let known = [APPROVED, REVISE, PASS, FAIL, "RESULT: PASS|FAIL", "RESULT: FAIL\nRESULT: PASS", "Files changed: x"];
    let line = prop::sample::select(vec![
        "RESULT: PASS",
        "RESULT: FAIL",
        "RESULT:",
        "REVIEW_RESULT: APPROVED",
        "REVIEW_RESULT: APPROVED|REVISE",
        "REVIEW_NOTES:",
        "EVIDENCE:",
        "Risks",
        "code test risk fix",
        "é\u{a0}…",
        "\r",
        "",
    ]);
    prop_oneof![
        4 => prop::sample::select(known.to_vec()).prop_map(str::to_owned),
        1 => prop::collection::vec(line, 0..8).prop_map(|lines| lines.join("\n")),
        1 => "\\PC{0,80}",
    ]
    .prop_filter("an answer is never blank", |text| !text.trim().is_empty())
}

fn limits() -> impl Strategy<Value = LoopLimits> {
    (1..4u32, 1..4u32, 1..4u32, 0..5u32, any::<bool>()).prop_map(|(rounds, cycles, min, evidence, required)| {
        LoopLimits {
            max_rounds: rounds,
            max_review_cycles: cycles,
            min_review_cycles_before_approval: min,
            review_evidence_min_match: evidence,
            require_review_evidence: required,
            ..LoopLimits::default()
        }
    })
}

/// Returns the maximum number of turns: each round with both reviews in full and the test.
fn most_turns(limits: &LoopLimits) -> u32 {
    limits.max_rounds * (4 * limits.max_review_cycles + 1)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_run_ends_and_only_a_pass_is_a_pass(
        limits in limits(),
        start in prop::sample::select(Role::ALL.to_vec()),
        answers in prop::collection::vec(answer(), 200),
    ) {
        let mut rounds = Rounds::begin(Rules { limits, ..rules() }, prompt(), start);
        let mut again = rounds.clone();
        let mut turns = 0;
        let mut answers = answers.iter().cycle();
        let mut last = (Key::Analyst, String::new());
        while let Next::Turn(key) = rounds.next() {
            prop_assert_eq!(key.phase(), rounds.phase());
            prop_assert!(rounds.round() <= limits.max_rounds && rounds.cycle() <= limits.max_review_cycles);
            prop_assert!(!rounds.text(key, "write").is_empty());
            let answer = answers.next().unwrap();
            let (notes, same) = (rounds.answered(key, answer), again.answered(key, answer));
            prop_assert_eq!(notes, same);
            if turns % 3 == 0 {
                rounds.told(key.role());
                again.told(key.role());
            }
            last = (key, answer.clone());
            turns += 1;
            prop_assert!(turns <= most_turns(&limits), "{} turns", turns);
        }
        prop_assert_eq!(&rounds, &again, "the same answers give the same run");
        if rounds.next() == Next::Over(Final::Pass) {
            prop_assert_eq!(last.0, Key::Tester);
            prop_assert_eq!(verdict::test_verdict(&last.1.replace('\r', "\n")), Verdict::Yes);
        }
        let kept: Rounds = serde_json::from_str(&serde_json::to_string(&rounds).unwrap()).unwrap();
        prop_assert_eq!(kept, rounds);
    }

    #[test]
    fn a_run_taken_up_from_its_file_ends_too(
        limits in limits(),
        before in prop::collection::vec(answer(), 0..20),
        after in prop::collection::vec(answer(), 200),
    ) {
        let rules = Rules { limits, ..rules() };
        let mut rounds = Rounds::begin(rules.clone(), prompt(), Role::Analyst);
        for answer in &before {
            let Next::Turn(key) = rounds.next() else { break };
            rounds.answered(key, answer);
        }
        let file = state::StateFile::read(&rounds.to_state().write().unwrap()).unwrap();
        prop_assert_eq!(&file, &rounds.to_state());
        let (mut resumed, _) = Rounds::from_state(&file, rules);
        prop_assert_eq!(resumed.phase(), rounds.phase());
        prop_assert_eq!((resumed.round(), resumed.cycle()), (rounds.round(), rounds.cycle()));
        let mut turns = 0;
        for answer in after.iter().cycle() {
            let Next::Turn(key) = resumed.next() else { break };
            resumed.answered(key, answer);
            turns += 1;
            prop_assert!(turns <= most_turns(&limits), "{} turns", turns);
        }
    }
}

